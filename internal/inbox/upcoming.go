package inbox

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Upcoming is work of a workspace that is due, or becomes due as time passes.
type Upcoming struct {
	wake.WorkKind
	In time.Duration // 0 or less: it is due
}

type upcomingRow struct {
	kind, name string
	in         int64
}

var upcomingVerb = store.VerbOf[listArgs](store.Decl{Name: "inbox.list_upcoming", Lane: store.Read}, nil,
	store.Each(func(u *upcomingRow) []any { return []any{&u.kind, &u.name, &u.in} }))

// ListUpcoming returns the work of a workspace that is due or becomes due, the earliest first, at most [Cap]. It is for
// tests that step the loops: it reads every live row of the workspace.
func ListUpcoming(ctx context.Context, d store.Doer, at store.Partition) ([]Upcoming, error) {
	rows, err := upcomingVerb.DoAt(ctx, d, at, listArgs{Cap})
	all := make([]Upcoming, len(rows))
	for i, r := range rows {
		all[i] = Upcoming{wake.WorkKind{Kind: r.kind, Name: r.name}, time.Duration(r.in) * time.Millisecond}
	}
	return all, err
}

// Waits reports whether it is no work, but waits for somebody.
func (u Upcoming) Waits() bool { return u.Kind == waitingSignal || u.Kind == pausedRun }

// Waits for somebody that the inbox does not list: they are part of the normal course of a run.
const (
	waitingSignal = "waiting signal"
	pausedRun     = "paused run"
)

// heldRequest is a lease on an idempotency key: nobody serves it, and it ends by itself.
const heldRequest = "held request"

// EndsByItself reports whether it is no work, and passes with time.
func (u Upcoming) EndsByItself() bool { return u.Kind == heldRequest }

// Entry returns the work as an entry: a wait, or due work that nothing serves.
func (u Upcoming) Entry(now time.Time) Entry {
	e := Entry{Kind: UnservedWork, Place: u.Kind + "/" + u.Name, Facts: [5]string{u.Kind, u.Name}}
	switch u.Kind {
	case waitingSignal:
		e.Kind, e.Subject, e.Reason = "waitingSignal", u.Name, "The run waits for a signal at this step."
		if u.In > 0 {
			e.Deadline = now.Add(u.In)
		}
	case pausedRun:
		e.Kind, e.Subject, e.Reason = "pausedRun", u.Name, "The run is paused."
	case wake.Operation, wake.Step, wake.Batch, wake.Reaction:
		e.unservedWork()
	case wake.Cleaning:
		e.Subject, e.Reason = "items to undo", "Items of batches are due to be undone or cleaned up, and neither a node nor a worker serves their handler."
	default:
		e.Subject, e.Reason = u.Kind, "This is due, and no part of the engine serves it: "+u.String()+"."
	}
	return e
}
