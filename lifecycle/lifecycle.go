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
// settles: what the body wrote through [Act.Commit], the status, the version, the
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
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
)

// Lifecycle is a config with its handlers, for entities whose data is an E. It
// knows no engine: handed to [holdfast.Open] it starts there. Handlers are added
// before that. Safe for concurrent use afterwards.
type Lifecycle[E any] struct{ *core }

// Violation is a rule that a config breaks.
type Violation = lifecycles.Violation

// Parse reads a config, JSON or YAML. The error tells every violation that can be
// seen without the handlers, in [fault.Error.Violations].
func Parse[E any](config []byte) (*Lifecycle[E], error) {
	c, violations, _ := lifecycles.Check(config, nil)
	if len(violations) > 0 {
		return nil, refused(violations)
	}
	return &Lifecycle[E]{&core{config: c, text: string(config), handlers: map[string]*handler{}}}, nil
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

// refused is the error of a config that breaks rules.
func refused(all []Violation) error {
	var b strings.Builder
	f := fault.New(fault.Validation, "")
	for i, v := range all {
		if i > 0 {
			b.WriteString("; ")
		}
		if v.Line > 0 {
			fmt.Fprintf(&b, "line %d: ", v.Line)
		}
		fmt.Fprintf(&b, "%s %s: %s", v.Rule, v.Path, v.Message)
		f.Violations = append(f.Violations, fault.Violation{Rule: v.Rule, Path: v.Path, Line: v.Line, Message: v.Message})
	}
	f.Message = "the lifecycle's config is refused: " + b.String()
	return f
}

// Name is the name of the lifecycle: the config's workflow.
func (l *Lifecycle[E]) Name() string { return l.config.Workflow }

// Action sets what a step does. It holds no transaction: what it writes to the
// database goes through [Act.Commit], what it does to the world outside through
// [holdfast.Effect]. It panics if the name is taken: that is a mistake in wiring.
func (l *Lifecycle[E]) Action(name string, f func(context.Context, *Act[E]) error, o ...HandlerOption) *Lifecycle[E] {
	l.add("action", name, run(f), o)
	return l
}

// Validation sets what is asked before an action. It returns [holdfast.Invalid] to
// refuse.
func (l *Lifecycle[E]) Validation(name string, f func(context.Context, *Act[E]) error, o ...HandlerOption) *Lifecycle[E] {
	l.add("validation", name, run(f), o)
	return l
}

// AfterEffect sets what follows the commit of a step: it is delivered at least
// once, with the same operation each time, and what it commits applies once. One that
// fails is delivered again ([Retry]); past that it is blocked, by itself, until it is
// unblocked or skipped (stream.Unblock, under the name $after:<workflow>:<handler>).
func (l *Lifecycle[E]) AfterEffect(name string, f func(context.Context, *Act[E]) error, o ...HandlerOption) *Lifecycle[E] {
	l.add("afterEffect", name, run(f), o)
	return l
}

// Covered says that what crashes leave of this lifecycle is freed: by the janitors
// named, or, if none is, by the standard one.
func (l *Lifecycle[E]) Covered(by ...Janitor) *Lifecycle[E] {
	l.janitors, l.standard = append(l.janitors, by...), l.standard || len(by) == 0
	return l
}

// In names the workspaces that the lifecycle is for: it is registered there when the
// engine opens, and refused elsewhere. Without it, it is registered in a workspace
// when it is first used there, and in "default" at once.
func (l *Lifecycle[E]) In(workspaces ...string) *Lifecycle[E] {
	l.workspaces = append(l.workspaces, workspaces...)
	return l
}

// run makes a body of a handler.
func run[E any](f func(context.Context, *Act[E]) error) body {
	return func(ctx context.Context, w *work) error {
		e, err := public[E](w.entity)
		if err != nil {
			return err
		}
		return f(ctx, &Act[E]{Entity: e, Step: w.step, Requester: w.requester, Operation: w.operation, Attempt: w.attempt, Input: w.input, w: w})
	}
}

// Start is called by [holdfast.Open]. It refuses a config that breaks a rule, and
// a claim that nobody covers.
func (l *Lifecycle[E]) Start(ctx context.Context, e *holdfast.Engine) error {
	return l.start(ctx, engine.Of(e))
}
