// Package clock is the only package that reads the node's clock.
//
// Lease expiry and timers must not use it: they use the database's time, through one SQL expression. The node's
// time serves logs, pauses between attempts and the age of a process.
package clock

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// skew is the error that tests add to the node's clock.
var skew atomic.Int64

// Skew sets the error of the node's clock, for tests: it must not change any outcome.
func Skew(by time.Duration) { skew.Store(int64(by)) }

// Now returns the node's time.
func Now() time.Time { return time.Now().Add(time.Duration(skew.Load())) }

// OfMachine returns the machine's time, which tests cannot skew. An embedded database uses it as its time.
func OfMachine() time.Time { return time.Now() }

// Since returns how long ago t was.
func Since(t time.Time) time.Duration { return Now().Sub(t) }

// Text formats a time for a message, as the API does: in UTC, to the millisecond.
func Text(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Wait pauses for d, or until ctx ends, and then returns its error.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Jitter returns a random duration between d/2 and d, so that callers that failed together do not retry
// together.
func Jitter(d time.Duration) time.Duration {
	if d <= 1 {
		return d
	}
	return d/2 + rand.N(d/2+1)
}
