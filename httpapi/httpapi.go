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
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/egress"
	"github.com/holdfast-go/holdfast/httpapi/internal/observe"
	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/httpapi/internal/webhooksender"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/claimtoken"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/run"
)

// Options says how an API works. The zero value is ready to use.
type Options struct {
	// Log takes what went wrong, and every request at the level debug; the
	// default is [slog.Default].
	Log *slog.Logger
	// Version is the program's, and is told by /readyz; the default is none.
	Version string
	// NoKeys asks nobody for an API key: everyone may do everything, in the
	// workspace that X-Holdfast-Workspace names. It is for development, on a
	// loopback address: what asks for another host is refused.
	NoKeys bool
	// Declare takes a handler that nobody has declared for one of workers, when it is
	// named for the first time, and warns. It is for development.
	Declare bool
	// Rate is how many requests a second a key may make that says nothing of
	// its own; 0 is as many as it likes.
	Rate int
	// Traces takes a span of every request; the default is the provider that the
	// program has set for all ([go.opentelemetry.io/otel.SetTracerProvider]), and
	// none where it has set none.
	Traces trace.TracerProvider
	// Metrics takes the API's metrics besides /metrics, which has them in any
	// case; the default is nothing.
	Metrics prometheus.Registerer
	// SecretKeys seal the secrets that calls are signed with, 32 bytes each: the
	// first seals, all of them open. Without one there are no webhooks.
	SecretKeys [][]byte
	// AllowPrivate are networks that users' URLs may name although they are not
	// public, over plain HTTP too; the default is none.
	AllowPrivate []netip.Prefix
}

// API answers requests with an engine. It is safe for concurrent use.
type API struct {
	hf       *holdfast.Engine
	engine   *engine.Engine // of hf
	log      *slog.Logger
	version  string
	routes   map[string]http.HandlerFunc
	table    table.Table[*call]
	openapi  func() []byte
	open     bool
	declares bool
	ring     *keys.Ring
	signers  claimtoken.Keyring
	limits   keys.Limits
	room     *room.Room
	origins  http.CrossOriginProtection
	metrics  *observe.Metrics
	tracer   trace.Tracer
	box      *seal.Box // nil without a key
	policy   egress.Policy
	hooks    *webhooksender.Service // nil without a key
	sources  *remote.Sources
	claiming lease.Slots // for claims under a key
	reading  lease.Slots // for streams of events
	handler  http.Handler
	stopping atomic.Bool
	stop     sync.Once
	closing  chan struct{} // closed by Stop: what waits for something ends
}

var _ http.Handler = (*API)(nil)

// New makes an API, before the engine runs: what the routes need done in the background is
// added to it. The engine stays the caller's, who closes it after the last request.
func New(hf *holdfast.Engine, o Options) *API {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	e := engine.Of(hf)
	a := &API{hf: hf, engine: e, log: o.Log, version: o.Version, open: o.NoKeys, declares: o.Declare, ring: keys.NewRing(e), limits: keys.Limits{Rate: o.Rate}, room: room.New(e.Alone),
		tracer: observe.TracerOf(o.Traces, o.Version), closing: make(chan struct{}), claiming: lease.NewSlots(2), reading: lease.NewSlots(4)}
	a.sources = remote.NewSources(
		lifecycleengine.Remote{Engine: e},
		&reactions.Remote{Engine: e, Log: o.Log, After: lifecycleengine.After{Engine: e}},
		&batchengine.Remote{Engine: e},
		&runengine.Remote{Engine: e, Executor: runengine.LocalOf(e).Executor, Node: e.Node(), Log: o.Log})
	_ = batch.Maintenance().Start(context.Background(), hf) // whoever looks after batches begins before the engine runs
	run.Keep(hf)                                            // and so does who looks after runs
	a.metrics = observe.NewMetrics(a.ownMetrics()...)
	a.metrics.Also(o.Metrics, o.Log)
	a.serveWebhooks(o)
	a.routes = map[string]http.HandlerFunc{
		"/healthz": a.healthz,
		"/readyz":  a.readyz,
		"/metrics": a.metricsPage(),

		table.Base + "openapi.json": a.describe,
	}
	a.addRoutes()
	a.openapi = sync.OnceValue(a.table.OpenAPI)
	e.Sweep("tokens", func(ctx context.Context) (int, error) { return claimtoken.Prune(ctx, e) }, wake.WorkKind{Kind: wake.OldToken})
	a.handler = a.guard(http.HandlerFunc(a.route))
	return a
}

// addRoutes fills the table.
func (a *API) addRoutes() {
	a.streamRoutes()
	a.reactionRoutes()
	a.lifecycleRoutes()
	a.claimRoutes()
	a.keyRoutes()
	a.webhookRoutes()
	a.handlerRoutes()
	a.taskRoutes()
	a.workspaceRoutes()
	a.walletRoutes()
	a.scopeRoutes()
	a.batchRoutes()
	a.definitionRoutes()
	a.runRoutes()
	a.approvalRoutes()
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Stop makes /readyz say that the process is stopping, so that nobody sends new
// work, and ends what only waits: long polls and streams of events. Everything else
// is answered as before. Stopping twice is harmless.
func (a *API) Stop() {
	a.stopping.Store(true)
	a.stop.Do(func() { close(a.closing) })
}

// route finds the handler of a path. A [http.ServeMux] would answer a wrong
// method and an untidy path by itself, and not with a problem.
func (a *API) route(w http.ResponseWriter, r *http.Request) {
	h, ok := a.routes[r.URL.Path]
	err := a.foreign(r)
	switch {
	case err != nil:
		a.refuseHere(w, r, err)
	case !ok && strings.HasPrefix(r.URL.Path, table.Base):
		a.serve(w, r)
	case !ok:
		a.refuseHere(w, r, table.NothingHere())
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		a.refuseHere(w, r, fault.New(fault.MethodNotAllowed, "this path takes GET and HEAD"))
	default:
		h(w, r)
	}
}

// refuseHere refuses what no route has taken.
func (a *API) refuseHere(w http.ResponseWriter, r *http.Request, err error) {
	watchOf(r.Context()).Refused(err)
	a.refuse(w, r, err)
}

// describe gives the OpenAPI document. It tells nothing that the docs do not.
func (a *API) describe(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, r, http.StatusOK, "application/json", json.RawMessage(a.openapi()))
}
