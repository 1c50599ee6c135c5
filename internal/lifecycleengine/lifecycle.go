// Package lifecycleengine runs lifecycles: it claims entities, runs the handlers of their steps and recovers from crashes.
// Package lifecycle wraps it for entities of one Go type. The HTTP API uses it directly: here, data is JSON.
//
// Its files form layers, and each layer calls mostly those below it (internal/archtest lists the layers and limits the
// exceptions). From the lowest to the highest:
//
//   - A [Lifecycle] is a config with its handlers (lifecycle.go, steps.go, entity.go, body.go).
//   - A bound lifecycle belongs to an engine. Its entity store is Holdfast's own table (table.go) or a table of the user's
//     (usertable.go). The events of an entity record the outcome of its operations (history.go), and after-effects follow
//     these events.
//   - A config is in force in a workspace (inforce.go, register.go). Lifecycles published through the API are built by the
//     published set (published.go). The registry contains all lifecycles of an engine.
//   - An operation is claimed with a plan (plan.go) and executed in attempts (attempt.go), which end it (attempt_end.go).
//   - Steps are fired or claimed manually, under the idempotency key of a request if there is one (fire.go, claim.go,
//     idempotency.go). Operators end operations (operations.go), and workers execute them (tasks.go).
//   - An engine discovers published lifecycles (publish.go), resumes due operations and releases expired leases
//     (background.go).
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

// Lifecycle is a config with its handlers, for entities whose data is arbitrary JSON. Package lifecycle wraps it.
type Lifecycle struct {
	config     *lifecycleconfig.Config
	text       string
	handlers   map[string]*handler
	janitors   []Janitor
	standard   bool // the standard janitor, which only reverts entities, is requested
	workspaces []string
	// bound is set for a lifecycle that was published through the API. Such a
	// lifecycle belongs to one workspace of one engine.
	bound *bound
	bad   error // of a declared handler or workspace list, returned by Check and Start
}

// Parse reads a config in JSON or YAML.
func Parse(config []byte) (*Lifecycle, error) {
	c, violations, _ := lifecycleconfig.Check(config, nil)
	if len(violations) > 0 {
		return nil, invalidConfig(violations)
	}
	return &Lifecycle{config: c, text: string(config), handlers: map[string]*handler{}}, nil
}

// invalidConfig returns the error for a config that breaks rules.
func invalidConfig(all []lifecycleconfig.Violation) error {
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
	f.Message = "invalid lifecycle config: " + b.String()
	return f
}

// Name returns the name of the lifecycle, which is the config's workflow.
func (l *Lifecycle) Name() string { return l.config.Workflow }

// Source returns the config text as it was passed to [Parse].
func (l *Lifecycle) Source() []byte { return []byte(l.text) }

// Statuses returns the statuses that the config names.
func (l *Lifecycle) Statuses() []string { return slices.Clone(l.config.StatusTypes) }

// In adds workspaces that the lifecycle is for. An empty list is an error, because it would restrict nothing.
func (l *Lifecycle) In(workspaces ...string) {
	if len(workspaces) == 0 {
		l.bad = fault.New(fault.Validation, "lifecycle %q: InWorkspaces has no workspaces: name them, or omit InWorkspaces to allow every workspace", l.Name())
	}
	l.workspaces = append(l.workspaces, workspaces...)
}

// initialSpaces returns the workspaces in which the lifecycle is registered when the engine opens. If it is for every
// workspace, the others follow on first use.
func (c *Lifecycle) initialSpaces() []string {
	if len(c.workspaces) == 0 {
		return []string{store.DefaultWorkspace}
	}
	return c.workspaces
}

// origin returns the stored origin of the config.
func (c *Lifecycle) origin() string {
	if c.bound != nil {
		return originAPI
	}
	return originProgram
}

// The origins of a config, as they are stored.
const (
	originProgram = "program"
	originAPI     = "door"
)

// originText describes the origin of a config, for error messages.
var originText = map[string]string{originProgram: "is defined by a program", originAPI: "was published through the API"}

// Declared holds the options that a program declares for a handler.
type Declared struct {
	Safety  lifecycleconfig.Safety
	Timeout time.Duration                // the limit of one call
	After   *lifecycleconfig.AfterEffect // delivery options of an after-effect, if the program sets them
}

// handler is a named function of the user's, or a remote handler.
type handler struct {
	lifecycleconfig.Handler
	name string
	body body
	// queue is the queue that the handler's workers poll; it is empty for a handler
	// that is called. unknown is the policy of a remote handler for an effect with an unknown
	// outcome.
	queue   string
	unknown effects.Policy
	missing bool                         // a config names it, but no declaration exists
	after   *lifecycleconfig.AfterEffect // Declared.After
}

// body is a handler's code.
type body func(context.Context, *work) error

func (c *Lifecycle) add(kind, name string, b body, d Declared) {
	if name == "" {
		c.bad = fault.New(fault.Validation, "lifecycle %q: a handler has an empty name: give each handler its own name", c.config.Workflow)
		return
	}
	if c.handlers[name] != nil {
		c.bad = fault.New(fault.Conflict, "lifecycle %q: handler %q is registered twice: give each handler its own name", c.config.Workflow, name)
		return
	}
	if d.Timeout < 0 {
		c.bad = fault.New(fault.Validation, "lifecycle %q: the timeout of handler %q must not be negative, got %s", c.config.Workflow, name, d.Timeout)
		return
	}
	c.handlers[name] = &handler{Handler: lifecycleconfig.Handler{Kind: kind, Safety: d.Safety, Timeout: d.Timeout}, name: name, body: b, after: d.After}
}

// declared returns the handlers that have a declaration.
func (c *Lifecycle) declared() map[string]lifecycleconfig.Handler {
	known := make(map[string]lifecycleconfig.Handler, len(c.handlers))
	for name, h := range c.handlers {
		if !h.missing {
			known[name] = h.Handler
		}
	}
	return known
}

// Janitor is a module's own recovery after crashes; lifecycle.Janitor documents it.
type Janitor struct {
	Recover func(context.Context, *store.Tx, []Stuck) error
	Covers  func() []string // claim statuses; nil means all
}

// Stuck is a claim whose lease expired.
type Stuck struct {
	Lifecycle, ID   string
	Claimed, Revert string // the statuses before and after the recovery; equal for a claim that keeps the status
	Operation       string
	Step, Requester string
	Holder          string
	Since           time.Time
}

// Covered declares that expired claims are recovered: by the given janitors, or by the standard janitor if none is given.
func (l *Lifecycle) Covered(by ...Janitor) {
	l.janitors, l.standard = append(l.janitors, by...), l.standard || len(by) == 0
}

// Coverage is how expired claims are recovered: by the standard janitor, or by janitors of the program.
type Coverage struct {
	Standard bool
	Janitors []Janitor
}

// checkClaimsRecovered refuses a lifecycle with a claim that nothing recovers after a crash: neither a janitor of the
// lifecycle nor one of its module.
func (c *Lifecycle) checkClaimsRecovered(module Coverage) error {
	if c.standard || c.config.Janitor != nil || module.Standard {
		return nil
	}
	var uncovered []string
	for _, claim := range c.config.Claims() {
		if c.janitorFor(module, claim.Into) == nil {
			uncovered = append(uncovered, claim.Into)
		}
	}
	if len(uncovered) == 0 {
		return nil
	}
	return fault.New(fault.Validation,
		"lifecycle %q has the claim statuses %s, but no janitor recovers them after a crash: call RecoveredBy in module %q, register a ModuleJanitor for the module, or add janitor: {} to the config",
		c.config.Workflow, strings.Join(uncovered, ", "), c.config.OwningModule).
		With("workflow", c.config.Workflow).With("states", uncovered).With("module", c.config.OwningModule)
}

// janitorFor returns the janitor of the lifecycle, or else of its module, for a claim status, or nil.
func (c *Lifecycle) janitorFor(module Coverage, into string) *Janitor {
	for _, j := range slices.Concat(c.janitors, module.Janitors) {
		if j.Covers == nil || slices.Contains(j.Covers(), into) {
			return &j
		}
	}
	return nil
}
