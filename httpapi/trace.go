package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/httpapi/internal/observe"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
)

// watched is a request while it is served, with its entry in the route table. For a path below the
// API's base, exactly one of target and notFound is set.
type watched struct {
	*observe.Watch
	target   *route
	values   map[string]string
	notFound error
}

type watchKey struct{}

// watchOf returns the watch of a request, or an unused one.
func watchOf(ctx context.Context) *watched {
	if w, ok := ctx.Value(watchKey{}).(*watched); ok {
		return w
	}
	return &watched{Watch: new(observe.Watch)}
}

// watch finds the route of a request and starts its span.
func (a *API) watch(r *http.Request) (*watched, *http.Request) {
	w, pattern := new(watched), ""
	if _, plain := a.routes[r.URL.Path]; plain {
		pattern = r.URL.Path
	} else if strings.HasPrefix(r.URL.Path, table.Base) {
		if w.target, w.values, w.notFound = a.table.Find(r); w.target != nil {
			pattern = table.Base + w.target.Path
		}
	}
	var ctx context.Context
	w.Watch, ctx = observe.Begin(a.tracer, r, pattern)
	return w, r.WithContext(context.WithValue(ctx, watchKey{}, w))
}
