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
	// Since is a time on this node's clock before the lease was taken or, if the handler continues under the lease of
	// an earlier one, before its own work began. [Renewer.Held] counts the timeout from it. Zero is the time of Start.
	Since time.Time
	// Renewed is a time on this node's clock before the lease was taken or last renewed, if it differs from Since.
	// Zero is Since.
	Renewed time.Time

	ctx   context.Context // of Start
	begun time.Time
	end   context.CancelCauseFunc // ends the handler's context
	done  sync.WaitGroup

	mu        sync.Mutex
	renewedAt time.Time // a time before the lease was taken or last renewed
	state     renewerState
	early     bool        // RenewNow was called before Start
	first     *time.Timer // until the first renewal
	stop      func()      // ends the loop, once it runs
	again     chan struct{}
}

// renewerState is the state of a [Renewer]. Most handlers end long before the first renewal is due, so the renewing
// loop begins only when it is due.
type renewerState uint8

const (
	created renewerState = iota
	started
	looping
	stopped
)

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
	if k.Renewed.IsZero() {
		k.Renewed = k.Since
	}
	k.renewedAt, k.ctx, k.begun = k.Renewed, ctx, clock.Now()
	var body context.Context
	body, k.end = context.WithCancelCause(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state = started; k.early {
		k.begin()
	} else {
		k.first = time.AfterFunc(max(0, min(k.Lease/3-k.Since.Sub(k.Renewed), k.limit())), k.RenewNow)
	}
	return body
}

// RenewNow requests an immediate renewal, for the information that a renewal returns. It does not block.
func (k *Renewer) RenewNow() {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch k.state {
	case created:
		k.early = true
	case started:
		k.begin()
	case looping:
		select {
		case k.again <- struct{}{}:
		default: // already requested
		}
	}
}

// begin starts the loop. REQUIRES: mu
func (k *Renewer) begin() {
	if k.first != nil {
		k.first.Stop()
	}
	var ctx context.Context
	ctx, k.stop = context.WithCancel(context.WithoutCancel(k.ctx))
	k.state, k.again = looping, make(chan struct{}, 1)
	k.done.Go(func() { k.loop(ctx) })
}

// Stop stops renewing and waits for it. Calling it twice is harmless.
func (k *Renewer) Stop() {
	k.mu.Lock()
	k.state = stopped
	if k.first != nil {
		k.first.Stop()
	}
	if k.stop != nil {
		k.stop()
	}
	k.mu.Unlock()
	k.end(context.Canceled)
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

// loop renews the lease until the lease is lost, the timeout is reached or ctx ends.
func (k *Renewer) loop(ctx context.Context) {
	for limit := k.limit(); ; {
		if clock.Since(k.begun) >= limit {
			k.end(ErrTimeout)
			return
		}
		err := k.renewOnce(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return
		case fault.CodeOf(err) == fault.LeaseLost, k.RanOut():
			k.end(ErrLost)
			return
		}
		if k.wait(ctx, max(0, min(k.Lease/3, limit-clock.Since(k.begun)))) != nil {
			return
		}
	}
}

// wait waits for d or until [Renewer.RenewNow] is called.
func (k *Renewer) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.again:
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
