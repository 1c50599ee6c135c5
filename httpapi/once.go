package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/requests"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
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

const (
	keyHeader      = requests.KeyHeader
	replayedHeader = requests.ReplayedHeader
	// keyLease is how long a key is held that nobody renews.
	keyLease = 30 * time.Second
)

// idempotencyKey reads the key of a request that changes something, and returns what it is kept by: each route has
// keys of its own, so that a claim of tasks cannot take the key of an order.
func (c *call) idempotencyKey() (string, error) {
	all := c.r.Header.Values(keyHeader)
	switch {
	case len(all) == 0 || c.route.Once == table.Never:
		return "", nil
	case len(all) > 1:
		return "", fault.New(fault.Validation, "the request has %s twice", keyHeader)
	}
	kept := c.route.ID + " " + all[0]
	if len(kept) > requests.MaxKey {
		kept = fmt.Sprintf("%s #%x", c.route.ID, sha256.Sum256([]byte(all[0])))
	}
	return kept, requests.CheckKey(all[0])
}

// fingerprint tells this request from another, and from the same of somebody else: an answer is for who asked, and for
// the keys that its own is rotated to.
func (c *call) fingerprint() string {
	body := c.body
	if doc, ok := strict.Canonical(body); ok {
		body = doc
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s?%s\n", c.r.Method, c.r.URL.EscapedPath(), c.asked())
	sum.Write(body)
	if c.route.Conditional {
		for _, name := range []string{"If-Match", "If-None-Match"} {
			for _, value := range c.r.Header.Values(name) {
				fmt.Fprintf(sum, "\n%s: %s", name, value)
			}
		}
	}
	owner := sha256.Sum256([]byte(actorOf(c.key.Origin())))
	return hex.EncodeToString(append(sum.Sum(nil)[:24], owner[:8]...))
}

// another refuses who comes with the key of another request.
func (c *call) another(q requests.Request) error {
	mine, key := c.fingerprint(), c.r.Header.Get(keyHeader)
	switch at := len(mine) - 16; {
	case q.Fingerprint == mine:
		return nil
	case len(q.Fingerprint) != len(mine) || q.Fingerprint[at:] == mine[at:]:
		return fault.New(fault.KeyMismatch, "the key %q belongs to another request: use a new one", key)
	}
	return fault.New(fault.Conflict, "the key %q belongs to a request of another API key: use a new one", key)
}

// asked is the query without how long to wait, which is not what is asked for.
func (c *call) asked() string {
	q := c.r.URL.Query()
	q.Del("waitMs")
	return q.Encode()
}

// kept does a request that has a key.
func (c *call) kept() (any, error) {
	switch c.route.Once {
	case table.InTx:
		return c.keptInTx()
	case table.UnderHold:
		return c.keptUnderHold()
	}
	return c.route.Serve(c)
}

// update runs f in a transaction.
type update func(c *call, f func(context.Context, *store.Tx) error) error

func (c *call) keptInTx() (answer any, err error) {
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
		q, mine, err := requests.Take(ctx, tx, requests.TakeArgs{Key: c.idempotency, Fingerprint: c.fingerprint(), Holder: store.NewID().String(), Lease: keyLease})
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
		return requests.Finish(ctx, tx, c.idempotency, q.Epoch, c.status, c.stored(answer))
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
	q, err := requests.Get(c.ctx(), c.api.engine, c.idempotency)
	switch {
	case fault.CodeOf(err) == fault.NotFound, err == nil && q.State != requests.Done:
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	answer, err = c.replay(q)
	return answer, true, err
}

func (c *call) keptUnderHold() (any, error) {
	q, mine, err := requests.Take(c.ctx(), c.api.engine, requests.TakeArgs{Key: c.idempotency, Fingerprint: c.fingerprint(), Holder: store.NewID().String(), Lease: keyLease})
	if err != nil {
		return nil, err
	}
	if !mine {
		return c.replay(q)
	}
	k := c.keepKey(q.Epoch)
	r := c.r
	c.r = r.WithContext(k.Start(r.Context()))
	answer, err := c.route.Serve(c)
	k.Stop()
	c.r = r
	if err != nil {
		c.freeKey(q.Epoch)
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx()), keyLease)
	defer cancel()
	if err := requests.Finish(ctx, c.api.engine, c.idempotency, q.Epoch, c.status, c.stored(answer)); err != nil && fault.CodeOf(err) != fault.LeaseLost {
		c.api.log.Warn("the answer to a request could not be kept: it is done again when it is sent again", "error", err)
	}
	return answer, nil
}

// handOut hands out leases, in a look that may be repeated until there are some. take says when the first
// of them ends, or nothing where there is none. Expired
// leases end first, so that what a dead holder had is handed out, too. A
// claim that has a key is one transaction with its answer, which is kept until the first lease ends: whoever
// repeats it, at once or after a crash of either side, is given the same, under the same epochs; later
// it is another claim. Where two look at once under one key, one of them takes, and the other is
// told what. Nobody sees the key held.
//
// The leases come first in the transaction and the key last, so that it waits for nobody
// with the key locked. What is read besides is read by the engine, on another connection:
// few do that at once, or they would wait for connections that they have themselves.
func handOut[T any](c *call, needs []wake.Need, take func(d holdfast.Doer, due map[wake.Need]bool) (answer T, until time.Time, err error)) (answer T, found bool, err error) {
	if c.idempotency != "" {
		if q, err := requests.Get(c.ctx(), c.api.engine, c.idempotency); fault.CodeOf(err) != fault.NotFound {
			if err == nil {
				answer, err = replayed[T](c, q)
			}
			return answer, true, err
		}
	}
	due, err := c.api.engine.Due(c.ctx(), needs...)
	if err != nil || len(due) == 0 { // most looks find nothing, and write nothing
		return answer, false, err
	}
	var until time.Time
	if c.idempotency == "" {
		answer, until, err = take(c.api.hf, due)
		return answer, !until.IsZero(), err
	}
	if err := c.api.claiming.One(c.ctx()); err != nil {
		return answer, false, err
	}
	defer c.api.claiming.Free(1)
	var before *requests.Request
	err = c.api.engine.Update(c.ctx(), func(ctx context.Context, tx *store.Tx) (err error) {
		before = nil
		if answer, until, err = take(tx, due); err != nil || until.IsZero() {
			return err
		}
		q, mine, err := requests.Take(ctx, tx, requests.TakeArgs{Key: c.idempotency, Fingerprint: c.fingerprint(), Holder: store.NewID().String(), Lease: keyLease})
		if err == nil && !mine {
			before, err = &q, errTwin
		}
		if err != nil {
			return err
		}
		now := q.Until.Add(-keyLease) // by the database's clock, as until is
		return requests.FinishFor(ctx, tx, c.idempotency, q.Epoch, c.status, c.stored(answer), max(until.Sub(now), time.Millisecond))
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
func replayed[T any](c *call, q requests.Request) (answer T, err error) {
	told, err := c.replay(q)
	if text, ok := told.(json.RawMessage); err == nil && ok {
		err = json.Unmarshal(text, &answer)
	}
	return answer, err
}

// keepKey keeps the hold of the request's key.
func (c *call) keepKey(epoch int64) *hold.Keeper {
	return &hold.Keeper{Lease: keyLease, Timeout: answerWithin, Renew: func(ctx context.Context) error {
		_, err := requests.Renew(ctx, c.api.engine, c.idempotency, epoch, keyLease)
		if fault.CodeOf(err) != fault.LeaseLost {
			return err
		}
		q, failed := requests.Get(ctx, c.api.engine, c.idempotency)
		if failed == nil && q.Epoch == epoch && q.State != requests.Held { // by this very request, which points to its operation
			return nil
		}
		return err
	}}
}

// freeKey forgets a request that changed nothing, if its key is still held.
func (c *call) freeKey(epoch int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx()), keyLease)
	defer cancel()
	if err := requests.Free(ctx, c.api.engine, c.idempotency, epoch); err != nil {
		c.api.log.Warn("the key of a refused request could not be freed: it is free when its hold has run out", "error", err)
	}
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
func (c *call) replay(q requests.Request) (any, error) {
	if err := c.another(q); err != nil {
		return nil, err
	}
	if q.State != requests.Done {
		return nil, inFlight(q)
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
	c.w.Header().Set(replayedHeader, "true")
}

// inFlight is the error of who comes while the first is at work.
func inFlight(q requests.Request) error {
	return fault.New(fault.KeyInFlight, "the request with this %s is being worked on", keyHeader).With("retryAfter", seconds(q.RetryAfter))
}

func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// retryAfter tells in a header what an error says.
func retryAfter(h http.Header, f *fault.Error) {
	if n, ok := f.Fields["retryAfter"].(int); ok {
		h.Set("Retry-After", strconv.Itoa(n))
	}
}
