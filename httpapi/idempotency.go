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

// A caller that gives its request a key may send it again, at once, later, or after a
// crash of either side: it is done once, and answered the same.
//
// What is one transaction (an append, a new entity) has the key's row in it: first
// the key is taken, so that a second caller waits there and then finds the answer;
// last the answer is stored. What is more than one transaction is done while the key
// is held; such requests (a reaction that is put, a stream that is closed) come to
// the same when they are done again. What begins an operation (a step that is fired)
// has the key point to it, from the transaction on that begins it: the answer is what
// became of the operation. A refusal is not stored, because it changed nothing.

// keyLease is how long a key is held that nobody renews.
const keyLease = lease.DefaultDuration

// keyed returns a request that changes something under its key, or nil. Each route has keys of its own, so that a
// claim of tasks cannot take the key of an order. An answer is for the API key that asked, and for those that
// it is rotated to.
func (c *call) keyed() (*idempotency.Flight, error) {
	if c.route.Idempotency == table.Never {
		return nil, nil
	}
	key, err := idempotency.KeyOf(c.r.Header.Values(idempotency.KeyHeader))
	if err != nil || key == "" {
		return nil, err
	}
	query := c.r.URL.Query()
	query.Del("waitMs") // how long to wait is not what is asked for
	asked := idempotency.Incoming{Owner: actorOf(c.key.Origin()), Method: c.r.Method, Target: c.r.URL.EscapedPath() + "?" + query.Encode(), Body: c.body, JSON: true}
	if c.route.Conditional {
		asked.Conditions = [][]string{c.r.Header.Values("If-Match"), c.r.Header.Values("If-None-Match")}
	}
	return &idempotency.Flight{Lease: idempotency.Lease{Key: idempotency.Stored(c.route.ID, "", key)}, Name: key, Fingerprint: asked.Fingerprint(),
		LeaseTime: keyLease, Timeout: answerWithin, Engine: c.api.engine, Log: c.api.log}, nil
}

// serveIdempotent does a request that has a key.
func (c *call) serveIdempotent() (any, error) {
	switch c.route.Idempotency {
	case table.InTx:
		return c.serveIdempotentInTx()
	case table.UnderLease:
		return c.serveIdempotentUnderLease()
	}
	return c.route.Serve(c)
}

func (c *call) serveIdempotentInTx() (answer any, err error) {
	if name, ok := c.values["name"]; ok && strings.HasPrefix(c.route.Path, "lifecycles/") { // it is looked up outside of the transaction
		if _, err := c.lifecycle(name); err != nil {
			return nil, err
		}
	}
	if c.route.Before != nil {
		c.route.Before(c)
	}
	if c.route.Update != nil { // what is done already is not waited for
		if answer, done, err := c.again(); done || err != nil {
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
		answer, c.status, c.keep, c.etag = nil, c.route.Status, nil, "" // it may run again
		c.r = r.WithContext(inTransaction(ctx, tx))
		q, mine, err := c.flight.Take(ctx, tx)
		if err != nil {
			return err
		}
		if !mine {
			answer, err = c.replay(q)
			return err
		}
		if answer, err = c.route.Serve(c); err != nil {
			return err
		}
		return c.flight.Finish(ctx, tx, c.status, c.stored(answer))
	})
	c.r = r
	if fault.CodeOf(err) == fault.MutationTimeout { // its twin may have been faster
		if answer, done, _ := c.again(); done {
			return answer, nil
		}
	}
	return answer, err
}

// again answers a request that was made before, if it was.
func (c *call) again() (answer any, done bool, err error) {
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
	held, end := c.flight.Keep(r.Context())
	defer func() { end(refused) }()
	c.r = r.WithContext(held)
	answer, err := c.route.Serve(c)
	c.r = r
	if err != nil {
		return nil, err
	}
	refused = false
	_, _ = c.flight.Record(c.ctx(), c.status, c.stored(answer)) // else it is done again when it is sent again
	return answer, nil
}

// handOut hands out leases, in a look that may be repeated until there are some. take says when the first
// of them ends, or nothing where there is none. Expired
// leases end first, so that what a dead holder had is handed out, too. A
// claim that has a key is one transaction with its answer, which is kept until the first lease ends: whoever
// repeats it, at once or after a crash of either side, is given the same, under the same epochs; later
// it is another claim. Where two look at once under one key, one of them takes, and the other is
// violationsOf what. Nobody sees the key held.
//
// The leases come first in the transaction and the key last, so that it waits for nobody
// with the key locked. What is read besides is read by the engine, on another connection:
// few do that at once, or they would wait for connections that they have themselves.
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
	if err != nil || len(due) == 0 { // most looks find nothing, and write nothing
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
		now := q.Until.Add(-keyLease) // by the database's clock, as until is
		held := idempotency.Lease{Key: q.Key, Epoch: q.Epoch, TTL: max(until.Sub(now), time.Millisecond)}
		return held.Finish(ctx, tx, c.status, c.stored(answer))
	})
	if before != nil {
		answer, err = replayed[T](c, *before)
		return answer, true, err
	}
	return answer, err == nil && !until.IsZero(), err
}

// firstEnd is the earlier of two ends of leases; zero is none.
func firstEnd(a time.Time, b *wire.Time) time.Time {
	if b != nil && (a.IsZero() || b.Before(a)) {
		return b.Time
	}
	return a
}

// errTwin rolls back what was handed out where a twin of the call was faster.
var errTwin = errors.New("the same request has handed out leases meanwhile")

// replayed is the answer of an earlier call.
func replayed[T any](c *call, q idempotency.Request) (answer T, err error) {
	told, err := c.replay(q)
	if text, ok := told.(json.RawMessage); err == nil && ok {
		err = json.Unmarshal(text, &answer)
	}
	return answer, err
}

// storedAnswer is an answer as it is kept.
type storedAnswer struct {
	Body     json.RawMessage `json:"body,omitempty"`
	Location string          `json:"location,omitempty"`
	ETag     string          `json:"etag,omitempty"`
}

// stored is what is kept of an answer: all of it, unless the handler says otherwise.
func (c *call) stored(answer any) []byte {
	if c.keep != nil {
		answer = c.keep
	}
	kept := storedAnswer{Location: c.w.Header().Get("Location"), ETag: c.etag}
	if answer != nil {
		kept.Body, _ = json.Marshal(answer) // of our own shapes, it does not fail
	}
	text, _ := json.Marshal(kept)
	return text
}

// replay answers a request that was made before.
func (c *call) replay(q idempotency.Request) (any, error) {
	if err := c.flight.Replay(q); err != nil {
		return nil, err
	}
	var kept storedAnswer
	if err := json.Unmarshal(q.Answer, &kept); err != nil {
		return nil, err
	}
	c.replayed(q.Status)
	c.etag = kept.ETag
	if kept.Location != "" {
		c.w.Header().Set("Location", kept.Location)
	}
	if kept.Body == nil {
		return nil, nil
	}
	return kept.Body, nil
}

// replayed marks an answer as that of an earlier request.
func (c *call) replayed(status int) {
	c.status = status
	c.w.Header().Set(idempotency.ReplayedHeader, "true")
}
