package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)

// ListBatches lists the batches of the workspace: those of a status, or all ("").
func (c *Client) ListBatches(ctx context.Context, status string) iter.Seq2[wire.Batch, error] {
	return pages(func(p Page) (wire.List[wire.Batch], error) { return c.ListBatchesPage(ctx, status, p) })
}

// ListBatchesPage lists a page of the batches of the workspace.
func (c *Client) ListBatchesPage(ctx context.Context, status string, p Page, o ...Option) (wire.List[wire.Batch], error) {
	r := list(p, "batches")
	r.set("status", status)
	return listed[wire.Batch](ctx, c, r, o)
}

// CreateBatch makes a batch of items that are paid from a wallet.
func (c *Client) CreateBatch(ctx context.Context, in wire.NewBatch, o ...Option) (wire.Batch, error) {
	return do[wire.Batch](ctx, c, newRequest(http.MethodPost, in, "batches"), o)
}

// GetBatch returns a batch.
func (c *Client) GetBatch(ctx context.Context, id string, o ...Option) (wire.Batch, error) {
	return do[wire.Batch](ctx, c, newRequest(http.MethodGet, nil, "batches", id), o)
}

// ListItems lists the items of a batch: those in a state, or all ("").
func (c *Client) ListItems(ctx context.Context, id, state string) iter.Seq2[wire.BatchItem, error] {
	return pages(func(p Page) (wire.List[wire.BatchItem], error) { return c.ListItemsPage(ctx, id, state, p) })
}

// ListItemsPage lists a page of the items of a batch.
func (c *Client) ListItemsPage(ctx context.Context, id, state string, p Page, o ...Option) (wire.List[wire.BatchItem], error) {
	r := list(p, "batches", id, "items")
	r.set("state", state)
	return listed[wire.BatchItem](ctx, c, r, o)
}

// AddItems adds items to a batch that is open. A page that is sent again adds nothing.
func (c *Client) AddItems(ctx context.Context, id string, in wire.AddItems, o ...Option) (wire.AddedItems, error) {
	return do[wire.AddedItems](ctx, c, newRequest(http.MethodPost, in, "batches", id, "items"), o)
}

// SealBatch says that a batch has all its items.
func (c *Client) SealBatch(ctx context.Context, id string, o ...Option) (wire.Batch, error) {
	return do[wire.Batch](ctx, c, newRequest(http.MethodPost, nil, "batches", id, "seal"), o)
}

// CancelBatch cancels a batch. The result is CANCELLED, or ACCEPTED while it is torn down.
func (c *Client) CancelBatch(ctx context.Context, id string, o ...Option) (wire.CancelledBatch, error) {
	return do[wire.CancelledBatch](ctx, c, newRequest(http.MethodPost, nil, "batches", id, "cancel"), o)
}

// FinalizeBatch accepts items that have succeeded: those named, or all.
func (c *Client) FinalizeBatch(ctx context.Context, id string, in wire.Finalize, o ...Option) (wire.Finalized, error) {
	return do[wire.Finalized](ctx, c, newRequest(http.MethodPost, in, "batches", id, "finalize"), o)
}

// ReadBatchEvents reads what happened to a batch.
func (c *Client) ReadBatchEvents(ctx context.Context, id string) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.ReadBatchEventsPage(ctx, id, p) })
}

// ReadBatchEventsPage reads a page of what happened to a batch.
func (c *Client) ReadBatchEventsPage(ctx context.Context, id string, p Page, o ...Option) (wire.List[wire.Event], error) {
	return listed[wire.Event](ctx, c, list(p, "batches", id, "events"), o)
}

// FollowBatch gives what happened to a batch, and what happens, until that is its end:
// "completed" or "cancelled" is the last. A connection that breaks is made anew.
func (c *Client) FollowBatch(ctx context.Context, id string) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		f := &following[wire.Event]{c: c, path: []string{"batches", id, "events"}, b: c.backoff()}
		f.yield = func(e wire.Event, err error) bool {
			return yield(e, err) && e.Name != "completed" && e.Name != "cancelled"
		}
		if err := f.run(ctx); err != nil {
			yield(wire.Event{}, err)
		}
	}
}
