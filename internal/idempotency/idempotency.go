// Package idempotency stores requests under a key that the caller chose, so that a repeated request
// gets the same response and does not take effect again.
//
// A request is held while it is in progress; it is done, with its response; or it points to an
// operation, and its response is derived from the outcome of that. It is stored for [TTL]. There
// are three ways to use it:
//
//   - In one command ([Flight.InCommand]): the request is stored as done, in the transaction of its
//     work, which other callers share. This is for a new key; otherwise nothing is written.
//   - In one transaction: Take, the work of the request, Finish or Point. The request is never visible
//     as held. A refusal rolls the transaction back, and the key with it.
//   - Under a lease: Take, which commits; the work, under Renew; Finish, or Free if nothing was done.
//     This is for work that does not fit into one transaction.
//
// [Take] and the methods of [Lease] write the row. A [Flight] combines them for the HTTP API and
// for package idem.
//
// # Concurrency
//
// Every verb locks the row first, and reads the row and the time afterwards. So each of the
// following pairs is serialized in one of two orders.
//
// Two Takes: a lock on the key decides. The second Take waits for the transaction of the first, and
// then finds the row as that left it: held, if it was a Take on the engine; done, if it was a
// complete transaction; absent, if it was rolled back, and then the second Take gets it. InCommand
// has the same lock from its first statement on, but does not wait for it: docs/decisions/044 lists the cases.
//
// A Take of an expired lease, and Finish by the old holder: the Take increments the epoch, so a
// later Finish is refused. An earlier Finish is refused too, because the lease has expired. So no
// response is ever replaced, and the response of a late holder is not stored: a holder must write
// in the transaction of its Finish what must not happen twice ([Lease.Commit]).
//
// A Take of an expired lease takes over only the same request, by its fingerprint: the crashed
// holder may have carried it out, so a different request under this key would get the response of
// that one.
//
// Finish after Free, or any call of an earlier holder after the row was pruned and created again:
// refused. Epochs of a new row start at the database time and not at one, so that no two holders of
// a key ever have the same epoch.
//
// Prune and Take: Prune skips a row that is being taken, and checks the time again after it. A Take
// that waited for a Prune creates the row anew.
//
// A crash between Take and Finish: in one transaction nothing is left. Otherwise the lease is left,
// and expires. It needs no janitor, because the next Take releases it, and [Prune] deletes rows
// that are no longer used.
//
// # Unknown outcomes
//
// These rows have no history, so an unknown commit outcome is resolved by repeating the command, and
// each verb that writes recognizes its repetition. Take: a holder's name is used for one call
// only, so a row that it holds is the row that it wrote. Finish, Point, Answer: the epoch and the
// values are already in the row. Repoint: the row points to the new operation, which belongs to one
// caller. Free: an epoch is never reused, so there is nothing left to free. Only [Lease.Commit]
// cannot be repeated, and so it runs only in transactions: a caller that finds its request marked as
// done must not repeat the work. Renew and Prune write the same again. InCommand has an event, that
// of its work, which tells whether both the work and the request were committed.
//
// Only InCommand is grouped with other callers: a Take may have to wait for another transaction,
// which a group must never do.
package idempotency

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// TTL is how long a request is stored after its last change, unless the caller sets another value.
const TTL = 24 * time.Hour

// KeyHeader is the header that carries the idempotency key of a request.
const KeyHeader = "Idempotency-Key"

// ReplayedHeader marks a response as that of an earlier request.
const ReplayedHeader = "Idempotency-Replayed"

// MaxKey is the maximum length of a key.
const MaxKey = 255

// State is the state of a request.
type State string

// The states of a request.
const (
	Held      State = "held"
	Done      State = "done"
	Operation State = "operation"
)

// Request is a stored request.
type Request struct {
	Key         string
	Fingerprint string // of the request: another fingerprint under the same key is a mistake
	State       State
	Holder      string
	Epoch       int64
	Until       time.Time // end of the lease, in database time
	Operation   string
	Subject     string // what the operation works on, as named by the caller of Point
	// Status and Answer are set if the request is done.
	Status    int
	Answer    []byte // JSON
	CreatedAt time.Time
	// RetryAfter is the remaining time of the lease, by the database clock. For a committed request
	// it is the time in which its response may still be stored.
	RetryAfter time.Duration
}

// Answerless reports whether the request is done without a known response; see [Lease.Commit].
func (q Request) Answerless() bool { return q.State == Done && q.Status == 0 }

// TakeArgs begins a request. Holder names the one call that begins it, and is never reused.
type TakeArgs struct {
	Key, Fingerprint string
	Holder           string
	Lease            time.Duration // default [lease.DefaultDuration]
	TTL              time.Duration // default [TTL]
}

// Take begins a request. mine reports that the caller got it: because it was unknown, because its
// TTL was over, or because its lease had expired. Otherwise Take returns the request as it is, and
// the caller must compare the fingerprint. A request that the same holder already has is its own
// again.
func Take(ctx context.Context, d store.Doer, a TakeArgs) (q Request, mine bool, err error) {
	a.Lease = cmp.Or(a.Lease, lease.DefaultDuration)
	t, err := takeVerb.Do(ctx, d, a)
	if err != nil {
		return q, false, err
	}
	t.Key = a.Key
	again := t.State == Held && t.Holder == a.Holder && t.RetryAfter > 0
	return t.Request, t.applied || again, nil
}
