// Package idem provides net/http middleware that makes a program's own handlers idempotent: a request that is sent
// twice is not executed twice.
//
//	once := idem.Middleware(hf, idem.Options{User: userID})
//	mux.Handle("POST /orders", once(orders))
//
// A client that sends a request with an Idempotency-Key can send it again with the same key if it got no response. The
// handler runs for the first request. Later requests get the response of the first one, with the header
// Idempotency-Replayed: true.
//
//   - The same key with a different request (method, path and query, body) is refused: 422, KEY_MISMATCH. Members of
//     a JSON body may be in another order.
//   - While the first request is in flight, others get 409, KEY_IN_FLIGHT, with Retry-After.
//   - A response with a status of 400 or more is not stored, and the key is released: a refused request is assumed to
//     have changed nothing. If an operation that the handler fired is in progress or has taken effect, the key stays
//     with this request, which may be sent again.
//   - Responses are stored for [Options].TTL, 24 hours by default, with the headers that the handler set, except
//     Set-Cookie and the connection headers (Connection and the headers it names, Content-Length, Date, Keep-Alive,
//     Trailer, Transfer-Encoding, Upgrade …). Headers that are set before the handler runs, such as a request id, are
//     not stored: each replay has its own.
//   - Keys belong to the user that [Options].User returns: keys of different users never collide.
//   - GET, HEAD, OPTIONS and TRACE requests, and requests without a key, pass through unchanged.
//
// # Guarantees
//
// While the handler runs, it holds a lease on its key. The lease lasts for [Options].Lease and is renewed. If the
// process crashes, the key can be used again once the lease has expired, and then the handler runs again. For a
// handler that writes without Holdfast, this is at-least-once execution. The same applies to a handler that panics,
// whose key is released, and to a handler that is cut off from the database for longer than its lease: its context
// ends. If that handler continues nevertheless and another execution has stored a response in the meantime, its
// client gets the stored response, so that a key has only one response. If there is none, the client gets the
// handler's own response, with the header Idempotency-Answer: unrecorded.
//
// A handler can do better than at-least-once in two ways. The first is [Commit], which commits the writes of the
// handler in the same transaction as the record that the request is done, so they are written only once, even after a
// crash. A handler that has lost its lease on the key cannot commit. Use Commit for everything that takes a
// [holdfast.Doer]: an append, a new entity, a credit, a batch, the start of a run.
//
// The second is a step that the handler fires or claims (package lifecycle) under the request's context: the step
// belongs to the key, as it does over HTTP. A handler that runs again gets the outcome of the operation that it began
// before: done, with the current entity; failed; pending or uncertain; or KEY_IN_FLIGHT while it is in flight. An
// operation that was released without taking effect is begun again. Several steps of one handler are identified by
// lifecycle, entity, step and requester; repetitions of the same step, by their order. A handler that has lost its
// lease on the key cannot begin a step. A step that an action fires in turn belongs to that action's operation, not to
// the key. Fire steps before [Commit] and before the handler returns: after that, a step is refused, because no retry
// would execute it.
//
// A response that was not stored is replayed as 204 No Content, with the known headers except those that describe the
// body. The header Idempotency-Answer gives the reason: "lost" if a process crashed after its Commit and before its
// response was written, and its lease has expired; "too-large" if the response exceeded [Options].MaxResponse. In both
// cases the request was executed: a client that needs the response reads the resource itself.
//
// The handler's response is held back until it is recorded: Flush sends nothing before that, and trailers and
// hijacking are not supported. A response that exceeds MaxResponse is passed through, and flushed, from that point on;
// it is recorded when the handler has returned.
package idem

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// answerHeader is the header that gives the reason why a response was not stored.
const answerHeader = "Idempotency-Answer"

// Options configures [Middleware]. Either User or SharedKeys is required.
type Options struct {
	// Lease is the duration of the lease on a key, and therefore the time until the key of a crashed process can be
	// used again. It must be between a millisecond and a day; the default is 30 seconds. A lease is renewed for at
	// most 15 minutes.
	Lease time.Duration
	// MaxBody is the maximum body size of a request with a key, in bytes; the default is 1 MiB. A larger body is
	// refused (413, PAYLOAD_TOO_LARGE).
	MaxBody int64
	// MaxResponse is the maximum size of a stored response body, in bytes; the default is 1 MiB.
	MaxResponse int64
	// Header is the name of the header that contains the key; the default is Idempotency-Key.
	Header string
	// Workspace returns the workspace of a request, which is also set in the handler's context. The default is the
	// workspace of the request's context.
	Workspace func(*http.Request) string
	// User returns the id of the user that sends the request. Keys of different users never collide: without User,
	// another user who sends the same key and body would get the first user's response. It must return the same id each
	// time the user sends the request: an account id, never a token or a session id, which can change between two
	// attempts. If it returns "" for a request with a key, the request is refused: 401, AUTH_ERROR. User is required,
	// unless SharedKeys is set.
	User func(*http.Request) string
	// SharedKeys puts the keys of all clients into one namespace. Set it, instead of User, only if there is a single
	// client, or if clients may see each other's responses.
	SharedKeys bool
	// TTL is how long a response is stored, and how long an operation that the handler began is remembered. It
	// must be between a second and a year; the default is 24 hours. After that the request is treated as new.
	TTL time.Duration
}

func (o Options) orDefaults() Options {
	o.Lease, o.TTL, o.Header = cmp.Or(o.Lease, lease.DefaultDuration), cmp.Or(o.TTL, idempotency.TTL), cmp.Or(o.Header, idempotency.KeyHeader)
	if o.Lease < time.Millisecond || o.Lease > 24*time.Hour {
		panic(fmt.Sprintf("idem: Options.Lease must be between 1ms and 24h, got %s", o.Lease))
	}
	if o.MaxBody < 0 || o.MaxResponse < 0 {
		panic(fmt.Sprintf("idem: Options.MaxBody and Options.MaxResponse must not be negative, got %d and %d", o.MaxBody, o.MaxResponse))
	}
	o.MaxBody, o.MaxResponse = cmp.Or(o.MaxBody, 1<<20), cmp.Or(o.MaxResponse, 1<<20)
	if o.User == nil && !o.SharedKeys {
		panic("idem: Options.User is nil: set it to a function that returns the user's id, or set SharedKeys if all clients may see each other's responses")
	}
	if o.User != nil && o.SharedKeys {
		panic("idem: Options.User and Options.SharedKeys are both set: keep one of them")
	}
	if o.TTL < time.Second || o.TTL > 366*24*time.Hour {
		panic(fmt.Sprintf("idem: Options.TTL must be between 1 second and 1 year, got %s", o.TTL))
	}
	return o
}

// Middleware returns a function that makes a handler idempotent. It may be used for any number of handlers, but only
// once around each. Middleware panics if the options are invalid, because that is a bug in the program's setup.
func Middleware(e *holdfast.Engine, o Options) func(http.Handler) http.Handler {
	o = o.orDefaults()
	return func(next http.Handler) http.Handler { return &guard{engine.Of(e), o, next} }
}

// guard is an idempotent handler.
type guard struct {
	engine *engine.Engine
	Options
	next http.Handler
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.Workspace != nil {
		r = r.WithContext(holdfast.InWorkspace(r.Context(), g.Workspace(r)))
	}
	f, err := g.begin(w, r)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	if f.Key == "" {
		g.next.ServeHTTP(w, r.WithContext(within(r.Context(), f)))
		return
	}
	q, mine, err := f.Take(r.Context(), g.engine)
	switch {
	case err != nil:
		g.refuse(w, r, err)
	case mine:
		g.run(w, r, f)
	default:
		g.replay(w, r, f, q)
	}
}

// harmless reports whether requests with a method change nothing.
func harmless(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// begin reads the key and the fingerprint of a request. A request that passes through unchanged has no key.
func (g *guard) begin(w http.ResponseWriter, r *http.Request) (*idempotency.Flight, error) {
	f := &idempotency.Flight{LeaseTime: g.Lease, Engine: g.engine, Log: g.engine.Log()}
	if harmless(r.Method) {
		return f, nil
	}
	key, err := idempotency.KeyOf(r.Header.Values(g.Header))
	if err != nil || key == "" {
		return f, err
	}
	user := ""
	if !g.SharedKeys {
		if user = g.User(r); user == "" {
			return nil, fault.New(fault.Auth, "the request has the header %s but no authenticated caller: authenticate, or send the request without the header", g.Header)
		}
	}
	f.Name, f.Key, f.TTL = key, idempotency.Stored("idem", user, key), g.TTL
	f.Fingerprint, err = fingerprint(w, r, g.MaxBody)
	return f, err
}

// run runs the handler for a request that has the lease on its key. The client gets the response when it is recorded.
func (g *guard) run(w http.ResponseWriter, r *http.Request, f *idempotency.Flight) {
	out := newBuffer(w, g.MaxResponse)
	if g.refused(out, r, f) && !f.Committed() {
		out.send()
		return
	}
	another, err := f.Record(r.Context(), out.status, out.stored())
	switch {
	case err == nil || out.passed:
	case another != nil: // another execution was faster, and a key has one response
		g.replay(w, r, f, *another)
		return
	case !f.Committed():
		out.header.Set(answerHeader, "unrecorded")
	}
	out.send()
}

// refused runs the handler and reports whether it refused the request. A panic counts as a refusal and propagates.
func (g *guard) refused(out *buffer, r *http.Request, f *idempotency.Flight) (refused bool) {
	ctx, end := f.Renewing(r.Context())
	refused = true
	defer func() { end(refused) }()
	g.next.ServeHTTP(out, r.WithContext(within(ctx, f)))
	out.finish()
	refused = out.status >= http.StatusBadRequest
	return refused
}

type flightKey struct{}

// within returns the context of a handler, for its operations and for [Commit].
func within(ctx context.Context, f *idempotency.Flight) context.Context {
	ctx = context.WithValue(ctx, flightKey{}, f)
	if f.Key == "" {
		f = nil
	}
	return idempotency.InFlight(ctx, f)
}

// Commit runs f in a transaction that also records that the context's request is done. The writes that f makes
// through the transaction are applied only once, no matter how many times the request is sent and when a process
// crashes. The handler's response is recorded when the handler returns, even if its status is 400 or more.
//
// A request can commit only once. If f or the transaction fails, nothing is written, and the handler may call Commit
// again or refuse the request. If the lease on the key has expired, the error is [holdfast.ErrLeaseLost]: another
// execution may have the request now. f may run more than once, as in [holdfast.Engine.Update]. For a request without a
// key, Commit is the same as [holdfast.Engine.Update]. Outside of a handler of [Middleware], the error is
// [holdfast.ErrValidation].
func Commit(ctx context.Context, f func(context.Context, holdfast.Tx) error) error {
	q, ok := ctx.Value(flightKey{}).(*idempotency.Flight)
	if !ok {
		return fault.New(fault.Validation, "idem.Commit was called outside a handler of idem.Middleware: call it inside such a handler, with the request's context")
	}
	return q.Update(ctx, func(ctx context.Context, tx *store.Tx) error { return f(ctx, tx) })
}
