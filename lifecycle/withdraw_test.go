package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// begin journals that an effect of a task is about to be tried.
func (y *yard) begin(x remote.Task) {
	y.t.Helper()
	if _, err := workers(y.e).Effect(y.ctx, leaseOf(x), remote.Effect{Name: "charge"}); err != nil {
		y.t.Fatal(err)
	}
}

// pass lets time pass, and the janitor go round.
func (y *yard) pass(d time.Duration) {
	y.t.Helper()
	holdfasttest.Advance(y.t, y.e, d)
	engine.Of(y.e).Round(y.ctx)
}

// TestNoWorkerComes verifies that an operation waits for a worker only up to the timeout of its step. It is
// then released or, if an effect was begun, waits for a person; a later caller gets that outcome.
func TestNoWorkerComes(t *testing.T) {
	eachYard(t, "journaled", "hold", func(y *yard) {
		op := y.fire("do")
		y.pass(14 * time.Minute)
		y.is("doing due")
		y.pass(2 * time.Minute)
		y.is("new")
		if f, err := y.l.OutcomeOf(y.ctx, engine.Of(y.e), "j", op); err != nil || f.Outcome != "released" || f.Message != "no worker took the operation within 15m0s" {
			y.t.Errorf("got outcome %+v, %v, want released", f, err)
		}
		op = y.fire("do")
		y.begin(y.one("Do"))
		y.pass(2 * time.Minute) // its worker has died
		y.is("doing due")
		y.pass(16 * time.Minute)
		y.is("doing uncertain")
		if all := y.take("Do"); len(all) != 0 {
			y.t.Errorf("claimed %+v, want nothing", all)
		}
		known := []holdfast.Resolution{{Name: "charge", State: holdfast.EffectDone, Result: []byte(`1`)}}
		if _, err := lifecycle.Resolve(y.ctx, y.e, op, known, lifecycle.EndWith(lifecycle.Success), lifecycle.By("mia")); err != nil {
			y.t.Error(err)
		}
		y.is("done")
	})
}

// TestWithdraw verifies that a due operation can be withdrawn: the entity is reverted, no worker gets the
// operation, and its caller gets the outcome; that an operation with an effect that is unknown or has
// happened waits for a person instead; and that a leased or uncertain operation is refused.
func TestWithdraw(t *testing.T) {
	eachYard(t, "journaled", "hold", func(y *yard) {
		op := y.fire("do")
		if o, err := lifecycle.Withdraw(y.ctx, y.e, op, "no such worker", lifecycle.By("mia")); err != nil || o != nil {
			y.t.Fatalf("withdraw returned %+v, %v, want no operation", o, err)
		}
		y.is("new")
		if f, err := y.l.OutcomeOf(y.ctx, engine.Of(y.e), "j", op); err != nil || f.Outcome != "released" || f.Message != "no such worker" {
			y.t.Errorf("got outcome %+v, %v, want released", f, err)
		}
		if _, err := lifecycle.Withdraw(y.ctx, y.e, op, "", lifecycle.By("mia")); fault.CodeOf(err) != fault.NotFound {
			y.t.Errorf("second withdraw: got %v, want NOT_FOUND", err)
		}
		if all := y.take("Do"); len(all) != 0 {
			y.t.Errorf("claimed %+v, want nothing", all)
		}

		op = y.fire("do")
		x := y.one("Do")
		if _, err := lifecycle.Withdraw(y.ctx, y.e, op, "", lifecycle.By("mia")); fault.CodeOf(err) != fault.Conflict {
			y.t.Errorf("withdraw of a held operation: got %v, want CONFLICT", err)
		}
		y.begin(x)
		y.pass(2 * time.Minute)
		y.is("doing due")
		o, err := lifecycle.Withdraw(y.ctx, y.e, op, "", lifecycle.By("mia"))
		if err != nil || o == nil || o.Phase != "uncertain" {
			y.t.Fatalf("withdraw after a begun effect returned %+v, %v, want an uncertain operation", o, err)
		}
		if _, err := lifecycle.Withdraw(y.ctx, y.e, op, "", lifecycle.By("mia")); fault.CodeOf(err) != fault.Conflict {
			y.t.Errorf("withdraw of an uncertain operation: got %v, want CONFLICT", err)
		}
		if _, err := workers(y.e).Complete(y.ctx, leaseOf(x), remote.Result{}); fault.CodeOf(err) != fault.LeaseLost {
			y.t.Errorf("the late worker got %v, want LEASE_LOST", err)
		}
		if _, err := lifecycle.Resolve(y.ctx, y.e, op, []holdfast.Resolution{{Name: "charge", State: holdfast.EffectNotDone}}, lifecycle.EndWith(lifecycle.Failure), lifecycle.By("mia")); err != nil {
			y.t.Error(err)
		}
		y.is("new")
	})
}

// TestWithdrawRacesAWorker verifies that if a person withdraws an operation while a worker claims it, one
// wins and the other gets an error.
func TestWithdrawRacesAWorker(t *testing.T) {
	eachYard(t, "journaled", "hold", func(y *yard) {
		for round := range 8 {
			op := y.fire("do")
			var taken []remote.Task
			_, lost := holdfasttest.Race(y.t, 2, func(i int) (err error) {
				if i == 0 {
					taken, err = takeTasks(y.ctx, y.e, remote.Claim{Worker: "w1", Handlers: []string{"Do"}, Lease: time.Minute}, 1)
					return err
				}
				_, err = lifecycle.Withdraw(y.ctx, y.e, op, "", lifecycle.By("mia"))
				return err
			})
			if (len(taken) == 1) != (len(lost) == 1) || len(lost) == 1 && fault.CodeOf(lost[0]) != fault.Conflict {
				y.t.Fatalf("round %d: a worker claimed %d, and withdraw returned %v", round, len(taken), lost)
			}
			if len(taken) == 0 {
				y.is("new")
				continue
			}
			if _, err := workers(y.e).Fail(y.ctx, leaseOf(taken[0]), remote.Failure{Message: "no", Final: true}); err != nil {
				y.t.Fatal(err)
			}
			y.is("new")
		}
	})
}

// TestCrashOfAWithdrawal verifies, at every point and for every fault, that a withdrawn operation ends once
// and that its entity returns to its previous status.
func TestCrashOfAWithdrawal(t *testing.T) {
	far := newRemoteHandlers()
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Parts: func() []holdfast.Part { return []holdfast.Part{lifecycle.Published(far.call)} },
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			l, err := lifecycleengine.Named(ctx, engine.Of(hf), "job")
			if fault.CodeOf(err) == fault.NotFound {
				if err := declareWorkers(ctx, hf, "hold", "journaled", "Do", "May"); err != nil {
					return err
				}
				if _, err := lifecycleengine.PutConfig(ctx, engine.Of(hf), "job", []byte(jobs), false); err != nil {
					return err
				}
				l, err = lifecycleengine.Named(ctx, engine.Of(hf), "job")
			}
			if err != nil {
				return err
			}
			e, err := l.Get(ctx, engine.Of(hf), "j")
			if fault.CodeOf(err) == fault.NotFound {
				e, err = l.CreateAt(ctx, engine.Of(hf), "j", "", []byte(`{}`), "me")
			}
			if err == nil && e.Version == 0 {
				if _, err = l.Fire(ctx, engine.Of(hf), "j", "do", "admin", lifecycleengine.FireOptions{}); fault.CodeOf(err) == fault.ActionFailed {
					err = nil
				}
				if err == nil {
					e, err = l.Get(ctx, engine.Of(hf), "j")
				}
			}
			if err != nil || e.Claimed == nil {
				return err
			}
			if e.Claimed.Phase == "held" { // the one who fired it has died
				holdfasttest.Advance(t, hf, time.Hour)
				if err := lifecycleengine.Sweep(ctx, engine.Of(hf)); err != nil {
					return err
				}
				return errors.New("claim was released, read again")
			}
			_, err = lifecycle.Withdraw(ctx, hf, e.Claimed.ID, "", lifecycle.By("mia"))
			return err
		},
		Accepts: []error{holdfast.ErrNotFound},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			l, err := lifecycleengine.Named(ctx, engine.Of(hf), "job")
			if err != nil {
				return err
			}
			e, err := l.Get(ctx, engine.Of(hf), "j")
			if err == nil && (e.Status != "new" || e.Claimed != nil || e.Version > 4) {
				err = fmt.Errorf("got %+v", e)
			}
			return err
		},
	})
}
