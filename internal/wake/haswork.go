package wake

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

// WorkKind is a kind of thing to do, and whose: that of a reaction, a queue or a
// handler. It is comparable.
type WorkKind struct{ Kind, Name string }

// Kinds of work. The name is that of the reaction, the queue or the handler; where
// none is said, there is none.
const (
	Reaction    = "reaction"
	Operation   = "operation" // of a lifecycle
	Step        = "step"      // of a run
	Batch       = "batch"
	Maintenance = "keeping"  // of batches: no name
	Cleaning    = "cleaning" // after items: no name
	Scope       = "scope"    // is not as it was seen: [ScopeChanged]
	// A cancel was requested, of what somebody works for: [Cancelled].
	CancelledBatch = "cancelled batch"
	CancelledRun   = "cancelled run"
)

// What a janitor looks for. None has a name, but for OldAttempt: that is an age in ms.
const (
	HeldReaction       = "held reaction" // the hold has run out, as with the others
	HeldStream         = "held stream"
	HeldOperation      = "held operation"
	HeldStep           = "held step"
	HeldItem           = "held item"
	PausedBatch        = "paused batch"
	UnfinishedReaction = "unfinished reaction"
	DroppedEvents      = "dropped events"
	OldRun             = "old run"
	OldScope           = "old scope"
	OldRequest         = "old request"
	OldToken           = "old token"
	OldAttempt         = "old attempt"
)

// ScopeChanged is the need of one who has seen a scope at a version, or -1 if there was none,
// and waits for another.
func ScopeChanged(at store.Partition, kind, id string, version int64) WorkKind {
	name, _ := json.Marshal([]any{at.Shard, at.Workspace, kind, id, version}) // of texts and numbers, it does not fail
	return WorkKind{Scope, string(name)}
}

// Cancelled is the need of one who works for a batch or a run, and is to stop when it is cancelled.
func Cancelled(kind string, at store.Partition, id string) WorkKind {
	name, _ := json.Marshal([]any{at.Shard, at.Workspace, id}) // of texts and a number, it does not fail
	return WorkKind{kind, string(name)}
}

// WorkKinds are those of one kind, of several names.
func WorkKinds(kind string, names ...string) []WorkKind {
	all := make([]WorkKind, len(names))
	for i, name := range names {
		all[i] = WorkKind{kind, name}
	}
	return all
}

type hasWorkArgs struct {
	Shards []int16       `arg:"shards"`
	Needs  [][2]string   `arg:"needs"`
	soon   time.Duration `arg:"soon"`
}

// dueWork is a need for which there is something, by its place in the list, and in how many ms.
type dueWork struct{ n, wait int }

var hasWorkVerb = store.VerbOf[hasWorkArgs](store.Decl{Name: "wake.glance", Lane: store.Read}, nil,
	store.Each(func(g *dueWork) []any { return []any{&g.n, &g.wait} }))

// HasWork says for which needs there is something due, in all workspaces on some
// shards. It is one statement, however many they are. It may say so where there is
// nothing, to one who looks closer, but never the other way round.
func HasWork(ctx context.Context, d store.Doer, shards []int16, needs []WorkKind) (map[WorkKind]bool, error) {
	due, _, err := hasWork(ctx, d, shards, needs)
	return due, err
}

// hasWork also returns after how long the next lease expires, if that is before the next beat; 0 is none.
func hasWork(ctx context.Context, d store.Doer, shards []int16, needs []WorkKind) (due map[WorkKind]bool, next time.Duration, err error) {
	due = make(map[WorkKind]bool)
	if len(shards) == 0 || len(needs) == 0 {
		return due, 0, nil
	}
	list := make([][2]string, len(needs))
	for i, n := range needs {
		list[i] = [2]string{n.Kind, n.Name}
	}
	found, err := hasWorkVerb.DoAt(ctx, d, store.Partition{}, hasWorkArgs{shards, list, interval})
	for _, g := range found {
		wait := time.Duration(g.wait) * time.Millisecond
		switch {
		case wait <= 0:
			due[needs[g.n]] = true
		case next == 0 || wait < next:
			next = wait
		}
	}
	return due, next, err
}
