// Package wake notifies waiting loops and callers that there is work.
//
// A wake-up is a hint. The tables are authoritative, and a waiting loop polls them periodically in any case
// ([Poller]), so a lost hint only costs time. Within the process a wake-up is a channel and immediate. A
// [Sender] forwards it to other nodes, over its own connection and in batches: NOTIFY inside the writing
// transactions takes a server-wide lock at each commit, and cost up to 95 percent of their rate.
package wake

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Hub wakes waiters in the process by topic. Safe for concurrent use.
type Hub struct {
	mu      sync.Mutex
	waiters map[string][]*waiter
	relay   func(topics []string)
	poller  bool                // an idle poller serves the parked pollers
	parked  map[*idleState]bool // pollers that leave polling to the idle poller
	polling map[*Poller]bool    // running pollers
	polled  map[Polled]time.Time

	// Tally counts what this process has done.
	Tally Tally
}

// Tally counts what a process has done since it started.
type Tally struct {
	Runs, Steps, Items, Reactions atomic.Int64 // ended
	Requests                      atomic.Int64 // served by the HTTP API
}

// NewHub returns a hub without waiters.
func NewHub() *Hub {
	return &Hub{waiters: make(map[string][]*waiter), parked: make(map[*idleState]bool), polling: make(map[*Poller]bool), polled: make(map[Polled]time.Time)}
}

// waiter is woken through a channel, or by a function that must not block or call the hub.
type waiter struct {
	woken chan struct{}
	f     func()
}

func newWaiter() *waiter { return &waiter{woken: make(chan struct{}, 1)} }

func (w *waiter) call() {
	if w.f != nil {
		w.f()
		return
	}
	select {
	case w.woken <- struct{}{}:
	default: // already woken
	}
}

// Wake wakes the waiters of the topics, here and, through the relay, on other nodes. It does not block.
func (h *Hub) Wake(topics []string) {
	h.local(topics)
	h.mu.Lock()
	relay := h.relay
	h.mu.Unlock()
	if relay != nil {
		relay(topics)
	}
}

// forward sets the function that forwards wake-ups to other nodes; nil forwards none.
func (h *Hub) forward(relay func(topics []string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.relay = relay
}

// WakeHere wakes the waiters of the topics in this process only.
func (h *Hub) WakeHere(topics ...string) { h.local(topics) }

func (h *Hub) local(topics []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		for _, w := range h.waiters[t] {
			w.call()
		}
	}
}

// all wakes every waiter, when signals may have been missed.
func (h *Hub) all() {
	h.mu.Lock()
	topics := make([]string, 0, len(h.waiters))
	for t := range h.waiters {
		topics = append(topics, t)
	}
	h.mu.Unlock()
	h.local(topics)
}

// Waiting reports whether anyone in this process waits for a topic with a prefix.
func (h *Hub) Waiting(prefix string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.waiters {
		if strings.HasPrefix(t, prefix) {
			return true
		}
	}
	return false
}

// Wait returns a channel that receives a value when one of the topics is woken. Call end to stop waiting.
func (h *Hub) Wait(topics ...string) (woken <-chan struct{}, end func()) {
	w := newWaiter()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		h.waiters[t] = append(h.waiters[t], w)
	}
	return w.woken, func() { h.forget(w, topics...) }
}

func (h *Hub) forget(w *waiter, topics ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		remaining := h.waiters[t][:0:0]
		for _, o := range h.waiters[t] {
			if o != w {
				remaining = append(remaining, o)
			}
		}
		if len(remaining) == 0 {
			delete(h.waiters, t)
		} else {
			h.waiters[t] = remaining
		}
	}
}
