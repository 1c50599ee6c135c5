package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

// Definition is a workflow. A name and version identify exactly one definition, which never
// changes: a run keeps the definition that it was started with. Call [Definition.Retention] and
// [Handle] before you pass the definition to [holdfast.Open] or start it. After that, it is safe
// for concurrent use.
type Definition struct {
	def      *workflow.Definition
	bad      error
	handlers map[string]*handler
}

// handler is the code that runs a step.
type handler struct {
	runengine.Handled
	body runengine.Body
}

// Step is a step of a definition. [Task], [Wait] and the other step functions create steps.
type Step struct {
	spec   workflow.Step
	own    *handler // the step's own function, or nil
	behind bool     // [RecordBehind]
	bad    error
}

// StepOption is an option of a step. An option that the type of the step does not have, such as [For] of a [Task], makes
// [holdfast.Open] and [Definition.Start] return [holdfast.ErrValidation].
type StepOption struct {
	name  string // of its function
	field string // the field of the step that it sets
	set   func(*Step)
}

// Define makes a definition from steps, which run in this order unless an option such as [Next] sets another order.
// Define does not return an error: if the definition is invalid, [holdfast.Open] and [Definition.Start] return the
// error.
func Define(name, version string, steps ...Step) *Definition {
	d := &Definition{def: &workflow.Definition{Name: name, Version: version}, handlers: make(map[string]*handler)}
	for _, s := range steps {
		if s.bad != nil && d.bad == nil {
			d.bad = fmt.Errorf("step %q: %w", s.spec.Name, s.bad)
		}
		if s.own != nil {
			s.spec.Handler = d.def.ID() + "/" + s.spec.Name
			d.handlers[s.spec.Handler] = s.own
		}
		d.def.Steps = append(d.def.Steps, s.spec)
	}
	return d.checked()
}

// Retention sets how long finished runs of the definition are retained (at least a millisecond), and returns
// the definition. Without it, the engine's [Retention] applies; a definition cannot choose to retain its runs forever if
// the engine has one. If the duration is invalid, [holdfast.Open] and
// [Definition.Start] return [holdfast.ErrValidation]; if the definition has a retention already, [holdfast.ErrConflict].
func (d *Definition) Retention(retention time.Duration) *Definition {
	switch {
	case d.bad != nil:
	case retention < time.Millisecond:
		d.bad = fault.New(fault.Validation, "the retention of runs must be at least 1ms, got %s", retention)
	case d.def.Retention != 0:
		d.bad = fault.New(fault.Conflict, "definition %s has two retentions: set its retention once", d.ID())
	}
	d.def.Retention = retention
	return d.checked()
}

// Parse reads a definition from JSON or YAML. Its tasks name handlers: functions that [Handle]
// adds, or handlers that are declared through the API. If the definition is invalid, Parse returns
// [holdfast.ErrValidation], with the violated rules in [fault.Error.Violations].
func Parse(data []byte) (*Definition, error) {
	def, violations := workflow.Parse(data)
	if len(violations) > 0 {
		return nil, refused(violations)
	}
	d := (&Definition{def: def, handlers: make(map[string]*handler)}).checked()
	return d, d.bad
}

// MustParse is like [Parse], but panics if the definition is invalid.
func MustParse(data []byte) *Definition {
	d, err := Parse(data)
	if err != nil {
		panic(err)
	}
	return d
}

// checked checks the definition, unless it has an error already, and returns it.
func (d *Definition) checked() *Definition {
	if d.bad == nil {
		// Parse the JSON form, so that definitions in Go and in JSON pass the same checks.
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

// refused returns the error for a definition that breaks rules, or nil if there are none.
func refused(violations []workflow.Violation) error {
	if len(violations) == 0 {
		return nil
	}
	var lines []string
	var all []fault.Violation
	for _, v := range violations {
		lines = append(lines, fmt.Sprintf("%s %s: %s", v.Rule, v.Path, v.Message))
		all = append(all, fault.Violation{Rule: v.Rule, Path: v.Path, Line: v.Line, Message: v.Message})
	}
	f := fault.New(fault.Validation, "the definition is invalid:\n%s", strings.Join(lines, "\n"))
	f.Violations = all
	return f
}

// ID returns the identifier of the definition: name@version.
func (d *Definition) ID() string { return d.def.ID() }

// JSON returns the definition as JSON.
func (d *Definition) JSON() json.RawMessage { return d.def.JSON() }

// Handle sets the function of a handler that the tasks of the definition refer to by name, and
// returns the definition. Its options are the safety ([Idempotent] and the others), [RecordBehind], [OnUnknownRetry] and
// [Timeout]; the definition itself sets everything else. If it is called with another option or without a function, or if no
// task has the handler, [holdfast.Open] and [Definition.Start] return [holdfast.ErrValidation]; if it is called twice for one name,
// [holdfast.ErrConflict].
func Handle[I, O any](d *Definition, name string, f func(context.Context, I) (O, error), o ...StepOption) *Definition {
	s := made(Step{own: &handler{body: bodyOf(f)}}, o)
	twice := d.handlers[name] != nil
	d.handlers[name] = s.own
	// made has copied these options to s.own. Whatever else is set in s.spec is an option that Handle does not accept.
	s.spec.Safety, s.spec.OnUnknown, s.spec.Timeout = "", "", 0
	switch {
	case d.bad != nil:
	case s.bad != nil:
		d.bad = fmt.Errorf("handler %q: %w", name, s.bad)
	case !reflect.DeepEqual(s.spec, workflow.Step{}):
		d.bad = fault.New(fault.Validation, "handler %q: Handle accepts only a safety option, RecordBehind, OnUnknownRetry and Timeout: set other options in the definition", name)
	case s.own.Timeout < 0 || s.own.Timeout > 24*time.Hour:
		d.bad = fault.New(fault.Validation, "handler %q: Timeout must be between 0 and 24h, got %s", name, s.own.Timeout)
	case twice:
		d.bad = fault.New(fault.Conflict, "definition %s: handler %q has two functions: call Handle once for each name", d.ID(), name)
	case !slices.Contains(d.def.Handlers(), name):
		d.bad = fault.New(fault.Validation, "definition %s has no step with handler %q", d.ID(), name)
	}
	return d
}

// Task is a step that runs a function. f gets the run's input, unless [Input] sets another input. The result of f is
// the step's output. If the node crashes, or f returns an error, f runs again: use [Idempotent], [Transactional],
// [Journaled] or [Opaque] to declare how safe that is. Without a declaration, a task is treated as idempotent.
func Task[I, O any](name string, f func(context.Context, I) (O, error), o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Task}, own: &handler{body: bodyOf(f)}}, o)
}

// Remote is a step that runs a handler declared through the API.
func Remote(name, handler string, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Task, Handler: handler}}, o)
}

// Wait is a step that waits for a duration.
func Wait(name string, d time.Duration, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Wait, Duration: d}}, o)
}

// Until is a step that waits until a time: an RFC 3339 timestamp, or an expression that begins
// with =, such as "=state.due".
func Until(name, when string, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Wait, Until: text(when)}}, o)
}

// Signal is a step that waits for a signal, which [Send] sends, until its [Timeout]. A signal that
// arrived before the step began counts too. The payload is the step's output.
func Signal(name, signal string, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Event, Signal: signal}}, o)
}

// Approval is a step that waits for a decision by [Decide] until its [Timeout].
// The step's output is the decision. A rejection continues at [OnReject]. Without OnReject, a
// later condition that inspects the decision chooses the next step; if there is no such
// condition, the step fails.
func Approval(name, prompt string, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Approval, Prompt: text(prompt)}}, o)
}

// If is a step that continues at one of two steps, depending on an expression. The name "" means the next step in
// the definition, and "end" ends the run.
func If(name, expr, then, otherwise string, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Condition, If: expr, Then: then, Else: otherwise}}, o)
}

// Call is a step that calls a URL, with the step's operation as the Idempotency-Key. It requires an engine that was
// opened with [Calls] or with the HTTP API. Without a declared safety, a call with an idempotent method, such as GET, PUT or DELETE, is
// [Idempotent], and any other is [Opaque].
func Call(name, method, url string, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.HTTP, Method: method, URL: text(url)}}, o)
}

// Fire is a step that fires a step of a lifecycle entity on behalf of a requester, once per visit
// of this step.
func Fire(name, lifecycle, entity, step, requester string, o ...StepOption) Step {
	return made(Step{spec: workflow.Step{Name: name, Type: workflow.Transition, Lifecycle: lifecycle, Entity: text(entity), StepKey: step, Requester: requester}}, o)
}

// made applies the options to a step, copies those of its own function to it, and checks their combination.
func made(s Step, o []StepOption) Step {
	var fields []string // that the options set
	for _, option := range o {
		option.set(&s)
		if slices.Contains(fields, option.field) && option.field != "headers" && s.bad == nil {
			s.bad = fault.New(fault.Validation, "%s is passed beside an option that sets the same (%s): remove one of them", option.name, option.field)
		}
		fields = append(fields, option.field)
		if t := s.spec.Type; t != "" && !t.Has(option.field) && s.bad == nil { // the step of Handle has no type
			s.bad = fault.New(fault.Validation, "%s has no effect on a step of type %s: remove it", option.name, t)
		}
	}
	if s.own != nil && s.own.body == nil && s.bad == nil {
		s.bad = fault.New(fault.Validation, "it has no function: pass one")
	}
	if s.own != nil {
		s.own.Safety, s.own.Unknown, s.own.Timeout, s.own.Behind = s.spec.Safety, s.spec.OnUnknown, s.spec.Timeout, s.behind
	}
	// The step of Handle has no type: the definition may declare its safety.
	if s.own != nil && s.bad == nil && s.spec.OnUnknown != "" && s.spec.Safety != "opaque" && (s.spec.Safety != "" || s.spec.Type == workflow.Task) {
		s.bad = fault.New(fault.Validation, "step %q: OnUnknownRetry is an option of an opaque task: a task that is %s has no unknown outcome of its own; pass holdfast.OnUnknownRetry to its effects", s.spec.Name, cmp.Or(s.spec.Safety, "idempotent"))
	}
	if s.bad == nil && s.spec.Type == workflow.HTTP && s.spec.OnUnknown != "" && cmp.Or(s.spec.Safety, runengine.CallSafety(s.spec.Method)) == "idempotent" {
		s.bad = fault.New(fault.Validation, "OnUnknownRetry has no effect on a call that is idempotent, because such a call is repeated anyway: remove it")
	}
	if s.behind && s.bad == nil && (s.own == nil || s.spec.Safety != "idempotent") {
		s.bad = fault.New(fault.Validation, "RecordBehind is an option of Task and Handle, for a task that is Idempotent: add Idempotent, or remove RecordBehind")
	}
	return s
}

func text(s string) workflow.Value {
	v, _ := json.Marshal(s) // never fails for a string
	return v
}

// Next sets the step to run after this one, instead of the next step in the definition; "end" ends
// the run.
func Next(step string) StepOption {
	return StepOption{"Next", "next", func(s *Step) { s.spec.Next = step }}
}

// OnFailure sets the step at which the run continues if this step fails permanently. Without it,
// the run fails.
func OnFailure(step string) StepOption {
	return StepOption{"OnFailure", "onFailure", func(s *Step) { s.spec.OnFailure = step }}
}

// OnTimeout sets the step at which the run continues if the signal or decision does not arrive in
// time. Without it, the timeout is handled as a failure ([OnFailure]).
func OnTimeout(step string) StepOption {
	return StepOption{"OnTimeout", "onTimeout", func(s *Step) { s.spec.OnTimeout = step }}
}

// OnReject sets the step at which the run continues after a rejection.
func OnReject(step string) StepOption {
	return StepOption{"OnReject", "onReject", func(s *Step) { s.spec.OnReject = step }}
}

// For sets the requesters on whose behalf an approval may be decided. Without it, every requester may decide. An empty
// list is an error.
func For(requesters ...string) StepOption {
	return StepOption{"For", "requesters", func(s *Step) {
		if s.spec.Requesters = requesters; len(requesters) == 0 {
			s.bad = fault.New(fault.Validation, "step %q: For has no requesters: name them, or omit For to let every requester decide", s.spec.Name)
		}
	}}
}

// WithRetry sets how many times a step is attempted, and the pauses between attempts. The default
// is 3 attempts. Crashes are not attempts: a step whose holders have crashed 5 times fails or, if the outcome of an
// effect is unknown, waits for [Resolve]. This limit is fixed. The pauses after crashes begin at a second and
// double.
func WithRetry(p holdfast.RetryPolicy) StepOption {
	return StepOption{"WithRetry", "retry", func(s *Step) { s.spec.Retry = workflow.Retry(p) }}
}

// Timeout limits the duration of one attempt. The default is 15 minutes. An attempt that exceeds it has failed. The timeout
// of [Signal] and [Approval] limits the wait; by default they wait forever.
func Timeout(d time.Duration) StepOption {
	return StepOption{"Timeout", "timeoutMs", func(s *Step) { s.spec.Timeout = d }}
}

// Input sets the input of a step: a value that is encoded as JSON, in which a string that begins
// with = is an expression.
func Input(v any) StepOption {
	return StepOption{"Input", "input", func(s *Step) { s.spec.Input = s.encoded("input", v) }}
}

// Body sets the body that a [Call] sends. The body may contain expressions, as described for [Input].
func Body(v any) StepOption {
	return StepOption{"Body", "body", func(s *Step) { s.spec.Body = s.encoded("body", v) }}
}

// encoded encodes a value as JSON and records an encoding error on the step.
func (s *Step) encoded(what string, v any) workflow.Value {
	data, err := json.Marshal(v)
	if err != nil {
		s.bad = fault.New(fault.Validation, "the %s cannot be encoded as JSON: %v", what, err)
	}
	return data
}

// Header adds a header to a [Call]. Idempotency-Key and Host are refused: the key is the operation of the step, and the host is
// that of the URL.
func Header(name, value string) StepOption {
	return StepOption{"Header", "headers", func(s *Step) {
		all := maps.Clone(s.spec.Headers)
		if all == nil {
			all = make(map[string]workflow.Value)
		}
		all[name] = text(value)
		s.spec.Headers = all
	}}
}

// Idempotent declares that it is safe to run a step again.
func Idempotent() StepOption { return safety("Idempotent", "idempotent") }

// RecordBehind lets an [Idempotent] task be recorded while the next one already runs, if the next one is declared
// RecordBehind too. A run of several quick tasks then needs fewer commits. After a crash, tasks whose end was not
// recorded yet run again, at most the last 16; if the first of them returns another output this time, the later ones
// get that. Any other step, an effect, [WriteTx] and the end of the run wait until everything before them is recorded.
//
// RecordBehind belongs to the program and not to the stored definition: it can be added and removed without a new
// version. Without Idempotent, and for a step without a function, [holdfast.Open] and [Definition.Start] return
// [holdfast.ErrValidation].
func RecordBehind() StepOption {
	return StepOption{"RecordBehind", "handler", func(s *Step) { s.behind = true }}
}

// Transactional declares that a step writes only through [WriteTx].
func Transactional() StepOption { return safety("Transactional", "transactional") }

// Journaled declares that a step performs its side effects through [holdfast.Effect].
func Journaled() StepOption { return safety("Journaled", "journaled") }

// Opaque declares that a step has side effects that it does not journal: once such a step has begun, only the step
// itself or a person can report what happened.
func Opaque() StepOption { return safety("Opaque", "opaque") }

func safety(name, how string) StepOption {
	return StepOption{name, "safety", func(s *Step) { s.spec.Safety = how }}
}

// OnUnknownRetry retries an opaque step whose outcome is unknown. Use it if the other system
// honors the step's key, which is the same for every attempt.
func OnUnknownRetry() StepOption {
	return StepOption{"OnUnknownRetry", "onUnknown", func(s *Step) { s.spec.OnUnknown = "retry" }}
}
