// Package testkit has helpers for the tests of many packages: waiting for a condition, checking
// the code of an error, child processes, and a proxy that breaks connections. It does not
// depend on the tested packages.
package testkit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// Eventually waits until a condition holds, for at most a minute.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for !holds() {
		if clock.Wait(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("condition not met after one minute: %s", what)
		}
	}
}

// First returns the first n elements of a list, or all if there are fewer.
func First[T any](n int, list iter.Seq2[T, error]) (all []T, err error) {
	for x, err := range list {
		if err != nil {
			return all, err
		}
		if all = append(all, x); len(all) == n {
			break
		}
	}
	return all, nil
}

// WantCode fails the test if the error has another code, or if its text lacks one of the parts.
// The code of a nil error is "".
func WantCode(t testing.TB, err error, code fault.Code, says ...string) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("got error %v (%v), want code %q", err, errors.Unwrap(err), code)
	}
	for _, part := range says {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("error does not contain %q: %v", part, err)
		}
	}
}

// Run runs an engine in the background until stop is called or the test ends. An error of the
// engine fails the test.
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
