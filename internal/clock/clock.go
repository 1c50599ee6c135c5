// Package clock is the one place that asks the node for its time.
//
// Nothing that decides who holds what, or when a timer fires, may use it: that
// is the database's time, through one SQL expression. The node's time serves
// logs, pauses between tries and the age of a process.
package clock

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// skew is by how much tests have put the node's clock wrong.
var skew atomic.Int64

// Skew puts the node's clock wrong, for tests: nothing that matters may change.
func Skew(by time.Duration) { skew.Store(int64(by)) }

// Now returns the node's time.
func Now() time.Time { return time.Now().Add(time.Duration(skew.Load())) }

// OfMachine returns the machine's time, which no test puts wrong. It is for an
// embedded database, whose time it is.
func OfMachine() time.Time { return time.Now() }

// Since returns how long ago t was.
func Since(t time.Time) time.Duration { return Now().Sub(t) }

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

// Jitter returns a random duration between half of d and d, so that callers
// that failed together do not come back together.
func Jitter(d time.Duration) time.Duration {
	if d <= 1 {
		return d
	}
	return d/2 + rand.N(d/2+1)
}
