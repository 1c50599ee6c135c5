package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/wire"
)

// A caller that sends an idempotency key may repeat a request immediately, later, or after a crash
// of either side: it takes effect once, and every repetition gets the same response.
//
// A request that is one command (an append, a new entity) is committed in one transaction with its
// response and with other requests, if its key is new and it is not refused. Otherwise, and if it is
// more than one command, it has a transaction of its own: it takes the key first, so that a
// concurrent repetition waits there and then finds the response, and stores the response last. A
// request of several transactions runs while the key is leased; such requests (putting a reaction,
// closing a stream) have the same result when they are repeated. A request that begins an operation
// (firing a step) makes the key point to the operation in the transaction that begins it: the
// response is derived from the outcome of the operation. Refusals are not stored, because they
// change nothing.

// keyLease is how long the lease on an idempotency key lasts without renewal.
const keyLease = lease.DefaultDuration

// newFlight returns the flight of a changing request that has an idempotency key, or nil. Each route
// has its own key space, so that a claim of tasks cannot take the key of an order. A stored
// response is returned only to the API key that made the request and to keys that it is rotated to, or to tokens of the same subject.
func (c *call) newFlight() (*idempotency.Flight, error) {
	if c.route.Idempotency == table.Never {
		return nil, nil
	}
	key, err := idempotency.KeyOf(c.r.Header.Values(idempotency.KeyHeader))
	if err != nil || key == "" {
		return nil, err
	}
	query := c.r.URL.Query()
	query.Del("waitMs") // the wait time is not part of the request's identity
	incoming := idempotency.Incoming{Owner: c.owner(), Method: c.r.Method, Target: c.r.URL.EscapedPath() + "?" + query.Encode(), Body: c.body, JSON: true}
	if c.route.Blind && c.api.box != nil {
		incoming.Body, incoming.JSON = c.api.box.Digest(c.body), false
	}
	if c.route.Conditional {
		incoming.Conditions = [][]string{c.r.Header.Values("If-Match"), c.r.Header.Values("If-None-Match")}
	}
	return &idempotency.Flight{Lease: idempotency.Lease{Key: idempotency.Stored(c.route.ID, "", key)}, Name: key, Fingerprint: incoming.Fingerprint(),
		LeaseTime: keyLease, Timeout: answerWithin, Engine: c.api.engine, Log: c.api.log}, nil
}

// serveIdempotent serves a request that has an idempotency key.
func (c *call) serveIdempotent() (any, error) {
	switch c.route.Idempotency {
	case table.InTx:
		return c.serveIdempotentInTx()
	case table.InCommand:
		if answer, done, err := c.serveIdempotentInCommand(); done || err != nil {
			return answer, err
		}
		return c.serveIdempotentInTx()
	case table.UnderLease:
		return c.serveIdempotentUnderLease()
	}
	return c.route.Serve(c)
}

// serveIdempotentInCommand serves a request whose key is new. done is false if nothing was written.
func (c *call) serveIdempotentInCommand() (answer any, done bool, err error) {
	r := c.r
	defer func() { c.r = r }()
	done, err = c.flight.InCommand(c.ctx(), func(ctx context.Context, d store.Doer) (int, []byte, error) {
		c.r = r.WithContext(through(ctx, d))
		if answer, err = c.attempt(); err != nil {
			return 0, nil, err
		}
		return c.status, c.stored(answer), nil
	})
	if !done {
		c.w.Header().Del("Location")
	}
	return answer, done, err
}

// attempt runs the function of the route, perhaps not for the first time.
func (c *call) attempt() (any, error) {
	c.status, c.storeAs, c.etag = c.route.Status, nil, ""
	return c.route.Serve(c)
}

func (c *call) serveIdempotentInTx() (answer any, err error) {
	if name, ok := c.values["name"]; ok && strings.HasPrefix(c.route.Path, "lifecycles/") { // must be read outside of the transaction
		if _, err := c.lifecycle(name); err != nil {
			return nil, err
		}
	}
	if c.route.Before != nil {
		c.route.Before(c)
	}
	if c.route.Update != nil { // a finished request must not wait for the update queue
		if answer, done, err := c.earlierAnswer(); done || err != nil {
			return answer, err
		}
	}
	r := c.r
	defer func() { c.r = r }()
	run := c.route.Update
	if run == nil {
		run = func(c *call, f func(context.Context, *store.Tx) error) error {
			return c.api.engine.Update(c.ctx(), f)
		}
	}
	err = run(c, func(ctx context.Context, tx *store.Tx) error {
		answer = nil
		c.r = r.WithContext(through(ctx, tx))
		q, mine, err := c.flight.Take(ctx, tx)
		if err != nil {
			return err
		}
		if !mine {
			answer, err = c.replay(q)
			return err
		}
		if answer, err = c.attempt(); err != nil {
			return err
		}
		return c.flight.Finish(ctx, tx, c.status, c.stored(answer))
	})
	c.r = r
	if fault.CodeOf(err) == fault.MutationTimeout { // a concurrent repetition may have succeeded
		if answer, done, _ := c.earlierAnswer(); done {
			return answer, nil
		}
	}
	return answer, err
}

// earlierAnswer returns the stored response of an earlier request with the same key, if there is one.
func (c *call) earlierAnswer() (answer any, done bool, err error) {
	q, err := idempotency.Get(c.ctx(), c.api.engine, c.flight.Key)
	if err != nil || q.State != idempotency.Done {
		return nil, false, err
	}
	answer, err = c.replay(q)
	return answer, true, err
}

func (c *call) serveIdempotentUnderLease() (any, error) {
	q, mine, err := c.flight.Take(c.ctx(), c.api.engine)
	if err != nil {
		return nil, err
	}
	if !mine {
		return c.replay(q)
	}
	r, refused := c.r, true
	held, end := c.flight.Renewing(r.Context())
	defer func() { end(refused) }()
	c.r = r.WithContext(held)
	answer, err := c.route.Serve(c)
	c.r = r
	if err != nil {
		return nil, err
	}
	refused = false
	_, _ = c.flight.Record(c.ctx(), c.status, c.stored(answer)) // if it is not stored, a repetition runs again
	return answer, nil
}

// handOut hands out leases in one poll, which await repeats until some are found. take returns when
// the first lease ends, or the zero time if there is none. Expired leases end first, so that the
// work of a crashed holder is handed out too. A claim with a key is one transaction with its
// response, which is stored until the first lease ends: a repetition, immediate or after a crash of
// either side, gets the same leases under the same epochs; later it is a new claim. If two requests
// with the same key poll concurrently, one of them takes the leases and the other gets the stored
// response. The key is never visible as leased.
//
// The transaction takes the leases first and the key last, so that it never waits while it has the
// key locked. Other reads use the engine, on another connection: the claiming slots bound their
// number, or the transactions would wait for connections that they occupy themselves.
func handOut[T any](c *call, needs []wake.WorkKind, take func(d holdfast.Doer, due map[wake.WorkKind]bool) (answer T, until time.Time, err error)) (answer T, found bool, err error) {
	if c.flight != nil {
		q, err := idempotency.Get(c.ctx(), c.api.engine, c.flight.Key)
		if err != nil {
			return answer, false, err
		}
		if q.State != "" {
			answer, err = replayed[T](c, q)
			return answer, true, err
		}
	}
	due, err := c.api.engine.Due(c.ctx(), needs...)
	if err != nil || len(due) == 0 { // most polls find nothing and write nothing
		return answer, false, err
	}
	var until time.Time
	if c.flight == nil {
		answer, until, err = take(c.api.hf, due)
		return answer, !until.IsZero(), err
	}
	if err := c.api.claiming.One(c.ctx()); err != nil {
		return answer, false, err
	}
	defer c.api.claiming.Free(1)
	var before *idempotency.Request
	err = c.api.engine.Update(c.ctx(), func(ctx context.Context, tx *store.Tx) (err error) {
		before = nil
		if answer, until, err = take(tx, due); err != nil || until.IsZero() {
			return err
		}
		q, mine, err := c.flight.Take(ctx, tx)
		if err == nil && !mine {
			before, err = &q, errTwin
		}
		if err != nil {
			return err
		}
		now := q.Until.Add(-keyLease) // by the database clock, like until
		held := idempotency.Lease{Key: q.Key, Epoch: q.Epoch, TTL: max(until.Sub(now), time.Millisecond)}
		return held.Finish(ctx, tx, c.status, c.stored(answer))
	})
	if before != nil {
		answer, err = replayed[T](c, *before)
		return answer, true, err
	}
	return answer, err == nil && !until.IsZero(), err
}

// firstEnd returns the earlier of two lease ends; zero means none.
func firstEnd(a time.Time, b *wire.Time) time.Time {
	if b != nil && (a.IsZero() || b.Before(a)) {
		return b.Time
	}
	return a
}

// errTwin rolls back a hand-out if a concurrent request with the same key was faster.
var errTwin = errors.New("a concurrent request with the same idempotency key has already handed out leases")

// replayed returns the response of an earlier call.
func replayed[T any](c *call, q idempotency.Request) (answer T, err error) {
	answered, err := c.replay(q)
	if text, ok := answered.(json.RawMessage); err == nil && ok {
		err = json.Unmarshal(text, &answer)
	}
	return answer, err
}

// storedAnswer is a response as it is stored.
type storedAnswer struct {
	Body     json.RawMessage `json:"body,omitempty"`
	Location string          `json:"location,omitempty"`
	ETag     string          `json:"etag,omitempty"`
}

// stored encodes the response for storage: all of it, unless the handler has set c.storeAs.
func (c *call) stored(answer any) []byte {
	if c.storeAs != nil {
		answer = c.storeAs
	}
	saved := storedAnswer{Location: c.w.Header().Get("Location"), ETag: c.etag}
	if answer != nil {
		saved.Body, _ = json.Marshal(answer) // cannot fail for our own types
	}
	text, _ := json.Marshal(saved)
	return text
}

// replay returns the stored response of an earlier request.
func (c *call) replay(q idempotency.Request) (any, error) {
	if err := c.flight.CheckReplay(q); err != nil {
		return nil, err
	}
	var saved storedAnswer
	if err := json.Unmarshal(q.Answer, &saved); err != nil {
		return nil, err
	}
	c.replayed(q.Status)
	c.etag = saved.ETag
	if saved.Location != "" {
		c.w.Header().Set("Location", saved.Location)
	}
	if saved.Body == nil {
		return nil, nil
	}
	return saved.Body, nil
}

// replayed marks the response as that of an earlier request.
func (c *call) replayed(status int) {
	c.status = status
	c.w.Header().Set(idempotency.ReplayedHeader, "true")
}
