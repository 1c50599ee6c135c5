package scopestore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// old is a scope that has ended, or a tombstone that may go.
type old struct {
	workspace, kind, id string
	version             int64
	alive               bool
}

var (
	oldVerb = store.NewVerb(store.Decl{Name: "scopes.old", Lane: store.Read}, nil, store.IntArg("limit"),
		store.Each(func(o *old) []any { return []any{&o.workspace, &o.kind, &o.id, &o.version, &o.alive} }))
	expireVerb = store.NewVerb(store.Decl{Name: "scopes.expire", Group: true, Events: store.HistoryEvents},
		func(o old) []string { return []string{key(o.kind, o.id)} },
		func(o old, args *store.Args) {
			bindName(args, o.kind, o.id)
			args.Int("version", o.version)
		}, store.ScanApplied).
		Wakes(func(o old) []string { return []string{Topic(o.kind, o.id)} }).
		Emits(func(o old) store.Emission { return emits("expired", o.kind, o.id) })
	forgetVerb = store.NewVerb(store.Decl{Name: "scopes.forget", Group: true, Idempotent: true},
		func(o old) []string { return []string{key(o.kind, o.id)} },
		func(o old, args *store.Args) { bindName(args, o.kind, o.id) }, store.ScanApplied)
)

const (
	// sweepPage is how many scopes are looked for at once, on a shard, and sweepers how many
	// are dealt with at once: they share statements.
	sweepPage = 500
	sweepers  = 32
	// sweepFor is how long one sweep may go on: other things are to be swept too.
	sweepFor = 5 * time.Second
)

// SweepAll makes tombstones of scopes that have ended, and deletes tombstones whose time is
// over. It says how many it has dealt with. Several nodes may sweep at once.
func SweepAll(ctx context.Context, d store.Doer) (n int, err error) {
	return SweepFor(ctx, d, sweepFor)
}

// SweepFor is [SweepAll] for so long at the most, on each shard, or a page more.
func SweepFor(ctx context.Context, d store.Doer, most time.Duration) (n int, err error) {
	shards, err := store.Shards(ctx, d)
	return store.OnShards(shards, err, func(at store.Partition) (n int, err error) {
		for begun := clock.Now(); ; {
			all, failed := oldVerb.DoAt(ctx, d, at, sweepPage)
			done, worse := sweep(ctx, d, at.Shard, all)
			n, err = n+done, errors.Join(err, failed, worse)
			if len(all) < sweepPage || err != nil || clock.Since(begun) > most {
				return n, err
			}
		}
	})
}

// sweep deals with some, several at once; with one by itself.
func sweep(ctx context.Context, d store.Doer, shard int16, all []old) (n int, err error) {
	var (
		mu   sync.Mutex
		work sync.WaitGroup
		next = make(chan old, len(all))
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

// end makes a tombstone of a scope, or deletes a tombstone.
func (o old) end(ctx context.Context, d store.Doer, shard int16) (bool, error) {
	verb := forgetVerb
	if o.alive {
		verb = expireVerb
	}
	return verb.DoAt(ctx, d, store.Partition{Shard: shard, Workspace: o.workspace}, o)
}
