package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

// Definition is a workflow. Of a name and version there is one, and it is not changed: a
// run keeps the definition that it was started with. It is safe for concurrent use.
type Definition struct {
	def      *workflow.Definition
	bad      error
	handlers map[string]*handler
}

// handler is code that does a step.
type handler struct {
	runengine.Handled
	body runengine.Body
}

// Step is a step of a definition; [Task] and the others make them.
type Step struct {
	spec workflow.Step
	own  *handler
	bad  error
}

// StepOption is an option of a step.
type StepOption func(*Step)

// Define makes a definition of steps, which are taken in this order unless they say
// otherwise. What is wrong with it is told by [Serve] and [Definition.Start].
func Define(name, version string, steps ...Step) *Definition {
	d := &Definition{def: &workflow.Definition{Name: name, Version: version}, handlers: make(map[string]*handler)}
	for _, s := range steps {
		if s.bad != nil && d.bad == nil {
			d.bad = fmt.Errorf("the step %q: %w", s.spec.Name, s.bad)
		}
		if s.own != nil {
			s.spec.Handler = d.def.ID() + "/" + s.spec.Name
			d.handlers[s.spec.Handler] = s.own
		}
		d.def.Steps = append(d.def.Steps, s.spec)
	}
	return d.checked()
}

// Retention is how long runs of a definition are kept beyond their end; without it, it is what
// the engine keeps them for.
func (d *Definition) Retention(how time.Duration) *Definition {
	c := *d.def
	c.Retention = how
	kept := &Definition{def: &c, bad: d.bad, handlers: d.handlers}
	if how < time.Millisecond && kept.bad == nil {
		kept.bad = fault.New(fault.Validation, "runs are kept for a millisecond at the least: %s", how)
	}
	return kept.checked()
}

// Parse reads a definition from JSON or YAML. Its tasks name handlers: functions that are
// given by [Handle], or what is declared through the API.
func Parse(data []byte) (*Definition, error) {
	def, violations := workflow.Parse(data)
	if len(violations) > 0 {
		return nil, refused(violations)
	}
	d := (&Definition{def: def, handlers: make(map[string]*handler)}).checked()
	return d, d.bad
}

// MustParse is [Parse], and panics where the text is no definition.
func MustParse(data []byte) *Definition {
	d, err := Parse(data)
	if err != nil {
		panic(err)
	}
	return d
}

func (d *Definition) checked() *Definition {
	if d.bad == nil {
		// Read back, so that what is written in Go is judged as what is written in JSON.
		def, violations := workflow.Parse(d.def.JSON())
		if len(violations) == 0 {
			violations, _ = def.Lint(workflow.Known{})
		}
		if d.bad = refused(violations); d.bad == nil {
			d.def = def
		}
	}
	return d
}

// refused is the error of a definition that breaks rules.
func refused(violations []workflow.Violation) error {
	if len(violations) == 0 {
		return nil
	}
	var lines []string
	for _, v := range violations {
		lines = append(lines, fmt.Sprintf("%s %s: %s", v.Rule, v.Path, v.Message))
	}
	return fault.New(fault.Validation, "the definition breaks %d rules:\n%s", len(violations), strings.Join(lines, "\n")).With("violations", violations)
}

// ID names the definition: name@version.
func (d *Definition) ID() string { return d.def.ID() }

// JSON is the definition as text.
func (d *Definition) JSON() []byte { return d.def.JSON() }

// Handle gives the code for a handler that the definition's tasks name.
func Handle[I, O any](d *Definition, name string, f func(context.Context, I) (O, error), o ...StepOption) *Definition {
	s := Step{own: &handler{body: bodyOf(f)}}
	for _, set := range o {
		set(&s)
	}
	s.own.Safety, s.own.Unknown, s.own.Timeout = s.spec.Safety, s.spec.OnUnknown, s.spec.Timeout
	all := maps.Clone(d.handlers)
	all[name] = s.own
	bad := d.bad
	if bad == nil {
		bad = s.bad
	}
	if bad == nil && !slices.Contains(d.def.Handlers(), name) {
		bad = fault.New(fault.Validation, "the definition %s names no handler %q", d.ID(), name)
	}
	return &Definition{def: d.def, bad: bad, handlers: all}
}

// Task is a step that a function does. It is given the run's input, unless [Input] says
// otherwise, and what it returns is the step's output. It may run again when its worker
// dies: say by [Idempotent], [Transactional], [Journaled] or [Opaque] what that does.
func Task[I, O any](name string, f func(context.Context, I) (O, error), o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Task}, own: &handler{body: bodyOf(f)}}, o)
}

// Remote is a step that a handler does which is declared through the API.
func Remote(name, handler string, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Task, Handler: handler}}, o)
}

// Wait waits for so long.
func Wait(name string, d time.Duration, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Wait, Duration: d}}, o)
}

// Until waits until a time: RFC 3339, or an expression behind =, such as "=state.due".
func Until(name, when string, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Wait, Until: text(when)}}, o)
}

// Signal waits for a signal, which [Send] sends, for so long; 0 is for ever. One that came
// before counts. Its payload is the step's output.
func Signal(name, signal string, timeout time.Duration, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Event, Signal: signal, Timeout: timeout}}, o)
}

// Approval waits for somebody to [Decide], for so long; 0 is for ever. The step's output is
// the decision. A rejection goes where [OnReject] says; without it, a condition that follows
// and looks at the decision says what to do, and if there is none, the step has failed.
func Approval(name, prompt string, timeout time.Duration, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Approval, Prompt: text(prompt), Timeout: timeout}}, o)
}

// If goes on with one step or the other; "" is the one that follows, "end" the end.
func If(name, expr, then, otherwise string, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Condition, If: expr, Then: then, Else: otherwise}}, o)
}

// Call calls a URL, with the step's operation as Idempotency-Key. An engine does that which
// is given [Calls].
func Call(name, method, url string, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.HTTP, Method: method, URL: text(url)}}, o)
}

// Fire does a step of a lifecycle's entity, on behalf of a requester: once for a visit of
// this step.
func Fire(name, lifecycle, entity, step, as string, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Transition, Lifecycle: lifecycle, Entity: text(entity), StepKey: step, Requester: as}}, o)
}

func made(s Step, o []StepOption) Step {
	for _, set := range o {
		set(&s)
	}
	if s.own != nil {
		s.own.Safety, s.own.Unknown, s.own.Timeout = s.spec.Safety, s.spec.OnUnknown, s.spec.Timeout
	}
	return s
}

func text(s string) workflow.Value {
	v, _ := json.Marshal(s) // of a string, it does not fail
	return v
}

// Next is the step behind this one, if it is not the one that follows; "end" is the end.
func Next(step string) StepOption { return func(s *Step) { s.spec.Next = step } }

// OnFailure is where the run goes on if the step fails for good; without it, the run fails.
func OnFailure(step string) StepOption { return func(s *Step) { s.spec.OnFailure = step } }

// OnTimeout is where the run goes on if nobody comes in time; without it, as for [OnFailure].
func OnTimeout(step string) StepOption { return func(s *Step) { s.spec.OnTimeout = step } }

// OnReject is where the run goes on behind a rejection.
func OnReject(step string) StepOption { return func(s *Step) { s.spec.OnReject = step } }

// For says on whose behalf an approval may be decided.
func For(requesters ...string) StepOption { return func(s *Step) { s.spec.Requesters = requesters } }

// WithRetry says how often a step is attempted; by default 3 times.
func WithRetry(p holdfast.RetryPolicy) StepOption {
	return func(s *Step) { s.spec.Retry = workflow.Retry(p) }
}

// Timeout is how long one attempt may take; the default is 15 minutes.
func Timeout(d time.Duration) StepOption { return func(s *Step) { s.spec.Timeout = d } }

// Input is what a step is given to work with: JSON, in which a text that begins with = is an
// expression.
func Input(v any) StepOption {
	return func(s *Step) { s.spec.Input = s.kept("input", v) }
}

// Body is what a [Call] sends, as [Input].
func Body(v any) StepOption {
	return func(s *Step) { s.spec.Body = s.kept("body", v) }
}

// kept is a value as JSON.
func (s *Step) kept(what string, v any) workflow.Value {
	data, err := json.Marshal(v)
	if err != nil {
		s.bad = fault.New(fault.Validation, "its %s cannot be kept as JSON: %v", what, err)
	}
	return data
}

// Header is a header that a [Call] sends.
func Header(name, value string) StepOption {
	return func(s *Step) {
		all := maps.Clone(s.spec.Headers)
		if all == nil {
			all = make(map[string]workflow.Value)
		}
		all[name] = text(value)
		s.spec.Headers = all
	}
}

// Idempotent says that a step may be done again.
func Idempotent() StepOption { return safety("idempotent") }

// Transactional says that a step writes only through [WriteTx].
func Transactional() StepOption { return safety("transactional") }

// Journaled says that a step's side effects go through [holdfast.Effect].
func Journaled() StepOption { return safety("journaled") }

// Opaque says that a step acts, and journals nothing: once it has begun, only itself or a
// person can say what happened.
func Opaque() StepOption { return safety("opaque") }

func safety(how string) StepOption { return func(s *Step) { s.spec.Safety = how } }

// OnUnknownRetry says of an opaque step that it is done again where nothing is known of it:
// the other side honours its key, which is the same for every attempt.
func OnUnknownRetry() StepOption { return func(s *Step) { s.spec.OnUnknown = "retry" } }
