package lifecycleengine

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
)

// offered returns the steps with a key that a requester may fire.
func (c *Lifecycle) offered(key, requester string) ([]*lifecycleconfig.Step, error) {
	var steps []*lifecycleconfig.Step
	known := false
	for i := range c.config.Steps {
		s := &c.config.Steps[i]
		if s.Key != key {
			continue
		}
		known = true
		if s.Offers(requester) {
			steps = append(steps, s)
		}
	}
	switch {
	case !known:
		return nil, fault.New(fault.NotFound, "lifecycle %q has no step %q", c.config.Workflow, key)
	case len(steps) == 0:
		return nil, fault.New(fault.Forbidden, "step %q of lifecycle %q is not available to requester %q", key, c.config.Workflow, requester)
	}
	return steps, nil
}

// stepAt returns the first of the steps that starts at a status, or nil.
func stepAt(steps []*lifecycleconfig.Step, status string) *lifecycleconfig.Step {
	for _, s := range steps {
		if slices.Contains(s.Status, status) {
			return s
		}
	}
	return nil
}

// handler returns the handler that a step names for a requester, or nil.
func (c *Lifecycle) handler(p lifecycleconfig.Per[string], requester string) *handler {
	name, _ := p.For(requester)
	return c.handlers[name]
}

// acts reports whether a step runs code for a requester.
func (c *Lifecycle) acts(s *lifecycleconfig.Step, requester string) bool {
	return c.handler(s.Action, requester) != nil || c.handler(s.Validation, requester) != nil
}

// claimAt returns the claim that a step takes for a requester at a status. The code of a
// serialized requester runs under a lease: a claim that keeps the status and excludes all
// others, as any claim does. A config without claims has no one to exclude and perhaps no
// janitor, so no lease is taken.
func (c *Lifecycle) claimAt(s *lifecycleconfig.Step, status, requester string) (entities.Choice, bool) {
	if claim, ok := s.Claim.For(requester); ok {
		return entities.Choice{Into: claim.Into, Revert: claim.Revert}, true
	}
	leased := c.acts(s, requester) && c.config.Serialized(s.Key, status, requester) && len(c.config.Claims()) > 0
	return entities.Choice{Into: status, Revert: status}, leased
}

// heldAt reports whether operations of a step are held at a status: the claim status or,
// for a claim that keeps the status, a status where the step starts.
func heldAt(s *lifecycleconfig.Step, status, requester string) bool {
	if c, claimed := s.Claim.For(requester); claimed {
		return c.Into == status
	}
	return slices.Contains(s.Status, status)
}

// claimOf returns the status in which an operation of a step is held: the claim status or, for
// a claim that keeps the status, the status where the step starts.
func claimOf(step *lifecycleconfig.Step, c entities.Claim) string {
	if claim, claimed := step.Claim.For(c.Requester); claimed {
		return claim.Into
	}
	return c.Revert
}

// choices returns the claims of steps by the status that they leave. ok is false if the
// requester takes no claim at one of them.
func (c *Lifecycle) choices(steps []*lifecycleconfig.Step, requester string) (all map[string]entities.Choice, ok bool) {
	all = make(map[string]entities.Choice)
	for _, s := range steps {
		for _, status := range s.Status {
			if all[status], ok = c.claimAt(s, status, requester); !ok {
				return nil, false
			}
		}
	}
	return all, true
}

// afterOf returns the name of a step's after-effect, or "".
func afterOf(step *lifecycleconfig.Step, requester string) string {
	name, _ := step.AfterEffect.For(requester)
	return name
}

func timeoutOf(s *lifecycleconfig.Step) time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return lease.Timeout
}

// safety returns the declared safety of a step's body.
func (c *Lifecycle) safety(step *lifecycleconfig.Step, as string) lifecycleconfig.Safety {
	if h := c.handler(step.Action, as); h != nil {
		return h.Safety
	}
	if name, _ := step.Action.For(as); name != "" { // the handler no longer exists
		return lifecycleconfig.Undeclared
	}
	return lifecycleconfig.Transactional // the step has no body
}

// opaque reports whether the body of a step as a whole is one effect.
func (c *Lifecycle) opaque(step *lifecycleconfig.Step, as string) bool {
	return c.safety(step, as) == lifecycleconfig.Opaque
}

// unknown returns the policy for an opaque body with an unknown outcome.
func (c *Lifecycle) unknown(step *lifecycleconfig.Step, as string) effects.Policy {
	if h := c.handler(step.Action, as); h != nil && h.unknown != "" {
		return h.unknown
	}
	return effects.Hold
}

// The stages of an operation that workers execute.
const (
	stageValidation = "validation"
	stageAction     = "action"
	// kindProbe is the kind of a task in the action stage whose outcome is unknown: the
	// worker must first find out whether it happened.
	kindProbe = "probe"
)

// worker returns the handler that a step names for a requester if workers serve it.
func (c *Lifecycle) worker(p lifecycleconfig.Per[string], requester string) *handler {
	if h := c.handler(p, requester); h != nil && h.queue != "" {
		return h
	}
	return nil
}

// usesWorkers reports whether a worker runs the validation or the body of a step.
func (c *Lifecycle) usesWorkers(step *lifecycleconfig.Step, as string) bool {
	return c.worker(step.Action, as) != nil || c.worker(step.Validation, as) != nil
}
