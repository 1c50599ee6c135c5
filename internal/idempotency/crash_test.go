package idempotency_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/stream"
)

// doneOnce checks that the request is done, and was done once.
func doneOnce(ctx context.Context, hf *holdfast.Engine) error {
	q, err := idempotency.Get(ctx, engine.Of(hf), "k")
	if err != nil {
		return err
	}
	all, err := holdfast.Collect(stream.Read(ctx, hf, "done", 0))
	if err == nil && (q.State != idempotency.Done || len(all) != 1) {
		err = fmt.Errorf("got request %+v, executed %d times", q, len(all))
	}
	return err
}

// TestCrashOfATransaction verifies that a request in one transaction that is repeated until it gets
// a response is done once, wherever a fault strikes, and is never visible as held.
func TestCrashOfATransaction(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			q, mine, err := inOneTransaction(ctx, hf, store.NewID().String())
			if err == nil && !mine && q.State != idempotency.Done {
				err = fmt.Errorf("got request %+v, want it done", q)
			}
			return err
		},
		Check: doneOnce,
		Pairs: true,
	})
}

// waited takes the request, or waits until the lease of its holder has expired; the caller then
// tries again.
func waited(ctx context.Context, hf *holdfast.Engine) (idempotency.Request, bool, error) {
	q, mine, err := take(ctx, engine.Of(hf))
	if err != nil || mine || q.State == idempotency.Done {
		return q, mine, err
	}
	if err := store.Shift(ctx, engine.Of(hf), q.RetryAfter); err != nil {
		return q, false, err
	}
	return q, false, fault.New(fault.KeyInFlight, "it is held")
}

// TestCrashOfAHold verifies that a request under a lease that is committed with its work is done
// once, wherever a fault strikes: an abandoned lease expires.
func TestCrashOfAHold(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			q, mine, err := waited(ctx, hf)
			if err != nil || !mine {
				return err
			}
			err = hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				if err := leaseAt(q.Epoch).Commit(ctx, store.TxOf(tx)); err != nil {
					return err
				}
				_, err := stream.Append(ctx, tx, "done", stream.Any, stream.Event{Name: "done"})
				return err
			})
			if err != nil {
				return err
			}
			return leaseAt(q.Epoch).Answer(ctx, engine.Of(hf), 200, []byte("1"))
		},
		Check: doneOnce,
		Pairs: true,
	})
}

// TestCrashOfAFinish verifies that a request under a lease that is refused once, freed, and then
// finished ends wherever a fault strikes. Its work is not in the transaction of its end, so it may
// be done more than once, but not after its response is stored.
func TestCrashOfAFinish(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			for _, refused := range []bool{true, false} {
				q, mine, err := waited(ctx, hf)
				if err != nil || !mine {
					return err
				}
				if refused {
					err = leaseAt(q.Epoch).Free(ctx, engine.Of(hf))
				} else {
					err = leaseAt(q.Epoch).Finish(ctx, engine.Of(hf), 200, []byte("1"))
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			q, err := idempotency.Get(ctx, engine.Of(hf), "k")
			if err == nil && (q.State != idempotency.Done || q.Status != 200 || string(q.Answer) != "1") {
				err = fmt.Errorf("got request %+v", q)
			}
			return err
		},
	})
}
