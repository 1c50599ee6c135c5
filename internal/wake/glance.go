package wake

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Need is a kind of thing to do, and whose: that of a reaction, a queue or a
// handler. It is comparable.
type Need struct{ Kind, Name string }

// Kinds of work. The name is that of the reaction, the queue or the handler; where
// none is said, there is none.
const (
	Reaction  = "reaction"
	Operation = "operation" // of a lifecycle
	Step      = "step"      // of a run
	Batch     = "batch"
	Keeping   = "keeping"  // of batches: no name
	Cleaning  = "cleaning" // after items: no name
	Scope     = "scope"    // is not as it was seen: [SeenScope]
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

// SeenScope is the need of one who has seen a scope at a version, or -1 if there was none,
// and waits for another.
func SeenScope(at store.Place, kind, id string, version int64) Need {
	name, _ := json.Marshal([]any{at.Shard, at.Workspace, kind, id, version}) // of texts and numbers, it does not fail
	return Need{Scope, string(name)}
}

// Cancelled is the need of one who works for a batch or a run, and is to stop when it is cancelled.
func Cancelled(kind string, at store.Place, id string) Need {
	name, _ := json.Marshal([]any{at.Shard, at.Workspace, id}) // of texts and a number, it does not fail
	return Need{kind, string(name)}
}

// Needs are those of one kind, of several names.
func Needs(kind string, names ...string) []Need {
	all := make([]Need, len(names))
	for i, name := range names {
		all[i] = Need{kind, name}
	}
	return all
}

type glanceArgs struct {
	Shards []int16       `arg:"shards"`
	Needs  [][2]string   `arg:"needs"`
	soon   time.Duration `arg:"soon"`
}

// glanced is a need for which there is something, by its place in the list, and in how many ms.
type glanced struct{ n, wait int }

var glanceVerb = store.VerbOf[glanceArgs](store.Decl{Name: "wake.glance", Lane: store.Read}, nil,
	store.Each(func(g *glanced) []any { return []any{&g.n, &g.wait} }))

// Glance says for which needs there is something due, in all workspaces on some
// shards. It is one statement, however many they are. It may say so where there is
// nothing, to one who looks closer, but never the other way round.
func Glance(ctx context.Context, d store.Doer, shards []int16, needs []Need) (map[Need]bool, error) {
	due, _, err := glance(ctx, d, shards, needs)
	return due, err
}

// glance also returns after how long the next lease expires, if that is before the next beat; 0 is none.
func glance(ctx context.Context, d store.Doer, shards []int16, needs []Need) (due map[Need]bool, next time.Duration, err error) {
	due = make(map[Need]bool)
	if len(shards) == 0 || len(needs) == 0 {
		return due, 0, nil
	}
	list := make([][2]string, len(needs))
	for i, n := range needs {
		list[i] = [2]string{n.Kind, n.Name}
	}
	found, err := glanceVerb.DoAt(ctx, d, store.Place{}, glanceArgs{shards, list, beat})
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
