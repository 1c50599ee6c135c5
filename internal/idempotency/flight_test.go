package idempotency_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
)

func flightOn(hf *holdfast.Engine) *idempotency.Flight {
	return &idempotency.Flight{Lease: idempotency.Lease{Key: "k"}, Name: "k", Fingerprint: "print", LeaseTime: time.Minute, Engine: engine.Of(hf), Log: slog.New(slog.DiscardHandler)}
}

func mustStart(t *testing.T, hf *holdfast.Engine) *idempotency.Flight {
	t.Helper()
	f := flightOn(hf)
	if _, mine, err := f.Take(context.Background(), engine.Of(hf)); err != nil || !mine {
		t.Fatal(mine, err)
	}
	return f
}

// TestRenewOfAFlight verifies that a renewal extends the lease, and that a lease that its own
// request has ended does not count as lost, also while the transaction of that is in flight.
func TestRenewOfAFlight(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		f := mustStart(t, hf)
		for range 3 {
			holdfasttest.Advance(t, hf, 40*time.Second)
			wantNil(t, f.RenewOnce(ctx))
		}
		renewed := make(chan error)
		err := f.Update(ctx, func(context.Context, *store.Tx) error {
			go func() { renewed <- f.RenewOnce(ctx) }()
			soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // it waits for this transaction
			defer cancel()
			return f.RenewOnce(soon)
		})
		wantNil(t, err)
		if err := <-renewed; err != nil {
			t.Errorf("renewal during the commit: %v", err)
		}
		if err := f.RenewOnce(ctx); err != nil {
			t.Errorf("renewal after the commit: %v", err)
		}
		same, lost := flightOn(hf), flightOn(hf) // their holders do not know of the commit
		same.Epoch, lost.Epoch = f.Epoch, f.Epoch+1
		if err := same.RenewOnce(ctx); err != nil {
			t.Errorf("renewal by the holder that committed: %v", err)
		}
		testkit.WantCode(t, lost.RenewOnce(ctx), fault.LeaseLost)
	})
}

// TestNothingBeginsBehindTheEnd verifies that no operation begins for a request that has a
// response: no retry would run its handler again.
func TestNothingBeginsBehindTheEnd(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		f := mustStart(t, hf)
		begin := func() error {
			return engine.Of(hf).Update(ctx, func(ctx context.Context, tx *store.Tx) error { return f.Fence(ctx, tx) })
		}
		wantNil(t, begin())
		_, err := f.Record(ctx, 200, nil)
		wantNil(t, err)
		testkit.WantCode(t, begin(), fault.LeaseLost)
	})
}
