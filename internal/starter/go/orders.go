package main

import (
	"context"
	"database/sql"
	_ "embed"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/sqlite"
)

//go:embed schema.sql
var schema string

//go:embed order.yaml
var config []byte

// Order is the data of an order.
type Order struct {
	Cents int64 `json:"cents"`
}

func newOrders() *lifecycle.Lifecycle[Order] {
	return lifecycle.MustParse[Order](config).Action("Charge", charge, lifecycle.Journaled())
}

// charge is the action of the step "pay". If the program crashes in the middle, another node, or this one after its
// restart, continues where it was.
func charge(ctx context.Context, a *lifecycle.Act[Order]) error {
	receipt, err := holdfast.Effect(ctx, "charge", func(_ context.Context, key string) (string, error) {
		return "R-" + key, nil // call your payment provider here, with key as its idempotency key
	}, holdfast.OnUnknownRetry())
	if err != nil {
		return err
	}
	a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error { // with the status "paid", or not at all
		_, err := sqlite.Raw(tx).ExecContext(ctx, `INSERT INTO receipts (order_id, receipt, cents) VALUES ($1, $2, $3)`,
			a.Entity.ID, receipt, a.Entity.Data.Cents)
		return err
	})
	return nil
}

// openTables opens a database file and creates the program's own tables in it. Holdfast's tables are in the same file.
func openTables(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}
