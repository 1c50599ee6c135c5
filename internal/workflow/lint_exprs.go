package workflow

import (
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// maxExpressions limits the expressions of a definition.
const maxExpressions = 5000

// placed is a value of a step with its JSON pointer.
type placed struct {
	path  string
	value Value
}

// values returns the values of a step that may contain expressions.
func (s *Step) values(i int) (all []placed) {
	for _, v := range []struct {
		field string
		value Value
	}{{"input", s.Input}, {"until", s.Until}, {"prompt", s.Prompt}, {"url", s.URL}, {"body", s.Body}, {"entity", s.Entity}} {
		if len(v.value) > 0 {
			all = append(all, placed{stepPath(i, v.field), v.value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if v := s.Headers[name]; len(v) > 0 {
			all = append(all, placed{configdoc.Child(stepPath(i, "headers"), name), v})
		}
	}
	return all
}

// eachExpression calls f with each expression of a step, and its JSON pointer.
func (s *Step) eachExpression(i int, f func(path, text string)) {
	if s.If != "" {
		f(stepPath(i, "if"), s.If)
	}
	for _, v := range s.values(i) {
		expressions(v.value, v.path, f)
	}
}

// Mentions returns the names of the steps that expressions refer to. all is true if they cannot be
// determined, because a name is computed or steps is used as a whole.
func (d *Definition) Mentions() (names map[string]bool, all bool) {
	names = make(map[string]bool)
	for i := range d.Steps {
		d.Steps[i].eachExpression(i, func(_, text string) {
			e, err := Compile(text)
			if err != nil {
				all = true
				return
			}
			maps.Copy(names, e.mentions)
			all = all || e.all
		})
	}
	return names, all
}

// stepRef is a reference from an expression of a step to another step.
type stepRef struct {
	step int    // the index of the step with the expression
	path string // of the expression
	to   string // the name of the other step
}

// expressions checks D6 for a step.
func (l *linter) expressions(i int, s *Step) {
	for _, v := range s.values(i) {
		l.sound(v.path, v.value)
	}
	s.eachExpression(i, func(path, text string) {
		if l.written++; l.written > maxExpressions {
			l.Refuse("D6", "/steps", "a definition may have at most %d expressions: split it", maxExpressions)
			return
		}
		e, err := Compile(text)
		if err != nil {
			l.Refuse("D6", path, "%s", configdoc.Reason(err))
			return
		}
		for _, name := range slices.Sorted(maps.Keys(e.mentions)) {
			l.checkRef(stepRef{i, path, name})
		}
	})
}

// checkRef refuses a reference to a step that does not exist.
func (l *linter) checkRef(k stepRef) {
	if _, ok := l.index[k.to]; ok {
		l.refs = append(l.refs, k)
	} else if !l.Partial() {
		l.Refuse("D6", k.path, "the expression refers to steps.%s, which does not exist: correct the name", k.to)
	}
}
