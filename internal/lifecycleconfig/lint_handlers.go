package lifecycleconfig

import (
	"cmp"
	"slices"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// handlerNames checks R11.
func (l *linter) handlerNames() {
	if l.handlers == nil {
		return
	}
	l.roles = make(map[string]string)
	for i := range l.c.Steps {
		s := &l.c.Steps[i]
		l.ofKind("action", uses(stepPath(i, "action"), s.Action))
		l.ofKind("validation", uses(stepPath(i, "validation"), s.Validation))
		l.ofKind("afterEffect", uses(stepPath(i, "success_after_effect"), s.AfterEffect))
	}
}

func (l *linter) ofKind(kind string, all []use[string]) {
	for _, u := range all {
		h, ok := l.handlers[u.value]
		if h.Kind == "" {
			h.Kind = cmp.Or(l.roles[u.value], kind) // its first use
			l.roles[u.value] = h.Kind
		}
		switch {
		case !ok:
			l.Refuse("R11", u.path, "handler %s does not exist: register it, or correct the name", configdoc.Show(u.value))
		case h.Kind != kind && l.roles[u.value] != "":
			l.Refuse("R11", u.path, "handler %s is used as %s and as %s: use another handler", configdoc.Show(u.value), configdoc.Show(h.Kind), configdoc.Show(kind))
		case h.Kind != kind:
			l.Refuse("R11", u.path, "handler %s is registered as %s but used as %s: use another handler", configdoc.Show(u.value), configdoc.Show(h.Kind), configdoc.Show(kind))
		}
	}
}

// workers checks the rule "worker": a task of a worker is the claim of its step, so each requester must claim it.
func (l *linter) workers() {
	for i := range l.c.Steps {
		s := &l.c.Steps[i]
		for _, field := range []string{"action", "validation"} {
			names := s.Action
			if field == "validation" {
				names = s.Validation
			}
			reported := make(map[string]bool)
			for _, requester := range s.Offered() {
				name, _ := names.For(requester)
				_, claimed := s.Claim.For(requester)
				if !l.handlers[name].Workers || claimed || reported[name] {
					continue
				}
				reported[name] = true
				l.Refuse("worker", stepPath(i, field), "the %s %s of step %s is served by workers, so the step needs a claim: add successful_claim_state", field, configdoc.Show(name), configdoc.Show(s.Key))
			}
		}
	}
}

// actions checks R13, R14, W1 and W3.
func (l *linter) actions() {
	for i := range l.c.Steps {
		s := &l.c.Steps[i]
		for _, r := range s.Offered() {
			name, ok := s.Action.For(r)
			h, known := l.handlers[name]
			if !ok || !known {
				continue
			}
			path := stepPath(i, "action")
			if s.Action.All == nil {
				path = configdoc.Child(path, r)
			}
			if l.isClaimed(caller{i, r}) {
				l.claimedAction(s, path, name, h)
			} else {
				l.freeAction(i, r, path, name, h)
			}
		}
	}
}

func (l *linter) claimedAction(s *Step, path, name string, h Handler) {
	if limit := cmp.Or(s.Timeout, DefaultTimeout); h.Timeout >= limit {
		l.Refuse("R14", path, "action %s may take %v, but its claim lasts %v: make the step's timeout longer than the action's", configdoc.Show(name), h.Timeout, limit)
	}
	if h.Safety == Undeclared {
		l.Warn("W1", path, "action %s does not declare its safety, so after a crash the claim is released although the action may have acted: declare its safety", configdoc.Show(name))
	}
}

// freeAction checks an action without a claim, which may run more than once.
func (l *linter) freeAction(i int, requester, path, name string, h Handler) {
	switch h.Safety {
	case Journaled, Opaque:
		l.Refuse("R13", path, "action %s is %s but fired without a claim: add successful_claim_state", configdoc.Show(name), h.Safety)
	case Undeclared:
		if !slices.Contains(l.c.Steps[i].Serialized, requester) {
			l.Warn("W3", path, "action %s does not declare its safety, and two concurrent callers would both run it: add successful_claim_state, or declare that it may run twice", configdoc.Show(name))
		}
	}
}
