package lifecycleengine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
)

// An operation ends according to the step that it was claimed with, not according to the config
// in force at its end: that config may lack the step or lead elsewhere, but the work is done.
// The claim therefore stores the step as a plan, on the entity's row. An operation that was
// claimed by a version of Holdfast without plans follows the config.

// planOf returns the plan for an operation of a step.
func planOf(step *lifecycleconfig.Step, requester, operation, into string) *entities.Plan {
	p := &entities.Plan{Operation: operation, Into: into, After: afterOf(step, requester), Timeout: timeoutOf(step).Milliseconds()}
	p.Success, _ = step.Success.For(requester)
	p.Failed, _ = step.Failed.For(requester)
	p.Action, _ = step.Action.For(requester)
	p.Validation, _ = step.Validation.For(requester)
	return p
}

// planned returns the step of an operation as it was claimed, or nil if there is none. It also
// returns the lifecycle with the handlers of the step, including those that the config no longer names.
func (s *bound) planned(ctx context.Context, p *entities.Plan, key, requester, revert string) (*bound, *lifecycleconfig.Step, error) {
	now := new(lifecycleconfig.Step)
	steps, err := s.offered(key, requester)
	if err == nil {
		now = stepAt(steps, revert)
	}
	if p == nil || p.Success == "" { // claimed by an earlier version of Holdfast, or adopted without a step
		if err != nil {
			now = nil
		}
		return s, now, nil
	}
	if now == nil {
		now = new(lifecycleconfig.Step)
	}
	s, err = s.withHandlers(ctx, map[string]string{"action": p.Action, "validation": p.Validation})
	validation := s.currentHandler(p.Validation, now.Validation, requester)
	h := s.handlers[p.Validation]
	if name, _ := now.Validation.For(requester); now.Key != "" && name == "" && (h == nil || h.missing) { // the handler is gone, and the step no longer has a validation
		validation = lifecycleconfig.Per[string]{}
	}
	step := &lifecycleconfig.Step{Key: key, Status: []string{revert}, Timeout: time.Duration(p.Timeout) * time.Millisecond, Success: forAll(p.Success), Failed: forAll(p.Failed),
		AfterEffect: forAll(p.After), Action: s.currentHandler(p.Action, now.Action, requester), Validation: validation}
	if p.Into != revert {
		step.Claim = lifecycleconfig.Per[lifecycleconfig.Claim]{All: &lifecycleconfig.Claim{Into: p.Into, Revert: revert}}
	}
	return s, step, err
}

// forAll returns a field with the same value for every requester; "" means none.
func forAll(v string) lifecycleconfig.Per[string] {
	if v == "" {
		return lifecycleconfig.Per[string]{}
	}
	return lifecycleconfig.Per[string]{All: &v}
}

// currentHandler returns the handler that a plan names or, if that handler no longer exists, the one
// that the config has in its place.
func (s *bound) currentHandler(name string, now lifecycleconfig.Per[string], requester string) lifecycleconfig.Per[string] {
	if h := s.handlers[name]; name != "" && (h == nil || h.missing) {
		if other, ok := now.For(requester); ok && s.handlers[other] != nil {
			name = other
		}
	}
	return forAll(name)
}

// absentHandler returns the name of a handler that a step needs and that the lifecycle does not have, or "". It finds only
// handlers of a program: a published lifecycle has an entry for each name, and the body of a handler marked missing returns
// a non-retryable error.
func (s *bound) absentHandler(step *lifecycleconfig.Step, requester string) string {
	for _, p := range []lifecycleconfig.Per[string]{step.Action, step.Validation} {
		if name, _ := p.For(requester); name != "" && s.handlers[name] == nil {
			return name
		}
	}
	return ""
}

// withHandlers returns the lifecycle with the given handlers, by kind. A published lifecycle is built
// with handlers that its config no longer names; the handlers of a program are fixed.
func (s *bound) withHandlers(ctx context.Context, names map[string]string) (*bound, error) {
	more := make(map[string][]string)
	for kind, name := range names {
		if name != "" && s.handlers[name] == nil {
			more[kind] = append(more[kind], name)
		}
	}
	if s.bound == nil || len(more) == 0 { // s.bound is set only for a published lifecycle
		return s, nil
	}
	built, err := s.registry.published.build(ctx, []byte(s.text), more)
	if err != nil {
		return s, err
	}
	return built, nil
}

// plannedStep returns the step of an operation as it was claimed. For an operation without a plan, it returns the step of
// the config whose operations are held in the entity's current status, or nil.
func (o *Operation) plannedStep(ctx context.Context, s *bound) (*lifecycleconfig.Step, error) {
	if o.plan != nil {
		_, step, err := s.planned(ctx, o.plan, o.Step, o.Requester, o.revert)
		return step, err
	}
	steps, _ := s.offered(o.Step, o.Requester) // the config may no longer have it
	for _, step := range steps {
		if heldAt(step, o.Status, o.Requester) {
			return step, nil
		}
	}
	return nil, nil
}
