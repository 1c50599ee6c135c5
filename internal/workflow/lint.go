package workflow

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// Known holds the names that [Definition.Lint] can check.
type Known struct {
	// Handlers are the handlers that a task may name; nil means that they are unknown and not
	// checked.
	Handlers map[string]Handler
	// Lifecycles returns the steps of a lifecycle by their step_key, and whether the lifecycle
	// exists; nil means that they are unknown.
	Lifecycles func(name string) (steps map[string]bool, ok bool)
	// Secrets are the secrets that headers may refer to; nil means that they are unknown and not checked.
	Secrets map[string]bool
}

// Handler describes a handler.
type Handler struct {
	Kind    string        // "step", or "http" or "worker" for a remote one; "" serves as any
	Safety  string        // "" means undeclared
	Timeout time.Duration // 0: no timeout of its own
}

// Lint checks a definition and reports everything at once.
//
//	D1   names are valid, and step names are unique
//	D2   next, then, else, onFailure, onTimeout and onReject name steps, or end
//	D3   every step can be reached from the first
//	D4   every step leads to the end, and no cycle consists of conditions only, because
//	     it could loop forever
//	D5   handlers exist and can serve as a step
//	D6   expressions are valid, and the steps that they refer to exist
//	D7   a step has the fields of its type, and their values are in range
//	D8   lifecycles and their steps exist
//	D9   references to secrets are in headers of http steps, and the secrets exist
//
// Warnings point to valid but suspicious definitions:
//
//	W1   an event or approval without timeoutMs may wait forever
//	W2   a task or call does not declare its safety
//	W3   a rejection is not handled: it fails the run
//	W4   an expression refers to a step that cannot have run before
//	W5   a credential, or a reference that is not replaced, is stored as text
func (d *Definition) Lint(k Known) (violations, warnings []Violation) {
	l := &linter{Linter: configdoc.NewLinter(d.source), d: d, known: k, index: make(map[string]int)}
	for i := range d.Steps {
		name := d.Steps[i].Name
		if _, taken := l.index[name]; !taken && name != End {
			l.index[name] = i
		}
	}
	l.names()
	for i := range d.Steps {
		l.step(i, &d.Steps[i])
	}
	l.graph()
	return l.Report()
}

type linter struct {
	*configdoc.Linter

	d        *Definition
	known    Known
	index    map[string]int // the index of each step
	refs     []stepRef      // the references from expressions to steps
	mistyped bool           // a step is named that does not exist
	written  int            // the number of expressions
}

// stepPath returns the pointer of a step's field.
func stepPath(i int, field string) string { return configdoc.Child(configdoc.Item("/steps", i), field) }

// step checks one step.
func (l *linter) step(i int, s *Step) {
	if _, known := shapes[s.Type]; !known {
		if path := stepPath(i, "type"); l.Given(path) {
			l.Refuse("D7", path, "type must be one of %[2]s, got %[1]s", configdoc.Show(string(s.Type)), typeNames())
		}
		return
	}
	l.shape(i, s)
	l.durations(i, s)
	l.retry(i, s)
	l.targets(i, s)
	l.ofType(i, s)
	l.expressions(i, s)
	l.secrets(i, s)
}
