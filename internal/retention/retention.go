// Package retention removes what is older than it has to be from the histories of
// entities, scopes and reactions, the streams that begin with "$".
//
// What is removed: events that are older than the program wants to keep them,
// except the last one of each thing, and except what a reaction has still to
// handle. A reaction that is blocked, or lags, so keeps what it needs. Users'
// events are never removed here.
//
// Ids are ordered by the nodes' time, so a page of the oldest is a range of the
// key; whether an event is old is told by the database's. Each
// sweep looks at one page and goes on where the last one ended; what must stay is
// then not looked at again before everything else was.
//
// Rejected for now: partitions by time that are dropped whole. Dropping is cheaper
// than deleting, but a partition can only go when nothing in it must stay, and the
// last event of each idle thing must.
package retention

import (
	"context"
	"encoding/hex"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Shortest is the shortest time that histories are kept. An event tells of a
// command whose answer was lost whether it was applied, so it must outlive every
// such question.
const Shortest = time.Hour

// page is how many events one sweep looks at, on a shard.
const page = 2000

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
	pageVerb = store.VerbOf[pageArgs](store.Decl{Name: "history.page", Lane: store.Read}, nil,
		func(s *span, row store.Row) error { return row.Scan(&s.size, &s.last) })
	pruneVerb = store.VerbOf[pruneArgs](store.Decl{Name: "history.prune", Lane: store.Work}, nil, store.CountRows)
)

// Pruner removes old history, a page at a time. Safe for concurrent use; several
// nodes may prune at once.
type Pruner struct {
	// Keep is how long histories are kept at the least.
	Keep time.Duration

	mu    sync.Mutex
	after map[int16]string // where the last page of a shard ended
}

// Sweep looks at one page on every shard and returns how many events it removed.
func (p *Pruner) Sweep(ctx context.Context, d store.Doer) (removed int, err error) {
	status, err := store.Ask.DoAt(ctx, d, store.Partition{}, struct{}{})
	if err != nil {
		return 0, err
	}
	shards, err := store.Shards(ctx, d)
	return store.OnShards(shards, err, func(at store.Partition) (int, error) {
		return p.sweep(ctx, d, at.Shard, before(status.Now.Add(-p.Keep)))
	})
}

func (p *Pruner) sweep(ctx context.Context, d store.Doer, shard int16, before string) (int, error) {
	at, a := store.Partition{Shard: shard}, pageArgs{p.from(shard), before, page}
	s, err := pageVerb.DoAt(ctx, d, at, a)
	if err != nil {
		return 0, err
	}
	n, err := pruneVerb.DoAt(ctx, d, at, pruneArgs{a, p.Keep})
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after == nil {
		p.after = make(map[int16]string)
	}
	delete(p.after, shard) // from the beginning again
	if s.size == page {
		p.after[shard] = s.last
	}
	return n, nil
}

func (p *Pruner) from(shard int16) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if after := p.after[shard]; after != "" {
		return after
	}
	return uuid.Nil.String()
}

// before is the first id of a moment.
func before(t time.Time) string {
	var id uuid.UUID
	ms := uint64(t.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return hex.EncodeToString(id[:])
}
