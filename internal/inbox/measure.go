package inbox

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/nodes"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Backlog is what is left to do in all workspaces, for metrics.
type Backlog struct {
	// Entries counts the entries of the inbox, up to [CountCap] of each kind and shard: those of [Counted]. What retention
	// should have deleted counts once for each shard and kind of row. Work that nobody serves counts once for each shard and
	// queue, handler or reaction, whichever workspace it is in.
	Entries map[Kind]int64
	// Oldest is how long the oldest work has been due and not taken: that of [DueKinds].
	Oldest map[string]time.Duration
}

// Counted are the kinds of entries that [Measure] counts. What nodes report about themselves is not among them.
var Counted = []Kind{UncertainOperation, UncertainStep, BlockedStream, RefusedWebhook, FailedRun, PendingApproval, OverdueSignal, PausedBatch,
	FailingTeardown, ExpiredLease, ClosingStream, UnservedWork, UnservedVersion, HeldUpRetention}

// DueKinds are the kinds of work whose age [Measure] returns. A timer is a step that the engine executes itself. The feed is the
// numbering of events.
var DueKinds = []string{wake.Operation, wake.Step, Timer, Item, "reaction", "afterEffect", "webhook", Feed}

// Kinds of work that are no kinds of [wake.WorkKind].
const (
	Timer = "timer"
	Item  = "item"
	Feed  = "feed"
)

type countEntriesArgs struct {
	patience      time.Duration `arg:"patience"`
	deletedWithin time.Duration `arg:"deleted_within"`
	limit         int           `arg:"limit"`
}

type oldestDue struct {
	kind, name, workspace string
	age                   int64
}

var (
	countEntriesVerb = store.VerbOf[countEntriesArgs](store.Decl{Name: "inbox.count_entries", Lane: store.Read}, nil, store.Each(scanNamed))
	oldestDueVerb    = store.VerbOf[struct{}](store.Decl{Name: "inbox.list_oldest_due", Lane: store.Read}, nil,
		store.Each(func(o *oldestDue) []any { return []any{&o.kind, &o.name, &o.workspace, &o.age} }))
)

// Measure returns what is left to do in all workspaces on some shards, if these are the nodes. It costs two statements for each
// shard, which read indexes of live rows, however many workspaces there are.
func Measure(ctx context.Context, d store.Doer, shards []int16, known []nodes.Node) (Backlog, error) {
	b := Backlog{Entries: make(map[Kind]int64), Oldest: make(map[string]time.Duration)}
	for _, k := range Counted {
		b.Entries[k] = 0
	}
	for _, k := range DueKinds {
		b.Oldest[k] = 0
	}
	for _, shard := range shards {
		at := store.Partition{Shard: shard}
		counts, err := countEntriesVerb.DoAt(ctx, d, at, countEntriesArgs{Patience, DeletedWithin, CountCap})
		if err != nil {
			return b, err
		}
		for _, c := range counts {
			b.Entries[Kind(c.name)] += c.n
		}
		due, err := oldestDueVerb.DoAt(ctx, d, at, struct{}{})
		if err != nil {
			return b, err
		}
		for _, o := range due {
			kind := o.dueKind()
			b.Oldest[kind] = max(b.Oldest[kind], time.Duration(o.age)*time.Millisecond)
		}
		for _, kind := range unservedOf(due, known) {
			b.Entries[kind]++
		}
	}
	return b, nil
}

// OldestDue returns how long the oldest work on some shards, in all workspaces, has been due and not taken; 0 if none is due.
func OldestDue(ctx context.Context, d store.Doer, shards []int16) (oldest time.Duration, err error) {
	for _, shard := range shards {
		due, err := oldestDueVerb.DoAt(ctx, d, store.Partition{Shard: shard}, struct{}{})
		if err != nil {
			return 0, err
		}
		for _, o := range due {
			oldest = max(oldest, time.Duration(o.age)*time.Millisecond)
		}
	}
	return oldest, nil
}

// dueKind returns the kind of work, one of [DueKinds].
func (o oldestDue) dueKind() string {
	switch {
	case o.kind == wake.Step && o.name == "":
		return Timer
	case o.kind != wake.Reaction:
		return o.kind
	case reactions.Reserved(o.name) && reactions.Kind(o.name) == "":
		return Feed
	}
	return reactions.Kind(o.name)
}

// unservedOf returns the kinds of entries for work that nobody serves. It looks at the oldest work of each name. If that is served
// in some workspaces only, the oldest is soon in one of the others.
func unservedOf(due []oldestDue, known []nodes.Node) (all []Kind) {
	seen := make(map[string]bool)
	for _, o := range due {
		if o.kind == Item {
			o.kind = wake.Batch
		}
		e := Entry{Kind: UnservedWork, Facts: [5]string{o.kind, o.name}}
		e.unservedWork()
		if time.Duration(o.age)*time.Millisecond < Patience || o.dueKind() == Feed || serves(known, o.workspace)[nodes.Served{Kind: o.kind, Name: o.name}] || seen[e.Subject] {
			continue
		}
		seen[e.Subject] = true
		all = append(all, e.Kind)
	}
	return all
}
