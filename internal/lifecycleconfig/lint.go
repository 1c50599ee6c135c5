package lifecycleconfig

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// DefaultTimeout is the maximum duration of a claim if its step sets none.
const DefaultTimeout = 15 * time.Minute

// Lint checks a config and reports everything at once. handlers are the handlers that the config
// may name; nil means that they are unknown, and names are not checked.
//
// R1 to R6 ensure that a claim can be reverted:
//
//	R1   a claim is a list of two strings (checked by [Parse])
//	R2   both are status types
//	R3   they differ
//	R4   claim_into is not the step's status: a second caller could also claim
//	R5   claim_into is not where the step leads: its end would change nothing
//	R6   one claim_into has one revert_to: else the janitor cannot decide
//
// The rules from R6 on apply to claims that pass R1 to R5.
//
//	R7   revert_to is the step's status
//	R8   only a claim leads into a claim status, and no step starts there
//	R9   a requester that skips a claim that others take is in serialized
//	R10  every status can be reached, unless other code changes it (entity_table)
//	R11  handlers exist and are of the right kind, and each has one kind
//	R12  a step_id is unique; so is a step_key with its status and requester
//	R13  a journaled or opaque action is claimed
//	R14  the claim outlasts the action
//	R15  names and statuses are valid
//	R16  after_effects names after-effects, and their delivery options are valid
//
// The rule "worker" requires a claim for a step whose action or validation is run by workers.
//
// Warnings point to valid but suspicious configs:
//
//	W1   a claimed action does not declare its safety
//	W2   a status is unused
//	W3   an action without a claim does not declare that it may run twice
//	W4   there are claims, but no janitor in the config
//	W5   serialized names a requester to whom the step is not offered
//	W6   the lifecycle has a final status, but some status does not lead to one
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

// rules checks all rules except R15.
func (l *linter) rules() {
	l.claims()
	l.handlerNames()
	l.repeats()
	l.afterEffects()
	if !l.Partial() {
		l.skippedClaims()
		l.graph()
		l.actions()
		l.workers()
		l.unused()
	}
}

type linter struct {
	*configdoc.Linter

	c        *Config
	handlers map[string]Handler
	roles    map[string]string // the kinds as which the handlers without a kind are used
	known    map[string]bool   // the status types
	sound    []claimUse        // the claims that pass R2 to R5
	mistyped bool              // a status is named that is not a status type
}

// stepPath returns the pointer of a step's field.
func stepPath(i int, field string) string { return configdoc.Child(configdoc.Item("/steps", i), field) }

// claimPath returns the pointer of a step's claim, under the name used in the config.
func (l *linter) claimPath(i int) string {
	if alias := stepPath(i, "claim_state"); l.IsText() && l.Given(alias) {
		return alias
	}
	return stepPath(i, "successful_claim_state")
}

// use is one value of a step's field, for one requester or for all.
type use[T any] struct {
	path      string
	requester string // "" if for all
	all       bool
	value     T
}

// uses returns the values of a field, sorted by requester.
func uses[T any](path string, p Per[T]) (found []use[T]) {
	if p.All != nil {
		return []use[T]{{path: path, all: true, value: *p.All}}
	}
	for _, r := range slices.Sorted(maps.Keys(p.By)) {
		found = append(found, use[T]{path: configdoc.Child(path, r), requester: r, value: p.By[r]})
	}
	return found
}

// beside returns the values of another field for the requesters of a use.
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

// Offered returns the requesters of a step, sorted. It includes "", any other requester, if the step is for
// all.
func (s *Step) Offered() []string {
	if s.Success.All == nil {
		return slices.Sorted(maps.Keys(s.Success.By))
	}
	return append([]string{anyOther}, s.Requesters()...)
}

// requesterText describes a requester in a message.
func requesterText(requester string) string {
	if requester == anyOther {
		return "any other requester"
	}
	return "requester " + configdoc.Show(requester)
}
