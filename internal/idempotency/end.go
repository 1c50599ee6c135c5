package idempotency

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Lease is a request that is held, for those who took it: under another epoch they write nothing.
type Lease struct {
	Key   string
	Epoch int64
	TTL   time.Duration // how long the request is remembered; 0 is [TTL]
}

// Finish ends a hold with the answer of the request. The answer is JSON, or empty.
// Finishing again under the epoch that finished, with the same answer, is well;
// otherwise a hold that has run out or was ended is [fault.LeaseLost].
func (h Lease) Finish(ctx context.Context, d store.Doer, status int, answer []byte) error {
	return answered(ctx, d, endArgs{Lease: h, how: "done", status: status, answer: string(answer)})
}

// Answer writes the answer of a request that Commit marked under this epoch.
func (h Lease) Answer(ctx context.Context, d store.Doer, status int, answer []byte) error {
	return answered(ctx, d, endArgs{Lease: h, how: "answer", status: status, answer: string(answer)})
}

func answered(ctx context.Context, d store.Doer, a endArgs) error {
	if a.status < 100 || a.status > 999 {
		return fault.New(fault.Validation, "a status is 100 to 999, not %d", a.status)
	}
	if a.answer != "" && (!utf8.ValidString(a.answer) || !json.Valid([]byte(a.answer))) {
		return fault.New(fault.Validation, "an answer is kept as JSON, and this one is not")
	}
	e, err := endVerb.Do(ctx, d, a)
	if err != nil || e.applied || e.State == Done && e.Epoch == a.Epoch && e.Status == a.status && string(e.Answer) == a.answer {
		return err
	}
	return lease.Lost("the request", a.Epoch)
}

// Commit marks a held request as done in the transaction that does it, before its
// answer is known: from then on nobody carries it out again, and Answer may tell
// what was answered. Until the end of its hold the answer may be on its way; after
// that it is lost. It is for the first statement of the transaction: the row is
// then locked, and nobody takes the request over while the rest is written. A
// request that is marked already is [fault.Conflict]: what it asks for is done.
func (h Lease) Commit(ctx context.Context, tx *store.Tx) error {
	e, err := endVerb.Do(ctx, tx, endArgs{Lease: h, how: "commit"})
	switch {
	case err != nil || e.applied:
		return err
	case e.State == Done && e.Epoch == h.Epoch:
		return fault.New(fault.Conflict, "the request is done already under this epoch: do all that it asks for in one transaction").With("epoch", h.Epoch)
	}
	return lease.Lost("the request", h.Epoch)
}

// Point ends a hold: the answer will be what became of an operation. Pointing
// again, to the same, under the same epoch is well.
func (h Lease) Point(ctx context.Context, d store.Doer, operation, subject string) error {
	e, err := endVerb.Do(ctx, d, endArgs{Lease: h, how: "operation", operation: operation, subject: subject})
	if err != nil || e.applied || e.State == Operation && e.Epoch == h.Epoch && e.Operation == operation && e.Subject == subject {
		return err
	}
	return lease.Lost("the request", h.Epoch)
}

// Free forgets a request that was refused and changed nothing, if it is still held
// under this epoch. Otherwise it does nothing: a holder that lost it changes
// nothing.
func (h Lease) Free(ctx context.Context, d store.Doer) error {
	_, err := freeVerb.Do(ctx, d, h)
	return err
}

// Renew extends a hold, or returns [fault.LeaseLost].
func (h Lease) Renew(ctx context.Context, d store.Doer, leaseTime time.Duration) (time.Time, error) {
	until, err := renewVerb.Do(ctx, d, renewArgs{h, leaseTime})
	if err == nil && until.IsZero() {
		err = lease.Lost("the request", h.Epoch)
	}
	return until, err
}

// RepointArgs points a request to another operation than From.
type RepointArgs struct {
	Key, Fingerprint, From, Operation, Subject string
	TTL                                        time.Duration // 0 is [TTL]
}

// Repoint points a request to another operation, where the one that it points to
// was released without effect. It says whether the request points to the new one
// now; it does not if somebody else was faster, or if its time is over.
func Repoint(ctx context.Context, d store.Doer, a RepointArgs) (bool, error) {
	p, err := repointVerb.Do(ctx, d, a)
	if err != nil {
		return false, err
	}
	again := p.State == Operation && p.Fingerprint == a.Fingerprint && p.Operation == a.Operation && p.Subject == a.Subject
	return p.applied || again, nil
}

// Get returns a request. One that is not known, also where its time is over, has no state.
func Get(ctx context.Context, d store.Doer, key string) (Request, error) {
	q, err := getVerb.Do(ctx, d, key)
	q.Key = key
	return q, err
}

// Prune forgets requests whose time is over, of all workspaces on a shard, up to a
// limit, and returns how many. It may run on every node at once.
func Prune(ctx context.Context, d store.Doer, shard int16, limit int) (int, error) {
	return pruneVerb.DoAt(ctx, d, store.Partition{Shard: shard}, limit)
}

// pruneLimit is how many requests go in one transaction.
const pruneLimit = 1000

// PruneAll forgets all requests whose time is over.
func PruneAll(ctx context.Context, d store.Doer) (int, error) {
	shards, err := store.Shards(ctx, d)
	return store.OnShards(shards, err, func(at store.Partition) (n int, err error) {
		for {
			some, err := Prune(ctx, d, at.Shard, pruneLimit)
			if n += some; err != nil || some < pruneLimit {
				return n, err
			}
		}
	})
}
