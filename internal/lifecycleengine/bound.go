package lifecycleengine

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// bound is a lifecycle that belongs to an engine.
type bound struct {
	*Lifecycle
	engine   *engine.Engine
	registry *registry
	store    entityStore
	afters   []reactions.Definition // the reactions that deliver its after-effects

	known       sync.Map      // workspaces in which the lifecycle is registered
	registering chan struct{} // holds one element while a goroutine registers the lifecycle
}

// lease returns the lease duration for the claim of a fired step.
func (s *bound) lease(requested time.Duration) time.Duration {
	if requested > 0 {
		return requested
	}
	return min(lease.DefaultDuration, s.stuckAfter())
}

// stuckAfter returns how long an unrenewed claim is held.
func (s *bound) stuckAfter() time.Duration {
	if j := s.config.Janitor; j != nil && j.StuckAfter > 0 {
		return j.StuckAfter
	}
	return cmp.Or(s.registry.stuckAfter, stuckAfter)
}

// stuckAfter is the default for a config's stuck_after.
const stuckAfter = 5 * time.Minute

// claimed returns an entity for the holder of its claim. If its row in a user table was deleted, it returns what Holdfast stores
// beside the row, so that the holder can still end the claim.
func (s *bound) claimed(ctx context.Context, id string) (entities.Entity, error) {
	e, err := s.store.get(ctx, id)
	if s.config.Table != nil && fault.CodeOf(err) == fault.NotFound {
		return entities.Get(ctx, s.engine, s.config.Workflow, id)
	}
	return e, err
}

// adoptOne takes a lease on an entity that is in a claim status without a claim, and reports whether it did. It does nothing if the
// config in force defines the status differently: this node may still have an older config, in which
// case the entity is where it should be.
func (s *bound) adoptOne(ctx context.Context, d store.Doer, at store.Partition, id, status string) (bool, error) {
	for _, c := range s.config.Claims() {
		if c.Into != status {
			continue
		}
		yes, err := entities.Adopt(ctx, d, at, s.config.Workflow, id, entities.Choice{Into: c.Into, Revert: c.Revert}, adoptedHolder, s.stuckAfter())
		if yes {
			s.engine.Log().Warn("entity is in a claim status without a claim; its status will be reverted", "workspace", at.Workspace, "lifecycle", s.config.Workflow,
				"entity", id, "status", status, "after", s.stuckAfter())
		}
		if fault.CodeOf(err) == fault.Concurrency { // the config in force differs in this status
			return false, nil
		}
		return yes, err
	}
	return false, nil
}

// adoptedHolder is the stored holder of an entity that was found in a claim status without a claim.
const adoptedHolder = "none: found in this status without a claim"

// stepUnavailable returns the error for a step that cannot run: the entity is claimed, or the step does not
// start at its status.
func stepUnavailable(e entities.Entity, key string) error {
	if e.Claim.Phase != entities.Free {
		return entities.ClaimFailed(e)
	}
	return fault.New(fault.InvalidTransition, "%s %q has status %q, in which step %q cannot be fired", e.Lifecycle, e.ID, e.Status, key).
		With("status", e.Status).With("version", e.Version)
}
