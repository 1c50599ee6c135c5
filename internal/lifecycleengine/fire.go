package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// FireOptions are the options of a fired or claimed step; the options of package lifecycle document them.
type FireOptions struct {
	Input         []byte // JSON
	BadInput      error  // why the input could not be encoded
	ExpectVersion *int64 // the expected version
	Lease         time.Duration
	Meta          events.Meta
	Output        *json.RawMessage // receives the handler's output; may be nil
	// Begin runs in the transaction that begins the step: the one that takes the claim or, for a step
	// without a claim, the one that moves the entity. Its writes exist exactly if the operation exists, and
	// its error keeps the step from beginning. It may be run more than once.
	Begin func(ctx context.Context, tx *store.Tx, operation string) error
}

// SetInput sets the body's input, encoded as JSON.
func (o *FireOptions) SetInput(v any) { o.Input, o.BadInput = json.Marshal(v) }

// request is a request to run a step.
type request struct {
	id, step, as string
	steps        []*lifecycleconfig.Step // the candidates in the config
	FireOptions
}

// commits returns the writes of a step that begins and ends in one transaction.
func (r *request) commits(operation string) []commit {
	if r.Begin == nil {
		return nil
	}
	return []commit{func(ctx context.Context, tx *store.Tx) error { return r.Begin(ctx, tx, operation) }}
}

// Fire runs a step of an entity for a requester; lifecycle.Lifecycle.Fire documents it.
func (l *Lifecycle) Fire(ctx context.Context, e *engine.Engine, id, step, as string, o FireOptions) (Entity, error) {
	s, err := l.at(e)
	if err != nil {
		return Entity{}, err
	}
	return publicEntity(s.fire(ctx, id, step, as, o))
}

func (s *bound) fire(ctx context.Context, id, step, as string, o FireOptions) (entities.Entity, error) {
	r, err := s.request(ctx, id, step, as, o)
	if err != nil {
		return entities.Entity{}, err
	}
	e, err := s.underKey(ctx, r, func(ctx context.Context) (entities.Entity, error) {
		return s.retryExpired(ctx, func() (entities.Entity, error) { return s.enter(ctx, r) })
	})
	if s.outdated(err) {
		s.revertAbandoned(ctx) // helps the caller's next attempt; this one must not be repeated, a body may have run
	}
	if refusal(err) {
		s.recordRefusal(ctx, r, e, err)
	}
	return e, err
}

// request validates a request for a step.
func (s *bound) request(ctx context.Context, id, step, as string, o FireOptions) (*request, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	switch {
	case o.ExpectVersion != nil && *o.ExpectVersion < 0:
		return nil, fault.New(fault.Validation, "the expected version must be 0 or more, got %d", *o.ExpectVersion)
	case o.BadInput != nil:
		return nil, fault.New(fault.Validation, "the input cannot be encoded as JSON: %s", o.BadInput)
	case o.Lease != 0:
		if err := entities.CheckLease(o.Lease); err != nil {
			return nil, err
		}
	}
	if o.Input != nil {
		if err := strictjson.Check(o.Input); err != nil {
			return nil, err
		}
	}
	if err := events.CheckMeta(o.Meta); err != nil {
		return nil, err
	}
	steps, err := s.offered(step, as)
	return &request{id, step, as, steps, o}, err
}

// retryExpired calls do, and calls it again if an expired lease was in its way: that lease is ended in between, as by
// the janitor.
func (s *bound) retryExpired(ctx context.Context, do func() (entities.Entity, error)) (entities.Entity, error) {
	e, err := do()
	if fault.CodeOf(err) != fault.ClaimFailed || !e.Claim.Expired {
		return e, err
	}
	if _, failed := s.engine.Due(ctx, wake.WorkKind{Kind: wake.HeldOperation}); failed != nil {
		return e, err
	}
	return do()
}

// outdated reports whether an error concerns a status that this config has and the config in
// force does not have.
func (s *bound) outdated(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.Concurrency || f.Fields["lifecycle"] != s.config.Workflow {
		return false
	}
	status, _ := f.Fields["status"].(string)
	return slices.Contains(s.config.StatusTypes, status)
}

// recordRefusal counts and records a refused request.
func (s *bound) recordRefusal(ctx context.Context, r *request, found entities.Entity, err error) {
	s.registry.refused.Add(1)
	try := refusals.Try{Stream: entities.Stream(s.config.Workflow, r.id), Action: r.step, Requester: r.as, Actor: r.Meta.Actor}
	if found.Lifecycle != "" && found.Version != events.None {
		try.Version = &found.Version
	}
	_ = refusals.Note(ctx, s.engine, try, err)
}

// enter finds the step that starts at the entity's status. If all candidates take a claim, the
// claim itself decides.
func (s *bound) enter(ctx context.Context, r *request) (entities.Entity, error) {
	if all, claimed := s.choices(r.steps, r.as); claimed {
		return s.fireClaimed(ctx, r, all)
	}
	if e, done, err := s.fireAtOnce(ctx, r); done {
		return e, err
	}
	e, err := s.store.get(ctx, r.id)
	if err != nil {
		return e, err
	}
	step := stepAt(r.steps, e.Status)
	if step == nil || e.Claim.Phase != entities.Free {
		return e, stepUnavailable(e, r.step)
	}
	if c, claimed := s.claimAt(step, e.Status, r.as); claimed {
		return s.fireClaimed(ctx, r, map[string]entities.Choice{e.Status: c})
	}
	return s.fireUnclaimed(ctx, r, e, step)
}

// fireClaimed takes the claim and runs the step under it.
func (s *bound) fireClaimed(ctx context.Context, r *request, all map[string]entities.Choice) (entities.Entity, error) {
	t, e, err := s.take(ctx, r, entities.ClaimArgs{Choices: all, Holder: s.engine.Node(), Lease: s.lease(r.Lease)})
	if err != nil {
		return e, err
	}
	t.output = r.Output
	return t.run(ctx)
}

// take takes the claim of one of the candidate steps. An opaque body counts as a begun effect
// from this point on.
func (s *bound) take(ctx context.Context, r *request, args entities.ClaimArgs) (*attempt, entities.Entity, error) {
	args.Lifecycle, args.ID, args.Step, args.Requester = s.config.Workflow, r.id, r.step, r.as
	args.Operation, args.ExpectVersion, args.Input, args.Meta = store.NewID().String(), r.ExpectVersion, r.Input, r.Meta
	args.Choices = maps.Clone(args.Choices)
	for status, c := range args.Choices {
		c.Plan = planOf(stepAt(r.steps, status), args.Requester, args.Operation, c.Into)
		args.Choices[status] = c
	}
	at, err := s.engine.Partition(ctx, store.Write)
	if err != nil {
		return nil, entities.Entity{}, err
	}
	opaque := func(step *lifecycleconfig.Step) bool { // a worker's body begins when the worker takes the task
		return s.opaque(step, args.Requester) && (args.Manual || !s.usesWorkers(step, args.Requester))
	}
	var also func(context.Context, *store.Tx, entities.Entity) error
	if r.Begin != nil || slices.ContainsFunc(r.steps, opaque) {
		also = func(ctx context.Context, tx *store.Tx, e entities.Entity) error {
			if r.Begin != nil {
				if err := r.Begin(ctx, tx, args.Operation); err != nil {
					return err
				}
			}
			step := stepAt(r.steps, e.Claim.Revert)
			if !opaque(step) {
				return nil
			}
			policy := s.unknown(step, args.Requester)
			if args.Manual { // a manual claim is not resumed
				policy = effects.Hold
			}
			_, err := effects.Begin(ctx, tx, at, e.Ticket(), effects.Body, 0, policy, nil)
			return err
		}
	}
	since := clock.OfMachine()
	e, err := s.store.take(ctx, args, also)
	if err != nil {
		return nil, e, err
	}
	step := stepAt(r.steps, e.Claim.Revert)
	return &attempt{bound: s, at: at, entity: e, claim: e.Status, step: step, lease: args.Lease, since: since, meta: args.Meta, opaque: opaque(step)}, e, nil
}

// fireAtOnce runs a step that has neither a claim nor code, in one statement.
func (s *bound) fireAtOnce(ctx context.Context, r *request) (e entities.Entity, done bool, err error) {
	step := r.steps[0]
	if len(r.steps) > 1 || s.acts(step, r.as) || s.config.Table != nil {
		return e, false, nil
	}
	operation := store.NewID().String()
	e, err = s.store.move(ctx, s.transition(r, step, operation), r.commits(operation))
	if code := fault.CodeOf(err); code == fault.InvalidTransition || code == fault.ClaimFailed {
		if now, failed := s.store.get(ctx, r.id); failed == nil && now.Claim.Phase != entities.Free {
			e, err = now, entities.ClaimFailed(now)
		}
	}
	return e, true, err
}

// transition returns the transition of a step without a claim.
func (s *bound) transition(r *request, step *lifecycleconfig.Step, operation string) entities.TransitionArgs {
	to, _ := step.Success.For(r.as)
	return entities.TransitionArgs{Lifecycle: s.config.Workflow, ID: r.id, From: step.Status, To: to, ExpectVersion: r.ExpectVersion, Event: settled(r.step),
		Note: noteOf(r.step, r.as, operation, afterOf(step, r.as), r.Input, nil), After: afterOf(step, r.as), Meta: r.Meta}
}

// fireUnclaimed runs a step without a claim: the first commit wins.
func (s *bound) fireUnclaimed(ctx context.Context, r *request, e entities.Entity, step *lifecycleconfig.Step) (entities.Entity, error) {
	if r.ExpectVersion != nil && *r.ExpectVersion != e.Version {
		return e, events.Moved(e.Lifecycle+" "+e.ID, *r.ExpectVersion, e.Version)
	}
	w := &work{entity: e, step: r.step, requester: r.as, operation: store.NewID().String(), attempt: 1, input: r.Input, own: s.config.Table != nil}
	ctx, cancel := context.WithTimeout(effects.With(ctx, nil), timeoutOf(step)) // not the journal of an operation whose body fires this step
	defer cancel()
	if err := s.bodies(ctx, step, w); err != nil {
		if _, ok := errors.AsType[*handOn](err); ok {
			err = fault.New(fault.ActionInvalid, "a handler served by workers requires a claim: add successful_claim_state to the step")
		}
		return e, actionError(err)
	}
	args := s.transition(r, step, w.operation)
	args.From, args.ExpectVersion, args.Data = []string{e.Status}, &e.Version, w.data
	if was := s.wasOf(e.Data, w.data); was != nil {
		args.Note = noteOf(r.step, r.as, w.operation, args.After, r.Input, was)
	}
	moved, err := s.store.move(ctx, args, append(r.commits(w.operation), w.commits...))
	if err == nil && r.Output != nil {
		*r.Output = w.output
	}
	if err != nil && moved.ID == "" {
		return e, err // as it was before the step
	}
	return moved, err
}

// ActsUnclaimed reports whether a step, at the entity's status, runs code without a claim. Such a
// step leaves no record that it has begun.
func (l *Lifecycle) ActsUnclaimed(ctx context.Context, e *engine.Engine, id, step, requester string) (bool, error) {
	s, err := l.at(e)
	if err != nil {
		return false, err
	}
	steps, err := s.offered(step, requester)
	if err != nil {
		return false, nil // the step is refused
	}
	_, claimed := s.choices(steps, requester)
	if claimed || !slices.ContainsFunc(steps, func(x *lifecycleconfig.Step) bool { return s.acts(x, requester) }) {
		return false, nil
	}
	now, err := s.store.get(ctx, id)
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil // the step is refused
	}
	x := stepAt(steps, now.Status)
	if err != nil || x == nil {
		return false, err
	}
	_, claimed = s.claimAt(x, now.Status, requester)
	return !claimed && s.acts(x, requester), nil
}
