package idem

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/requests"
)

// flight is a request while its handler runs. One without a key has its engine
// alone.
type flight struct {
	engine           *holdfast.Engine
	lease            time.Duration
	workspace        string
	key, fingerprint string
	holder           string
	epoch            int64

	mu    sync.Mutex // held for the whole of a Commit
	ended bool

	state struct {
		sync.Mutex
		committing, committed bool
	}
}

type flightKey struct{}

func within(ctx context.Context, f *flight) context.Context {
	return context.WithValue(ctx, flightKey{}, f)
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
	if q.key == "" {
		return q.engine.Update(ctx, f)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return fault.New(fault.Conflict, "idem.Commit is used after the handler has returned")
	}
	done := q.committed()
	q.set(true, done)
	defer func() { q.set(false, done) }()
	err := q.engine.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		if err := requests.Commit(holdfast.InWorkspace(ctx, q.workspace), tx, q.key, q.epoch); err != nil {
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
func (q *flight) renew(ctx context.Context) error {
	if q.committed() {
		return nil
	}
	_, err := requests.Renew(ctx, q.engine, q.key, q.epoch, q.lease)
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
