package wake

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// interval is how long it takes at the most until a pulse glances again: every second
// and a half, with jitter.
const interval = 2 * time.Second

// IdlePoller looks for all pollers of a process that have come to rest, in one statement,
// and has those look themselves for which there is something. It is what finds work
// that nobody woke them for: of another process on SQLite, of a node that died, or
// that has become due by the passing of time.
//
// It also has the leases ended that expire, at the moment when they do: those who could take what
// was held are not told by anybody that its holder is dead.
//
// Without it each poller asks by itself, and a node with a dozen of them that has
// nothing to do asks eight times a second. Longer pauses would make timers late.
type IdlePoller struct {
	Hub    *Hub
	Doer   store.Doer
	Shards func(context.Context) ([]int16, error)
	Log    *slog.Logger
	// Leases are the kinds of leases whose end it watches, and Expire ends those of a kind that have expired.
	Leases []WorkKind
	Expire func(context.Context, map[WorkKind]bool)

	expiring sync.Mutex // somebody ends leases
	ends     sync.WaitGroup
}

// Run glances until ctx ends.
func (p *IdlePoller) Run(ctx context.Context) {
	p.Hub.intervals(true)
	defer p.ends.Wait()
	defer p.Hub.intervals(false)
	for next := time.Duration(0); clock.Wait(ctx, pauseUntil(next)) == nil; {
		next = p.hasWork(ctx)
	}
}

// pauseUntil is the pause before the next glance: when a lease expires, if that is sooner than the next beat.
// Where many leases are short, and renewed, it does not ask for each.
func pauseUntil(expiry time.Duration) time.Duration {
	pause := clock.Jitter(interval)
	if expiry > 0 {
		pause = min(pause, max(expiry, soonest)+clock.Jitter(apart))
	}
	return pause
}

const (
	soonest = 200 * time.Millisecond // the shortest pause between two glances
	apart   = 50 * time.Millisecond  // nodes do not all end the same leases in the same moment
)

// hasWork returns after how long the next lease expires, if that is soon.
func (p *IdlePoller) hasWork(ctx context.Context) (next time.Duration) {
	resting := p.Hub.rests()
	needs := slices.Clone(p.Leases)
	known := make(map[WorkKind]bool)
	for _, n := range needs {
		known[n] = true
	}
	by := make(map[*idleState][]WorkKind)
	for _, r := range resting {
		by[r] = r.needs()
		for _, n := range by[r] {
			if !known[n] {
				known[n] = true
				needs = append(needs, n)
			}
		}
	}
	if len(needs) == 0 {
		return 0
	}
	shards, err := p.Shards(ctx)
	due := known
	if err == nil {
		due, next, err = hasWork(ctx, p.Doer, shards, needs)
	}
	if err != nil { // whoever rests finds out, and tells
		p.Log.Debug("a glance failed", "error", err)
		due = known
	}
	if err == nil && p.Expire != nil && p.expiring.TryLock() { // aside: code of the user's is part of it, and may hang
		p.ends.Go(func() {
			defer p.expiring.Unlock()
			p.Expire(ctx, due)
		})
	}
	for r, needs := range by {
		for _, n := range needs {
			if due[n] {
				r.call()
				break
			}
		}
	}
	return next
}

// idleState is a poller that has come to rest, and leaves the looking to the pulse.
type idleState struct {
	needs func() []WorkKind
	due   chan struct{}
}

func (r *idleState) call() {
	select {
	case r.due <- struct{}{}:
	default: // it is called already
	}
}

// intervals says whether there is a pulse. When there is none any more, those who rest
// look themselves.
func (h *Hub) intervals(yes bool) {
	h.mu.Lock()
	h.poller = yes
	h.mu.Unlock()
	if !yes {
		for _, r := range h.rests() {
			r.call()
		}
	}
}

func (h *Hub) rests() (all []*idleState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.resting {
		all = append(all, r)
	}
	return all
}

// Rest leaves the looking for a need to the pulse, if there is one: due gets a value when
// there is some. One who rests so must call end.
func (h *Hub) Rest(need WorkKind) (due <-chan struct{}, end func(), ok bool) {
	r := &idleState{needs: func() []WorkKind { return []WorkKind{need} }, due: make(chan struct{}, 1)}
	end, ok = h.park(r)
	return r.due, end, ok
}

// Watch returns a channel that gets a value when the topic is woken, and when the pulse sees the
// need. The function ends the watching.
func (h *Hub) Watch(topic string, need WorkKind) (woken <-chan struct{}, end func()) {
	r := &idleState{needs: func() []WorkKind { return []WorkKind{need} }, due: make(chan struct{}, 1)}
	h.mu.Lock()
	h.waiters[topic] = append(h.waiters[topic], r.due)
	h.mu.Unlock()
	rise, _ := h.park(r)
	return r.due, func() {
		if rise != nil {
			rise()
		}
		h.forget(r.due, []string{topic})
	}
}

// park leaves the looking to the pulse, if there is one, until end is called.
func (h *Hub) park(r *idleState) (end func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.poller {
		return nil, false
	}
	h.resting[r] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.resting, r)
	}, true
}
