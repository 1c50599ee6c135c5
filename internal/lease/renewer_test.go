package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/lease"
)

// Verifies that a holder renews before it acts if its lease may have expired by its own clock, counted from
// before the lease was taken, and not otherwise.
func TestALeaseThatMayHaveRunOutIsRenewedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renewals atomic.Int64
		var gone atomic.Bool
		stopped := make(chan struct{}) // while it is open, renewals hang, as in a suspended process
		k := &lease.Renewer{Lease: 30 * time.Second, Since: time.Now(), Renew: func(ctx context.Context) error {
			renewals.Add(1)
			select {
			case <-stopped:
				if gone.Load() {
					return fault.New(fault.LeaseLost, "gone")
				}
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		time.Sleep(5 * time.Second) // the claim took a while
		body := k.Start(t.Context())
		defer k.Stop()
		time.Sleep(24 * time.Second)
		before := renewals.Load()
		if err := k.Held(body); err != nil || renewals.Load() != before {
			t.Errorf("before the lease expired: got error %v, %d renewals", err, renewals.Load()-before)
		}
		time.Sleep(2 * time.Second)
		if err := k.Held(body); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			t.Errorf("lease may have expired and the database does not respond: got %v", err)
		}
		gone.Store(true)
		close(stopped)
		if err := k.Held(context.Background()); fault.CodeOf(err) != fault.LeaseLost {
			t.Errorf("after the lease expired: got %v, want LEASE_LOST", err)
		}
		gone.Store(false)
		if err := k.Held(context.Background()); err != nil {
			t.Errorf("the database still has the lease: got %v", err)
		}
		before = renewals.Load()
		if err := k.Held(context.Background()); err != nil || renewals.Load() != before {
			t.Errorf("after the renewal: got error %v, %d renewals", err, renewals.Load()-before)
		}
	})
}

// Verifies that a holder does not act past its timeout, when the database has ended the lease too.
func TestNobodyActsPastTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &lease.Renewer{Lease: 30 * time.Second, Timeout: 5 * time.Second, Since: time.Now(), Renew: func(context.Context) error { return nil }}
		time.Sleep(10 * time.Second)
		body := k.Start(t.Context())
		defer k.Stop()
		if err := k.Held(body); !errors.Is(err, lease.ErrTimeout) {
			t.Errorf("Held returned %v, want ErrTimeout", err)
		}
	})
}
