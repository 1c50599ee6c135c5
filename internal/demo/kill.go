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

// kills has invoices closed by processes that are killed in the middle. What they
// held is freed by the janitor, and the next admin closes it.
func (d *Demo) kills(ctx context.Context) error {
	d.say("\n2. Crashes: %d more are closed by processes that are killed in the middle of the work.\n\n", kills)
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
	for _, a := range all {
		d.say("  invoice %s   %s was killed, and it is stuck in %s; %s is refused (%s)\n", a.id, admin(0), a.seen, admin(1), a.code())
	}
	d.say("\n  The janitor frees them when nobody has renewed their claims for %s.\n\n", lease)
	if err := together(all, func(a *account) error { return d.closeFreed(ctx, a) }); err != nil {
		return err
	}
	for _, a := range all {
		if err := d.audit(ctx, a); err != nil {
			return err
		}
		d.say("  invoice %s   freed after %s, closed by %s   history: %s\n", a.id, a.between("claimed", "recovered"), a.winner(), a.recorded())
	}
	return nil
}

// together does something for all accounts at once.
func together(all []*account, f func(*account) error) error {
	return errors.Join(atOnce(len(all), func(i int) error { return f(all[i]) })...)
}

// atOnce has some do something at once, and returns what each was told.
func atOnce(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errs
}

// killClosing kills one who closes an invoice, looks at what that left, and has the
// next one try.
func (d *Demo) killClosing(ctx context.Context, a *account) error {
	if err := d.callers.Killed(ctx, "close", a.id, admin(0)); err != nil {
		return err
	}
	a.killed(admin(0), "recovered")
	e, err := d.invoices.Get(ctx, d.engine, a.id)
	if err != nil {
		return err
	}
	a.seen = e.Status
	_, err = d.closeAs(ctx, a, admin(1))
	return err
}

// closeFreed closes an invoice once it is free.
func (d *Demo) closeFreed(ctx context.Context, a *account) error {
	err := await(ctx, func() (bool, error) { return d.has(ctx, a, "recovered") })
	if err == nil && len(a.won) == 0 { // the first try has come too soon
		_, err = d.closeAs(ctx, a, admin(1))
	}
	return err
}

// has says whether an invoice's history has an event.
func (d *Demo) has(ctx context.Context, a *account, name string) (bool, error) {
	all, err := holdfast.Collect(d.invoices.History(ctx, d.engine, a.id, 0))
	return slices.ContainsFunc(all, func(e lifecycle.Event) bool { return e.Name == name }), err
}

// between is the time from one event to another, in the database's time.
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
