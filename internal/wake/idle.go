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

// interval is the maximum time between two polls of the idle poller: 1.5 seconds on average, with jitter.
const interval = 2 * time.Second

// IdlePoller polls for all parked pollers of a process in one statement, and unparks those that have work. It
// finds work without a wake-up: from another process on SQLite, from a crashed node, or work that became due by
// the passing of time.
//
// It also triggers the release of leases at the moment they expire, because no signal announces that a holder
// has crashed.
//
// Without it each poller queries by itself, and an idle node with a dozen of them runs eight queries a second.
// Longer pauses would make timers late.
type IdlePoller struct {
	Hub    *Hub
	Doer   store.Doer
	Shards func(context.Context) ([]int16, error)
	Log    *slog.Logger
	// Leases are the kinds of leases whose expiry it watches; Expire releases the expired ones.
	Leases []WorkKind
	Expire func(context.Context, map[WorkKind]bool)

	expiring sync.Mutex // held while leases are released
	ends     sync.WaitGroup
}

// Run polls until ctx ends.
func (p *IdlePoller) Run(ctx context.Context) {
	p.Hub.setPolling(true)
	defer p.ends.Wait()
	defer p.Hub.setPolling(false)
	for next := time.Duration(0); clock.Wait(ctx, pauseUntil(next)) == nil; {
		next = p.hasWork(ctx)
	}
}

// pauseUntil returns the pause before the next poll: until a lease expires, if that is sooner than the next
// interval. minPause keeps many short, renewed leases from causing a poll each.
func pauseUntil(expiry time.Duration) time.Duration {
	pause := clock.Jitter(interval)
	if expiry > 0 {
		pause = min(pause, max(expiry, minPause)+clock.Jitter(spread))
	}
	return pause
}

const (
	minPause = 200 * time.Millisecond // shortest pause between two polls
	spread   = 50 * time.Millisecond  // spreads the nodes, so that not all release the same leases at once
)

// hasWork polls once, and returns when the next lease expires, if that is soon.
func (p *IdlePoller) hasWork(ctx context.Context) (next time.Duration) {
	parked := p.Hub.parkedPollers()
	needs := slices.Clone(p.Leases)
	known := make(map[WorkKind]bool)
	for _, n := range needs {
		known[n] = true
	}
	by := make(map[*idleState][]WorkKind)
	for _, r := range parked {
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
		due, next, err = hasWork(ctx, p.Doer, shards, needs, interval)
	}
	if err != nil { // unpark all: the pollers report the error
		p.Log.Debug("failed to poll for work", "error", err)
		due = known
	}
	if err == nil && p.Expire != nil && p.expiring.TryLock() { // in its own goroutine: it runs user code, which may hang
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

// idleState is a parked poller that leaves polling to the idle poller.
type idleState struct {
	needs func() []WorkKind
	*waiter
}

// setPolling records whether an idle poller runs. When it stops, the parked pollers poll by themselves.
func (h *Hub) setPolling(yes bool) {
	h.mu.Lock()
	h.poller = yes
	h.mu.Unlock()
	if !yes {
		for _, r := range h.parkedPollers() {
			r.call()
		}
	}
}

func (h *Hub) parkedPollers() (all []*idleState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.parked {
		all = append(all, r)
	}
	return all
}

// Rest leaves polling for a need to the idle poller, if there is one: due receives a value when there is work.
// The caller must call end.
func (h *Hub) Rest(need WorkKind) (due <-chan struct{}, end func(), ok bool) {
	r := &idleState{func() []WorkKind { return []WorkKind{need} }, newWaiter()}
	end, ok = h.park(r)
	return r.woken, end, ok
}

// Watch calls f when the topic is woken or the idle poller finds work for the need. f must not block or call
// the hub. Call end to stop watching.
func (h *Hub) Watch(topic string, need WorkKind, f func()) (end func()) {
	r := &idleState{func() []WorkKind { return []WorkKind{need} }, &waiter{f: f}}
	h.mu.Lock()
	h.waiters[topic] = append(h.waiters[topic], r.waiter)
	h.mu.Unlock()
	unpark, _ := h.park(r)
	return func() {
		if unpark != nil {
			unpark()
		}
		h.forget(r.waiter, topic)
	}
}

// park leaves polling to the idle poller, if there is one, until end is called.
func (h *Hub) park(r *idleState) (end func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.poller {
		return nil, false
	}
	h.parked[r] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.parked, r)
	}, true
}
