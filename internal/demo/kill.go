package demo

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// kills closes invoices from processes that are killed during the action. The janitor releases
// their claims, and the next admin closes the invoices.
func (d *Demo) kills(ctx context.Context) error {
	before := d.total.recorded
	var all []*account
	for range kills {
		a, err := d.open(ctx, invoice{Cents: 4500})
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	if err := together(all, func(a *account) error { return d.killClosing(ctx, a) }); err != nil {
		return err
	}
	if err := together(all, func(a *account) error { return d.closeReleased(ctx, a) }); err != nil {
		return err
	}
	for _, a := range all {
		if err := d.audit(ctx, a); err != nil {
			return err
		}
	}
	closed := d.total.recorded.closed - before.closed
	d.tell("%d processes killed while closing: released after %s, %d closed", kills, all[0].between("claimed", "recovered"), closed)
	return nil
}

// together calls f for all accounts concurrently.
func together(all []*account, f func(*account) error) error {
	return errors.Join(atOnce(len(all), func(i int) error { return f(all[i]) })...)
}

// atOnce calls f n times concurrently and returns the error of each call.
func atOnce(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errs
}

// killClosing kills a process that closes an invoice, and tries to close the invoice as the next admin.
func (d *Demo) killClosing(ctx context.Context, a *account) error {
	if err := d.callers.Killed(ctx, "close", a.id, admin(0)); err != nil {
		return err
	}
	a.killed(admin(0), "recovered")
	_, err := d.closeAs(ctx, a, admin(1))
	return err
}

// closeReleased closes an invoice after its claim was released.
func (d *Demo) closeReleased(ctx context.Context, a *account) error {
	err := await(ctx, func() (bool, error) { return d.has(ctx, a, "recovered") })
	if err == nil && len(a.won) == 0 { // the first call was refused
		_, err = d.closeAs(ctx, a, admin(1))
	}
	return err
}

// has reports whether the history of an invoice has an event.
func (d *Demo) has(ctx context.Context, a *account, name string) (bool, error) {
	all, err := holdfast.Collect(d.invoices.ReadHistory(ctx, d.engine, a.id, 0))
	return slices.ContainsFunc(all, func(e lifecycle.Event) bool { return e.Name == name }), err
}

// between returns the time from one event to another, by the clock of the database.
func (a *account) between(from, to string) time.Duration {
	var start, end time.Time
	for _, e := range a.history {
		switch {
		case e.Name == from && start.IsZero():
			start = e.At
		case e.Name == to && end.IsZero():
			end = e.At
		}
	}
	return end.Sub(start).Round(100 * time.Millisecond)
}
