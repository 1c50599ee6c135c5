package reactions

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Collector takes marks away, where appends leave them, and notes what they say
// where takes look for it. It remembers how far it has come with each reaction in each workspace, on
// one shard, and begins again at the beginning after a page that was not full, and
// after some that were: what is marked before that waits for as long. Not safe for
// concurrent use.
type Collector struct {
	come  map[lease.Turn]place
	pages map[lease.Turn]int // full ones, since the beginning
}

// place is the key of a mark, of one reaction in one workspace.
type place struct {
	stream  string
	version int64
}

var beginning = place{version: -1}

// collectLimit is how many marks one statement takes away of what has its turn, and mostGathered of how many turns at
// the most.
const collectLimit, maxCollected = 2000, 100

// mostPages is how many full pages are gathered before it begins again.
const mostPages = 16

type collectArgs struct {
	From  [][4]any `arg:"reactions"`
	limit int      `arg:"limit"`
}

type picked struct {
	gone int64
	lease.Turn
	last  place
	count int64
}

var collectDueVerb = store.VerbOf[collectArgs](store.Decl{Name: "reactions.gather", Lane: store.Work}, nil,
	store.Each(func(p *picked) []any {
		return []any{&p.gone, &p.Name, &p.Workspace, &p.last.stream, &p.last.version, &p.count}
	}))

// Next gathers some marks of what has its turn, and says whether there were any.
func (g *Collector) Next(ctx context.Context, d store.Doer, at store.Partition, turns []lease.Turn) (bool, error) {
	onward := slices.ContainsFunc(turns, func(t lease.Turn) bool { _, ok := g.come[t]; return ok })
	some, err := g.page(ctx, d, at, turns)
	if err == nil && onward && !gone(some) { // there may be some before
		some, err = g.page(ctx, d, at, turns)
	}
	return gone(some), err
}

func gone(some []picked) bool { return len(some) > 0 && some[0].gone > 0 }

// page gathers a page, and notes how far it has come.
func (g *Collector) page(ctx context.Context, d store.Doer, at store.Partition, turns []lease.Turn) ([]picked, error) {
	if len(turns) == 0 {
		return nil, nil
	}
	turns = turns[:min(len(turns), maxCollected)]
	a := collectArgs{make([][4]any, len(turns)), collectLimit / len(turns)}
	for i, t := range turns {
		p, ok := g.come[t]
		if !ok {
			p = beginning
		}
		a.From[i] = [4]any{t.Name, t.Workspace, p.stream, p.version}
	}
	some, err := collectDueVerb.DoAt(ctx, d, at, a)
	if err != nil {
		return nil, err
	}
	if g.come == nil {
		g.come, g.pages = make(map[lease.Turn]place), make(map[lease.Turn]int)
	}
	for _, t := range turns {
		delete(g.come, t)
	}
	for _, p := range some {
		n := g.pages[p.Turn] + 1
		if delete(g.pages, p.Turn); p.count >= int64(a.limit) && n < mostPages {
			g.come[p.Turn], g.pages[p.Turn] = p.last, n
		}
	}
	return some, nil
}

// CollectDue gathers some marks from the beginning: in one workspace or in all on a shard.
func CollectDue(ctx context.Context, d store.Doer, at store.Partition, names []string) (bool, error) {
	var turns []lease.Turn
	if at.Workspace != "" {
		for _, name := range names {
			turns = append(turns, lease.Turn{Name: name, Workspace: at.Workspace})
		}
	} else {
		var err error
		if turns, err = new(lease.Round).Next(ctx, d, Turns, at.Shard, names, nil); err != nil {
			return false, err
		}
	}
	return new(Collector).Next(ctx, d, at, turns)
}
