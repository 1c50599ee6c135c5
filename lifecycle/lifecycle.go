// Package lifecycle moves things through statuses: closing a bill, applying a
// payment, regenerating an invoice. A config says which steps lead from which
// status to which, for whom, and which of them are claimed: then an entity is held
// in a transient status while the body of the step runs, so that of two who ask at
// once one acts, and the other is told that an operation is already in progress
// before anything is done.
//
// # Fire
//
// [Lifecycle.Fire] takes the claim, by a compare-and-swap from the status that the
// step leaves; runs the validation and the body, which hold no transaction; and
// settles: what the body wrote through [Act.WriteTx], the status, the version, the
// event and the after-effects are one transaction, which is refused if the hold was
// lost meanwhile. A body that fails goes back to where it was.
//
// # Effects
//
// What a body does to the world outside goes through [holdfast.Effect], which
// journals it. Any end of a claim looks at its effects first. If none may have
// happened, it goes back; otherwise the operation is resumed, by whichever node
// runs, with the same keys, or parked until a person resolves it ([Resolve]).
//
// # Recovery
//
// A process that dies leaves its claim held until the hold runs out. Then a janitor
// frees it: the standard one, or a module's own ([Janitor]). A lifecycle that
// declares a claim which nobody covers does not start.
package lifecycle

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
)

// Lifecycle is a config with its handlers, for entities whose data is an E. It
// knows no engine: handed to [holdfast.Open] it starts there. Handlers are added
// before that. Safe for concurrent use afterwards.
type Lifecycle[E any] struct {
	inner *lifecycleengine.Lifecycle
	bad   error // a handler option that cannot be used
}

// Parse reads a config, JSON or YAML. The error tells every violation that can be
// seen without the handlers, in [fault.Error.Violations].
func Parse[E any](config []byte) (*Lifecycle[E], error) {
	l, err := lifecycleengine.Parse(config)
	if err != nil {
		return nil, err
	}
	return &Lifecycle[E]{inner: l}, nil
}

// MustParse is [Parse] for a config that is part of the program: it panics where
// the config is refused.
func MustParse[E any](config []byte) *Lifecycle[E] {
	l, err := Parse[E](config)
	if err != nil {
		panic(err)
	}
	return l
}

// Name is the name of the lifecycle: the config's workflow.
func (l *Lifecycle[E]) Name() string { return l.inner.Name() }

// Action sets what a step does. It holds no transaction: what it writes to the
// database goes through [Act.WriteTx], what it does to the world outside through
// [holdfast.Effect]. It panics if the name is taken: that is a mistake in wiring.
func (l *Lifecycle[E]) Action(name string, f func(context.Context, *Act[E]) error, o ...HandlerOption) *Lifecycle[E] {
	return l.handle("action", name, f, o)
}

// Validation sets what is asked before an action. It returns [holdfast.Invalid] to
// refuse.
func (l *Lifecycle[E]) Validation(name string, f func(context.Context, *Act[E]) error, o ...HandlerOption) *Lifecycle[E] {
	return l.handle("validation", name, f, o)
}

// AfterEffect sets what follows the commit of a step: it is delivered at least
// once, with the same operation each time, and what it commits applies once. One that
// fails is delivered again ([WithRetry]); past that it is blocked, by itself, until it is
// unblocked or skipped (stream.Unblock, under the name $after:<workflow>:<handler>).
func (l *Lifecycle[E]) AfterEffect(name string, f func(context.Context, *Act[E]) error, o ...HandlerOption) *Lifecycle[E] {
	return l.handle("afterEffect", name, f, o)
}

// RecoveredBy says that what crashes leave of this lifecycle is freed: by the janitors
// named, or, if none is, by the standard one.
func (l *Lifecycle[E]) RecoveredBy(by ...Janitor) *Lifecycle[E] {
	all := make([]lifecycleengine.Janitor, len(by))
	for i, j := range by {
		all[i] = recovering(j)
	}
	l.inner.Covered(all...)
	return l
}

// In names the workspaces that the lifecycle is for: it is registered there when the
// engine opens, and refused elsewhere. Without it, it is registered in a workspace
// when it is first used there, and in "default" at once.
func (l *Lifecycle[E]) In(workspaces ...string) *Lifecycle[E] {
	l.inner.In(workspaces...)
	return l
}

// run makes a body of a handler.
func run[E any](f func(context.Context, *Act[E]) error) func(context.Context, *lifecycleengine.Act) error {
	return func(ctx context.Context, a *lifecycleengine.Act) error {
		e, err := typed[E](a.Entity)
		if err != nil {
			return err
		}
		return f(ctx, &Act[E]{Entity: e, Step: a.Step, Requester: a.Requester, Operation: a.Operation, Attempt: a.Attempt, Input: a.Input, inner: a})
	}
}

// Start is called by [holdfast.Open]. It refuses a config that breaks a rule, and
// a claim that nobody covers.
func (l *Lifecycle[E]) Start(ctx context.Context, e *holdfast.Engine) error {
	if l.bad != nil {
		return l.bad
	}
	return l.inner.Start(ctx, engine.Of(e))
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
func (l *Lifecycle[E]) Fire(ctx context.Context, e *holdfast.Engine, id, step, as string, o ...FireOption) (Entity[E], error) {
	return shown[E](l.inner.Fire(ctx, engine.Of(e), id, step, as, fireOptions(o)))
}
