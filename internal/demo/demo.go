// Package demo is the demo of "holdfast dev --demo": actions that must not happen twice, under
// concurrent calls and crashes.
//
// Callers close the same invoices at once. Processes are killed while they close an invoice,
// and after they have charged a card. A queue delivers payments several times, a batch is
// cancelled halfway by several callers, a run is started by many callers at once, a scope is
// changed by many callers at once, and an event blocks a reaction. The demo counts the results
// that the callers observed and the results that the database recorded, and fails if the two
// differ. Each chapter prints one line.
//
// Afterwards a small company keeps working until the server stops, so that the dashboard has
// something to show.
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
	// Workspace is the workspace of the demo.
	Workspace = "demo-invoices"
	// Sweep is the janitor interval for the engine of the demo.
	Sweep = time.Second

	races  = 40              // invoices that several admins close at once
	admins = 8               // admins that close the same invoice at once
	kills  = 3               // invoices whose first caller is killed while it closes them
	lease  = 2 * time.Second // lease of a caller that is killed

	timeout = 2 * time.Minute // of the whole demo
)

// Demo is one run of the demo. [Demo.Tell] runs its chapters, and [Demo.Work] the company, on an
// engine opened with [Demo.Parts].
type Demo struct {
	*shop
	company    *company
	callers    Callers
	scans      *batch.Kind[int, string]
	onboarding *run.Definition
	run        string // prefix that makes the names of this run unique
	out        io.Writer
	last       int // the number of the last invoice
	total      tally
}

// New returns a demo that prints to out. It starts and kills the processes of c.
func New(out io.Writer, c Callers) *Demo {
	shop, scans, onboarding := newShop(), scanKind(), onboarding()
	return &Demo{shop: shop, company: newCompany(shop, scans, onboarding), scans: scans, onboarding: onboarding, callers: c, run: uuid.NewString()[:8], out: out}
}

// Parts returns the parts that the engine of the demo must be opened with.
func (d *Demo) Parts() []holdfast.Part {
	return append([]holdfast.Part{d.shop, d.scans, d.onboarding}, d.company.parts()...)
}

// Tell runs the demo. It returns the error of ctx if ctx is cancelled.
func (d *Demo) Tell(ctx context.Context, at Place) error {
	limited, cancel := context.WithTimeout(holdfast.InWorkspace(ctx, Workspace), timeout)
	defer cancel()
	err := d.chapters(limited, at)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the demo did not finish within %s: %w", timeout, err)
	}
	return err
}

// Work keeps the company working until ctx is cancelled, and returns the error of ctx.
func (d *Demo) Work(ctx context.Context) error { return d.company.work(ctx) }

func (d *Demo) chapters(ctx context.Context, at Place) error {
	chapters := []struct {
		name string
		run  func(context.Context) error
	}{{"clicks", d.races}, {"crashes", d.kills}, {"payments", d.payments}, {"queue", d.queue}, {"mail", d.mails}, {"refunds", d.refunds},
		{"onboarding", d.onboards}, {"credit", d.credits}, {"poison", d.poison}}
	d.printf("\nA small billing company, in %d chapters. The dashboard: %s\n\n", len(chapters), at.dashboard())
	for i, c := range chapters {
		d.printf("%2d %-10s ", i+1, c.name)
		if err := c.run(ctx); err != nil {
			d.printf("failed\n")
			return err
		}
	}
	if err := d.total.check(); err != nil {
		return err
	}
	d.printf("\n%s\n\n", d.total)
	d.suggest(at)
	return nil
}

func (d *Demo) printf(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

// tell ends the line of a chapter with its result.
func (d *Demo) tell(format string, args ...any) { d.printf(format+"\n", args...) }

// open creates the next invoice.
func (d *Demo) open(ctx context.Context, data invoice) (*account, error) {
	d.last++
	a := &account{id: fmt.Sprintf("%s-%02d", d.run, d.last), observed: []string{"created"}}
	_, err := d.invoices.Create(ctx, d.engine, a.id, data)
	return a, err
}

// closeAs closes an invoice as an admin and records the result.
func (d *Demo) closeAs(ctx context.Context, a *account, admin string) (closed bool, err error) {
	_, err = d.invoices.Fire(ctx, d.engine, a.id, "close", "admin", lifecycle.By(admin))
	return a.observe(admin, "close", err)
}

// await polls until happened returns true or an error.
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

// audit reads the records of an invoice from the database and adds them to the total.
func (d *Demo) audit(ctx context.Context, a *account) error {
	e, err := d.invoices.Get(ctx, d.engine, a.id)
	if err != nil {
		return err
	}
	a.status, a.receipt = e.Status, e.Data.Receipt
	if a.history, err = holdfast.Collect(d.invoices.ReadHistory(ctx, d.engine, a.id, 0)); err != nil {
		return err
	}
	if a.refusals, err = holdfast.Collect(d.invoices.ListRefusals(ctx, d.engine, a.id)); err != nil {
		return err
	}
	a.executions += d.ran(a.id)
	d.total.add(a)
	return nil
}
