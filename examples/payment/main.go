// Command payment is an example that applies a payment to an invoice, which is sent or
// overdue. It charges the card, books one payment and moves the invoice to paid: one charge
// and one credit, despite concurrent callers, crashes and lost responses.
//
//	go run ./examples/payment
//
// invoice.yaml and invoice.go show the code that uses Holdfast. gateway.go simulates an
// external service. This file opens the engine, runs the race and checks the result.
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

	// Run releases the claims of crashed processes and resumes their operations.
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

// many is the number of invoices.
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

// setup creates the tables and the invoices, and moves every other invoice to overdue. That
// step has no claim and no action; it is one conditional write.
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

// check checks the program's own tables and the gateway.
func check(ctx context.Context, s *stage.Stage, g *gateway, ids []string) error {
	for _, c := range []struct{ statement, violations string }{
		{"every invoice is paid, and none is left claimed",
			`SELECT id, 'is', status FROM invoice WHERE status <> 'paid' ORDER BY id`},
		{"exactly one payment was booked for each invoice",
			`SELECT i.id, 'has', count(p.invoice), 'payments' FROM invoice AS i LEFT JOIN payment AS p ON p.invoice = i.id
			  GROUP BY i.id HAVING count(p.invoice) <> 1 ORDER BY i.id`},
		{"each invoice was credited once with its amount",
			`SELECT id, 'over', cents, 'was credited', credited_cents FROM invoice WHERE credited_cents <> cents ORDER BY id`},
	} {
		if err := s.None(ctx, c.statement, c.violations); err != nil {
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
	s.Tell("the gateway's charges match the credits", differences(ids, charged, byFirst(credited)))
	return s.Whole(ctx, lifecycleOf(s, g))
}
