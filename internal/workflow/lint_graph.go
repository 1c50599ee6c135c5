package workflow

import "github.com/holdfast-go/holdfast/internal/configdoc"

// ways returns the successors of each step by all its fields; len(Steps) is the end. The definition must
// pass D1 and D2.
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

// leads returns the names of a step's successors. A failure of the run is not among them.
func (d *Definition) leads(i int) (names []string) {
	for _, e := range d.exits(i) {
		names = append(names, e.To)
	}
	return names
}

// graph checks D3, D4 and W4. If a step name is mistyped it checks nothing, because the graph is then
// incomplete.
func (l *linter) graph() {
	if l.mistyped || l.Partial() || len(l.d.Steps) == 0 || len(l.index) < len(l.d.Steps) {
		return
	}
	w := l.ways()
	reached := w.From(0)
	ending := w.Back().From(len(l.d.Steps))
	first, endless := 0, []string(nil)
	for i := range l.d.Steps {
		switch name := configdoc.Show(l.d.Steps[i].Name); {
		case !reached[i]:
			l.Refuse("D3", configdoc.Item("/steps", i), "no step leads to %s: name it in another step's next field, or remove it", name)
		case !ending[i]:
			if len(endless) == 0 {
				first = i
			}
			endless = append(endless, name)
		}
	}
	if len(endless) > 0 {
		l.Refuse("D4", configdoc.Item("/steps", first), "the end cannot be reached from %s: add a step that leads out of the cycle", configdoc.List(configdoc.Few(endless)))
	}
	l.spinning(w)
	l.early(w)
}

// spinning refuses cycles that consist of conditions only.
func (l *linter) spinning(w configdoc.Graph[int]) {
	only := make(configdoc.Graph[int])
	for i := range l.d.Steps {
		for _, to := range w[i] {
			if l.isCondition(i) && l.isCondition(to) {
				only[i] = append(only[i], to)
			}
		}
	}
	reported := make(map[int]bool)
	for i := range l.d.Steps {
		if ahead := only.From(only[i]...); ahead[i] && !reported[i] {
			names := l.together(only, i, ahead, reported)
			l.Refuse("D4", configdoc.Item("/steps", i), "%s can form a cycle without a step that executes or waits: add such a step between them", configdoc.List(configdoc.Few(names)))
		}
	}
}

// together returns the names of the steps on one cycle with i, and marks them as reported.
func (l *linter) together(w configdoc.Graph[int], i int, ahead, reported map[int]bool) (names []string) {
	behind := w.Back().From(i)
	for j := range l.d.Steps {
		if ahead[j] && behind[j] {
			reported[j] = true
			names = append(names, configdoc.Show(l.d.Steps[j].Name))
		}
	}
	return names
}

func (l *linter) isCondition(i int) bool {
	return i < len(l.d.Steps) && l.d.Steps[i].Type == Condition
}

// early warns about expressions that refer to a step that cannot have run before.
func (l *linter) early(w configdoc.Graph[int]) {
	after := make(map[string]map[int]bool)
	for _, k := range l.refs {
		ahead, ok := after[k.to]
		if !ok {
			ahead = w.From(w[l.index[k.to]]...)
			after[k.to] = ahead
		}
		if !ahead[k.step] {
			l.Warn("W4", k.path, "the expression refers to steps.%s, which cannot have run before %s: it is nil here", k.to, configdoc.Show(l.d.Steps[k.step].Name))
		}
	}
}
