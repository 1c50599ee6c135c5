// Command regenerate is the first example: a sent invoice is regenerated. The original
// is soft-deleted, and one clone with the same number, recomputed, takes its place;
// never two, however many ask for it at once and whoever dies meanwhile.
//
//	go run ./examples/regenerate
//
// invoice.yaml and invoice.go are what a program writes to use Holdfast. This file
// opens the engine, and puts it to the proof.
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

// node is one of the processes: an engine, and callers who all want the same.
func node(ctx context.Context, s *stage.Stage, ids []string) error {
	invoices := lifecycleOf(s)
	hf, err := holdfast.Open(ctx, s.DB.Holdfast(), holdfast.Config{Log: s.Log, SweepEvery: 200 * time.Millisecond}, invoices)
	if err != nil {
		return err
	}
	defer hf.Close()

	// Run frees what crashes left claimed, here and in the other processes.
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

// originals is how many invoices there are.
const originals = 8

// play races over the invoices, and then over their clones: to regenerate again,
// later, is another operation, on another row.
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
		// Something was forgotten on every invoice that is out.
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

// check asks the program's own tables.
func check(ctx context.Context, s *stage.Stage, round int) error {
	for _, c := range []struct{ claim, breach string }{
		{"one invoice of each number is in force, never two, never none",
			`SELECT number, 'has', count(*) FILTER (WHERE deleted_at IS NULL), 'in force' FROM invoice
			  GROUP BY number HAVING count(*) FILTER (WHERE deleted_at IS NULL) <> 1 ORDER BY number`},
		{"one clone was made of each original",
			`SELECT clone_of, 'has', count(*), 'clones' FROM invoice WHERE clone_of IS NOT NULL
			  GROUP BY clone_of HAVING count(*) <> 1 ORDER BY clone_of`},
		{"what was deleted is regenerated, what is in force is sent: nothing is left in a claim",
			`SELECT id, 'is', status, 'deleted:', deleted_at FROM invoice
			  WHERE status <> CASE WHEN deleted_at IS NULL THEN 'sent' ELSE 'regenerated' END ORDER BY id`},
		{"what is in force was recomputed from its lines",
			`SELECT number, cents FROM invoice AS i
			  WHERE deleted_at IS NULL AND cents <> (SELECT sum(l.cents) FROM invoice_line AS l WHERE l.number = i.number) ORDER BY number`},
	} {
		if err := s.None(ctx, c.claim, c.breach); err != nil {
			return err
		}
	}
	return s.None(ctx, fmt.Sprintf("the table has %d rows: the originals, and a clone of each a round", originals*(round+1)),
		`SELECT count(*), 'rows' FROM invoice HAVING count(*) <> $1`, originals*(round+1))
}
