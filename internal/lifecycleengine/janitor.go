package lifecycleengine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Janitor is a module's own recovery of what crashes left; lifecycle.Janitor explains it.
type Janitor struct {
	Recover func(context.Context, *store.Tx, []Stuck) error
	Covers  func() []string // claim statuses; nil is all
}

// Stuck is a claim whose holder did not come back.
type Stuck struct {
	Lifecycle, ID   string
	Claimed, Revert string // the statuses that it is put back from and to; the same under a lease
	Operation       string
	Step, Requester string
	Holder          string
	Since           time.Time
}

// covered refuses a lifecycle with a claim that nobody covers.
func (c *Lifecycle) covered() error {
	if c.standard || c.config.Janitor != nil {
		return nil
	}
	var bare []string
	for _, claim := range c.config.Claims() {
		if c.coverer(claim.Into) == nil {
			bare = append(bare, claim.Into)
		}
	}
	if len(bare) == 0 {
		return nil
	}
	return fault.New(fault.Validation,
		"the workflow %q claims %s, and nobody frees that after a crash: the module %q must bring a janitor (Covered), or its config ask for the standard one (janitor: {})",
		c.config.Workflow, strings.Join(bare, ", "), c.config.OwningModule).
		With("workflow", c.config.Workflow).With("states", bare).With("module", c.config.OwningModule)
}

// coverer returns the module's own janitor of a claim status, or nil.
func (c *Lifecycle) coverer(into string) *Janitor {
	for i, j := range c.janitors {
		if j.Covers == nil || slices.Contains(j.Covers(), into) {
			return &c.janitors[i]
		}
	}
	return nil
}

// free frees a claim whose hold has run out.
func (s *site) free(ctx context.Context, l entities.Lapsed) (bool, error) {
	ctx = store.InWorkspace(ctx, l.Workspace)
	s, step, err := s.planned(ctx, l.Plan, l.Step, l.Requester, l.Revert)
	if err != nil {
		return false, err
	}
	safety, unknown := lifecycles.Undeclared, effects.Hold
	if step != nil {
		safety, unknown = s.safety(step, l.Requester), s.unknown(step, l.Requester)
	}
	note, _ := json.Marshal(map[string]any{"outcomeUnknown": safety == lifecycles.Undeclared && l.Step != ""})
	var also func(context.Context, *store.Tx) error
	if j := s.coverer(l.Status); j != nil {
		also = func(ctx context.Context, tx *store.Tx) error {
			return caught(func() error {
				return j.Recover(ctx, tx, []Stuck{{Lifecycle: l.Lifecycle, ID: l.ID, Claimed: l.Status, Revert: l.Revert, Operation: l.Operation,
					Step: l.Step, Requester: l.Requester, Holder: l.Holder, Since: l.ClaimedAt}})
			})
		}
	}
	resume := safety != lifecycles.Opaque || unknown != effects.Hold
	if l.Begun > 0 { // what the body was when it began counts, and not what it is declared as by now
		journal, err := effects.List(ctx, s.engine, l.Place, l.Operation)
		if err != nil {
			return false, err
		}
		resume = resume && !slices.ContainsFunc(journal, func(x effects.Entry) bool {
			return x.Name == effects.Body && x.State == effects.Begun && x.Policy == effects.Hold
		})
	}
	e, freed, err := s.ground.recover(ctx, l, s.heldIn(l), resume, hold.MaxDeaths, note, also)
	if freed {
		s.engine.Log().Warn("a claim was left by its holder", "lifecycle", l.Lifecycle, "entity", l.ID, "step", l.Step, "holder", l.Holder,
			"operation", l.Operation, "phase", e.Claim.Phase, "status", e.Status)
	}
	return freed, err
}

// giveUp withdraws an operation that no worker came for.
func (s *site) giveUp(ctx context.Context, l entities.Lapsed) (bool, error) {
	bound := hold.Timeout
	if l.Plan != nil {
		bound = time.Duration(l.Plan.Timeout) * time.Millisecond
	}
	e, done, err := s.ground.withdraw(store.InWorkspace(ctx, l.Workspace), l.Place, entities.WithdrawArgs{Ticket: l.Ticket, Outcome: "timeout",
		Message: "no worker came for it within " + bound.String(), Claim: s.heldIn(l)})
	if done {
		s.engine.Log().Warn("no worker came for an operation", "lifecycle", l.Lifecycle, "entity", l.ID, "step", l.Step, "operation", l.Operation,
			"after", bound, "phase", e.Claim.Phase, "status", e.Status)
	}
	return done, err
}

// heldIn is the status that an operation is held in: a claim's, or a lease's, unless
// somebody has set another under it.
func (s *site) heldIn(l entities.Lapsed) string {
	if l.Plan != nil {
		return l.Plan.Into
	}
	if l.Status == l.Revert {
		return l.Status
	}
	for _, c := range s.config.Claims() {
		if c.Into == l.Status {
			return l.Status
		}
	}
	return ""
}

// Sweep is one round of the janitor, in this goroutine. It is for tests.
func Sweep(ctx context.Context, e *engine.Engine) error {
	b := boardOf(e)
	if b.door != nil {
		if err := b.door.look(ctx); err != nil {
			return err
		}
	}
	_, err := b.expire(ctx, false)
	if err == nil {
		_, err = b.adopt(ctx)
	}
	return err
}
