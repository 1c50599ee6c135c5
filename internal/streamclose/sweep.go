package streamclose

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	// sweepLimit is how many streams one sweep of a shard looks at, at the
	// most.
	sweepLimit = 500
	// sweepRows is how many events one sweep of a shard deletes, at the most.
	sweepRows = 20_000
	// page is how many events one statement deletes.
	page = 1000
	// Grace is how long the rows of a dropped event are kept after it was
	// written: longer than it can take until somebody whose append was not
	// answered asks for it.
	Grace = 10 * time.Minute
)

type expired struct {
	workspace, stream string
	epoch             int64
}

type leftArgs struct {
	ago   time.Duration `arg:"ago"`
	limit int           `arg:"limit"`
}

// leftover is what is to be deleted of a stream: versions from one to before
// another.
type leftover struct {
	workspace string
	stream    string `arg:"stream"`
	from      int64  `arg:"from"`
	to        int64  `arg:"to"`
}

var (
	expiredVerb = store.NewVerb(store.Decl{Name: "books.expired", Lane: store.Read}, nil, store.IntArg("limit"),
		store.Each(func(e *expired) []any { return []any{&e.workspace, &e.stream, &e.epoch} }))
	leftVerb = store.VerbOf[leftArgs](store.Decl{Name: "books.left", Lane: store.Read}, nil,
		store.Each(func(l *leftover) []any { return []any{&l.workspace, &l.stream, &l.from, &l.to} }))
	dropEventsVerb    = store.VerbOf[leftover](store.Decl{Name: "books.dropevents", Lane: store.Work}, nil, store.ScanValues[int64])
	dropFeedVerb      = store.VerbOf[leftover](store.Decl{Name: "books.dropfeed", Lane: store.Work}, nil, store.ScanValues[int64])
	prunedVerb        = store.VerbOf[leftover](store.Decl{Name: "books.pruned", Lane: store.Work}, nil, store.ScanValues[int64])
	dropSnapshotsVerb = store.NewVerb(store.Decl{Name: "books.dropsnapshots", Lane: store.Work}, nil, bindText, store.ScanValues[int64])
)

// SweepAll opens the streams whose closer died, and deletes what was dropped, on
// every shard that is in use. It returns how many it opened.
func SweepAll(ctx context.Context, d store.Doer) (opened int, err error) {
	shards, err := store.Shards(ctx, d)
	return store.OnShards(shards, err, func(at store.Partition) (int, error) {
		n, err := Sweep(ctx, d, at.Shard)
		_, left := Prune(ctx, d, at.Shard, sweepRows)
		return n, errors.Join(err, left)
	})
}

// Sweep opens the streams on a shard whose closer's hold has run out, and returns
// how many. It may run on every node at once: what another has opened, or an
// append, is left alone.
func Sweep(ctx context.Context, d store.Doer, shard int16) (opened int, err error) {
	all, err := expiredVerb.DoAt(ctx, d, store.Partition{Shard: shard}, sweepLimit)
	for _, e := range all {
		at := store.Partition{Shard: shard, Workspace: e.workspace}
		done, failed := openVerb.DoAt(ctx, d, at, openArgs{stream: e.stream, epoch: e.epoch, swept: true})
		opened, err = opened+len(done), errors.Join(err, failed)
	}
	return opened, err
}

// Prune deletes the rows of events that were dropped, about as many as limit on a
// shard, and returns for how many it did. An index has just the streams of which
// there is something to delete, so that there is nothing to search. What a page
// deletes is noted afterwards: where that is lost, or two do the same, the page is
// deleted again, which changes nothing.
func Prune(ctx context.Context, d store.Doer, shard int16, limit int64) (deleted int64, err error) {
	all, err := leftVerb.DoAt(ctx, d, store.Partition{Shard: shard}, leftArgs{Grace, sweepLimit})
	for _, l := range all {
		for err == nil && l.from < l.to && deleted < limit {
			part := l
			part.to = min(l.to, l.from+page)
			var noted bool
			noted, err = prune(ctx, d, store.Partition{Shard: shard, Workspace: l.workspace}, part)
			if !noted { // some of its events stay for now
				break
			}
			deleted += part.to - part.from
			l.from = part.to
		}
	}
	return deleted, err
}

func prune(ctx context.Context, d store.Doer, at store.Partition, l leftover) (noted bool, err error) {
	for _, verb := range []*store.Verb[leftover, []int64]{dropFeedVerb, dropEventsVerb} {
		if _, err := verb.DoAt(ctx, d, at, l); err != nil {
			return false, err
		}
	}
	if _, err := dropSnapshotsVerb.DoAt(ctx, d, at, l.stream); err != nil {
		return false, err
	}
	to, err := prunedVerb.DoAt(ctx, d, at, l)
	return len(to) > 0, err
}
