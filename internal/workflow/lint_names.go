package workflow

import (
	"regexp"
	"strings"

	"github.com/holdfast-go/holdfast/internal/configdoc"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// The maximum lengths of names, in characters.
const (
	maxName    = 200
	maxVersion = 50
	maxStep    = 100
)

var stepName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// names checks D1.
func (l *linter) names() {
	d := l.d
	for _, n := range []struct {
		field, text string
		limit       int
	}{{"name", d.Name, maxName}, {"version", d.Version, maxVersion}} {
		path := configdoc.Child("", n.field)
		if l.name("D1", path, n.field, n.text, n.limit) && strings.ContainsAny(n.text, "/@") {
			l.Refuse("D1", path, "the %s must not contain / or @, got %s: use another character", n.field, configdoc.Show(n.text))
		}
	}
	l.duration("/retentionMs", d.Retention)
	l.steps()
	for i := range d.Steps {
		l.stepName(i, d.Steps[i].Name)
	}
}

// name refuses an invalid name.
func (l *linter) name(rule, path, what, s string, limit int) bool {
	if !l.Given(path) {
		return false
	}
	if err := strictjson.Text(what, s, limit); err != nil {
		l.Refuse(rule, path, "%s: correct it", configdoc.Reason(err))
		return false
	}
	return true
}

func (l *linter) steps() {
	if !l.Given("/steps") {
		return
	}
	switch n := len(l.d.Steps); {
	case n == 0 && !l.Partial():
		l.Refuse("D7", "/steps", "the definition has no steps: add at least one")
	case n > MaxSteps:
		l.Refuse("D7", "/steps", "a definition may have at most %d steps, got %d: split it", MaxSteps, n)
	}
}

func (l *linter) stepName(i int, s string) {
	path := stepPath(i, "name")
	if !l.name("D1", path, "the step's name", s, maxStep) {
		return
	}
	switch {
	case !stepName.MatchString(s):
		l.Refuse("D1", path, "a step name may only contain letters, digits, _ and -, got %s: correct it", configdoc.Show(s))
	case s == End:
		l.Refuse("D1", path, "%s is reserved for the end of the run: give the step another name", configdoc.Show(s))
	case l.index[s] != i:
		l.Refuse("D1", path, "two steps are named %s: rename one of them", configdoc.Show(s))
	}
}

// targets checks D2.
func (l *linter) targets(i int, s *Step) {
	for _, t := range s.targets() {
		path := stepPath(i, t.field)
		if _, ok := l.index[t.name]; ok || t.name == End || t.name == "" {
			continue
		}
		l.mistyped = true
		if l.Given(path) {
			l.Refuse("D2", path, "step %s does not exist: choose another step, or end", configdoc.Show(t.name))
		}
	}
}

// target is a reference from a step to another.
type target struct{ field, name string }

// targets returns the references of a step; the name is "" if the field is not set.
func (s *Step) targets() []target {
	return []target{
		{"next", s.Next},
		{"then", s.Then},
		{"else", s.Else},
		{"onFailure", s.OnFailure},
		{"onTimeout", s.OnTimeout},
		{"onReject", s.OnReject},
	}
}
