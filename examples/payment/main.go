// Command payment is the second example: a payment is applied to an invoice, which is
// sent or overdue. The card is charged, one payment is booked, and the invoice is
// paid; one charge and one credit, however many ask for it at once, whoever dies
// meanwhile and whatever answer is lost on the way.
//
//	go run ./examples/payment
//
// invoice.yaml and invoice.go are what a program writes to use Holdfast; gateway.go
// stands in for the world outside. This file opens the engine, and puts it to the
// proof.
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
	g, err := openGateway(ctx, s)
	if err != nil {
		return err
	}
	defer g.db.Close()
	invoices := lifecycleOf(s, g)
	hf, err := holdfast.Open(ctx, s.DB.Holdfast(), holdfast.Config{Log: s.Log, SweepEvery: 200 * time.Millisecond}, invoices)
	if err != nil {
		return err
	}
	defer hf.Close()

	// Run frees what crashes left claimed, and resumes what was begun, here and in
	// the other processes.
	background, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- hf.Run(background) }()

	err = s.Callers(ctx, ids, func(ctx context.Context, id string) error {
		_, err := invoices.Fire(ctx, hf, id, "apply_payment", "admin")
		return err
	})
	stop()
	if failed := <-ran; err == nil {
		err = failed
	}
	return err
}

// many is how many invoices there are.
const many = 8

func play(ctx context.Context, s *stage.Stage) error {
	g, err := openGateway(ctx, s)
	if err != nil {
		return err
	}
	defer g.db.Close()
	ids, err := setup(ctx, s, g)
	if err != nil {
		return err
	}
	return errors.Join(s.Race(ctx, "payments", ids), check(ctx, s, g, ids))
}

// setup makes the tables and some invoices, of which every other falls overdue: a
// step without a claim and without code, which is one conditional write.
func setup(ctx context.Context, s *stage.Stage, g *gateway) (ids []string, err error) {
	if err := s.DB.Exec(ctx, schema); err != nil {
		return nil, err
	}
	invoices := lifecycleOf(s, g)
	hf, err := holdfast.Open(ctx, s.DB.Holdfast(), holdfast.Config{Log: s.Log}, invoices)
	if err != nil {
		return nil, err
	}
	defer hf.Close()
	for i := range many {
		id := fmt.Sprintf("inv-%d", i+1)
		ids = append(ids, id)
		if err := s.DB.Exec(ctx, `INSERT INTO invoice (id, status, cents) VALUES ($1, 'sent', $2)`, id, 1000+i); err != nil {
			return nil, err
		}
		if i%2 == 0 {
			continue
		}
		if _, err := invoices.Fire(ctx, hf, id, "mark_as_overdue", "system"); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// check asks the program's own tables, and the gateway.
func check(ctx context.Context, s *stage.Stage, g *gateway, ids []string) error {
	for _, c := range []struct{ claim, breach string }{
		{"every invoice is paid: nothing is left in a claim",
			`SELECT id, 'is', status FROM invoice WHERE status <> 'paid' ORDER BY id`},
		{"one payment was booked for each, never two",
			`SELECT i.id, 'has', count(p.invoice), 'payments' FROM invoice AS i LEFT JOIN payment AS p ON p.invoice = i.id
			  GROUP BY i.id HAVING count(p.invoice) <> 1 ORDER BY i.id`},
		{"each was credited with what it is over, once",
			`SELECT id, 'over', cents, 'was credited', credited_cents FROM invoice WHERE credited_cents <> cents ORDER BY id`},
	} {
		if err := s.None(ctx, c.claim, c.breach); err != nil {
			return err
		}
	}
	charged, err := g.charges(ctx)
	if err != nil {
		return err
	}
	credited, err := s.DB.Rows(ctx, `SELECT invoice, reference || ' over ' || cents FROM payment`)
	if err != nil {
		return err
	}
	s.Tell("the gateway's charges are the credits, one for one", differences(ids, charged, byFirst(credited)))
	return s.Whole(ctx, lifecycleOf(s, g))
}
