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
)

// Retry calls f until it succeeds, fails for good, or patience runs out. Only
// an error that says that nothing was written ([fault.IsSafe]) is tried again:
// anything else may have been applied, and is never repeated blindly.
func Retry(ctx context.Context, f func() error) error {
	deadline := clock.Now().Add(patience)
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := f()
		if err == nil || !fault.IsSafe(err) || clock.Now().After(deadline) {
			return err
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
