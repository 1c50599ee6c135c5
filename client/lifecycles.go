package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)

// ListLifecycles lists the lifecycles of the workspace.
func (c *Client) ListLifecycles(ctx context.Context) iter.Seq2[wire.Lifecycle, error] {
	return pages(func(p Page) (wire.List[wire.Lifecycle], error) { return c.ListLifecyclesPage(ctx, p) })
}

// ListLifecyclesPage lists a page of the lifecycles of the workspace.
func (c *Client) ListLifecyclesPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Lifecycle], error) {
	return listed[wire.Lifecycle](ctx, c, list(p, "lifecycles"), o)
}

// GetLifecycle returns the config of a lifecycle.
func (c *Client) GetLifecycle(ctx context.Context, name string, o ...Option) (wire.Lifecycle, error) {
	return do[wire.Lifecycle](ctx, c, newRequest(http.MethodGet, nil, "lifecycles", name), o)
}

// DrawLifecycle draws a lifecycle, as svg ("") or mermaid.
func (c *Client) DrawLifecycle(ctx context.Context, name, format string, o ...Option) (wire.Diagram, error) {
	r := newRequest(http.MethodGet, nil, "lifecycles", name, "diagram")
	if format != "" {
		r.query.Set("format", format)
	}
	return do[wire.Diagram](ctx, c, r, o)
}

// CreateEntity makes an entity. Without an id and without a key, each call makes
// another.
func (c *Client) CreateEntity(ctx context.Context, lifecycle string, in wire.NewEntity, o ...Option) (wire.Entity, error) {
	return do[wire.Entity](ctx, c, newRequest(http.MethodPost, in, "lifecycles", lifecycle, "entities"), o)
}

// EntityFilter chooses entities.
type EntityFilter struct{ Status string }

// ListEntities lists the entities of a lifecycle.
func (c *Client) ListEntities(ctx context.Context, lifecycle string, f EntityFilter) iter.Seq2[wire.Entity, error] {
	return pages(func(p Page) (wire.List[wire.Entity], error) { return c.ListEntitiesPage(ctx, lifecycle, f, p) })
}

// ListEntitiesPage lists a page of the entities of a lifecycle.
func (c *Client) ListEntitiesPage(ctx context.Context, lifecycle string, f EntityFilter, p Page, o ...Option) (wire.List[wire.Entity], error) {
	return listed[wire.Entity](ctx, c, list(p, "lifecycles", lifecycle, "entities").set("status", f.Status), o)
}

// GetEntity returns an entity.
func (c *Client) GetEntity(ctx context.Context, lifecycle, id string, o ...Option) (wire.Entity, error) {
	return do[wire.Entity](ctx, c, newRequest(http.MethodGet, nil, "lifecycles", lifecycle, "entities", id), o)
}

// GetHistory tells what happened to an entity, the first event first.
func (c *Client) GetHistory(ctx context.Context, lifecycle, id string) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.GetHistoryPage(ctx, lifecycle, id, p) })
}

// GetHistoryPage tells a page of what happened to an entity.
func (c *Client) GetHistoryPage(ctx context.Context, lifecycle, id string, p Page, o ...Option) (wire.List[wire.Event], error) {
	return listed[wire.Event](ctx, c, list(p, "lifecycles", lifecycle, "entities", id, "history"), o)
}

// GetAttempts tells who was refused on an entity, the last first. It is one page.
func (c *Client) GetAttempts(ctx context.Context, lifecycle, id string, o ...Option) (wire.List[wire.Attempt], error) {
	return listed[wire.Attempt](ctx, c, list(Page{}, "lifecycles", lifecycle, "entities", id, "attempts"), o)
}

// FireStep does a step of an entity. Its outcome may be pending or uncertain: then it
// goes on without the caller, and the same call under the same [Key] tells later what
// became of it.
func (c *Client) FireStep(ctx context.Context, lifecycle, id, step string, in wire.Fire, o ...Option) (wire.Fired, error) {
	return do[wire.Fired](ctx, c, newRequest(http.MethodPost, in, "lifecycles", lifecycle, "entities", id, "steps", step), o)
}
