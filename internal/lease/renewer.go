package lease

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// Renewer renews a lease in the background while a handler works under it. The handler's context ends when the
// lease is lost or has reached its timeout, so that the handler can stop. The database refuses its later writes
// in any case.
type Renewer struct {
	// Renew extends the lease once, and returns [fault.LeaseLost] if it is gone. Its context ends before the lease
	// would.
	Renew func(context.Context) error
	// Lease is the duration of each renewal; the lease is renewed after each third of it.
	Lease time.Duration
	// Timeout is the maximum time that the lease is renewed; 0 is [Timeout].
	Timeout time.Duration
	// Since is a time on this node's clock before the lease was taken. Zero is the time of Start.
	Since time.Time
	// Woken triggers a renewal at once when it receives a value, for the information that a renewal returns. nil
	// never does.
	Woken <-chan struct{}

	stop func()
	done sync.WaitGroup

	mu        sync.Mutex
	renewedAt time.Time // a time before the lease was taken or last renewed
}

// Causes of the end of a handler's context.
var (
	ErrLost    = errors.New("the lease was lost")
	ErrTimeout = errors.New("the lease reached its timeout")
)

// Start starts renewing and returns the handler's context, which also ends with ctx. Renewing does not end with
// ctx: a handler that is told to stop keeps its lease until it does. Stop must be called.
func (k *Renewer) Start(ctx context.Context) context.Context {
	if k.Since.IsZero() {
		k.Since = clock.OfMachine()
	}
	k.renewedAt = k.Since
	body, end := context.WithCancelCause(ctx)
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	k.stop = func() { stop(); end(context.Canceled) }
	k.done.Go(func() { k.loop(work, end) })
	return body
}

// Stop stops renewing and waits for it. Calling it twice is harmless.
func (k *Renewer) Stop() {
	k.stop()
	k.done.Wait()
}

// Held returns nil while the lease cannot have expired, by this node's clocks. If it may have expired, because
// the process was suspended or the database did not respond, Held renews it first and returns the error of the
// renewal: [fault.LeaseLost] if the lease is gone. Past the timeout it returns [ErrTimeout]. A handler calls it
// right before a call that must not be made without the lease.
func (k *Renewer) Held(ctx context.Context) error {
	switch {
	case clock.OfMachine().Sub(k.Since) >= k.limit():
		return ErrTimeout
	case k.RanOut():
		return k.renewOnce(ctx)
	}
	return nil
}

// RanOut reports whether the lease may have expired, by this node's clocks.
func (k *Renewer) RanOut() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return elapsed(k.renewedAt) >= k.Lease
}

// elapsed returns the time since t, by the monotonic or the wall clock, whichever is longer: the first stops
// while the machine sleeps, the second may be set.
func elapsed(t time.Time) time.Duration {
	now := clock.OfMachine()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}

func (k *Renewer) limit() time.Duration {
	if k.Timeout <= 0 {
		return Timeout
	}
	return k.Timeout
}

func (k *Renewer) loop(ctx context.Context, end context.CancelCauseFunc) {
	limit, begun := k.limit(), clock.Now()
	for {
		if k.wait(ctx, max(0, min(k.Lease/3, limit-clock.Since(begun)))) != nil {
			return
		}
		if clock.Since(begun) >= limit {
			end(ErrTimeout)
			return
		}
		err := k.renewOnce(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return
		case fault.CodeOf(err) == fault.LeaseLost, k.RanOut():
			end(ErrLost)
			return
		}
	}
}

// wait waits for d or until Woken receives a value.
func (k *Renewer) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.Woken:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// renewOnce renews, and times out early enough for another attempt.
func (k *Renewer) renewOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.Lease/3)
	defer cancel()
	before := clock.OfMachine()
	err := k.Renew(ctx)
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if before.After(k.renewedAt) {
			k.renewedAt = before
		}
	}
	return err
}
