package demo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/scope"
)

// earnings is the state of a customer's scope.
type earnings struct {
	Cents int64 `json:"cents"`
}

// earn adds a payment to what a customer has paid.
func (c *company) earn(ctx context.Context, tx holdfast.Tx, customer string, cents int64) error {
	_, err := scope.In[earnings](tx, scope.User, customer).Inc(ctx, "cents", cents)
	return err
}

// onboard starts an onboarding, or decides its approval if nobody has.
func (c *company) onboard(ctx context.Context) error {
	if c.now == 0 {
		left, err := first(run.List(ctx, c.engine, run.Filter{Status: run.Waiting, Definition: "demo-onboarding@1"}))
		if err == nil && left.ID != "" { // a server before this one has started it
			c.runs.start(left.ID, c.now)
		}
	}
	switch {
	case c.runs.id != "":
		r, err := run.Get(ctx, c.engine, c.runs.id)
		if r.Over() || errors.Is(err, holdfast.ErrNotFound) || c.now >= c.runs.at+forgetAfter {
			c.runs.end(c.now, onboardEvery)
		}
		if err != nil || c.now < c.runs.at+patience {
			return err
		}
		return c.decide(ctx, c.runs.id)
	case c.now >= c.runs.next:
		r, _, err := c.onboarding.Start(ctx, c.engine, newcomer{newcomers[c.runs.n%len(newcomers)]})
		if err == nil {
			c.runs.start(r.ID, c.now)
			err = sendDocuments(ctx, c.engine, r.ID)
		}
		return err
	}
	return nil
}

func (c *company) decide(ctx context.Context, id string) error {
	a, err := first(run.ListApprovals(ctx, c.engine, run.ApprovalFilter{Run: id, Status: run.AwaitingDecision}))
	if err == nil && a.ID != "" {
		_, err = run.Decide(ctx, c.engine, a.ID, run.Decision{Status: run.Approved, Requester: "manager"}, run.By("manager"))
	}
	return err
}

// scan creates a batch that is paid from a wallet, and cancels it a few rounds later: what was not
// accepted is refunded.
func (c *company) scan(ctx context.Context) error {
	if c.now == 0 {
		for b, err := range batch.List(ctx, c.engine, batch.Filter{Wallet: scanWallet}) {
			if err == nil && !b.Over() { // a server before this one has created it
				c.batches.start(b.ID, c.now-scanRounds)
			}
		}
	}
	switch {
	case c.batches.id != "" && c.now >= c.batches.at+scanRounds:
		_, err := batch.Accept(ctx, c.engine, c.batches.id, []string{"page-01", "page-02"}, batch.By("clerk Ada"))
		_, cancelled := batch.Cancel(ctx, c.engine, c.batches.id, batch.By("clerk Ada"))
		if cancelled == nil || errors.Is(cancelled, holdfast.ErrConflict) || c.now >= c.batches.at+forgetAfter {
			c.batches.end(c.now, scanEvery)
		}
		return errors.Join(err, cancelled)
	case c.batches.id == "" && c.now >= c.batches.next:
		return c.createScans(ctx)
	}
	return nil
}

func (c *company) createScans(ctx context.Context) error {
	w, err := batch.PutWallet(ctx, c.engine, scanWallet)
	if err == nil && w.Balance < doneBefore*price {
		reference := "payment " + uuid.NewString()
		for range 1 + rand.IntN(maxDeliveries) { // the queue of the bank
			_, again := batch.Credit(ctx, c.engine, scanWallet, 10*doneBefore*price, reference)
			err = errors.Join(err, again)
		}
	}
	if err != nil {
		return err
	}
	b, err := c.scans.Create(ctx, c.engine, scanWallet, func(yield func(batch.NewItem[int]) bool) {
		for i := range doneBefore {
			if !yield(batch.NewItem[int]{Key: fmt.Sprintf("page-%02d", i+1), Cost: price, Input: i}) {
				return
			}
		}
	}, batch.LeaveOpen())
	if err == nil {
		c.batches.start(b.ID, c.now)
	}
	return err
}

// first returns the first value of a list, or the zero value.
func first[T any](all iter.Seq2[T, error]) (T, error) {
	for v, err := range all {
		return v, err
	}
	var none T
	return none, nil
}
