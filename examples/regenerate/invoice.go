package main

import (
	"context"
	_ "embed"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/stage"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// schema is the program's own tables. Nothing in them keeps a number from being
// given twice, on purpose: an index that did would turn the second clone into an
// error, after the work, and we want to see that there is none to turn away.
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

// Invoice is a row of the table, as far as the action wants to know it: the names
// are those of the columns.
type Invoice struct {
	Number string `json:"number"`
	Cents  int64  `json:"cents"`
}

//go:embed invoice.yaml
var config []byte

// lifecycleOf is the config with its action. Transactional says of the action that it
// writes only through Commit: so one whose process dies has done nothing, and the
// invoice can go back to where it was.
func lifecycleOf(s *stage.Stage) *lifecycle.Lifecycle[Invoice] {
	return lifecycle.MustParse[Invoice](config).
		Action("RegenerateInvoice", regenerate(s), lifecycle.Transactional())
}

// regenerate soft-deletes an invoice and puts a clone with the same number in its
// place, recomputed.
//
// The body holds no transaction and may take its time. Meanwhile the invoice is
// `regenerating`, which keeps everybody else's hands off it, so that what is computed
// here is still true when it is written.
func regenerate(s *stage.Stage) func(context.Context, *lifecycle.Act[Invoice]) error {
	return func(ctx context.Context, a *lifecycle.Act[Invoice]) error {
		s.Begin(a.Attempt)
		c := clone{original: a.Entity.ID, id: a.Operation, number: a.Entity.Data.Number}
		if err := s.DB.Row(ctx, `SELECT sum(cents) FROM invoice_line WHERE number = $1`, c.number).Scan(&c.cents); err != nil {
			return err
		}
		s.Danger("computed")

		// The writes are the transition: they commit with the status, or not at all.
		// If this process was too slow and has lost its claim, they are refused.
		a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error { return c.write(ctx, s.DB.In(tx)) })
		return nil
	}
}

// clone is what takes an invoice's place. Its id is that of the operation, which is
// the same however often this one is tried, and another for the next.
type clone struct {
	original, id, number string
	cents                int64
}

// write leaves the original's status and version alone: Holdfast moves them.
func (c clone) write(ctx context.Context, w stage.Writer) error {
	if err := w.Exec(ctx, `UPDATE invoice SET deleted_at = CURRENT_TIMESTAMP WHERE id = $1`, c.original); err != nil {
		return err
	}
	return w.Exec(ctx, `INSERT INTO invoice (id, number, status, cents, clone_of) VALUES ($1, $2, 'sent', $3, $4)`,
		c.id, c.number, c.cents, c.original)
}
