package lifecycle

import (
	"context"
	"iter"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
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
	Due       Phase = "due"       // it waits for a worker, or to be resumed
	Uncertain Phase = "uncertain" // the outcome of an effect is unknown; use [Resolve]
)

// OperationFilter selects unfinished operations. The zero value selects all.
type OperationFilter struct {
	Phase Phase
}

// ListOperations iterates over the unfinished operations in the context's workspace, ordered by id.
func ListOperations(ctx context.Context, d holdfast.Doer, f OperationFilter) iter.Seq2[Operation, error] {
	return store.Seq(func(after lifecycleengine.Pending, limit int) ([]lifecycleengine.Pending, error) {
		return lifecycleengine.Operations(ctx, store.DoerOf(d), string(f.Phase), after.ID, limit)
	}, pending)
}

// GetOperation returns an unfinished operation. If no unfinished operation has that id, the error is
// [holdfast.ErrNotFound].
func GetOperation(ctx context.Context, d holdfast.Doer, id string) (Operation, error) {
	p, err := lifecycleengine.Find(ctx, store.DoerOf(d), id)
	return pending(p), err
}

// Resolve records what a person knows about the effects of an uncertain operation. It stores each known result, also if
// other effects stay unknown; then the operation stays uncertain. Once the outcome of every effect is known, the
// operation is resumed with its handler, which then gets the results, or it ends: with [EndWith], or with success if an
// opaque body is known to have acted. If an effect stays unknown with EndWith, the error is [holdfast.ErrConflict]. A
// manual claim, or an operation whose body has no journal, cannot be resumed, only ended. If the operation is not
// uncertain, or a resolution contradicts a known result, the error is [holdfast.ErrConflict]. Resolve returns the
// operation, or nil if it has ended.
func Resolve(ctx context.Context, e *holdfast.Engine, id string, known []holdfast.Resolution, o ...ResolveOption) (*Operation, error) {
	var with resolveOptions
	for _, option := range o {
		option.resolve(&with)
	}
	all := mapped(known, func(r holdfast.Resolution) effects.Resolution { return effects.Resolution(r) })
	p, err := lifecycleengine.Resolve(ctx, engine.Of(e), id, all, lifecycleengine.Outcome(with.ending), with.actor)
	return operation(p), err
}

// Withdraw ends an operation that is due: it has no holder, and waits for a worker or for a node to resume it. If none
// of its effects can have happened, the entity returns to the status that the step started from. Otherwise the
// operation becomes uncertain, and a person must end it with [Resolve]. If the operation is held or uncertain, the
// error is [holdfast.ErrConflict]. Withdraw returns the operation, or nil if it has ended.
func Withdraw(ctx context.Context, e *holdfast.Engine, id, reason string, o ...ActorOption) (*Operation, error) {
	var with resolveOptions
	for _, option := range o {
		option.resolve(&with)
	}
	p, err := lifecycleengine.Withdraw(ctx, engine.Of(e), id, reason, with.actor)
	return operation(p), err
}
