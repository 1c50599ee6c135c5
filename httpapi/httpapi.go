// Package httpapi is the door over HTTP.
//
//	api := httpapi.New(engine, httpapi.Options{})
//	err := api.Serve(ctx, listener, 30*time.Second)
//
// An [API] is also an [http.Handler], for a program that has a server already.
//
// Every answer carries a request id, the caller's own or a new one. A refusal is
// an application/problem+json document with the code of the [fault.Error] that
// it tells; what went wrong inside stands in the log under the same id, and not
// in the answer.
package httpapi

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
)

// Options says how an API works. The zero value is ready to use.
type Options struct {
	// Log takes what went wrong, and every request at the level debug; the
	// default is [slog.Default].
	Log *slog.Logger
	// Version is the program's, and is told by /readyz; the default is none.
	Version string
}

// API answers requests with an engine. It is safe for concurrent use.
type API struct {
	engine   *holdfast.Engine
	log      *slog.Logger
	version  string
	routes   map[string]http.HandlerFunc
	handler  http.Handler
	stopping atomic.Bool
}

var _ http.Handler = (*API)(nil)

// New makes an API. The engine stays the caller's, who closes it after the last
// request.
func New(engine *holdfast.Engine, o Options) *API {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	a := &API{engine: engine, log: o.Log, version: o.Version}
	a.routes = map[string]http.HandlerFunc{
		"/healthz": a.healthz,
		"/readyz":  a.readyz,
	}
	a.handler = a.guard(http.HandlerFunc(a.route))
	return a
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Stop makes /readyz say that the process is stopping, so that nobody sends new
// work. Everything else is answered as before. Stopping twice is harmless.
func (a *API) Stop() { a.stopping.Store(true) }

// route finds the handler of a path. A [http.ServeMux] would answer a wrong
// method and an untidy path by itself, and not with a problem.
func (a *API) route(w http.ResponseWriter, r *http.Request) {
	h, ok := a.routes[r.URL.Path]
	switch {
	case !ok:
		a.refuse(w, r, fault.New(fault.NotFound, "there is nothing at this path"))
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		a.refuse(w, r, fault.New(fault.MethodNotAllowed, "this path takes GET and HEAD"))
	default:
		h(w, r)
	}
}
