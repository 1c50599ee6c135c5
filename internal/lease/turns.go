package lease

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Turn is a workspace in which there may be something to do for a name: a handler, a queue, a reaction.
type Turn struct{ Name, Workspace string }

// Turns asks where there may be something to do.
type Turns store.Verb[turnsArgs, []Turn]

type turnsArgs struct {
	Names  [][3]string `arg:"queues"` // with the workspace behind which each goes on, and the kind
	limit  int         `arg:"limit"`
	Except []string    `arg:"except"`
}

// NewTurns declares the verb that asks.
func NewTurns(verb string) *Turns {
	return (*Turns)(store.VerbOf[turnsArgs](store.Decl{Name: verb, Lane: store.Read}, nil,
		store.Each(func(t *Turn) []any { return []any{&t.Name, &t.Workspace} })))
}

// fewTurns is how many turns there are in one round, beside one of each name.
const fewTurns = 64

// Round gives turns: to each name in each workspace in which there may be something to do for it. Where these are many, a
// name goes on behind the workspace that it came to the last time. Not safe for concurrent use.
type Round struct {
	Kind   string // what handlers must be declared as, where that matters
	behind map[string]string
}

// Whole says whether the turns that were given last were all that there were. Where they were not, and nothing came of
// them, who looks is to look again at once.
func (r *Round) Whole() bool { return len(r.behind) == 0 }

// Next returns the turns of some names on a shard, but for some workspaces.
func (r *Round) Next(ctx context.Context, d store.Doer, ask *Turns, shard int16, names, except []string) (turns []Turn, err error) {
	a := turnsArgs{make([][3]string, len(names)), fewTurns + 2*len(names), except}
	for i, name := range names {
		a.Names[i] = [3]string{name, r.behind[name], r.Kind}
	}
	all, err := (*store.Verb[turnsArgs, []Turn])(ask).DoAt(ctx, d, store.Partition{Shard: shard}, a)
	if err != nil {
		return nil, err
	}
	behind := make(map[string]string)
	for _, t := range all {
		behind[t.Name] = t.Workspace // none behind the last
		if t.Workspace != "" {
			turns = append(turns, t)
		}
	}
	maps.DeleteFunc(behind, func(_, workspace string) bool { return workspace == "" })
	again := len(turns) == 0 && len(r.behind) > 0
	if r.behind = behind; again { // there may be some before
		return r.Next(ctx, d, ask, shard, names, except)
	}
	return turns, nil
}

// Order remembers which workspaces were served last: the others come before them.
type Order struct {
	mu   sync.Mutex
	last map[string]int64
	n    int64
}

// mostKept is how many workspaces an order remembers; then it begins anew.
const mostKept = 10_000

// Served notes that a workspace was served.
func (o *Order) Served(workspace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil || len(o.last) >= mostKept {
		o.last = make(map[string]int64)
	}
	o.n++
	o.last[workspace] = o.n
}

// InTurn orders things so that each workspace has one before any has another; first comes which was served longest ago.
// Those of one workspace stay in their order.
func InTurn[T any](o *Order, all []T, workspace func(T) string) {
	if len(all) < 2 {
		return
	}
	type place struct {
		x         T
		nth, last int64
	}
	places, seen := make([]place, len(all)), make(map[string]int64)
	o.mu.Lock()
	for i, x := range all {
		w := workspace(x)
		places[i] = place{x, seen[w], o.last[w]}
		seen[w]++
	}
	o.mu.Unlock()
	if len(seen) < 2 {
		return
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.nth, b.nth), cmp.Compare(a.last, b.last)) })
	for i, p := range places {
		all[i] = p.x
	}
}
