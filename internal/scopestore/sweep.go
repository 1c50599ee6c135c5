package scopestore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// expiredScope is a scope whose TTL has passed, or a tombstone to delete.
type expiredScope struct {
	workspace, kind, id string
	version             int64
	alive               bool // false for a tombstone
}

var (
	listExpiredVerb = store.NewVerb(store.Decl{Name: "scopes.list_expired", Lane: store.Read}, nil, store.IntArg("limit"),
		store.Each(func(o *expiredScope) []any { return []any{&o.workspace, &o.kind, &o.id, &o.version, &o.alive} }))
	expireVerb = store.NewVerb(store.Decl{Name: "scopes.expire", Group: true, Events: store.HistoryEvents},
		func(o expiredScope) []string { return []string{key(o.kind, o.id)} },
		func(o expiredScope, args *store.Args) {
			bindName(args, o.kind, o.id)
			args.Int("version", o.version)
		}, store.ScanApplied).
		Wakes(func(o expiredScope) []string { return []string{Topic(o.kind, o.id)} }).
		Emits(func(o expiredScope) store.Emission { return emits("expired", o.kind, o.id) })
	deleteTombstoneVerb = store.NewVerb(store.Decl{Name: "scopes.delete_tombstone", Group: true, Idempotent: true},
		func(o expiredScope) []string { return []string{key(o.kind, o.id)} },
		func(o expiredScope, args *store.Args) { bindName(args, o.kind, o.id) }, store.ScanApplied)
)

const (
	// sweepPage is the number of scopes per page of a shard. sweepers is the number of
	// concurrent sweepers; their commands are grouped into shared statements.
	sweepPage = 500
	sweepers  = 32
	// sweepFor limits one sweep, so that the janitor's other sweeps get their turn.
	sweepFor = 5 * time.Second
)

// SweepAll turns expired scopes into tombstones and deletes old tombstones. It returns
// the number of scopes and tombstones swept. Several nodes may sweep at once.
func SweepAll(ctx context.Context, d store.Doer) (n int, err error) {
	return SweepFor(ctx, d, sweepFor)
}

// SweepFor is [SweepAll] with a time limit per shard. It may exceed the limit by one page.
func SweepFor(ctx context.Context, d store.Doer, limit time.Duration) (n int, err error) {
	return store.Sweep(ctx, d, func(at store.Partition) (n int, err error) {
		for begun := clock.Now(); ; {
			all, failed := listExpiredVerb.DoAt(ctx, d, at, sweepPage)
			done, worse := sweep(ctx, d, at.Shard, all)
			n, err = n+done, errors.Join(err, failed, worse)
			if len(all) < sweepPage || err != nil || clock.Since(begun) > limit {
				return n, err
			}
		}
	})
}

// sweep sweeps a page with several goroutines; a single scope needs no extra goroutine.
func sweep(ctx context.Context, d store.Doer, shard int16, all []expiredScope) (n int, err error) {
	var (
		mu   sync.Mutex
		work sync.WaitGroup
		next = make(chan expiredScope, len(all))
	)
	for _, o := range all {
		next <- o
	}
	close(next)
	some := func() {
		for o := range next {
			done, failed := o.end(ctx, d, shard)
			mu.Lock()
			if err = errors.Join(err, failed); done {
				n++
			}
			mu.Unlock()
		}
	}
	for range min(sweepers, len(all)) - 1 {
		work.Go(some)
	}
	some()
	work.Wait()
	return n, err
}

// end turns an expired scope into a tombstone, or deletes a tombstone.
func (o expiredScope) end(ctx context.Context, d store.Doer, shard int16) (bool, error) {
	verb := deleteTombstoneVerb
	if o.alive {
		verb = expireVerb
	}
	return verb.DoAt(ctx, d, store.Partition{Shard: shard, Workspace: o.workspace}, o)
}
