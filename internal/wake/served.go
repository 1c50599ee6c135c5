package wake

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Polled is work that is polled for in this process. Workspace is "" if a poller of the process itself serves all
// workspaces; otherwise a worker elsewhere polls for the work of that workspace.
type Polled struct {
	WorkKind
	Workspace string
}

// pollMemory is how long the poll of a worker elsewhere counts. A worker that waits for work polls at least once a
// second; one that is busy comes back when it has finished.
const pollMemory = time.Minute

// serve records that a poller runs, until end is called.
func (h *Hub) serve(p *Poller) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.polling[p] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.polling, p)
	}
}

// PolledBy records that a worker elsewhere polls for work of a workspace.
func (h *Hub) PolledBy(workspace string, needs []WorkKind) {
	now := clock.OfMachine()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range needs {
		if !slices.Contains(leased, n.Kind) {
			h.polled[Polled{n, workspace}] = now
		}
	}
}

// leased are the kinds of expired leases, which every claim looks for.
var leased = []string{HeldReaction, HeldStream, HeldOperation, HeldStep, HeldItem}

// Served returns the work that is polled for in this process, sorted. It forgets workers elsewhere that have not polled
// for a minute.
func (h *Hub) Served() []Polled {
	h.mu.Lock()
	pollers := slices.Collect(maps.Keys(h.polling))
	now := clock.OfMachine()
	maps.DeleteFunc(h.polled, func(_ Polled, at time.Time) bool { return now.Sub(at) > pollMemory })
	all := maps.Clone(h.polled)
	h.mu.Unlock()
	for _, p := range pollers {
		if p.WorkKinds == nil {
			continue
		}
		for _, n := range p.WorkKinds() {
			all[Polled{WorkKind: n}] = now
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b Polled) int {
		return strings.Compare(a.Kind+"\n"+a.Name+"\n"+a.Workspace, b.Kind+"\n"+b.Name+"\n"+b.Workspace)
	})
}

// Waiters returns how many callers wait for a topic.
func (h *Hub) Waiters() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range h.waiters {
		n += len(all)
	}
	return n
}
