// Command regenerate is an example that regenerates a sent invoice. It soft-deletes the
// original and replaces it by exactly one recomputed clone with the same number, despite
// concurrent callers and crashes.
//
//	go run ./examples/regenerate
//
// invoice.yaml and invoice.go show the code that uses Holdfast. This file opens the engine,
// runs the race and checks the result.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/stage"
)

func main() { stage.Main(play, node) }

// node is one of the racing processes: an engine, and callers that fire the same step.
func node(ctx context.Context, s *stage.Stage, ids []string) error {
	invoices := lifecycleOf(s)
	hf, err := holdfast.Open(ctx, s.DB.Holdfast(), holdfast.Config{Log: s.Log, SweepEvery: 200 * time.Millisecond}, invoices)
	if err != nil {
		return err
	}
	defer hf.Close()

	// Run releases the claims of crashed processes.
	background, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- hf.Run(background) }()

	err = s.Callers(ctx, ids, func(ctx context.Context, id string) error {
		_, err := invoices.Fire(ctx, hf, id, "regenerate", "admin")
		return err
	})
	stop()
	if failed := <-ran; err == nil {
		err = failed
	}
	return err
}

// originals is the number of invoices.
const originals = 8

// play runs a race over the invoices, and then over their clones: regenerating a clone is
// another operation, on another row.
func play(ctx context.Context, s *stage.Stage) error {
	if err := s.DB.Exec(ctx, schema); err != nil {
		return err
	}
	for i := range originals {
		number := fmt.Sprintf("2026-%03d", i+1)
		if err := s.DB.Exec(ctx, `INSERT INTO invoice (id, number, status, cents) VALUES ($1, $1, 'sent', 0)`, number); err != nil {
			return err
		}
	}
	for round := 1; round <= 2 && s.Well(); round++ {
		// A new line on every valid invoice, so that its amount must be recomputed.
		if err := s.DB.Exec(ctx, `INSERT INTO invoice_line (number, cents) SELECT number, 1000 FROM invoice WHERE deleted_at IS NULL`); err != nil {
			return err
		}
		ids, err := s.DB.Column(ctx, `SELECT id FROM invoice WHERE deleted_at IS NULL ORDER BY number`)
		if err != nil {
			return err
		}
		if err := errors.Join(s.Race(ctx, fmt.Sprintf("round %d", round), ids), check(ctx, s, round)); err != nil {
			return err
		}
	}
	return s.Whole(ctx, lifecycleOf(s))
}

// check checks the program's own tables.
func check(ctx context.Context, s *stage.Stage, round int) error {
	for _, c := range []struct{ statement, violations string }{
		{"exactly one invoice of each number is valid",
			`SELECT number, 'has', count(*) FILTER (WHERE deleted_at IS NULL), 'valid' FROM invoice
			  GROUP BY number HAVING count(*) FILTER (WHERE deleted_at IS NULL) <> 1 ORDER BY number`},
		{"each original has exactly one clone",
			`SELECT clone_of, 'has', count(*), 'clones' FROM invoice WHERE clone_of IS NOT NULL
			  GROUP BY clone_of HAVING count(*) <> 1 ORDER BY clone_of`},
		{"deleted invoices are regenerated, valid ones are sent, and none is left claimed",
			`SELECT id, 'is', status, 'deleted:', deleted_at FROM invoice
			  WHERE status <> CASE WHEN deleted_at IS NULL THEN 'sent' ELSE 'regenerated' END ORDER BY id`},
		{"valid invoices were recomputed from their lines",
			`SELECT number, cents FROM invoice AS i
			  WHERE deleted_at IS NULL AND cents <> (SELECT sum(l.cents) FROM invoice_line AS l WHERE l.number = i.number) ORDER BY number`},
	} {
		if err := s.None(ctx, c.statement, c.violations); err != nil {
			return err
		}
	}
	return s.None(ctx, fmt.Sprintf("the table has %d rows: the originals, and one clone of each per round", originals*(round+1)),
		`SELECT count(*), 'rows' FROM invoice HAVING count(*) <> $1`, originals*(round+1))
}
