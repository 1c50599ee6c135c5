package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/run"
)

func TestMain(m *testing.M) { os.Exit(holdfasttest.Main(m).Run()) }

// [outside]
// outside counts the calls instead of making them. In a crash test, each call is a point at which the process can crash.
type outside struct{ holdfasttest.World }

func (o *outside) Charge(ctx context.Context, key string, _ int64) (string, error) {
	return "R-" + key, o.Call(ctx, "charge", key)
}
func (o *outside) Refund(ctx context.Context, key, _ string) error { return o.Call(ctx, "refund", key) }
func (o *outside) Mail(ctx context.Context, key, _, _ string) error {
	return o.Call(ctx, "mail", key)
}

// [/outside]

// [open]
func open(t *testing.T) (*holdfast.Engine, *Shop, *outside) {
	t.Helper()
	path, services := holdfasttest.SQLite(t), new(outside)
	if err := createTables(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	shop := newShop(services)
	hf := holdfasttest.OpenOn(t, holdfasttest.At(path), shop.parts()...)
	if err := shop.place(t.Context(), hf, "o1", "ada", 1200); err != nil {
		t.Fatal(err)
	}
	return hf, shop, services
}

// [/open]

// [race]
func TestEightClicksAreOneCharge(t *testing.T) {
	hf, shop, services := open(t)
	won, lost := holdfasttest.Race(t, 8, func(int) error { return shop.pay(t.Context(), hf, "o1") })
	for _, err := range lost {
		if !errors.Is(err, holdfast.ErrClaimFailed) && !errors.Is(err, holdfast.ErrInvalidTransition) {
			t.Error(err)
		}
	}
	if n := services.Count(t.Context(), "charge"); won != 1 || n != 1 {
		t.Errorf("%d callers won, and the card was charged %d times", won, n)
	}
}

// [/race]

// [approval]
func TestAManagerRefunds(t *testing.T) {
	ctx := t.Context()
	hf, shop, services := open(t)
	if err := shop.pay(ctx, hf, "o1"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second request finds the first run
		if err := shop.askRefund(ctx, hf, "o1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := holdfasttest.SettleWith(ctx, hf, approve); err != nil { // does all that is due, as hf.Run does
		t.Fatal(err)
	}
	if o, err := shop.orders.Get(ctx, hf, "o1"); o.Status != "refunded" || err != nil {
		t.Errorf("the order is %q: %v", o.Status, err)
	}
	cents, err := salesOf(ctx, hf, "ada")
	if n := services.Count(ctx, "refund"); n != 1 || cents != 0 || err != nil {
		t.Errorf("%d refunds, sales of %d cents: %v", n, cents, err)
	}
}

// approve decides the first approval that waits, as a manager. SettleWith calls it again while it has done something.
func approve(ctx context.Context, hf *holdfast.Engine, _ holdfasttest.Waiting) (acted bool, err error) {
	for a, err := range run.ListApprovals(ctx, hf, run.ApprovalFilter{}) {
		if err != nil {
			return false, err
		}
		_, err = run.Decide(ctx, hf, a.ID, run.Decision{Status: run.Approved, Requester: "manager"}, run.By("mia"))
		return err == nil, err
	}
	return false, nil
}

// [/approval]

// [crash]
// TestCrashes crashes the program before and after each of its commands, commits and calls, and loses their responses.
func TestCrashes(t *testing.T) {
	services := new(outside)
	shop := newShop(services)
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Databases: []string{"sqlite"},
		Setup:     createTables,
		Parts:     shop.parts,
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			if err := shop.place(ctx, hf, "o1", "ada", 1200); err != nil {
				return err
			}
			return shop.pay(ctx, hf, "o1")
		},
		Accepts: []error{holdfast.ErrInvalidTransition}, // it is paid
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			o, err := shop.orders.Get(ctx, hf, "o1")
			if err != nil {
				return err
			}
			if o.Status != "paid" || o.Data.Receipt == "" {
				return fmt.Errorf("the order is %q with the receipt %q", o.Status, o.Data.Receipt)
			}
			for _, call := range []string{"charge", "mail"} {
				if keys := services.Keys(ctx, call); len(keys) != 1 { // a service acts once for each key
					return fmt.Errorf("%s happened %d times: %q", call, len(keys), keys)
				}
			}
			cents, err := salesOf(ctx, hf, "ada")
			if err == nil && cents != 1200 {
				err = fmt.Errorf("sales are %d cents", cents)
			}
			return err
		},
	})
}

// [/crash]
