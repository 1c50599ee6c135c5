package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)

// CreateKey makes an API key. Its secret is told this once: under a [Key] that was
// used before it is empty.
func (c *Client) CreateKey(ctx context.Context, in wire.NewKey, o ...Option) (wire.CreatedKey, error) {
	return do[wire.CreatedKey](ctx, c, newRequest(http.MethodPost, in, "keys"), o)
}

// ListKeys lists the API keys of the workspace.
func (c *Client) ListKeys(ctx context.Context) iter.Seq2[wire.Key, error] {
	return pages(func(p Page) (wire.List[wire.Key], error) { return c.ListKeysPage(ctx, p) })
}

// ListKeysPage lists a page of the API keys of the workspace.
func (c *Client) ListKeysPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Key], error) {
	return listed[wire.Key](ctx, c, list(p, "keys"), o)
}

// GetKey returns an API key, without its secret.
func (c *Client) GetKey(ctx context.Context, id string, o ...Option) (wire.Key, error) {
	return do[wire.Key](ctx, c, newRequest(http.MethodGet, nil, "keys", id), o)
}

// RotateKey replaces a key by another with the same rights. Its secret is told this
// once.
func (c *Client) RotateKey(ctx context.Context, id string, in wire.RotateKey, o ...Option) (wire.CreatedKey, error) {
	return do[wire.CreatedKey](ctx, c, newRequest(http.MethodPost, in, "keys", id, "rotate"), o)
}

// RevokeKey ends an API key for good.
func (c *Client) RevokeKey(ctx context.Context, id string, o ...Option) (wire.Key, error) {
	return do[wire.Key](ctx, c, newRequest(http.MethodDelete, nil, "keys", id), o)
}
