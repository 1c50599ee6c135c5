// Package workflow is what a workflow's definition says: which steps a run of it takes,
// in which order, and what decides where it goes on. It reads definitions, judges them, and
// works out their expressions; it knows no database.
package workflow

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// Definition is a workflow. It is not changed once it is made.
type Definition struct {
	Name, Version string
	// Retention is how long a run is kept beyond its end; 0 leaves it to the engine.
	Retention time.Duration
	Steps     []Step

	source configdoc.Source
}

// ID names a definition: there is one of a name and version.
func (d *Definition) ID() string { return d.Name + "@" + d.Version }

// Type is what a step does.
type Type string

// The types of steps.
const (
	Task       Type = "task"
	HTTP       Type = "http"
	Wait       Type = "wait"
	Event      Type = "event"
	Approval   Type = "approval"
	Condition  Type = "condition"
	Transition Type = "transition"
)

// End, in the place of a step's name, is the end of the run.
const End = "end"

// Step is one step. Which fields it may have depends on its type.
type Step struct {
	Name string
	Type Type
	// Next is where the run goes on; "" is the step that is written behind this one.
	Next string
	// OnFailure is where it goes on if this step fails for good; "" fails the run.
	OnFailure string
	// OnTimeout is where it goes on if nobody comes in time; "" is as for OnFailure.
	OnTimeout string
	// Timeout is how long one attempt may take, or how long somebody is waited for; 0 is
	// the default, or for ever.
	Timeout time.Duration
	Retry   Retry

	Handler   string // of a task
	Safety    string // of a task or a call: idempotent, transactional, journaled, opaque; "" as the handler says
	OnUnknown string // retry, probe or hold; "" as the handler says
	Input     Value  // of a task or a transition; none: the run's own input

	Duration time.Duration // of a wait
	Until    Value         // of a wait: a time, or an expression that is one

	Signal string // of an event

	Prompt     Value    // of an approval
	Requesters []string // of an approval: who may decide; none: whoever may decide anything
	OnReject   string   // of an approval

	If         string // of a condition: an expression
	Then, Else string

	Method  string // of a call
	URL     Value
	Headers map[string]Value
	Body    Value

	Lifecycle string // of a transition
	Entity    Value
	StepKey   string
	Requester string
}

// Value is JSON, with expressions in it: a text that begins with = is one. A text that is
// to begin with = begins with two.
type Value json.RawMessage

// Retry says how often a step is tried, and how long it waits in between.
type Retry struct {
	MaxAttempts int           // 1 to 20, the first included; 0 is 3
	Backoff     time.Duration // after the first; 0 is a second
	Multiplier  float64       // 0 is 2
	MaxBackoff  time.Duration // 0 is five minutes
}

// Limits of definitions.
const (
	MaxSteps    = 500
	MaxAttempts = 20
)

// Find returns the place of a step, or -1.
func (d *Definition) Find(name string) int {
	for i := range d.Steps {
		if d.Steps[i].Name == name {
			return i
		}
	}
	return -1
}

// After returns the step that comes behind the one at i, or "end".
func (d *Definition) After(i int) string {
	switch {
	case d.Steps[i].Next != "":
		return d.Steps[i].Next
	case i+1 < len(d.Steps):
		return d.Steps[i+1].Name
	}
	return End
}

// Handlers returns the names of the handlers that tasks call, by rising name, each once.
func (d *Definition) Handlers() (names []string) {
	for i := range d.Steps {
		if s := &d.Steps[i]; s.Type == Task && s.Handler != "" {
			names = append(names, s.Handler)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Violation is a rule that a definition breaks, or, as a warning, comes near to breaking.
type Violation = configdoc.Violation

// LooksAt says whether a step is a condition that looks at another.
func (d *Definition) LooksAt(step, other string) bool {
	i := d.Find(step)
	if i < 0 || d.Steps[i].Type != Condition {
		return false
	}
	e, err := Compile(d.Steps[i].If)
	return err == nil && e.Mentions(other)
}
