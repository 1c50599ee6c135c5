package lifecycle

import (
	"context"
	"iter"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/store"
)

func publicEffect(x lifecycleengine.Effect) holdfast.EffectInfo {
	return holdfast.EffectInfo{Name: x.Name, Ordinal: x.Ordinal, Key: x.Key, State: holdfast.EffectState(x.State), Policy: holdfast.EffectPolicy(x.Policy), Result: x.Result, Since: x.Since}
}

func pending(p lifecycleengine.Pending) Operation {
	o := publicOperation(p.OperationFacts)
	o.Effects = mapped(p.Effects, publicEffect)
	return o
}

// Phase is the phase of an unfinished operation.
type Phase string

// The phases of unfinished operations.
const (
	Held      Phase = "held"      // a holder is executing it
	Due       Phase = "due"       // it has no holder: it waits for a worker, or for the time at which it is resumed
	Uncertain Phase = "uncertain" // the outcome of an effect is unknown; use [Resolve]
)

// OperationFilter selects unfinished operations. The zero value selects all.
type OperationFilter struct {
	Phase Phase
}

// ListOperations iterates over the unfinished operations in the context's workspace, ordered by id. An unknown phase is
// [holdfast.ErrValidation].
func ListOperations(ctx context.Context, d holdfast.Doer, f OperationFilter) iter.Seq2[Operation, error] {
	return store.Seq(func(after lifecycleengine.Pending, limit int) ([]lifecycleengine.Pending, error) {
		switch f.Phase {
		case "", Held, Due, Uncertain:
		default:
			return nil, fault.New(fault.Validation, "Phase must be Held, Due or Uncertain, got %q", f.Phase)
		}
		return lifecycleengine.Operations(ctx, store.DoerOf(d), string(f.Phase), after.ID, limit)
	}, pending)
}

// GetOperation returns an unfinished operation. If no unfinished operation has that id, the error is
// [holdfast.ErrNotFound].
func GetOperation(ctx context.Context, d holdfast.Doer, id string) (Operation, error) {
	p, err := lifecycleengine.Find(ctx, store.DoerOf(d), id)
	return pending(p), err
}

// Resolve records what a person knows about the effects of an uncertain operation. If it resolves only some of them,
// the operation stays uncertain. Once the outcome of every effect is known:
//   - If the body of an [Opaque] handler happened (the effect "$body"), the operation ends with success, and the body
//     does not run again.
//   - If another effect happened, the operation is resumed with its handler, which then gets the results.
//   - If none happened, the operation ends, and the entity returns to the status that the step started from.
//
// With [EndWith], the operation ends with that outcome instead. If the outcome of an effect is then still unknown, the
// error is [holdfast.ErrConflict], and nothing is stored. The operation of a manual claim cannot be resumed: unless
// "$body" happened, it needs EndWith, and the error without it is [holdfast.ErrValidation]. If the operation is not
// uncertain, or a resolution contradicts a known result, the error is [holdfast.ErrConflict]. Resolve returns the
// operation, or nil if it has ended.
func Resolve(ctx context.Context, e *holdfast.Engine, operation string, known []holdfast.Resolution, o ...ResolveOption) (*Operation, error) {
	var with resolveOptions
	for _, option := range o {
		option.resolve(&with)
	}
	if with.bad != nil {
		return nil, with.bad
	}
	all := mapped(known, func(r holdfast.Resolution) effects.Resolution {
		return effects.Resolution{Name: r.Name, Ordinal: r.Ordinal, State: effects.State(r.State), Result: r.Result}
	})
	p, err := lifecycleengine.Resolve(ctx, engine.Of(e), operation, all, lifecycleengine.Outcome(with.ending), lease.Intervention{Actor: with.actor})
	return operationOf(p), err
}

// Release ends an operation that is due or leased, without its holder: the entity returns to the status that the step
// started from. The holder can write nothing more; its code may still run until it notices. If an effect of
// the operation has happened or may have happened, or if the operation is uncertain, nothing is changed and the error
// is [holdfast.ErrEffectUnresolved]. Unlike a released step of a run, the work is not done again, unless somebody fires the
// step again; and an operation that is due ends although nobody holds it, where run.Release returns
// [holdfast.ErrConflict]. The audit and the history of the entity record the reason, which may be empty. Release returns
// the operation, or nil if it has ended.
func Release(ctx context.Context, e *holdfast.Engine, operation, reason string, o ...ReleaseOption) (*Operation, error) {
	with := lease.Intervention{Reason: reason}
	for _, option := range o {
		option.release(&with)
	}
	p, err := lifecycleengine.Release(ctx, engine.Of(e), operation, with)
	return operationOf(p), err
}

// Withdraw ends an operation that is due: it has no holder, and waits for a worker or for the time at which a node
// resumes it. If none of its effects can have happened, the entity returns to the status that the step started from.
// Otherwise the operation becomes uncertain, and a person must end it with [Resolve]. If the operation is held or
// uncertain, the error is [holdfast.ErrConflict]. [Release] also ends a held operation, but refuses one whose effects may have
// happened, instead of making it uncertain. The audit and the history of the entity record the reason, which may be
// empty. Withdraw returns the operation, or nil if it has ended.
func Withdraw(ctx context.Context, e *holdfast.Engine, operation, reason string, o ...ActorOption) (*Operation, error) {
	var with resolveOptions
	for _, option := range o {
		option.resolve(&with)
	}
	p, err := lifecycleengine.Withdraw(ctx, engine.Of(e), operation, lease.Intervention{Reason: reason, Actor: with.actor})
	return operationOf(p), err
}
