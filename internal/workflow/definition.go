// Package workflow defines the definition of a workflow: the steps of a run, their order, and the
// conditions between them. It parses and lints definitions and evaluates their expressions, and does
// not access the database.
package workflow

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// Definition is a workflow definition. It does not change after it is built.
type Definition struct {
	Name, Version string
	// Retention is how long a run is stored after its end; 0 means the engine's default.
	Retention time.Duration
	Steps     []Step

	source configdoc.Source
}

// ID returns the id of a definition. A name and version are unique.
func (d *Definition) ID() string { return d.Name + "@" + d.Version }

// Type is the type of a step.
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

// End stands for the end of the run in place of a step name.
const End = "end"

// Step is one step. Its fields depend on its type.
type Step struct {
	Name string
	Type Type
	// Next is the next step; "" means the following one.
	Next string
	// OnFailure is the next step after a permanent failure; "" fails the run.
	OnFailure string
	// OnTimeout is the next step after a timeout; "" means OnFailure.
	OnTimeout string
	// Timeout limits one attempt, or the wait for a signal or decision; 0 means the default, or
	// no limit.
	Timeout time.Duration
	Retry   Retry

	Handler   string // of a task
	Safety    string // of a task or a call: idempotent, transactional, journaled, opaque; "" means the handler's
	OnUnknown string // retry, probe or hold; "" means the handler's
	Input     Value  // of a task, where empty means the run's input, or of a transition

	Duration time.Duration // of a wait
	Until    Value         // of a wait: a time, or an expression that returns one

	Signal string // of an event

	Prompt     Value    // of an approval
	Requesters []string // of an approval: the requesters that may decide; empty means any
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

// Value is JSON that may contain expressions: a string that begins with = is one. A string that begins
// with == stands for a string that begins with =.
type Value json.RawMessage

// Retry is the retry policy of a step.
type Retry struct {
	MaxAttempts int           // 1 to 20, including the first; 0 means 3
	Backoff     time.Duration // the pause after the first failure; 0 means a second
	Multiplier  float64       // 0 means 2
	MaxBackoff  time.Duration // 0 means five minutes
}

// Limits of definitions.
const (
	MaxSteps    = 500
	MaxAttempts = 20
)

// Find returns the index of a step, or -1.
func (d *Definition) Find(name string) int {
	for i := range d.Steps {
		if d.Steps[i].Name == name {
			return i
		}
	}
	return -1
}

// After returns the step after the one at i, or "end".
func (d *Definition) After(i int) string {
	switch {
	case d.Steps[i].Next != "":
		return d.Steps[i].Next
	case i+1 < len(d.Steps):
		return d.Steps[i+1].Name
	}
	return End
}

// Handlers returns the names of the handlers that tasks call, sorted and without duplicates.
func (d *Definition) Handlers() (names []string) {
	for i := range d.Steps {
		if s := &d.Steps[i]; s.Type == Task && s.Handler != "" {
			names = append(names, s.Handler)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Violation is a rule that a definition breaks or, as a warning, is likely to break.
type Violation = configdoc.Violation

// LooksAt reports whether a step is a condition that refers to another.
func (d *Definition) LooksAt(step, other string) bool {
	i := d.Find(step)
	if i < 0 || d.Steps[i].Type != Condition {
		return false
	}
	e, err := Compile(d.Steps[i].If)
	return err == nil && e.Mentions(other)
}
