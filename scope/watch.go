package scope

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
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
	if err := h.home.ready(ctx); err != nil {
		return nil, err
	}
	woken, end, every := h.home.watch(h.kind, h.id)
	if woken == nil {
		end()
		return nil, fault.New(fault.Validation, "a transaction cannot be watched: nobody else changes it. Watch the engine's")
	}
	out := make(chan Change[T])
	go func() {
		defer close(out)
		defer end()
		watch(ctx, woken, every, s.Get, out)
	}()
	return out, nil
}

// watch looks, and gives what it sees to whoever takes it.
func watch[T any](ctx context.Context, woken <-chan struct{}, every time.Duration, get func(context.Context) (Snapshot[T], error), out chan<- Change[T]) {
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
		if now := (Change[T]{now, err}); !told || differs(last, now) {
			next, news = now, out
		} else {
			news = nil // what was to be told is so no more
		}
		timer := time.NewTimer(clock.Jitter(every))
	waiting:
		for {
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case news <- next:
				last, told, news = next, true, nil
			case <-woken:
				break waiting
			case <-timer.C:
				break waiting
			}
		}
		timer.Stop()
	}
}

// differs says that there is something to tell.
func differs[T any](last, now Change[T]) bool {
	if last.Err != nil || now.Err != nil {
		return fault.CodeOf(last.Err) != fault.CodeOf(now.Err)
	}
	return last.Version != now.Version || last.Exists != now.Exists
}
