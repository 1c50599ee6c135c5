package main

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// TestManyClicksAreOneCharge pays an order from many goroutines at once. One of them charges and writes a receipt.
func TestManyClicksAreOneCharge(t *testing.T) {
	ctx, file := t.Context(), holdfasttest.SQLite(t)
	db, err := openTables(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	orders := newOrders()
	hf := holdfasttest.OpenOn(t, holdfasttest.At(file), orders)
	if _, err := orders.Create(ctx, hf, "o-1", Order{Cents: 1200}); err != nil {
		t.Fatal(err)
	}
	won, lost := holdfasttest.Race(t, 8, func(int) error {
		_, err := orders.Fire(ctx, hf, "o-1", "pay", "customer")
		return err
	})
	if won != 1 {
		t.Errorf("%d clicks paid the order, want 1", won)
	}
	for _, err := range lost {
		if !errors.Is(err, holdfast.ErrClaimFailed) && !errors.Is(err, holdfast.ErrInvalidTransition) {
			t.Error(err)
		}
	}
	var receipts, cents int
	if err := db.QueryRowContext(ctx, `SELECT count(*), sum(cents) FROM receipts`).Scan(&receipts, &cents); err != nil {
		t.Fatal(err)
	}
	if receipts != 1 || cents != 1200 {
		t.Errorf("got %d receipts over %d cents, want 1 over 1200", receipts, cents)
	}
}
