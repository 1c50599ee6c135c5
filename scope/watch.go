package scope

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Watch yields the current scope, and yields it again whenever it has changed. It ends when the loop breaks, ctx ends,
// or the state cannot be read as a T; in the last two cases, the last pair contains the error. A slow loop may miss
// intermediate changes, but always gets the last one, and versions only grow. A change by another process may arrive up
// to a few seconds late. While the database is unreachable, Watch keeps retrying. A scope cannot be watched in a
// transaction ([holdfast.ErrValidation]).
func (s Scope[T]) Watch(ctx context.Context) iter.Seq2[Snapshot[T], error] {
	return func(yield func(Snapshot[T], error) bool) {
		w, err := s.handle.watching(ctx)
		if err == nil {
			defer w.end()
			err = watch(ctx, w, s.Get, yield)
		}
		if err != nil {
			yield(Snapshot[T]{}, err)
		}
	}
}

// watching delivers the notifications of a backend about changes.
type watching struct {
	woken <-chan struct{} // gets a value at a change that this process learns of; nil: the backend cannot be watched
	end   func()
	every time.Duration // how long to wait for a value before the scope is read again, unless rest polls
	// rest, if set, delegates polling for a version other than seen (-1: no scope) to a shared
	// poller. ok is false if there is none. due gets a value at a change, until end is called.
	rest func(ctx context.Context, seen int64) (due <-chan struct{}, end func(), ok bool)
}

// watching returns the notifications of a scope's changes.
func (h *handle) watching(ctx context.Context) (watching, error) {
	if err := checkNames(h.kind, h.id); err != nil {
		return watching{}, err
	}
	if err := h.backend.ready(ctx); err != nil {
		return watching{}, err
	}
	w := h.backend.watch(h.kind, h.id)
	if w.woken == nil {
		w.end()
		return w, fault.New(fault.Validation, "a scope cannot be watched in a transaction: watch it through the engine")
	}
	return w, nil
}

// notYet is the version of a scope before its first read.
const notYet = -2

// watch yields each change, and returns nil if the loop breaks.
func watch[T any](ctx context.Context, w watching, get func(context.Context) (Snapshot[T], error), yield func(Snapshot[T], error) bool) error {
	for seen := int64(notYet); ; {
		now, err := get(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !passing(err):
			return err
		case err != nil:
			w.wait(ctx, w.every, nil)
			continue
		}
		version := now.Version
		if !now.Exists {
			version = -1
		}
		if version != seen && !yield(now, nil) {
			return nil
		}
		seen = version
		w.waitAfter(ctx, seen)
	}
}

// passing reports whether a read that returned this error may succeed at the next attempt.
func passing(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return !ok || f.Code == fault.Unavailable
}

// waitAfter waits for changes after a version was seen, and delegates polling meanwhile if possible.
func (w *watching) waitAfter(ctx context.Context, seen int64) {
	if w.rest != nil {
		if due, end, ok := w.rest(ctx, seen); ok {
			defer end()
			w.wait(ctx, wake.Seldom, due)
			return
		}
	}
	w.wait(ctx, w.every, nil)
}

func (w *watching) wait(ctx context.Context, long time.Duration, due <-chan struct{}) {
	timer := time.NewTimer(clock.Jitter(long))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-w.woken:
	case <-due:
	case <-timer.C:
	}
}
