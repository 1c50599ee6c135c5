package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Engine stores the keys of flights.
type Engine interface {
	store.Doer
	Runner() *store.Runner
	Update(context.Context, func(context.Context, *store.Tx) error) error
}

// Flight is a request that is carried out under its key, by the HTTP API or by a program's own
// handler (package idem). It is made for one attempt and taken once.
//
// The operations that a program's handler begins belong to the key: each has its own row, a [Slot],
// which points to it from the transaction on that begins it. The key's own row cannot do that: a
// handler begins any number of operations, and a refusal frees the key.
//
// Between Renewing and its end a Flight is safe for concurrent use.
type Flight struct {
	Lease                     // also applies to its slots
	Name        string        // the key as the caller sent it
	Fingerprint string        // see [Incoming]
	LeaseTime   time.Duration // of the key
	Timeout     time.Duration // maximum time that the key is renewed; default [lease.Timeout]
	Engine      Engine
	Log         *slog.Logger

	workspace string     // of the key
	updating  sync.Mutex // held during an Update
	over      bool       // no Update may start any more

	committing, committed atomic.Bool

	mu    sync.Mutex
	ended map[string]int  // number of ended operations by kind
	stand map[string]bool // slots whose operation may have changed something
}

type flightKey struct{}

// InFlight returns a context whose operations belong to a flight, or to none if f is nil.
func InFlight(ctx context.Context, f *Flight) context.Context {
	return context.WithValue(ctx, flightKey{}, f)
}

// FlightOf returns the flight of a context, or nil.
func FlightOf(ctx context.Context) *Flight {
	f, _ := ctx.Value(flightKey{}).(*Flight)
	return f
}

// Take calls [Take] for the flight's key.
func (f *Flight) Take(ctx context.Context, d store.Doer) (q Request, mine bool, err error) {
	q, mine, err = Take(ctx, d, TakeArgs{Key: f.Key, Fingerprint: f.Fingerprint, Holder: store.NewID().String(), Lease: f.LeaseTime, TTL: f.TTL})
	if mine {
		f.Epoch, f.workspace = q.Epoch, store.WorkspaceOf(ctx)
		f.ended, f.stand = make(map[string]int), make(map[string]bool)
	}
	return q, mine, err
}

// Renewing renews the key until end is called. The context ends when the key is lost. end frees the key
// of a refused request, unless it was committed, because a refused request has changed nothing.
func (f *Flight) Renewing(ctx context.Context) (held context.Context, end func(refused bool)) {
	k := &lease.Renewer{Lease: f.LeaseTime, Timeout: f.Timeout, Renew: f.renew}
	return k.Start(ctx), func(refused bool) {
		k.Stop()
		f.updating.Lock()
		f.over = true
		f.updating.Unlock()
		if refused && !f.Committed() {
			f.free(ctx)
		}
	}
}

// renew extends the lease of a request in flight. A lease that the request itself has ended is not
// lost: the request is marked as done, or points to its operation.
func (f *Flight) renew(ctx context.Context) error {
	err := f.extend(ctx, f.Engine)
	if fault.CodeOf(err) != fault.LeaseLost {
		return err
	}
	if q, failed := Get(ctx, f.Engine, f.Key); failed == nil && q.Epoch == f.Epoch && q.State != Held {
		return nil
	}
	return err
}

// extend extends the lease. A lease that an Update has ended, or is about to end, is not lost: the
// renewal waits for that transaction, and then finds no lease.
func (f *Flight) extend(ctx context.Context, d store.Doer) error {
	if f.Committed() {
		return nil
	}
	_, err := f.Renew(ctx, d, f.LeaseTime)
	if f.committing.Load() || f.Committed() {
		return nil
	}
	return err
}

// free releases the key. If an operation of the handler stands, the key stays with this request,
// which may be repeated immediately, while other requests are refused under it. If releasing fails,
// the lease expires.
func (f *Flight) free(ctx context.Context) {
	ctx, cancel := ending(ctx)
	defer cancel()
	var err error
	if f.Stands() {
		_, err = f.Renew(ctx, f.Engine, time.Millisecond)
	} else {
		err = f.Free(ctx, f.Engine)
	}
	if err != nil && fault.CodeOf(err) != fault.LeaseLost { // it has already expired
		f.Log.Warn("failed to release the key of a refused request; its lease will expire", "key", f.Key, "error", err)
	}
}

// Record stores the response: as the end of the request or, if it was committed, over the mark. If
// that fails because another holder has stored a response to the same request meanwhile, it returns
// that, too.
func (f *Flight) Record(ctx context.Context, status int, answer []byte) (other *Request, err error) {
	ctx, cancel := ending(ctx)
	defer cancel()
	if f.Committed() {
		err = f.Answer(ctx, f.Engine, status, answer)
	} else {
		err = f.Finish(ctx, f.Engine, status, answer)
	}
	if err == nil {
		return nil, nil
	}
	f.Log.Warn("failed to store the response of a request with a key", "key", f.Key, "error", err)
	if q, failed := Get(ctx, f.Engine, f.Key); failed == nil && q.State == Done && q.Epoch != f.Epoch && q.Fingerprint == f.Fingerprint {
		other = &q
	}
	return other, err
}

// ending returns the context for writes after a request has been carried out, independent of its
// caller.
func ending(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
}

// Update runs u in a transaction that also marks the request as done. A flight without a key has
// nothing to mark.
func (f *Flight) Update(ctx context.Context, u func(context.Context, *store.Tx) error) error {
	if f.Key == "" {
		return f.Engine.Update(ctx, u)
	}
	f.updating.Lock()
	defer f.updating.Unlock()
	if f.over {
		return fault.New(fault.Conflict, "idem.Commit must not be called after the handler has returned")
	}
	f.committing.Store(true)
	defer f.committing.Store(false)
	err := f.Engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := f.Commit(store.InWorkspace(ctx, f.workspace), tx); err != nil {
			return err
		}
		return u(ctx, tx)
	})
	if err == nil {
		f.committed.Store(true)
	}
	return err
}

// Committed reports whether the request is marked as done.
func (f *Flight) Committed() bool { return f.committed.Load() }

// fence refuses to begin an operation for a request whose lease may be lost. In a transaction of
// another engine the lease cannot be checked.
func (f *Flight) fence(ctx context.Context, tx *store.Tx) error {
	if f.Committed() { // a retry would get the stored response instead of running the handler
		return fault.New(fault.Conflict, "a step must be fired before idem.Commit, which marks the request as done: no retry would run the step after a crash")
	}
	if tx.Directory() != f.Engine.Runner().Directory {
		return nil
	}
	return f.extend(store.InWorkspace(ctx, f.workspace), tx)
}

// Begin points a key, the flight's own or that of a slot, to an operation, in the transaction that
// begins it. was is the operation that it pointed to, which was released without effect, or "". If
// another caller was faster, it returns [fault.KeyInFlight].
func (f *Flight) Begin(ctx context.Context, tx *store.Tx, key, was, operation, subject string) (err error) {
	var mine bool
	if was == "" {
		var q Request
		q, mine, err = Take(ctx, tx, TakeArgs{Key: key, Fingerprint: f.Fingerprint, Holder: operation, TTL: f.TTL})
		if err == nil && mine {
			err = Lease{key, q.Epoch, f.TTL}.Point(ctx, tx, operation, subject)
		}
	} else {
		mine, err = Repoint(ctx, tx, RepointArgs{key, f.Fingerprint, was, operation, subject, f.TTL})
	}
	if err == nil && !mine {
		err = UnderWay(0)
	}
	return err
}

// Stands reports whether an operation of this flight is in flight, or has ended with an effect:
// then the key stays with this request.
func (f *Flight) Stands() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.stand) > 0
}

// Slot returns the slot of the next operation of a kind. A handler that runs again gets the same
// slot, if it begins operations of one kind in the same order.
func (f *Flight) Slot(what ...string) *Slot {
	kind, _ := json.Marshal(what) // cannot fail for strings
	f.mu.Lock()
	defer f.mu.Unlock()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s", f.Key, f.Fingerprint, f.ended[string(kind)], kind))
	return &Slot{flight: f, kind: string(kind), key: "idem-operation/" + hex.EncodeToString(sum[:])}
}

// Slot identifies one operation of a [Flight].
type Slot struct {
	flight    *Flight
	kind, key string
}

// Operation returns the operation that the slot points to, or "".
func (s *Slot) Operation(ctx context.Context, d store.Doer) (string, error) {
	q, err := Get(ctx, d, s.key)
	return q.Operation, err
}

// Extend extends the slot to the TTL of its key, which a retry has taken again.
func (s *Slot) Extend(ctx context.Context, d store.Doer, operation string) error {
	_, err := Repoint(ctx, d, RepointArgs{s.key, s.flight.Fingerprint, operation, operation, s.kind, s.flight.TTL})
	return err
}

// Point points the slot to an operation, as [Flight.Begin] does, if the key is not lost.
func (s *Slot) Point(ctx context.Context, tx *store.Tx, was, operation string) error {
	if err := s.flight.fence(ctx, tx); err != nil {
		return err
	}
	s.Stands(true)
	return s.flight.Begin(ctx, tx, s.key, was, operation, s.kind)
}

// Stands sets whether the slot's operation is in flight, or has ended with an effect.
func (s *Slot) Stands(yes bool) {
	f := s.flight
	f.mu.Lock()
	defer f.mu.Unlock()
	if yes {
		f.stand[s.key] = true
	} else {
		delete(f.stand, s.key)
	}
}

// End records that the handler knows the outcome of the operation: the next one of the same kind
// gets a new slot.
func (s *Slot) End() {
	s.Stands(true)
	f := s.flight
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended[s.kind]++
}
