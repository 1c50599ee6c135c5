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

// Engine is what the keys of flights are kept by.
type Engine interface {
	store.Doer
	Runner() *store.Runner
	Update(context.Context, func(context.Context, *store.Tx) error) error
}

// Flight is a request that is carried out under its key, over the HTTP API or by a program's
// own handler (package idem). It is made for one try and taken once.
//
// The operations that a program's handler begins belong to the key: each has a row of its own, a
// [Slot], which points to it from the transaction on that begins it. The key's own row
// cannot do that: a handler begins any number of operations, and the key is freed by
// an answer that refuses.
//
// Between Keep and its end it is safe for concurrent use.
type Flight struct {
	Lease                     // TTL is also that of its slots
	Name        string        // the key as the caller chose it
	Fingerprint string        // see [Incoming]
	LeaseTime   time.Duration // of the key
	Timeout     time.Duration // how long the key is renewed at the most; 0 is [lease.Timeout]
	Engine      Engine
	Log         *slog.Logger

	workspace string     // of the key
	updating  sync.Mutex // held for the whole of an Update
	over      bool       // nothing is to be updated any more

	committing, committed atomic.Bool

	mu    sync.Mutex
	ended map[string]int  // how many operations have ended, by what they do
	stand map[string]bool // slots whose operation may have changed something
}

type flightKey struct{}

// InFlight returns a context whose operations belong to a flight; nil is none.
func InFlight(ctx context.Context, f *Flight) context.Context {
	return context.WithValue(ctx, flightKey{}, f)
}

// FlightOf returns the flight of a context, or nil.
func FlightOf(ctx context.Context) *Flight {
	f, _ := ctx.Value(flightKey{}).(*Flight)
	return f
}

// Take is [Take] of the flight's key.
func (f *Flight) Take(ctx context.Context, d store.Doer) (q Request, mine bool, err error) {
	q, mine, err = Take(ctx, d, TakeArgs{Key: f.Key, Fingerprint: f.Fingerprint, Holder: store.NewID().String(), Lease: f.LeaseTime, TTL: f.TTL})
	if mine {
		f.Epoch, f.workspace = q.Epoch, store.WorkspaceOf(ctx)
		f.ended, f.stand = make(map[string]int), make(map[string]bool)
	}
	return q, mine, err
}

// Keep renews the key until end is called. The context ends when the key is lost. end frees the key of a
// request that was refused, unless it was committed: what is refused is taken to have changed nothing.
func (f *Flight) Keep(ctx context.Context) (held context.Context, end func(refused bool)) {
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

// renew extends the hold of a request that is under way. One that the request itself has ended is not lost: it is
// marked as done, or points to its operation.
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

// extend extends the hold. An Update that has ended it, or is about to, has not lost it: a renewal
// waits for that transaction, and finds no hold afterwards.
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

// free lets go of the key. Where an operation stands that the handler began, the key stays this
// request's, which may be sent again at once: another is refused under it. If that fails, the lease expires.
func (f *Flight) free(ctx context.Context) {
	ctx, cancel := ending(ctx)
	defer cancel()
	var err error
	if f.Stands() {
		_, err = f.Renew(ctx, f.Engine, time.Millisecond)
	} else {
		err = f.Free(ctx, f.Engine)
	}
	if err != nil && fault.CodeOf(err) != fault.LeaseLost { // it has expired already
		f.Log.Warn("the key of a refused request was not released: its lease expires", "key", f.Key, "error", err)
	}
}

// Record stores the answer: as the request's end or, where it was committed, over the mark. Where that fails because
// another has answered the same request meanwhile, it returns that, too.
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
	f.Log.Warn("the answer of a request with a key was not recorded", "key", f.Key, "error", err)
	if q, failed := Get(ctx, f.Engine, f.Key); failed == nil && q.State == Done && q.Epoch != f.Epoch && q.Fingerprint == f.Fingerprint {
		other = &q
	}
	return other, err
}

// ending is the context of what is written when a request has been carried out, whether
// its caller still waits or not.
func ending(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
}

// Update runs u in a transaction that also marks the request as done. A flight without a key has nothing to mark.
func (f *Flight) Update(ctx context.Context, u func(context.Context, *store.Tx) error) error {
	if f.Key == "" {
		return f.Engine.Update(ctx, u)
	}
	f.updating.Lock()
	defer f.updating.Unlock()
	if f.over {
		return fault.New(fault.Conflict, "idem.Commit is used after the handler has returned")
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

// Committed says whether the request is marked as done.
func (f *Flight) Committed() bool { return f.committed.Load() }

// fence refuses to begin an operation for a request that another may have by now. In
// another engine's transaction there is nothing to ask.
func (f *Flight) fence(ctx context.Context, tx *store.Tx) error {
	if f.Committed() { // a retry would be told that all is done, and not run the handler
		return fault.New(fault.Conflict, "the step is fired behind idem.Commit, which marks the request as done, so that no retry would do the step if the process died now: fire it before")
	}
	if tx.Directory() != f.Engine.Runner().Directory {
		return nil
	}
	return f.extend(store.InWorkspace(ctx, f.workspace), tx)
}

// Begin has a key, the flight's own or that of a slot, point to an operation, in the transaction that begins it. was is
// the operation that it pointed to, which was released without effect, or "". Where another
// was faster it is [fault.KeyInFlight].
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

// Stands says whether an operation of this flight is under way, or has ended with an
// effect: then the key stays with this request.
func (f *Flight) Stands() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.stand) > 0
}

// Slot returns the place of the next operation that does this. The handler that is run
// again finds the same one, as long as its operations of one kind have one order.
func (f *Flight) Slot(what ...string) *Slot {
	kind, _ := json.Marshal(what) // of strings, it does not fail
	f.mu.Lock()
	defer f.mu.Unlock()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s", f.Key, f.Fingerprint, f.ended[string(kind)], kind))
	return &Slot{flight: f, kind: string(kind), key: "idem-operation/" + hex.EncodeToString(sum[:])}
}

// Slot is the place of one operation of a [Flight].
type Slot struct {
	flight    *Flight
	kind, key string
}

// Operation returns the operation that the slot points to, or "".
func (s *Slot) Operation(ctx context.Context, d store.Doer) (string, error) {
	q, err := Get(ctx, d, s.key)
	return q.Operation, err
}

// Keep has the slot live on for as long as its key, which a retry has taken anew.
func (s *Slot) Keep(ctx context.Context, d store.Doer, operation string) error {
	_, err := Repoint(ctx, d, RepointArgs{s.key, s.flight.Fingerprint, operation, operation, s.kind, s.flight.TTL})
	return err
}

// Point has the slot point to an operation, as [Flight.Begin] does, if the key is not lost.
func (s *Slot) Point(ctx context.Context, tx *store.Tx, was, operation string) error {
	if err := s.flight.fence(ctx, tx); err != nil {
		return err
	}
	s.Stands(true)
	return s.flight.Begin(ctx, tx, s.key, was, operation, s.kind)
}

// Stands says whether the slot's operation is under way, or has ended with an effect.
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

// End says that the handler knows how the operation ended: the next that does the same
// is another one.
func (s *Slot) End() {
	s.Stands(true)
	f := s.flight
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended[s.kind]++
}
