package lease

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Turn is a workspace that may have work for a name: a handler, a queue or a reaction.
type Turn struct{ Name, Workspace string }

// Turns is the query for the workspaces that may have work.
type Turns store.Verb[turnsArgs, []Turn]

type turnsArgs struct {
	Names  [][3]string `arg:"queues"` // each with the workspace to continue after, and the kind
	limit  int         `arg:"limit"`
	Except []string    `arg:"except"`
}

// NewTurns declares the query's verb.
func NewTurns(verb string) *Turns {
	return (*Turns)(store.VerbOf[turnsArgs](store.Decl{Name: verb, Lane: store.Read}, nil,
		store.Each(func(t *Turn) []any { return []any{&t.Name, &t.Workspace} })))
}

// turnsPerPoll limits the turns of one poll; each name adds two.
const turnsPerPoll = 64

// Round hands out turns to each name in each workspace that may have work for it. If there are many, a name
// continues after the workspace it reached last time. Not safe for concurrent use.
type Round struct {
	Kind   string            // kind that handlers must be declared as, if it matters
	behind map[string]string // by name, the workspace that it reached
}

// Whole reports whether the last turns were all there were. If not, and they led to no work, the caller polls
// again at once.
func (r *Round) Whole() bool { return len(r.behind) == 0 }

// Next returns the turns of the names on a shard, excluding some workspaces.
func (r *Round) Next(ctx context.Context, d store.Doer, ask *Turns, shard int16, names, except []string) (turns []Turn, err error) {
	a := turnsArgs{make([][3]string, len(names)), turnsPerPoll + 2*len(names), except}
	for i, name := range names {
		a.Names[i] = [3]string{name, r.behind[name], r.Kind}
	}
	all, err := (*store.Verb[turnsArgs, []Turn])(ask).DoAt(ctx, d, store.Partition{Shard: shard}, a)
	if err != nil {
		return nil, err
	}
	behind := make(map[string]string)
	for _, t := range all {
		behind[t.Name] = t.Workspace // "" after the last workspace
		if t.Workspace != "" {
			turns = append(turns, t)
		}
	}
	maps.DeleteFunc(behind, func(_, workspace string) bool { return workspace == "" })
	again := len(turns) == 0 && len(r.behind) > 0
	if r.behind = behind; again { // start over: earlier workspaces may have work
		return r.Next(ctx, d, ask, shard, names, except)
	}
	return turns, nil
}

// Order records which workspaces were served last, so that others come before them.
type Order struct {
	mu   sync.Mutex
	last map[string]int64
	n    int64
}

// maxRemembered is how many workspaces an order remembers before it starts over.
const maxRemembered = 10_000

// Served records that a workspace was served.
func (o *Order) Served(workspace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil || len(o.last) >= maxRemembered {
		o.last = make(map[string]int64)
	}
	o.n++
	o.last[workspace] = o.n
}

// InTurn orders items so that each workspace gets one before any gets a second; the workspace served longest
// ago comes first. Items of one workspace stay in order.
func InTurn[T any](o *Order, all []T, workspace func(T) string) {
	if len(all) < 2 {
		return
	}
	type position struct {
		x         T
		nth, last int64
	}
	order, seen := make([]position, len(all)), make(map[string]int64)
	o.mu.Lock()
	for i, x := range all {
		w := workspace(x)
		order[i] = position{x, seen[w], o.last[w]}
		seen[w]++
	}
	o.mu.Unlock()
	if len(seen) < 2 {
		return
	}
	slices.SortStableFunc(order, func(a, b position) int { return cmp.Or(cmp.Compare(a.nth, b.nth), cmp.Compare(a.last, b.last)) })
	for i, p := range order {
		all[i] = p.x
	}
}
