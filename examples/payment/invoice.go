package main

import (
	"context"
	_ "embed"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/stage"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// schema creates the program's own tables. They have no constraint against a second credit, on
// purpose: a unique index on payment.invoice would turn the second credit into an error, after
// the card was charged for it.
const schema = `
CREATE TABLE invoice (
    id             text PRIMARY KEY,
    status         text NOT NULL,
    version        bigint NOT NULL DEFAULT 0,
    cents          bigint NOT NULL,
    credited_cents bigint NOT NULL DEFAULT 0
);
CREATE TABLE payment (
    reference text NOT NULL, -- the gateway's
    invoice   text NOT NULL REFERENCES invoice (id),
    cents     bigint NOT NULL
)`

// Invoice has the columns of a row that the action needs. Its JSON names are the column names.
type Invoice struct {
	Cents int64 `json:"cents"`
}

//go:embed invoice.yaml
var config []byte

// lifecycleOf returns the lifecycle of the config with its action. Journaled declares that all
// external effects of the action go through Effect. After a crash, an operation is reverted
// only if no effect can have happened, and resumed otherwise.
func lifecycleOf(s *stage.Stage, g *gateway) *lifecycle.Lifecycle[Invoice] {
	return lifecycle.MustParse[Invoice](config).
		Action("ApplyPayment", applyPayment(s, g), lifecycle.Journaled())
}

// applyPayment charges the customer's card and credits the invoice.
func applyPayment(s *stage.Stage, g *gateway) func(context.Context, *lifecycle.Act[Invoice]) error {
	return func(ctx context.Context, a *lifecycle.Act[Invoice]) error {
		s.Begin(a.Attempt)
		p := payment{invoice: a.Entity.ID, cents: a.Entity.Data.Cents}

		// The intent is journaled before the gateway is called. After a crash or a lost
		// response, the call is repeated with the same key: OnUnknownRetry, because this
		// gateway honors keys. OnUnknownProbe is for a gateway that can only be queried.
		// Without either, the payment waits for an operator. A call that is known to have
		// succeeded is not repeated.
		var err error
		p.reference, err = holdfast.Effect(ctx, "charge", func(ctx context.Context, key string) (string, error) {
			return g.charge(ctx, key, p.invoice, p.cents)
		}, holdfast.OnUnknownRetry())
		if err != nil {
			return err
		}
		s.Danger("charged")

		// The payment and the credit commit with the status, or not at all.
		a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error { return p.write(ctx, s.DB.In(tx)) })
		return nil
	}
}

// payment is a booking of the program.
type payment struct {
	reference, invoice string
	cents              int64
}

// write does not change the status and version of the invoice: Holdfast does.
func (p payment) write(ctx context.Context, w stage.Writer) error {
	if err := w.Exec(ctx, `INSERT INTO payment (reference, invoice, cents) VALUES ($1, $2, $3)`, p.reference, p.invoice, p.cents); err != nil {
		return err
	}
	return w.Exec(ctx, `UPDATE invoice SET credited_cents = credited_cents + $2 WHERE id = $1`, p.invoice, p.cents)
}
