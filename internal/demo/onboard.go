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
	starters = 8 // callers that start the same run at once
	deciders = 2 // managers that decide at once
)

// newcomer is the input of an onboarding.
type newcomer struct {
	Customer string `json:"customer"`
}

// Event names of a customer's account.
const (
	welcomed = "welcome"
	opened   = "open"
)

// accountOf returns the stream of a customer's account.
func accountOf(customer string) string { return "account-" + customer }

// onboarding returns the workflow of a new customer: it waits for the documents, asks a manager for approval, and opens
// the account.
func onboarding() *run.Definition {
	record := func(ctx context.Context, n newcomer) (string, error) {
		info, _ := run.Of(ctx)
		return n.Customer, run.WriteTx(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			_, err := stream.Append(ctx, tx, accountOf(n.Customer), stream.Any, stream.Event{Name: info.Step, Correlation: info.Run})
			return err
		})
	}
	return run.Define("demo-onboarding", "1",
		run.Task(welcomed, record, run.Transactional()),
		run.Signal("documents", "documents", run.Timeout(time.Hour)),
		run.Approval("accept", `="Open an account for " + input.customer + ", who sent " + string(steps.documents.output.pages) + " pages?"`,
			run.Timeout(time.Hour), run.For("manager"), run.OnReject("end"), run.OnTimeout("end")),
		run.Task(opened, record, run.Transactional()),
	).Retention(time.Hour)
}

// sendDocuments signals a run that the documents have arrived. A second call with the same run changes nothing.
func sendDocuments(ctx context.Context, e *holdfast.Engine, r string) error {
	return run.Send(ctx, e, r, "documents", map[string]int{"pages": 3}, run.SignalID("mail-1"))
}

// onboards starts one run from many callers, signals its documents twice, and has two managers decide at once.
func (d *Demo) onboards(ctx context.Context) error {
	customer := d.run + "-newcomer"
	r, err := d.startTogether(ctx, customer)
	if err != nil {
		return err
	}
	for range 2 {
		if err := sendDocuments(ctx, d.engine, r); err != nil {
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
	return d.auditOnboarding(ctx, customer, end)
}

// startTogether starts one run from many callers at once and returns its id.
func (d *Demo) startTogether(ctx context.Context, customer string) (string, error) {
	runs, created := make([]run.Run, starters), make([]bool, starters)
	errs := atOnce(starters, func(i int) (err error) {
		runs[i], created[i], err = d.onboarding.Start(ctx, d.engine, newcomer{customer}, run.Key(customer))
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
			d.total.mismatch(customer, "two runs were started with one key")
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

// auditOnboarding compares the records of the run with the observed results.
func (d *Demo) auditOnboarding(ctx context.Context, customer string, end run.Run) error {
	if end.Status == run.Completed {
		d.total.observed.accounts++
	} else {
		d.total.mismatch(customer, fmt.Sprintf("the run is %s (%s)", end.Status, end.Error))
	}
	for r, err := range run.List(ctx, d.engine, run.Filter{Key: customer}) {
		if err != nil {
			return err
		}
		if r.ID != end.ID {
			d.total.mismatch(customer, "a second run exists")
		}
		d.total.recorded.runs++
	}
	account, err := holdfast.Collect(stream.Read(ctx, d.engine, accountOf(customer), 0))
	if err != nil {
		return err
	}
	for _, e := range account {
		if e.Name == opened {
			d.total.recorded.accounts++
		}
	}
	history, err := holdfast.Collect(stream.Read(ctx, d.engine, "$run/"+end.ID, 0))
	if err != nil {
		return err
	}
	for _, e := range history {
		if e.Name == "approvalDecided" {
			d.total.recorded.decisions++
		}
	}
	d.tell("%d start it, %d decide at once: %d run, %d decision, %d account", starters, deciders, d.total.recorded.runs, d.total.recorded.decisions, d.total.recorded.accounts)
	return nil
}
