// Package demo tells the story of actions that must not happen twice: invoices that many
// close at the same moment, that are closed by processes which are killed, and
// that are paid by processes which are killed after the card was charged; of a batch that
// several cancel in its middle; of a run that many start at once; and of a state that many
// change at once. What it shows is counted from what the callers were told, and then again from
// what the database has recorded; where the two disagree, it fails.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
)

const (
	// Workspace is where all of it happens.
	Workspace = "demo-invoices"
	// Sweep is how often the janitor of the demo's engine should look.
	Sweep = time.Second

	races  = 8               // invoices that are raced for
	admins = 8               // who close the same invoice at once
	kills  = 3               // invoices whose first caller is killed in the middle
	lease  = 2 * time.Second // how long a caller that was killed is waited for

	patience = 2 * time.Minute // how long the whole may take
)

// Demo is the story. [Demo.Tell] tells it, on an engine that has its [Demo.Parts].
type Demo struct {
	*shop
	callers Callers
	scans   *batch.Kind[int, string]
	chase   *run.Definition
	run     string // makes the names of one run its own
	out     io.Writer
	bar     *bar
	last    int // the number of the last invoice
	total   tally
}

// New returns a story that is told to out, with callers that are killed.
func New(out io.Writer, c Callers) *Demo {
	return &Demo{shop: newShop(), scans: scanKind(), chase: chase(), callers: c, run: uuid.NewString()[:8], out: out, bar: newBar(out, races)}
}

// Parts are what the engine of the demo is opened with.
func (d *Demo) Parts() []holdfast.Part { return []holdfast.Part{d.shop, d.scans, run.Serve(d.chase)} }

// Tell tells the story. A stop in between is the context's error.
func (d *Demo) Tell(ctx context.Context) error {
	whole, cancel := context.WithTimeout(holdfast.InWorkspace(ctx, Workspace), patience)
	defer cancel()
	err := d.chapters(whole)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the demo did not come to its end in %s: %w", patience, err)
	}
	return err
}

func (d *Demo) chapters(ctx context.Context) error {
	for _, chapter := range []func(context.Context) error{d.races, d.kills, d.payments, d.mails, d.refunds, d.chases, d.credits} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	d.say("\n%s\n", d.total)
	return d.total.check()
}

func (d *Demo) say(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

// open makes the next invoice.
func (d *Demo) open(ctx context.Context, data invoice) (*account, error) {
	d.last++
	a := &account{id: fmt.Sprintf("%s-%02d", d.run, d.last), told: []string{"created"}}
	_, err := d.invoices.Create(ctx, d.engine, a.id, data)
	return a, err
}

// closeAs has an admin close an invoice, and notes what the admin is told.
func (d *Demo) closeAs(ctx context.Context, a *account, who string) (closed bool, err error) {
	_, err = d.invoices.Fire(ctx, d.engine, a.id, "close", "admin", lifecycle.By(who))
	return a.answered(who, "close", err)
}

// await asks again and again until something has happened.
func await(ctx context.Context, happened func() (bool, error)) error {
	for {
		if yes, err := happened(); yes || err != nil {
			return err
		}
		if err := clock.Wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// audit reads back what the database has recorded of an invoice, and adds it to
// the total.
func (d *Demo) audit(ctx context.Context, a *account) error {
	e, err := d.invoices.Get(ctx, d.engine, a.id)
	if err != nil {
		return err
	}
	a.status, a.receipt = e.Status, e.Data.Receipt
	if a.history, err = holdfast.Collect(d.invoices.History(ctx, d.engine, a.id, 0)); err != nil {
		return err
	}
	if a.attempts, err = holdfast.Collect(d.invoices.Refusals(ctx, d.engine, a.id)); err != nil {
		return err
	}
	a.bodies += d.ran(a.id)
	d.total.add(a)
	return nil
}
