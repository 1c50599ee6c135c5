package scope

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Change is what a watcher is told: a scope as it is now, or why it cannot be read.
type Change[T any] struct {
	Snapshot[T]
	Err error
}

// Watch tells how the scope is now, and again whenever it has changed, until the context
// ends; then the channel is closed. Who is slow is told of the last change, not of each:
// versions only grow, and the last one always comes. Where the scope cannot be read the
// watcher is told so once, and when it can be read again. A change that another process has
// made may be seen a little later, up to a few seconds.
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

// watching is how a home tells of changes.
type watching struct {
	woken <-chan struct{} // gets a value at a change; nil: nobody tells
	end   func()
	every time.Duration // how often to look all the same
	// rest, if there is one, has somebody else look for a version that was not seen, -1 being
	// none; false says that nobody does. Then due gets a value, until end is called.
	rest func(ctx context.Context, seen int64) (due <-chan struct{}, end func(), ok bool)
}

// park says how long to wait for news when a version was seen, and has somebody else look
// meanwhile if that can be.
func (w *watching) park(ctx context.Context, seen int64) (long time.Duration, due <-chan struct{}, end func()) {
	if w.rest != nil {
		if due, end, ok := w.rest(ctx, seen); ok {
			return wake.Seldom, due, end
		}
	}
	return w.every, nil, func() {}
}

// watch looks, and gives what it sees to whoever takes it.
func watch[T any](ctx context.Context, w watching, get func(context.Context) (Snapshot[T], error), out chan<- Change[T]) {
	var (
		last Change[T]        // what was taken last
		news chan<- Change[T] // nil while there is none
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
			news = nil // what was to be told is so no more
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
				next.State = none // it is not kept: there may be many watchers, and it may be large
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

// differs says that there is something to tell.
func differs[T any](last, now Change[T]) bool {
	if last.Err != nil || now.Err != nil {
		return fault.CodeOf(last.Err) != fault.CodeOf(now.Err)
	}
	return last.Version != now.Version || last.Exists != now.Exists
}
