package idem

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/requests"
	"github.com/holdfast-go/holdfast/internal/store"
)

// flight is a request while its handler runs. One without a key has its engine
// alone.
type flight struct {
	*requests.Flight // nil without a key

	engine    *engine.Engine
	lease     time.Duration
	workspace string
	holder    string
	epoch     int64

	mu    sync.Mutex // held for the whole of a Commit
	ended bool

	state struct {
		sync.Mutex
		committing, committed bool
	}
}

type flightKey struct{}

func within(ctx context.Context, f *flight) context.Context {
	return requests.InFlight(context.WithValue(ctx, flightKey{}, f), f.Flight)
}

// fence refuses to begin an operation for a request that another may have by now. In
// another engine's transaction there is nothing to ask.
func (q *flight) fence(ctx context.Context, tx *store.Tx) error {
	if q.committed() { // a retry would be told that all is done, and not run the handler
		return fault.New(fault.Conflict, "the step is fired behind idem.Commit, which marks the request as done, so that no retry would do the step if the process died now: fire it before")
	}
	if tx.Places() != q.engine.Port().Places {
		return nil
	}
	return q.extend(holdfast.InWorkspace(ctx, q.workspace), tx)
}

// release lets go of the key of a request that was refused. Where an operation stands that
// the handler began, the key stays this request's, which may be sent again at once: another
// is refused under it.
func (q *flight) release(ctx context.Context) error {
	if !q.Stands() {
		return requests.Free(ctx, q.engine, q.Key, q.epoch)
	}
	_, err := requests.Renew(ctx, q.engine, q.Key, q.epoch, time.Millisecond)
	if fault.CodeOf(err) == fault.LeaseLost { // it has expired already
		return nil
	}
	return err
}

// Commit runs f in a transaction that also marks the request of the context as
// done: what f writes through the transaction is written once, however often the
// request is sent and wherever a process dies. The handler's answer is recorded when
// it returns, whatever its status is by then.
//
// A request has one Commit. Where f or the transaction fails, nothing is written and
// the handler may try again, or refuse the request. Where the key's hold has run out
// the error is [fault.LeaseLost]: another may have the request now. f may be run
// again, as in [holdfast.Engine.Update]. In a request without a key Commit is
// no more than that.
func Commit(ctx context.Context, f func(context.Context, holdfast.Tx) error) error {
	q, ok := ctx.Value(flightKey{}).(*flight)
	if !ok {
		return fault.New(fault.Internal, "idem.Commit is used outside of a handler of idem.Middleware")
	}
	if q.Flight == nil {
		return engine.Update(ctx, q.engine, f)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return fault.New(fault.Conflict, "idem.Commit is used after the handler has returned")
	}
	done := q.committed()
	q.set(true, done)
	defer func() { q.set(false, done) }()
	err := q.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := q.Flight.Commit(holdfast.InWorkspace(ctx, q.workspace), tx, q.epoch); err != nil {
			return err
		}
		return f(ctx, tx)
	})
	done = done || err == nil
	return err
}

func (q *flight) set(committing, committed bool) {
	q.state.Lock()
	defer q.state.Unlock()
	q.state.committing, q.state.committed = committing, committed
}

// committed says whether the request is marked as done.
func (q *flight) committed() bool {
	q.state.Lock()
	defer q.state.Unlock()
	return q.state.committed
}

// renew extends the hold. One that a Commit has ended, or is ending, is not lost: a
// renewal that waited for the transaction finds no hold afterwards.
func (q *flight) renew(ctx context.Context) error { return q.extend(ctx, q.engine) }

func (q *flight) extend(ctx context.Context, d store.Doer) error {
	if q.committed() {
		return nil
	}
	_, err := requests.Renew(ctx, d, q.Key, q.epoch, q.lease)
	q.state.Lock()
	defer q.state.Unlock()
	if q.state.committing || q.state.committed {
		return nil
	}
	return err
}

// end says that the handler has returned, and whether it had committed.
func (q *flight) end() (committed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	return q.committed()
}
