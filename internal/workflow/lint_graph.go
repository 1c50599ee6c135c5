package workflow

import (
	"cmp"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// ways returns where each step leads, by whichever of its fields; len(Steps) is the end.
// REQUIRES: D1, D2.
func (l *linter) ways() configdoc.Graph[int] {
	w := make(configdoc.Graph[int])
	for i := range l.d.Steps {
		for _, name := range l.d.leads(i) {
			to, ok := l.index[name]
			if !ok {
				to = len(l.d.Steps)
			}
			w[i] = append(w[i], to)
		}
	}
	return w
}

// leads are the names of the steps that one leads to. That it may fail the run is none.
func (d *Definition) leads(i int) (names []string) {
	s := &d.Steps[i]
	if s.Type == Condition {
		names = append(names, cmp.Or(s.Then, d.After(i)), cmp.Or(s.Else, d.After(i)))
	} else {
		names = append(names, d.After(i))
	}
	for _, name := range []string{s.OnFailure, s.OnTimeout, s.OnReject} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// graph holds the steps to D3 and D4. If a step is mistyped it says nothing: what leads
// where is not known then.
func (l *linter) graph() {
	if l.lost || l.Partial() || len(l.d.Steps) == 0 || len(l.index) < len(l.d.Steps) {
		return
	}
	w := l.ways()
	reached := w.From(0)
	ending := w.Back().From(len(l.d.Steps))
	first, endless := 0, []string(nil)
	for i := range l.d.Steps {
		switch name := configdoc.Show(l.d.Steps[i].Name); {
		case !reached[i]:
			l.Refuse("D3", configdoc.Item("/steps", i), "no step leads to %s: name it in another's next, or take it out", name)
		case !ending[i]:
			if len(endless) == 0 {
				first = i
			}
			endless = append(endless, name)
		}
	}
	if len(endless) > 0 {
		l.Refuse("D4", configdoc.Item("/steps", first), "nothing leads from %s to the end: let one of them lead out of the cycle", configdoc.List(configdoc.Few(endless)))
	}
	l.spinning(w)
	l.early(w)
}

// spinning refuses cycles of conditions alone.
func (l *linter) spinning(w configdoc.Graph[int]) {
	only := make(configdoc.Graph[int])
	for i := range l.d.Steps {
		for _, to := range w[i] {
			if l.isCondition(i) && l.isCondition(to) {
				only[i] = append(only[i], to)
			}
		}
	}
	told := make(map[int]bool)
	for i := range l.d.Steps {
		if ahead := only.From(only[i]...); ahead[i] && !told[i] {
			names := l.together(only, i, ahead, told)
			l.Refuse("D4", configdoc.Item("/steps", i), "%s can lead round without a step that does something: put one between them", configdoc.List(configdoc.Few(names)))
		}
	}
}

// together returns the names of the steps on one cycle with i, and marks them as told.
func (l *linter) together(w configdoc.Graph[int], i int, ahead, told map[int]bool) (names []string) {
	behind := w.Back().From(i)
	for j := range l.d.Steps {
		if ahead[j] && behind[j] {
			told[j] = true
			names = append(names, configdoc.Show(l.d.Steps[j].Name))
		}
	}
	return names
}

func (l *linter) isCondition(i int) bool {
	return i < len(l.d.Steps) && l.d.Steps[i].Type == Condition
}

// early warns of expressions that look at a step that cannot have run before.
func (l *linter) early(w configdoc.Graph[int]) {
	after := make(map[string]map[int]bool)
	for _, k := range l.looks {
		ahead, ok := after[k.at]
		if !ok {
			ahead = w.From(w[l.index[k.at]]...)
			after[k.at] = ahead
		}
		if !ahead[k.step] {
			l.Warn("W4", k.path, "steps.%s is looked at, and it cannot have run before %s: it is nil here", k.at, configdoc.Show(l.d.Steps[k.step].Name))
		}
	}
}
