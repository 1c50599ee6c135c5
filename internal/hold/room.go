package hold

import (
	"context"
	"sync"
)

// Share says for whom something is done: for a workspace and, in it, for a handler.
type Share struct{ Workspace, Handler string }

// Room is room for things that are done at once, which workspaces share.
//
// A workspace may have more as long as it has less than twice what nobody has: two thirds if it is the only one, and less
// the more others there are. So there is room for one who comes, however many have all that they may have and keep it
// because what they call hangs. Where handlers share too, each may have more as long as it has less than its workspace
// could still have. A workspace that is the only one there is has all.
//
// Rejected: a fixed part for each, which few workspaces leave unused, or many can use up; and a queue for each workspace,
// in front of room that who came first keeps.
type Room struct {
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
	some  chan struct{} // closed when room is freed
}

// NewRoom returns room for n, or for one. alone says whether there is but one workspace. freed is called when room is
// freed after somebody was refused it.
func NewRoom(n int, alone func() bool, freed func()) *Room {
	return &Room{size: max(n, 1), alone: alone, freed: freed, by: make(map[string]int), each: make(map[Share]int), some: make(chan struct{})}
}

// ByHandler has the handlers of a workspace share what it may have.
func (r *Room) ByHandler() *Room {
	r.handlers = true
	return r
}

// Wait waits until there is room for anybody.
func (r *Room) Wait(ctx context.Context) error {
	for {
		r.mu.Lock()
		free, some := r.size-r.used, r.some
		r.mu.Unlock()
		if free > 0 {
			return ctx.Err()
		}
		select {
		case <-some:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Left is how much room nobody has.
func (r *Room) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size - r.used
}

// Take takes room for up to n, as far as one's share goes, and says for how many.
func (r *Room) Take(s Share, n int) (taken int) {
	alone := r.alone()
	r.mu.Lock()
	defer r.mu.Unlock()
	for taken < n && r.may(s, alone) {
		r.used++
		r.by[s.Workspace]++
		r.each[s]++
		taken++
	}
	r.short = r.short || taken < n && r.used < r.size
	if taken > 0 {
		r.Served(s.Workspace)
	}
	return taken
}

// may says whether one may have more. REQUIRES: mu
func (r *Room) may(s Share, alone bool) bool {
	free := r.size - r.used
	most := 2 * free
	if !alone && r.by[s.Workspace] >= most {
		return false
	}
	return free > 0 && (!r.handlers || r.each[s] < max(most-r.by[s.Workspace], 1))
}

// Free gives back room for n.
func (r *Room) Free(s Share, n int) {
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
	close(r.some)
	r.some = make(chan struct{})
	r.mu.Unlock()
	if short && r.freed != nil {
		r.freed()
	}
}

// Full are the workspaces that can have no more now.
func (r *Room) Full() []string {
	alone := r.alone()
	r.mu.Lock()
	defer r.mu.Unlock()
	full := []string{}
	for workspace, n := range r.by {
		if !alone && n >= 2*(r.size-r.used) {
			full = append(full, workspace)
			r.short = true
		}
	}
	return full
}
