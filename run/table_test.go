package run_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/run"
)

// bench is a run that a test moves step by step.
type bench struct {
	t   *testing.T
	ctx context.Context
	e   *holdfast.Engine
	def *run.Definition
	id  string
}

// simple is two tasks of workers, a signal, and an approval.
func simple() *run.Definition {
	return run.Define("simple", "1",
		run.Remote("first", "w", run.Idempotent(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 2, Backoff: time.Second})),
		run.Remote("second", "w", run.Idempotent(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 1, Backoff: time.Second})),
		run.Signal("told", "news", run.Timeout(time.Hour)),
		run.Approval("ask", "Yes?", run.Timeout(time.Hour)),
		run.Remote("last", "w", run.Idempotent()))
}

func newBench(t *testing.T, e *holdfast.Engine, def *run.Definition) *bench {
	t.Helper()
	b := &bench{t: t, ctx: t.Context(), e: e, def: def}
	return b.start()
}

func (b *bench) start(o ...run.StartOption) *bench {
	b.t.Helper()
	r, _, err := b.def.Start(b.ctx, b.e, order{"o", 1}, o...)
	b.ok(err)
	b.id = r.ID
	return b
}

func (b *bench) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) executor() *runengine.Executor { return runengine.LocalOf(engine.Of(b.e)).Executor }

func (b *bench) live() runengine.ClaimedStep {
	b.t.Helper()
	l, err := runengine.Load(b.ctx, engine.Of(b.e), b.id)
	b.ok(err)
	return l
}

// is checks how the run and its step stand.
func (b *bench) is(status, step, stepStatus string) {
	b.t.Helper()
	l := b.live()
	if l.Run.Status != status || l.Step.Name != step || l.Step.Status != stepStatus {
		b.t.Fatalf("got run %s at step %s, %s (%s); want %s at %s, %s", l.Run.Status, l.Step.Name, l.Step.Status, l.Step.Error, status, step, stepStatus)
	}
}

// take takes the step that is due.
func (b *bench) take() *runengine.ClaimedStep {
	b.t.Helper()
	all, err := b.executor().TakeDue(b.ctx, engine.Of(b.e), runengine.Ask{Handlers: map[string]runengine.Handled{"w": {}}, Holder: "me", Limit: 10, Lease: time.Minute})
	b.ok(err)
	for i := range all {
		if all[i].Run.ID == b.id {
			return &all[i]
		}
	}
	b.t.Fatalf("claimed no step of the run: %+v", b.live())
	return nil
}

func (b *bench) complete(l *runengine.ClaimedStep) {
	b.t.Helper()
	_, err := b.executor().Complete(b.ctx, engine.Of(b.e), l, runengine.Ended{Output: []byte(`1`)})
	b.ok(err)
}

// tick does what is due at the engine's own steps.
func (b *bench) tick() {
	b.t.Helper()
	at, err := engine.Of(b.e).Partition(b.ctx, store.Read)
	b.ok(err)
	for range 10 {
		found, err := run.WorkerOf(b.e).Step(b.ctx, at)
		b.ok(err)
		if !found {
			return
		}
	}
}

func (b *bench) do(command string) error {
	_, err := b.executor().Command(b.ctx, engine.Of(b.e), b.id, runengine.Command{Name: command})
	return err
}

// to brings a new run to a status, with its step in one.
var to = map[string]func(b *bench){
	"PENDING/PENDING": func(*bench) {},
	"RUNNING/RUNNING": func(b *bench) { b.take() },
	"RUNNING/PENDING": func(b *bench) { b.complete(b.take()) },
	"WAITING/WAITING": func(b *bench) { b.complete(b.take()); b.complete(b.take()) },
	"PAUSED/RUNNING":  func(b *bench) { b.take(); b.ok(b.do(runengine.Pause)) },
	"PAUSED/PENDING":  func(b *bench) { b.complete(b.take()); b.ok(b.do(runengine.Pause)) },
	"PAUSED/COMPLETED": func(b *bench) {
		l := b.take()
		b.ok(b.do(runengine.Pause))
		b.complete(l)
	},
	"PAUSED/FAILED": func(b *bench) {
		b.complete(b.take())
		l := b.take()
		b.ok(b.do(runengine.Pause))
		_, err := b.executor().Fail(b.ctx, engine.Of(b.e), l, runengine.Failure{Message: "no"})
		b.ok(err)
	},
	"PAUSED/WAITING": func(b *bench) {
		l := b.take()
		b.ok(b.do(runengine.Pause))
		_, err := b.executor().Fail(b.ctx, engine.Of(b.e), l, runengine.Failure{Message: "no"})
		b.ok(err)
	},
	"FAILED/FAILED": func(b *bench) {
		_, err := b.executor().Fail(b.ctx, engine.Of(b.e), b.take(), runengine.Failure{Message: "no", Final: true})
		b.ok(err)
	},
	"CANCELLED/CANCELLED": func(b *bench) { b.ok(b.do(runengine.Cancel)) },
	"COMPLETED/COMPLETED": func(b *bench) {
		b.complete(b.take())
		b.complete(b.take())
		b.ok(run.Send(b.ctx, b.e, b.id, "news", 1, run.SignalID("n")))
		b.tick()
		_, err := run.Decide(b.ctx, b.e, runengine.ApprovalID(b.id, "ask", 1), run.Decision{Status: run.Approved}, run.By("ann"))
		b.ok(err)
		b.tick()
		b.complete(b.take())
	},
}

// Verifies every command at every status of run and step, against the table: what is legal
// is done once, what is not is INVALID_TRANSITION and writes nothing. A second try of what
// was done is refused, or does nothing.
func TestEveryCommandAtEveryStatus(t *testing.T) {
	legal := map[string][]string{runengine.Pause: {"RUNNING"}, runengine.Resume: {"PAUSED"}, runengine.Retry: {"FAILED"}, runengine.Cancel: {"PENDING", "RUNNING", "WAITING", "PAUSED"}}
	then := map[string][]string{runengine.Pause: {"PAUSED"}, runengine.Resume: {"RUNNING", "WAITING", "FAILED"}, runengine.Retry: {"RUNNING"}, runengine.Cancel: {"CANCELLED", "RUNNING", "PAUSED"}}
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for start, bring := range to {
			for command, from := range legal {
				b := newBench(t, e, simple())
				bring(b)
				was := b.live()
				if got := was.Run.Status + "/" + was.Step.Status; got != start {
					t.Fatalf("want start state %s, got %s", start, got)
				}
				err := b.do(command)
				now := b.live()
				if !slices.Contains(from, was.Run.Status) {
					if fault.CodeOf(err) != fault.InvalidTransition || now.Run.Version != was.Run.Version || now.Run.Status != was.Run.Status {
						t.Errorf("%s at %s: got %v, and the version changed from %d to %d", command, start, err, was.Run.Version, now.Run.Version)
					}
					continue
				}
				if err != nil || !slices.Contains(then[command], now.Run.Status) || now.Run.Version <= was.Run.Version {
					t.Errorf("%s at %s: got %v, run is %s", command, start, err, now.Run.Status)
				}
				b.twice(command, now)
			}
		}
	})
}

// twice does a command again: it is refused, or changes nothing.
func (b *bench) twice(command string, was runengine.ClaimedStep) {
	b.t.Helper()
	err := b.do(command)
	now := b.live()
	noted := command == runengine.Cancel && was.Run.CancelRequested
	if noted != (err == nil) || !noted && fault.CodeOf(err) != fault.InvalidTransition || now.Run.Version != was.Run.Version {
		b.t.Errorf("second %s at %s: got %v, and the version changed from %d to %d", command, was.Run.Status, err, was.Run.Version, now.Run.Version)
	}
}

// Verifies that a worker's word is taken once, and only while it holds the step: at every
// other status its end is LEASE_LOST and writes nothing, unless it is the one that ended it.
func TestEveryEndAtEveryStatus(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for start, bring := range to {
			b := newBench(t, e, simple())
			bring(b)
			first := b.live()
			first.Step.Epoch++ // as one who never had it
			version := first.Run.Version
			for name, end := range map[string]func() error{
				"complete": func() error {
					_, err := b.executor().Complete(b.ctx, engine.Of(e), &first, runengine.Ended{Output: []byte(`2`)})
					return err
				},
				"fail": func() error {
					_, err := b.executor().Fail(b.ctx, engine.Of(e), &first, runengine.Failure{Message: "x"})
					return err
				},
				"release": func() error { _, err := b.executor().Release(b.ctx, engine.Of(e), &first, false, nil); return err },
				"renew":   func() error { _, err := runengine.Renew(b.ctx, engine.Of(e), &first, time.Minute); return err },
			} {
				if err := end(); fault.CodeOf(err) != fault.LeaseLost {
					t.Errorf("%s at %s under another epoch: got %v, want LEASE_LOST", name, start, err)
				}
			}
			if now := b.live(); now.Run.Version != version {
				t.Errorf("at %s, a write under another epoch changed the run", start)
			}
		}
	})
}

// Verifies that a hold that has run out ends nothing, also where nobody has freed the step yet,
// and whether or not an effect's result comes with the end.
func TestAnEndAfterItsHold(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, simple())
		l := b.take()
		_, err := l.Book(engine.Of(e)).Begin(b.ctx, "charge", 0, effects.Hold, nil)
		b.ok(err)
		holdfasttest.Advance(t, e, 2*time.Minute)
		version := b.live().Run.Version
		for _, results := range [][]runengine.Result{nil, {{Name: "charge", State: string(effects.Done), Result: []byte(`1`)}}} {
			for name, end := range map[string]func() error{
				"complete": func() error {
					_, err := b.executor().Complete(b.ctx, engine.Of(e), l, runengine.Ended{Output: []byte(`2`), Results: results})
					return err
				},
				"fail": func() error {
					_, err := b.executor().Fail(b.ctx, engine.Of(e), l, runengine.Failure{Message: "x", Results: results})
					return err
				},
				"release": func() error { _, err := b.executor().Release(b.ctx, engine.Of(e), l, false, results); return err },
				"renew":   func() error { _, err := runengine.Renew(b.ctx, engine.Of(e), l, time.Minute); return err },
				"effect":  func() error { _, err := l.Book(engine.Of(e)).Begin(b.ctx, "mail", 0, effects.Hold, nil); return err },
			} {
				if err := end(); fault.CodeOf(err) != fault.LeaseLost {
					t.Errorf("%s, with %d results: got %v, want LEASE_LOST", name, len(results), err)
				}
			}
		}
		if now := b.live(); now.Run.Version != version || now.Step.Begun != 1 {
			t.Errorf("a late write changed the step: %+v", now.Step)
		}
	})
}

// Verifies that cancelling and what a worker, a timer or a person does at the same time come
// to one of the two orders: the run is cancelled in the end, and what was done first counts.
func TestCancelRacesEverything(t *testing.T) {
	races := map[string]struct {
		bring string
		do    func(b *bench, l *runengine.ClaimedStep) error
		step  []string // what the step may be then
	}{
		"complete": {"RUNNING/RUNNING", func(b *bench, l *runengine.ClaimedStep) error {
			_, err := b.executor().Complete(b.ctx, engine.Of(b.e), l, runengine.Ended{Output: []byte(`1`)})
			return err
		}, []string{"COMPLETED", "CANCELLED"}},
		"fail": {"RUNNING/RUNNING", func(b *bench, l *runengine.ClaimedStep) error {
			_, err := b.executor().Fail(b.ctx, engine.Of(b.e), l, runengine.Failure{Message: "no", Final: true})
			return err
		}, []string{"FAILED"}},
		"retry later": {"RUNNING/RUNNING", func(b *bench, l *runengine.ClaimedStep) error {
			_, err := b.executor().Fail(b.ctx, engine.Of(b.e), l, runengine.Failure{Message: "no"})
			return err
		}, []string{"FAILED", "CANCELLED"}},
		"signal": {"WAITING/WAITING", func(b *bench, _ *runengine.ClaimedStep) error {
			err := run.Send(b.ctx, b.e, b.id, "news", 1, run.SignalID("n"))
			if err == nil {
				b.tick()
			}
			return err
		}, []string{"CANCELLED", "COMPLETED", "WAITING"}},
		"wait": {"RUNNING/PENDING", func(b *bench, _ *runengine.ClaimedStep) error { // what follows waits
			all, err := b.executor().TakeDue(b.ctx, engine.Of(b.e), runengine.Ask{Handlers: map[string]runengine.Handled{"w": {}}, Holder: "me", Limit: 10, Lease: time.Minute})
			if err != nil || len(all) == 0 {
				return err
			}
			_, err = b.executor().Complete(b.ctx, engine.Of(b.e), &all[0], runengine.Ended{Output: []byte(`1`)})
			return err
		}, []string{"CANCELLED", "COMPLETED"}},
		"approve": {"WAITING/approval", func(b *bench, _ *runengine.ClaimedStep) error {
			_, err := run.Decide(b.ctx, b.e, runengine.ApprovalID(b.id, "ask", 1), run.Decision{Status: run.Approved}, run.By("ann"))
			if errors.Is(err, holdfast.ErrConflict) { // the run is cancelled
				return nil
			}
			b.tick()
			return err
		}, []string{"CANCELLED"}},
		"retry": {"FAILED/FAILED", func(b *bench, _ *runengine.ClaimedStep) error { return b.do(runengine.Retry) }, []string{"FAILED", "CANCELLED"}},
	}
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for name, race := range races {
			for order := range 12 {
				b := newBench(t, e, simple())
				if race.bring == "WAITING/approval" {
					to["WAITING/WAITING"](b)
					b.ok(run.Send(b.ctx, b.e, b.id, "news", 1, run.SignalID("n")))
					b.tick()
					b.is("WAITING", "ask", "WAITING")
				} else {
					to[race.bring](b)
				}
				l := b.live()
				acts := []func() error{func() error { return b.do(runengine.Cancel) }, func() error { return race.do(b, &l) }}
				errs := make([]error, 2)
				switch order % 3 {
				case 0:
					errs[0], errs[1] = acts[0](), acts[1]()
				case 1:
					errs[1], errs[0] = acts[1](), acts[0]()
				default:
					holdfasttest.Race(t, 2, func(i int) error { errs[i] = acts[i](); return nil })
				}
				b.cancelled(name, order, errs)
				if now := b.live(); errs[0] == nil && !slices.Contains(race.step, now.Step.Status) {
					t.Errorf("%s, order %d: got step %s", name, order, now.Step.Status)
				}
			}
		}
	})
}

// cancelled checks that a run was cancelled, or could not be any more.
func (b *bench) cancelled(name string, order int, errs []error) {
	b.t.Helper()
	for _, err := range errs {
		if err != nil && !errors.Is(err, holdfast.ErrInvalidTransition) && !errors.Is(err, holdfast.ErrLeaseLost) {
			b.t.Errorf("%s, order %d: %v", name, order, err)
		}
	}
	l := b.live()
	switch {
	case errs[0] == nil && l.Run.Status != "CANCELLED":
		b.t.Errorf("%s, order %d: cancel succeeded, but the run is %s at step %s, %s (%v)", name, order, l.Run.Status, l.Step.Name, l.Step.Status, errs)
	case name == "retry":
	case errs[0] != nil && l.Run.Status != "FAILED" && l.Run.Status != "COMPLETED":
		b.t.Errorf("%s, order %d: cancel failed (%v), and the run is %s", name, order, errs, l.Run.Status)
	}
}
