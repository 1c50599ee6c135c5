package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

const (
	starters        = 8 // callers that start the same run at once
	enoughReminders = 2
	deciders        = 2 // managers that decide at once
)

// chased is the input of the run.
type chased struct {
	Invoice string `json:"invoice"`
}

func reminders(id string) string { return "reminders-" + id }

// chase returns the workflow of the demo: it sends reminders, waits for the payment, asks a
// manager for approval, and closes the invoice.
func chase() *run.Definition {
	return run.Define("demo-chase", "1",
		run.Task("remind", func(ctx context.Context, c chased) (int, error) {
			info, _ := run.Of(ctx)
			if err := run.Patch(ctx, map[string]int{"reminded": info.Visit}); err != nil {
				return 0, err
			}
			return info.Visit, run.WriteTx(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				_, err := stream.Append(ctx, tx, reminders(c.Invoice), stream.Any, stream.Event{Name: "reminded"})
				return err
			})
		}, run.Transactional()),
		run.If("enough", fmt.Sprintf("state.reminded >= %d", enoughReminders), "paid", "pause"),
		run.Wait("pause", 100*time.Millisecond, run.Next("remind")),
		run.Signal("paid", "payment", run.Timeout(time.Hour)),
		run.Approval("look", `="Close " + input.invoice + ", of which " + string(steps.paid.output.cents) + " cents are paid?"`, run.Timeout(time.Hour), run.For("manager")),
		run.Fire("close", "invoice", "=input.invoice", "close", "admin"),
	)
}

// chases starts one run from many callers, signals its payment twice, and has two managers
// decide at once.
func (d *Demo) chases(ctx context.Context) error {
	d.printf("\n6. A run: %d callers start it for one invoice with the same key; the payment is signaled twice, and %d managers decide at once.\n\n", starters, deciders)
	id := d.run + "-chased"
	if _, err := d.invoices.Create(ctx, d.engine, id, invoice{Cents: 900}); err != nil {
		return err
	}
	r, err := d.startTogether(ctx, id)
	if err != nil {
		return err
	}
	for range 2 { // the bank sends the signal twice
		if err := run.Send(ctx, d.engine, r, "payment", map[string]int{"cents": 900}, run.SignalID("bank-1")); err != nil {
			return err
		}
	}
	var requests []run.ApprovalRequest
	err = await(ctx, func() (bool, error) {
		requests, err = holdfast.Collect(run.ListApprovals(ctx, d.engine, run.ApprovalFilter{Run: r}))
		return len(requests) == 1, err
	})
	if err == nil {
		err = d.decideTogether(ctx, requests[0].ID)
	}
	if err != nil {
		return err
	}
	end, err := run.Await(ctx, d.engine, r)
	if err != nil {
		return err
	}
	return d.auditChase(ctx, id, end)
}

// startTogether starts one run from many callers at once and returns its id.
func (d *Demo) startTogether(ctx context.Context, id string) (string, error) {
	runs, created := make([]run.Run, starters), make([]bool, starters)
	errs := atOnce(starters, func(i int) (err error) {
		runs[i], created[i], err = d.chase.Start(ctx, d.engine, chased{id}, run.Key("chase-"+id))
		return err
	})
	for i, err := range errs {
		if err != nil {
			return "", err
		}
		if created[i] {
			d.total.observed.runs++
		}
		if runs[i].ID != runs[0].ID {
			d.total.mismatch(id, "two runs were started with one key")
		}
	}
	return runs[0].ID, nil
}

// decideTogether decides an approval from several managers at once.
func (d *Demo) decideTogether(ctx context.Context, approval string) error {
	for _, err := range atOnce(deciders, func(i int) error {
		_, err := run.Decide(ctx, d.engine, approval, run.Decision{Status: run.Approved, Requester: "manager"}, run.By(fmt.Sprint("manager-", i+1)))
		return err
	}) {
		switch {
		case err == nil:
			d.total.observed.decisions++
		case !errors.Is(err, holdfast.ErrConflict):
			return err
		}
	}
	return nil
}

// auditChase compares the records of the run with the observed results.
func (d *Demo) auditChase(ctx context.Context, id string, end run.Run) error {
	d.total.recorded.runs++
	d.total.observed.reminders += enoughReminders
	steps, err := holdfast.Collect(run.ListSteps(ctx, d.engine, end.ID))
	if err != nil {
		return err
	}
	sent, err := holdfast.Collect(stream.Read(ctx, d.engine, reminders(id), 0))
	if err != nil {
		return err
	}
	d.total.recorded.reminders += len(sent)
	history, err := holdfast.Collect(stream.Read(ctx, d.engine, "$run/"+end.ID, 0))
	if err != nil {
		return err
	}
	for _, e := range history {
		if e.Name == "approvalDecided" {
			d.total.recorded.decisions++
		}
	}
	e, err := d.invoices.Get(ctx, d.engine, id)
	if err != nil {
		return err
	}
	d.printf("  run %s   %s after %d steps; the invoice is %s\n", end.ID, end.Status, len(steps), e.Status)
	if end.Status != "COMPLETED" || e.Status != "closed" {
		d.total.mismatch(id, fmt.Sprintf("the run is %s (%s), and the invoice is %s", end.Status, end.Error, e.Status))
	}
	return nil
}
