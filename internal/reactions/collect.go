package reactions

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Collector moves the due notices that appends leave into the position rows that
// takes read. It remembers a cursor for each reaction in each workspace of one
// shard. It restarts at the first notice after a page that was not full, and
// after maxPages full pages; notices before the cursor wait until then. A
// Collector is not safe for concurrent use.
type Collector struct {
	cursors map[lease.Turn]noticeKey
	pages   map[lease.Turn]int // full pages since the last restart
}

// noticeKey is the key of a due notice of one reaction in one workspace.
type noticeKey struct {
	stream  string
	version int64
}

var firstKey = noticeKey{version: -1}

// collectLimit is the number of due notices that one statement collects, and
// maxCollected the number of turns that it serves.
const collectLimit, maxCollected = 2000, 100

// maxPages is the number of full pages before the collector restarts.
const maxPages = 16

type collectArgs struct {
	From  [][4]any `arg:"reactions"`
	limit int      `arg:"limit"`
}

type collected struct {
	deleted int64 // due notices that the whole statement deleted
	lease.Turn
	last  noticeKey
	count int64
}

var collectDueVerb = store.VerbOf[collectArgs](store.Decl{Name: "reactions.collect_due", Lane: store.Work}, nil,
	store.Each(func(p *collected) []any {
		return []any{&p.deleted, &p.Name, &p.Workspace, &p.last.stream, &p.last.version, &p.count}
	}))

// Next collects a page of due notices for turns, and reports whether there were any.
func (g *Collector) Next(ctx context.Context, d store.Doer, at store.Partition, turns []lease.Turn) (bool, error) {
	onward := slices.ContainsFunc(turns, func(t lease.Turn) bool { _, ok := g.cursors[t]; return ok })
	some, err := g.page(ctx, d, at, turns)
	if err == nil && onward && !deleted(some) { // there may be notices before the cursor
		some, err = g.page(ctx, d, at, turns)
	}
	return deleted(some), err
}

// Full reports whether the last page left notices for the next one.
func (g *Collector) Full() bool { return len(g.cursors) > 0 }

func deleted(some []collected) bool { return len(some) > 0 && some[0].deleted > 0 }

// page collects one page and moves the cursors.
func (g *Collector) page(ctx context.Context, d store.Doer, at store.Partition, turns []lease.Turn) ([]collected, error) {
	if len(turns) == 0 {
		return nil, nil
	}
	turns = turns[:min(len(turns), maxCollected)]
	a := collectArgs{make([][4]any, len(turns)), collectLimit / len(turns)}
	for i, t := range turns {
		p, ok := g.cursors[t]
		if !ok {
			p = firstKey
		}
		a.From[i] = [4]any{t.Name, t.Workspace, p.stream, p.version}
	}
	some, err := collectDueVerb.DoAt(ctx, d, at, a)
	if err != nil {
		return nil, err
	}
	if g.cursors == nil {
		g.cursors, g.pages = make(map[lease.Turn]noticeKey), make(map[lease.Turn]int)
	}
	for _, t := range turns {
		delete(g.cursors, t)
	}
	for _, p := range some {
		n := g.pages[p.Turn] + 1
		if delete(g.pages, p.Turn); p.count >= int64(a.limit) && n < maxPages {
			g.cursors[p.Turn], g.pages[p.Turn] = p.last, n
		}
	}
	return some, nil
}

// CollectDue collects a page of due notices from the first one: in the
// partition's workspace or, if that is "", in all workspaces of the shard.
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
