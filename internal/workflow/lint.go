package workflow

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// Known is what there is beside a definition, for [Definition.Lint] to look its names up.
type Known struct {
	// Handlers are those that a task may name; nil: they are not known, and none is looked
	// up.
	Handlers map[string]Handler
	// Lifecycles returns the steps of a lifecycle by their step_key, and whether there is
	// one of this name; nil: they are not known.
	Lifecycles func(name string) (steps map[string]bool, ok bool)
}

// Handler is what is known of a handler.
type Handler struct {
	Kind    string        // "step", or "http" or "worker" for one elsewhere; "" serves as any
	Safety  string        // "" is undeclared
	Timeout time.Duration // 0: none of its own
}

// Lint judges a definition, and reports everything at once.
//
//	D1   names can be used as they are written, and no two steps have the same
//	D2   next, then, else, onFailure, onTimeout and onReject name steps, or end
//	D3   every step can be reached from the first
//	D4   every step leads to the end, and no cycle is of conditions alone: it would go
//	     round without ever giving control back
//	D5   handlers are known, and can be a step
//	D6   expressions are good, and the steps that they look at exist
//	D7   a step has the fields of its type, and they are in range
//	D8   lifecycles, and their steps, are known
//
// Warnings are what may be meant, and is worth a look:
//
//	W1   an event or approval without timeoutMs waits for ever if nobody comes
//	W2   a task or call does not say what a crash leaves of it
//	W3   a rejection that nobody looks at: the run fails then
//	W4   an expression looks at a step that cannot have run before
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

	d       *Definition
	known   Known
	index   map[string]int // the place of each step
	looks   []look         // which step looks at which
	lost    bool           // a step is named that does not exist
	written int            // how many expressions there are
}

// stepPath is the pointer of a step's field.
func stepPath(i int, field string) string { return configdoc.Child(configdoc.Item("/steps", i), field) }

// step judges one step.
func (l *linter) step(i int, s *Step) {
	if _, known := shapes[s.Type]; !known {
		if path := stepPath(i, "type"); l.Given(path) {
			l.Refuse("D7", path, "there is no type %s: it is one of %s", configdoc.Show(string(s.Type)), typeNames())
		}
		return
	}
	l.shape(i, s)
	l.durations(i, s)
	l.retry(i, s)
	l.targets(i, s)
	l.ofType(i, s)
	l.expressions(i, s)
}
