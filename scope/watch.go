package scope

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Change is a notification of [Scope.Watch]: the current scope, or the error of reading it.
type Change[T any] struct {
	Snapshot[T]
	Err error
}

// Watch sends the current scope, and sends it again whenever it has changed, until the context ends. Then it closes the
// channel. A slow receiver may miss intermediate changes, but always gets the last one, and versions only grow. If the
// scope cannot be read, Watch sends the error once, and the scope when it can be read again. A change by another
// process may arrive up to a few seconds late. A scope in a transaction cannot be watched ([holdfast.ErrValidation]).
func (s Scope[T]) Watch(ctx context.Context) (<-chan Change[T], error) {
	h := s.handle
	if err := checkNames(h.kind, h.id); err != nil {
		return nil, err
	}
	if err := h.backend.ready(ctx); err != nil {
		return nil, err
	}
	w := h.backend.watch(h.kind, h.id)
	if w.woken == nil {
		w.end()
		return nil, fault.New(fault.Validation, "a scope in a transaction cannot be watched: watch it on the engine")
	}
	out := make(chan Change[T])
	go func() {
		defer close(out)
		defer w.end()
		watch(ctx, w, s.Get, out)
	}()
	return out, nil
}

// watching is how a backend notifies of changes.
type watching struct {
	woken <-chan struct{} // gets a value at a change; nil: no notifications
	end   func()
	every time.Duration // poll interval without notifications
	// rest, if set, delegates polling for a version other than seen (-1: no scope) to a shared
	// poller. ok is false if there is none. due gets a value at a change, until end is called.
	rest func(ctx context.Context, seen int64) (due <-chan struct{}, end func(), ok bool)
}

// park returns how long to wait for changes after a version was seen, and delegates polling
// meanwhile if possible.
func (w *watching) park(ctx context.Context, seen int64) (long time.Duration, due <-chan struct{}, end func()) {
	if w.rest != nil {
		if due, end, ok := w.rest(ctx, seen); ok {
			return wake.Seldom, due, end
		}
	}
	return w.every, nil, func() {}
}

// watch polls the scope and offers each change to the receiver.
func watch[T any](ctx context.Context, w watching, get func(context.Context) (Snapshot[T], error), out chan<- Change[T]) {
	var (
		last Change[T]        // last change received
		news chan<- Change[T] // nil while there is nothing to send
		next Change[T]
		told bool
	)
	for {
		now, err := get(ctx)
		if ctx.Err() != nil {
			return
		}
		long, due, rise := w.every, (<-chan struct{})(nil), func() {}
		switch {
		case err != nil:
		case now.Exists:
			long, due, rise = w.park(ctx, now.Version)
		default:
			long, due, rise = w.park(ctx, -1)
		}
		if now := (Change[T]{now, err}); !told || differs(last, now) {
			next, news = now, out
		} else {
			news = nil // the pending change is outdated
		}
		timer := time.NewTimer(clock.Jitter(long))
	waiting:
		for {
			select {
			case <-ctx.Done():
				timer.Stop()
				rise()
				return
			case news <- next:
				var none T
				next.State = none // not retained: there may be many watchers, and it may be large
				last, told, news = next, true, nil
			case <-w.woken:
				break waiting
			case <-due:
				break waiting
			case <-timer.C:
				break waiting
			}
		}
		timer.Stop()
		rise()
	}
}

// differs reports whether there is a change to send.
func differs[T any](last, now Change[T]) bool {
	if last.Err != nil || now.Err != nil {
		return fault.CodeOf(last.Err) != fault.CodeOf(now.Err)
	}
	return last.Version != now.Version || last.Exists != now.Exists
}
