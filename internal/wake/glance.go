package wake

import (
	"context"
	"encoding/json"

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
)

// What a janitor looks for. None has a name, but for OldAttempt: that is an age in ms.
const (
	HeldReaction       = "held reaction" // the hold has run out, as with the others
	HeldStream         = "held stream"
	HeldOperation      = "held operation"
	HeldStep           = "held step"
	LiveBatch          = "live batch" // with items in hand, or paused
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

// Needs are those of one kind, of several names.
func Needs(kind string, names ...string) []Need {
	all := make([]Need, len(names))
	for i, name := range names {
		all[i] = Need{kind, name}
	}
	return all
}

type glanceArgs struct{ shards, needs string }

var glanceVerb = store.NewVerb(store.Decl{Name: "wake.glance", Lane: store.Read}, nil,
	func(a glanceArgs, args *store.Args) { args.Text(a.shards); args.Text(a.needs) },
	func(all *[]int, row store.Row) error {
		var n int
		err := row.Scan(&n)
		*all = append(*all, n)
		return err
	})

// Glance says for which needs there is something due, in all workspaces on some
// shards. It is one statement, however many they are. It may say so where there is
// nothing, to one who looks closer, but never the other way round.
func Glance(ctx context.Context, d store.Doer, shards []int16, needs []Need) (map[Need]bool, error) {
	due := make(map[Need]bool)
	if len(shards) == 0 || len(needs) == 0 {
		return due, nil
	}
	list := make([][2]string, len(needs))
	for i, n := range needs {
		list[i] = [2]string{n.Kind, n.Name}
	}
	args, err := glanceTexts(shards, list)
	if err != nil {
		return nil, err
	}
	found, err := glanceVerb.DoAt(ctx, d, store.Place{}, args)
	for _, n := range found {
		due[needs[n]] = true
	}
	return due, err
}

func glanceTexts(shards []int16, list [][2]string) (a glanceArgs, err error) {
	text, err := json.Marshal(shards)
	if err != nil {
		return a, err
	}
	a.shards = string(text)
	text, err = json.Marshal(list)
	a.needs = string(text)
	return a, err
}
