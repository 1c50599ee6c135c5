package batch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// TestAListOfNothingIsAnError verifies that the items of a batch and the ledger of a wallet that do not exist are
// ErrNotFound, that an unknown status is ErrValidation, and that an empty list of what exists is empty.
func TestAListOfNothingIsAnError(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		ctx := t.Context()
		if _, err := holdfast.Collect(batch.ListItems(ctx, e, "none", batch.ItemFilter{})); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("items: got %v, want ErrNotFound", err)
		}
		if _, err := holdfast.Collect(batch.ReadLedger(ctx, e, "none", 0)); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("ledger: got %v, want ErrNotFound", err)
		}
		if _, err := holdfast.Collect(batch.ListItems(ctx, e, "none", batch.ItemFilter{Status: "COMPLETED"})); !errors.Is(err, holdfast.ErrValidation) || !strings.Contains(err.Error(), "Status must be") {
			t.Errorf("items in an unknown status: got %v, want ErrValidation", err)
		}
		if _, err := holdfast.Collect(batch.List(ctx, e, batch.Filter{Status: "succeeded"})); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("batches in an unknown status: got %v, want ErrValidation", err)
		}
		if _, err := batch.PutWallet(ctx, e, "w"); err != nil {
			t.Fatal(err)
		}
		if all, err := holdfast.Collect(batch.ReadLedger(ctx, e, "w", 0)); err != nil || len(all) != 0 {
			t.Errorf("empty ledger: got %v, %v", all, err)
		}
	})
}

// Verifies that negative options of a kind are refused when the engine opens.
func TestOptionsOfAKindAreChecked(t *testing.T) {
	for _, o := range []batch.Options{{Lease: -1}, {Lease: 30}, {Lease: 48 * time.Hour}, {MaxWorkers: -1}, {MaxConcurrency: -1}} {
		kind := batch.Define("k", func(context.Context, *batch.Item[int]) (int, error) { return 0, nil }, o)
		if _, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{}, kind); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("%+v: got %v, want ErrValidation", o, err)
		}
	}
}
