package run

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Outcome is the outcome with which [Resolve] ends a step.
type Outcome string

// The outcomes of a step.
const (
	Success Outcome = "success" // the step is completed
	Failure Outcome = "failure" // the step fails for good
)

// ResolveOption is an option of [Resolve].
type ResolveOption interface {
	resolve(*resolveOptions)
}

type resolveOptions struct {
	ending Outcome
	actor  string
	bad    error
}

type resolveOption func(*resolveOptions)

func (f resolveOption) resolve(o *resolveOptions) { f(o) }

func (a ActorOption) resolve(o *resolveOptions)     { o.actor = a.actor }
func (a ActorOption) release(r *lease.Intervention) { r.Actor = a.actor }

// ReleaseOption is an option of [Release].
type ReleaseOption interface {
	release(*lease.Intervention)
}

type releaseOption func(*lease.Intervention)

func (f releaseOption) release(r *lease.Intervention) { f(r) }

// ExpectEpoch makes [Release] fail with [holdfast.ErrConcurrency] unless the lease has this epoch. Without it, a repeated
// call may end the lease of the next holder. An epoch below 1, which no lease has, is [holdfast.ErrValidation].
func ExpectEpoch(epoch int64) ReleaseOption {
	return releaseOption(func(r *lease.Intervention) { r.Epoch = &epoch })
}

// EndWith ends the step with an outcome, instead of resuming it. If an effect is still unknown, the error of [Resolve]
// is [holdfast.ErrConflict].
func EndWith(outcome Outcome) ResolveOption {
	return resolveOption(func(o *resolveOptions) {
		if o.ending = outcome; outcome == "" {
			o.bad = fault.New(fault.Validation, "EndWith has no outcome: specify one, or omit EndWith")
		}
	})
}

// Resolve records what a person knows about the effects of an uncertain step ([Visit.Uncertain]), identified by its
// operation ([Visit.Operation]), and returns the run. It stores each known result. The step stays uncertain while an
// effect is unknown that has neither a probe nor [holdfast.OnUnknownRetry]: only a person can say what became of it.
// Otherwise the handler of the step runs again with the results, or the step ends: with [EndWith], or with success if
// an opaque body is known to have acted (its effect has the name "$body"). If the step is not uncertain, a resolution
// contradicts a known result, or an effect stays unknown with EndWith, the error is [holdfast.ErrConflict], and
// nothing is stored.
func Resolve(ctx context.Context, e *holdfast.Engine, operation string, known []holdfast.Resolution, o ...ResolveOption) (Run, error) {
	var with resolveOptions
	for _, option := range o {
		option.resolve(&with)
	}
	if with.bad != nil {
		return Run{}, with.bad
	}
	all := make([]effects.Resolution, len(known))
	for i, k := range known {
		if err := effects.CheckCall(strings.TrimPrefix(k.Name, "$"), k.Ordinal); err != nil {
			return Run{}, err
		}
		all[i] = effects.Resolution{Name: k.Name, Ordinal: k.Ordinal, State: effects.State(k.State), Result: k.Result}
	}
	l, err := localOf(engine.Of(e)).Executor.Resolve(ctx, engine.Of(e), operation, all, string(with.ending), lease.Intervention{Actor: with.actor})
	return public(l.Run), err
}

// Release takes the lease of a step, identified by its operation ([Visit.Operation]), from its holder, and returns the
// run. The step is due again at once, and no attempt is counted; if a cancellation of the run was requested, the run is
// cancelled. (A released operation of a lifecycle ends instead.) The holder can write nothing more; its code may still
// run until it notices. If the outcome of an effect is unknown, nothing is changed and the error is
// [holdfast.ErrEffectUnresolved]; if the step is not leased, also while it is due, it is [holdfast.ErrConflict]. The
// audit records the reason, which may be empty.
func Release(ctx context.Context, e *holdfast.Engine, operation, reason string, o ...ReleaseOption) (Run, error) {
	with := lease.Intervention{Reason: reason}
	for _, option := range o {
		option.release(&with)
	}
	l, err := localOf(engine.Of(e)).Executor.ReleaseHeld(ctx, engine.Of(e), operation, with)
	return public(l.Run), err
}

// UncertainStep is a step that waits for [Resolve], with the effects in its journal.
type UncertainStep struct {
	Run string
	Visit
	Effects []holdfast.EffectInfo
}

// ListUncertain iterates over the uncertain steps of all runs in the context's workspace, ordered by operation.
func ListUncertain(ctx context.Context, d holdfast.Doer) iter.Seq2[UncertainStep, error] {
	return store.Seq(func(after UncertainStep, limit int) ([]UncertainStep, error) {
		found, err := runengine.Uncertain(ctx, store.DoerOf(d), after.Operation, limit)
		all := make([]UncertainStep, len(found))
		for i, l := range found {
			if all[i], err = uncertain(ctx, d, l); err != nil {
				return nil, err
			}
		}
		return all, err
	}, func(s UncertainStep) UncertainStep { return s })
}

func uncertain(ctx context.Context, d holdfast.Doer, l runengine.ClaimedStep) (UncertainStep, error) {
	step := UncertainStep{Run: l.Run.ID, Visit: visit(l.Run.ID, l.Step)}
	journal, err := l.Journal(ctx, store.DoerOf(d))
	for _, x := range journal {
		step.Effects = append(step.Effects, holdfast.EffectInfo{Name: x.Name, Ordinal: x.Ordinal, Key: effects.Key(step.Operation, x.Name, x.Ordinal),
			State: holdfast.EffectState(x.State), Policy: holdfast.EffectPolicy(x.Policy), Result: x.Result, Since: x.BegunAt})
	}
	return step, err
}
