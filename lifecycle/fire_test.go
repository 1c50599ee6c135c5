package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

var errOwn = errors.New("the printer is on fire")

// ending is one way in which a step does not succeed.
type failing struct {
	name    string
	step    string // of the claimed ones; "" is close and try
	act     func(w *world) body
	may     body
	cancel  bool // the caller's context ends when the body runs
	panics  any
	is      error      // what the error is
	code    fault.Code // which code it has
	outcome string     // the outcome in the event
	fails   bool       // the action failed: failed_state applies
}

// wait is a body that waits until its context ends.
func wait(ctx context.Context, _ *lifecycle.Act[bill]) error {
	<-ctx.Done()
	return ctx.Err()
}

var failings = []failing{
	{name: "failure", act: bodyReturning(errOwn), is: errOwn, code: fault.ActionFailed, outcome: "failed", fails: true},
	{name: "invalid", act: bodyReturning(fmt.Errorf("so: %w", holdfast.Invalid("not today"))), is: holdfast.ErrActionInvalid, code: fault.ActionInvalid, outcome: "invalid"},
	{name: "panic", act: func(w *world) body {
		return func(_ context.Context, a *lifecycle.Act[bill]) error { w.write(a, "a panic"); panic(errOwn) }
	}, panics: errOwn, outcome: "panicked"},
	{name: "cancelled", act: func(*world) body { return wait }, cancel: true, is: context.Canceled, code: fault.ActionFailed, outcome: "cancelled"},
	{name: "handler timeout", step: "brief", act: func(*world) body { return wait }, is: context.DeadlineExceeded, code: fault.ActionFailed, outcome: "timeout"},
	{name: "step timeout", step: "hurry", act: func(*world) body { return wait }, is: holdfast.ErrActionFailed, code: fault.ActionFailed, outcome: "timeout"},
	{name: "step timeout before the action", step: "rush", act: func(*world) body { return wait }, is: holdfast.ErrActionFailed, code: fault.ActionFailed, outcome: "timeout"},
	{name: "validation fails", may: func(context.Context, *lifecycle.Act[bill]) error { return errOwn }, is: errOwn, code: fault.ActionFailed, outcome: "failed"},
	{name: "validation says invalid", may: func(context.Context, *lifecycle.Act[bill]) error { return holdfast.Invalid("no") },
		is: holdfast.ErrActionInvalid, code: fault.ActionInvalid, outcome: "invalid"},
	{name: "validation panics", may: func(context.Context, *lifecycle.Act[bill]) error { panic("boo") }, panics: "boo", outcome: "panicked"},
	{name: "commit fails", act: func(w *world) body {
		return func(_ context.Context, a *lifecycle.Act[bill]) error {
			w.write(a, "before")
			a.WriteTx(func(context.Context, holdfast.Tx) error { return errOwn })
			w.write(a, "after")
			return nil
		}
	}, is: errOwn, code: fault.ActionFailed, outcome: "failed", fails: true},
	{name: "commit panics", act: func(w *world) body {
		return func(_ context.Context, a *lifecycle.Act[bill]) error {
			w.write(a, "before")
			a.WriteTx(func(context.Context, holdfast.Tx) error { panic("ouch") })
			return nil
		}
	}, panics: "ouch", outcome: "panicked"},
	// The word of another thing is not the word of this claim.
	{name: "commit loses something else", act: func(w *world) body {
		return func(_ context.Context, a *lifecycle.Act[bill]) error {
			w.write(a, "before")
			a.WriteTx(func(context.Context, holdfast.Tx) error { return fmt.Errorf("elsewhere: %w", holdfast.ErrLeaseLost) })
			return nil
		}
	}, is: holdfast.ErrLeaseLost, code: fault.ActionFailed, outcome: "failed", fails: true},
	{name: "action loses something else", act: bodyReturning(holdfast.ErrLeaseLost), is: holdfast.ErrLeaseLost, code: fault.ActionFailed, outcome: "failed", fails: true},
}

// bodyReturning returns a body that adds a write and returns err.
func bodyReturning(err error) func(*world) body {
	return func(w *world) body {
		return func(_ context.Context, a *lifecycle.Act[bill]) error {
			w.write(a, "a failure")
			if !w.own { // there, its data is the user's affair
				if failed := a.Set(bill{666}); failed != nil {
					return failed
				}
			}
			return err
		}
	}
}

// firePanicking fires and returns what it panicked with.
func firePanicking(ctx context.Context, w *world, id, step string, o ...lifecycle.FireOption) (value any, err error) {
	defer func() { value = recover() }()
	_, err = w.l.Fire(ctx, w.e, id, step, "admin", o...)
	return nil, err
}

// Verifies that a claimed step that does not succeed, with no effect begun, releases its claim at once: to
// revert_to or, if the action failed and the step has one, to its failed_state. The caller gets the original
// error or panic, none of the body's writes are committed, and the next caller can claim.
func TestWhateverFailsIsReleased(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		w.makeOut()
		n := 0
		for _, f := range failings {
			steps := []string{f.step}
			if f.step == "" {
				steps = []string{"close", "try"}
			}
			for _, step := range steps {
				n++
				id := fmt.Sprint("i", n)
				t.Run(f.name+" of "+step, func(t *testing.T) { wantFailure(t, w, f, id, step) })
			}
		}
	})
}

func wantFailure(t *testing.T, w *world, f failing, id, step string) {
	was := w.t
	w.t = t
	defer func() { w.t = was }()
	w.create(id)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if f.act != nil {
		act := f.act(w)
		w.act(id, func(ctx context.Context, a *lifecycle.Act[bill]) error {
			if f.cancel {
				cancel()
			}
			return act(ctx, a)
		})
	}
	if f.may != nil {
		w.may(id, f.may)
	}
	value, err := firePanicking(ctx, w, id, step, lifecycle.Lease(time.Minute))
	if value != f.panics {
		t.Errorf("panicked with %v, want %v (%v)", value, f.panics, err)
	}
	if f.panics == nil {
		testkit.WantCode(t, err, f.code)
		if !errors.Is(err, f.is) {
			t.Errorf("got error %v, want %v", err, f.is)
		}
		if got := factsOf(err)["outcome"]; got != "released" {
			t.Errorf("got outcome %v, want released", got)
		}
	}
	status, event := "open", "released"
	if f.fails && step == "try" {
		status, event = "failed", "failed/try"
	}
	w.happened(id, status, "created", "claimed", event)
	w.written(id)
	if got := w.get(id); got.Version != 2 || got.Data.Cents != 0 {
		t.Errorf("got %+v", got)
	}
	all, _ := holdfast.Collect(w.l.ReadHistory(context.Background(), w.e, id, 2))
	if len(all) == 1 && !strings.Contains(strings.ReplaceAll(string(all[0].Data), " ", ""), `"outcome":"`+f.outcome+`"`) {
		t.Errorf("got event data %s, want outcome %q", all[0].Data, f.outcome)
	}
	if status != "open" {
		return
	}
	w.act(id, nil)
	w.may(id, nil)
	if step == "hurry" || step == "rush" { // its timeout is short, and the next caller is not to be in a hurry
		step = "close"
	}
	if got, err := w.fire(id, step); err != nil || got.Status != "closed" || got.Version != 4 {
		t.Errorf("the next caller got %+v, %v, want status closed", got, err)
	}
}

// Verifies that a failing step without a claim writes nothing, and that its error reaches the caller.
func TestWhateverFailsUnclaimedWritesNothing(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		w.makeOut()
		for i, f := range failings {
			if f.step != "" || strings.Contains(f.name, "something else") {
				continue
			}
			id := fmt.Sprint("u", i)
			w.create(id)
			ctx, cancel := context.WithCancel(context.Background())
			if f.act != nil {
				act := f.act(w)
				w.act(id, func(ctx context.Context, a *lifecycle.Act[bill]) error {
					if f.cancel {
						cancel()
					}
					return act(ctx, a)
				})
			}
			if f.may != nil {
				w.may(id, f.may)
			}
			value, err := firePanicking(ctx, w, id, "note")
			cancel()
			if value != f.panics || (f.panics == nil && !errors.Is(err, f.is)) {
				t.Errorf("%s: panic %v, error %v", f.name, value, err)
			}
			if f.panics == nil && f.outcome != "failed" {
				testkit.WantCode(t, err, f.code)
			}
			w.happened(id, "open", "created")
			w.written(id)
		}
	})
}

// Verifies that a body that does not heed the end of its caller's context, and
// succeeds, is settled: the work is done.
func TestWorkThatIsDoneIsSettledThoughTheCallerIsGone(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		w.makeOut()
		w.create("i")
		ctx, cancel := context.WithCancel(context.Background())
		w.act("i", func(_ context.Context, a *lifecycle.Act[bill]) error {
			cancel()
			w.write(a, "me")
			return nil
		})
		if got, err := w.l.Fire(ctx, w.e, "i", "close", "admin"); err != nil || got.Status != "closed" {
			t.Errorf("%+v, %v", got, err)
		}
		w.happened("i", "closed", "created", "claimed", "settled/close")
		w.written("i", "me")
	})
}

// Verifies that a step's timeout ends its body in time, whatever the lease is: the
// default lease is renewed only every ten seconds.
func TestAStepTimesOutInTimeUnderALongLease(t *testing.T) {
	each(t, invoices, func(t *testing.T, w *world) {
		w.create("i")
		w.act("i", wait)
		begun := clock.Now()
		_, err := w.fire("i", "hurry")
		if took := clock.Since(begun); took > 5*time.Second {
			t.Errorf("a timeout of 100 ms took %s, want at most 5s", took)
		}
		testkit.WantCode(t, err, fault.ActionFailed)
		w.happened("i", "open", "created", "claimed", "released")
	})
}

// Verifies that what a body commits and the data that it sets are there with the new
// status, and that the body saw the claim status, its operation and its input.
func TestASettleWritesAllOrNothing(t *testing.T) {
	each(t, invoices, func(t *testing.T, w *world) {
		w.makeOut()
		for _, step := range []string{"close", "note"} {
			id, into := "i-"+step, map[string]string{"close": "closing", "note": "open"}[step]
			w.create(id)
			w.act(id, func(_ context.Context, a *lifecycle.Act[bill]) error {
				var in bill
				if err := a.Decode(&in); err != nil || in.Cents != 7 || a.Entity.Status != into || a.Operation == "" || a.Attempt != 1 || a.Step != step || a.Requester != "admin" {
					t.Errorf("the body got %+v, %v", a, err)
				}
				if claimed := a.Entity.Claimed != nil; claimed != (step == "close") {
					t.Errorf("the body got claim %+v", a.Entity.Claimed)
				}
				w.write(a, "one")
				w.write(a, "two")
				return a.Set(bill{in.Cents})
			})
			got, err := w.fire(id, step, lifecycle.Input(bill{7}), lifecycle.By("joe"))
			if err != nil || got.Data.Cents != 7 || got.Claimed != nil {
				t.Errorf("%s: %+v, %v", step, got, err)
			}
			w.written(id, "one", "two")
			all, err := holdfast.Collect(w.l.ReadHistory(context.Background(), w.e, id, 1))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range all {
				if e.Actor != "joe" {
					t.Errorf("event %s has actor %q, want joe", e.Name, e.Actor)
				}
			}
		}
	})
}

// Verifies that a caller that names a stale version is refused with the expected and the actual version and
// changes nothing; and that of many callers that name the same version one succeeds.
func TestWant(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		for _, step := range []string{"close", "note", "skip"} {
			stale, raced := "stale-"+step, "raced-"+step
			w.create(stale, raced)
			if _, err := w.l.Claim(context.Background(), w.e, stale, "try", "admin"); err != nil {
				t.Fatal(err)
			}
			w.advance(time.Hour)
			w.round() // it is open again, at version 2
			_, err := w.fire(stale, step, lifecycle.ExpectVersion(1))
			testkit.WantCode(t, err, fault.Concurrency)
			if f := factsOf(err); f["expectedVersion"] != int64(1) || f["lastVersion"] != int64(2) {
				t.Errorf("%s: got error fields %v", step, f)
			}
			w.happened(stale, "open", "created", "claimed", "recovered")
			if w.called(stale) != 0 {
				t.Errorf("the body of %s ran, want it not called", step)
			}
			won, lost := holdfasttest.Race(t, 8, func(int) error {
				_, err := w.fire(raced, step, lifecycle.ExpectVersion(0))
				return err
			})
			if won != 1 {
				t.Errorf("%s: %d callers won, want 1; errors %v", step, won, lost)
			}
			for _, err := range lost {
				if c := fault.CodeOf(err); c != fault.Concurrency && c != fault.ClaimFailed && c != fault.InvalidTransition {
					t.Errorf("%s: %v", step, err)
				}
			}
			if got, err := w.fire(stale, step, lifecycle.ExpectVersion(2)); err != nil || got.Version < 3 {
				t.Errorf("%s: %+v, %v", step, got, err)
			}
		}
		_, err := w.fire("stale-close", "close", lifecycle.ExpectVersion(-1))
		testkit.WantCode(t, err, fault.Validation)
	})
}

// requesters has a step for admins only, and one that an admin claims and the system,
// which is serialized otherwise, does not.
const requesters = `
workflow: invoice
owning_module: billing
status_types: [open, closing, paying, closed]
initial_status: open
janitor: {}
steps:
- {step_id: 20, step_key: close, status: open, successful_claim_state: {admin: [closing, open]}, successful_state: {admin: closed}, action: {admin: Act}}
- step_id: 30
  step_key: pay
  status: open
  successful_claim_state: {admin: [paying, open]}
  successful_state: {admin: closed, system: closed}
  action: {admin: Act, system: Act}
  serialized: [system]
`

// Verifies that a step runs only for requesters that it is offered to, and that the refusals have different
// codes: unknown step, wrong requester, wrong status, and operation in progress. The log of refusals lists
// the losers with their codes.
func TestRequesters(t *testing.T) {
	everywhere(t, requesters, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.create("i", "j")
		fire := func(id, step, as string) error {
			_, err := w.l.Fire(ctx, w.e, id, step, as)
			return err
		}
		testkit.WantCode(t, fire("i", "close", "guest"), fault.Forbidden)
		testkit.WantCode(t, fire("i", "close", "system"), fault.Forbidden)
		testkit.WantCode(t, fire("i", "pay", ""), fault.Forbidden)
		testkit.WantCode(t, fire("i", "fly", "admin"), fault.NotFound)
		testkit.WantCode(t, fire("nothing", "close", "admin"), fault.NotFound)
		testkit.WantCode(t, fire("nothing", "pay", "system"), fault.NotFound)
		if _, err := w.l.Claim(ctx, w.e, "i", "close", "guest"); !errors.Is(err, holdfast.ErrForbidden) {
			t.Errorf("%v", err)
		}
		if _, err := w.l.Claim(ctx, w.e, "i", "pay", "system"); !errors.Is(err, fault.Of(fault.Validation)) {
			t.Errorf("claim of a step without a claim status: got %v, want a validation error", err)
		}
		w.happened("i", "open", "created")

		goOn, done := w.held("i", "pay", nil)
		if got := w.get("i"); got.Status != "paying" || got.Claimed == nil || got.Claimed.Requester != "admin" {
			t.Errorf("%+v", got)
		}
		testkit.WantCode(t, fire("i", "pay", "system"), fault.ClaimFailed)
		testkit.WantCode(t, fire("i", "close", "admin"), fault.ClaimFailed)
		goOn <- nil
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		testkit.WantCode(t, fire("i", "pay", "system"), fault.InvalidTransition)
		w.happened("i", "closed", "created", "claimed", "settled/pay")
		if err := fire("j", "pay", "system"); err != nil {
			t.Fatal(err)
		}
		w.happened("j", "closed", "created", "claimed", "settled/pay")

		all, err := holdfast.Collect(w.l.ListRefusals(ctx, w.e, "i"))
		if err != nil || len(all) != 3 {
			t.Fatalf("%+v, %v", all, err)
		}
		var got []string
		for _, a := range all {
			got = append(got, a.Step+" "+a.Requester+" "+string(a.Code))
			if a.Code == "CLAIM_FAILED" && (a.Detail["holder"] == nil || a.Detail["since"] == nil) {
				t.Errorf("log entry has detail %v, want holder and since", a.Detail)
			}
		}
		if s := strings.Join(got, ", "); s != "pay system INVALID_TRANSITION, close admin CLAIM_FAILED, pay system CLAIM_FAILED" {
			t.Errorf("the log has %s", s)
		}
		if n := lifecycleengine.Refused(engine.Of(w.e)); n != 3 {
			t.Errorf("counted %d refusals, want 3", n)
		}
	})
}

// Verifies that the log of attempts may be read while others are refused.
func TestAttemptsAreReadWhileOthersAreRefused(t *testing.T) {
	each(t, invoices, func(t *testing.T, w *world) {
		w.create("i")
		goOn, done := w.held("i", "close", nil)
		_, errs := holdfasttest.Race(t, 16, func(i int) error {
			for range 10 {
				if i%2 == 0 {
					_, err := w.fire("i", "close")
					if fault.CodeOf(err) != fault.ClaimFailed {
						return fmt.Errorf("%v", err)
					}
				} else if _, err := holdfast.Collect(w.l.ListRefusals(context.Background(), w.e, "i")); err != nil {
					return err
				}
			}
			return nil
		})
		if len(errs) > 0 {
			t.Error(errs)
		}
		all, err := holdfast.Collect(w.l.ListRefusals(context.Background(), w.e, "i"))
		if err != nil || len(all) != 80 {
			t.Errorf("got %d refusals, want 80: %v", len(all), err)
		}
		goOn <- nil
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Verifies that a commit which says again and again that something is not available,
// so that the settle is tried until its time is up, leaves time for the release.
func TestACommitThatIsNeverAvailableIsReleased(t *testing.T) {
	each(t, invoices, func(t *testing.T, w *world) {
		w.makeOut()
		w.create("i")
		w.act("i", func(_ context.Context, a *lifecycle.Act[bill]) error {
			w.write(a, "me")
			a.WriteTx(func(context.Context, holdfast.Tx) error { return holdfast.ErrUnavailable })
			return nil
		})
		if _, err := w.fire("i", "close"); !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		w.happened("i", "open", "created", "claimed", "released")
		w.written("i")
	})
}

// Verifies that the entity beside the error of a step is not one that was rolled back: it is the stored one, whether or
// not the step has a claim.
func TestAFailedStepReturnsTheStoredEntity(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		for _, step := range []string{"note", "close", "try"} {
			w.create(step)
			w.act(step, func(_ context.Context, a *lifecycle.Act[bill]) error {
				a.WriteTx(func(context.Context, holdfast.Tx) error { return errOwn })
				return nil
			})
			got, err := w.l.Fire(context.Background(), w.e, step, step, "any")
			if !errors.Is(err, errOwn) {
				t.Fatalf("%s: got %v, want the error of the write", step, err)
			}
			if want := w.get(step); got.ID != want.ID || got.Status != want.Status || got.Version != want.Version {
				t.Errorf("%s: returned %s %q at version %d, stored is %q at version %d", step, got.ID, got.Status, got.Version, want.Status, want.Version)
			}
		}
	})
}
