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

// bound is a lifecycle on an engine.
type bound struct {
	*Lifecycle
	engine   *engine.Engine
	registry *registry
	store    entityStore
	afters   []reactions.Definition

	known sync.Map      // workspaces that the lifecycle is registered in
	turn  chan struct{} // of who registers it
}

// lease is how long a claim of a fired step is held without a renewal.
func (s *bound) lease(asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	return min(lease.DefaultDuration, s.stuckAfter())
}

// stuckAfter is how long a claim is held that nobody renews.
func (s *bound) stuckAfter() time.Duration {
	if j := s.config.Janitor; j != nil && j.StuckAfter > 0 {
		return j.StuckAfter
	}
	return cmp.Or(s.engine.StuckAfter(), stuckAfter)
}

// stuckAfter is the default of a config's stuck_after.
const stuckAfter = 5 * time.Minute

// adoptOne holds an entity that is in a claim status by mistake, unless the config in force has it for
// another: this node may be of before, and who stands there is where it should be.
func (s *bound) adoptOne(ctx context.Context, d store.Doer, at store.Partition, id, status string) error {
	for _, c := range s.config.Claims() {
		if c.Into != status {
			continue
		}
		yes, err := entities.Adopt(ctx, d, at, s.config.Workflow, id, entities.Choice{Into: c.Into, Revert: c.Revert}, found, s.stuckAfter())
		if yes {
			s.engine.Log().Warn("an entity is in a claim status although nobody claimed it: it is put back later", "lifecycle", s.config.Workflow,
				"entity", id, "status", status, "after", s.stuckAfter())
		}
		if fault.CodeOf(err) == fault.Concurrency {
			return nil
		}
		return err
	}
	return nil
}

// found is the holder of what was found in a claim status.
const found = "nobody: it was found in this status"

// notHere is the error of a step that cannot be done: the entity is held, or at a status
// where the step is not offered.
func notHere(e entities.Entity, key string) error {
	if e.Claim.Phase != entities.Free {
		return entities.ClaimFailed(e)
	}
	return fault.New(fault.InvalidTransition, "the %s %q is %q, where %q cannot be done", e.Lifecycle, e.ID, e.Status, key).
		With("status", e.Status).With("version", e.Version)
}
