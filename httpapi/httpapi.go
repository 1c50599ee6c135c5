// Package httpapi serves the HTTP API of an engine.
//
//	api := httpapi.New(httpapi.Options{})
//	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{}, api)
//	go hf.Run(ctx)
//	err = api.Serve(ctx, listener, 30*time.Second)
//
// An [API] is also an [http.Handler], for programs that already have a server.
//
// Every response carries a request id: the caller's or a generated one. An error response is an
// application/problem+json document with the code of the [fault.Error]. Internal causes are only
// logged, under the same request id.
package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/dispatch"
	"github.com/holdfast-go/holdfast/httpapi/internal/egress"
	"github.com/holdfast-go/holdfast/httpapi/internal/observe"
	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/httpapi/internal/webhooksender"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/bulk"
	"github.com/holdfast-go/holdfast/internal/claimtoken"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/live"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/run"
)

// Options configures an API. The zero value is ready to use.
type Options struct {
	// Log receives failures, and every request at debug level. The default is [slog.Default].
	Log *slog.Logger
	// Version is the program's version, reported by /readyz. The default is none.
	Version string
	// NoKeys disables API keys: every caller is an admin of the workspace that X-Holdfast-Workspace names. Use it only
	// for development on a loopback address; requests whose Host is not a loopback name are refused.
	NoKeys bool
	// Declare stores an undeclared handler as a worker handler when a request first names it, and logs a warning. Use
	// it only for development.
	Declare bool
	// Rate is the rate limit for API keys that have no limit of their own, in requests per second.
	// 0 means unlimited.
	Rate int
	// Quotas limits what workspaces may use, by the name of the workspace. "*" is for all workspaces that are not listed, and for what they do not
	// set. The default is [Quota] without settings for all.
	Quotas map[string]Quota
	// OIDC makes the API accept the tokens of an OpenID Connect issuer, beside API keys. The default is none.
	OIDC *OIDC
	// AllowFrom lists the networks from which requests are accepted. Others are refused on all paths but /healthz and /readyz. The default is
	// all networks.
	AllowFrom []netip.Prefix
	// TrustedProxies lists the networks of proxies whose X-Forwarded-For header tells the address of the client, for AllowFrom and for API
	// keys that are restricted to networks. The default is none: the address is that of the connection.
	TrustedProxies []netip.Prefix
	// Traces receives a span for every request. The default is the global provider
	// ([go.opentelemetry.io/otel.SetTracerProvider]).
	Traces trace.TracerProvider
	// Metrics receives the API's metrics in addition to /metrics. The default is nil.
	Metrics prometheus.Registerer
	// SecretKeys are the keys, 32 bytes each, that encrypt named secrets and the secrets that sign outgoing calls. The first key
	// encrypts; all keys decrypt. Without a key, neither
	// secrets nor webhooks can be created.
	SecretKeys [][]byte
	// AllowPrivate lists private networks that the URLs of webhooks and handlers may reach, including over plain
	// HTTP. The default is none.
	AllowPrivate []netip.Prefix
	// EntityTables are your own tables in which published lifecycles may have their entities, by the names that their
	// configs use as entity_table. The default is none. A table that cannot be used makes [holdfast.Open] fail.
	EntityTables map[string]EntityTable
	// Dashboard serves GET requests for all paths that the API does not have: pass web.Handler(). The default is none,
	// and such requests are refused.
	Dashboard http.Handler
}

// EntityTable is a table of yours that has the entities of a published lifecycle. Entities are rows, which you insert.
type EntityTable struct {
	// Table is the name of the table, which may be schema.name. The default is the name in [Options].
	Table string
	// ID, Status and Version are columns. The defaults are id, status and version.
	ID, Status, Version string
	// WorkspaceColumn is the column with the workspace of a row. Each workspace can use its own rows.
	WorkspaceColumn string
	// Workspace is the one workspace that can use a table without WorkspaceColumn. The default is "default".
	Workspace string
	// Write lists further columns that handlers, and callers that settle a claim, may set. The default is none.
	Write []string
}

// tables returns the tables in the form of the engine.
func (o Options) tables() map[string]lifecycleengine.EntityTable {
	all := make(map[string]lifecycleengine.EntityTable, len(o.EntityTables))
	for name, t := range o.EntityTables {
		all[name] = lifecycleengine.EntityTable{Write: t.Write, Table: lifecycleconfig.Table{Name: cmp.Or(t.Table, name), ID: t.ID, Status: t.Status, Version: t.Version,
			Workspace: t.WorkspaceColumn, InWorkspace: t.Workspace}}
	}
	return all
}

// API serves HTTP requests for an engine. It is a [holdfast.Part]: pass it to [holdfast.Open]. It is safe for concurrent use.
type API struct {
	o        Options
	hf       *holdfast.Engine
	engine   *engine.Engine // of hf
	log      *slog.Logger
	version  string
	routes   map[string]http.HandlerFunc
	table    table.Table[*call]
	openapi  func() []byte
	noKeys   bool
	declares bool
	ring     *keys.Ring
	tokens   *tokens // nil without Options.OIDC
	signers  claimtoken.Keyring
	limits   keys.Limits
	quotas   *quota.Quotas
	room     *room.Room
	origins  http.CrossOriginProtection
	metrics  *observe.Metrics
	backlog  *backlogCollector
	tracer   trace.Tracer
	box      *seal.Box // nil without secret keys
	policy   egress.Policy
	hooks    *webhooksender.Service // nil without secret keys
	sources  *remote.Sources
	claiming lease.Slots // claims with an idempotency key
	reading  lease.Slots // reads of event streams
	live     *live.Hub
	handler  http.Handler
	stopping atomic.Bool
	stop     sync.Once
	closing  chan struct{}   // closed by Stop: ends long polls and event streams
	life     context.Context // ends with closing
	end      context.CancelFunc

	refusalLogs *rate.Limiter // of lines about refused tokens and addresses
	quotaLogs   *rate.Limiter // of lines about quotas
}

var (
	_ http.Handler  = (*API)(nil)
	_ holdfast.Part = (*API)(nil)
)

// New creates an API. It serves requests once it is registered with an engine.
func New(o Options) *API {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	life, end := context.WithCancel(context.Background())
	return &API{o: o, life: life, end: end, log: o.Log, version: o.Version, noKeys: o.NoKeys, declares: o.Declare, limits: keys.Limits{Rate: o.Rate}, policy: egress.Policy{Allow: o.AllowPrivate},
		tracer: observe.TracerOf(o.Traces, o.Version), closing: make(chan struct{}), refusalLogs: rate.NewLimiter(refusalsLogged, 2*refusalsLogged), quotaLogs: rate.NewLimiter(refusalsLogged, 2*refusalsLogged), claiming: lease.NewSlots(2), reading: lease.NewSlots(4)}
}

// Register makes the engine serve the API: lifecycles that are published through it, handlers that are URLs, HTTP calls
// of runs, and webhooks. [holdfast.Open] calls it. If SecretKeys, Rate or OIDC are invalid, the error is [holdfast.ErrValidation]. An
// engine may have several APIs if their SecretKeys, AllowPrivate and EntityTables are the same. The caller owns the engine and closes it
// after the last request.
func (a *API) Register(ctx context.Context, hf *holdfast.Engine) error {
	if a.hf != nil {
		return fault.New(fault.Conflict, "this API is already registered with an engine: create another one with httpapi.New")
	}
	o, e := a.o, engine.Of(hf)
	if o.Rate < 0 {
		return fault.New(fault.Validation, "Rate must not be negative, got %d: 0 means no limit", o.Rate)
	}
	limits, err := o.limits()
	if err != nil {
		return err
	}
	if err := a.openBox(); err != nil {
		return err
	}
	if err := a.acceptTokens(ctx); err != nil {
		return err
	}
	if err := (dispatch.Part{SecretKeys: o.SecretKeys, Policy: a.policy, Tables: o.tables()}).Register(ctx, hf); err != nil {
		return err
	}
	a.hf, a.engine, a.ring, a.room = hf, e, keys.NewRing(e), room.New(e.SingleWorkspace)
	a.quotas = quota.New(a.life, e, o.Log, limits)
	if o.Version != "" {
		e.SetVersion(o.Version)
	}
	a.sources = remote.NewSources(
		lifecycleengine.Remote{Engine: e},
		&reactions.Remote{Engine: e, Log: o.Log, Tallies: reactions.TalliesOf(e), After: lifecycleengine.After{Engine: e}},
		&batchengine.Remote{Engine: e, Cleanup: batchengine.CleanupOf(e)},
		&runengine.Remote{Engine: e, Executor: runengine.LocalOf(e).Executor, Node: e.Node(), Log: o.Log})
	// Maintenance must be registered before the engine runs. Neither returns an error.
	_ = batch.Maintenance().Register(ctx, hf)
	_ = run.Maintenance().Register(ctx, hf)
	bulk.Register(e)
	a.metrics = observe.NewMetrics(a.ownMetrics()...)
	a.metrics.Also(o.Metrics, o.Log)
	a.serveWebhooks()
	a.routes = map[string]http.HandlerFunc{
		"/healthz": a.healthz,
		"/readyz":  a.readyz,
		"/metrics": a.metricsPage(),

		table.Base + "openapi.json": a.describe,
	}
	a.addRoutes()
	a.openapi = sync.OnceValue(a.table.OpenAPI)
	e.Sweep("tokens", func(ctx context.Context) (int, error) {
		n, err := claimtoken.Prune(ctx, e)
		sessions, failed := keys.PruneSessions(ctx, e)
		return n + sessions, errors.Join(err, failed)
	}, wake.WorkKind{Kind: wake.OldToken}, wake.WorkKind{Kind: wake.OldSession})
	e.Sweep("key uses", func(ctx context.Context) (int, error) { return 0, a.ring.RecordUses(ctx) })
	a.handler = a.guard(http.HandlerFunc(a.route))
	return nil
}

// addRoutes fills the route table.
func (a *API) addRoutes() {
	a.streamRoutes()
	a.reactionRoutes()
	a.lifecycleRoutes()
	a.claimRoutes()
	a.keyRoutes()
	a.sessionRoutes()
	a.webhookRoutes()
	a.handlerRoutes()
	a.secretRoutes()
	a.taskRoutes()
	a.workspaceRoutes()
	a.walletRoutes()
	a.scopeRoutes()
	a.batchRoutes()
	a.definitionRoutes()
	a.runRoutes()
	a.approvalRoutes()
	a.timelineRoutes()
	a.inboxRoutes()
	a.auditRoutes()
	a.requestRoutes()
	a.overviewRoutes()
	a.liveRoutes()
	a.bulkRoutes()
	a.findRoutes()
	a.quotaRoutes()
}

// ServeHTTP serves one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.handler == nil {
		a.refuse(w, r, fault.New(fault.Unavailable, "the API has no engine: pass it to holdfast.Open"))
		return
	}
	a.handler.ServeHTTP(w, r)
}

// Stop makes /readyz report that the process is stopping, so that load balancers send no new work, and ends
// long polls and event streams. Other requests are still served. You may call Stop more than once.
func (a *API) Stop() {
	a.stopping.Store(true)
	a.stop.Do(func() { close(a.closing); a.end() })
}

// route dispatches a request by path. [http.ServeMux] is not used because its own responses to a
// wrong method or an unclean path are not problem documents.
func (a *API) route(w http.ResponseWriter, r *http.Request) {
	h, ok := a.routes[r.URL.Path]
	err := cmp.Or(a.checkAddr(r), a.checkOrigin(r))
	switch {
	case err != nil:
		a.refuseHere(w, r, err)
	case !ok && strings.HasPrefix(r.URL.Path, table.Base):
		a.serve(w, r)
	case !ok && a.o.Dashboard != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		a.o.Dashboard.ServeHTTP(w, r)
	case !ok:
		a.refuseHere(w, r, table.NothingHere())
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		a.refuseHere(w, r, fault.New(fault.MethodNotAllowed, "this path supports only GET and HEAD"))
	default:
		h(w, r)
	}
}

// refuseHere refuses a request before a route has handled it.
func (a *API) refuseHere(w http.ResponseWriter, r *http.Request, err error) {
	watchOf(r.Context()).Refused(err)
	a.refuse(w, r, err)
}

// describe serves the OpenAPI document. It needs no API key, because the document is public in the
// docs.
func (a *API) describe(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, r, http.StatusOK, "application/json", json.RawMessage(a.openapi()))
}
