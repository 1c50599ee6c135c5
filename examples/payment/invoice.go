package main

import (
	"context"
	_ "embed"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/stage"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// schema is the program's own tables. Nothing in them keeps an invoice from being
// credited twice, on purpose: a unique index on payment.invoice would turn the second
// credit into an error, after the card was charged for it.
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

// Invoice is a row of the table, as far as the action wants to know it: the names
// are those of the columns.
type Invoice struct {
	Cents int64 `json:"cents"`
}

//go:embed invoice.yaml
var config []byte

// lifecycleOf is the config with its action. Journaled says of the action that what it
// does to the world outside goes through Effect: so one whose process dies goes back
// only if nothing may have happened yet, and is resumed otherwise.
func lifecycleOf(s *stage.Stage, g *gateway) *lifecycle.Lifecycle[Invoice] {
	return lifecycle.MustParse[Invoice](config).
		Action("ApplyPayment", applyPayment(s, g), lifecycle.Journaled())
}

// applyPayment charges the customer's card and credits the invoice with it.
func applyPayment(s *stage.Stage, g *gateway) func(context.Context, *lifecycle.Act[Invoice]) error {
	return func(ctx context.Context, a *lifecycle.Act[Invoice]) error {
		s.Begin(a.Attempt)
		p := payment{invoice: a.Entity.ID, cents: a.Entity.Data.Cents}

		// The journal has the intent before the gateway is called. Whoever comes
		// after a crash, or after an answer that was lost, calls with the same key
		// again: OnUnknownRetry, because this gateway honours keys. For one that can
		// only be asked there is OnUnknownProbe; without either, the payment waits
		// for a person. What is known to have happened is not called again at all.
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

// payment is what the program books.
type payment struct {
	reference, invoice string
	cents              int64
}

// write leaves the invoice's status and version alone: Holdfast moves them.
func (p payment) write(ctx context.Context, w stage.Writer) error {
	if err := w.Exec(ctx, `INSERT INTO payment (reference, invoice, cents) VALUES ($1, $2, $3)`, p.reference, p.invoice, p.cents); err != nil {
		return err
	}
	return w.Exec(ctx, `UPDATE invoice SET credited_cents = credited_cents + $2 WHERE id = $1`, p.invoice, p.cents)
}
