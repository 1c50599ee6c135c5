package streamclose

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	// sweepLimit is the maximum number of streams per sweep of a shard.
	sweepLimit = 500
	// sweepRows is the maximum number of events that one sweep of a shard deletes.
	sweepRows = 20_000
	// page is the number of events that one statement deletes.
	page = 1000
	// Grace is the minimum age of a dropped event before its row is deleted. It
	// exceeds the time in which an append with a lost response may look for its
	// events.
	Grace = 10 * time.Minute
)

type expired struct {
	workspace, stream string
	epoch             int64
}

type listDeletableArgs struct {
	ago   time.Duration `arg:"ago"`
	limit int           `arg:"limit"`
}

// leftover is a range of versions to delete: from is included, to is not.
type leftover struct {
	workspace string
	stream    string `arg:"stream"`
	from      int64  `arg:"from"`
	to        int64  `arg:"to"`
}

var (
	expiredVerb = store.NewVerb(store.Decl{Name: "streams.close_list_expired", Lane: store.Read}, nil, store.IntArg("limit"),
		store.Each(func(e *expired) []any { return []any{&e.workspace, &e.stream, &e.epoch} }))
	listDeletableVerb = store.VerbOf[listDeletableArgs](store.Decl{Name: "streams.list_deletable", Lane: store.Read}, nil,
		store.Each(func(l *leftover) []any { return []any{&l.workspace, &l.stream, &l.from, &l.to} }))
	deleteEventsVerb    = store.VerbOf[leftover](store.Decl{Name: "streams.delete_events", Lane: store.Work}, nil, store.ScanValues[int64])
	deleteFeedVerb      = store.VerbOf[leftover](store.Decl{Name: "streams.delete_feed", Lane: store.Work}, nil, store.ScanValues[int64])
	markPrunedVerb      = store.VerbOf[leftover](store.Decl{Name: "streams.mark_pruned", Lane: store.Work}, nil, store.ScanValues[int64])
	deleteSnapshotsVerb = store.NewVerb(store.Decl{Name: "streams.delete_snapshots", Lane: store.Work}, nil, bindText, store.ScanValues[int64])
)

// SweepAll runs [Sweep] and [Prune] on every shard in use, and returns the number
// of reopened streams.
func SweepAll(ctx context.Context, d store.Doer) (opened int, err error) {
	return store.Sweep(ctx, d, func(at store.Partition) (int, error) {
		n, err := Sweep(ctx, d, at)
		_, left := Prune(ctx, d, at, sweepRows)
		return n, errors.Join(err, left)
	})
}

// Sweep reopens the streams of a workspace, or of all on a shard, whose closer's lease has expired, and
// returns their number. It may run on every node at once: a stream that another
// node or an append has reopened is not changed.
func Sweep(ctx context.Context, d store.Doer, at store.Partition) (opened int, err error) {
	all, err := expiredVerb.DoAt(ctx, d, at, sweepLimit)
	for _, e := range all {
		at.Workspace = e.workspace
		done, failed := reopenVerb.DoAt(ctx, d, at, reopenArgs{stream: e.stream, epoch: e.epoch, swept: true})
		opened, err = opened+len(done), errors.Join(err, failed)
	}
	return opened, err
}

// Prune deletes about limit rows of dropped events in a workspace, or in all on a shard, and returns the
// number of deleted events. An index contains only the streams with rows to
// delete, so nothing has to be searched. Progress is recorded after each page: if
// that record is lost, or two nodes prune the same page, the page is deleted
// again, which changes nothing.
func Prune(ctx context.Context, d store.Doer, at store.Partition, limit int64) (deleted int64, err error) {
	all, err := listDeletableVerb.DoAt(ctx, d, at, listDeletableArgs{Grace, sweepLimit})
	for _, l := range all {
		at.Workspace = l.workspace
		for err == nil && l.from < l.to && deleted < limit {
			part := l
			part.to = min(l.to, l.from+page)
			var recorded bool
			recorded, err = prune(ctx, d, at, part)
			if !recorded { // some of its events stay for now
				break
			}
			deleted += part.to - part.from
			l.from = part.to
		}
	}
	return deleted, err
}

func prune(ctx context.Context, d store.Doer, at store.Partition, l leftover) (recorded bool, err error) {
	for _, verb := range []*store.Verb[leftover, []int64]{deleteFeedVerb, deleteEventsVerb} {
		if _, err := verb.DoAt(ctx, d, at, l); err != nil {
			return false, err
		}
	}
	if _, err := deleteSnapshotsVerb.DoAt(ctx, d, at, l.stream); err != nil {
		return false, err
	}
	to, err := markPrunedVerb.DoAt(ctx, d, at, l)
	return len(to) > 0, err
}
