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

// Flight is one attempt to execute a request under its idempotency key, by the HTTP API or by a
// program's own handler (package idem). A flight calls Take once.
//
// Each operation that a program's handler begins is stored in a row of its own, a [Slot]. The
// transaction that begins the operation also writes its slot. The row of the key cannot store the
// operations, because a handler may begin several of them, and because a refusal deletes that row.
//
// A Flight is safe for concurrent use from the call of Renewing until the call of its end function.
type Flight struct {
	Lease                     // also applies to its slots
	Name        string        // the key as the caller sent it
	Fingerprint string        // see [Incoming]
	LeaseTime   time.Duration // duration of the lease on the key
	Timeout     time.Duration // maximum time that the key is renewed; default [lease.Timeout]
	Engine      Engine
	Log         *slog.Logger

	workspace string     // workspace of the key
	updating  sync.Mutex // held during an Update
	over      bool       // the request has ended: no further Update may start

	committing atomic.Bool // an Update is in progress
	committed  atomic.Bool // an Update has completed the request

	mu    sync.Mutex
	ended map[string]int  // number of ended operations by kind: lifecycle, entity, step and requester
	stand map[string]bool // keys of the slots whose operation is in progress or has changed something
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

// InCommand runs a handler whose only write is one command, and stores its response in the
// transaction of that command, which other callers share. After its write, the handler must only
// compute the response.
//
// done is false if nothing was written, whatever the reason: the key is known in any state, the
// handler returned an error or wrote nothing, or the transaction was rolled back. The caller then
// serves the request in a transaction that takes the key. Only there is it known whether a refusal is
// the response: the effect of the first request may be the reason why its repetition is refused.
func (f *Flight) InCommand(ctx context.Context, serve func(context.Context, store.Doer) (status int, answer []byte, err error)) (done bool, err error) {
	var at store.Partition
	probe := func(of store.Partition) store.Command {
		at = of
		return probeVerb.Command(at, f.Key)
	}
	err = store.InPair(ctx, f.Engine, probe, func(ctx context.Context, d store.Doer) (store.Command, error) {
		status, answer, err := serve(ctx, d)
		if err == nil {
			err = checkAnswer(status, answer)
		}
		if err == nil && at.Workspace != store.WorkspaceOf(ctx) {
			err = fault.New(fault.Internal, "a request in workspace %q must not write to workspace %q", store.WorkspaceOf(ctx), at.Workspace)
		}
		return recordVerb.Command(at, recordArgs{f.Key, f.Fingerprint, status, string(answer), f.TTL}), err
	})
	if err == nil || fault.CodeOf(err) == fault.OutcomeUnknown {
		return true, err
	}
	return false, nil
}

// Renewing renews the lease on the key until end is called. The context ends when the lease is lost.
// For a refused request, end releases the key, because such a request has changed nothing. A
// committed request keeps its key.
func (f *Flight) Renewing(ctx context.Context) (held context.Context, end func(refused bool)) {
	k := &lease.Renewer{Lease: f.LeaseTime, Timeout: f.Timeout, Renew: f.RenewOnce}
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

// RenewOnce extends the lease of a request in flight. If the request has ended its own lease, because it
// is complete or points to its operation, the lease is not lost and RenewOnce returns nil.
func (f *Flight) RenewOnce(ctx context.Context) error {
	err := f.extend(ctx, f.Engine)
	if fault.CodeOf(err) != fault.LeaseLost {
		return err
	}
	if q, failed := Get(ctx, f.Engine, f.Key); failed == nil && q.Epoch == f.Epoch && q.State != Held {
		return nil
	}
	return err
}

// extend extends the lease. An Update ends the lease in its transaction. A renewal waits for that
// transaction and then finds no lease, which is not an error.
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

// free releases the key. If an operation of the handler is in progress or has changed something, the
// key remains bound to this request, and free only shortens the lease: the same request may be
// retried immediately, and other requests with the key are refused. If free fails, the lease expires.
func (f *Flight) free(ctx context.Context) {
	ctx, cancel := ending(ctx)
	defer cancel()
	var err error
	if f.Stands() {
		_, err = f.Renew(ctx, f.Engine, time.Millisecond)
	} else {
		err = f.Free(ctx, f.Engine)
	}
	if err != nil && fault.CodeOf(err) != fault.LeaseLost { // a lost lease needs no release
		f.Log.Warn("failed to release the idempotency key of a refused request; the key's lease will expire", "key", f.Key, "error", err)
	}
}

// Record stores the response. For a request that is not yet committed, this also completes the
// request; for a committed one, it adds the response to the completed request. If Record fails
// because another holder has completed the same request, it also returns that holder's request.
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
	f.Log.Warn("failed to store the response to a request with an idempotency key", "key", f.Key, "error", err)
	if q, failed := Get(ctx, f.Engine, f.Key); failed == nil && q.State == Done && q.Epoch != f.Epoch && q.Fingerprint == f.Fingerprint {
		other = &q
	}
	return other, err
}

// ending returns a context for the writes at the end of a request. A cancellation by the caller does
// not affect it.
func ending(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
}

// Update runs u in a transaction that also completes the request. For a flight without a key it only
// runs u.
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

// Committed reports whether an Update has completed the request.
func (f *Flight) Committed() bool { return f.committed.Load() }

// Fence refuses to begin an operation for a request whose lease may be lost. In a transaction of
// another engine the lease cannot be checked.
func (f *Flight) Fence(ctx context.Context, tx *store.Tx) error {
	if f.Committed() { // a retry would get the stored response instead of running the handler
		return fault.New(fault.Conflict, "a step must be fired before idem.Commit, because idem.Commit completes the request: after a crash no retry would run the step")
	}
	if tx.Directory() != f.Engine.Runner().Directory {
		return nil
	}
	return f.extend(store.InWorkspace(ctx, f.workspace), tx)
}

// Begin stores an operation under a key, in the transaction that begins the operation. The key is the
// one of the flight or the one of a slot. was is the operation that the key pointed to before and
// that was released without an effect; it is "" if the key is new. If another caller has taken the
// key meanwhile, Begin returns [fault.KeyInFlight].
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

// Stands reports whether an operation of this flight is in progress or has changed something. If so,
// the key remains bound to this request after a refusal.
func (f *Flight) Stands() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.stand) > 0
}

// Slot returns the slot of the handler's next operation of one kind. The kind consists of the
// lifecycle, the entity, the step and the requester. A retry of the handler gets the same slots if
// it begins the operations of each kind in the same order.
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

// Extend extends the slot to the TTL of the flight's key, after a retry has taken the key again.
func (s *Slot) Extend(ctx context.Context, d store.Doer, operation string) error {
	_, err := Repoint(ctx, d, RepointArgs{s.key, s.flight.Fingerprint, operation, operation, s.kind, s.flight.TTL})
	return err
}

// Point stores an operation in the slot, as [Flight.Begin] does, unless the lease on the key is lost.
func (s *Slot) Point(ctx context.Context, tx *store.Tx, was, operation string) error {
	if err := s.flight.Fence(ctx, tx); err != nil {
		return err
	}
	s.Stands(true)
	return s.flight.Begin(ctx, tx, s.key, was, operation, s.kind)
}

// Stands records whether the slot's operation is in progress or has changed something.
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

// End records that the handler knows the outcome of the operation. The next operation of the same
// kind gets a new slot.
func (s *Slot) End() {
	s.Stands(true)
	f := s.flight
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended[s.kind]++
}
