// Package wake tells those who wait that there is something to do.
//
// A wake-up is a hint. The truth is in the tables, and whoever waits looks there
// again after a while in any case ([Poller]), so that a hint that is lost costs
// time and nothing else. In the process it is a channel, at once. To other nodes
// a [Relay] passes it on, from a connection of its own and many at a time:
// NOTIFY inside the transactions that write takes a lock over the whole server
// at each commit, and cost up to nineteen twentieths of their rate.
package wake

import "sync"

// Hub wakes waiters in the process by topic. Safe for concurrent use.
type Hub struct {
	mu      sync.Mutex
	waiters map[string][]chan struct{}
	relay   func(topics []string)
	poller  bool // somebody glances for those who rest
	resting map[*idleState]bool
}

// NewHub returns a hub that nobody waits at.
func NewHub() *Hub {
	return &Hub{waiters: make(map[string][]chan struct{}), resting: make(map[*idleState]bool)}
}

// Wake wakes the waiters of the topics, here and, through the relay, on other
// nodes. It does not wait.
func (h *Hub) Wake(topics []string) {
	h.local(topics)
	h.mu.Lock()
	relay := h.relay
	h.mu.Unlock()
	if relay != nil {
		relay(topics)
	}
}

// WakeHere wakes the waiters of the topics in this process alone.
func (h *Hub) WakeHere(topics ...string) { h.local(topics) }

func (h *Hub) local(topics []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		for _, c := range h.waiters[t] {
			select {
			case c <- struct{}{}:
			default: // it is awake already
			}
		}
	}
}

// all wakes everybody, when it is not known what was missed.
func (h *Hub) all() {
	h.mu.Lock()
	topics := make([]string, 0, len(h.waiters))
	for t := range h.waiters {
		topics = append(topics, t)
	}
	h.mu.Unlock()
	h.local(topics)
}

// Wait returns a channel that gets a value when one of the topics is woken. The
// function ends the waiting.
func (h *Hub) Wait(topics ...string) (woken <-chan struct{}, end func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		h.waiters[t] = append(h.waiters[t], c)
	}
	return c, func() { h.forget(c, topics) }
}

func (h *Hub) forget(c chan struct{}, topics []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		kept := h.waiters[t][:0:0]
		for _, o := range h.waiters[t] {
			if o != c {
				kept = append(kept, o)
			}
		}
		if len(kept) == 0 {
			delete(h.waiters, t)
		} else {
			h.waiters[t] = kept
		}
	}
}
