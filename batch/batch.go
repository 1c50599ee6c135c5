// Package batch runs items of work that cost something, such as calls of an API that is paid per
// call. A batch can be cancelled at any moment: the cost of items that were not accepted is
// refunded exactly, and their remains are cleaned up.
//
// A [Kind] defines the code for each item. [Kind.Create] creates a batch of items, which the
// engines that have the kind run, with a limit on concurrency. The first attempt of an item
// reserves its cost from the batch's wallet; further attempts cost nothing more. An item that
// fails too often, or crashes its workers, is given up, and its cost is refunded. Without funds
// the batch is PAUSED until a [Credit].
//
// A crash during an attempt, a cancel or a cleanup leaves the batch as it was between two
// transactions, and another node continues from there. COMPLETED and CANCELLED come last: after
// that, nothing is left to do for the batch.
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

// Status is the status of a batch.
type Status string

// The statuses of a batch. Cancelled and Completed are final.
const (
	Pending    Status = batchengine.Pending // no item was ever started
	Running    Status = batchengine.Running
	Paused     Status = batchengine.Paused     // the wallet cannot pay for the next item
	Cancelling Status = batchengine.Cancelling // items in flight are being cleaned up
	Cancelled  Status = batchengine.Cancelled
	Completed  Status = batchengine.Completed
)

// Batch is a batch as it was when it was read.
type Batch struct {
	ID, Wallet, Kind string
	Status           Status
	Counts           Counts
	// Charged is the amount taken from the wallet. Refunded is the amount returned to it, for
	// items that were given up or cancelled.
	Charged, Refunded int64
	MaxConcurrency    int
	// Open reports whether items may be added.
	Open            bool
	CancelRequested bool
	// Error is the reason why the teardown or the cleanup makes no progress.
	Error                string
	CreatedAt, UpdatedAt time.Time
}

// Over reports whether the batch is COMPLETED or CANCELLED.
func (b Batch) Over() bool { return b.Status == Cancelled || b.Status == Completed }

// Counts holds the number of items in each state. Each item is in one of the first five states.
// Accepted items are also counted as succeeded; once the batch is COMPLETED, all succeeded items
// are accepted.
type Counts struct {
	Pending, Running, Succeeded, Failed, Cancelled, Accepted int64
}

// State is an item as it was when it was read.
type State struct {
	Key string
	// State is pending, waiting (for a retry), running, succeeded, failed or cancelled.
	State string
	// Decision is accepted, cancelled, or "" while neither is decided.
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

// List iterates over the batches of the context's workspace, ordered by id: those with a status,
// or all ("").
func List(ctx context.Context, d holdfast.Doer, status Status) iter.Seq2[Batch, error] {
	return store.Seq(func(after batchengine.Batch, limit int) ([]batchengine.Batch, error) {
		return batchengine.List(ctx, store.DoerOf(d), after.ID, string(status), limit)
	}, publicBatch)
}

// Items iterates over the items of a batch, in order: those in a state, or all ("").
func Items(ctx context.Context, d holdfast.Doer, id, state string) iter.Seq2[State, error] {
	return store.Seq(func(after batchengine.Item, limit int) ([]batchengine.Item, error) {
		return batchengine.Items(ctx, store.DoerOf(d), id, after.N, state, limit)
	}, func(i batchengine.Item) State {
		return State{Key: i.Key, State: i.State, Decision: i.Decision, Cost: i.Cost, Attempts: int(i.Attempts()), Output: i.Output, Error: i.Error}
	})
}

// Cancel cancels a batch. A batch of which no item was started is CANCELLED at once. For any
// other batch no item starts after Cancel has returned, and accepted reports that the batch is
// being torn down: the cost of items that were not accepted is refunded, their remains are
// cleaned up, and then the batch is CANCELLED. Cancelling again changes nothing. A COMPLETED
// batch is [holdfast.ErrInvalidTransition].
func Cancel(ctx context.Context, d holdfast.Doer, id string) (b Batch, accepted bool, err error) {
	x, accepted, err := batchengine.Cancel(ctx, store.DoerOf(d), id)
	return publicBatch(x), accepted, err
}

// Finalize accepts succeeded items and returns how many it accepted: those with the keys, or all
// if no keys are given (an empty slice that is not nil accepts none). An accepted item is not
// refunded any more. No item is accepted once a cancel is requested or the batch is over. An
// unknown key is [holdfast.ErrNotFound], and nothing is accepted.
func Finalize(ctx context.Context, d holdfast.Doer, id string, keys ...string) (int, error) {
	n, err := batchengine.Finalize(ctx, store.DoerOf(d), id, keys)
	return int(n), err
}

// Seal closes an open batch: it has all its items, and none can be added any more.
func Seal(ctx context.Context, d holdfast.Doer, id string) (Batch, error) {
	b, err := batchengine.Seal(ctx, store.DoerOf(d), id)
	return publicBatch(b), err
}

func publicBatch(b batchengine.Batch) Batch {
	return Batch{ID: b.ID, Wallet: b.Wallet, Kind: b.Handler, Status: Status(b.Status), Counts: Counts(b.Counts()), Charged: b.Charged, Refunded: b.Refunded,
		MaxConcurrency: int(b.MaxConcurrency), Open: !b.Sealed && !b.Over() && !b.CancelRequested, CancelRequested: b.CancelRequested, Error: b.Error, CreatedAt: b.CreatedAt, UpdatedAt: b.UpdatedAt}
}
