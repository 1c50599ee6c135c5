package store

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// Tries bound how long a call gives way to others before it says that the
// database is busy.
const (
	firstPause = 2 * time.Millisecond
	longPause  = 100 * time.Millisecond
	patience   = 10 * time.Second

	// Nobody is served in turn here: who has waited for a while asks more often
	// than those who come new, so that it is not passed over each time.
	urgent      = time.Second
	urgentPause = 5 * time.Millisecond
)

// Retry calls f until it succeeds, fails for good, or patience runs out. Only
// an error that says that nothing was written ([fault.IsSafe]) is tried again:
// anything else may have been applied, and is never repeated blindly.
func Retry(ctx context.Context, f func() error) error {
	begun := clock.Now()
	var last error
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := f()
		waited := clock.Since(begun)
		if last != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) { // it ended between a pause and the next attempt
			return Cancelled(err, last)
		}
		if err == nil || !fault.IsSafe(err) || waited > patience {
			return err
		}
		last = err
		if waited > urgent {
			pause = urgentPause
		}
		if wait := clock.Wait(ctx, clock.Jitter(pause)); wait != nil {
			return Cancelled(wait, err)
		}
	}
}

// Cancelled is the error of a call whose context ended before it was applied.
// errors.Is finds the context's error in it, and what held the call up.
func Cancelled(ctxErr error, last error) error {
	return errors.Join(ctxErr, last)
}
