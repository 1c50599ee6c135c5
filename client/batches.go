package client

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)

// AcceptItems finalizes the charges for the succeeded items that have these keys. Without keys it accepts none.
func (c *Client) AcceptItems(ctx context.Context, id string, keys []string, o ...Option) (wire.Accepted, error) {
	keys = append([]string{}, keys...) // the server takes null to mean all
	return c.accept(ctx, id, wire.AcceptItems{Items: &keys}, o)
}

// AcceptAllItems finalizes the charges for all succeeded items of a batch.
func (c *Client) AcceptAllItems(ctx context.Context, id string, o ...Option) (wire.Accepted, error) {
	return c.accept(ctx, id, wire.AcceptItems{}, o)
}

func (c *Client) accept(ctx context.Context, id string, in wire.AcceptItems, o []Option) (wire.Accepted, error) {
	return do[wire.Accepted](ctx, c, newRequest(http.MethodPost, in, "batches", id, "finalize"), o)
}
