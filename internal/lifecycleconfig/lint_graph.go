package lifecycleconfig

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// stepGraph returns the graph of the steps, with their claims and reverts.
func (c *Config) stepGraph() configdoc.Graph[string] {
	w := make(configdoc.Graph[string])
	for _, e := range c.edges() {
		w[e.from] = append(w[e.from], e.to)
	}
	return w
}

// outcomeGraph returns the graph of where the steps end. It leaves out claim statuses, and steps that end
// where they start.
func (c *Config) outcomeGraph() configdoc.Graph[string] {
	w := make(configdoc.Graph[string])
	for i := range c.Steps {
		s := &c.Steps[i]
		for _, u := range slices.Concat(uses("", s.Success), uses("", s.Failed)) {
			for _, from := range s.Status {
				if from != u.value {
					w[from] = append(w[from], u.value)
				}
			}
		}
	}
	return w
}

// graph checks R10 and W6. If a status is mistyped it checks nothing, because the graph is then
// incomplete. It also checks nothing for rows of a user table: other code may change their status.
func (l *linter) graph() {
	if l.mistyped || !l.known[l.c.InitialStatus] || l.c.Table != nil {
		return
	}
	reached := l.c.stepGraph().From(l.c.InitialStatus)
	used := l.c.used()
	for i, s := range l.c.StatusTypes {
		if used[s] && !reached[s] {
			l.Refuse("R10", configdoc.Item("/status_types", i), "%[2]s cannot be reached from the initial status %[1]s: add a step that leads to it, or remove the status", configdoc.Show(l.c.InitialStatus), configdoc.Show(s))
		}
	}
	l.endless(reached)
}

// endless warns about statuses from which no final status can be reached, although the lifecycle
// has one. In a lifecycle without a final status, such as one that can always be reopened, nothing
// is suspicious.
func (l *linter) endless(reached map[string]bool) {
	w, claims := l.c.outcomeGraph(), l.c.ClaimStatuses()
	var ends []string
	for s := range reached {
		if len(w[s]) == 0 && !slices.Contains(claims, s) {
			ends = append(ends, s)
		}
	}
	ending := w.Back().From(ends...)
	first, names := 0, []string(nil)
	for i, s := range l.c.StatusTypes {
		if reached[s] && !ending[s] && !slices.Contains(claims, s) {
			if len(names) == 0 {
				first = i
			}
			names = append(names, configdoc.Show(s))
		}
	}
	if len(names) > 0 && len(ends) > 0 {
		l.Warn("W6", configdoc.Item("/status_types", first), "no final status can be reached from %s: if these entities should end, add a step to a status that no step leaves", configdoc.List(configdoc.Few(names)))
	}
}

// used returns the statuses that the config names outside status_types.
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

// unused checks W2, W4 and W5.
func (l *linter) unused() {
	used := l.c.used()
	for i, s := range l.c.StatusTypes {
		if s != "" && !used[s] {
			l.Warn("W2", configdoc.Item("/status_types", i), "no step starts at %s or leads to it: remove it if it is not needed", configdoc.Show(s))
		}
	}
	l.idle()
	if len(l.sound) > 0 && l.c.Janitor == nil {
		l.Warn("W4", l.sound[0].path, "the config has claims but no janitor: add \"janitor: standard\", unless module %s has its own", configdoc.Show(l.c.OwningModule))
	}
}

// idle checks W5: requesters in serialized that cannot fire the step.
func (l *linter) idle() {
	byKey := make(map[string][]*Step)
	for i := range l.c.Steps {
		byKey[l.c.Steps[i].Key] = append(byKey[l.c.Steps[i].Key], &l.c.Steps[i])
	}
	for i := range l.c.Steps {
		s := &l.c.Steps[i]
		for j, r := range s.Serialized {
			if !slices.ContainsFunc(byKey[s.Key], func(other *Step) bool { return other.Offers(r) }) {
				l.Warn("W5", configdoc.Item(stepPath(i, "serialized"), j), "%s is not offered to %s, so this has no effect: correct the name, or remove it", configdoc.Show(s.Key), requesterText(r))
			}
		}
	}
}
