package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// leases has a step that an admin claims and the system, which is serialized, does not;
// serialized steps without a claim, one of them back to its own status; and steps
// with neither, with code and without.
const leases = `
workflow: invoice
owning_module: billing
status_types: [open, paying, closing, closed, failed]
initial_status: open
janitor: {stuck_after: 5m}
steps:
- step_id: 10
  step_key: pay
  status: open
  successful_claim_state: {admin: [paying, open]}
  successful_state: {admin: closed, system: closed}
  action: Act
  serialized: [system]
- {step_id: 20, step_key: close, status: open, successful_claim_state: {admin: [closing, open]}, successful_state: {admin: closed}, action: {admin: Act}}
- {step_id: 30, step_key: void, status: open, successful_state: {system: closed}, action: {system: Act}, serialized: [system]}
- {step_id: 40, step_key: touch, status: open, successful_state: {system: open}, action: {system: Act}, serialized: [system]}
- {step_id: 50, step_key: note, status: open, successful_state: {admin: closed}, action: {admin: Act}}
- {step_id: 55, step_key: drop, status: open, successful_state: {system: closed}, failed_state: {system: failed}, action: {system: Act}, serialized: [system]}
- {step_id: 60, step_key: skip, status: open, successful_state: {admin: closed}}
`

// fireAs fires a step for a requester.
func (w *world) fireAs(as, id, step string, o ...lifecycle.FireOption) error {
	_, err := w.l.Fire(context.Background(), w.e, id, step, as, o...)
	return err
}

// Verifies that, of claiming and serialized callers that fire one or two steps at once, one runs its body,
// which ends only when all others have been refused because an operation is in progress.
func TestSerializedCallersAndClaimingOnes(t *testing.T) {
	everywhere(t, leases, func(t *testing.T, w *world) {
		const callers = 8
		for _, id := range ids("r", testlevel.Pick(20, 100, 1000)) {
			w.create(id)
			var begun, answered atomic.Int32
			over := make(chan struct{})
			end := sync.OnceFunc(func() { close(over) })
			w.act(id, func(context.Context, *lifecycle.Act[bill]) error {
				if begun.Add(1) > 1 { // two bodies: nobody waits for the others any more
					end()
				}
				<-over
				return nil
			})
			won, lost := holdfasttest.Race(t, callers, func(i int) error {
				err := w.fireAs([]string{"admin", "system", "admin", "system"}[i%4], id, []string{"pay", "pay", "close", "void"}[i%4])
				if answered.Add(1) == callers-1 {
					end()
				}
				return err
			})
			for _, err := range lost {
				testkit.WantCode(t, err, fault.ClaimFailed)
				if f := factsOf(err); f["holder"] == nil || f["since"] == nil || f["until"] == nil {
					t.Errorf("%s: got error fields %v, want holder, since and until", id, f)
				}
			}
			if n := begun.Load(); n != 1 || won != 1 {
				t.Fatalf("%s: %d bodies ran and %d callers won, want 1 and 1", id, n, won)
			}
			w.free(id, "closed")
		}
	})
}

// Verifies that while the body of a serialized requester runs, the entity keeps its status and shows the
// operation, and all other callers are refused before any code runs; that a wrong version is reported as
// such; and that the entity is free again, however the body ends.
func TestALeaseExcludesAllOthers(t *testing.T) {
	everywhere(t, leases, func(t *testing.T, w *world) {
		for _, end := range []error{nil, errOwn, holdfast.Invalid("no")} {
			for _, step := range []string{"pay", "void"} {
				id := step + string(fault.CodeOf(end))
				w.create(id)
				goOn, done := w.heldBy("system", id, step, nil)
				got := w.get(id)
				if c := got.Claimed; got.Status != "open" || got.Version != 1 || c == nil || c.Requester != "system" || c.Status != "open" || c.Phase != "held" {
					t.Errorf("%s: got %+v", id, got)
				}
				for _, other := range []struct{ as, step string }{{"admin", "pay"}, {"system", "pay"}, {"admin", "close"}, {"system", "void"}, {"admin", "note"}, {"admin", "skip"}} {
					for _, o := range [][]lifecycle.FireOption{nil, {lifecycle.ExpectVersion(1)}} {
						err := w.fireAs(other.as, id, other.step, o...)
						testkit.WantCode(t, err, fault.ClaimFailed)
						if f := factsOf(err); f["operation"] != got.Claimed.ID || f["until"] == nil {
							t.Errorf("requester %v got error fields %v", other, f)
						}
					}
				}
				if _, err := w.l.Claim(context.Background(), w.e, id, "pay", "admin"); !errors.Is(err, holdfast.ErrClaimFailed) {
					t.Errorf("Claim: got %v, want ErrClaimFailed", err)
				}
				if n := w.called(id); n != 1 {
					t.Errorf("%d bodies ran, want 1", n)
				}
				if r, err := w.e.Check(t.Context()); err != nil || !r.Clean() || r.OverdueLeases != 0 {
					t.Errorf("%v, %s", err, r)
				}
				goOn <- end
				err := <-done
				if !errors.Is(err, end) {
					t.Errorf("%v", err)
				}
				if end == nil {
					w.happened(id, "closed", "created", "claimed", "settled/"+step)
					continue
				}
				w.happened(id, "open", "created", "claimed", "released")
				if _, err := w.fire(id, "pay"); err != nil {
					t.Errorf("after that: %v", err)
				}
			}
		}
	})
}

// Verifies that a serialized requester's step is refused while another caller holds a claim, and that a
// serialized requester cannot take a manual claim.
func TestAClaimExcludesASerializedRequester(t *testing.T) {
	everywhere(t, leases, func(t *testing.T, w *world) {
		w.create("i")
		goOn, done := w.held("i", "pay", nil)
		testkit.WantCode(t, w.fireAs("system", "i", "pay"), fault.ClaimFailed)
		testkit.WantCode(t, w.fireAs("system", "i", "void"), fault.ClaimFailed)
		goOn <- errOwn
		if err := <-done; !errors.Is(err, errOwn) {
			t.Error(err)
		}
		if _, err := w.l.Claim(context.Background(), w.e, "i", "pay", "system"); !errors.Is(err, fault.Of(fault.Validation)) {
			t.Errorf("Claim: got %v, want a validation error", err)
		}
		if err := w.fireAs("system", "i", "void"); err != nil {
			t.Error(err)
		}
		w.happened("i", "closed", "created", "claimed", "released", "claimed", "settled/void")
		if n := w.called("i"); n != 2 {
			t.Errorf("%d bodies ran, want 2", n)
		}
	})
}

// Verifies that a failure under a lease leads to failed_state, as under a claim.
func TestAFailureUnderALease(t *testing.T) {
	everywhere(t, leases, func(t *testing.T, w *world) {
		w.create("i")
		w.act("i", func(context.Context, *lifecycle.Act[bill]) error { return errOwn })
		if err := w.fireAs("system", "i", "drop"); !errors.Is(err, errOwn) {
			t.Error(err)
		}
		w.happened("i", "failed", "created", "claimed", "failed/drop")
	})
}

// Verifies that the next caller after an expired lease ends the lease first, as the janitor would, without
// waiting: a caller that fires another step, claims manually, or moves the entity in one statement.
func TestWhoComesAfterAnExpiredLeaseEndsIt(t *testing.T) {
	everywhere(t, leases, func(t *testing.T, w *world) {
		w.makeOut()
		for i, next := range map[string]func(id string) error{
			"fires":  func(id string) error { return w.fireAs("admin", id, "pay") },
			"skips":  func(id string) error { return w.fireAs("admin", id, "skip") },
			"claims": func(id string) error { _, err := w.l.Claim(t.Context(), w.e, id, "pay", "admin"); return err },
		} {
			w.create(i)
			goOn, done := w.heldBy("system", i, "pay", func(context.Context, *lifecycle.Act[bill]) error { return nil })
			testkit.WantCode(t, next(i), fault.ClaimFailed)
			w.advance(time.Hour)
			if err := next(i); err != nil {
				t.Errorf("next caller, which %s: %v", i, err)
			}
			goOn <- nil
			if err := <-done; !errors.Is(err, holdfast.ErrLeaseLost) {
				t.Errorf("the old holder got %v, want ErrLeaseLost", err)
			}
		}
	})
}

// Verifies that the janitor releases an expired lease, which counts as overdue until then, and leaves the
// status unchanged; and that a late holder writes and releases nothing, and does not affect the next holder's
// claim.
func TestALeaseThatRanOut(t *testing.T) {
	for _, how := range []string{"success", "failure"} {
		t.Run(how, func(t *testing.T) {
			everywhere(t, leases, func(t *testing.T, w *world) {
				w.makeOut()
				w.create("i")
				goOn, done := w.heldBy("system", "i", "pay", func(_ context.Context, a *lifecycle.Act[bill]) error {
					w.write(a, "old")
					return nil
				})
				w.advance(time.Hour)
				if r, err := w.e.Check(t.Context()); err != nil || r.OverdueLeases != 1 {
					t.Errorf("%v, %s", err, r)
				}
				w.round()
				w.happened("i", "open", "created", "claimed", "recovered")
				next, nextDone := w.held("i", "pay", func(_ context.Context, a *lifecycle.Act[bill]) error {
					w.write(a, "new")
					return nil
				})
				goOn <- map[string]error{"failure": errOwn}[how]
				if err := <-done; !errors.Is(err, holdfast.ErrLeaseLost) {
					t.Errorf("the old holder got %v, want ErrLeaseLost", err)
				}
				if got := w.get("i"); got.Status != "paying" || got.Claimed == nil || got.Claimed.Epoch != 2 {
					t.Errorf("the new claim is %+v", got)
				}
				next <- nil
				if err := <-nextDone; err != nil {
					t.Errorf("the new holder got %v", err)
				}
				w.happened("i", "closed", "created", "claimed", "recovered", "claimed", "settled/pay")
				w.written("i", "new")
			})
		})
	}
}

// Verifies that the lease of a long body is renewed while it runs.
func TestALeaseIsRenewed(t *testing.T) {
	each(t, leases, func(t *testing.T, w *world) {
		w.create("i")
		w.act("i", func(ctx context.Context, a *lifecycle.Act[bill]) error {
			testkit.Eventually(t, "the lease is extended", func() bool {
				w.round()
				c := w.get("i").Claimed
				return c == nil || c.Until.After(a.Entity.Claimed.Until)
			})
			return ctx.Err()
		})
		if err := w.fireAs("system", "i", "pay", lifecycle.Lease(3*time.Second)); err != nil { // long enough for a busy machine to renew
			t.Error(err)
		}
		w.happened("i", "closed", "created", "claimed", "settled/pay")
	})
}

// Verifies that an effect that was begun under a lease is not forgotten: the entity keeps
// its status, and is closed to all others, until a person has said what happened; then
// it is resumed with that, or ends with the outcome that is named.
func TestAnEffectUnderALease(t *testing.T) {
	everywhere(t, leases, func(t *testing.T, w *world) {
		ctx := context.Background()
		for _, end := range []lifecycle.Outcome{"", lifecycle.Success, lifecycle.Failure} {
			id := "i" + string(end)
			w.create(id)
			w.act(id, func(ctx context.Context, _ *lifecycle.Act[bill]) error {
				_, err := holdfast.Effect(ctx, "charge", func(context.Context, string) (int, error) { return 0, errOwn })
				return holdfast.NonRetryable(err)
			})
			err := w.fireAs("system", id, "pay")
			if f := factsOf(err); !errors.Is(err, errOwn) || f["outcome"] != "uncertain" || f["status"] != "open" {
				t.Fatalf("%v: %v", err, f)
			}
			testkit.WantCode(t, w.fireAs("admin", id, "pay"), fault.ClaimFailed)
			testkit.WantCode(t, w.fireAs("admin", id, "skip"), fault.ClaimFailed)
			all, err := holdfast.Collect(lifecycle.ListOperations(ctx, w.e, lifecycle.OperationFilter{Phase: lifecycle.Uncertain}))
			if err != nil || len(all) != 1 || all[0].Status != "open" {
				t.Fatalf("%+v, %v", all, err)
			}
			p, err := lifecycleengine.Find(ctx, engine.Of(w.e), all[0].ID)
			if err != nil || lifecycleengine.HandlerOf(ctx, engine.Of(w.e), p.Operation) != "Act" {
				t.Fatalf("%+v, %v", p, err)
			}
			known := []holdfast.Resolution{{Name: "charge", State: holdfast.EffectDone, Result: []byte("7")}}
			if end == lifecycle.Failure {
				known[0].State, known[0].Result = holdfast.EffectNotDone, nil
			}
			if _, err := lifecycle.Resolve(ctx, w.e, all[0].ID, known, append(ending(end), lifecycle.By("mia"))...); err != nil {
				t.Fatal(err)
			}
			status := map[lifecycle.Outcome]string{"": "closed", lifecycle.Success: "closed", lifecycle.Failure: "open"}[end]
			if end == "" {
				stop := w.run(w.e)
				testkit.Eventually(t, "the operation is resumed", func() bool { return w.get(id).Claimed == nil })
				stop()
			}
			w.free(id, status)
		}
	})
}

// Verifies that in a user table a lease increments the row's version as a claim does, even if the step leads
// back to the status where it starts; and that a status that the user sets in the meantime makes the settle
// fail and stays.
func TestALeaseOnARowOfTheUsersOwn(t *testing.T) {
	eachOwn(t, leases, func(t *testing.T, w *world) {
		w.create("i", "j")
		if err := w.fireAs("system", "i", "touch"); err != nil {
			t.Error(err)
		}
		w.wantRow("i", "open 2 0")
		for _, step := range []string{"touch", "pay"} {
			goOn, done := w.heldBy("system", "j", step, nil)
			w.exec(`UPDATE bills SET state = 'closed' WHERE nr = 'j'`)
			goOn <- nil
			if err := <-done; !errors.Is(err, holdfast.ErrConcurrency) {
				t.Errorf("%s: got %v, want ErrConcurrency", step, err)
			}
			w.free("j", "closed")
			w.exec(`UPDATE bills SET state = 'open' WHERE nr = 'j'`)
		}
	})
}

// Verifies that no lease is taken if no step of the config is claimed, because there is no claim to exclude
// and perhaps no janitor.
func TestNoLeaseWithoutClaims(t *testing.T) {
	config := leases[:strings.Index(leases, "janitor")] + `steps:
- {step_id: 30, step_key: void, status: open, successful_state: {system: closed}, action: {system: Act}, serialized: [system]}
`
	each(t, strings.Replace(config, "paying, closing, closed, failed", "closed", 1), func(t *testing.T, w *world) {
		w.create("i")
		if err := w.fireAs("system", "i", "void"); err != nil {
			t.Error(err)
		}
		w.happened("i", "closed", "created", "settled/void")
	})
}

// Verifies that on PostgreSQL calls that wait for the row of an entity are decided by what
// those before them made of it, whichever of them takes a lease.
func TestALeaseBehindOthersThatWait(t *testing.T) {
	t.Parallel()
	type call struct{ as, step string }
	lease, claim, plain := call{"system", "pay"}, call{"admin", "pay"}, call{"admin", "skip"}
	for name, calls := range map[string][]call{
		"claim behind a lease":        {lease, claim},
		"lease behind a claim":        {claim, lease},
		"lease behind a lease":        {lease, lease},
		"plain step behind a lease":   {lease, plain},
		"plain step between them all": {claim, plain, lease},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := holdfasttest.PostgreSQL(t)
			w := newWorld(t, url, leases)
			w.create("i")
			over := make(chan struct{})
			w.act("i", func(context.Context, *lifecycle.Act[bill]) error { <-over; return nil })
			var refused sync.WaitGroup
			refused.Add(len(calls) - 1)
			go func() { refused.Wait(); close(over) }()
			var all []func() error
			for i, c := range calls {
				all = append(all, func() error {
					err := w.fireAs(c.as, "i", c.step)
					if i > 0 {
						refused.Done()
					}
					return err
				})
			}
			for i, err := range storetest.Queue(t, url, `SELECT FROM holdfast.entity WHERE id = $1 FOR UPDATE`, []any{"i"}, nil, all...) {
				if i == 0 && err != nil || i > 0 && fault.CodeOf(err) != fault.ClaimFailed {
					t.Errorf("call %d: %v", i, err)
				}
			}
			w.happened("i", "closed", "created", "claimed", "settled/pay")
			if n := w.called("i"); n != 1 {
				t.Errorf("%d bodies ran, want 1", n)
			}
		})
	}
}

// Verifies that a handler elsewhere is called under the epoch of a lease; and that one
// which is declared anew as a worker's is handed the lease on, in the status as it is,
// ends it once, and keeps all others out meanwhile.
func TestAHandlerElsewhereUnderALease(t *testing.T) {
	const config = `{
  "workflow": "parcel", "owning_module": "shipping", "initial_status": "packed", "status_types": ["packed", "sending", "sent"], "janitor": {},
  "steps": [{"step_id": 1, "step_key": "send", "status": "packed", "successful_claim_state": {"admin": ["sending", "packed"]},
             "successful_state": {"admin": "sent", "system": "sent"}, "action": "Send", "serialized": ["system"]}]
}`
	eachPublished(t, func(t *testing.T, e *holdfast.Engine, far *remoteHandlers, _ func() *holdfast.Engine) {
		ctx := t.Context()
		declare(t, ctx, e, "transactional", "Send")
		put(t, ctx, e, config)
		far.set("Send", func(c lifecycleengine.RemoteCall) (lifecycleengine.RemoteAnswer, error) {
			if c.Epoch != 1 || c.Entity.Status != "packed" {
				t.Errorf("got call %+v", c)
			}
			return lifecycleengine.RemoteAnswer{}, nil
		})
		l := parcelsOf(t, ctx, e)
		for _, id := range []string{"a", "b"} {
			if _, err := l.CreateAt(ctx, engine.Of(e), id, "", []byte(`{}`), "me"); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := l.Fire(ctx, engine.Of(e), "a", "send", "system", lifecycleengine.FireOptions{}); err != nil || got.Status != "sent" {
			t.Errorf("%+v, %v", got, err)
		}
		err := e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			_, err := remotehandler.Put(ctx, store.TxOf(tx), remotehandler.Handler{Name: "Send", Kind: "worker", Safety: "opaque", OnUnknown: "hold"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		l = parcelsOf(t, ctx, e)
		_, err = l.Fire(ctx, engine.Of(e), "b", "send", "system", lifecycleengine.FireOptions{})
		if f := factsOf(err); f["outcome"] != "pending" || f["status"] != "packed" {
			t.Fatalf("%v", err)
		}
		_, err = l.Fire(ctx, engine.Of(e), "b", "send", "admin", lifecycleengine.FireOptions{})
		testkit.WantCode(t, err, fault.ClaimFailed)
		y := &yard{t, ctx, e, l}
		task := y.one("Send")
		if task.Entity.Status != "packed" || task.Requester != "system" {
			t.Errorf("%+v", task)
		}
		_, err = l.Fire(ctx, engine.Of(e), "b", "send", "admin", lifecycleengine.FireOptions{})
		testkit.WantCode(t, err, fault.ClaimFailed)
		for range 2 {
			if got, err := workers(e).Complete(ctx, leaseOf(task), remote.Result{}); err != nil || got.Status != "sent" {
				t.Errorf("%+v, %v", got, err)
			}
		}
	})
}
