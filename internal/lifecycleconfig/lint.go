package lifecycleconfig

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// DefaultTimeout is how long a claim is kept if its step does not say.
const DefaultTimeout = 15 * time.Minute

// Lint judges a config, and reports everything at once. Handlers are those that
// the config may name; nil says that they are not known, and none is looked up.
//
// R1 to R6 are the rules that a claim can be freed by:
//
//	R1   a claim is a list of two texts (found by [Parse])
//	R2   both are status types
//	R3   they differ
//	R4   claim_into is not the step's status: a second caller would pass too
//	R5   claim_into is not where the step leads: its end would change nothing
//	R6   one claim_into has one revert_to: else a janitor has to guess
//
// The rules from R6 on speak of claims that R1 to R5 let pass.
//
//	R7   revert_to is the step's status
//	R8   nothing but a claim leads into a claim status, and no step starts there
//	R9   who skips a claim that others take is in serialized
//	R10  every status can be reached, and leads to an end
//	R11  handlers are known, and of the right kind
//	R12  a step_id is used once; so are a step_key, status and requester together
//	R13  a journaled or opaque action is claimed
//	R14  the claim outlasts the action
//	R15  names and statuses can be used as they are written
//	R16  after_effects names after-effects, and how they are delivered makes sense
//
// Warnings are what may be meant, and is worth a look:
//
//	W1   a claimed action does not say what a crash leaves of it
//	W2   a status that nothing uses
//	W3   an action without claim does not say that it may run twice
//	W4   claims, and no janitor in the config
//	W5   serialized names a requester to whom the step is not offered
func (c *Config) Lint(handlers map[string]Handler) (violations, warnings []Violation) {
	l := &linter{Linter: configdoc.NewLinter(c.source), c: c, handlers: handlers, known: make(map[string]bool)}
	for _, s := range c.StatusTypes {
		l.known[s] = true
	}
	if l.names(); l.fits() {
		l.rules()
	}
	return l.Report()
}

// rules are all but R15.
func (l *linter) rules() {
	l.claims()
	l.handlerNames()
	l.repeats()
	l.afterEffects()
	if !l.Partial() {
		l.skippedClaims()
		l.graph()
		l.actions()
		l.unused()
	}
}

type linter struct {
	*configdoc.Linter

	c        *Config
	handlers map[string]Handler
	known    map[string]bool // the status types
	sound    []claimUse      // the claims that R2 to R5 let pass
	lost     bool            // a status is named that is no status type
}

// stepPath is the pointer of a step's field.
func stepPath(i int, field string) string { return configdoc.Child(configdoc.Item("/steps", i), field) }

// claimPath is the pointer of a step's claim, under the name that it is given.
func (l *linter) claimPath(i int) string {
	if alias := stepPath(i, "claim_state"); l.IsText() && l.Given(alias) {
		return alias
	}
	return stepPath(i, "successful_claim_state")
}

// use is one value of a field of a step, for one requester or for all.
type use[T any] struct {
	path      string
	requester string // "" if all
	all       bool
	value     T
}

// uses returns the values of a field, by rising requester.
func uses[T any](path string, p Per[T]) (found []use[T]) {
	if p.All != nil {
		return []use[T]{{path: path, all: true, value: *p.All}}
	}
	for _, r := range slices.Sorted(maps.Keys(p.By)) {
		found = append(found, use[T]{path: configdoc.Child(path, r), requester: r, value: p.By[r]})
	}
	return found
}

// beside returns the values of another field that go with a use of this one.
func beside[T any](u use[T], p Per[string]) (all []string) {
	if !u.all {
		if v, ok := p.For(u.requester); ok {
			all = append(all, v)
		}
		return all
	}
	for _, other := range uses("", p) {
		all = append(all, other.value)
	}
	return all
}

// anyOther stands for the requesters that a step does not name.
const anyOther = ""

// offered returns for whom a step is, by rising name; anyOther is among them if it
// is for all.
func (s *Step) offered() []string {
	if s.Success.All == nil {
		return slices.Sorted(maps.Keys(s.Success.By))
	}
	return append([]string{anyOther}, s.Requesters()...)
}

// who names a requester in a message.
func who(requester string) string {
	if requester == anyOther {
		return "any other requester"
	}
	return "the requester " + configdoc.Show(requester)
}
