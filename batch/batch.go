// Package batch runs items of work that cost something, such as calls to an API that charges per call. You can cancel a
// batch at any moment: the cost of items that were not accepted is refunded exactly, and their artifacts are deleted.
//
//	var scan = batch.Define("scan", func(ctx context.Context, i *batch.Item[Page]) (string, error) {
//		return ocr.Read(ctx, i.Input.URL)
//	}, batch.Options{})
//
//	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{}, scan)
//	_, err = batch.PutWallet(ctx, hf, "acme")
//	_, err = batch.Credit(ctx, hf, "acme", 500, "payment-17")
//	b, err := scan.Create(ctx, hf, "acme", pages, batch.ID("doc-9"))
//
// A [Kind] defines the code for each item. [Kind.Create] creates a batch of items. The engines that have the kind run
// the items, up to a limit of concurrent items. The first attempt of an item charges its cost to the batch's wallet;
// further attempts are free. An item that fails, or whose nodes crash, too many times ends as failed, and its
// cost is refunded. If the wallet runs out of funds, the batch is PAUSED until a [Credit] adds points.
//
// Every change of a batch is one transaction, so after a crash during an attempt, a cancel or a cleanup, another node
// continues from the last committed change. A batch becomes COMPLETED or CANCELLED only when no work is left.
//
// The history of a batch is a stream: stream.Read(ctx, hf, "$batch/"+id, 0) reads it.
package batch

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Status is the status of a batch.
type Status string

// The statuses of a batch. Cancelled and Completed are final.
const (
	Pending    Status = "PENDING" // no item has been started yet
	Running    Status = "RUNNING"
	Paused     Status = "PAUSED"     // the wallet cannot pay for the next item
	Cancelling Status = "CANCELLING" // items in flight are being cleaned up
	Cancelled  Status = "CANCELLED"
	Completed  Status = "COMPLETED"
)

// Batch is the state of a batch at the time of the read.
type Batch struct {
	ID, Wallet, Kind string
	Status           Status
	Counts           Counts
	// Charged is the number of points charged to the wallet. Refunded is the number of points
	// refunded to it, for items that failed or were cancelled.
	Charged, Refunded int64
	MaxConcurrency    int
	// Open reports whether items may be added.
	Open            bool
	CancelRequested bool
	// Error is the reason why the batch's teardown or cleanup makes no progress.
	Error                string
	CreatedAt, UpdatedAt time.Time
	// ItemsDeletedAt is when the deletion of the items began, after their retention (see [Retention]); zero before.
	ItemsDeletedAt time.Time
}

// Over reports whether the batch is COMPLETED or CANCELLED.
func (b Batch) Over() bool { return b.Status == Cancelled || b.Status == Completed }

// Counts holds the number of items in each status; Pending includes the items that wait for a
// retry. Each item is counted in one of the first five fields.
// Accepted items are also counted as succeeded; once the batch is COMPLETED, all succeeded items
// are accepted.
type Counts struct {
	Pending, Running, Succeeded, Failed, Cancelled, Accepted int64
}

// ItemStatus is the status of an item.
type ItemStatus string

// The statuses of an item. A failed or cancelled item is final, and a succeeded one once it is accepted: until then, a
// cancel of the batch makes it cancelled.
const (
	ItemPending   ItemStatus = "pending"
	ItemWaiting   ItemStatus = "waiting" // for a retry
	ItemRunning   ItemStatus = "running"
	ItemSucceeded ItemStatus = "succeeded"
	ItemFailed    ItemStatus = "failed" // given up
	ItemCancelled ItemStatus = "cancelled"
)

// Decision states whether the cost of an item is final.
type Decision string

// The decisions about an item.
const (
	Undecided        Decision = ""
	DecidedAccepted  Decision = "accepted"  // the cost is not refunded
	DecidedCancelled Decision = "cancelled" // the cost is refunded
)

// ItemInfo is the state of an item at the time of the read.
type ItemInfo struct {
	Key      string
	Status   ItemStatus
	Decision Decision
	Cost     int64 // 0 is free, unlike in [NewItem]
	Attempts int
	Output   json.RawMessage
	Error    string
}

// Get returns a batch, or [holdfast.ErrNotFound].
func Get(ctx context.Context, d holdfast.Doer, id string) (Batch, error) {
	b, err := batchengine.Get(ctx, store.DoerOf(d), batchengine.PublicID(id))
	return publicBatch(b), err
}

// Filter selects batches. The zero value selects all.
type Filter struct {
	Status Status
	Kind   string
	Wallet string
	// Since and Until limit when batches were created, UpdatedSince and UpdatedUntil when they were last changed: from a time,
	// inclusive, until another, exclusive.
	Since, Until, UpdatedSince, UpdatedUntil time.Time
	// Backward orders the list by the time of creation, the newest batch first. Without it, the list is ordered by id.
	Backward bool
}

// List iterates over the batches of the context's workspace, ordered by id, or backward by the time of their creation. It
// reads all of them, and applies the filter to them. An unknown status is [holdfast.ErrValidation].
func List(ctx context.Context, d holdfast.Doer, f Filter) iter.Seq2[Batch, error] {
	g := batchengine.Filter{Status: string(f.Status), Handler: f.Kind, Wallet: f.Wallet,
		Times: store.Times{Since: f.Since, Until: f.Until, UpdatedSince: f.UpdatedSince, UpdatedUntil: f.UpdatedUntil}}
	return store.SeqFound(func(after batchengine.Batch, limit int) ([]store.Found[batchengine.Batch], error) {
		return batchengine.List(ctx, store.DoerOf(d), g, f.Backward, after.ID, limit)
	}, publicBatch)
}

// ItemFilter selects items of a batch. The zero value selects all.
type ItemFilter struct {
	Status ItemStatus
}

// ListItems iterates over the items of a batch, in order. If the batch does not exist, the error is
// [holdfast.ErrNotFound], and so it is if its items were deleted after their retention; an unknown status is [holdfast.ErrValidation].
func ListItems(ctx context.Context, d holdfast.Doer, id string, f ItemFilter) iter.Seq2[ItemInfo, error] {
	return store.SeqIn(func() error {
		_, err := batchengine.Get(ctx, store.DoerOf(d), batchengine.PublicID(id))
		return err
	}, func(after batchengine.Item, limit int) ([]batchengine.Item, error) {
		if f.Status != "" && !slices.Contains(batchengine.States, string(f.Status)) {
			return nil, fault.New(fault.Validation, "Status must be one of %s, got %q", strings.Join(batchengine.States, ", "), f.Status)
		}
		return batchengine.Items(ctx, store.DoerOf(d), batchengine.PublicID(id), after.N, string(f.Status), limit)
	}, func(i batchengine.Item) ItemInfo {
		return ItemInfo{Key: i.Key, Status: ItemStatus(i.State), Decision: Decision(i.Decision), Cost: i.Cost, Attempts: int(i.Attempts()), Output: i.Output, Error: i.Error}
	})
}

// ActorOption is the option [By] of [Cancel], [Seal], [Accept] and [AcceptAll].
type ActorOption struct{ actor string }

// By sets the actor that the history records.
func By(actor string) ActorOption { return ActorOption{actor} }

func actor(all []ActorOption) (name string) {
	for _, o := range all {
		name = o.actor
	}
	return name
}

// Cancel cancels a batch. A batch in which no item was started is CANCELLED immediately. Any other batch is torn down:
// no item starts after Cancel has returned, the cost of items that were not accepted is refunded, their artifacts are
// deleted, started items are undone ([Kind.Undo]), and then the batch is CANCELLED. Cancelling again changes nothing.
// If the batch is COMPLETED, Cancel returns [holdfast.ErrInvalidTransition].
func Cancel(ctx context.Context, d holdfast.Doer, id string, o ...ActorOption) (Batch, error) {
	b, _, err := batchengine.Cancel(ctx, store.DoerOf(d), batchengine.PublicID(id), actor(o))
	return publicBatch(b), err
}

// Accept accepts the items with the given keys that have succeeded, and returns how many it accepted. The cost of an
// accepted item is no longer refunded. If the batch has no item with one of the keys, Accept returns
// [holdfast.ErrNotFound] and accepts none.
//
// No item is accepted once a cancel has been requested or the batch is over. This is no error: the number is 0, as it is
// for items that were accepted before or have not succeeded. [Batch.Status] and CancelRequested, which [Get] returns,
// tell the cases apart.
func Accept(ctx context.Context, d holdfast.Doer, id string, keys []string, o ...ActorOption) (int, error) {
	n, err := batchengine.Finalize(ctx, store.DoerOf(d), batchengine.PublicID(id), append([]string{}, keys...), actor(o))
	return int(n), err
}

// AcceptAll accepts all succeeded items of a batch, and returns how many it accepted. See
// [Accept].
func AcceptAll(ctx context.Context, d holdfast.Doer, id string, o ...ActorOption) (int, error) {
	n, err := batchengine.Finalize(ctx, store.DoerOf(d), batchengine.PublicID(id), nil, actor(o))
	return int(n), err
}

// Seal closes an open batch, so that no more items can be added. Sealing it again changes nothing. If a batch was cancelled
// before it was sealed, Seal returns [holdfast.ErrInvalidTransition].
func Seal(ctx context.Context, d holdfast.Doer, id string, o ...ActorOption) (Batch, error) {
	b, err := batchengine.Seal(ctx, store.DoerOf(d), batchengine.PublicID(id), actor(o))
	return publicBatch(b), err
}

func publicBatch(b batchengine.Batch) Batch {
	return Batch{ID: b.ID, Wallet: b.Wallet, Kind: b.Handler, Status: Status(b.Status), Counts: Counts(b.Counts()), Charged: b.Charged, Refunded: b.Refunded,
		MaxConcurrency: int(b.MaxConcurrency), Open: !b.Sealed && !b.Over() && !b.CancelRequested, CancelRequested: b.CancelRequested, Error: b.Error, CreatedAt: b.CreatedAt, UpdatedAt: b.UpdatedAt, ItemsDeletedAt: b.ItemsDeletedAt}
}
