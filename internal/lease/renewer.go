package lease

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// Renewer renews a hold in the background while a body works under it. The
// context that the body is given ends when the hold is lost or has been kept
// for as long as it may be, so that the body can stop; what it writes after
// that is refused by the database in any case.
type Renewer struct {
	// Renew extends the hold once, and returns [fault.LeaseLost] where it is
	// gone. Its context ends before the hold would.
	Renew func(context.Context) error
	// DefaultDuration is how long each renewal lasts; a third of it passes between two.
	Lease time.Duration
	// Timeout is how long the hold is kept at the most; 0 is [Timeout].
	Timeout time.Duration
	// Since is a time on this node's clock before the lease was taken. Zero is the time of Start.
	Since time.Time
	// Woken has it renew at once when it gets a value, for what a renewal tells; nil never does.
	Woken <-chan struct{}

	stop func()
	done sync.WaitGroup

	mu        sync.Mutex
	renewedAt time.Time // before the lease was taken or last renewed
}

// Causes of the end of a body's context.
var (
	ErrLost    = errors.New("the hold was lost")
	ErrTimeout = errors.New("the hold was kept for as long as it may be")
)

// Start begins to renew and returns the context for the body, which ends with
// ctx too. The renewing does not: a body that is told to stop has its hold until
// it does. Stop must be called.
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

// Stop ends the renewing and waits for it. Stopping twice is harmless.
func (k *Renewer) Stop() {
	k.stop()
	k.done.Wait()
}

// Held returns nil while the lease cannot have run out, by this node's clocks. Where it may have
// run out, because the process was stopped or the database did not answer, Held renews it first,
// and returns the error of the renewal: [fault.LeaseLost] where the lease is gone. Past the timeout
// it returns [ErrTimeout]. A body asks it right before a call that must not be made without the lease.
func (k *Renewer) Held(ctx context.Context) error {
	switch {
	case clock.OfMachine().Sub(k.Since) >= k.limit():
		return ErrTimeout
	case k.RanOut():
		return k.renewOnce(ctx)
	}
	return nil
}

// RanOut says whether the lease may have run out, by this node's clocks.
func (k *Renewer) RanOut() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return elapsed(k.renewedAt) >= k.Lease
}

// elapsed is the time since t, by the monotonic clock or by the wall clock, whichever says more: the first stands
// still while a machine sleeps, the second may be set.
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

// wait waits for so long, or until it is woken.
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

// renewOnce renews, and gives up in time for another try.
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
