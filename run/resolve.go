package run

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// Resolution is a person's report about an effect: whether it happened, and with which result. The
// name "$body" stands for the whole body of an [Opaque] step.
type Resolution struct {
	Name     string
	Ordinal  int
	Happened bool
	Result   json.RawMessage
}

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
}

type resolveOption func(*resolveOptions)

func (f resolveOption) resolve(o *resolveOptions) { f(o) }

func (a ActorOption) resolve(o *resolveOptions) { o.actor = a.actor }

// EndWith ends the step with an outcome, instead of resuming it. If an effect is still unknown, the error of [Resolve]
// is [holdfast.ErrConflict].
func EndWith(outcome Outcome) ResolveOption {
	return resolveOption(func(o *resolveOptions) { o.ending = outcome })
}

// Resolve records what a person knows about the effects of an uncertain step ([Visit.Uncertain]), given
// by its operation ([Visit.Operation]), and returns the run. It stores each known result, also if other effects
// stay unknown; then the step stays uncertain. Otherwise the handler of the step resumes it
// with the results, or the step ends: with [EndWith], or with success if an opaque body is known to
// have acted. If the step is not uncertain, a resolution contradicts a known result, or an effect
// stays unknown with EndWith, the error is [holdfast.ErrConflict].
func Resolve(ctx context.Context, e *holdfast.Engine, operation string, known []Resolution, o ...ResolveOption) (Run, error) {
	var with resolveOptions
	for _, option := range o {
		option.resolve(&with)
	}
	all := make([]effects.Resolution, len(known))
	for i, k := range known {
		if err := effects.CheckCall(strings.TrimPrefix(k.Name, "$"), k.Ordinal); err != nil {
			return Run{}, err
		}
		all[i] = effects.Resolution{Name: k.Name, Ordinal: k.Ordinal, Happened: k.Happened, Result: k.Result}
	}
	l, err := localOf(engine.Of(e)).Executor.Resolve(ctx, engine.Of(e), operation, all, string(with.ending), with.actor)
	return public(l.Run), err
}
