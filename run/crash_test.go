package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/runs"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

const invoiceConfig = `{
  "workflow": "invoice", "owning_module": "billing", "initial_status": "open", "status_types": ["open", "closing", "closed"], "janitor": {},
  "steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_claim_state": ["closing", "open"], "successful_state": "closed", "action": "Close"}]
}`

// world is what is outside of the cases, each of which has a workspace of its own.
type world struct {
	mu    sync.Mutex
	calls map[string]int
}

func (w *world) call(ctx context.Context, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[store.WorkspaceOf(ctx)+"/"+what]++
}

func (w *world) called(ctx context.Context, what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[store.WorkspaceOf(ctx)+"/"+what]
}

// wrote has something written with the end of a step.
func wrote(ctx context.Context, what string) error {
	info, _ := run.Of(ctx)
	return run.Commit(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		_, err := stream.Append(ctx, tx, fmt.Sprintf("did/%s/%d", what, info.Visit), stream.Any, stream.Event{Name: "did"})
		return err
	})
}

// whole is a run with every type of step, whose condition loops once.
func (w *world) whole() *run.Definition {
	return run.Define("whole", "1",
		run.Task("remind", func(ctx context.Context, _ any) (int, error) {
			info, _ := run.Of(ctx)
			if err := run.Patch(ctx, map[string]any{"reminded": info.Visit}); err != nil {
				return 0, err
			}
			return int(info.Visit), wrote(ctx, "remind")
		}, run.Transactional()),
		run.If("enough", "state.reminded >= 2", "nap", "remind"),
		run.Wait("nap", time.Minute),
		run.Signal("paid", "payment", 0),
		run.Task("charge", func(ctx context.Context, in map[string]any) (string, error) {
			return holdfast.Effect(ctx, "charge", func(ctx context.Context, key string) (string, error) {
				w.call(ctx, "charge")
				return fmt.Sprint("ref-", in["cents"]), nil
			})
		}, run.Journaled(), run.Input(map[string]string{"cents": "=steps.paid.output.cents"})),
		run.Approval("ask", "Close?", 0, run.For("manager")),
		run.If("may", `steps.ask.output.decision == "approved"`, "", "end"),
		run.Fire("close", "invoice", "=input.id", "close", "system"),
		run.Task("mail", func(ctx context.Context, _ any) (string, error) {
			w.call(ctx, "mail")
			return "sent", nil
		}, run.Opaque()),
	)
}

func (w *world) invoices() *lifecycle.Lifecycle[order] {
	return lifecycle.MustParse[order]([]byte(invoiceConfig)).Covered().Action("Close", func(ctx context.Context, a *lifecycle.Act[order]) error {
		a.Commit(func(ctx context.Context, tx holdfast.Tx) error {
			_, err := stream.Append(ctx, tx, "closed/"+a.Entity.ID, stream.Any, stream.Event{Name: "closed"})
			return err
		})
		return nil
	}, lifecycle.Transactional())
}

// hand drives a run by hand, as the loops of a running program do.
type hand struct {
	w   *world
	ctx context.Context
	e   *holdfast.Engine
}

// drive takes a run to its end: it does what is due, and what people do at the steps that
// wait for them. Whatever is held was left by the dead.
func (h hand) drive(id string) error {
	at, err := h.e.Place(h.ctx, store.Read)
	if err != nil {
		return err
	}
	for range 100 {
		found, err := run.WorkerOf(h.e).Once(h.ctx, at)
		if err != nil {
			return err
		}
		l, err := runs.Load(h.ctx, h.e, id)
		if err != nil || runs.Over(l.Run.Status) {
			return err
		}
		if found {
			continue
		}
		if err := h.nudge(&l); err != nil {
			return err
		}
	}
	return errors.New("the run does not come to its end")
}

// nudge does what others do: people, and time.
func (h hand) nudge(l *runs.Live) error {
	switch {
	case l.Step.Uncertain:
		return h.resolve(l)
	case l.Step.Status == runs.Waiting && l.Step.Name == "paid":
		return run.Send(h.ctx, h.e, l.Run.ID, "payment", "s1", map[string]int{"cents": 700})
	case l.Step.Status == runs.Waiting && l.Step.Name == "ask":
		_, err := run.Decide(h.ctx, h.e, runs.ApprovalID(l.Run.ID, "ask", l.Step.Visit), run.Verdict{Decision: "approved", By: "ann", As: "manager"})
		if errors.Is(err, holdfast.ErrConflict) { // it was, and the answer was lost
			err = nil
		}
		return err
	}
	return h.wait()
}

// wait has all holds run out, and those freed who were held.
func (h hand) wait() error {
	if err := store.Shift(h.ctx, h.e, time.Hour); err != nil {
		return err
	}
	h.e.Round(h.ctx)
	return nil
}

// resolve is a person who knows what has happened.
func (h hand) resolve(l *runs.Live) error {
	var known []runs.Known
	journal, err := l.Journal(h.ctx, h.e)
	if err != nil {
		return err
	}
	for _, x := range journal {
		if x.State == effects.Begun {
			what := map[string]string{"charge": "charge", effects.Body: "mail"}[x.Name]
			k := runs.Known{Name: x.Name, Ordinal: x.Ordinal, Happened: h.w.called(h.ctx, what) > 0}
			if k.Happened {
				k.Result = []byte(`"known"`)
			}
			known = append(known, k)
		}
	}
	_, err = run.Desk(h.e).Resolve(h.ctx, h.e, l.Operation(), known, "")
	if fault.CodeOf(err) == fault.Conflict { // the answer was lost, and it is resolved
		err = nil
	}
	return err
}

// Verifies that a run with every type of step comes to its end whatever crashes at whatever
// point, that each step is completed once and what it writes is there once, and that each
// effect has happened once: where it was uncertain, after a person has said so.
func TestCrashOfARun(t *testing.T) {
	w := &world{calls: make(map[string]int)}
	def := w.whole()
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Pairs: os.Getenv("HOLDFAST_PAIRS") != "",
		Parts: func() []holdfast.Part { return []holdfast.Part{w.invoices(), run.Serve(def)} },
		Do: func(ctx context.Context, e *holdfast.Engine) error {
			l, err := lifecycle.Named(ctx, e, "invoice")
			if err != nil {
				return err
			}
			if _, err := l.Create(ctx, e, "i1", []byte(`{"id": "i1"}`)); err != nil && !errors.Is(err, holdfast.ErrConflict) {
				return err
			}
			r, _, err := def.Start(ctx, e, order{"i1", 500}, run.Key("k"))
			if err != nil {
				return err
			}
			return hand{w, ctx, e}.drive(r.ID)
		},
		Check: func(ctx context.Context, e *holdfast.Engine) error {
			return w.check(ctx, e, def)
		},
	})
}

func (w *world) check(ctx context.Context, e *holdfast.Engine, def *run.Definition) error {
	r, created, err := def.Start(ctx, e, order{"i1", 500}, run.Key("k"))
	if err != nil || created || r.Status != "COMPLETED" {
		return fmt.Errorf("the run is %s (%s), created again: %v, %w", r.Status, r.Error, created, err)
	}
	steps, err := run.Steps(ctx, e, r.ID)
	if err != nil {
		return err
	}
	var names []string
	for _, s := range steps {
		names = append(names, fmt.Sprintf("%s/%d %s", s.Name, s.Visit, s.Status))
	}
	if got, want := strings.Join(names, ", "), "remind/1 COMPLETED, enough/1 COMPLETED, remind/2 COMPLETED, enough/2 COMPLETED, nap/1 COMPLETED, paid/1 COMPLETED, charge/1 COMPLETED, ask/1 COMPLETED, may/1 COMPLETED, close/1 COMPLETED, mail/1 COMPLETED"; got != want {
		return fmt.Errorf("the steps are %s", got)
	}
	for _, name := range []string{"did/remind/1", "did/remind/2", "closed/i1"} {
		all, err := stream.Read(ctx, e, name, 0, 10)
		if err != nil || len(all) != 1 {
			return fmt.Errorf("%s has %d events, %w", name, len(all), err)
		}
	}
	for _, what := range []string{"charge", "mail"} {
		if n := w.called(ctx, what); n != 1 {
			return fmt.Errorf("%s happened %d times", what, n)
		}
	}
	return nil
}
