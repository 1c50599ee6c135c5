// Package idem keeps a request that is sent twice from being carried out twice. It
// is net/http middleware for a program's own handlers:
//
//	once := idem.Middleware(hf, idem.Options{Scope: userID})
//	mux.Handle("POST /orders", once(orders))
//
// A client that gives a request an Idempotency-Key can send it again, with the same
// key, whenever it has no answer. The handler runs for the first; those that come
// later get the first one's answer, with the header Idempotency-Replayed: true.
//
//   - The same key with another request (method, path and query, body) is refused:
//     422, KEY_MISMATCH. Members of a JSON body may be in another order.
//   - While the first is under way: 409, KEY_IN_FLIGHT, with Retry-After.
//   - An answer with a status of 400 or more is not kept, and the key is free again:
//     what refuses a request is taken to have changed nothing. Where a step stands that
//     the handler fired, the key stays with the request, which may be sent again.
//   - Answers are kept for [Options].TTL, 24 hours by default, with the headers that the
//     handler set, except Set-Cookie and those of the connection (Connection and what it
//     names, Content-Length, Date, Keep-Alive, Trailer, Transfer-Encoding, Upgrade …).
//     Headers that stood there before, such as a request's id, are those of the replay.
//   - Keys belong to the user that [Options].Scope names: two users never meet.
//   - GET, HEAD, OPTIONS and TRACE, and requests without a key, pass untouched.
//
// # What is promised
//
// While the handler runs, its key is held, for [Options].Lease at a time, which is
// renewed. If the process dies, the key can be used again when the hold has run out,
// and then the handler runs again: for a handler that writes by its own means this
// is at least once. The same is true of a handler that panics, whose key is freed,
// and of one that is cut off from the database for longer than its hold: its context
// ends; if it goes on all the same, and another has been answered by the time it is
// done, its client gets that answer, so that a key has one; if nobody has, its own,
// marked Idempotency-Answer: unrecorded.
//
// There are two ways to more. What a handler writes in [Commit] and the mark that its
// request is done are one transaction: it is written once, whatever happens. A holder that
// was too late writes nothing there. This is for what takes a [holdfast.Doer]: an append,
// a new entity, a credit, a batch, the start of a run.
//
// A step that a handler fires or claims (package lifecycle), under the request's context,
// belongs to the key, as it does over HTTP. The handler that is run again is answered
// for the operation that it began before: done, with the entity as it is by now; failed;
// pending or uncertain; or KEY_IN_FLIGHT while it is being worked on. An operation that was
// released without effect is begun anew. Several steps of one handler are told apart by
// lifecycle, entity, step and requester; the same one more than once, by its order. A holder
// that was too late begins nothing. A step that an action fires in turn belongs to that
// action's operation, and not to the key. Fire before [Commit], and before the handler returns: behind them the
// step is refused, because no retry would do it.
//
// An answer that was not kept is replayed as 204 No Content, with the headers that are
// known, except those of the body, and says why in Idempotency-Answer: "lost", where a
// process died after its Commit and before its answer was written, and the hold it had is
// over; "too-large", where the answer was over [Options].MaxAnswer. What was asked for is
// done in both cases: a client that needs the answer asks for the thing itself.
//
// The handler's answer is held back until it is recorded: Flush sends nothing before
// that, and there are no trailers and no hijacking. An answer over MaxAnswer is passed on
// from there, and flushed from there; it is recorded when the handler has returned.
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

// answerHeader says why an answer was not stored.
const answerHeader = "Idempotency-Answer"

// Options say how requests are told apart and how much is kept of them. Either Scope or
// SharedKeys is required.
type Options struct {
	// Lease is how long a key is held without a renewal, and so how long it takes
	// until the key of a process that died can be used again; the default is 30
	// seconds. A hold is renewed for 15 minutes at the most.
	Lease time.Duration
	// MaxBody is the largest body of a request that has a key; the default is
	// 1 MiB.
	MaxBody int64
	// MaxAnswer is the largest answer that is kept; the default is 1 MiB.
	MaxAnswer int64
	// Header names the header that has the key; the default is Idempotency-Key.
	Header string
	// Workspace tells the workspace of a request. The handler's context is in it,
	// too. The default is the context's.
	Workspace func(*http.Request) string
	// Scope returns the id of the user whose request it is. Keys of two users never
	// meet: without it, another user who sends the same key and body gets the first
	// one's answer. It must be the same each time that the user sends the request: an
	// account's id, never a token or a session, which changes between two tries. A
	// request with a key for which it returns "" is refused: 401, AUTH_ERROR.
	// It is required, unless SharedKeys is set.
	Scope func(*http.Request) string
	// SharedKeys says that all clients share their keys: for one that is alone, or
	// where all may see each other's answers. It takes the place of Scope.
	SharedKeys bool
	// TTL is how long an answer is kept, and how long an operation is known that the
	// handler began; the default is 24 hours. After that the request is a new one.
	TTL time.Duration
}

func (o Options) orDefaults() Options {
	o.Lease, o.TTL, o.Header = cmp.Or(o.Lease, lease.DefaultDuration), cmp.Or(o.TTL, idempotency.TTL), cmp.Or(o.Header, idempotency.KeyHeader)
	if o.Lease < time.Millisecond || o.Lease > 24*time.Hour {
		panic(fmt.Sprintf("idem: Options.Lease is %s: it is a millisecond to a day", o.Lease))
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 1 << 20
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = 1 << 20
	}
	if o.Scope == nil && !o.SharedKeys {
		panic("idem: Options.Scope is nil: set it to a function that returns the user's id, or set SharedKeys if all clients may see each other's answers")
	}
	if o.Scope != nil && o.SharedKeys {
		panic("idem: Options.Scope and Options.SharedKeys are both set: leave one out")
	}
	if o.TTL < time.Second || o.TTL > 366*24*time.Hour {
		panic(fmt.Sprintf("idem: Options.TTL is %s: it is a second to a year", o.TTL))
	}
	return o
}

// Middleware returns what makes a handler idempotent. It may be used for any number
// of handlers, but only once around each. It panics if the options are wrong: that is
// a mistake in wiring.
func Middleware(e *holdfast.Engine, o Options) func(http.Handler) http.Handler {
	o = o.orDefaults()
	return func(next http.Handler) http.Handler { return &guard{engine.Of(e), o, next} }
}

// guard is a handler with its keys.
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

// harmless says whether requests of a method change nothing.
func harmless(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// begin reads what a request asks for. One that passes untouched has no key.
func (g *guard) begin(w http.ResponseWriter, r *http.Request) (*idempotency.Flight, error) {
	f := &idempotency.Flight{LeaseTime: g.Lease, Engine: g.engine, Log: g.engine.Log()}
	if harmless(r.Method) {
		return f, nil
	}
	key, err := idempotency.KeyOf(r.Header.Values(g.Header))
	if err != nil || key == "" {
		return f, err
	}
	scope := ""
	if !g.SharedKeys {
		if scope = g.Scope(r); scope == "" {
			return nil, fault.New(fault.Auth, "the request has an %s but no authenticated caller: sign in, or send it without the header", g.Header)
		}
	}
	f.Name, f.Key, f.TTL = key, idempotency.Stored("idem", scope, key), g.TTL
	f.Fingerprint, err = fingerprint(w, r, g.MaxBody)
	return f, err
}

// run has the handler carry out a request that is held. Its answer goes to the
// client when it is recorded.
func (g *guard) run(w http.ResponseWriter, r *http.Request, f *idempotency.Flight) {
	out := newBuffer(w, g.MaxAnswer)
	if g.refused(out, r, f) && !f.Committed() {
		out.send()
		return
	}
	another, err := f.Record(r.Context(), out.status, out.kept())
	switch {
	case err == nil || out.passed:
	case another != nil: // it was faster, and a key has one answer
		g.replay(w, r, f, *another)
		return
	case !f.Committed():
		out.header.Set(answerHeader, "unrecorded")
	}
	out.send()
}

// refused runs the handler, and says whether it refused the request. A panic does, and goes on.
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

// within returns the context of a handler: for its operations, and for [Commit].
func within(ctx context.Context, f *idempotency.Flight) context.Context {
	ctx = context.WithValue(ctx, flightKey{}, f)
	if f.Key == "" {
		f = nil
	}
	return idempotency.InFlight(ctx, f)
}

// Commit runs f in a transaction that also marks the request of the context as
// done: what f writes through the transaction is written once, however often the
// request is sent and wherever a process dies. The handler's answer is recorded when
// it returns, whatever its status is by then.
//
// A request has one Commit. Where f or the transaction fails, nothing is written and
// the handler may try again, or refuse the request. Where the key's hold has run out
// the error is [fault.LeaseLost]: another may have the request now. f may be run
// again, as in [holdfast.Engine.Update]. In a request without a key Commit is
// no more than that.
func Commit(ctx context.Context, f func(context.Context, holdfast.Tx) error) error {
	q, ok := ctx.Value(flightKey{}).(*idempotency.Flight)
	if !ok {
		return fault.New(fault.Internal, "idem.Commit is used outside of a handler of idem.Middleware")
	}
	return q.Update(ctx, func(ctx context.Context, tx *store.Tx) error { return f(ctx, tx) })
}
