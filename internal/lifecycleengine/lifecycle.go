// Package lifecycleengine is the runtime of package lifecycle, which is its public face for entities of one Go type. The HTTP
// API uses it as it is: data is JSON here.
//
// From the outside in:
//
//   - [Lifecycle] is a config with its handlers; a site is one on an engine; the board has the sites of an engine.
//   - A step that is fired (fire.go) or claimed by hand (claim.go) is an attempt (attempt.go), under a plan (plan.go).
//   - Where the entity lives is the ground's affair: Holdfast's table (ground.go) or one of the user's own (own.go).
//   - Lifecycles that are put through the API are built by the door (door.go), and their handlers are elsewhere (tasks.go).
//   - What crashes leave is freed by the board's sweeps (board.go, janitor.go), and ended by persons (operations.go).
package lifecycleengine

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
)

// Parse reads a config, JSON or YAML.
func Parse(config []byte) (*Lifecycle, error) {
	c, violations, _ := lifecycles.Check(config, nil)
	if len(violations) > 0 {
		return nil, refused(violations)
	}
	return &Lifecycle{config: c, text: string(config), handlers: map[string]*handler{}}, nil
}

// refused is the error of a config that breaks rules.
func refused(all []lifecycles.Violation) error {
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
func (l *Lifecycle) Name() string { return l.config.Workflow }

// Handle adds a handler of a kind: "action", "validation" or "afterEffect". It panics if the name is taken.
func (l *Lifecycle) Handle(kind, name string, f func(context.Context, *Act) error, o ...HandlerOption) {
	l.add(kind, name, func(ctx context.Context, w *work) error {
		return f(ctx, &Act{Entity: Public(w.entity), Step: w.step, Requester: w.requester, Operation: w.operation, Attempt: w.attempt, Input: w.input, w: w})
	}, o)
}

// Covered says that what crashes leave is freed: by the janitors named, or, if none is, by the standard one.
func (l *Lifecycle) Covered(by ...Janitor) {
	l.janitors, l.standard = append(l.janitors, by...), l.standard || len(by) == 0
}

// In names the workspaces that the lifecycle is for.
func (l *Lifecycle) In(workspaces ...string) { l.workspaces = append(l.workspaces, workspaces...) }

// Start checks the lifecycle and makes it known to an engine that is being opened.
func (l *Lifecycle) Start(ctx context.Context, e *engine.Engine) error { return l.start(ctx, e) }
