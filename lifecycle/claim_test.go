package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// claim claims a step, as a program does with Lifecycle.Claim.
func (w *world) claim(id, step string, o ...lifecycle.FireOption) *lifecycle.Claim[bill] {
	w.t.Helper()
	c, err := w.l.Claim(context.Background(), w.e, id, step, "admin", o...)
	if err != nil {
		w.t.Fatalf("claim %s: %v", id, err)
	}
	return c
}

// Verifies that a manual claim leases the entity for stuck_after, runs no action, keeps all other callers
// out, and is settled with data and writes in one transaction.
func TestAClaimByHand(t *testing.T) {
	each(t, invoices, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.makeOut()
		w.create("i")
		c := w.claim("i", "close", lifecycle.By("joe"), lifecycle.ExpectVersion(0))
		got := w.get("i")
		if got.Status != "closing" || got.Version != 1 || got.Claimed == nil || !got.Claimed.Manual || got.Claimed.ID != c.Operation() ||
			!got.Claimed.Until.Equal(c.Until()) || got.Claimed.Until.Sub(got.Claimed.Since).Round(time.Second) != 5*time.Minute {
			t.Errorf("got %+v, %+v", got, got.Claimed)
		}
		if _, err := w.l.Claim(ctx, w.e, "i", "close", "admin"); !errors.Is(err, holdfast.ErrClaimFailed) {
			t.Errorf("%v", err)
		}
		_, err := w.fire("i", "note")
		testkit.WantCode(t, err, fault.ClaimFailed)
		if f := factsOf(err); f["holder"] == nil || f["since"] == nil || f["until"] == nil {
			t.Errorf("got error fields %v, want holder, since and until", f)
		}
		if until, err := c.Renew(ctx, 0); err != nil || until.Before(got.Claimed.Until) || until.Sub(got.Claimed.Until) > time.Minute {
			t.Errorf("renewed until %s, %v, want about %s: stuck_after is the default", until, err, got.Claimed.Until)
		}
		settled, err := c.Settle(ctx, &bill{5}, w.writes("i", "me"))
		if err != nil || settled.Status != "closed" || settled.Version != 2 || settled.Data.Cents != 5 || settled.Claimed != nil {
			t.Errorf("%+v, %v", settled, err)
		}
		w.happened("i", "closed", "created", "claimed", "settled/close")
		w.written("i", "me")
		if w.called("i") != 0 {
			t.Error("the action ran, want it not called")
		}
	})
}

// Verifies that settling again with the same outcome gives the same answer and writes
// nothing more, what is committed with it included; that another outcome is refused;
// and that this is so too after the entity went on to another operation's hands.
func TestSettlingAgain(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.makeOut()
		w.create("i", "j", "k")
		c := w.claim("i", "close")
		first, err := c.Settle(ctx, nil, w.writes("i", "me"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.Settle(ctx, nil, w.writes("i", "me"))
		if err != nil || again != first {
			t.Errorf("first settle returned %+v, second %+v, %v, want the same", first, again, err)
		}
		w.written("i", "me")
		if _, err := c.Reject(ctx, "no"); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("%v", err)
		}
		if _, err := c.Fail(ctx, "no"); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("%v", err)
		}
		if _, err := c.Renew(ctx, time.Minute); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("%v", err)
		}
		w.happened("i", "closed", "created", "claimed", "settled/close")

		d := w.claim("j", "close")
		if got, err := d.Fail(ctx, "the printer is on fire"); err != nil || got.Status != "open" || got.Claimed != nil {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err := d.Fail(ctx, "the printer is on fire"); err != nil || got.Status != "open" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := d.Settle(ctx, nil, w.writes("j", "late")); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("%v", err)
		}
		next := w.claim("j", "try")
		if _, err := d.Fail(ctx, "again"); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("release of an earlier claim: got %v, want ErrLeaseLost", err)
		}
		if got, err := next.Fail(ctx, ""); err != nil || got.Status != "failed" {
			t.Errorf("%+v, %v", got, err)
		}
		w.happened("j", "failed", "created", "claimed", "released", "claimed", "failed/try")
		w.written("j")

		r := w.claim("k", "try")
		if got, err := r.Reject(ctx, ""); err != nil || got.Status != "open" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := w.claim("k", "try").Inner().Settle(ctx, "perhaps", nil, nil); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%v", err)
		}
		w.advance(time.Hour)
		w.round()
		w.happened("k", "open", "created", "claimed", "released", "claimed", "recovered")
	})
}

// Verifies that a failed commit leaves the claim unchanged and writes nothing, that the claim can be settled
// afterwards, and that a panic propagates.
func TestASettleByHandWhoseCommitFails(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.makeOut()
		w.create("i")
		c := w.claim("i", "close")
		failing := func(ctx context.Context, tx holdfast.Tx) error {
			return errors.Join(w.writes("i", "x")(ctx, tx), errOwn)
		}
		if _, err := c.Settle(ctx, nil, failing); !errors.Is(err, errOwn) {
			t.Errorf("%v", err)
		}
		func() {
			defer func() {
				if p := recover(); p != "ouch" {
					t.Errorf("panicked with %v, want ouch", p)
				}
			}()
			_, _ = c.Settle(ctx, nil, func(context.Context, holdfast.Tx) error { panic("ouch") })
		}()
		w.written("i")
		if got := w.get("i"); got.Status != "closing" || got.Version != 1 {
			t.Errorf("%+v", got)
		}
		if _, err := c.Settle(ctx, nil, w.writes("i", "me")); err != nil {
			t.Error(err)
		}
		w.written("i", "me")
		w.happened("i", "closed", "created", "claimed", "settled/close")
	})
}

// Verifies that an expired claim can be neither renewed, settled nor released, before and after the janitor
// runs, and that such a call changes nothing; and that the janitor reverts an expired claim once.
func TestAClaimByHandRunsOut(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.makeOut()
		w.create("i")
		c := w.claim("i", "try", lifecycle.Lease(time.Minute))
		w.advance(50 * time.Second)
		first := c.Until()
		until, err := c.Renew(ctx, time.Minute)
		if err != nil || !until.After(first) || !c.Until().Equal(until) {
			t.Fatalf("a lease until %s was renewed until %s, and the claim says %s: %v", first, until, c.Until(), err)
		}
		w.advance(50 * time.Second)
		w.round() // it was renewed: it is held
		if got := w.get("i"); got.Status != "trying" || !got.Claimed.Until.Equal(until) {
			t.Fatalf("%+v", got)
		}
		w.advance(11 * time.Second)
		data := &bill{9}
		if w.own { // there, its data is the user's affair
			data = nil
		}
		refused := func(when string) {
			t.Helper()
			before := w.get("i")
			if _, err := c.Renew(ctx, time.Minute); !errors.Is(err, holdfast.ErrLeaseLost) {
				t.Errorf("%s, renew: got %v, want ErrLeaseLost", when, err)
			}
			if _, err := c.Settle(ctx, data, w.writes("i", "late")); !errors.Is(err, holdfast.ErrLeaseLost) {
				t.Errorf("%s, settle: got %v, want ErrLeaseLost", when, err)
			}
			if _, err := c.Reject(ctx, "late"); !errors.Is(err, holdfast.ErrLeaseLost) {
				t.Errorf("%s, reject: got %v, want ErrLeaseLost", when, err)
			}
			if _, err := c.Fail(ctx, "late"); !errors.Is(err, holdfast.ErrLeaseLost) {
				t.Errorf("%s, release: got %v, want ErrLeaseLost", when, err)
			}
			if after := w.get("i"); after.Status != before.Status || after.Version != before.Version || after.Data != before.Data {
				t.Errorf("%s: entity changed from %+v to %+v", when, before, after)
			}
			w.written("i")
		}
		refused("before the sweep")
		w.round()
		w.round()
		w.happened("i", "open", "created", "claimed", "recovered")
		refused("after the sweep")
		next := w.claim("i", "close")
		refused("in another's claim")
		if _, err := next.Settle(ctx, nil, nil); err != nil {
			t.Error(err)
		}
		w.happened("i", "closed", "created", "claimed", "recovered", "claimed", "settled/close")
	})
}

// Verifies that a manual claim runs the validation, and that the claim is released at once if the validation
// fails, refuses or panics.
func TestAClaimByHandIsValidated(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		w.create("i", "j")
		w.may("i", func(context.Context, *lifecycle.Act[bill]) error { return errOwn })
		_, err := w.l.Claim(context.Background(), w.e, "i", "close", "admin")
		testkit.WantCode(t, err, fault.ActionFailed)
		if !errors.Is(err, errOwn) {
			t.Errorf("%v", err)
		}
		w.happened("i", "open", "created", "claimed", "released")
		w.may("i", func(context.Context, *lifecycle.Act[bill]) error { return holdfast.Invalid("no") })
		_, err = w.l.Claim(context.Background(), w.e, "i", "close", "admin")
		testkit.WantCode(t, err, fault.ActionInvalid)
		w.happened("i", "open", "created", "claimed", "released", "claimed", "released")
		w.may("j", func(context.Context, *lifecycle.Act[bill]) error { panic("boo") })
		func() {
			defer func() {
				if p := recover(); p != "boo" {
					t.Errorf("panicked with %v, want boo", p)
				}
			}()
			_, err := w.l.Claim(context.Background(), w.e, "j", "close", "admin")
			t.Errorf("Claim returned %v instead of panicking", err)
		}()
		w.happened("j", "open", "created", "claimed", "released")
	})
}

// Verifies that of many who end one claim at once, each their own way, one way is
// recorded, and all who asked for that one get the same answer.
func TestEndsOfOneClaimRace(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.makeOut()
		for _, id := range ids("i", 20) {
			w.create(id)
			c := w.claim(id, "close")
			var ended [3]lifecycle.Entity[bill]
			won, lost := holdfasttest.Race(t, 3, func(i int) (err error) {
				switch i {
				case 0:
					ended[i], err = c.Settle(ctx, nil, w.writes(id, "me"))
				case 1:
					ended[i], err = c.Fail(ctx, "no")
				case 2:
					ended[i], err = c.Reject(ctx, "")
				}
				return err
			})
			if won != 1 {
				t.Errorf("one claim ended %d times, want 1: %+v, %v", won, ended, lost)
			}
			for _, err := range lost {
				testkit.WantCode(t, err, fault.LeaseLost)
			}
			if got := w.get(id); got.Version != 2 {
				t.Errorf("%+v", got)
			} else if got.Status == "closed" {
				w.written(id, "me")
			} else {
				w.written(id)
			}
		}
	})
}

// Verifies that StuckAfter sets how long a claim lasts if the config does not, also if it stands before the lifecycle.
func TestStuckAfter(t *testing.T) {
	l := lifecycle.MustParse[bill]([]byte(`{"workflow": "bill", "owning_module": "billing", "initial_status": "open", "status_types": ["open", "closing", "closed"], "janitor": "standard",
		"steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_claim_state": {"admin": ["closing", "open"]}, "successful_state": {"admin": "closed"}}]}`))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		if _, err := l.Create(t.Context(), e, "i", bill{}); err != nil {
			t.Fatal(err)
		}
		c, err := l.Claim(t.Context(), e, "i", "close", "admin")
		if err != nil {
			t.Fatal(err)
		}
		if lasts := c.Until().Sub(c.Entity.Claimed.Since).Round(time.Second); lasts != 7*time.Minute {
			t.Errorf("the claim lasts %s, want 7m", lasts)
		}
	}, lifecycle.StuckAfter(7*time.Minute), l)
	if _, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{}, lifecycle.StuckAfter(-1)); !errors.Is(err, holdfast.ErrValidation) {
		t.Errorf("StuckAfter(-1): got %v, want ErrValidation", err)
	}
}
