// Package lifecycle moves entities through statuses: closing a bill, applying a payment, regenerating an invoice. A
// config declares the steps between the statuses, the requesters that may fire each step, and the steps that are
// claimed. A claimed step keeps the entity in a claim status while its body runs. If two requesters fire
// concurrently, only one of them proceeds. The other gets an error, before any code runs, because an operation is
// already in progress.
//
//	var bills = lifecycle.MustParse[Bill](config).Action("Print", func(ctx context.Context, a *lifecycle.Act[Bill]) error {
//		_, err := holdfast.Effect(ctx, "print", func(ctx context.Context, key string) (string, error) {
//			return printer.Print(ctx, key, a.Entity.Data)
//		})
//		return err
//	}, lifecycle.Journaled())
//
//	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{}, bills)
//	_, err = bills.Create(ctx, hf, "b1", Bill{Cents: 1200})
//	bill, err := bills.Fire(ctx, hf, "b1", "close", "admin")
//	if errors.Is(err, holdfast.ErrClaimFailed) { … } // another request is closing it
//
// # Fire
//
// [Lifecycle.Fire] takes the claim with a compare-and-swap from the status that the step starts from. It then runs the
// validation and the body, without an open transaction. Finally it settles the step: the writes that the body added
// with [Act.WriteTx], the status, the version, the event and the after-effects are committed in one transaction, which
// is refused if the lease was lost in the meantime. If the body fails, the entity returns to its previous status.
//
// # Effects
//
// A body performs external side effects through [holdfast.Effect], which journals them. Before a claim ends, its
// effects are checked. If none of them can have happened, the entity returns to its previous status. Otherwise the
// operation is resumed on any running node, with the same keys, or parked until a person resolves it ([Resolve]).
//
// What an action does without a journal is not known after a crash. Declare the action [Opaque], and its operation is parked then.
// Without a declaration, the entity returns to its previous status although the action may have acted, and acts again when
// the step is fired again; the history has the note outcomeUnknown. That is right only for an action that is [Idempotent] or
// [Transactional]. (In package run, a crashed task runs again, and a task without a declaration counts as idempotent.)
//
// # Recovery
//
// If a process crashes, its claim stays until the lease expires. Then a janitor releases it: the standard janitor, or a
// module's own ([Janitor]). If a lifecycle has a claim that no janitor covers, [holdfast.Open] returns an error.
//
// If an effect of the crashed operation happened or may have happened, a running node resumes the operation at once. The fifth
// crash of its holders parks it. An attempt that fails after such an effect is resumed too, at most five times, after
// pauses that double from a second; then the operation is parked. These limits are fixed.
package lifecycle

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
)

// Lifecycle is a config with its handlers, for entities whose data has the type E. Add its handlers, and then
// pass it to [holdfast.Open] as a part. After Open has returned, it is safe for concurrent use.
type Lifecycle[E any] struct {
	checked
	inner *lifecycleengine.Lifecycle
	bad   error // invalid handler options
}

// checked makes [holdfast.Open] check the part before it registers any part.
type checked = engine.Checked

// Parse reads a config in JSON or YAML. The error lists every violation that can be found without the handlers, in
// [fault.Error.Violations].
func Parse[E any](config []byte) (*Lifecycle[E], error) {
	l, err := lifecycleengine.Parse(config)
	if err != nil {
		return nil, err
	}
	x := &Lifecycle[E]{inner: l}
	x.checked = engine.CheckedBy(x.check)
	return x, nil
}

// MustParse is like [Parse], but panics if the config is invalid. Use it for a config that is part of the program.
func MustParse[E any](config []byte) *Lifecycle[E] {
	l, err := Parse[E](config)
	if err != nil {
		panic(err)
	}
	return l
}

// Name returns the name of the lifecycle, which is the field "workflow" of the config.
func (l *Lifecycle[E]) Name() string { return l.inner.Name() }

// Action sets the function that executes a step. It runs without an open transaction: it writes to the database
// through [Act.WriteTx], and performs external side effects through [holdfast.Effect]. Declare an action that has other side effects
// as [Opaque] or [Idempotent]; the package documentation says what a crash means without a declaration. If the name is empty or f is nil,
// [holdfast.Open] returns [holdfast.ErrValidation]; if the name is already used, [holdfast.ErrConflict].
func (l *Lifecycle[E]) Action(name string, f func(context.Context, *Act[E]) error, o ...HandlerOption) *Lifecycle[E] {
	return l.handle("action", name, f, o)
}

// Validation sets a function that runs before an action. It returns [holdfast.Invalid] to refuse the step. Any other
// error means that the step could not be validated: the caller gets [holdfast.ErrActionFailed] and may fire it again.
func (l *Lifecycle[E]) Validation(name string, f func(context.Context, *Act[E]) error, o ...HandlerOption) *Lifecycle[E] {
	return l.handle("validation", name, f, o)
}

// AfterEffect sets a function that runs after a step has been committed. The after-effect is delivered at least once,
// always with the same operation, and its writes through [Act.WriteTx] are applied once. A failed after-effect is
// delivered again ([WithRetry]). After its last attempt, it is blocked, but only for this entity. To continue it, use
// stream.Unblock or stream.Skip; its reaction is named $after:<lifecycle>:<handler>.
func (l *Lifecycle[E]) AfterEffect(name string, f func(context.Context, *Act[E]) error, o ...HandlerOption) *Lifecycle[E] {
	return l.handle("afterEffect", name, f, o)
}

// RecoveredBy sets the janitors that recover claims left by crashes. Without arguments, it selects the standard
// janitor. [ModuleJanitor] does the same for all lifecycles of a module.
func (l *Lifecycle[E]) RecoveredBy(by ...Janitor) *Lifecycle[E] {
	if slices.Contains(by, nil) {
		l.bad = errors.Join(l.bad, noJanitor(l.Name()))
	}
	l.inner.Covered(mapped(by, recovering)...)
	return l
}

// InWorkspaces restricts the lifecycle to the given workspaces: it is registered in these workspaces when the engine
// opens, and refused in all others. Without it, the lifecycle is registered in "default" when the engine opens, and in
// any other workspace when it is first used there. An empty list is an error.
func (l *Lifecycle[E]) InWorkspaces(workspaces ...string) *Lifecycle[E] {
	l.inner.In(workspaces...)
	return l
}

// run adapts a handler function for the engine.
func run[E any](f func(context.Context, *Act[E]) error) func(context.Context, *lifecycleengine.Act) error {
	return func(ctx context.Context, a *lifecycleengine.Act) error {
		e, err := typed[E](a.Entity)
		if err != nil {
			return err
		}
		return f(ctx, &Act[E]{Entity: e, Step: a.Step, Requester: a.Requester, Operation: a.Operation, Attempt: a.Attempt, Input: a.Input, inner: a})
	}
}

// Register is called by [holdfast.Open]. It refuses a config that violates a rule, a handler option that is invalid, and
// a claim that no janitor covers.
func (l *Lifecycle[E]) Register(ctx context.Context, e *holdfast.Engine) error {
	if l.bad != nil {
		return l.bad
	}
	return l.inner.Start(ctx, engine.Of(e))
}

// check checks the lifecycle before any part is registered, so that [holdfast.Open] reports the problems of all
// lifecycles together.
func (l *Lifecycle[E]) check(e *engine.Engine) error { return errors.Join(l.bad, l.inner.Check(e)) }

// Fire executes a step of an entity on behalf of a requester, and returns the resulting entity. The entity beside an
// error is the stored one as far as it is known, else the zero value; it never has changes that were rolled back.
//
// If another operation is in progress, the error is [holdfast.ErrClaimFailed], and nothing is changed. If the step does
// not exist in the entity's status, the error is [holdfast.ErrInvalidTransition]; if the requester may not fire it,
// [holdfast.ErrForbidden]. If the validation or the action refuses, the error is [holdfast.ErrActionInvalid]. If the
// action or the validation fails, the error is [holdfast.ErrActionFailed], which wraps the handler's own error. A panic in
// the action propagates after the claim has been released.
//
// If ctx ends, an action that respects its context stops. The claim is released even if the action does not stop.
//
// In a handler of idem.Middleware, the operation belongs to the request's key. If the handler runs again under the
// same key after a crash, Fire returns the outcome of the operation that the handler began before, with the current
// entity. While that operation is in flight, the error is [holdfast.ErrKeyInFlight]. If another request has taken
// over the key, the error is [holdfast.ErrLeaseLost].
func (l *Lifecycle[E]) Fire(ctx context.Context, e *holdfast.Engine, id, step, requester string, o ...FireOption) (Entity[E], error) {
	return shown[E](l.inner.Fire(ctx, engine.Of(e), id, step, requester, fireOptions(o)))
}
