package lifecycleengine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/attempts"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Fire does a step of an entity, on behalf of a requester, and returns the entity
// as it is then.
//
// If another operation is in progress, the error is [holdfast.ErrClaimFailed], and
// nothing was done. If the step is not offered at the entity's status it is
// [holdfast.ErrInvalidTransition], to the requester [holdfast.ErrForbidden]. Where
// the validation or the action refuses it is [holdfast.ErrActionInvalid], where the
// action fails [holdfast.ErrActionFailed], which wraps the action's own error. A
// panic of the action goes on, after the claim was released.
//
// A context that ends stops the action, if that heeds it; the claim is released in
// any case.
//
// In a handler of idem.Middleware the operation belongs to the key of the request: the
// handler that is run again under the key, after a crash, is answered for the
// operation that it began before, with the entity as it is by now. While that is being
// worked on, the error is [holdfast.ErrKeyInFlight]; where another has the key by now,
// [holdfast.ErrLeaseLost].
func (l *Lifecycle) Fire(ctx context.Context, e *engine.Engine, id, step, as string, o ...FireOption) (Entity, error) {
	s, err := l.at(e)
	if err != nil {
		return Entity{}, err
	}
	return shown(s.fire(ctx, id, step, as, o))
}

func (s *site) fire(ctx context.Context, id, key, as string, o []FireOption) (entities.Entity, error) {
	a, err := s.asking(ctx, o)
	if err != nil {
		return entities.Entity{}, err
	}
	steps, err := s.offered(key, as)
	if err != nil {
		return entities.Entity{}, err
	}
	e, err := s.tied(ctx, id, key, as, a, func(ctx context.Context) (entities.Entity, error) {
		return s.ended(ctx, func() (entities.Entity, error) { return s.enter(ctx, id, as, steps, a) })
	})
	if s.outdated(err) {
		s.heal(ctx) // for who asks again: here, a body may have run
	}
	if err != nil && refusal(err) {
		s.note(ctx, id, key, as, err)
	}
	return e, err
}

// ended does something with an entity, and does it again where an expired lease was in its way: that is ended
// first, as the janitor would.
func (s *site) ended(ctx context.Context, do func() (entities.Entity, error)) (entities.Entity, error) {
	e, err := do()
	if fault.CodeOf(err) != fault.ClaimFailed || !e.Claim.Expired {
		return e, err
	}
	if _, failed := s.engine.Due(ctx, wake.Need{Kind: wake.HeldOperation}); failed != nil {
		return e, err
	}
	return do()
}

// outdated says whether an error is that of a status which this config has, and the
// one in force has not.
func (s *site) outdated(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.Concurrency || f.Fields["lifecycle"] != s.config.Workflow {
		return false
	}
	status, _ := f.Fields["status"].(string)
	return slices.Contains(s.config.StatusTypes, status)
}

// refusal says whether an error is that of one who came second, or too late.
func refusal(err error) bool {
	switch fault.CodeOf(err) {
	case fault.ClaimFailed, fault.InvalidTransition, fault.Concurrency:
		return true
	}
	return false
}

// note remembers who was refused.
func (s *site) note(ctx context.Context, id, key, as string, err error) {
	at, failed := s.engine.Place(ctx, store.Read)
	var f *fault.Error
	if failed == nil && errors.As(err, &f) {
		s.board.refused(at, attempts.Attempt{Lifecycle: s.config.Workflow, Entity: id, Step: key, Requester: as, Code: string(f.Code), Detail: f.Fields})
	}
}

func (s *site) asking(ctx context.Context, o []FireOption) (*asked, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	a := new(asked)
	for _, set := range o {
		set(a)
	}
	switch {
	case a.want != nil && *a.want < 0:
		return nil, fault.New(fault.Validation, "the expected version is %d: an entity's version is 0 or more", *a.want)
	case a.bad != nil:
		return nil, fault.New(fault.Validation, "the input cannot be kept as JSON: %s", a.bad)
	case a.lease != 0:
		if err := entities.CheckLease(a.lease); err != nil {
			return nil, err
		}
	}
	if a.input != nil {
		if err := strict.Check(a.input); err != nil {
			return nil, err
		}
	}
	return a, events.CheckMeta(a.meta)
}

// enter finds the step that starts where the entity is. Where all that are offered
// are claimed, the claim itself decides.
func (s *site) enter(ctx context.Context, id, as string, steps []*lifecycles.Step, a *asked) (entities.Entity, error) {
	if all, claimed := s.choices(steps, as); claimed {
		return s.fireClaimed(ctx, id, as, steps, all, a)
	}
	if e, done, err := s.fireAtOnce(ctx, id, as, steps, a); done {
		return e, err
	}
	e, err := s.ground.get(ctx, id)
	if err != nil {
		return e, err
	}
	step := stepAt(steps, e.Status)
	if step == nil || e.Claim.Phase != entities.Free {
		return e, s.notHere(e, steps[0].Key)
	}
	if c, claimed := s.claimAt(step, e.Status, as); claimed {
		return s.fireClaimed(ctx, id, as, steps, map[string]entities.Choice{e.Status: c}, a)
	}
	return s.fireUnclaimed(ctx, e, as, step, a)
}

// notHere is the error of a step that cannot be done: the entity is held, or at a status
// where the step is not offered.
func (s *site) notHere(e entities.Entity, key string) error {
	if e.Claim.Phase != entities.Free {
		return entities.ClaimFailed(e)
	}
	return fault.New(fault.InvalidTransition, "the %s %q is %q, where %q cannot be done", e.Lifecycle, e.ID, e.Status, key).
		With("status", e.Status).With("version", e.Version)
}

// fireClaimed takes the claim and runs the step under it.
func (s *site) fireClaimed(ctx context.Context, id, as string, steps []*lifecycles.Step, all map[string]entities.Choice, a *asked) (entities.Entity, error) {
	args := entities.ClaimArgs{Lifecycle: s.config.Workflow, ID: id, Choices: all, Want: a.want, Operation: store.NewID().String(), Step: steps[0].Key,
		Requester: as, Input: a.input, Holder: s.engine.Node(), Lease: s.lease(a), Meta: a.meta}
	t, e, err := s.take(ctx, args, steps, a)
	if err != nil {
		return e, err
	}
	t.output = a.output
	return t.run(ctx)
}

// safety is what the body of a step promises.
func (s *site) safety(step *lifecycles.Step, as string) lifecycles.Safety {
	if h := s.handler(step.Action, as); h != nil {
		return h.Safety
	}
	if name, _ := step.Action.For(as); name != "" { // it is gone
		return lifecycles.Undeclared
	}
	return lifecycles.Transactional // it has no body
}

// opaque says whether the body of a step as a whole is an effect.
func (s *site) opaque(step *lifecycles.Step, as string) bool {
	return s.safety(step, as) == lifecycles.Opaque
}

// unknown is what is done about the body of a step, where it is an effect by itself and
// nothing is known of it.
func (s *site) unknown(step *lifecycles.Step, as string) effects.Policy {
	if h := s.handler(step.Action, as); h != nil && h.unknown != "" {
		return h.unknown
	}
	return effects.Hold
}

// handsOn says whether a worker runs the validation or the body of a step.
func (s *site) handsOn(step *lifecycles.Step, as string) bool {
	for _, p := range []lifecycles.Per[string]{step.Action, step.Validation} {
		if h := s.handler(p, as); h != nil && h.queue != "" {
			return true
		}
	}
	return false
}

// take takes the claim of one of some steps; an opaque body is an effect begun from
// the start.
func (s *site) take(ctx context.Context, args entities.ClaimArgs, steps []*lifecycles.Step, a *asked) (*attempt, entities.Entity, error) {
	args.Choices = maps.Clone(args.Choices)
	for status, c := range args.Choices {
		c.Plan = planOf(stepAt(steps, status), args.Requester, args.Operation, c.Into)
		args.Choices[status] = c
	}
	at, err := s.engine.Place(ctx, store.Write)
	if err != nil {
		return nil, entities.Entity{}, err
	}
	opaque := func(step *lifecycles.Step) bool { // behind a worker, it begins when it is taken up
		return s.opaque(step, args.Requester) && (args.Manual || !s.handsOn(step, args.Requester))
	}
	var also func(context.Context, *store.Tx, entities.Entity) error
	if a.begin != nil || slices.ContainsFunc(steps, opaque) {
		also = func(ctx context.Context, tx *store.Tx, e entities.Entity) error {
			if a.begin != nil {
				if err := a.begin(ctx, tx, args.Operation); err != nil {
					return err
				}
			}
			step := stepAt(steps, e.Claim.Revert)
			if !opaque(step) {
				return nil
			}
			policy := s.unknown(step, args.Requester)
			if args.Manual { // nobody resumes it
				policy = effects.Hold
			}
			_, err := effects.Begin(ctx, tx, at, e.Ticket(), effects.Body, 0, policy, nil)
			return err
		}
	}
	since := clock.OfMachine()
	e, err := s.ground.take(ctx, args, also)
	if err != nil {
		return nil, e, err
	}
	step := stepAt(steps, e.Claim.Revert)
	return &attempt{site: s, at: at, entity: e, claim: e.Status, step: step, lease: args.Lease, since: since, meta: args.Meta, opaque: opaque(step)}, e, nil
}

// fireAtOnce does a step that has neither claim nor code, in one statement.
func (s *site) fireAtOnce(ctx context.Context, id, as string, steps []*lifecycles.Step, a *asked) (e entities.Entity, done bool, err error) {
	step := steps[0]
	if len(steps) > 1 || s.acts(step, as) || s.config.Table != nil {
		return e, false, nil
	}
	operation := store.NewID().String()
	e, err = s.ground.move(ctx, s.transition(id, as, operation, step, step.Status, a.want, nil, a), a.commits(operation))
	if code := fault.CodeOf(err); code == fault.InvalidTransition || code == fault.ClaimFailed {
		if now, failed := s.ground.get(ctx, id); failed == nil && now.Claim.Phase != entities.Free {
			e, err = now, entities.ClaimFailed(now)
		}
	}
	return e, true, err
}

func (s *site) transition(id, as, operation string, step *lifecycles.Step, from []string, want *int64, data []byte, a *asked) entities.TransitionArgs {
	to, _ := step.Success.For(as)
	return entities.TransitionArgs{Lifecycle: s.config.Workflow, ID: id, From: from, To: to, Want: want, Data: data, Event: settled(step.Key),
		Note: noteOf(step.Key, as, operation, afterOf(step, as), a.input), After: afterOf(step, as), Meta: a.meta}
}

// fireUnclaimed runs a step without a claim: whoever commits first wins.
func (s *site) fireUnclaimed(ctx context.Context, e entities.Entity, as string, step *lifecycles.Step, a *asked) (entities.Entity, error) {
	if a.want != nil && *a.want != e.Version {
		return e, events.Moved(e.Lifecycle+" "+e.ID, *a.want, e.Version)
	}
	w := &work{entity: e, step: step.Key, requester: as, operation: store.NewID().String(), attempt: 1, input: a.input, own: s.config.Table != nil}
	ctx, cancel := context.WithTimeout(effects.With(ctx, nil), timeoutOf(step)) // it is no part of an operation that fires it
	defer cancel()
	if err := s.bodies(ctx, step, w); err != nil {
		if _, ok := errors.AsType[*handOn](err); ok {
			err = fault.New(fault.ActionInvalid, "a worker's handler needs a claim: the step has none")
		}
		return e, actionError(err)
	}
	args := s.transition(e.ID, as, w.operation, step, []string{e.Status}, &e.Version, w.data, a)
	moved, err := s.ground.move(ctx, args, append(a.commits(w.operation), w.commits...))
	if err == nil && a.output != nil {
		*a.output = w.output
	}
	return moved, err
}

// commits is what is written in the transaction of a step that begins and ends with
// it.
func (a *asked) commits(operation string) []commit {
	if a.begin == nil {
		return nil
	}
	return []commit{func(ctx context.Context, tx *store.Tx) error { return a.begin(ctx, tx, operation) }}
}

// bodies runs the validation and the action of a step.
func (s *site) bodies(ctx context.Context, step *lifecycles.Step, w *work) error {
	if h := s.handler(step.Validation, w.requester); h != nil && w.stage != stageAction && !w.doubtful { // what may have acted was valid
		if h.queue != "" {
			return &handOn{stageValidation, h.queue}
		}
		if err := h.call(ctx, w); err != nil {
			return invalid(err)
		}
	}
	if h := s.handler(step.Action, w.requester); h != nil {
		if h.queue != "" {
			return &handOn{stageAction, h.queue}
		}
		if w.held != nil {
			if err := w.held(ctx); err != nil {
				return err
			}
		}
		w.started = true
		return h.call(ctx, w)
	}
	return nil
}

// afterOf names the after-effect of a step, if it has one.
func afterOf(step *lifecycles.Step, requester string) string {
	name, _ := step.AfterEffect.For(requester)
	return name
}

// invalid makes a refusal of what a validation returns: its business is to refuse.
func invalid(err error) error {
	if fault.CodeOf(err) == fault.Internal && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.ActionInvalid, "%s", err).Wrap(err)
	}
	return err
}

// call runs a handler, for as long as it may take.
func (h *handler) call(ctx context.Context, w *work) error {
	if h.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, h.Timeout, errTimeout)
		defer cancel()
	}
	if h.body == nil {
		return fault.New(fault.Validation, "the handler %q is a worker's, and cannot be called here", h.name)
	}
	err := h.body(ctx, w)
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		return errors.Join(errTimeout, err)
	}
	return err
}

var errTimeout = errors.New("the handler took longer than it may")

// actionError is what a caller is told of a body's error.
func actionError(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && (f.Code == fault.ActionInvalid || f.Code == fault.ActionFailed) {
		return err
	}
	return fault.New(fault.ActionFailed, "%s", err).Wrap(err).With("outcome", "released")
}
