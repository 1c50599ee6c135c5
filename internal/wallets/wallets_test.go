package wallets_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wallets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

func post(wallet string, delta int64, reference string) wallets.PostArgs {
	return wallets.PostArgs{Wallet: wallet, Delta: delta, Reason: "test", Reference: reference}
}

// clean fails unless all wallets add up.
func clean(t *testing.T, d store.Doer) wallets.Audited {
	t.Helper()
	a, err := wallets.Audit(t.Context(), d, "")
	if err != nil || len(a.Wrong) > 0 {
		t.Fatalf("audit returned %+v, error %v", a, err)
	}
	return a
}

func TestAWallet(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		ctx := t.Context()
		code := func(want fault.Code, w wallets.Wallet, err error) wallets.Wallet {
			t.Helper()
			if fault.CodeOf(err) != want {
				t.Fatalf("got wallet %+v, error %v, want code %q", w, err, want)
			}
			return w
		}
		one := func(w wallets.Wallet, err error) func(fault.Code) wallets.Wallet {
			return func(want fault.Code) wallets.Wallet { t.Helper(); return code(want, w, err) }
		}
		one(wallets.Get(ctx, engine.Of(e), "w"))(fault.NotFound)
		one(wallets.Post(ctx, engine.Of(e), post("w", 5, "r1")))(fault.NotFound)
		made := one(wallets.Put(ctx, engine.Of(e), "w", false))("")
		if made.Balance != 0 || made.AllowNegative || made.CreatedAt.IsZero() {
			t.Errorf("created wallet %+v", made)
		}
		for range 2 { // the same reference posts once
			if w := one(wallets.Post(ctx, engine.Of(e), post("w", 5, "r1")))(""); w.Balance != 5 || w.Version != 1 {
				t.Errorf("got wallet %+v, want balance 5", w)
			}
		}
		one(wallets.Post(ctx, engine.Of(e), post("w", 6, "r1")))(fault.Conflict)
		one(wallets.Post(ctx, engine.Of(e), post("w", -6, "r2")))(fault.InsufficientFunds)
		if w := one(wallets.Post(ctx, engine.Of(e), post("w", -5, "r2")))(""); w.Balance != 0 {
			t.Errorf("got wallet %+v, want balance 0", w)
		}
		one(wallets.Post(ctx, engine.Of(e), post("w", 0, "r3")))(fault.Validation)
		one(wallets.Post(ctx, engine.Of(e), post("w", 1, "")))(fault.Validation)
		one(wallets.Put(ctx, engine.Of(e), "w", true))("")
		if w := one(wallets.Post(ctx, engine.Of(e), post("w", -7, "r3")))(""); w.Balance != -7 || !w.AllowNegative {
			t.Errorf("got wallet %+v, want balance -7", w)
		}
		one(wallets.Put(ctx, engine.Of(e), "w", false))("")
		one(wallets.Post(ctx, engine.Of(e), post("w", -1, "r4")))(fault.InsufficientFunds)
		if w := one(wallets.Post(ctx, engine.Of(e), post("w", 2, "r4")))(""); w.Balance != -5 { // it may rise
			t.Errorf("got wallet %+v, want balance -5", w)
		}
		one(wallets.Post(ctx, engine.Of(e), post("w", math.MaxInt64, "r5")))("")
		one(wallets.Post(ctx, engine.Of(e), post("w", 100, "r6")))(fault.Validation)
		all, err := wallets.Ledger(ctx, engine.Of(e), "w", 0, 100)
		if err != nil || len(all) != 5 || all[1].Delta != -5 || all[1].Balance != 0 || all[1].Reference != "r2" || all[1].At.IsZero() {
			t.Errorf("got ledger %+v, error %v", all, err)
		}
		if other, err := wallets.List(holdfast.InWorkspace(ctx, "other"), engine.Of(e), "", 10); err != nil || len(other) > 0 {
			t.Errorf("another workspace has wallets %+v, error %v", other, err)
		}
		if a := clean(t, engine.Of(e)); a.Wallets != 1 || a.Entries != 5 {
			t.Errorf("audit returned %+v, want 1 wallet and 5 rows", a)
		}
	})
}

// TestManyPostAtOnce verifies that many concurrent credits and debits add up exactly,
// each with its own result, and that no balance goes below zero.
func TestManyPostAtOnce(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		ctx := t.Context()
		for _, id := range []string{"a", "b"} {
			if _, err := wallets.Put(ctx, engine.Of(e), id, false); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		want := map[string]int64{}
		seen := map[string]bool{}
		for i := range 64 {
			all.Go(func() {
				for j := range 20 {
					id := []string{"a", "b"}[(i+j)%2]
					delta := int64(7 - (i*3+j*5)%12)
					if delta == 0 {
						delta = 1
					}
					reference := fmt.Sprint(i, "/", j/2) // half of them were posted before
					w, err := wallets.Post(ctx, engine.Of(e), post(id, delta, reference))
					switch fault.CodeOf(err) {
					case "":
						mu.Lock()
						if !seen[id+reference] {
							seen[id+reference] = true
							want[id] += delta
						}
						mu.Unlock()
						if w.Balance < 0 {
							t.Errorf("got wallet %+v with a negative balance", w)
						}
					case fault.InsufficientFunds, fault.Conflict:
					default:
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		clean(t, engine.Of(e))
		for id, sum := range want {
			if w, err := wallets.Get(ctx, engine.Of(e), id); err != nil || w.Balance != sum {
				t.Errorf("balance of %s is %d, want %d, error %v", id, w.Balance, sum, err)
			}
		}
	})
}

// TestCrashOfACredit verifies that a repeated credit is posted once, wherever a fault strikes.
func TestCrashOfACredit(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{Name: "credit",
		Do: func(ctx context.Context, e *holdfast.Engine) error {
			if _, err := wallets.Put(ctx, engine.Of(e), "w", false); err != nil {
				return err
			}
			if _, err := wallets.Post(ctx, engine.Of(e), post("w", 10, "in")); err != nil {
				return err
			}
			_, err := wallets.Post(ctx, engine.Of(e), post("w", -4, "out"))
			return err
		},
		Check: func(ctx context.Context, e *holdfast.Engine) error {
			w, err := wallets.Get(ctx, engine.Of(e), "w")
			if err == nil && w.Balance != 6 {
				err = fmt.Errorf("balance is %d, want 6", w.Balance)
			}
			if err != nil {
				return err
			}
			a, err := wallets.Audit(ctx, engine.Of(e), "")
			if err == nil && len(a.Wrong) > 0 {
				err = fmt.Errorf("wallet does not match its ledger: %+v", a.Wrong)
			}
			return err
		}, Pairs: true})
}
