package httpapi

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) workspaceRoutes() {
	add(a, route{Method: http.MethodGet, Path: "workspaces", ID: "listWorkspaces", Tag: "workspaces", Summary: "List the API key's workspace or, on a server without API keys, all workspaces.", Roles: readers}, listWorkspaces)
	add(a, route{Method: http.MethodPost, Path: "workspaces", ID: "createWorkspace", Tag: "workspaces", Summary: "Create a workspace on a server without API keys. On any other server, a workspace is created together with its first API key.",
		Roles: admins, Status: http.StatusCreated, Also: http.StatusOK, Idempotency: table.UnderLease}, createWorkspace)
}

// listWorkspaces lists the workspaces that the caller may see: a key sees only its own.
func listWorkspaces(c *call, in *paged) (wire.List[wire.Workspace], error) {
	p, err := c.page(*in)
	if err != nil {
		return wire.List[wire.Workspace]{}, err
	}
	if !c.api.noKeys {
		found, err := c.workspace(c.key.Workspace)
		if err != nil || p.after >= c.key.Workspace {
			found = nil
		}
		return listed(c, found, ""), err
	}
	return list(c, *in, func(ctx context.Context, after string, limit int) ([]store.Workspace, error) {
		return store.Workspaces(ctx, c.doer(), after, limit)
	}, func(w store.Workspace) wire.Workspace {
		return wire.Workspace{Name: w.Name, CreatedAt: shapes.At(w.CreatedAt)}
	}, func(w store.Workspace) string { return w.Name })
}

// workspace returns a workspace in a list, or an empty list if it does not exist.
func (c *call) workspace(name string) ([]wire.Workspace, error) {
	w, err := store.WorkspaceNamed(c.ctx(), c.doer(), name)
	if err != nil || w == nil {
		return nil, err
	}
	return []wire.Workspace{{Name: w.Name, CreatedAt: shapes.At(w.CreatedAt)}}, nil
}

type createWorkspaceIn struct{ Body wire.NewWorkspace }

func createWorkspace(c *call, in *createWorkspaceIn) (wire.Workspace, error) {
	if !c.api.noKeys && in.Body.Name != c.key.Workspace {
		return wire.Workspace{}, fault.New(fault.Forbidden, "an API key or token can access only its own workspace: to create another workspace, create its first API key on the server (holdfast keys create --workspace)")
	}
	if err := store.CheckWorkspace(in.Body.Name); err != nil {
		return wire.Workspace{}, err
	}
	was, err := c.workspace(in.Body.Name)
	if err != nil {
		return wire.Workspace{}, err
	}
	if len(was) == 1 {
		c.status = http.StatusOK
		return was[0], nil
	}
	if _, err := c.api.engine.Partition(holdfast.InWorkspace(c.ctx(), in.Body.Name), store.Write); err != nil {
		return wire.Workspace{}, err
	}
	now, err := c.workspace(in.Body.Name)
	if err == nil && len(now) == 0 {
		err = fault.New(fault.Unavailable, "the workspace was created but cannot be read yet: try again").AsRetryable()
	}
	if err != nil {
		return wire.Workspace{}, err
	}
	return now[0], nil
}
