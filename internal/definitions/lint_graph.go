package definitions

import (
	"cmp"

	"github.com/holdfast-go/holdfast/internal/tree"
)

// ways are the places that each step leads to; len(Steps) is the end.
type ways [][]int

// ways returns where each step leads, by whichever of its fields. REQUIRES: D1, D2.
func (l *linter) ways() ways {
	w := make(ways, len(l.d.Steps)+1)
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

// from returns all places that can be reached from those given, these included.
func (w ways) from(starts ...int) map[int]bool {
	seen := make(map[int]bool)
	for len(starts) > 0 {
		s := starts[len(starts)-1]
		starts = starts[:len(starts)-1]
		if !seen[s] {
			seen[s] = true
			starts = append(starts, w[s]...)
		}
	}
	return seen
}

// back returns the ways turned round.
func (w ways) back() ways {
	b := make(ways, len(w))
	for from, all := range w {
		for _, to := range all {
			b[to] = append(b[to], from)
		}
	}
	return b
}

// graph holds the steps to D3 and D4. If a step is mistyped it says nothing: what leads
// where is not known then.
func (l *linter) graph() {
	if l.lost || l.partial() || len(l.d.Steps) == 0 || len(l.index) < len(l.d.Steps) {
		return
	}
	w := l.ways()
	reached := w.from(0)
	ending := w.back().from(len(l.d.Steps))
	first, endless := 0, []string(nil)
	for i := range l.d.Steps {
		switch name := tree.Show(l.d.Steps[i].Name); {
		case !reached[i]:
			l.refuse("D3", tree.Item("/steps", i), "no step leads to %s: name it in another's next, or take it out", name)
		case !ending[i]:
			if len(endless) == 0 {
				first = i
			}
			endless = append(endless, name)
		}
	}
	if len(endless) > 0 {
		l.refuse("D4", tree.Item("/steps", first), "nothing leads from %s to the end: let one of them lead out of the cycle", tree.List(tree.Few(endless)))
	}
	l.spinning(w)
	l.early(w)
}

// spinning refuses cycles of conditions alone.
func (l *linter) spinning(w ways) {
	only := make(ways, len(w))
	for i := range l.d.Steps {
		for _, to := range w[i] {
			if l.isCondition(i) && l.isCondition(to) {
				only[i] = append(only[i], to)
			}
		}
	}
	told := make(map[int]bool)
	for i := range l.d.Steps {
		if ahead := only.from(only[i]...); ahead[i] && !told[i] {
			names := l.together(only, i, ahead, told)
			l.refuse("D4", tree.Item("/steps", i), "%s can lead round without a step that does something: put one between them", tree.List(tree.Few(names)))
		}
	}
}

// together returns the names of the steps on one cycle with i, and marks them as told.
func (l *linter) together(w ways, i int, ahead, told map[int]bool) (names []string) {
	behind := w.back().from(i)
	for j := range l.d.Steps {
		if ahead[j] && behind[j] {
			told[j] = true
			names = append(names, tree.Show(l.d.Steps[j].Name))
		}
	}
	return names
}

func (l *linter) isCondition(i int) bool {
	return i < len(l.d.Steps) && l.d.Steps[i].Type == Condition
}

// early warns of expressions that look at a step that cannot have run before.
func (l *linter) early(w ways) {
	after := make(map[string]map[int]bool)
	for _, k := range l.looks {
		ahead, ok := after[k.at]
		if !ok {
			ahead = w.from(w[l.index[k.at]]...)
			after[k.at] = ahead
		}
		if !ahead[k.step] {
			l.warn("W4", k.path, "steps.%s is looked at, and it cannot have run before %s: it is nil here", k.at, tree.Show(l.d.Steps[k.step].Name))
		}
	}
}
