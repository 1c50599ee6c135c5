package lifecycle

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Effect is one external side effect inside an operation, as the journal has it.
type Effect struct {
	Name    string
	Ordinal int
	Key     string
	State   string // "begun", "done" or "notDone"
	Policy  string // "hold", "retry" or "probe"
	Result  json.RawMessage
	Since   time.Time
}

// Pending is an operation that is not at its end, with its effects.
type Pending struct {
	Operation
	Effects []Effect
}

func pending(p lifecycleengine.Pending) Pending {
	return Pending{publicOperation(p.OperationFacts), mapped(p.Effects, func(x lifecycleengine.Effect) Effect { return Effect(x) })}
}

// Phase is where an unfinished operation stands.
type Phase string

// The phases of unfinished operations.
const (
	Held      Phase = "held"      // a holder works on it
	Due       Phase = "due"       // it waits to be resumed or for a worker
	Uncertain Phase = "uncertain" // the outcome of an effect is unknown; [Resolve] ends that
)

// Operations iterates over the unfinished operations of the context's workspace in the order of their
// ids: those in a phase, or all ("").
func Operations(ctx context.Context, e *holdfast.Engine, phase Phase) iter.Seq2[Pending, error] {
	return store.Seq(func(after lifecycleengine.Pending, limit int) ([]lifecycleengine.Pending, error) {
		return lifecycleengine.Operations(ctx, engine.Of(e), string(phase), after.ID, limit)
	}, pending)
}

// Find returns an operation that is not at its end, or [holdfast.ErrNotFound].
func Find(ctx context.Context, e *holdfast.Engine, operation string) (Pending, error) {
	p, err := lifecycleengine.Find(ctx, engine.Of(e), operation)
	return pending(p), err
}

// Resolution is what a person knows of an effect: whether it happened, and with
// which result.
type Resolution struct {
	Name     string
	Ordinal  int
	Happened bool
	Result   json.RawMessage
}

// Resolve ends the uncertainty of an operation, or a part of it. Once nothing of it
// is unknown any more, it is resumed under its handler, which then sees the results;
// or it ends with the outcome that is named. A claim taken by hand, and a body that
// journals nothing, can only end. It returns the operation, unless that is at its
// end.
func Resolve(ctx context.Context, e *holdfast.Engine, id string, known []Resolution, o Outcome, by string) (*Operation, error) {
	all := mapped(known, func(r Resolution) lifecycleengine.Resolution { return lifecycleengine.Resolution(r) })
	p, err := lifecycleengine.Resolve(ctx, engine.Of(e), id, all, lifecycleengine.Outcome(o), by)
	return operation(p), err
}

// Withdraw ends an operation that is due: it was handed on, or is to be resumed, and nobody
// holds it. If no effect of it may have happened, the entity goes back to where the step
// starts. Otherwise the operation waits for a person, who ends it by [Resolve]: what happened
// is not guessed. One that is held or uncertain is [holdfast.ErrConflict]. It returns the
// operation, unless that is at its end.
func Withdraw(ctx context.Context, e *holdfast.Engine, id, reason, by string) (*Operation, error) {
	p, err := lifecycleengine.Withdraw(ctx, engine.Of(e), id, reason, by)
	return operation(p), err
}
