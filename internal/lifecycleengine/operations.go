package lifecycleengine

import (
	"cmp"
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Pending is an operation that has not ended, with its effects.
type Pending struct {
	Operation
	Effects []Effect
}

type listArgs struct {
	phase, from, upto, behind string
	limit                     int
	effects                   func(Operation) bool // of which operations effects are read; nil for all
}

var listVerb = store.NewVerb(store.Decl{Name: "operations.list", Lane: store.Read}, nil,
	func(a listArgs, args *store.Args) {
		args.Text("phase", a.phase)
		args.Text("from", a.from)
		args.Text("upto", a.upto)
		args.Text("after", a.behind)
		args.Int("limit", int64(a.limit))
	},
	entities.ScanOpen)

// Operations returns the operations of the context's workspace that have not ended; lifecycle.ListOperations documents it.
func Operations(ctx context.Context, d store.Doer, phase, behind string, limit int) ([]Pending, error) {
	return OperationsWith(ctx, d, phase, behind, limit, nil)
}

// OperationsWith is [Operations], and reads effects only of some operations: each takes a statement.
func OperationsWith(ctx context.Context, d store.Doer, phase, behind string, limit int, effects func(Operation) bool) ([]Pending, error) {
	switch phase {
	case "", string(entities.Held), string(entities.Due), string(entities.Uncertain):
	default:
		return nil, fault.New(fault.Validation, "state must be held, due or uncertain, got %q", phase)
	}
	if limit <= 0 || limit > 1000 {
		limit = 100
	}
	return listPending(ctx, d, listArgs{phase: phase, from: behind, upto: store.Last, behind: behind, limit: limit, effects: effects})
}

// InPhase returns operations in a phase without their effects, ordered by id.
func InPhase(ctx context.Context, d store.Doer, phase, behind string, limit int) ([]Operation, error) {
	open, err := listVerb.Do(ctx, d, listArgs{phase: phase, from: behind, upto: store.Last, behind: behind, limit: limit})
	all := make([]Operation, len(open))
	for i, o := range open {
		all[i] = *operationOf(o)
	}
	return all, err
}

// Find returns an operation that has not ended, or [holdfast.ErrNotFound].
func Find(ctx context.Context, d store.Doer, operation string) (Pending, error) {
	all, err := listPending(ctx, d, listArgs{from: operation, upto: operation, limit: 1})
	if err == nil && len(all) == 0 {
		err = fault.New(fault.NotFound, "operation %q does not exist or has ended", operation)
	}
	if err != nil {
		return Pending{}, err
	}
	return all[0], nil
}

func listPending(ctx context.Context, d store.Doer, a listArgs) ([]Pending, error) {
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	open, err := listVerb.DoAt(ctx, d, at, a)
	all := make([]Pending, 0, len(open))
	for _, o := range open {
		p := Pending{Operation: *operationOf(o)}
		if a.effects != nil && !a.effects(p.Operation) {
			all = append(all, p)
			continue
		}
		list, failed := effects.List(store.Whole(ctx), d, at, p.ID)
		if failed != nil {
			return nil, failed
		}
		for _, x := range list {
			p.Effects = append(p.Effects, Effect{x.Name, x.Ordinal, effects.Key(p.ID, x.Name, x.Ordinal), string(x.State), string(x.Policy), x.Result, x.BegunAt})
		}
		if all = append(all, p); store.Enough(ctx) { // the budget of the read is exhausted
			break
		}
	}
	return all, err
}

// HandlerOf returns the name of an operation's action handler. It returns "" if there is none or
// if the lifecycle is not part of this engine.
func HandlerOf(ctx context.Context, e *engine.Engine, o Operation) string {
	if o.plan != nil {
		return o.Handler
	}
	s, err := registryOf(e).find(ctx, o.Lifecycle)
	if err != nil {
		return ""
	}
	step, err := o.plannedStep(ctx, s)
	if err != nil || step == nil {
		return ""
	}
	name, _ := step.Action.For(o.Requester)
	return name
}

// Resolve ends the uncertainty of an operation, in whole or in part; lifecycle.Resolve documents it.
func Resolve(ctx context.Context, e *engine.Engine, operation string, known []effects.Resolution, o Outcome, r lease.Intervention) (*Operation, error) {
	p, err := Find(ctx, e, operation)
	if err != nil {
		return nil, err
	}
	s, at, err := p.bound(ctx, e)
	if err != nil {
		return nil, err
	}
	if p.Phase != string(entities.Uncertain) {
		return nil, fault.New(fault.Conflict, "operation %s is in phase %s: only an uncertain operation can be resolved", p.ID, p.Phase).With("phase", p.Phase)
	}
	if err := r.Check(p.ID, p.Epoch); err != nil {
		return nil, err
	}
	a, err := s.resolution(ctx, p, o, r.Actor)
	if err != nil {
		return nil, err
	}
	var now entities.Entity
	var complete bool
	err = e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := audit.Record(ctx, tx, audit.Action{Name: "operation.resolve", Subject: "operation/" + p.ID, Actor: r.Actor,
			Before: map[string]any{"phase": p.Phase, "entity": p.Lifecycle + "/" + p.Entity}, After: map[string]any{"effects": effects.Known(known), "outcome": o}}); err != nil {
			return err
		}
		for _, k := range known {
			if _, err := effects.Resolve(ctx, tx, at, a.Ticket, k); err != nil {
				return err
			}
		}
		left, err := effects.List(ctx, tx, at, p.ID)
		if err == nil {
			err = effects.Agree(left, known)
		}
		complete = !slices.ContainsFunc(left, func(x effects.Entry) bool { return x.State == effects.Begun })
		acted := slices.ContainsFunc(left, func(x effects.Entry) bool { return x.Name == effects.Body && x.State == effects.Done })
		if err == nil && acted && o == "" { // a resumed body would act again
			a, err = s.resolution(ctx, p, Success, r.Actor)
		}
		switch {
		case err == nil && !complete && o != "":
			return fault.New(fault.Conflict, "operation %s cannot end with %s, because the outcome of some of its effects is unknown: resolve these effects first", p.ID, o)
		case err != nil:
			return err
		case !complete:
			return r.Write(ctx, tx)
		case p.Manual && a.How == entities.Resume:
			return fault.New(fault.Validation, "operation %s belongs to a manual claim and cannot be resumed: specify the outcome", p.ID)
		}
		if now, err = s.store.unpark(ctx, tx, at, a, p.Status); err != nil {
			return err
		}
		return r.Write(ctx, tx)
	})
	if err != nil || !complete {
		return &p.Operation, err
	}
	return operationOf(now), nil
}

// bound returns the lifecycle of an operation that an operator ends, and its partition.
func (o *Operation) bound(ctx context.Context, e *engine.Engine) (*bound, store.Partition, error) {
	s, err := registryOf(e).find(ctx, o.Lifecycle)
	if fault.CodeOf(err) == fault.NotFound {
		err = fault.New(fault.Validation, "lifecycle %q is not part of this engine: use an engine that serves the lifecycle", o.Lifecycle)
	}
	if err != nil {
		return nil, store.Partition{}, err
	}
	at, err := e.Partition(ctx, store.Write)
	if err == nil {
		err = s.ready(ctx)
	}
	return s, at, err
}

// resolution returns how an operation continues once none of its effects is unknown.
func (s *bound) resolution(ctx context.Context, p Pending, o Outcome, by string) (a entities.UnparkArgs, err error) {
	a = entities.UnparkArgs{Ticket: entities.Ticket{Lifecycle: p.Lifecycle, ID: p.Entity, Operation: p.ID, Epoch: p.Epoch}, How: entities.Resume,
		Event: "released", Outcome: "resolved", Meta: events.Meta{Actor: by}}
	switch o {
	case "":
		return a, nil
	case Failure, Rejected:
		a.How = entities.Back
	case Success:
		a.How, a.Event, a.Outcome = entities.Success, settled(p.Step), "success"
	default:
		return a, fault.New(fault.Validation, "outcome must be success, failure or invalid, got %q", o)
	}
	step, err := p.plannedStep(ctx, s)
	switch {
	case err != nil:
		return a, err
	case step == nil && o == Success:
		return a, fault.New(fault.Conflict, "the config no longer has a step %q claimed in status %q, so the operation cannot end with success: use the outcome failure or invalid", p.Step, p.Status)
	case step == nil:
		return a, nil
	}
	if failed, ok := step.Failed.For(p.Requester); ok && o == Failure {
		a.To, a.Event = failed, "failed/"+step.Key
	}
	if o == Success {
		a.To, _ = step.Success.For(p.Requester)
		a.After = afterOf(step, p.Requester)
		a.Note = []byte(jsonOf(map[string]string{"after": a.After}))
	}
	return a, nil
}

// Withdraw ends a due operation; lifecycle.Withdraw documents it.
func Withdraw(ctx context.Context, e *engine.Engine, operation string, r lease.Intervention) (*Operation, error) {
	p, err := Find(ctx, e, operation)
	if err != nil {
		return nil, err
	}
	switch entities.Phase(p.Phase) {
	case entities.Held:
		return nil, fault.New(fault.Conflict, "operation %s is leased by %s until %s: withdraw it when the lease has ended, or release it", p.ID, p.Holder, clock.Text(p.Until)).
			With("phase", p.Phase).With("holder", p.Holder).With("until", p.Until)
	case entities.Uncertain:
		return nil, fault.New(fault.Conflict, "operation %s is uncertain: resolve it with an outcome instead", p.ID).With("phase", p.Phase)
	}
	if err := r.Check(p.ID, p.Epoch); err != nil {
		return nil, err
	}
	now, done, err := p.end(ctx, e, "withdraw", r, entities.WithdrawArgs{Outcome: "withdrawn", Message: cmp.Or(r.Reason, "withdrawn")})
	if err == nil && !done {
		err = fault.New(fault.Conflict, "operation %s was resumed or ended concurrently: read it again", p.ID).With("operation", p.ID)
	}
	if err != nil {
		return nil, err
	}
	return operationOf(now), nil
}

// Release ends an operation that is due or leased; lifecycle.Release documents it.
func Release(ctx context.Context, e *engine.Engine, operation string, r lease.Intervention) (*Operation, error) {
	for range maxAttempts {
		p, err := Find(ctx, e, operation)
		if err != nil {
			return nil, err
		}
		if err := r.Check(operation, p.Epoch); err != nil {
			return nil, err
		}
		if names := p.unresolved(); len(names) > 0 || p.Phase == string(entities.Uncertain) {
			return nil, effects.Unresolved(p.ID, names)
		}
		now, done, err := p.end(ctx, e, "release", r, entities.WithdrawArgs{Outcome: "released", Message: cmp.Or(r.Reason, "released"), Release: true})
		if err != nil {
			return nil, err
		}
		if done {
			return operationOf(now), nil
		}
		// It has changed since it was read: another holder, another effect, or its end.
	}
	return nil, fault.New(fault.Conflict, "operation %s changed concurrently during every attempt: read it again", operation).With("operation", operation)
}

// unresolved returns the effects that happened or may have happened.
func (p *Pending) unresolved() (names []string) {
	for _, x := range p.Effects {
		if x.State != string(effects.NotDone) {
			names = append(names, x.Name)
		}
	}
	return names
}

// end withdraws or releases an operation, and records that in the audit.
func (p *Pending) end(ctx context.Context, e *engine.Engine, how string, r lease.Intervention, a entities.WithdrawArgs) (entities.Entity, bool, error) {
	s, at, err := p.bound(ctx, e)
	if err != nil {
		return entities.Entity{}, false, err
	}
	a.Ticket = entities.Ticket{Lifecycle: p.Lifecycle, ID: p.Entity, Operation: p.ID, Epoch: p.Epoch}
	a.Meta.Actor = r.Actor
	if a.Claim = p.Status; p.plan != nil {
		a.Claim = p.plan.Into
	}
	return s.store.withdraw(ctx, at, a, func(ctx context.Context, tx *store.Tx, now entities.Entity) error {
		if err := r.Write(ctx, tx); err != nil {
			return err
		}
		return audit.Record(ctx, tx, audit.Action{Name: "operation." + how, Subject: "operation/" + p.ID, Actor: r.Actor,
			Before: map[string]any{"phase": p.Phase, "entity": p.Lifecycle + "/" + p.Entity, "status": p.Status, "holder": p.Holder, "epoch": p.Epoch},
			After:  map[string]any{"status": now.Status, "reason": a.Message}})
	})
}
