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
	starters        = 8 // who start the same run at once
	enoughReminders = 2
	deciders        = 2 // who decide at once
)

// chased is what a run of the demo is about.
type chased struct {
	Invoice string `json:"invoice"`
}

func reminders(id string) string { return "reminders-" + id }

// chase is the run of the demo: it reminds somebody of an invoice until that is enough, waits
// for the payment, has a manager look at it, and closes the invoice.
func chase() *run.Definition {
	return run.Define("demo-chase", "1",
		run.Task("remind", func(ctx context.Context, c chased) (int64, error) {
			info, _ := run.Of(ctx)
			if err := run.Patch(ctx, map[string]int64{"reminded": info.Visit}); err != nil {
				return 0, err
			}
			return info.Visit, run.WriteTx(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				_, err := stream.Append(ctx, tx, reminders(c.Invoice), stream.Any, stream.Event{Name: "reminded"})
				return err
			})
		}, run.Transactional()),
		run.If("enough", fmt.Sprintf("state.reminded >= %d", enoughReminders), "paid", "pause"),
		run.Wait("pause", 100*time.Millisecond, run.Next("remind")),
		run.Signal("paid", "payment", time.Hour),
		run.Approval("look", `="Close " + input.invoice + ", of which " + string(steps.paid.output.cents) + " cents are paid?"`, time.Hour, run.For("manager")),
		run.Fire("close", "invoice", "=input.invoice", "close", "admin"),
	)
}

// chases has one run started by many, told twice that the invoice is paid, and decided by two
// at once.
func (d *Demo) chases(ctx context.Context) error {
	d.say("\n6. A run: %d callers start the chase of one invoice under one key; its payment is reported twice, and %d managers decide at once.\n\n", starters, deciders)
	id := d.run + "-chased"
	if _, err := d.invoices.Create(ctx, d.engine, id, invoice{Cents: 900}); err != nil {
		return err
	}
	r, err := d.startTogether(ctx, id)
	if err != nil {
		return err
	}
	for range 2 { // the bank says it twice
		if err := run.Send(ctx, d.engine, r, "payment", "bank-1", map[string]int{"cents": 900}); err != nil {
			return err
		}
	}
	var asked []run.ApprovalRequest
	err = await(ctx, func() (bool, error) {
		asked, err = holdfast.Collect(run.ApprovalRequests(ctx, d.engine, r))
		return len(asked) == 1, err
	})
	if err == nil {
		err = d.decideTogether(ctx, asked[0].ID)
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

// startTogether has many start one run, and returns it.
func (d *Demo) startTogether(ctx context.Context, id string) (string, error) {
	runs, made := make([]run.Run, starters), make([]bool, starters)
	errs := atOnce(starters, func(i int) (err error) {
		runs[i], made[i], err = d.chase.Start(ctx, d.engine, chased{id}, run.Key("chase-"+id))
		return err
	})
	for i, err := range errs {
		if err != nil {
			return "", err
		}
		if made[i] {
			d.total.told.runs++
		}
		if runs[i].ID != runs[0].ID {
			d.total.blame(id, "two runs were started under one key")
		}
	}
	return runs[0].ID, nil
}

// decideTogether has some decide at once.
func (d *Demo) decideTogether(ctx context.Context, approval string) error {
	for _, err := range atOnce(deciders, func(i int) error {
		_, err := run.Decide(ctx, d.engine, approval, run.Decision{Status: run.Approved, By: fmt.Sprint("manager-", i+1), As: "manager"})
		return err
	}) {
		switch {
		case err == nil:
			d.total.told.decisions++
		case !errors.Is(err, holdfast.ErrConflict):
			return err
		}
	}
	return nil
}

// auditChase holds what the run has left to what was told.
func (d *Demo) auditChase(ctx context.Context, id string, end run.Run) error {
	d.total.recorded.runs++
	d.total.told.reminders += enoughReminders
	steps, err := holdfast.Collect(run.Steps(ctx, d.engine, end.ID))
	if err != nil {
		return err
	}
	sent, err := stream.Read(ctx, d.engine, reminders(id), 0, 100)
	if err != nil {
		return err
	}
	d.total.recorded.reminders += len(sent)
	history, err := stream.Read(ctx, d.engine, "$run/"+end.ID, 0, 1000)
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
	d.say("  run %s   %s after %d steps; the invoice is %s\n", end.ID, end.Status, len(steps), e.Status)
	if end.Status != "COMPLETED" || e.Status != "closed" {
		d.total.blame(id, fmt.Sprintf("the run is %s (%s), and the invoice %s", end.Status, end.Error, e.Status))
	}
	return nil
}
