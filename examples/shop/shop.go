package main

import (
	"context"
	"database/sql"
	_ "embed"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/sqlite"
)

//go:embed schema.sql
var schema string

//go:embed order.yaml
var config []byte

// Order has the columns of a row of orders that the program reads. The names in the tags are the names of the columns.
type Order struct {
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
	Receipt  string `json:"receipt"`
}

// Services are what the shop calls outside of its database.
type Services interface {
	Charge(ctx context.Context, key string, cents int64) (receipt string, err error)
	Refund(ctx context.Context, key, receipt string) error
	Mail(ctx context.Context, key, to, text string) error
}

// Shop is the program.
type Shop struct {
	services Services
	orders   *lifecycle.Lifecycle[Order]
}

func newShop(s Services) *Shop {
	shop := &Shop{services: s}
	shop.orders = lifecycle.MustParse[Order](config).
		Action("Charge", shop.charge, lifecycle.Journaled()).
		Action("Refund", shop.refund, lifecycle.Journaled()).
		AfterEffect("MailReceipt", shop.mailReceipt, lifecycle.Idempotent())
	return shop
}

// parts are what the engine is opened with.
func (s *Shop) parts() []holdfast.Part {
	return []holdfast.Part{
		s.orders,
		// [hide]
		// [sales-part]
		sales,
		// [/sales-part]
		// [refunds-part]
		refunds,
		// [/refunds-part]
		// [/hide]
	}
}

// place inserts an order. Rows of your own table are inserted with SQL.
func (s *Shop) place(ctx context.Context, hf *holdfast.Engine, id, customer string, cents int64) error {
	return hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		return exec(ctx, tx, `INSERT INTO orders (tenant, id, customer, cents) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
			holdfast.WorkspaceOf(ctx), id, customer, cents)
	})
}

func (s *Shop) pay(ctx context.Context, hf *holdfast.Engine, id string) error {
	_, err := s.orders.Fire(ctx, hf, id, "pay", "customer", lifecycle.Lease(5*time.Second))
	return err
}

// charge is the action of the step "pay".
func (s *Shop) charge(ctx context.Context, a *lifecycle.Act[Order]) error {
	receipt, err := holdfast.Effect(ctx, "charge", func(ctx context.Context, key string) (string, error) {
		return s.services.Charge(ctx, key, a.Entity.Data.Cents)
	}, holdfast.OnUnknownRetry()) // the gateway honors the key
	if err != nil {
		return err
	}
	a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error { // with the status "paid", or not at all
		return exec(ctx, tx, `UPDATE orders SET receipt = $3 WHERE tenant = $1 AND id = $2`, holdfast.WorkspaceOf(ctx), a.Entity.ID, receipt)
	})
	return nil
}

// mailReceipt runs after the commit, and again if it fails. Its operation is the same each time.
func (s *Shop) mailReceipt(ctx context.Context, a *lifecycle.Act[Order]) error {
	return s.services.Mail(ctx, a.Operation, a.Entity.Data.Customer, "Receipt "+a.Entity.Data.Receipt)
}

// refund is the action of the step "refund".
func (s *Shop) refund(ctx context.Context, a *lifecycle.Act[Order]) error {
	_, err := holdfast.Effect(ctx, "refund", func(ctx context.Context, key string) (bool, error) {
		return true, s.services.Refund(ctx, key, a.Entity.Data.Receipt) // an effect has a result; a refund has none to store
	}, holdfast.OnUnknownRetry())
	return err
}

// exec executes one of your own statements in Holdfast's transaction.
func exec(ctx context.Context, tx holdfast.Tx, statement string, args ...any) error {
	_, err := sqlite.Raw(tx).ExecContext(ctx, statement, args...)
	return err
}

// createTables creates the shop's own tables. They are in the same file as Holdfast's.
func createTables(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, schema)
	return err
}
