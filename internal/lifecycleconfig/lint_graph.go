package lifecycleconfig

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// ways returns where the steps lead, and where their claims go back to if reverts
// is set. A step from a status to itself leads nowhere.
func (c *Config) ways(reverts bool) configdoc.Graph[string] {
	w := make(configdoc.Graph[string])
	for _, e := range c.edges() {
		if e.from != e.to && (reverts || e.way != revert) {
			w[e.from] = append(w[e.from], e.to)
		}
	}
	return w
}

// graph holds the statuses to R10. If a status is mistyped it says nothing: what
// leads where is not known then.
func (l *linter) graph() {
	if l.lost || !l.known[l.c.InitialStatus] {
		return
	}
	reached := l.c.ways(true).From(l.c.InitialStatus)
	used := l.c.used()
	for i, s := range l.c.StatusTypes {
		if used[s] && !reached[s] {
			l.Refuse("R10", configdoc.Item("/status_types", i), "no steps lead from the initial status %s to %s: add one, or take the status out", configdoc.Show(l.c.InitialStatus), configdoc.Show(s))
		}
	}
	l.endless(reached)
}

// endless refuses statuses from which no way leads to an end.
func (l *linter) endless(reached map[string]bool) {
	w := l.c.ways(false)
	var ends []string
	for s := range reached {
		if len(w[s]) == 0 {
			ends = append(ends, s)
		}
	}
	ending := w.Back().From(ends...)
	first, names := 0, []string(nil)
	for i, s := range l.c.StatusTypes {
		if reached[s] && !ending[s] {
			if len(names) == 0 {
				first = i
			}
			names = append(names, configdoc.Show(s))
		}
	}
	if len(names) > 0 {
		l.Refuse("R10", configdoc.Item("/status_types", first), "no steps lead on from %s to a status where all ends: add a step to one that no step leads on from", configdoc.List(configdoc.Few(names)))
	}
}

// used returns the statuses that the config names anywhere but in status_types.
func (c *Config) used() map[string]bool {
	used := map[string]bool{c.InitialStatus: true}
	for i := range c.Steps {
		for _, s := range c.Steps[i].Status {
			used[s] = true
		}
	}
	for _, e := range c.edges() {
		used[e.from], used[e.to] = true, true
	}
	return used
}

// unused warns of statuses without a use.
func (l *linter) unused() {
	used := l.c.used()
	for i, s := range l.c.StatusTypes {
		if s != "" && !used[s] {
			l.Warn("W2", configdoc.Item("/status_types", i), "no step starts at %s or leads to it: take it out if it is not needed", configdoc.Show(s))
		}
	}
	l.idle()
	if len(l.sound) > 0 && l.c.Janitor == nil {
		l.Warn("W4", l.sound[0].path, "there are claims and no janitor: write \"janitor: standard\", unless the module %s brings its own", configdoc.Show(l.c.OwningModule))
	}
}

// idle warns of requesters in serialized who cannot fire the step.
func (l *linter) idle() {
	byKey := make(map[string][]*Step)
	for i := range l.c.Steps {
		byKey[l.c.Steps[i].Key] = append(byKey[l.c.Steps[i].Key], &l.c.Steps[i])
	}
	for i := range l.c.Steps {
		s := &l.c.Steps[i]
		for j, r := range s.Serialized {
			if !slices.ContainsFunc(byKey[s.Key], func(other *Step) bool { return other.Offers(r) }) {
				l.Warn("W5", configdoc.Item(stepPath(i, "serialized"), j), "%s is not offered to %s, so this says nothing: correct the name, or take it out", configdoc.Show(s.Key), who(r))
			}
		}
	}
}
