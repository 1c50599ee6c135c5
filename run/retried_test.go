package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/run"
)

// wantNoRetry checks that a retry is refused with a reason, and changes nothing.
func (b *bench) wantNoRetry(reason string) {
	b.t.Helper()
	before := b.live()
	if _, err := run.Retry(b.ctx, b.e, b.id); !errors.Is(err, holdfast.ErrInvalidTransition) || !strings.Contains(err.Error(), reason) {
		b.t.Errorf("retry returned %v, want ErrInvalidTransition because %s", err, reason)
	}
	if now := b.live(); now.Run.Status != runengine.Failed || now.Run.Version != before.Run.Version || now.Run.Error != before.Run.Error {
		b.t.Errorf("after the refused retry the run is %s at version %d (%s), want FAILED at version %d", now.Run.Status, now.Run.Version, now.Run.Error, before.Run.Version)
	}
}

// TestARetryThatCannotHelp verifies that the retry of a run is refused if the run would fail again at
// once: at its limit of steps, and at an expression that fails. The last step within the limit can be
// retried.
func TestARetryThatCannotHelp(t *testing.T) {
	loop := run.Define("loop", "1", run.Remote("a", "w", run.Idempotent()), run.If("again", "input.cents > 0", "a", "end"))
	wrong := run.Define("wrong", "1", run.Remote("a", "w", run.Idempotent()), run.If("b", "steps.a.output.no.such > 1", "a", "end"))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, loop)
		b.ok(e.Update(b.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			_, err := storetest.Exec(ctx, tx, `UPDATE holdfast_run SET memo = $1`, `{"n":9998,"visits":{"a":1}}`)
			return err
		}))
		b.complete(b.take()) // step 9,999 is the condition, and step 10,000 the task
		_, err := b.executor().Fail(b.ctx, engine.Of(e), b.take(), runengine.Failure{Message: "no", Final: true})
		b.ok(err)
		b.ok(b.do(runengine.Retry))
		b.complete(b.take())
		b.wantNoRetry("limit of 10000 steps: start a new run")

		b = newBench(t, e, wrong)
		b.complete(b.take())
		b.wantNoRetry("a number has no members")
	})
}

// TestADecisionNeedsAnActor verifies that a decision without an actor is refused with an error that
// says how to set one.
func TestADecisionNeedsAnActor(t *testing.T) {
	def := run.Define("asks", "1", run.Approval("ask", "?"))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, def)
		asked, err := holdfast.Collect(run.ListApprovals(b.ctx, e, run.ApprovalFilter{Run: b.id}))
		b.ok(err)
		if _, err := run.Decide(b.ctx, e, asked[0].ID, run.Decision{Status: run.Approved}); fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), "run.By") {
			t.Errorf("got %v, want a validation error that names run.By", err)
		}
		a, err := run.Decide(b.ctx, e, asked[0].ID, run.Decision{Status: run.Approved}, run.By("ann"))
		b.ok(err)
		if a.Status != run.Approved {
			t.Errorf("got approval %+v, want it approved", a)
		}
	})
}

// TestAnApprovalWithoutATimeout verifies that an approval request without a timeout has no time at which it expires, and that one that
// does not exist is ErrNotFound.
func TestAnApprovalWithoutATimeout(t *testing.T) {
	def := run.Define("asks", "1", run.Approval("ask", "?"))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, def)
		a, err := run.GetApproval(b.ctx, e, runengine.ApprovalID(b.id, "ask", 1))
		if err != nil || a.Status != run.AwaitingDecision || !a.ExpiresAt.IsZero() || !a.DecidedAt.IsZero() {
			t.Errorf("got %+v, %v", a, err)
		}
		for _, id := range []string{"", "ask", runengine.ApprovalID(b.id, "ask", 2)} {
			if a, err := run.GetApproval(b.ctx, e, id); !errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("approval %q: got %+v, %v, want ErrNotFound", id, a, err)
			}
		}
	})
}

// TestAVisitHasWhatHappenedToIt verifies that a visit counts failures, crashes and lost hand-outs separately, and has its handler and the
// time when it is due.
func TestAVisitHasWhatHappenedToIt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, simple())
		want := func(when string, failures, crashes, lost int, due bool) {
			t.Helper()
			all, err := holdfast.Collect(run.ListSteps(b.ctx, e, b.id))
			b.ok(err)
			v := all[0]
			if v.Handler != "w" || v.Failures != failures || v.Crashes != crashes || v.LostHandOuts != lost || v.DueAt.IsZero() == due {
				t.Errorf("%s: got %+v, want %d failures, %d crashes, %d lost hand-outs, due: %v", when, v, failures, crashes, lost, due)
			}
		}
		want("new", 0, 0, 0, true)
		b.take()
		want("leased", 0, 0, 0, false)
		holdfasttest.Advance(t, e, 2*time.Minute)
		b.expire()
		want("lost", 0, 0, 1, true)
		b.die()
		want("crashed", 0, 1, 0, true)
		_, err := b.executor().Fail(b.ctx, engine.Of(e), b.take(), runengine.Failure{Message: "no"})
		b.ok(err)
		want("failed", 1, 1, 0, true)
		holdfasttest.Advance(t, e, time.Minute)
		b.complete(b.take())
		want("completed", 1, 1, 0, false)
	})
}

// TestWhatIsReadCanBeEncoded verifies that a run, its visits and its approval requests can be encoded as
// JSON while they have neither output nor content, and that a start returns the stored time of creation,
// also in a transaction.
func TestWhatIsReadCanBeEncoded(t *testing.T) {
	def := run.Define("asks", "1", run.Approval("ask", "?"))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		start := func(d holdfast.Doer) (run.Run, error) {
			r, _, err := def.Start(t.Context(), d, nil)
			return r, err
		}
		for name, start := range map[string]func() (run.Run, error){
			"engine": func() (run.Run, error) { return start(e) },
			"tx": func() (r run.Run, err error) {
				err = e.Update(t.Context(), func(_ context.Context, tx holdfast.Tx) error { r, err = start(tx); return err })
				return r, err
			},
		} {
			started, err := start()
			if err != nil {
				t.Fatal(err)
			}
			r, err := run.Get(t.Context(), e, started.ID)
			visits, failed := holdfast.Collect(run.ListSteps(t.Context(), e, r.ID))
			asked, more := holdfast.Collect(run.ListApprovals(t.Context(), e, run.ApprovalFilter{Run: r.ID}))
			if err := errors.Join(err, failed, more); err != nil || len(visits) != 1 || len(asked) != 1 {
				t.Fatalf("%s: %d visits, %d approval requests, %v, want one each", name, len(visits), len(asked), err)
			}
			for _, v := range []any{started, r, visits[0], asked[0]} {
				if _, err := json.Marshal(v); err != nil {
					t.Errorf("%s: %T: %v", name, v, err)
				}
			}
			if r.CreatedAt.IsZero() || !started.CreatedAt.Equal(r.CreatedAt) {
				t.Errorf("%s: created at %v by Start and at %v as stored", name, started.CreatedAt, r.CreatedAt)
			}
		}
	})
}
