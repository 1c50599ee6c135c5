package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)

// ListWorkspaces lists the workspaces: the key's own or, where no keys are asked for,
// all.
func (c *Client) ListWorkspaces(ctx context.Context) iter.Seq2[wire.Workspace, error] {
	return pages(func(p Page) (wire.List[wire.Workspace], error) { return c.ListWorkspacesPage(ctx, p) })
}

// ListWorkspacesPage lists a page of the workspaces.
func (c *Client) ListWorkspacesPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Workspace], error) {
	return listed[wire.Workspace](ctx, c, list(p, "workspaces"), o)
}

// CreateWorkspace makes a workspace, where no keys are asked for.
func (c *Client) CreateWorkspace(ctx context.Context, in wire.NewWorkspace, o ...Option) (wire.Workspace, error) {
	return do[wire.Workspace](ctx, c, newRequest(http.MethodPost, in, "workspaces"), o)
}
