package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)

// CreateWebhook has events sent to a URL. Its secret is told this once: under a [Key]
// that was used before it is empty.
func (c *Client) CreateWebhook(ctx context.Context, in wire.NewWebhook, o ...Option) (wire.CreatedWebhook, error) {
	return do[wire.CreatedWebhook](ctx, c, newRequest(http.MethodPost, in, "webhooks"), o)
}

// ListWebhooks lists the webhooks of the workspace.
func (c *Client) ListWebhooks(ctx context.Context) iter.Seq2[wire.Webhook, error] {
	return pages(func(p Page) (wire.List[wire.Webhook], error) { return c.ListWebhooksPage(ctx, p) })
}

// ListWebhooksPage lists a page of the webhooks of the workspace.
func (c *Client) ListWebhooksPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Webhook], error) {
	return listed[wire.Webhook](ctx, c, list(p, "webhooks"), o)
}

// GetWebhook returns a webhook, without its secret.
func (c *Client) GetWebhook(ctx context.Context, id string, o ...Option) (wire.Webhook, error) {
	return do[wire.Webhook](ctx, c, newRequest(http.MethodGet, nil, "webhooks", id), o)
}

// RotateWebhook gives a webhook another secret, which is told this once.
func (c *Client) RotateWebhook(ctx context.Context, id string, in wire.RotateWebhook, o ...Option) (wire.CreatedWebhook, error) {
	return do[wire.CreatedWebhook](ctx, c, newRequest(http.MethodPost, in, "webhooks", id, "rotate"), o)
}

// DeleteWebhook removes a webhook.
func (c *Client) DeleteWebhook(ctx context.Context, id string, o ...Option) error {
	_, err := c.answer(ctx, newRequest(http.MethodDelete, nil, "webhooks", id).with(o))
	return err
}
