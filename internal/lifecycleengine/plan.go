package lifecycleengine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
)

// An operation ends by the step that it was taken with, and not by the config that is in
// force when it ends: that may have no such step any more, or lead elsewhere, and the work is
// done. So the claim stores the step as a plan, on the entity's row. An operation that was
// taken before there were plans goes by the config.

// planOf is what an operation of a step is taken with.
func planOf(step *lifecycleconfig.Step, requester, operation, into string) *entities.Plan {
	p := &entities.Plan{Operation: operation, Into: into, After: afterOf(step, requester), Timeout: timeoutOf(step).Milliseconds()}
	p.Success, _ = step.Success.For(requester)
	p.Failed, _ = step.Failed.For(requester)
	p.Action, _ = step.Action.For(requester)
	p.Validation, _ = step.Validation.For(requester)
	return p
}

// planned returns the step of an operation as it was taken, or nil where there is none, and the
// lifecycle with the handlers of the step, also where the config does not name them any more.
func (s *bound) planned(ctx context.Context, p *entities.Plan, key, requester, revert string) (*bound, *lifecycleconfig.Step, error) {
	now := new(lifecycleconfig.Step)
	steps, err := s.offered(key, requester)
	if err == nil {
		now = stepAt(steps, revert)
	}
	if p == nil || p.Success == "" { // of an earlier program, or of nobody: it was found in its status
		if err != nil {
			now = nil
		}
		return s, now, nil
	}
	if now == nil {
		now = new(lifecycleconfig.Step)
	}
	s, err = s.knowing(ctx, map[string]string{"action": p.Action, "validation": p.Validation})
	validation := s.standing(p.Validation, now.Validation, requester)
	h := s.handlers[p.Validation]
	if name, _ := now.Validation.For(requester); now.Key != "" && name == "" && (h == nil || h.missing) { // it is gone, and the step goes without
		validation = lifecycleconfig.Per[string]{}
	}
	step := &lifecycleconfig.Step{Key: key, Status: []string{revert}, Timeout: time.Duration(p.Timeout) * time.Millisecond, Success: each(p.Success), Failed: each(p.Failed),
		AfterEffect: each(p.After), Action: s.standing(p.Action, now.Action, requester), Validation: validation}
	if p.Into != revert {
		step.Claim = lifecycleconfig.Per[lifecycleconfig.Claim]{All: &lifecycleconfig.Claim{Into: p.Into, Revert: revert}}
	}
	return s, step, err
}

// each is a field that is the same for every requester; "" is none.
func each(v string) lifecycleconfig.Per[string] {
	if v == "" {
		return lifecycleconfig.Per[string]{}
	}
	return lifecycleconfig.Per[string]{All: &v}
}

// standing is the handler that a plan names or, where there is none of that name any more, the
// one that the config has in its place.
func (s *bound) standing(name string, now lifecycleconfig.Per[string], requester string) lifecycleconfig.Per[string] {
	if h := s.handlers[name]; name != "" && (h == nil || h.missing) {
		if other, ok := now.For(requester); ok && s.handlers[other] != nil {
			name = other
		}
	}
	return each(name)
}

// lacks names a handler of a step that there is not any more, or "".
func (s *bound) lacks(step *lifecycleconfig.Step, requester string) string {
	for _, p := range []lifecycleconfig.Per[string]{step.Action, step.Validation} {
		if name, _ := p.For(requester); name != "" && s.handlers[name] == nil {
			return name
		}
	}
	return ""
}

// knowing is the lifecycle with some handlers, by kind. One that was put is built with those
// that its config does not name any more; a program has what it has.
func (s *bound) knowing(ctx context.Context, names map[string]string) (*bound, error) {
	more := make(map[string][]string)
	for kind, name := range names {
		if name != "" && s.handlers[name] == nil {
			more[kind] = append(more[kind], name)
		}
	}
	if s.bound == nil || len(more) == 0 {
		return s, nil
	}
	built, err := s.registry.published.build(ctx, []byte(s.text), more)
	if err != nil {
		return s, err
	}
	return built, nil
}

// plannedStep returns the step of an operation as it was taken, or nil.
func (o *Operation) plannedStep(ctx context.Context, s *bound) (*lifecycleconfig.Step, error) {
	if o.plan != nil {
		_, step, err := s.planned(ctx, o.plan, o.Step, o.Requester, o.revert)
		return step, err
	}
	steps, _ := s.offered(o.Step, o.Requester) // the config may not have it any more
	for _, step := range steps {
		if heldAt(step, o.Status, o.Requester) {
			return step, nil
		}
	}
	return nil, nil
}
