// Package demo is the demo of "holdfast dev --demo": actions that must not happen twice, under
// concurrent calls and crashes.
//
// Callers close the same invoices at once. Processes are killed while they close an invoice,
// and after they have charged a card. A batch is cancelled halfway by several callers, a run is
// started by many callers at once, and a scope is changed by many callers at once. The demo
// counts the results that the callers observed and the results that the database recorded, and
// fails if the two differ.
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

	races  = 8               // invoices that several admins close at once
	admins = 8               // admins that close the same invoice at once
	kills  = 3               // invoices whose first caller is killed while it closes them
	lease  = 2 * time.Second // lease of a caller that is killed

	timeout = 2 * time.Minute // of the whole demo
)

// Demo is one run of the demo. [Demo.Tell] runs its chapters, and [Demo.Work] the company, on an
// engine opened with [Demo.Parts].
type Demo struct {
	*shop
	company *company
	callers Callers
	scans   *batch.Kind[int, string]
	chase   *run.Definition
	run     string // prefix that makes the names of this run unique
	out     io.Writer
	bar     *bar
	last    int // the number of the last invoice
	total   tally
}

// New returns a demo that prints to out. It starts and kills the processes of c.
func New(out io.Writer, c Callers) *Demo {
	shop, scans := newShop(), scanKind()
	return &Demo{shop: shop, company: newCompany(shop, scans), scans: scans, chase: chase(), callers: c, run: uuid.NewString()[:8], out: out, bar: newBar(out, races)}
}

// Parts returns the parts that the engine of the demo must be opened with.
func (d *Demo) Parts() []holdfast.Part {
	return append([]holdfast.Part{d.shop, d.scans, d.chase}, d.company.parts()...)
}

// Tell runs the demo. It returns the error of ctx if ctx is cancelled.
func (d *Demo) Tell(ctx context.Context) error {
	limited, cancel := context.WithTimeout(holdfast.InWorkspace(ctx, Workspace), timeout)
	defer cancel()
	err := d.chapters(limited)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the demo did not finish within %s: %w", timeout, err)
	}
	return err
}

// Work keeps the company working until ctx is cancelled, and returns the error of ctx. The
// dashboard is at url; "" if there is none.
func (d *Demo) Work(ctx context.Context, url string) error {
	if url != "" {
		d.printf("\nA small company keeps working. Open %s/ and unblock the reaction in the inbox; then watch the lifecycle \"invoice\", where two clerks close each invoice at once.\n", url)
	}
	return d.company.work(ctx)
}

func (d *Demo) chapters(ctx context.Context) error {
	for _, chapter := range []func(context.Context) error{d.races, d.kills, d.payments, d.mails, d.refunds, d.chases, d.credits} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	d.printf("\n%s\n", d.total)
	return d.total.check()
}

func (d *Demo) printf(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

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
