// Package lifecycleengine is the runtime of package lifecycle, which is its public face for entities of one Go type. The HTTP
// API uses it as it is: data is JSON here.
//
// Its files stand in layers, and call those below (internal/archtest lists and checks them). From the lowest up:
//
//   - A [Lifecycle] is a config with its handlers (lifecycle.go, steps.go, entity.go, body.go).
//   - A site is a lifecycle on an engine. Its ground is where the entities are: Holdfast's table (table.go) or one of the user's
//     own (owntable.go); their events tell what became of an operation (history.go), and after-effects follow them.
//   - A config is in force in a workspace (inforce.go, register.go). Lifecycles that are put through the API are built
//     by the door (published.go). The board has all lifecycles of an engine.
//   - An operation is taken with a plan (plan.go) and done in attempts (attempt.go), which end it (ending.go).
//   - Steps are fired, or claimed by hand, under the key of a request if there is one (fire.go, claim.go, idempotency.go); persons
//     end operations (operations.go), and workers do them (tasks.go).
//   - An engine learns what was put (publish.go), resumes what is due and frees what crashes left (background.go).
package lifecycleengine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Lifecycle is a config with its handlers, for entities whose data is whatever JSON it is. Package lifecycle is its public face.
type Lifecycle struct {
	config     *lifecycleconfig.Config
	text       string
	handlers   map[string]*handler
	janitors   []Janitor
	standard   bool // the standard janitor is asked for
	workspaces []string
	// bound is where a lifecycle is that was put through the door: in one
	// workspace of one engine.
	bound *bound
}

// Parse reads a config, JSON or YAML.
func Parse(config []byte) (*Lifecycle, error) {
	c, violations, _ := lifecycleconfig.Check(config, nil)
	if len(violations) > 0 {
		return nil, refused(violations)
	}
	return &Lifecycle{config: c, text: string(config), handlers: map[string]*handler{}}, nil
}

// refused is the error of a config that breaks rules.
func refused(all []lifecycleconfig.Violation) error {
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

// Source is the config, as it was given.
func (l *Lifecycle) Source() []byte { return []byte(l.text) }

// Statuses are the statuses that the config names.
func (l *Lifecycle) Statuses() []string { return slices.Clone(l.config.StatusTypes) }

// In names the workspaces that the lifecycle is for.
func (l *Lifecycle) In(workspaces ...string) { l.workspaces = append(l.workspaces, workspaces...) }

// spaces are the workspaces that the lifecycle is for.
func (c *Lifecycle) spaces() []string {
	if len(c.workspaces) == 0 {
		return []string{store.DefaultWorkspace}
	}
	return c.workspaces
}

// origin is who brings the config.
func (c *Lifecycle) origin() string {
	if c.bound != nil {
		return "door"
	}
	return "program"
}

// brought says by whom a config was.
var brought = map[string]string{"program": "a program has brought", "door": "was put through the API"}

// Declared is what a program says of a handler.
type Declared struct {
	Safety  lifecycleconfig.Safety
	Timeout time.Duration                // how long it may take
	After   *lifecycleconfig.AfterEffect // how an after-effect is delivered, where the program says it
}

// handler is named user code.
type handler struct {
	lifecycleconfig.Handler
	name string
	body body
	// queue is where its workers take what there is to do; "" is for one that is
	// called. unknown is what they do about an effect of which nothing is known.
	queue   string
	unknown effects.Policy
	missing bool // it is named, and nobody has declared it
	after   *lifecycleconfig.AfterEffect
}

// body is a handler's code.
type body func(context.Context, *work) error

func (c *Lifecycle) add(kind, name string, b body, d Declared) {
	if c.handlers[name] != nil || name == "" {
		panic(fmt.Sprintf("lifecycle: the handler %q is set twice, or has no name", name))
	}
	c.handlers[name] = &handler{Handler: lifecycleconfig.Handler{Kind: kind, Safety: d.Safety, Timeout: d.Timeout}, name: name, body: b, after: d.After}
}

// declared are the handlers that there are.
func (c *Lifecycle) declared() map[string]lifecycleconfig.Handler {
	known := make(map[string]lifecycleconfig.Handler, len(c.handlers))
	for name, h := range c.handlers {
		if !h.missing {
			known[name] = h.Handler
		}
	}
	return known
}

// Janitor is a module's own recovery of what crashes left; lifecycle.Janitor explains it.
type Janitor struct {
	Recover func(context.Context, *store.Tx, []Stuck) error
	Covers  func() []string // claim statuses; nil is all
}

// Stuck is a claim whose holder did not come back.
type Stuck struct {
	Lifecycle, ID   string
	Claimed, Revert string // the statuses that it is put back from and to; the same under a lease
	Operation       string
	Step, Requester string
	Holder          string
	Since           time.Time
}

// Covered says that what crashes leave is freed: by the janitors named, or, if none is, by the standard one.
func (l *Lifecycle) Covered(by ...Janitor) {
	l.janitors, l.standard = append(l.janitors, by...), l.standard || len(by) == 0
}

// covered refuses a lifecycle with a claim that nobody covers.
func (c *Lifecycle) covered() error {
	if c.standard || c.config.Janitor != nil {
		return nil
	}
	var bare []string
	for _, claim := range c.config.Claims() {
		if c.coverer(claim.Into) == nil {
			bare = append(bare, claim.Into)
		}
	}
	if len(bare) == 0 {
		return nil
	}
	return fault.New(fault.Validation,
		"the workflow %q claims %s, and nobody frees that after a crash: the module %q must bring a janitor (Covered), or its config ask for the standard one (janitor: {})",
		c.config.Workflow, strings.Join(bare, ", "), c.config.OwningModule).
		With("workflow", c.config.Workflow).With("states", bare).With("module", c.config.OwningModule)
}

// coverer returns the module's own janitor of a claim status, or nil.
func (c *Lifecycle) coverer(into string) *Janitor {
	for i, j := range c.janitors {
		if j.Covers == nil || slices.Contains(j.Covers(), into) {
			return &c.janitors[i]
		}
	}
	return nil
}
