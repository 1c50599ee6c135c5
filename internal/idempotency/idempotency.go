// Package idempotency remembers requests by a key that their caller chose, so that one
// which is sent again gives the same answer and is not carried out again.
//
// A request is held while somebody works on it; it is done, with its answer; or it
// points to an operation, and then its answer is what became of that. It is
// remembered for [TTL]. There are two ways to use it:
//
//   - In one transaction: Take, what the request asks for, Finish or Point. Nobody
//     ever sees it held. What was refused is rolled back, and the key with it.
//   - Held: Take, which commits; the work, under Renew; Finish, or Free where
//     nothing was done. It is for work that a transaction cannot hold.
//
// [Take] and the methods of [Lease] write the row. A [Flight] does with them what the HTTP
// API and package idem have in common.
//
// # Who meets whom
//
// Every verb locks the row first and looks at it and at the time afterwards, so
// that each of these pairs comes to one of two orders, and nothing in between.
//
// Two Takes: the row's key judges. The second insert waits for the first one's
// transaction and then finds the row as that left it: held, if it was an engine's
// Take; done, if it was a whole transaction; none, if it was rolled back, and then
// the second has it.
//
// A Take of a hold that has run out, and the old holder's Finish: the Take adds one
// to the epoch, so a Finish that comes after it is refused. A Finish that comes
// before it is refused too, because the time is past the end. So nobody's answer is
// replaced, and a holder that is late has its answer recorded by nobody: it must
// do in the transaction of its Finish what must not happen twice ([Lease.Commit]).
//
// A Take of a hold that has run out takes over only the same request, by its
// fingerprint: the holder that did not come back may have carried it out, so that
// another one under this key would be answered for what it did not ask.
//
// Finish after Free, or anything of an earlier holder after the row was forgotten
// and made again: refused. Epochs of a new row begin at the database's time and not
// at one, so that no two holders of a key ever have the same.
//
// Prune and Take: Prune skips a row that is being taken, and after it looks at its
// time again. A Take that waited for a Prune makes the row anew.
//
// A crash between Take and Finish: in one transaction nothing is left. Otherwise the
// hold is left, and runs out; there is no janitor for it, because the Take that
// wants it is the one that frees it, and [Prune] takes what nobody wants.
//
// # Lost answers
//
// These rows have no history, so an unknown outcome is resolved by asking again, and
// each verb that writes recognises its repetition. Take: a holder's name is for one
// call only, so a row that is held by it is the row that it made. Finish, Point,
// Answer: the epoch and what was to be written are there already. Repoint: it
// points to the new operation, which is one caller's alone. Free: the epoch never
// comes again, so there is nothing to free. [Lease.Commit] alone does not, and runs in
// transactions only: whoever finds the mark must not do again what it marks. Renew
// and Prune write what a repetition writes again.
//
// They are not grouped with other callers' commands: most are run in a transaction,
// and a Take may have to wait for another's transaction, which a group must never
// do.
package idempotency

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// TTL is how long a request is remembered after its last change, unless its caller says
// otherwise.
const TTL = 24 * time.Hour

// KeyHeader is the header in which a caller gives a request its key.
const KeyHeader = "Idempotency-Key"

// ReplayedHeader marks an answer that was given before.
const ReplayedHeader = "Idempotency-Replayed"

// MaxKey is the length of the longest key.
const MaxKey = 255

// State is what became of a request.
type State string

// The states of a request.
const (
	Held      State = "held"
	Done      State = "done"
	Operation State = "operation"
)

// Request is a request as it stands.
type Request struct {
	Key         string
	Fingerprint string // of what was asked for: the same key with another is a mistake
	State       State
	Holder      string
	Epoch       int64
	Until       time.Time // of the hold, in the database's time
	Operation   string
	Subject     string // what the operation is on
	// Status and Answer are of a request that is done.
	Status    int
	Answer    []byte // JSON
	CreatedAt time.Time
	// RetryAfter is how long the hold still is, by the database's clock. Of a
	// request that was committed it is how long its answer may be on its way.
	RetryAfter time.Duration
}

// Answerless says that the request is done and its answer not known: see [Lease.Commit].
func (q Request) Answerless() bool { return q.State == Done && q.Status == 0 }

// TakeArgs begins a request. Holder names the one call that begins it, and is never
// used for another.
type TakeArgs struct {
	Key, Fingerprint string
	Holder           string
	Lease            time.Duration // 0 is [lease.DefaultDuration]
	TTL              time.Duration // 0 is [TTL]
}

// Take begins a request. It is the caller's, mine, if it was unknown, if its time
// was over, or if it was held and its holder did not come back. Otherwise it is
// returned as it stands: whether its fingerprint is the caller's is for the caller
// to look at. One that is the caller's already, by its holder, is so again.
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
