package workflow

import (
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// maxExpressions is how many expressions a definition may have.
const maxExpressions = 5000

// placed is a value of a step, and where it stands.
type placed struct {
	path  string
	value Value
}

// values are those of a step that may have expressions.
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

// Mentions returns the names of the steps that any expression looks at; all says that it
// cannot be told, because a name is worked out, or steps are taken as a whole.
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

// look is an expression of a step that looks at another.
type look struct {
	step int
	path string
	at   string
}

// expressions holds those of a step to D6.
func (l *linter) expressions(i int, s *Step) {
	for _, v := range s.values(i) {
		l.sound(v.path, v.value)
	}
	s.eachExpression(i, func(path, text string) {
		if l.written++; l.written > maxExpressions {
			l.Refuse("D6", "/steps", "a definition has %d expressions at the most: make it several", maxExpressions)
			return
		}
		e, err := Compile(text)
		if err != nil {
			l.Refuse("D6", path, "%s", configdoc.Reason(err))
			return
		}
		for _, name := range slices.Sorted(maps.Keys(e.mentions)) {
			l.look(look{i, path, name})
		}
	})
}

// look refuses an expression that looks at a step that does not exist.
func (l *linter) look(k look) {
	if _, ok := l.index[k.at]; ok {
		l.looks = append(l.looks, k)
	} else if !l.Partial() {
		l.Refuse("D6", k.path, "steps.%s is looked at, and there is no such step: correct the name", k.at)
	}
}
