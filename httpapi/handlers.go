package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/dispatch"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/secretref"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/webhook"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) handlerRoutes() {
	add(a, route{Method: http.MethodGet, Path: "handlers", ID: "listHandlers", Tag: "handlers", Summary: "List the workspace's handlers.", Roles: readers}, listHandlers)
	add(a, route{Method: http.MethodPut, Path: "handlers/{name}", ID: "putHandler", Tag: "handlers", Summary: "Declare a handler.", Roles: admins, Also: http.StatusCreated, Idempotency: table.InTx, Adds: []quota.Kind{quota.Definitions},
		More: "The secret of a new http handler is returned only once."}, putHandler)
	add(a, route{Method: http.MethodGet, Path: "handlers/{name}", ID: "getHandler", Tag: "handlers", Summary: "Show a handler.", Roles: readers,
		More: "The response does not include the secret."}, getHandler)
	add(a, route{Method: http.MethodDelete, Path: "handlers/{name}", ID: "deleteHandler", Tag: "handlers", Summary: "Delete a handler.", Roles: admins, Idempotency: table.InTx, Frees: true}, deleteHandler)
	add(a, route{Method: http.MethodPut, Path: "lifecycles/{name}", ID: "putLifecycle", Tag: "lifecycles", Summary: "Publish a lifecycle config. A dry run only validates it.", Roles: admins, Also: http.StatusCreated, Idempotency: table.UnderLease, Adds: []quota.Kind{quota.Definitions, quota.Storage},
		More: "The config is a JSON document."}, putLifecycle)
}

// badURL returns the error of a URL that may not be called.
func badURL(err error) error {
	message := err.Error()
	if f, ok := errors.AsType[*fault.Error](err); ok {
		message = f.Message
	}
	return fault.New(fault.Validation, "%s", message).With("pointer", "/url")
}

func handlerOf(h remotehandler.Handler) wire.Handler {
	return wire.Handler{Name: h.Name, Kind: h.Kind, URL: h.URL, Safety: h.Safety, OnUnknown: h.OnUnknown, TimeoutMs: wire.Ms(h.Timeout), Headers: h.Headers, SignedWith: h.SignedWith(), CreatedAt: shapes.At(h.CreatedAt),
		UpdatedAt: shapes.At(h.UpdatedAt)}
}

func listHandlers(c *call, in *paged) (wire.List[wire.Handler], error) {
	return list(c, *in, func(ctx context.Context, after string, limit int) ([]remotehandler.Handler, error) {
		return remotehandler.List(ctx, c.doer(), after, limit)
	}, handlerOf, func(h remotehandler.Handler) string { return h.Name })
}

type putHandlerIn struct {
	Name string `path:"name"`
	Body wire.PutHandler
}

func (in *putHandlerIn) repeats(c *call) (bool, error) {
	_, err := remotehandler.Get(c.ctx(), c.api.engine, in.Name)
	return exists(err)
}

func putHandler(c *call, in *putHandlerIn) (out wire.Handler, err error) {
	b := in.Body
	h := remotehandler.Handler{Name: in.Name, Kind: b.Kind, URL: b.URL, Safety: b.Safety, OnUnknown: b.OnUnknown, Timeout: span(b.TimeoutMs)}
	if h.OnUnknown == "" {
		h.OnUnknown = "hold"
	}
	if h.Headers, err = secretref.CheckHeaders(b.Headers); err != nil {
		return out, err
	}
	if err := h.Check(); err != nil {
		return out, err
	}
	if h.Kind == "http" {
		if _, err := c.api.policy.CheckURL(b.URL); err != nil {
			return out, badURL(err)
		}
	}
	made := ""
	if h.Kind == "worker" && b.Secret != "" {
		return out, fault.New(fault.Validation, "a worker handler must not have a secret, because workers authenticate with their API key: omit the secret").With("pointer", "/secret")
	}
	if h.Kind == "http" && b.Secret == "" {
		now, err := remotehandler.Get(c.ctx(), c.doer(), in.Name)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return out, err
		}
		if now.Secret == "" {
			made = webhook.NewSecret()
			b.Secret = made
		}
	} else if b.Secret != "" && !secretref.IsWhole(b.Secret) {
		if _, err := webhook.NewVerifier(b.Secret); err != nil {
			return out, err
		}
	}
	if b.Secret != "" {
		if c.api.box == nil {
			return out, dispatch.NoBox()
		}
		if h.Secret = b.Secret; !secretref.IsWhole(b.Secret) {
			h.Secret = c.api.box.Seal(b.Secret, "handler", c.key.Workspace, in.Name)
		}
	}
	var created bool
	err = c.update(func(ctx context.Context, tx *store.Tx) (err error) {
		if h.Kind != "worker" {
			if err := checkNoneWaiting(ctx, tx, in.Name); err != nil {
				return err
			}
		}
		if created, err = remotehandler.Put(ctx, tx, h); err != nil {
			return err
		}
		return c.checkSigner(ctx, tx, b.Secret)
	})
	if err != nil {
		return out, err
	}
	if created {
		c.status = http.StatusCreated
	}
	now, err := remotehandler.Get(c.ctx(), c.doer(), in.Name)
	out = handlerOf(now)
	c.storeAs = out
	out.Secret = made
	return out, err
}

// checkUnused refuses to delete a handler that reactions or lifecycles name.
func checkUnused(ctx context.Context, tx *store.Tx, name string) error {
	all, err := reactions.List(ctx, tx, "")
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.Options.Handler == name && !reactions.Reserved(x.Name) {
			return fault.New(fault.Conflict, "reaction %q uses handler %q: change the reaction's handler, or delete the reaction, first", x.Name, name).With("reaction", x.Name)
		}
	}
	names, err := lifecycleengine.PutNames(ctx, tx)
	if err != nil {
		return err
	}
	for workflow, used := range names {
		if slices.Contains(used, name) {
			return fault.New(fault.Conflict, "lifecycle %q uses handler %q: change the lifecycle's config first", workflow, name).With("lifecycle", workflow)
		}
	}
	return nil
}

// checkNoneWaiting refuses to remove a worker handler that operations wait for, because nothing else would
// process them.
func checkNoneWaiting(ctx context.Context, tx *store.Tx, name string) error {
	n, err := entities.Waiting(ctx, tx, entities.Workers(store.WorkspaceOf(ctx), name))
	if err == nil && n > 0 {
		err = fault.New(fault.Conflict, "handler %q has operations that wait for its workers or are leased to them (%d): wait until these operations end, or withdraw them, first", name, n).With("operations", n)
	}
	return err
}

// update runs f in the request's transaction, or in a new one.
func (c *call) update(f func(context.Context, *store.Tx) error) error {
	if tx, ok := c.doer().(*store.Tx); ok {
		return f(c.ctx(), tx)
	}
	if store.Provisional(c.doer()) {
		return fault.New(fault.Internal, "a request that is one command cannot open a transaction")
	}
	return c.api.engine.Update(c.ctx(), f)
}

type handlerIn struct {
	Name string `path:"name"`
}

func getHandler(c *call, in *handlerIn) (wire.Handler, error) {
	h, err := remotehandler.Get(c.ctx(), c.doer(), in.Name)
	return handlerOf(h), err
}

func deleteHandler(c *call, in *handlerIn) (*struct{}, error) {
	return nil, c.update(func(ctx context.Context, tx *store.Tx) error {
		if err := checkNoneWaiting(ctx, tx, in.Name); err != nil {
			return err
		}
		if err := checkUnused(ctx, tx, in.Name); err != nil {
			return err
		}
		gone, err := remotehandler.Delete(ctx, tx, in.Name)
		if err == nil && !gone {
			err = fault.New(fault.NotFound, "handler %q does not exist", in.Name)
		}
		return err
	})
}

type putLifecycleIn struct {
	Name   string         `path:"name"`
	DryRun bool           `query:"dryRun" doc:"Validate the config without storing it."`
	Body   table.Document `arg:"config"`
}

func (in *putLifecycleIn) repeats(c *call) (bool, error) {
	if in.DryRun {
		return true, nil
	}
	_, err := lifecycleengine.Named(c.ctx(), c.api.engine, in.Name)
	return exists(err)
}

// declare checks that every name is a handler. In development mode it declares an unknown one as a
// worker handler; otherwise it returns it as unknown.
func (c *call) declare(names []string) (declared, unknown []string, err error) {
	for _, name := range names {
		_, err := remotehandler.Get(c.ctx(), c.api.engine, name)
		switch {
		case err == nil:
			continue
		case fault.CodeOf(err) != fault.NotFound:
			return declared, unknown, err
		case !c.api.declares:
			unknown = append(unknown, name)
			continue
		}
		err = c.api.engine.Update(c.ctx(), func(ctx context.Context, tx *store.Tx) error {
			_, err := c.declareWorkers(ctx, tx, name)
			return err
		})
		if err != nil {
			return declared, unknown, err
		}
		declared = append(declared, name)
	}
	return declared, unknown, nil
}

// undeclaredWarning returns the warning about a handler that publishing declares in development mode.
func undeclaredWarning(name string) string {
	return fmt.Sprintf("handler %q is not declared: publishing stores it as a worker handler with no safety declared; declare it with PUT handlers/%s", name, name)
}

// declareWorkers declares a worker handler in development mode, and logs a warning.
func (c *call) declareWorkers(ctx context.Context, tx *store.Tx, name string) (remotehandler.Handler, error) {
	h := remotehandler.Handler{Name: name, Kind: "worker", OnUnknown: "hold"}
	_, err := remotehandler.Put(ctx, tx, h)
	if err == nil {
		c.api.log.Warn("stored an undeclared handler as a worker handler with no safety declared; to change the handler, use PUT handlers/"+name, "workspace", c.key.Workspace, "handler", name)
	}
	return h, err
}

func putLifecycle(c *call, in *putLifecycleIn) (wire.PutLifecycle, error) {
	var declared []string
	if c.api.declares && !in.DryRun {
		var err error
		if declared, _, err = c.declare(lifecycleengine.HandlersOf(in.Body.Text)); err != nil {
			return wire.PutLifecycle{}, err
		}
	}
	put, err := lifecycleengine.PutConfig(c.ctx(), c.api.engine, in.Name, in.Body.Text, in.DryRun)
	if err != nil {
		return wire.PutLifecycle{}, err
	}
	if put.Created {
		c.status = http.StatusCreated
	}
	out := wire.PutLifecycle{Name: in.Name, Revision: put.Revision, Warnings: []fault.Violation{}}
	for _, name := range declared {
		out.Warnings = append(out.Warnings, fault.Violation{Rule: "undeclared", Path: "/steps", Message: undeclaredWarning(name)})
	}
	for _, w := range put.Warnings {
		out.Warnings = append(out.Warnings, fault.Violation{Rule: w.Rule, Path: w.Path, Line: w.Line, Message: w.Message})
	}
	return out, nil
}
