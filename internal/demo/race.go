package demo

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/lifecycle"
)

// races closes each invoice from many admins at once.
func (d *Demo) races(ctx context.Context) error {
	for range races {
		if _, err := d.race(ctx); err != nil {
			return err
		}
	}
	t := d.total.recorded
	d.tell("%d admins click close on %d invoices at once: %d won, %d refused", admins, races, t.claims, t.lost)
	return nil
}

// race closes an invoice from all admins at once and reads its records.
func (d *Demo) race(ctx context.Context) (*account, error) {
	a, err := d.open(ctx, invoice{Cents: 1200})
	if err != nil {
		return a, err
	}
	for i, result := range d.closeTogether(ctx, a.id) {
		if _, err := a.observe(admin(i), "close", result); err != nil {
			return a, err
		}
	}
	return a, d.audit(ctx, a)
}

// closeTogether closes an invoice from all admins at once and returns the error of each. The
// action blocks until each admin has either an error or entered the action, so that all calls
// overlap.
func (d *Demo) closeTogether(ctx context.Context, id string) []error {
	errs := make([]error, admins)
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
	for _, i := range rand.Perm(admins) { // else the last one often wins
		wait.Go(func() {
			<-start
			if _, errs[i] = d.invoices.Fire(ctx, d.engine, id, "close", "admin", lifecycle.By(admin(i))); errs[i] != nil {
				arrived()
			}
		})
	}
	close(start)
	wait.Wait()
	return errs
}

func admin(i int) string { return "admin " + strconv.Itoa(i+1) }
