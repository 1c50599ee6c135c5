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

// Lease is a held request, as its holder sees it. Under another epoch it writes nothing.
type Lease struct {
	Key   string
	Epoch int64
	TTL   time.Duration // how long the request is stored; default [TTL]
}

// Finish ends a lease with the response of the request. The response is JSON, or empty. Finishing
// again under the same epoch with the same response succeeds; otherwise an expired or ended lease
// is [fault.LeaseLost].
func (h Lease) Finish(ctx context.Context, d store.Doer, status int, answer []byte) error {
	return answered(ctx, d, endArgs{Lease: h, how: "done", status: status, answer: string(answer)})
}

// Answer stores the response of a request that Commit marked under this epoch.
func (h Lease) Answer(ctx context.Context, d store.Doer, status int, answer []byte) error {
	return answered(ctx, d, endArgs{Lease: h, how: "answer", status: status, answer: string(answer)})
}

func checkAnswer(status int, answer []byte) error {
	if status < 100 || status > 999 {
		return fault.New(fault.Validation, "status must be between 100 and 999, got %d", status)
	}
	if len(answer) > 0 && (!utf8.Valid(answer) || !json.Valid(answer)) {
		return fault.New(fault.Validation, "the stored response must be valid JSON")
	}
	return nil
}

func answered(ctx context.Context, d store.Doer, a endArgs) error {
	if err := checkAnswer(a.status, []byte(a.answer)); err != nil {
		return err
	}
	e, err := settleVerb.Do(ctx, d, a)
	if err != nil || e.applied || e.State == Done && e.Epoch == a.Epoch && e.Status == a.status && string(e.Answer) == a.answer {
		return err
	}
	return lease.Lost("the request", a.Epoch)
}

// Commit marks a held request as done in the transaction that does its work, before its response is
// known: from then on it is not carried out again, and Answer may store the response. Until the end
// of the lease the response may still come; after that it is lost. Commit must be the first
// statement of the transaction: it locks the row, so that the request cannot be taken over while
// the rest is written. A request that is already marked is [fault.Conflict]: its work is done.
func (h Lease) Commit(ctx context.Context, tx *store.Tx) error {
	e, err := settleVerb.Do(ctx, tx, endArgs{Lease: h, how: "commit"})
	switch {
	case err != nil || e.applied:
		return err
	case e.State == Done && e.Epoch == h.Epoch:
		return fault.New(fault.Conflict, "the request has already been completed: do all of its work in one transaction").With("epoch", h.Epoch)
	}
	return lease.Lost("the request", h.Epoch)
}

// Point ends a lease: the response is derived from the outcome of an operation. Pointing to the
// same operation again under the same epoch succeeds.
func (h Lease) Point(ctx context.Context, d store.Doer, operation, subject string) error {
	e, err := settleVerb.Do(ctx, d, endArgs{Lease: h, how: "operation", operation: operation, subject: subject})
	if err != nil || e.applied || e.State == Operation && e.Epoch == h.Epoch && e.Operation == operation && e.Subject == subject {
		return err
	}
	return lease.Lost("the request", h.Epoch)
}

// Free deletes a refused request that changed nothing, if it is still held under this epoch.
// Otherwise it does nothing.
func (h Lease) Free(ctx context.Context, d store.Doer) error {
	_, err := releaseVerb.Do(ctx, d, h)
	return err
}

// Renew extends a lease, or returns [fault.LeaseLost].
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
	TTL                                        time.Duration // default [TTL]
}

// Repoint points a request to another operation, if its current one was released without effect. It
// reports whether the request points to the new one; it does not if another caller was faster, or
// if its TTL is over.
func Repoint(ctx context.Context, d store.Doer, a RepointArgs) (bool, error) {
	p, err := updateOperationVerb.Do(ctx, d, a)
	if err != nil {
		return false, err
	}
	again := p.State == Operation && p.Fingerprint == a.Fingerprint && p.Operation == a.Operation && p.Subject == a.Subject
	return p.applied || again, nil
}

// Get returns a request. An unknown one, or one whose TTL is over, has no state.
func Get(ctx context.Context, d store.Doer, key string) (Request, error) {
	q, err := getVerb.Do(ctx, d, key)
	q.Key = key
	return q, err
}

// Prune deletes requests whose TTL is over, of all workspaces on a shard, up to a limit, and
// returns how many. It may run on all nodes at once.
func Prune(ctx context.Context, d store.Doer, shard int16, limit int) (int, error) {
	return pruneVerb.DoAt(ctx, d, store.Partition{Shard: shard}, limit)
}

// pruneLimit is the number of requests that one transaction deletes.
const pruneLimit = 1000

// PruneAll deletes all requests whose TTL is over.
func PruneAll(ctx context.Context, d store.Doer) (int, error) {
	return store.Sweep(ctx, d, func(at store.Partition) (n int, err error) {
		for {
			some, err := Prune(ctx, d, at.Shard, pruneLimit)
			if n += some; err != nil || some < pruneLimit {
				return n, err
			}
		}
	})
}
