// Package lifecycleconfig is what a lifecycle's config says: which statuses a thing
// may have, and which steps lead from one to the other, for whom, with which
// handlers, and held in which claim meanwhile. It reads configs, judges them, and
// draws them; it knows no database.
package lifecycleconfig

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// Config is a lifecycle.
type Config struct {
	Workflow      string
	OwningModule  string
	StatusTypes   []string
	InitialStatus string
	Table         *Table   // nil: entities are kept in Holdfast's own table
	Janitor       *Janitor // nil: the config does not ask for the standard janitor
	Steps         []Step
	// AfterEffects is how after-effects are delivered, by the names of their handlers.
	AfterEffects map[string]AfterEffect

	source configdoc.Source
}

// Table is a table of the user's own that holds the entities.
type Table struct {
	Name    string // may be schema.name
	ID      string // columns; the defaults are id, status and version
	Status  string
	Version string
	// Workspace is the column that tells the workspace, or InWorkspace the one
	// workspace that the whole table is in; if neither is given, the latter is
	// "default".
	Workspace   string
	InWorkspace string
}

// Janitor says that the standard janitor frees what this lifecycle's crashes
// leave, and how.
type Janitor struct {
	Every      time.Duration // 0: on every round of the engine's janitor
	StuckAfter time.Duration // 0: the default, 5 minutes
}

// AfterEffect is how an after-effect is delivered. The zero value is the default.
type AfterEffect struct {
	// MaxAttempts is how many deliveries may fail, the first included, before it is
	// blocked; 0 is the default.
	MaxAttempts int
	// Backoff is the pause after the first failure; it doubles up to MaxBackoff. 0 is the
	// default.
	Backoff, MaxBackoff time.Duration
	// OnRefusal is what a 4xx of a URL does: retry, the default, or block.
	OnRefusal string
	// OnMissing is what becomes of it if the row of a table of the user's own is gone:
	// block, the default, or skip.
	OnMissing string
}

// The words of [AfterEffect].
const (
	Retry = "retry"
	Block = "block"
	Skip  = "skip"
)

// Limits and defaults of an after-effect. With the default pauses, which are half to all of
// what they say, a thousand attempts take two to four days: a service that is down for a
// day, or over a weekend, blocks nothing.
const (
	DefaultAttempts   = 1000
	MaxAttempts       = 1_000_000
	DefaultBackoff    = time.Second
	DefaultMaxBackoff = 5 * time.Minute
	LongestBackoff    = 365 * 24 * time.Hour
)

// Filled is a with the defaults filled in.
func (a AfterEffect) Filled() AfterEffect {
	a.MaxAttempts, a.Backoff = cmp.Or(a.MaxAttempts, DefaultAttempts), cmp.Or(a.Backoff, DefaultBackoff)
	a.MaxBackoff = cmp.Or(a.MaxBackoff, max(DefaultMaxBackoff, a.Backoff))
	a.OnRefusal, a.OnMissing = cmp.Or(a.OnRefusal, Retry), cmp.Or(a.OnMissing, Block)
	return a
}

// Step is a way from one status to another.
type Step struct {
	ID     int
	Key    string
	Status []string // where it starts: several only without a claim
	// Serialized are the requesters that take no claim status: in a config with claims
	// they hold the entity where it is. See [Config.Serialized].
	Serialized []string
	// Timeout is how long the claim is kept, and the action may take, at the
	// most; 0 is the default, 15 minutes.
	Timeout time.Duration

	Claim       Per[Claim]
	Success     Per[string]
	Failed      Per[string]
	Action      Per[string]
	Validation  Per[string]
	AfterEffect Per[string]
}

// Claim is a status that says that somebody is at it, and where it goes back to.
type Claim struct{ Into, Revert string }

// Per is a field of a step: the same for every requester, or one for each that is
// named.
type Per[T any] struct {
	All *T
	By  map[string]T
}

// For returns the field for a requester.
func (p Per[T]) For(requester string) (v T, ok bool) {
	if p.All != nil {
		return *p.All, true
	}
	v, ok = p.By[requester]
	return v, ok
}

// Requesters returns the names that a step mentions, by rising name.
func (s *Step) Requesters() []string {
	var all []string
	for _, names := range [][]string{keys(s.Claim.By), keys(s.Success.By), keys(s.Failed.By), keys(s.Action.By), keys(s.Validation.By), keys(s.AfterEffect.By), s.Serialized} {
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Serialized says whether a requester is in serialized for a step at a status, in any of
// the step's entries that start there.
func (c *Config) Serialized(key, status, requester string) bool {
	return requester != anyOther && slices.ContainsFunc(c.Steps, func(s Step) bool {
		return s.Key == key && slices.Contains(s.Status, status) && slices.Contains(s.Serialized, requester)
	})
}

func keys[T any](m map[string]T) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

// Offers says whether a step is for a requester: whether it has a status to lead
// to.
func (s *Step) Offers(requester string) bool {
	_, ok := s.Success.For(requester)
	return ok
}

// Handler is what is known of a handler that a config names.
type Handler struct {
	Kind    string // "action", "validation" or "afterEffect"
	Safety  Safety
	Timeout time.Duration // 0: none of its own
}

// Safety is what a handler promises of itself.
type Safety string

// The safeties.
const (
	Undeclared    Safety = ""              // says nothing
	Idempotent    Safety = "idempotent"    // may run again
	Transactional Safety = "transactional" // writes only through the transaction it is given
	Journaled     Safety = "journaled"     // its side effects go through Effect
	Opaque        Safety = "opaque"        // acts, unjournaled
)

// Violation is a rule that a config breaks, or, as a warning, comes near to
// breaking.
type Violation = configdoc.Violation
