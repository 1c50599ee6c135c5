package requests

import (
	"cmp"
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// Finish ends a hold with the answer of the request. The answer is JSON, or empty.
// Finishing again under the epoch that finished, with the same answer, is well;
// otherwise a hold that has run out or was ended is [fault.LeaseLost].
func Finish(ctx context.Context, d store.Doer, key string, epoch int64, status int, answer []byte) error {
	return answered(ctx, d, endArgs{key: key, epoch: epoch, how: "done", status: int64(status), answer: string(answer)})
}

// FinishFor is [Finish] of a request that is remembered for so long.
func FinishFor(ctx context.Context, d store.Doer, key string, epoch int64, status int, answer []byte, ttl time.Duration) error {
	return answered(ctx, d, endArgs{key: key, epoch: epoch, how: "done", status: int64(status), answer: string(answer), ttl: ttl})
}

// Answer writes the answer of a request that [Commit] marked under this epoch.
func Answer(ctx context.Context, d store.Doer, key string, epoch int64, status int, answer []byte) error {
	return answered(ctx, d, endArgs{key: key, epoch: epoch, how: "answer", status: int64(status), answer: string(answer)})
}

func answered(ctx context.Context, d store.Doer, a endArgs) error {
	if a.status < 100 || a.status > 999 {
		return fault.New(fault.Validation, "a status is 100 to 999, not %d", a.status)
	}
	if a.answer != "" && (!utf8.ValidString(a.answer) || !json.Valid([]byte(a.answer))) {
		return fault.New(fault.Validation, "an answer is kept as JSON, and this one is not")
	}
	e, err := end(ctx, d, a)
	if err != nil || e.applied || e.state == string(Done) && e.epoch == a.epoch && e.status == a.status && e.answer == a.answer {
		return err
	}
	return hold.Lost("the request", a.epoch)
}

func end(ctx context.Context, d store.Doer, a endArgs) (ended, error) {
	a.ttl = cmp.Or(a.ttl, TTL)
	return endVerb.Do(ctx, d, a)
}

// Commit marks a held request as done in the transaction that does it, before its
// answer is known: from then on nobody carries it out again, and [Answer] may tell
// what was answered. Until the end of its hold the answer may be on its way; after
// that it is lost. It is for the first statement of the transaction: the row is
// then locked, and nobody takes the request over while the rest is written. A
// request that is marked already is [fault.Conflict]: what it asks for is done.
func Commit(ctx context.Context, tx *store.Tx, key string, epoch int64) error {
	return commit(ctx, tx, endArgs{key: key, epoch: epoch})
}

func commit(ctx context.Context, tx *store.Tx, a endArgs) error {
	a.how = "commit"
	e, err := end(ctx, tx, a)
	switch {
	case err != nil || e.applied:
		return err
	case e.state == string(Done) && e.epoch == a.epoch:
		return fault.New(fault.Conflict, "the request is done already under this epoch: do all that it asks for in one transaction").With("epoch", a.epoch)
	}
	return hold.Lost("the request", a.epoch)
}

// Point ends a hold: the answer will be what became of an operation. Pointing
// again, to the same, under the same epoch is well.
func Point(ctx context.Context, d store.Doer, key string, epoch int64, operation, subject string) error {
	return point(ctx, d, endArgs{key: key, epoch: epoch, operation: operation, subject: subject})
}

func point(ctx context.Context, d store.Doer, a endArgs) error {
	if err := strict.Text("operation", a.operation, events.MaxName); err != nil {
		return err
	}
	a.how = "operation"
	e, err := end(ctx, d, a)
	if err != nil || e.applied || e.state == string(Operation) && e.epoch == a.epoch && e.operation == a.operation && e.subject == a.subject {
		return err
	}
	return hold.Lost("the request", a.epoch)
}

// Repoint points a request to another operation, where the one that it points to
// was released without effect. It says whether the request points to the new one
// now; it does not if somebody else was faster, or if its time is over.
func Repoint(ctx context.Context, d store.Doer, key, fingerprint, from, operation, subject string) (bool, error) {
	return repoint(ctx, d, pointArgs{key: key, fingerprint: fingerprint, from: from, operation: operation, subject: subject})
}

func repoint(ctx context.Context, d store.Doer, a pointArgs) (bool, error) {
	if err := strict.Text("operation", a.operation, events.MaxName); err != nil {
		return false, err
	}
	a.ttl = cmp.Or(a.ttl, TTL)
	p, err := repointVerb.Do(ctx, d, a)
	if err != nil {
		return false, err
	}
	again := p.state == string(Operation) && p.fingerprint == a.fingerprint && p.operation == a.operation && p.subject == a.subject
	return p.applied || again, nil
}

// Free forgets a request that was refused and changed nothing, if it is still held
// under this epoch. Otherwise it does nothing: a holder that lost it changes
// nothing.
func Free(ctx context.Context, d store.Doer, key string, epoch int64) error {
	_, err := freeVerb.Do(ctx, d, epochArgs{key, epoch})
	return err
}

// Renew extends a hold, or returns [fault.LeaseLost].
func Renew(ctx context.Context, d store.Doer, key string, epoch int64, lease time.Duration) (time.Time, error) {
	if err := checkLease(lease); err != nil {
		return time.Time{}, err
	}
	until, err := renewVerb.Do(ctx, d, renewArgs{epochArgs{key, epoch}, lease})
	return store.First(until, err, func() error { return hold.Lost("the request", epoch) })
}

// Get returns a request, or [fault.NotFound], also where its time is over.
func Get(ctx context.Context, d store.Doer, key string) (Request, error) {
	if err := CheckKey(key); err != nil {
		return Request{}, err
	}
	all, err := getVerb.Do(ctx, d, key)
	q, err := store.First(all, err, func() error { return fault.New(fault.NotFound, "there is no request under this key") })
	q.Key = key
	return q, err
}

// Prune forgets requests whose time is over, of all workspaces on a shard, up to a
// limit, and returns how many. It may run on every node at once.
func Prune(ctx context.Context, d store.Doer, shard int16, limit int) (int, error) {
	return pruneVerb.DoAt(ctx, d, store.Place{Shard: shard}, limit)
}

// pruneLimit is how many requests go in one transaction.
const pruneLimit = 1000

// PruneAll forgets all requests whose time is over.
func PruneAll(ctx context.Context, d store.Doer) (int, error) {
	shards, err := store.Shards(ctx, d)
	return store.OnShards(shards, err, func(at store.Place) (n int, err error) {
		for {
			some, err := Prune(ctx, d, at.Shard, pruneLimit)
			if n += some; err != nil || some < pruneLimit {
				return n, err
			}
		}
	})
}
