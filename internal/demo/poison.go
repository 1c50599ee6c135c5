package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// poison has each customer of the company pay an invoice, which two clerks close at once, while a payment arrives that the
// bookkeeping cannot book. That payment blocks its own stream only. It is left for a person to repair, and so is an
// onboarding that waits for approval.
func (d *Demo) poison(ctx context.Context) error {
	ctx = holdfast.InWorkspace(ctx, Home)
	err := errors.Join(atOnce(len(customers), func(i int) error { return d.payAtHome(ctx, d.atHome(i)) })...)
	if err == nil {
		err = errors.Join(d.company.payFromAbroad(ctx), d.company.onboard(ctx))
	}
	if err == nil {
		err = await(ctx, func() (bool, error) { return d.awaitsPerson(ctx) })
	}
	if err != nil {
		return err
	}
	d.total.observed.booked = len(customers)
	err = await(ctx, func() (bool, error) { // the gateway's streams are booked independently of the blocked one
		d.total.recorded.booked, err = d.booked(ctx)
		return d.total.recorded.booked >= len(customers), err
	})
	if err == nil {
		d.tell("1 payment in CHF blocks its stream, %d others booked: over to you", d.total.recorded.booked)
	}
	return err
}

// atHome returns the invoice of a customer of the company in this run of the demo.
func (d *Demo) atHome(customer int) string { return customers[customer] + "-" + d.run }

func (d *Demo) payAtHome(ctx context.Context, id string) error {
	_, err := d.invoices.Create(ctx, d.engine, id, invoice{Cents: 2500})
	if err == nil {
		err = d.company.clickTwice(ctx, id)
	}
	if err == nil {
		_, err = d.invoices.Fire(ctx, d.engine, id, "pay", "admin")
	}
	return err
}

// awaitsPerson reports whether the payment from abroad blocks the bookkeeping, and the onboarding waits for approval.
func (d *Demo) awaitsPerson(ctx context.Context) (bool, error) {
	p, err := first(stream.ListPositions(ctx, d.engine, stream.PositionFilter{Reaction: bookkeeping, Streams: []string{abroad}}))
	if err != nil || !p.Blocked {
		return false, err
	}
	a, err := first(run.ListApprovals(ctx, d.engine, run.ApprovalFilter{Run: d.company.runs.id, Status: run.AwaitingDecision}))
	return a.ID != "", err
}

// booked returns the number of payments of this run of the demo that the bookkeeping has booked.
func (d *Demo) booked(ctx context.Context) (n int, err error) {
	paid := make(map[string]bool)
	for i := range customers {
		for e, err := range d.invoices.ReadHistory(ctx, d.engine, d.atHome(i), 0) {
			if err != nil {
				return 0, err
			}
			if e.Name == "settled/pay" {
				paid[attemptOf(e).Operation] = true
			}
		}
	}
	if len(paid) != len(customers) {
		return 0, fmt.Errorf("%d of %d invoices of the company were paid", len(paid), len(customers))
	}
	for e, err := range stream.Read(ctx, d.engine, books, 0) {
		if err != nil {
			return 0, err
		}
		if paid[e.Correlation] {
			n++
		}
	}
	return n, nil
}
