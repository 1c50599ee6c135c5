package requests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Flight is a request that a program's own handler carries out under its key. The
// operations that the handler begins belong to the key: each has a row of its own, a
// [Slot], which points to it from the transaction on that begins it. The key's own row
// cannot do that: a handler begins any number of operations, and the key is freed by
// an answer that refuses. Safe for concurrent use.
type Flight struct {
	Key, Fingerprint string
	TTL              time.Duration // of the key and of its slots; 0 is [TTL]
	// Fence refuses, in the transaction that begins an operation, a holder that has
	// lost the key.
	Fence func(context.Context, *store.Tx) error

	mu    sync.Mutex
	ended map[string]int      // how many operations have ended, by what they do
	stand map[string]struct{} // slots whose operation may have changed something
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

// Commit is [Commit] for as long as the flight says.
func (f *Flight) Commit(ctx context.Context, tx *store.Tx, epoch int64) error {
	return commit(ctx, tx, endArgs{key: f.Key, epoch: epoch, ttl: f.TTL})
}

// Finish is [Finish] or, of a request that was committed, [Answer], for as long as the
// flight says.
func (f *Flight) Finish(ctx context.Context, d store.Doer, epoch int64, committed bool, status int, answer []byte) error {
	how := "done"
	if committed {
		how = "answer"
	}
	return answered(ctx, d, endArgs{key: f.Key, epoch: epoch, how: how, status: int64(status), answer: string(answer), ttl: f.TTL})
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
	if fault.CodeOf(err) == fault.NotFound {
		return "", nil
	}
	return q.Operation, err
}

// Keep has the slot live on for as long as its key, which a retry has taken anew.
func (s *Slot) Keep(ctx context.Context, d store.Doer, operation string) error {
	_, err := repoint(ctx, d, pointArgs{s.key, s.flight.Fingerprint, operation, operation, s.kind, s.flight.TTL})
	return err
}

// Point has the slot point to an operation, in the transaction that begins it. was is the
// operation that it pointed to, which was released without effect, or "". Where another
// was faster it is [fault.KeyInFlight].
func (s *Slot) Point(ctx context.Context, tx *store.Tx, was, operation string) (err error) {
	f := s.flight
	if err := f.Fence(ctx, tx); err != nil {
		return err
	}
	var mine bool
	if was == "" {
		var q Request
		q, mine, err = Take(ctx, tx, TakeArgs{Key: s.key, Fingerprint: f.Fingerprint, Holder: operation, TTL: f.TTL})
		if err == nil && mine {
			err = point(ctx, tx, endArgs{key: s.key, epoch: q.Epoch, operation: operation, subject: s.kind, ttl: f.TTL})
		}
	} else {
		mine, err = repoint(ctx, tx, pointArgs{s.key, f.Fingerprint, was, operation, s.kind, f.TTL})
	}
	if err == nil && !mine {
		err = fault.New(fault.KeyInFlight, "another run of this request has begun the same: send it again a little later").With("retryAfter", 1)
	}
	s.Stands(true)
	return err
}

// Stands says whether the slot's operation is under way, or has ended with an effect.
func (s *Slot) Stands(yes bool) {
	f := s.flight
	f.mu.Lock()
	defer f.mu.Unlock()
	if !yes {
		delete(f.stand, s.key)
		return
	}
	if f.stand == nil {
		f.stand = make(map[string]struct{})
	}
	f.stand[s.key] = struct{}{}
}

// End says that the handler knows how the operation ended: the next that does the same
// is another one.
func (s *Slot) End() {
	s.Stands(true)
	f := s.flight
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended == nil {
		f.ended = make(map[string]int)
	}
	f.ended[s.kind]++
}
