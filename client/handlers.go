package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)

// PutLifecycle puts a config into force, as JSON; with dryRun it is only judged.
func (c *Client) PutLifecycle(ctx context.Context, name string, config json.RawMessage, dryRun bool, o ...Option) (wire.PutLifecycle, error) {
	r := newRequest(http.MethodPut, config, "lifecycles", name)
	if dryRun {
		r = r.set("dryRun", "true")
	}
	return do[wire.PutLifecycle](ctx, c, r, o)
}

// PutHandler declares a handler. The secret of a new one over HTTP is told this once.
func (c *Client) PutHandler(ctx context.Context, name string, in wire.PutHandler, o ...Option) (wire.Handler, error) {
	return do[wire.Handler](ctx, c, newRequest(http.MethodPut, in, "handlers", name), o)
}

// ListHandlers lists the handlers of the workspace.
func (c *Client) ListHandlers(ctx context.Context) iter.Seq2[wire.Handler, error] {
	return pages(func(p Page) (wire.List[wire.Handler], error) { return c.ListHandlersPage(ctx, p) })
}

// ListHandlersPage lists a page of the handlers of the workspace.
func (c *Client) ListHandlersPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Handler], error) {
	return listed[wire.Handler](ctx, c, list(p, "handlers"), o)
}

// GetHandler returns a handler, without its secret.
func (c *Client) GetHandler(ctx context.Context, name string, o ...Option) (wire.Handler, error) {
	return do[wire.Handler](ctx, c, newRequest(http.MethodGet, nil, "handlers", name), o)
}

// DeleteHandler takes a handler away.
func (c *Client) DeleteHandler(ctx context.Context, name string, o ...Option) error {
	_, err := c.answer(ctx, newRequest(http.MethodDelete, nil, "handlers", name).with(o))
	return err
}

// ClaimTasks takes what there is to do for handlers, or waits for something to come. Without
// a [Key] it has one of its own, so that it is sent again where its answer was lost, and is
// given the same tasks. A task counts as received once it is renewed, journals an effect or is ended.
func (c *Client) ClaimTasks(ctx context.Context, in wire.ClaimTasks, o ...Option) (wire.Tasks, error) {
	return do[wire.Tasks](ctx, c, newRequest(http.MethodPost, in, "tasks", "claim"), ownKey(o))
}

// ownKey gives a call a key of its own, unless it has one.
func ownKey(o []Option) []Option { return append([]Option{Key(rand.Text())}, o...) }

// CompleteTask ends a task that is done. Completed again under the same epoch, it
// answers the same.
func (c *Client) CompleteTask(ctx context.Context, id string, in wire.CompleteTask, o ...Option) (wire.EndedTask, error) {
	return do[wire.EndedTask](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "complete"), o)
}

// FailTask ends a task that is not done.
func (c *Client) FailTask(ctx context.Context, id string, in wire.FailTask, o ...Option) (wire.EndedTask, error) {
	return do[wire.EndedTask](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "fail"), o)
}

// RenewTask extends the hold of a task.
func (c *Client) RenewTask(ctx context.Context, id string, in wire.Renew, o ...Option) (wire.Renewed, error) {
	return do[wire.Renewed](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "renew"), o)
}

// JournalTaskEffect begins an effect of a task, or says what became of it.
func (c *Client) JournalTaskEffect(ctx context.Context, id string, in wire.EffectCall, o ...Option) (wire.EffectState, error) {
	return do[wire.EffectState](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "effects"), o)
}
