package wake

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

// WorkKind is a kind of work and the name of the reaction, queue or handler it is for. It is comparable. A need is a
// WorkKind that a poller, a sweep or a waiting caller looks for.
type WorkKind struct{ Kind, Name string }

// Kinds of work. The name is that of the reaction, queue or handler, or empty where noted.
const (
	Reaction    = "reaction"
	Operation   = "operation" // of a lifecycle
	Step        = "step"      // of a run
	Batch       = "batch"
	Maintenance = "maintenance" // maintenance of batches; no name
	Cleaning    = "cleaning"    // cleanup after items; no name
	Scope       = "scope"       // changed: see [ScopeChanged]
	// Cancel requests for running work: see [Cancelled].
	CancelledBatch = "cancelled batch"
	CancelledRun   = "cancelled run"
)

// Work of the janitor. The name is empty, except for OldRefusal, where it is the retention
// in milliseconds: refusals have no column with their expiry.
const (
	HeldReaction       = "held reaction" // expired lease, as in those below
	HeldStream         = "held stream"
	HeldOperation      = "held operation"
	HeldStep           = "held step"
	HeldItem           = "held item"
	PausedBatch        = "paused batch"
	UnfinishedReaction = "unfinished reaction" // its registration, change or removal is not complete
	DroppedEvents      = "dropped events"      // of a stream that was truncated or closed, to be deleted
	OldRun             = "old run"
	OldBatch           = "old batch"
	OldScope           = "old scope"
	OldRequest         = "old request"
	OldToken           = "old token"
	OldSession         = "old session"
	OldRefusal         = "old refusal"
)

// ScopeChanged returns the need of a caller that has seen a scope at a version, or -1 if it did not exist, and
// waits for another version.
func ScopeChanged(at store.Partition, kind, id string, version int64) WorkKind {
	name, _ := json.Marshal([]any{at.Shard, at.Workspace, kind, id, version}) // strings and numbers always marshal
	return WorkKind{Scope, string(name)}
}

// Cancelled returns the need of a holder that must stop when its batch or run is cancelled.
func Cancelled(kind string, at store.Partition, id string) WorkKind {
	name, _ := json.Marshal([]any{at.Shard, at.Workspace, id}) // strings and numbers always marshal
	return WorkKind{kind, string(name)}
}

// WorkKinds returns the needs of one kind for several names.
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

// dueWork is a need that has work, by its index in the list, and in how many ms it is due.
type dueWork struct{ n, wait int }

var hasWorkVerb = store.VerbOf[hasWorkArgs](store.Decl{Name: "wake.list_due", Lane: store.Read}, nil,
	store.Each(func(g *dueWork) []any { return []any{&g.n, &g.wait} }))

// HasWork returns which needs have work due, in all workspaces on the given shards. It is one statement,
// however many needs there are. It may report work that a closer query does not find, but never misses any.
func HasWork(ctx context.Context, d store.Doer, shards []int16, needs []WorkKind) (map[WorkKind]bool, error) {
	due, _, err := hasWork(ctx, d, shards, needs, interval)
	return due, err
}

// hasWork also returns when the next lease expires, if that is soon; 0 means none.
func hasWork(ctx context.Context, d store.Doer, shards []int16, needs []WorkKind, soon time.Duration) (due map[WorkKind]bool, next time.Duration, err error) {
	due = make(map[WorkKind]bool)
	if len(shards) == 0 || len(needs) == 0 {
		return due, 0, nil
	}
	list := make([][2]string, len(needs))
	for i, n := range needs {
		list[i] = [2]string{n.Kind, n.Name}
	}
	found, err := hasWorkVerb.DoAt(ctx, d, store.Partition{}, hasWorkArgs{shards, list, soon})
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
