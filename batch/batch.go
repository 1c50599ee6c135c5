// Package batch does items of work that cost something, such as calls of an API that is
// paid by the call, and can be cancelled at any moment: what was charged for what nobody
// has accepted is refunded, exactly, and what it left is cleaned up.
//
// A [Kind] is what is done for each item. [Kind.Create] makes a batch of items, which are
// done by the engines that run the kind, at most so many at once. The first try of an item
// reserves its cost from the batch's wallet; another try costs nothing more. An item that
// fails too often, or kills its workers, is given up, and its cost returned. Without funds
// the batch is PAUSED until a [Credit].
//
// Whoever dies in the middle, of a worker, a cancel or a cleanup, leaves the batch as it
// was between two transactions, and another goes on from there. COMPLETED and CANCELLED
// come last: then nothing of the batch is to be done any more.
package batch

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Status is where a batch is.
type Status string

// The statuses of a batch. The last two are its end.
const (
	Pending    Status = batchengine.Pending // nothing of it was ever begun
	Running    Status = batchengine.Running
	Paused     Status = batchengine.Paused     // its wallet cannot pay the next item
	Cancelling Status = batchengine.Cancelling // it is being torn down
	Cancelled  Status = batchengine.Cancelled
	Completed  Status = batchengine.Completed
)

// Batch is a batch as it stands.
type Batch struct {
	ID, Wallet, Kind string
	Status           Status
	Counts           Counts
	// Charged is what went from the wallet, and Refunded what went back, for items given
	// up or cancelled.
	Charged, Refunded int64
	MaxConcurrency    int
	// Open says that items may be added.
	Open            bool
	CancelRequested bool
	// Error is why its teardown or cleanup does not get on.
	Error                string
	CreatedAt, UpdatedAt time.Time
}

// Over says whether the batch is at its end.
func (b Batch) Over() bool { return b.Status == Cancelled || b.Status == Completed }

// Counts are how many items are in which state: each is in one of the first five. The
// accepted are some of the succeeded: all, once the batch is COMPLETED.
type Counts struct {
	Pending, Running, Succeeded, Failed, Cancelled, Accepted int64
}

// State is an item as it stands.
type State struct {
	Key string
	// State is pending, waiting to be tried again, running, succeeded, failed or
	// cancelled.
	State string
	// Decision is accepted, cancelled, or "" as long as neither is decided.
	Decision string
	Cost     int64
	Attempts int
	Output   json.RawMessage
	Error    string
}

// Get returns a batch, or [holdfast.ErrNotFound].
func Get(ctx context.Context, d holdfast.Doer, id string) (Batch, error) {
	b, err := batchengine.Get(ctx, store.DoerOf(d), id)
	return publicBatch(b), err
}

// List gives the batches of a workspace in the order of their ids: those of a status, or
// all ("").
func List(ctx context.Context, d holdfast.Doer, status Status) iter.Seq2[Batch, error] {
	return store.Seq(func(after batchengine.Batch, limit int) ([]batchengine.Batch, error) {
		return batchengine.List(ctx, store.DoerOf(d), after.ID, string(status), limit)
	}, publicBatch)
}

// Items gives the items of a batch in their order: those in a state, or all ("").
func Items(ctx context.Context, d holdfast.Doer, id, state string) iter.Seq2[State, error] {
	return store.Seq(func(after batchengine.Item, limit int) ([]batchengine.Item, error) {
		return batchengine.Items(ctx, store.DoerOf(d), id, after.N, state, limit)
	}, func(i batchengine.Item) State {
		return State{Key: i.Key, State: i.State, Decision: i.Decision, Cost: i.Cost, Attempts: int(i.Attempts()), Output: i.Output, Error: i.Error}
	})
}

// Cancel cancels a batch. One of which nothing was begun is CANCELLED at once. Of any other
// nothing begins any more, once Cancel has returned, and accepted says that it is being
// torn down: what was charged for what nobody has accepted is refunded, what that left is
// cleaned up, and then it is CANCELLED. Cancelling again changes nothing. A batch that is
// COMPLETED is [holdfast.ErrInvalidTransition].
func Cancel(ctx context.Context, d holdfast.Doer, id string) (b Batch, accepted bool, err error) {
	x, accepted, err := batchengine.Cancel(ctx, store.DoerOf(d), id)
	return publicBatch(x), accepted, err
}

// Finalize accepts items that have succeeded, and returns how many: those with the keys,
// or all if none is given (of an empty slice that is not nil, none). What is accepted is not refunded any more. None is, once a cancel is requested
// or the batch is at its end.
func Finalize(ctx context.Context, d holdfast.Doer, id string, keys ...string) (int, error) {
	n, err := batchengine.Finalize(ctx, store.DoerOf(d), id, keys)
	return int(n), err
}

// Seal says that a batch that was made open has all its items.
func Seal(ctx context.Context, d holdfast.Doer, id string) (Batch, error) {
	b, err := batchengine.Seal(ctx, store.DoerOf(d), id)
	return publicBatch(b), err
}

func publicBatch(b batchengine.Batch) Batch {
	return Batch{ID: b.ID, Wallet: b.Wallet, Kind: b.Handler, Status: Status(b.Status), Counts: Counts(b.Counts()), Charged: b.Charged, Refunded: b.Refunded,
		MaxConcurrency: int(b.MaxConcurrency), Open: !b.Sealed && !b.Over() && !b.CancelRequested, CancelRequested: b.CancelRequested, Error: b.Error, CreatedAt: b.CreatedAt, UpdatedAt: b.UpdatedAt}
}
