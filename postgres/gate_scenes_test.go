package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/workflow"
	"github.com/holdfast-go/holdfast/run"
)

// scenes are the states in which pairs of calls are tested.
var scenes = map[string]scene{
	"run held":       runScene(func(*runStage) {}),
	"run opaque":     opaqueScene(),
	"run behind":     behindScene(),
	"run begun":      runScene(func(r *runStage) { r.begin("charge") }),
	"run done":       runScene(func(r *runStage) { r.begin("charge"); r.end("charge", effects.Done) }),
	"run uncertain":  runScene(func(r *runStage) { r.begin("charge"); r.park() }),
	"run cancelling": runScene(func(r *runStage) { r.command(runengine.Cancel) }),
	"run pending":    runScene(func(r *runStage) { r.complete() }),
	"run second":     runScene(func(r *runStage) { r.complete(); r.take() }), // the next step waits for a signal
	"run waiting":    runScene(func(r *runStage) { r.complete(); r.take(); r.complete() }),
	"run asking": runScene(func(r *runStage) {
		r.complete()
		r.take()
		r.complete()
		r.signal()
		r.tick()
	}),
	"run late":      late(runScene(func(*runStage) {})),
	"run over":      late(runScene(func(r *runStage) { r.fail() })), // its retention is over too
	"run paused":    runScene(func(r *runStage) { r.command(runengine.Pause) }),
	"run failed":    runScene(func(r *runStage) { r.fail() }),
	"entity free":   entityScene(func(*entityStage) {}),
	"entity held":   entityScene(func(s *entityStage) { s.claim() }),
	"entity begun":  entityScene(func(s *entityStage) { s.claim(); s.begin("charge") }),
	"entity done":   entityScene(func(s *entityStage) { s.claim(); s.begin("charge"); s.done("charge"); s.begin("mail") }),
	"entity parked": entityScene(func(s *entityStage) { s.claim(); s.begin("charge"); s.end(entities.Park) }),
	"entity late":   late(entityScene(func(s *entityStage) { s.claim(); s.begin("charge") })),
	"entity queued": entityScene(func(s *entityStage) { s.claim(); s.queue() }),
	"entity due":    entityScene(func(s *entityStage) { s.claim(); s.begin("charge"); s.end(entities.Back) }),

	"stream":             streamScene(func(*streamStage) {}),
	"stream registering": streamScene((*streamStage).registering),
	"stream followed":    streamScene((*streamStage).live),
	"stream held":        streamScene((*streamStage).held),
	"stream late":        late(streamScene((*streamStage).held)),
	"stream blocked":     streamScene((*streamStage).blocked),
	"stream fed":         streamScene((*streamStage).fed),

	"scope none":    scopeScene(),
	"scope":         scopeScene("put"),
	"scope ending":  scopeScene("put an hour"),
	"scope ended":   late(scopeScene("put an hour")),
	"scope deleted": scopeScene("put", "delete"),
	"scope gone":    late(scopeScene("put", "delete")),

	"batch":           batchScene(func(*batchStage) {}),
	"batch held":      batchScene((*batchStage).held),
	"batch late":      late(batchScene((*batchStage).held)),
	"batch poor":      batchScene((*batchStage).poor),
	"batch paused":    batchScene(func(s *batchStage) { s.poor(); s.must(s.calls()["take"]) }),
	"batch credited":  batchScene(func(s *batchStage) { s.poor(); s.must(s.calls()["take"]); s.must(s.calls()["post more"]) }),
	"batch cancelled": batchScene((*batchStage).cancelled),
	"batch cleaning":  batchScene((*batchStage).cleaning),
	"batch over":      batchScene((*batchStage).over),

	"request":       requestScene(false),
	"request taken": requestScene(true),
	"request late":  late(requestScene(true)),
	"desk":          adminScene,
}

// late is a scene in which the leases have expired, and more.
func late(s scene) scene {
	return func(t *testing.T, ctx context.Context, e *holdfast.Engine) map[string]call {
		all := s(t, ctx, e)
		if err := shift(ctx, e, 26*time.Hour); err != nil {
			t.Fatal(err)
		}
		return all
	}
}

// shift moves the database's time.
func shift(ctx context.Context, e *holdfast.Engine, by time.Duration) error {
	return store.Shift(ctx, engine.Of(e), by)
}

// stage has what the stages of all kinds need.
type stage struct {
	t   *testing.T
	ctx context.Context
	e   *holdfast.Engine
	at  store.Partition
}

func newStage(t *testing.T, ctx context.Context, e *holdfast.Engine) stage {
	at, err := engine.Of(e).Partition(ctx, store.Write)
	if err != nil {
		t.Fatal(err)
	}
	return stage{t, ctx, e, at}
}

// must makes a call that must succeed.
func (s stage) must(f call) {
	s.t.Helper()
	if _, err := f(s.ctx, s.e); err != nil {
		s.t.Fatal(err)
	}
}

const leaseTime = time.Hour

// runStage is a run, with the step that was taken last.
type runStage struct {
	stage
	def      *run.Definition
	executor *runengine.Executor
	id       string
	l        runengine.ClaimedStep
}

// opaqueScene is a run whose first step is opaque and held.
func opaqueScene() scene {
	return func(t *testing.T, ctx context.Context, e *holdfast.Engine) map[string]call {
		r := newRunStage(t, ctx, e, run.Opaque())
		all := r.calls()
		few := map[string]call{"start opaque": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			opaque := func(string) (runengine.Handled, bool) { return runengine.Handled{Safety: "opaque"}, true }
			l, fresh, err := r.executor.Start(ctx, engine.Of(e), runengine.Start{Definition: r.def.ID(), Key: "k4", Holder: "me", Lease: leaseTime, Local: opaque})
			return []any{l.Run.Status, fresh}, err
		}}
		for _, name := range []string{"complete", "fail", "release", "renew", "expire", "take", runengine.Cancel, runengine.Pause} {
			few[name] = all[name]
		}
		return few
	}
}

// behindScene is a run of three steps whose first is held, and whose holder has done all.
func behindScene() scene {
	return func(t *testing.T, ctx context.Context, e *holdfast.Engine) map[string]call {
		step := func(name string) run.Step { return run.Remote(name, "w", run.Idempotent(), run.Timeout(24*time.Hour)) }
		r := startRunStage(t, ctx, e, run.Define("behind", "1", step("a"), step("b"), step("c")))
		all := r.calls()
		few := make(map[string]call)
		for n, name := range map[int]string{2: "complete two", 3: "complete three"} {
			few[name] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
				mine, here := r.l, func(string) (runengine.Handled, bool) { return runengine.Handled{Safety: "idempotent"}, true }
				ends := []runengine.Ended{{Output: []byte(`1`)}, {Output: []byte(`2`)}, {Output: []byte(`3`)}}[:n]
				for i := range ends {
					ends[i].Holder, ends[i].Lease, ends[i].Local = "me", leaseTime, here
				}
				now, recorded, err := r.executor.CompleteAll(ctx, engine.Of(e), &mine, ends)
				return []any{recorded, now.Run.Status, now.Run.Version, now.Run.Step, now.Step.Status}, err
			}
		}
		for _, name := range []string{"complete", "fail", "release", "renew", "signal", "expire", "take", runengine.Cancel, runengine.Pause} {
			few[name] = all[name]
		}
		return few
	}
}

func runScene(to func(*runStage)) scene {
	return func(t *testing.T, ctx context.Context, e *holdfast.Engine) map[string]call {
		r := newRunStage(t, ctx, e, run.Journaled())
		to(r)
		return r.calls()
	}
}

// newRunStage starts a run and takes its first step, which has a safety.
func newRunStage(t *testing.T, ctx context.Context, e *holdfast.Engine, safety run.StepOption) *runStage {
	t.Helper()
	return startRunStage(t, ctx, e, run.Define("one", "1",
		run.Remote("first", "w", safety, run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 2, Backoff: time.Second}), run.Timeout(24*time.Hour)),
		run.Remote("second", "w", run.Idempotent(), run.Timeout(24*time.Hour)),
		run.Signal("told", "news", run.Timeout(24*time.Hour)),
		run.Approval("ask", "Yes?", run.Timeout(24*time.Hour)),
		run.Remote("last", "w", run.Idempotent())))
}

func startRunStage(t *testing.T, ctx context.Context, e *holdfast.Engine, def *run.Definition) *runStage {
	t.Helper()
	r := &runStage{stage: newStage(t, ctx, e), executor: &runengine.Executor{Retention: time.Hour}, def: def}
	started, _, err := r.def.Start(ctx, e, 1, run.Key("k"))
	if err != nil {
		t.Fatal(err)
	}
	r.id = started.ID
	r.take()
	return r
}

func (r *runStage) calls() map[string]call {
	l := r.l
	by := func(f func(context.Context, *holdfast.Engine, *runengine.ClaimedStep) (runengine.ClaimedStep, error)) call {
		return func(ctx context.Context, e *holdfast.Engine) (any, error) {
			mine := l
			now, err := f(ctx, e, &mine)
			if err != nil {
				return nil, err
			}
			return []any{now.Run.Status, now.Run.Version, now.Run.Step, now.Step.Status}, nil
		}
	}
	results := []runengine.Result{{Name: "charge", Result: []byte(`7`)}}
	all := map[string]call{
		"complete": by(func(ctx context.Context, e *holdfast.Engine, l *runengine.ClaimedStep) (runengine.ClaimedStep, error) {
			return r.executor.Complete(ctx, engine.Of(e), l, runengine.Ended{Output: []byte(`1`)})
		}),
		"complete whole": by(func(ctx context.Context, e *holdfast.Engine, l *runengine.ClaimedStep) (runengine.ClaimedStep, error) {
			return r.executor.Complete(ctx, engine.Of(e), l, runengine.Ended{Output: []byte(`1`), Whole: true})
		}),
		"complete with a result": by(func(ctx context.Context, e *holdfast.Engine, l *runengine.ClaimedStep) (runengine.ClaimedStep, error) {
			return r.executor.Complete(ctx, engine.Of(e), l, runengine.Ended{Output: []byte(`1`), Whole: true, Results: results})
		}),
		"fail": by(func(ctx context.Context, e *holdfast.Engine, l *runengine.ClaimedStep) (runengine.ClaimedStep, error) {
			return r.executor.Fail(ctx, engine.Of(e), l, runengine.Failure{Message: "no"})
		}),
		"fail for good": by(func(ctx context.Context, e *holdfast.Engine, l *runengine.ClaimedStep) (runengine.ClaimedStep, error) {
			return r.executor.Fail(ctx, engine.Of(e), l, runengine.Failure{Message: "no", Final: true})
		}),
		"park": by(func(ctx context.Context, e *holdfast.Engine, l *runengine.ClaimedStep) (runengine.ClaimedStep, error) {
			return r.executor.Park(ctx, engine.Of(e), l, "open", nil)
		}),
		"pass": by(func(ctx context.Context, e *holdfast.Engine, l *runengine.ClaimedStep) (runengine.ClaimedStep, error) {
			return r.executor.Pass(ctx, engine.Of(e), l, time.Second, nil)
		}),
		"release": by(func(ctx context.Context, e *holdfast.Engine, l *runengine.ClaimedStep) (runengine.ClaimedStep, error) {
			return r.executor.Release(ctx, engine.Of(e), l, false, nil)
		}),
		"resolve done":     r.resolve(true, ""),
		"resolve not done": r.resolve(false, ""),
		"resolve failure":  r.resolve(true, "failure"),
		"renew": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return runengine.Renew(ctx, engine.Of(e), &l, 3*leaseTime)
		},
		"point": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, runengine.Point(ctx, engine.Of(e), &l, "op")
		},
		"signal": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return runengine.Send(ctx, engine.Of(e), runengine.Signal{Run: r.id, ID: "s", Type: "news", Payload: []byte(`1`)})
		},
		"decide": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return runengine.Decide(ctx, engine.Of(e), runengine.ApprovalID(r.id, "ask", 1), runengine.Decision{Decision: "approved", Actor: "ann"})
		},
		"start": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			started, fresh, err := r.def.Start(ctx, e, 1, run.Key("k"))
			return []any{started, fresh}, err
		},
		"start another": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			_, fresh, err := r.def.Start(ctx, e, 1, run.Key("k2"))
			return fresh, err
		},
		"define": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			two := &workflow.Definition{Name: "two", Version: "1", Steps: []workflow.Step{{Name: "first", Type: workflow.Event, Signal: "news", Timeout: time.Hour}}}
			_, fresh, err := new(runengine.Executor).Start(ctx, engine.Of(e), runengine.Start{Declared: two, Key: "k3"}) // it has not cached the definition
			return fresh, err
		},
		"take": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			taken, err := r.executor.TakeDue(ctx, engine.Of(e), r.ask())
			return len(taken), err
		},
		"expire": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return r.executor.Expire(ctx, engine.Of(e), r.at)
		},
		"prune": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			n, _, err := r.executor.Prune(ctx, engine.Of(e), r.at, 500)
			return n, err
		},
		"tick": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			due, err := runengine.Ready(ctx, engine.Of(e), r.at, []string{""}, "", 10)
			n := 0
			for i := range due {
				var moved bool
				if _, moved, err = r.executor.Tick(ctx, engine.Of(e), &due[i], runengine.Taker{Holder: "me", Lease: leaseTime}, nil); moved {
					n++
				}
			}
			return n, err
		},
	}
	for _, name := range []string{runengine.Cancel, runengine.Pause, runengine.Resume, runengine.Retry} {
		all[name] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return r.executor.Command(ctx, engine.Of(e), r.id, runengine.Command{Name: name})
		}
	}
	for _, name := range []string{"charge", "mail"} {
		all["begin "+name] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			x, err := l.Book(engine.Of(e)).Begin(ctx, name, 0, effects.Hold, nil)
			return x.State, err
		}
		for _, s := range []effects.State{effects.Done, effects.NotDone} {
			all["end "+name+" "+string(s)] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
				state, result, err := l.Book(engine.Of(e)).End(ctx, name, 0, s, []byte(`1`), false)
				return []any{state, string(result)}, err
			}
		}
	}
	return all
}

func (r *runStage) ask() runengine.Ask {
	return runengine.Ask{Handlers: map[string]runengine.Handled{"w": {}}, Holder: "me", Limit: 10, Lease: leaseTime}
}

func (r *runStage) resolve(happened bool, outcome string) call {
	l := r.l
	return func(ctx context.Context, e *holdfast.Engine) (any, error) {
		known := effects.Resolution{Name: "charge", State: effects.StateOf(happened)}
		if happened {
			known.Result = []byte(`"yes"`)
		}
		_, err := r.executor.Resolve(ctx, engine.Of(e), l.Operation(), []effects.Resolution{known}, outcome, lease.Intervention{Actor: "ann"})
		return nil, err
	}
}

func (r *runStage) take() {
	r.t.Helper()
	all, err := r.executor.TakeDue(r.ctx, engine.Of(r.e), r.ask())
	if err != nil || len(all) != 1 {
		r.t.Fatal(len(all), err)
	}
	r.l = all[0]
}

func (r *runStage) begin(name string)  { r.t.Helper(); r.must(r.calls()["begin "+name]) }
func (r *runStage) park()              { r.t.Helper(); r.must(r.calls()["park"]) }
func (r *runStage) complete()          { r.t.Helper(); r.must(r.calls()["complete"]) }
func (r *runStage) fail()              { r.t.Helper(); r.must(r.calls()["fail for good"]) }
func (r *runStage) signal()            { r.t.Helper(); r.must(r.calls()["signal"]) }
func (r *runStage) tick()              { r.t.Helper(); r.must(r.calls()["tick"]) }
func (r *runStage) command(how string) { r.t.Helper(); r.must(r.calls()[how]) }
func (r *runStage) end(name string, s effects.State) {
	r.t.Helper()
	r.must(r.calls()["end "+name+" "+string(s)])
}

// entityStage is an entity, with the claim on it.
type entityStage struct {
	stage
	entity entities.Entity
}

const claimed = "closing"

func entityScene(to func(*entityStage)) scene {
	return func(t *testing.T, ctx context.Context, e *holdfast.Engine) map[string]call {
		s := &entityStage{stage: newStage(t, ctx, e)}
		s.must(s.create("i"))
		to(s)
		return s.calls()
	}
}

func (s *entityStage) create(id string) call {
	return func(ctx context.Context, e *holdfast.Engine) (any, error) {
		return entities.Create(ctx, engine.Of(e), entities.CreateArgs{Lifecycle: "invoice", ID: id, Status: "open"})
	}
}

func (s *entityStage) take(operation string) call {
	return func(ctx context.Context, e *holdfast.Engine) (any, error) {
		return entities.Take(ctx, engine.Of(e), entities.ClaimArgs{Lifecycle: "invoice", ID: "i", Choices: map[string]entities.Choice{"open": {Into: claimed, Revert: "open"}},
			Operation: operation, Step: "close", Requester: "api", Holder: "me", Lease: leaseTime})
	}
}

func (s *entityStage) claim() {
	s.t.Helper()
	got, err := s.take("op")(s.ctx, s.e)
	if err != nil {
		s.t.Fatal(err)
	}
	s.entity = got.(entities.Entity)
}

func (s *entityStage) begin(name string) { s.t.Helper(); s.must(s.calls()["begin "+name]) }
func (s *entityStage) done(name string)  { s.t.Helper(); s.must(s.calls()["end "+name+" done"]) }
func (s *entityStage) end(how string)    { s.t.Helper(); s.must(s.calls()[how]) }
func (s *entityStage) queue()            { s.t.Helper(); s.must(s.calls()["queue"]) }

func (s *entityStage) calls() map[string]call {
	ticket := s.entity.Ticket()
	all := map[string]call{
		"create":         s.create("i"),
		"create another": s.create("j"),
		"claim":          s.take("op2"),
		"renew": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return entities.Renew(ctx, engine.Of(e), s.at, ticket, 3*leaseTime)
		},
		"queue": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return entities.Queue(ctx, engine.Of(e), s.at, entities.QueueArgs{Ticket: ticket, Stage: "x", Claim: claimed})
		},
		"take": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return entities.TakeDue(ctx, engine.Of(e), s.at.Shard, entities.ResumeArgs{Turns: []lease.Turn{{Name: entities.QueueOf("invoice"), Workspace: s.at.Workspace}}, Leases: map[string]time.Duration{entities.QueueOf("invoice"): leaseTime}, Holder: "you", Limit: 10})
		},
		"recover": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			all, err := entities.Expired(ctx, engine.Of(e), store.Partition{Shard: s.at.Shard}, []string{"invoice"})
			n := 0
			for _, l := range all {
				var freed bool
				if _, freed, err = entities.Recover(ctx, engine.Of(e), l, claimed, true, 3, nil); freed {
					n++
				}
			}
			return n, err
		},
		"withdraw": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			got, done, err := entities.Withdraw(ctx, engine.Of(e), s.at, entities.WithdrawArgs{Ticket: ticket, Outcome: "withdrawn", Claim: claimed})
			return []any{got, done}, err
		},
		"adopt": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return entities.Adopt(ctx, engine.Of(e), s.at, "invoice", "i", entities.Choice{Into: "open", Revert: "draft"}, "me", leaseTime)
		},
		"sync": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return entities.Sync(ctx, engine.Of(e), "invoice", "i", "paid")
		},
		"sync another": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return entities.Sync(ctx, engine.Of(e), "invoice", "j", "paid")
		},
	}
	for _, from := range []string{"open", claimed} {
		all["transition from "+from] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return entities.Transition(ctx, engine.Of(e), entities.TransitionArgs{Lifecycle: "invoice", ID: "i", From: []string{from}, To: "paid", Event: "paid"})
		}
	}
	for _, how := range []string{entities.Success, entities.Back, entities.Park} {
		all[how] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			got, again, err := entities.End(ctx, engine.Of(e), s.at, entities.EndArgs{Ticket: ticket, How: how, To: map[string]string{entities.Success: "closed"}[how],
				Event: "closed", Outcome: how, Claim: claimed})
			return []any{got, again}, err
		}
		all[how+" with a result"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			got, again, err := entities.End(ctx, engine.Of(e), s.at, entities.EndArgs{Ticket: ticket, How: how, To: map[string]string{entities.Success: "closed"}[how],
				Event: "closed", Outcome: how, Claim: claimed, Results: []entities.Result{{Name: "charge", Result: []byte(`7`)}}})
			return []any{got, again}, err
		}
	}
	for _, how := range []string{entities.Resume, entities.Success, entities.Back} {
		all["unpark "+how] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return entities.Unpark(ctx, engine.Of(e), s.at, entities.UnparkArgs{Ticket: ticket, How: how, To: map[string]string{entities.Success: "closed"}[how],
				Event: "closed", Outcome: how})
		}
	}
	for _, name := range []string{"charge", "mail"} {
		all["begin "+name] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			x, err := effects.Begin(ctx, engine.Of(e), s.at, ticket, name, 0, effects.Hold, nil)
			return x.State, err
		}
		for _, state := range []effects.State{effects.Done, effects.NotDone} {
			all["end "+name+" "+string(state)] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
				now, result, err := effects.EndWith(ctx, engine.Of(e), s.at, ticket, name, 0, state, []byte(`1`), false)
				return []any{now, string(result)}, err
			}
			all["resolve "+name+" "+string(state)] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
				known := effects.Resolution{Name: name, State: state}
				if state == effects.Done {
					known.Result = []byte(`1`)
				}
				return effects.Resolve(ctx, engine.Of(e), s.at, ticket, known)
			}
		}
	}
	return all
}
