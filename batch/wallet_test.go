package batch_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// TestWallets verifies that wallets are listed by id, that one or all are audited and never all by mistake, and that
// only AllowNegative allows a negative balance.
func TestWallets(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		for _, id := range []string{"b", "a"} {
			if w, err := batch.PutWallet(ctx, hf, id, batch.AllowNegative()); err != nil || !w.AllowNegative {
				t.Fatalf("put %+v, %v", w, err)
			}
			if _, err := batch.Credit(ctx, hf, id, 5, "r"); err != nil {
				t.Fatal(err)
			}
		}
		if w, err := batch.PutWallet(ctx, hf, "b"); err != nil || w.AllowNegative || w.Balance != 5 {
			t.Errorf("put again: got %+v, %v", w, err)
		}
		all, err := holdfast.Collect(batch.ListWallets(ctx, hf))
		if want := []batch.Wallet{{ID: "a", Balance: 5, AllowNegative: true}, {ID: "b", Balance: 5}}; err != nil || !slices.Equal(all, want) {
			t.Errorf("listed %+v, %v, want %+v", all, err, want)
		}
		if a, err := batch.AuditWallets(ctx, hf); err != nil || a.Wallets != 2 || a.Entries != 2 || a.Discrepancies != nil {
			t.Errorf("audited %+v, %v, want 2 wallets", a, err)
		}
		if a, err := batch.AuditWallet(ctx, hf, "a"); err != nil || a.Wallets != 1 || a.Entries != 1 {
			t.Errorf("audited %+v, %v, want 1 wallet", a, err)
		}
		if _, err := batch.AuditWallet(ctx, hf, ""); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("audited the wallet %q: got %v, want ErrValidation", "", err)
		}
	}, batch.Maintenance())
}
