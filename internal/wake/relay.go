package wake

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// debounce is how long topics are collected before they are sent.
const debounce = 10 * time.Millisecond

// Relay forwards wake-ups between nodes. A wake-up that cannot be sent is dropped: the other nodes poll soon
// enough.
type Relay struct {
	Hub     *Hub
	Signals store.Signals
	Log     *slog.Logger

	mu     sync.Mutex
	topics map[string]bool
	dirty  chan struct{}
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// Start starts sending and listening. Stop must be called.
func (r *Relay) Start(ctx context.Context) {
	ctx, r.stop = context.WithCancel(ctx)
	r.topics, r.dirty = make(map[string]bool), make(chan struct{}, 1)
	r.Hub.mu.Lock()
	r.Hub.relay = r.add
	r.Hub.mu.Unlock()
	r.done.Go(func() { r.send(ctx) })
	r.done.Go(func() { r.listen(ctx) })
}

// Stop stops the relay and waits for it. Calling it twice is harmless.
func (r *Relay) Stop() {
	r.Hub.mu.Lock()
	r.Hub.relay = nil
	r.Hub.mu.Unlock()
	r.stop()
	r.done.Wait()
}

func (r *Relay) add(topics []string) {
	r.mu.Lock()
	for _, t := range topics {
		r.topics[t] = true
	}
	r.mu.Unlock()
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}

func (r *Relay) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.dirty:
		}
		if clock.Wait(ctx, debounce) != nil {
			return
		}
		r.mu.Lock()
		topics := slices.Sorted(maps.Keys(r.topics))
		clear(r.topics)
		r.mu.Unlock()
		if err := r.Signals.Signal(ctx, topics); err != nil && ctx.Err() == nil {
			r.Log.Debug("failed to send a wake-up", "error", err)
		}
	}
}

// listen listens, and after an interruption wakes every waiter, because signals may have been missed.
func (r *Relay) listen(ctx context.Context) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := r.Signals.Listen(ctx, func(topics []string) {
			pause = 100 * time.Millisecond
			r.Hub.local(topics)
		})
		if ctx.Err() != nil {
			return
		}
		r.Log.Debug("connection for wake-ups lost; reconnecting", "error", err)
		if clock.Wait(ctx, clock.Jitter(pause)) != nil {
			return
		}
		r.Hub.all()
	}
}
