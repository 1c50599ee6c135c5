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

const (
	// debounce is how long topics are collected before they are sent.
	debounce = 10 * time.Millisecond
	// lastSend is how long [Sender.Stop] waits for the last topics to be sent.
	lastSend = time.Second
)

// Sender forwards the wake-ups of a node to other nodes. It is for every engine that writes, even if Run was not
// called: it has a goroutine only while there is something to send. A wake-up that cannot be sent is dropped: the
// other nodes poll soon enough.
type Sender struct {
	signals store.Signals
	log     *slog.Logger
	hub     *Hub

	mu      sync.Mutex
	topics  map[string]bool
	sending bool // a goroutine sends
	done    sync.WaitGroup
	stop    context.CancelFunc // ends the wait for more topics
	stopped context.Context
	abort   context.CancelFunc // ends a send
	aborted context.Context
}

// NewSender returns a sender of a hub's wake-ups. Stop must be called.
func NewSender(hub *Hub, signals store.Signals, log *slog.Logger) *Sender {
	s := &Sender{signals: signals, log: log, hub: hub, topics: make(map[string]bool)}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.aborted, s.abort = context.WithCancel(context.Background())
	hub.forward(s.add)
	return s
}

// Stop sends what was woken before, and ends. Calling it twice is harmless.
func (s *Sender) Stop() {
	s.hub.forward(nil)
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	timer := time.AfterFunc(lastSend, s.abort)
	s.done.Wait()
	timer.Stop()
	s.abort()
}

func (s *Sender) add(topics []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped.Err() != nil {
		return
	}
	for _, t := range topics {
		s.topics[t] = true
	}
	if !s.sending && len(s.topics) > 0 {
		s.sending = true
		s.done.Go(s.send)
	}
}

func (s *Sender) send() {
	for {
		_ = clock.Wait(s.stopped, debounce)
		s.mu.Lock()
		topics := slices.Sorted(maps.Keys(s.topics))
		clear(s.topics)
		s.sending = len(topics) > 0
		s.mu.Unlock()
		if len(topics) == 0 {
			return
		}
		if err := s.signals.Signal(s.aborted, topics); err != nil {
			s.log.Debug("failed to send a wake-up", "error", err)
		}
	}
}

// Listen wakes the waiters of a hub when another node signals, until ctx ends. After an interruption it wakes every
// waiter, because signals may have been missed.
func Listen(ctx context.Context, hub *Hub, signals store.Signals, log *slog.Logger) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := signals.Listen(ctx, func(topics []string) {
			pause = 100 * time.Millisecond
			hub.local(topics)
		})
		if ctx.Err() != nil {
			return
		}
		log.Debug("wake-up connection lost; reconnecting", "error", err)
		if clock.Wait(ctx, clock.Jitter(pause)) != nil {
			return
		}
		hub.all()
	}
}
