package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

const invoiceConfig = `{
  "workflow": "invoice", "owning_module": "billing", "initial_status": "open", "status_types": ["open", "closing", "closed"], "janitor": {},
  "steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_claim_state": ["closing", "open"], "successful_state": "closed", "action": "Close"}]
}`

// world is what is outside of the cases.
type world struct{ holdfasttest.World }

// mail sends a mail. The error of an opaque body reports that it did nothing, so one that does not know panics.
func (w *world) mail(ctx context.Context) string {
	if err := w.Call(ctx, "mail", ""); err != nil {
		panic(err)
	}
	return "sent"
}

// writeAtEnd appends an event in the transaction that completes a step.
func writeAtEnd(ctx context.Context, what string) error {
	info, _ := run.Of(ctx)
	return run.WriteTx(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		_, err := stream.Append(ctx, tx, fmt.Sprintf("did/%s/%d", what, info.Visit), stream.Any, stream.Event{Name: "did"})
		return err
	})
}

// everyStepType is a definition with every type of step, whose condition loops once.
func (w *world) everyStepType() *run.Definition {
	return run.Define("whole", "1",
		run.Task("remind", func(ctx context.Context, _ any) (int, error) {
			info, _ := run.Of(ctx)
			if err := run.Patch(ctx, map[string]any{"reminded": info.Visit}); err != nil {
				return 0, err
			}
			return info.Visit, writeAtEnd(ctx, "remind")
		}, run.Transactional()),
		run.If("enough", "state.reminded >= 2", "nap", "remind"),
		run.Wait("nap", time.Minute),
		run.Signal("paid", "payment"),
		run.Task("charge", func(ctx context.Context, in map[string]any) (string, error) {
			return holdfast.Effect(ctx, "charge", func(ctx context.Context, key string) (string, error) {
				return fmt.Sprint("ref-", in["cents"]), w.Call(ctx, "charge", key)
			})
		}, run.Journaled(), run.Input(map[string]string{"cents": "=steps.paid.output.cents"})),
		run.Approval("ask", "Close?", run.For("manager")),
		run.If("may", `steps.ask.output.decision == "approved"`, "", "end"),
		run.Fire("close", "invoice", "=input.id", "close", "system"),
		run.Task("mail", func(ctx context.Context, _ any) (string, error) {
			return w.mail(ctx), nil
		}, run.Opaque()),
	)
}

func (w *world) invoices() *lifecycle.Lifecycle[order] {
	return lifecycle.MustParse[order]([]byte(invoiceConfig)).RecoveredBy().Action("Close", func(ctx context.Context, a *lifecycle.Act[order]) error {
		a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
			_, err := stream.Append(ctx, tx, "closed/"+a.Entity.ID, stream.Any, stream.Event{Name: "closed"})
			return err
		})
		return nil
	}, lifecycle.Transactional())
}

// person does what people do at the steps that wait for them.
func (w *world) person(ctx context.Context, e *holdfast.Engine, on holdfasttest.Waiting) (bool, error) {
	id, step, _ := strings.Cut(on.Subject, "/")
	switch on.Kind {
	case "uncertainStep":
		return true, w.resolve(ctx, e)
	case "waitingSignal":
		return true, run.Send(ctx, e, id, "payment", map[string]int{"cents": 700}, run.SignalID("s1"))
	case "pendingApproval":
		_, err := run.Decide(ctx, e, runengine.ApprovalID(id, step, 1), run.Decision{Status: run.Approved, Requester: "manager"}, run.By("ann"))
		if errors.Is(err, holdfast.ErrConflict) { // it was, and the answer was lost
			err = nil
		}
		return true, err
	}
	return false, nil
}

// resolve resolves effects as a person does who knows their outcomes.
func (w *world) resolve(ctx context.Context, e *holdfast.Engine) error {
	for u, err := range run.ListUncertain(ctx, e) {
		if err != nil {
			return err
		}
		var known []holdfast.Resolution
		for _, x := range u.Effects {
			if x.State == holdfast.EffectBegun {
				what := map[string]string{"charge": "charge", effects.Body: "mail"}[x.Name]
				k := holdfast.Resolution{Name: x.Name, Ordinal: x.Ordinal, State: holdfast.EffectState(effects.StateOf(w.Count(ctx, what) > 0))}
				if k.State == holdfast.EffectDone {
					k.Result = []byte(`"known"`)
				}
				known = append(known, k)
			}
		}
		if _, err := run.Resolve(ctx, e, u.Operation, known, run.By("ann")); err != nil && !errors.Is(err, holdfast.ErrConflict) { // the answer was lost, and it is resolved
			return err
		}
	}
	return nil
}

// Verifies that a run with every type of step comes to its end whatever crashes at whatever
// point, that each step is completed once and what it writes is there once, and that each
// effect has happened once: where it was uncertain, after a person has said so.
func TestCrashOfARun(t *testing.T) {
	w := new(world)
	def := w.everyStepType()
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Pairs: true,
		Parts: func() []holdfast.Part { return []holdfast.Part{w.invoices(), def} },
		Do: func(ctx context.Context, e *holdfast.Engine) error {
			l, err := lifecycleengine.Named(ctx, engine.Of(e), "invoice")
			if err != nil {
				return err
			}
			if _, err := l.CreateAt(ctx, engine.Of(e), "i1", "", []byte(`{"id": "i1"}`), ""); err != nil && !errors.Is(err, holdfast.ErrConflict) {
				return err
			}
			_, _, err = def.Start(ctx, e, order{"i1", 500}, run.Key("k"))
			return err
		},
		Person: w.person,
		Check: func(ctx context.Context, e *holdfast.Engine) error {
			return w.check(ctx, e, def)
		},
	})
}

func (w *world) check(ctx context.Context, e *holdfast.Engine, def *run.Definition) error {
	r, created, err := def.Start(ctx, e, order{"i1", 500}, run.Key("k"))
	if err != nil || created || r.Status != "COMPLETED" {
		return fmt.Errorf("got run %s (%s), created again: %v, %w", r.Status, r.Error, created, err)
	}
	steps, err := holdfast.Collect(run.ListSteps(ctx, e, r.ID))
	if err != nil {
		return err
	}
	var names []string
	for _, s := range steps {
		names = append(names, fmt.Sprintf("%s/%d %s", s.Name, s.Visit, s.Status))
	}
	if got, want := strings.Join(names, ", "), "remind/1 COMPLETED, enough/1 COMPLETED, remind/2 COMPLETED, enough/2 COMPLETED, nap/1 COMPLETED, paid/1 COMPLETED, charge/1 COMPLETED, ask/1 COMPLETED, may/1 COMPLETED, close/1 COMPLETED, mail/1 COMPLETED"; got != want {
		return fmt.Errorf("got steps %s", got)
	}
	return w.once(ctx, e, []string{"did/remind/1", "did/remind/2", "closed/i1"}, []string{"charge", "mail"})
}

// Verifies the parts of a run one by one, and what people do to it, with two faults at a time
// too: they are few enough for that.
func TestCrashOfPartsOfARun(t *testing.T) {
	w := new(world)
	note := func(name string) run.Step {
		return run.Task(name, func(ctx context.Context, _ any) (string, error) { return name, writeAtEnd(ctx, name) }, run.Transactional())
	}
	parts := map[string]struct {
		def *run.Definition
		// after is done when the run has begun, as often as it takes.
		after func(ctx context.Context, e *holdfast.Engine, id string) error
		// ends are the statuses that the run may come to.
		ends []string
		did  []string // what is written once, if the run is completed
		does []string // what happens once
	}{
		"loop": {def: run.Define("loop", "1",
			run.Task("turn", func(ctx context.Context, _ any) (int, error) {
				info, _ := run.Of(ctx)
				return info.Visit, writeAtEnd(ctx, "turn")
			}, run.Transactional()),
			run.If("again", "steps.turn.output < 2", "turn", "end")), did: []string{"did/turn/1", "did/turn/2"}},
		"wait":   {def: run.Define("wait", "1", run.Wait("nap", time.Minute), note("x")), did: []string{"did/x/1"}},
		"signal": {def: run.Define("signal", "1", run.Signal("paid", "payment"), note("x")), did: []string{"did/x/1"}},
		"ask":    {def: run.Define("ask", "1", run.Approval("ask", "Yes?", run.For("manager")), note("x")), did: []string{"did/x/1"}},
		"effect": {def: run.Define("effect", "1", run.Task("charge", func(ctx context.Context, _ any) (string, error) {
			return holdfast.Effect(ctx, "charge", func(ctx context.Context, key string) (string, error) { return "ref", w.Call(ctx, "charge", key) })
		}, run.Journaled())), does: []string{"charge"}},
		"opaque": {def: run.Define("opaque", "1", run.Task("mail", func(ctx context.Context, _ any) (string, error) {
			return w.mail(ctx), nil
		}, run.Opaque())), does: []string{"mail"}},
		"cancel": {def: run.Define("cancel", "1", note("x"), run.Wait("nap", time.Minute), note("y")), ends: []string{"CANCELLED"},
			after: func(ctx context.Context, e *holdfast.Engine, id string) error {
				return command(ctx, e, id, runengine.Cancel, "CANCELLED")
			}},
		"pause": {def: run.Define("pause", "1", note("x"), note("y")), did: []string{"did/x/1", "did/y/1"},
			after: func(ctx context.Context, e *holdfast.Engine, id string) error {
				if err := command(ctx, e, id, runengine.Pause, "PAUSED", "RUNNING", "COMPLETED", "PENDING", "WAITING"); err != nil {
					return err
				}
				return command(ctx, e, id, runengine.Resume, "RUNNING", "COMPLETED", "PENDING", "WAITING")
			}},
		"retry": {def: run.Define("retry", "1", run.Task("try", func(ctx context.Context, _ any) (int, error) {
			if w.Count(ctx, "mended") == 0 {
				return 0, holdfast.NonRetryable(errors.New("not yet"))
			}
			return 1, writeAtEnd(ctx, "try")
		}, run.Transactional())), did: []string{"did/try/1"},
			after: func(ctx context.Context, e *holdfast.Engine, id string) error {
				if err := holdfasttest.SettleWith(ctx, e, w.person); err != nil {
					return err
				}
				if err := w.Call(ctx, "mended", ""); err != nil {
					return err
				}
				return command(ctx, e, id, runengine.Retry, "RUNNING", "COMPLETED", "WAITING")
			}},
	}
	for name, p := range parts {
		if p.ends == nil {
			p.ends = []string{"COMPLETED"}
		}
		holdfasttest.Crash(t, holdfasttest.Scenario{Name: name, Pairs: true,
			Parts: func() []holdfast.Part { return []holdfast.Part{p.def} },
			Do: func(ctx context.Context, e *holdfast.Engine) error {
				r, _, err := p.def.Start(ctx, e, order{"i1", 500}, run.Key("k"))
				if err == nil && p.after != nil {
					at, failed := engine.Of(e).Partition(ctx, store.Read)
					if _, err = run.WorkerOf(e).Step(ctx, at); failed != nil {
						err = failed
					}
					if err == nil {
						err = p.after(ctx, e, r.ID)
					}
				}
				if err != nil {
					return err
				}
				return holdfasttest.SettleWith(ctx, e, w.person)
			},
			Recover: func(context.Context, *holdfast.Engine) error { return nil }, // no run must end before it is commanded
			Check: func(ctx context.Context, e *holdfast.Engine) error {
				r, created, err := p.def.Start(ctx, e, order{"i1", 500}, run.Key("k"))
				if err != nil || created || !slices.Contains(p.ends, string(r.Status)) {
					return fmt.Errorf("got run %s (%s), created again: %v, %w", r.Status, r.Error, created, err)
				}
				return w.once(ctx, e, p.did, p.does)
			}})
	}
}

// once checks that something was written, and something has happened, once.
func (w *world) once(ctx context.Context, e *holdfast.Engine, did, does []string) error {
	for _, name := range did {
		all, err := holdfast.Collect(stream.Read(ctx, e, name, 0))
		if err != nil || len(all) != 1 {
			return fmt.Errorf("%s has %d events, want 1: %w", name, len(all), err)
		}
	}
	for _, what := range does {
		if n := w.Count(ctx, what); n != 1 {
			return fmt.Errorf("%s happened %d times, want 1", what, n)
		}
	}
	return nil
}

// command does a command, unless the run is past it: then it is in one of some statuses.
func command(ctx context.Context, e *holdfast.Engine, id, name string, past ...string) error {
	r, err := runengine.LocalOf(engine.Of(e)).Executor.Command(ctx, engine.Of(e), id, runengine.Command{Name: name})
	if fault.CodeOf(err) == fault.InvalidTransition {
		if r, err = runengine.Get(ctx, engine.Of(e), id); err == nil && !slices.Contains(past, r.Status) {
			err = fmt.Errorf("%s was refused, but the run is %s", name, r.Status)
		}
	}
	return err
}
