package main

import (
	"context"
	_ "embed"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/stage"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// schema creates the program's own tables. They have no constraint against a duplicate number,
// on purpose: a unique index would hide a second clone, and the example shows that there is
// none.
const schema = `
CREATE TABLE invoice (
    id         text PRIMARY KEY,
    number     text NOT NULL,
    status     text NOT NULL,
    version    bigint NOT NULL DEFAULT 0,
    cents      bigint NOT NULL,
    clone_of   text REFERENCES invoice (id),
    deleted_at timestamp
);
CREATE TABLE invoice_line (
    number text NOT NULL,
    cents  bigint NOT NULL
)`

// Invoice has the columns of a row that the action needs. Its JSON names are the column names.
type Invoice struct {
	Number string `json:"number"`
	Cents  int64  `json:"cents"`
}

//go:embed invoice.yaml
var config []byte

// lifecycleOf returns the lifecycle of the config with its action. Transactional declares that
// the action writes only through WriteTx. An action that crashes has changed nothing, so the
// invoice can return to its previous status.
func lifecycleOf(s *stage.Stage) *lifecycle.Lifecycle[Invoice] {
	return lifecycle.MustParse[Invoice](config).
		Action("RegenerateInvoice", regenerate(s), lifecycle.Transactional())
}

// regenerate soft-deletes an invoice and replaces it by a recomputed clone with the same
// number.
//
// The action runs outside a transaction and may take long. Meanwhile the invoice is
// `regenerating`, so no other step can change it before the result is written.
func regenerate(s *stage.Stage) func(context.Context, *lifecycle.Act[Invoice]) error {
	return func(ctx context.Context, a *lifecycle.Act[Invoice]) error {
		s.Begin(a.Attempt)
		c := clone{original: a.Entity.ID, id: a.Operation, number: a.Entity.Data.Number}
		if err := s.DB.Row(ctx, `SELECT sum(cents) FROM invoice_line WHERE number = $1`, c.number).Scan(&c.cents); err != nil {
			return err
		}
		s.Danger("computed")

		// The writes commit with the change of the status, or not at all. If this process was
		// too slow and has lost its claim, they are refused.
		a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error { return c.write(ctx, s.DB.In(tx)) })
		return nil
	}
}

// clone replaces an invoice. Its id is the id of the operation, which is the same for all
// attempts of this operation.
type clone struct {
	original, id, number string
	cents                int64
}

// write does not change the status and version of the original: Holdfast does.
func (c clone) write(ctx context.Context, w stage.Writer) error {
	if err := w.Exec(ctx, `UPDATE invoice SET deleted_at = CURRENT_TIMESTAMP WHERE id = $1`, c.original); err != nil {
		return err
	}
	return w.Exec(ctx, `INSERT INTO invoice (id, number, status, cents, clone_of) VALUES ($1, $2, 'sent', $3, $4)`,
		c.id, c.number, c.cents, c.original)
}
