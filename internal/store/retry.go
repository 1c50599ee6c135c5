package store

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// Limits of the retries of one call.
const (
	firstPause = 2 * time.Millisecond
	maxPause   = 100 * time.Millisecond
	maxWait    = 10 * time.Second

	// There is no queue: a call that has waited for this long retries more often than new calls, so that it is not
	// starved.
	urgentAfter = time.Second
	urgentPause = 5 * time.Millisecond
)

// Retry calls f until it succeeds, fails permanently, or has been retried for maxWait. It retries only after an error
// that guarantees that nothing was written ([fault.IsRetryable]); after any other, the call may have been applied.
func Retry(ctx context.Context, f func() error) error {
	begun := clock.Now()
	var last error
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := f()
		waited := clock.Since(begun)
		if last != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) { // the context ended between a pause and the next attempt
			return Cancelled(err, last)
		}
		if err == nil || !fault.IsRetryable(err) || waited > maxWait {
			return err
		}
		last = err
		if waited > urgentAfter {
			pause = urgentPause
		}
		if waitErr := clock.Wait(ctx, clock.Jitter(pause)); waitErr != nil {
			return Cancelled(waitErr, err)
		}
	}
}

// Cancelled returns the error of a call whose context ended before it was applied. errors.Is finds both the
// context's error and the error that delayed the call.
func Cancelled(ctxErr error, last error) error {
	return errors.Join(ctxErr, last)
}
