package reactions

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// hasQueued reports whether leases wait for capacity.
func (w *Worker) hasQueued() bool {
	w.queueMu.Lock()
	defer w.queueMu.Unlock()
	return len(w.queue) > 0
}

// Queued returns how many leases wait for capacity.
func (w *Worker) Queued() (n int) {
	w.queueMu.Lock()
	defer w.queueMu.Unlock()
	for _, all := range w.queue {
		n += len(all)
	}
	return n
}

// turns returns the reactions and workspaces to serve in this poll, and whether
// more follow. With a single workspace whose last poll found work, it assumes
// that there is more and saves the query.
func (w *Worker) turns(ctx context.Context, at *pollState, shard int16, names []string) (turns []lease.Turn, more bool, err error) {
	if at.busy && at.only != "" && store.SingleWorkspace(w.Engine) {
		for _, name := range names {
			turns = append(turns, lease.Turn{Name: name, Workspace: at.only})
		}
		return turns, false, nil
	}
	turns, err = at.turns.Next(ctx, w.Engine, Turns, shard, names, w.excluded())
	at.only = ""
	if len(turns) > 0 {
		at.only = turns[0].Workspace
	}
	return turns, !at.turns.Whole(), err
}

// enqueue adds leases to the queue.
func (w *Worker) enqueue(leases []*Lease) {
	w.queueMu.Lock()
	defer w.queueMu.Unlock()
	for _, l := range leases {
		w.queue[l.share()] = append(w.queue[l.share()], l)
	}
}

// drainQueue removes and returns all queued leases.
func (w *Worker) drainQueue() (leases []*Lease) {
	w.queueMu.Lock()
	defer w.queueMu.Unlock()
	for _, some := range w.queue {
		leases = append(leases, some...)
	}
	w.queue = make(map[lease.Share][]*Lease)
	return leases
}

func (l *Lease) share() lease.Share { return lease.Share{Workspace: l.Workspace, Handler: l.Reaction} }

// excluded returns the workspaces for which nothing may be taken now: those
// without capacity and, unless handlers have shares, those with queued leases.
func (w *Worker) excluded() []string {
	excluded := w.room.ShutWorkspaces()
	w.queueMu.Lock()
	defer w.queueMu.Unlock()
	w.skippedQueued = len(w.queue) > 0
	for s := range w.queue {
		if !w.ByHandler {
			excluded = append(excluded, s.Workspace)
		}
	}
	return excluded
}

// inTurn drops the turns that have queued leases or no capacity. Of the others it
// returns those of the workspaces served longest ago, at most as many workspaces
// as one take has streams.
func (w *Worker) inTurn(turns []lease.Turn) []lease.Turn {
	w.queueMu.Lock()
	turns = slices.DeleteFunc(turns, func(t lease.Turn) bool {
		s := lease.Share{Workspace: t.Workspace, Handler: t.Name}
		return len(w.queue[s]) > 0 || w.room.Full(s)
	})
	w.queueMu.Unlock()
	rand.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	lease.InTurn(&w.room.Order, turns, func(t lease.Turn) string { return t.Workspace })
	few := make(map[string]bool)
	turns = slices.DeleteFunc(turns, func(t lease.Turn) bool {
		if len(few) < w.batch {
			few[t.Workspace] = true
		}
		return !few[t.Workspace]
	})
	for workspace := range few {
		w.room.Served(workspace)
	}
	return turns
}

// startQueued starts the bodies of queued leases as far as there is capacity.
func (w *Worker) startQueued(ctx context.Context) {
	for l := w.next(); l != nil; l = w.next() {
		w.bodies.Go(func() {
			w.serve(ctx, l)
			w.room.Free(l.share(), 1)
			w.startQueued(ctx)
		})
	}
}

// next takes capacity for one queued lease, of the workspace served longest ago.
// It returns nil if no queued lease may start.
func (w *Worker) next() *Lease {
	w.queueMu.Lock()
	defer w.queueMu.Unlock()
	if len(w.queue) == 0 || w.room.Left() == 0 { // the body that frees capacity calls again
		return nil
	}
	shares := slices.Collect(maps.Keys(w.queue))
	lease.InTurn(&w.room.Order, shares, func(s lease.Share) string { return s.Workspace })
	for _, s := range shares {
		if w.room.Take(s, 1) == 0 {
			continue
		}
		l := w.queue[s][0]
		if w.queue[s] = w.queue[s][1:]; len(w.queue[s]) == 0 {
			delete(w.queue, s)
		}
		if w.skippedQueued && len(w.queue) == 0 {
			w.skippedQueued = false
			w.Hub.WakeHere(w.topic())
		}
		return l
	}
	return nil
}
