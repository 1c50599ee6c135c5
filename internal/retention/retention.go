// Package retention deletes old events from all histories (those of entities, scopes, reactions, runs, batches
// and others), the streams that begin with "$".
//
// It deletes events older than the configured retention, except the last event of each object that exists and
// those that a reaction still has to handle. A reaction that is blocked or lags thus keeps the events it needs. Events of
// user streams are never deleted here. The history of a deleted run or bulk is deleted whole, with the positions
// of the reactions on it, when all of them have handled all of it.
//
// Ids are ordered by the nodes' clocks, so a page of the oldest events is a range of the key; the age of an
// event is measured by the database's clock. Each sweep reads one page of each shard and continues where the last one ended,
// so an event that must stay is not read again before all others were.
//
// Rejected for now: time partitions that are dropped as a unit. Dropping is cheaper than deleting, but a
// partition can be dropped only when nothing in it must stay, and the last event of each idle object must.
package retention

import (
	"cmp"
	"context"
	"encoding/hex"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Shortest is the shortest retention of histories. An event shows whether a command whose response was lost was
// applied, so it must outlive every such question.
const Shortest = time.Hour

// rest is how many events that must stay a sweep reads per shard before it rests.
const rest = 2000

type pageArgs struct {
	after  string `arg:"after"`
	before string `arg:"upto"`
	limit  int    `arg:"limit"`
}

type pruneArgs struct {
	pageArgs
	keep time.Duration `arg:"keep"`
}

type span struct {
	size int
	last string
}

var (
	pageVerb = store.VerbOf[pageArgs](store.Decl{Name: "history.get_page_end", Lane: store.Read}, nil,
		func(s *span, row store.Row) error { return row.Scan(&s.size, &s.last) })
	pruneVerb = store.VerbOf[pruneArgs](store.Decl{Name: "history.prune", Lane: store.Work}, nil, store.CountRows)
)

// Pruner deletes old history, one page at a time. Safe for concurrent use; several nodes may prune at once.
type Pruner struct {
	// Retention is the minimum retention of histories.
	Retention time.Duration
	// Rest is how many events that must stay are read per shard before the sweep rests; 0 means 2,000.
	Rest int

	mu    sync.Mutex
	after map[int16]string // end of the last page of a shard
	idle  map[int16]int    // events read since one was deleted
}

// Sweep prunes one page of a size on every shard. It returns how many events it deleted, and whether a shard has another page.
func (p *Pruner) Sweep(ctx context.Context, d store.Doer, size int) (removed int, more bool, err error) {
	status, err := store.Ask.DoAt(ctx, d, store.Partition{}, struct{}{})
	if err != nil {
		return 0, false, err
	}
	removed, err = store.Sweep(ctx, d, func(at store.Partition) (int, error) {
		n, again, err := p.sweep(ctx, d, at.Shard, before(status.Now.Add(-p.Retention)), size)
		more = more || again
		return n, err
	})
	return removed, more, err
}

func (p *Pruner) sweep(ctx context.Context, d store.Doer, shard int16, before string, page int) (n int, more bool, err error) {
	at, a := store.Partition{Shard: shard}, pageArgs{p.from(shard), before, page}
	s, err := pageVerb.DoAt(ctx, d, at, a)
	if err != nil {
		return 0, false, err
	}
	n, err = pruneVerb.DoAt(ctx, d, at, pruneArgs{a, p.Retention})
	if err != nil {
		return 0, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after == nil {
		p.after, p.idle = make(map[int16]string), make(map[int16]int)
	}
	if p.idle[shard] += s.size; n > 0 {
		p.idle[shard] = 0
	}
	if s.size < page {
		delete(p.after, shard) // start over from the beginning
		return n, false, nil
	}
	p.after[shard] = s.last
	if p.idle[shard] >= cmp.Or(p.Rest, rest) { // events that must stay do not hurry
		p.idle[shard] = 0
		return n, false, nil
	}
	return n, true, nil
}

func (p *Pruner) from(shard int16) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if after := p.after[shard]; after != "" {
		return after
	}
	return uuid.Nil.String()
}

// before returns the first possible id of a moment.
func before(t time.Time) string {
	id := store.FirstID(t)
	return hex.EncodeToString(id[:])
}
