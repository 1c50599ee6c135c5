package lifecycle

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Janitor recovers claims that crashes have left behind: their entities are in a claim status, or under the lease
// of a serialized requester. A module implements Janitor to clean up unfinished work of its bodies.
type Janitor interface {
	// Recover runs in the transaction that returns the entities to revert_to. If it returns an error, the claims are
	// not released, and Recover is called again. It gets only claims whose effects cannot have happened; other
	// operations are resumed or wait for manual resolution.
	Recover(context.Context, holdfast.Tx, []Stuck) error
}

// Coverer is implemented by a [Janitor] that covers only some claim statuses. A Janitor that does not implement Coverer
// covers all claim statuses of its lifecycle.
type Coverer interface{ Covers() []string }

// Stuck is a claim whose lease expired before it was settled.
type Stuck struct {
	Lifecycle, ID         string
	ClaimStatus, RevertTo string // the status to return to is RevertTo; both are equal under a serialized requester's lease
	Operation             string
	Step, Requester       string
	Holder                string
	Since                 time.Time
}

// ModuleJanitor registers janitors for all lifecycles of a module, which their configs name as owning_module. Without
// janitors, it selects the standard janitor. A lifecycle's own janitor takes precedence ([Lifecycle.RecoveredBy]).
// ModuleJanitor also applies to lifecycles that are published through the HTTP API. Pass it to [holdfast.Open], once
// for each module; the order of the parts does not matter.
func ModuleJanitor(module string, by ...Janitor) holdfast.Part {
	all := mapped(by, recovering)
	return &moduleJanitor{engine.PreparedBy(func(e *engine.Engine) error {
		if slices.Contains(by, nil) {
			return noJanitor(module)
		}
		return lifecycleengine.CoverModule(e, module, all...)
	})}
}

func noJanitor(of string) error {
	return fault.New(fault.Validation, "a janitor of %q is nil: pass a janitor, or none for the standard one", of)
}

type moduleJanitor struct{ checked }

// Register does nothing: the janitors were registered before other parts were checked.
func (*moduleJanitor) Register(context.Context, *holdfast.Engine) error { return nil }

// StuckAfter sets how long a manual claim lasts without renewal, from a millisecond to 24 hours, for lifecycles whose
// config does not set stuck_after; 0 means the default of 5 minutes. It also limits the lease of a fired step; see [Lease].
// Pass it to [holdfast.Open].
func StuckAfter(d time.Duration) holdfast.Part { return stuckAfter(d) }

type stuckAfter time.Duration

// Register sets the duration on an engine.
func (d stuckAfter) Register(_ context.Context, e *holdfast.Engine) error {
	if d := time.Duration(d); d != 0 && (d < time.Millisecond || d > 24*time.Hour) {
		return fault.New(fault.Validation, "StuckAfter must be between 1ms and 24h, or 0 for the default, got %s", d)
	}
	lifecycleengine.SetStuckAfter(engine.Of(e), time.Duration(d))
	return engine.Of(e).Once("lifecycle.StuckAfter")
}

// recovering adapts a janitor for the engine.
func recovering(j Janitor) lifecycleengine.Janitor {
	in := lifecycleengine.Janitor{Recover: func(ctx context.Context, tx *store.Tx, all []lifecycleengine.Stuck) error {
		return j.Recover(ctx, tx, mapped(all, func(s lifecycleengine.Stuck) Stuck {
			return Stuck{s.Lifecycle, s.ID, s.Claimed, s.Revert, s.Operation, s.Step, s.Requester, s.Holder, s.Since}
		}))
	}}
	if some, ok := j.(Coverer); ok {
		in.Covers = some.Covers
	}
	return in
}
