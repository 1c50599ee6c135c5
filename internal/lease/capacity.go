package lease

import (
	"context"
	"sync"
)

// Share says for whom something is done: for a workspace and, in it, for a handler.
type Share struct{ Workspace, Handler string }

// Capacity is room for things that are done at once, which workspaces share.
//
// A workspace may have more as long as it has less than twice what nobody will have then: about two thirds if it is the
// only one, and less the more others there are. The last place is for one who has none. So one that keeps all that it may
// have, because what it calls hangs, leaves room for others, of which a second such takes two thirds and so on: of 16 it
// takes four of them to fill it, of 128 six. Where handlers share too, each may have more as long as it has less than its
// workspace could still have. A workspace that is the only one there is has all.
//
// Rejected: a fixed part for each, which few workspaces leave unused, or many can use up; and a queue for each workspace,
// in front of room that who came first keeps.
type Capacity struct {
	Order
	size     int
	alone    func() bool
	handlers bool   // share too
	freed    func() // is called when one may have more who could not

	mu    sync.Mutex
	used  int
	by    map[string]int
	each  map[Share]int
	short bool          // somebody could not have more
	some  chan struct{} // if somebody waits: closed when room is freed
}

// NewCapacity returns room for n, or for one. alone says whether there is but one workspace. freed is called when room is
// freed after somebody was refused it.
func NewCapacity(n int, alone func() bool, freed func()) *Capacity {
	return &Capacity{size: max(n, 1), alone: alone, freed: freed, by: make(map[string]int), each: make(map[Share]int)}
}

// ByHandler has the handlers of a workspace share what it may have.
func (r *Capacity) ByHandler() *Capacity {
	r.handlers = true
	return r
}

// Handlers says whether handlers share too.
func (r *Capacity) Handlers() bool { return r.handlers }

// Wait waits until there is room for anybody.
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

// Left is how much room nobody has.
func (r *Capacity) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size - r.used
}

// Take takes room for up to n, as far as one's share goes, and says for how many.
func (r *Capacity) Take(s Share, n int) (taken int) {
	alone := r.alone()
	r.mu.Lock()
	defer r.mu.Unlock()
	for taken < n && r.used < r.size && !r.over(s, alone) {
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

// over says whether one has its share, whether or not there is room. REQUIRES: mu
func (r *Capacity) over(s Share, alone bool) bool {
	by, most := r.by[s.Workspace], 2*(r.size-r.used-1)
	return !alone && by > 0 && by >= most || r.handlers && r.each[s] > 0 && r.each[s] >= most-by
}

// Full says whether one has its share. Who asks is told when that may have changed.
func (r *Capacity) Full(s Share) bool {
	alone := r.alone()
	r.mu.Lock()
	defer r.mu.Unlock()
	full := r.over(s, alone)
	r.short = r.short || full
	return full
}

// Free gives back room for n.
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

// Shut are those that have their share; with no handler, that is the whole workspace.
func (r *Capacity) Shut() []Share {
	alone := r.alone()
	r.mu.Lock()
	defer r.mu.Unlock()
	shut := []Share{}
	for workspace := range r.by {
		if r.over(Share{Workspace: workspace}, alone) {
			shut = append(shut, Share{Workspace: workspace})
		}
	}
	for s := range r.each {
		if r.handlers && r.over(s, alone) {
			shut = append(shut, s)
		}
	}
	r.short = r.short || len(shut) > 0
	return shut
}

// ShutWorkspaces are the workspaces that have their share, whatever the handler.
func (r *Capacity) ShutWorkspaces() (names []string) {
	for _, s := range r.Shut() {
		if s.Handler == "" {
			names = append(names, s.Workspace)
		}
	}
	return names
}
