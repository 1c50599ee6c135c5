package reactions

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// waits says whether somebody waits for room.
func (w *Worker) waits() bool {
	w.lining.Lock()
	defer w.lining.Unlock()
	return len(w.line) > 0
}

// turns are who has a turn. Where there is one workspace, and the last look found something, that has, as like as not.
func (w *Worker) turns(ctx context.Context, at *round, shard int16, names []string) (turns []lease.Turn, more bool, err error) {
	if at.busy && at.only != "" && store.Alone(w.Engine) {
		for _, name := range names {
			turns = append(turns, lease.Turn{Name: name, Workspace: at.only})
		}
		return turns, false, nil
	}
	turns, err = at.turns.Next(ctx, w.Engine, Turns, shard, names, w.shut())
	at.only = ""
	if len(turns) > 0 {
		at.only = turns[0].Workspace
	}
	return turns, !at.turns.Whole(), err
}

// enter has leases wait for room.
func (w *Worker) enter(leases []*Lease) {
	w.lining.Lock()
	defer w.lining.Unlock()
	for _, l := range leases {
		w.line[l.share()] = append(w.line[l.share()], l)
	}
}

// leaveLine ends the waiting of all.
func (w *Worker) leaveLine() (leases []*Lease) {
	w.lining.Lock()
	defer w.lining.Unlock()
	for _, some := range w.line {
		leases = append(leases, some...)
	}
	w.line = make(map[lease.Share][]*Lease)
	return leases
}

func (l *Lease) share() lease.Share { return lease.Share{Workspace: l.Workspace, Handler: l.Reaction} }

// shut are the workspaces that nothing is to be taken for now.
func (w *Worker) shut() []string {
	shut := w.room.ShutWorkspaces()
	w.lining.Lock()
	defer w.lining.Unlock()
	w.passed = len(w.line) > 0
	for s := range w.line {
		if !w.ByHandler {
			shut = append(shut, s.Workspace)
		}
	}
	return shut
}

// inTurn leaves out who has something in hand that waits, and orders the others: as many workspaces as one take can have,
// those that were served longest ago.
func (w *Worker) inTurn(turns []lease.Turn) []lease.Turn {
	w.lining.Lock()
	turns = slices.DeleteFunc(turns, func(t lease.Turn) bool {
		s := lease.Share{Workspace: t.Workspace, Handler: t.Name}
		return len(w.line[s]) > 0 || w.room.Full(s)
	})
	w.lining.Unlock()
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

// begins has bodies begin with what waits, as far as there is room.
func (w *Worker) begins(ctx context.Context) {
	for l := w.next(); l != nil; l = w.next() {
		w.bodies.Go(func() {
			w.serve(ctx, l)
			w.room.Free(l.share(), 1)
			w.begins(ctx)
		})
	}
}

// next takes room for one who waits, of the workspace that was served longest ago; nil if nobody may have any.
func (w *Worker) next() *Lease {
	w.lining.Lock()
	defer w.lining.Unlock()
	if len(w.line) == 0 || w.room.Left() == 0 { // who gives room back asks again
		return nil
	}
	shares := slices.Collect(maps.Keys(w.line))
	lease.InTurn(&w.room.Order, shares, func(s lease.Share) string { return s.Workspace })
	for _, s := range shares {
		if w.room.Take(s, 1) == 0 {
			continue
		}
		l := w.line[s][0]
		if w.line[s] = w.line[s][1:]; len(w.line[s]) == 0 {
			delete(w.line, s)
		}
		if w.passed && len(w.line) == 0 {
			w.passed = false
			w.Hub.WakeHere(w.topic())
		}
		return l
	}
	return nil
}
