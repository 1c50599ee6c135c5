// Package testkit has what tests of many packages need: waiting for a condition, judging an
// error by its code, a child process to talk to, and a proxy that breaks connections. It
// knows nothing of what is tested.
package testkit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// Eventually waits until a condition holds, for a minute at the most.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for !holds() {
		if clock.Wait(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("after a minute it still does not hold that %s", what)
		}
	}
}

// WantCode fails a test whose error has another code, or does not say each of these parts.
// The code of no error is "".
func WantCode(t testing.TB, err error, code fault.Code, says ...string) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("the error is %v (%v), not %q", err, errors.Unwrap(err), code)
	}
	for _, part := range says {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

// Run has an engine run in the background until stop is called or the test ends. It must
// end without an error.
func Run(t testing.TB, engine interface{ Run(context.Context) error }) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := engine.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}
