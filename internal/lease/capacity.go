package lease

import (
	"context"
	"sync"
)

// Share identifies a user of capacity: a workspace and, in it, a handler.
type Share struct{ Workspace, Handler string }

// Capacity limits how many units of work (operations, deliveries to reactions) run at once, and shares that room
// between workspaces.
//
// A workspace may take more while it has less than twice of what would then be free: about two thirds if it is
// the only active one, and less the more others there are. The last unit is reserved for a workspace that has
// none. A workspace that occupies its full share, because the service it calls hangs, leaves room for others; a
// second one like it takes two thirds of that, and so on. It takes four of them to fill a capacity of 16, and
// six to fill 128. If handlers share too, a handler may take more while its own units and those of its workspace,
// added, are fewer than that double number: alone, it gets half. The limit of the workspace, but not that of its
// handlers, is lifted for the only workspace in the database.
//
// Rejected: a fixed share for each workspace, which few workspaces leave unused or many exhaust; and a queue per
// workspace in front of first-come, first-served room.
type Capacity struct {
	Order
	size            int
	singleWorkspace func() bool
	handlers        bool   // handlers of a workspace share too
	freed           func() // called when a refused caller may get more

	mu    sync.Mutex
	used  int
	by    map[string]int // by workspace
	each  map[Share]int  // by workspace and handler
	short bool           // a caller was refused
	some  chan struct{}  // non-nil while a caller waits; closed when room is freed
}

// NewCapacity returns capacity for n units, at least one. singleWorkspace reports whether there is only one
// workspace. freed is called when room is freed after a caller was refused.
func NewCapacity(n int, singleWorkspace func() bool, freed func()) *Capacity {
	return &Capacity{size: max(n, 1), singleWorkspace: singleWorkspace, freed: freed, by: make(map[string]int), each: make(map[Share]int)}
}

// ByHandler makes the handlers of a workspace share its capacity.
func (r *Capacity) ByHandler() *Capacity {
	r.handlers = true
	return r
}

// Handlers reports whether handlers share too.
func (r *Capacity) Handlers() bool { return r.handlers }

// Wait waits until there is any room.
func (r *Capacity) Wait(ctx context.Context) error {
	for {
		r.mu.Lock()
		if r.used < r.size {
			r.mu.Unlock()
			return ctx.Err()
		}
		if r.some == nil {
			r.some = make(chan struct{})
		}
		some := r.some
		r.mu.Unlock()
		select {
		case <-some:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Left returns the free room.
func (r *Capacity) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size - r.used
}

// Take takes room for up to n units within the share, and returns for how many.
func (r *Capacity) Take(s Share, n int) (taken int) {
	singleWorkspace := r.singleWorkspace()
	r.mu.Lock()
	defer r.mu.Unlock()
	for taken < n && r.used < r.size && !r.over(s, singleWorkspace) {
		r.used++
		r.by[s.Workspace]++
		r.each[s]++
		taken++
	}
	r.short = r.short || taken < n
	if taken > 0 {
		r.Served(s.Workspace)
	}
	return taken
}

// over reports whether a share is used up, regardless of free room. REQUIRES: mu
func (r *Capacity) over(s Share, singleWorkspace bool) bool {
	by, most := r.by[s.Workspace], 2*(r.size-r.used-1)
	return !singleWorkspace && by > 0 && by >= most || r.handlers && r.each[s] > 0 && r.each[s] >= most-by
}

// Full reports whether a share is used up. If it is, freed is called when that may have changed.
func (r *Capacity) Full(s Share) bool {
	singleWorkspace := r.singleWorkspace()
	r.mu.Lock()
	defer r.mu.Unlock()
	full := r.over(s, singleWorkspace)
	r.short = r.short || full
	return full
}

// Free returns room for n units.
func (r *Capacity) Free(s Share, n int) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	r.used -= n
	if r.by[s.Workspace] -= n; r.by[s.Workspace] == 0 {
		delete(r.by, s.Workspace)
	}
	if r.each[s] -= n; r.each[s] == 0 {
		delete(r.each, s)
	}
	short := r.short
	r.short = false
	if r.some != nil {
		close(r.some)
		r.some = nil
	}
	r.mu.Unlock()
	if short && r.freed != nil {
		r.freed()
	}
}

// Shut returns the shares that are used up; one without a handler is an entire workspace.
func (r *Capacity) Shut() []Share {
	singleWorkspace := r.singleWorkspace()
	r.mu.Lock()
	defer r.mu.Unlock()
	shut := []Share{}
	for workspace := range r.by {
		if r.over(Share{Workspace: workspace}, singleWorkspace) {
			shut = append(shut, Share{Workspace: workspace})
		}
	}
	for s := range r.each {
		if r.handlers && r.over(s, singleWorkspace) {
			shut = append(shut, s)
		}
	}
	r.short = r.short || len(shut) > 0
	return shut
}

// ShutWorkspaces returns the workspaces that have used up their share, regardless of the handler.
func (r *Capacity) ShutWorkspaces() (names []string) {
	for _, s := range r.Shut() {
		if s.Handler == "" {
			names = append(names, s.Workspace)
		}
	}
	return names
}
