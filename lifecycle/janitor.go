package lifecycle

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Janitor is a module's own recovery of what crashes left in a claim status, or under a
// serialized requester's lease. It is called in the transaction that puts the entity back
// to revert_to, and may clean up what the body left half done there; its error keeps the
// claim held, and it is called again. It sees only claims without effects: those with
// effects are resumed, or wait for a person.
type Janitor interface {
	Recover(context.Context, holdfast.Tx, []Stuck) error
}

// Coverer is a janitor that covers only some claim statuses; one that is not covers
// all of its lifecycle's.
type Coverer interface{ Covers() []string }

// Stuck is a claim whose holder did not come back.
type Stuck struct {
	Lifecycle, ID   string
	Claimed, Revert string // the statuses that it is put back from and to; the same under a lease
	Operation       string
	Step, Requester string
	Holder          string
	Since           time.Time
}

// recovering is a janitor as the runtime knows it.
func recovering(j Janitor) lifecycleengine.Janitor {
	in := lifecycleengine.Janitor{Recover: func(ctx context.Context, tx *store.Tx, all []lifecycleengine.Stuck) error {
		return j.Recover(ctx, tx, mapped(all, func(s lifecycleengine.Stuck) Stuck { return Stuck(s) }))
	}}
	if some, ok := j.(Coverer); ok {
		in.Covers = some.Covers
	}
	return in
}
