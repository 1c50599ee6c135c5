package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

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

// asked is what a caller asks for.
type asked struct {
	output *json.RawMessage
	input  []byte
	bad    error
	want   *int64
	lease  time.Duration
	meta   events.Meta
	// begin is written in the transaction that begins the step.
	begin func(ctx context.Context, tx *store.Tx, operation string) error
}

// FireOption is an option of [Lifecycle.Fire] and [Lifecycle.Claim].
type FireOption func(*asked)

// Input gives the body something, as JSON.
func Input(v any) FireOption {
	return func(a *asked) { a.input, a.bad = json.Marshal(v) }
}

// Want refuses the step unless the entity is at this version.
func Want(version int64) FireOption { return func(a *asked) { a.want = &version } }

// Lease is how long the claim is held without a renewal. The default is 30 seconds
// for a step that is fired, or the lifecycle's stuck_after if that is shorter; it is
// renewed as long as the body runs. For a claim taken by hand it is stuck_after. An
// operation that is resumed has the default again.
func Lease(d time.Duration) FireOption { return func(a *asked) { a.lease = d } }

// By says who asks, in the history.
func By(actor string) FireOption { return func(a *asked) { a.meta.Actor = actor } }

// Correlation ties the history to something else.
func Correlation(id string) FireOption { return func(a *asked) { a.meta.Correlation = id } }

// OutputTo has the output of a handler elsewhere written to out, when the step is done.
func OutputTo(out *json.RawMessage) FireOption {
	return func(a *asked) { a.output = out }
}

// Beginning adds what is written in the transaction that begins the step: the one
// that takes the claim or, for a step without one, that moves the entity. What it
// marks is there exactly if the operation is; its error keeps the step from being
// begun. f may be run again.
func Beginning(f func(ctx context.Context, tx *store.Tx, operation string) error) FireOption {
	return func(a *asked) { a.begin = f }
}

// commits is what is written in the transaction of a step that begins and ends with
// it.
func (a *asked) commits(operation string) []commit {
	if a.begin == nil {
		return nil
	}
	return []commit{func(ctx context.Context, tx *store.Tx) error { return a.begin(ctx, tx, operation) }}
}

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

// ActsUnclaimed says whether a step, where the entity is, runs code without a claim: then
// nothing tells that it has begun.
func (l *Lifecycle) ActsUnclaimed(ctx context.Context, e *engine.Engine, id, step, requester string) (bool, error) {
	s, err := l.at(e)
	if err != nil {
		return false, err
	}
	steps, err := s.offered(step, requester)
	if err != nil {
		return false, nil // it is refused
	}
	_, claimed := s.choices(steps, requester)
	if claimed || !slices.ContainsFunc(steps, func(x *lifecycles.Step) bool { return s.acts(x, requester) }) {
		return false, nil
	}
	now, err := s.ground.get(ctx, id)
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil // it is refused
	}
	x := stepAt(steps, now.Status)
	if err != nil || x == nil {
		return false, err
	}
	_, claimed = s.claimAt(x, now.Status, requester)
	return !claimed && s.acts(x, requester), nil
}
