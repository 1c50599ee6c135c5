package demo

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/lifecycle"
)

// races has each of some invoices closed by many admins at once.
func (d *Demo) races(ctx context.Context) error {
	d.say("\n1. Double-clicks: %d admins close each of %d invoices, all at once.\n\n", admins, races)
	for n := range races {
		a, err := d.race(ctx)
		if err != nil {
			return err
		}
		d.bar.clear()
		d.say("  invoice %s   claimed by %s   %d refused (CLAIM_FAILED)   history: %s\n", a.id, a.winner(), a.refused, a.recorded())
		d.bar.draw(n + 1)
	}
	d.bar.clear()
	return nil
}

// race lets the admins close an invoice, and reads it back.
func (d *Demo) race(ctx context.Context) (*account, error) {
	a, err := d.open(ctx, invoice{Cents: 1200})
	if err != nil {
		return a, err
	}
	for i, told := range d.crowd(ctx, a.id) {
		if _, err := a.answered(admin(i), "close", told); err != nil {
			return a, err
		}
	}
	return a, d.audit(ctx, a)
}

// crowd is the admins, who wait for each other and then all close at once. The
// work of closing takes until each of them has an answer or works at it too. It
// returns what each was told.
func (d *Demo) crowd(ctx context.Context, id string) []error {
	told := make([]error, admins)
	var busy atomic.Int32
	busy.Store(admins)
	start, all := make(chan struct{}), make(chan struct{})
	arrived := func() {
		if busy.Add(-1) == 0 {
			close(all)
		}
	}
	d.meanwhile(id, func(ctx context.Context) error {
		arrived()
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	var wait sync.WaitGroup
	for i := range told {
		wait.Go(func() {
			<-start
			if _, told[i] = d.invoices.Fire(ctx, d.engine, id, "close", "admin", lifecycle.By(admin(i))); told[i] != nil {
				arrived()
			}
		})
	}
	close(start)
	wait.Wait()
	return told
}

func admin(i int) string { return "admin " + strconv.Itoa(i+1) }
