// Package lifecycleconfig defines the config of a lifecycle: the statuses of an entity and the
// steps between them, with their requesters, handlers and claims. It parses, lints and draws
// configs, and does not access the database.
package lifecycleconfig

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// Config is the config of a lifecycle.
type Config struct {
	Workflow      string // the name of the lifecycle; the config calls it workflow
	OwningModule  string
	StatusTypes   []string
	InitialStatus string
	Table         *Table   // nil: entities are in Holdfast's own table
	Janitor       *Janitor // nil: the config does not request the standard janitor
	Steps         []Step
	// AfterEffects holds the delivery options of after-effects, by handler name.
	AfterEffects map[string]AfterEffect
	// NoDataHistory omits from the history what a step changes in an entity's data.
	NoDataHistory bool

	source configdoc.Source
}

// Table is a user table that contains the entities.
type Table struct {
	Name    string // may be schema.name
	ID      string // columns; the defaults are id, status and version
	Status  string
	Version string
	// Workspace is the column with the workspace. InWorkspace is the workspace of the whole
	// table, if there is no such column; the default is "default".
	Workspace   string
	InWorkspace string
}

// TableName returns the name of the user table, or "".
func (c *Config) TableName() string {
	if c.Table == nil {
		return ""
	}
	return c.Table.Name
}

// TableDetails returns the paths of the fields that describe the user table beyond its name.
func (c *Config) TableDetails() (paths []string) {
	for _, p := range []string{"/columns", "/entity_table/columns", "/entity_table/workspace"} {
		if c.source.IsText() && c.source.Given(p) {
			paths = append(paths, p)
		}
	}
	return paths
}

// Janitor requests that the standard janitor recovers this lifecycle's claims after crashes, and
// configures it.
type Janitor struct {
	Every      time.Duration // 0: on every pass of the engine's janitor loop
	StuckAfter time.Duration // 0: the default, 5 minutes
}

// AfterEffect holds the delivery options of an after-effect. The zero value is the default.
type AfterEffect struct {
	// MaxAttempts is the number of failed deliveries, including the first, after which the
	// after-effect is blocked; 0 means the default.
	MaxAttempts int
	// Backoff is the pause after the first failure; it doubles up to MaxBackoff. 0 means the
	// default.
	Backoff, MaxBackoff time.Duration
	// OnRefusal says what follows a 4xx response of a URL: retry, the default, or block.
	OnRefusal string
	// OnMissing says what happens if the row of a user table was deleted: block, the default, or
	// skip.
	OnMissing string
}

// The values of [AfterEffect.OnRefusal] and [AfterEffect.OnMissing].
const (
	Retry = "retry"
	Block = "block"
	Skip  = "skip"
)

// Limits and defaults of an after-effect. Jitter makes each pause half to all of its nominal
// length, so a thousand attempts with the default pauses take two to four days: a service that is
// down for a day, or over a weekend, blocks nothing.
const (
	DefaultAttempts   = 1000
	MaxAttempts       = 1_000_000
	DefaultBackoff    = time.Second
	DefaultMaxBackoff = clock.LongestBackoff
	LongestBackoff    = 365 * 24 * time.Hour
)

// Filled returns a with its defaults filled in.
func (a AfterEffect) Filled() AfterEffect {
	if a.Backoff == 0 && a.MaxBackoff > 0 {
		a.Backoff = min(DefaultBackoff, a.MaxBackoff)
	}
	a.MaxAttempts, a.Backoff = cmp.Or(a.MaxAttempts, DefaultAttempts), cmp.Or(a.Backoff, DefaultBackoff)
	a.MaxBackoff = cmp.Or(a.MaxBackoff, max(DefaultMaxBackoff, a.Backoff))
	a.OnRefusal, a.OnMissing = cmp.Or(a.OnRefusal, Retry), cmp.Or(a.OnMissing, Block)
	return a
}

// Step is a transition between statuses.
type Step struct {
	ID     int
	Key    string
	Status []string // the statuses where it starts: several only without a claim
	// Serialized are the requesters that take no claim status: in a config with claims
	// they lease the entity in its current status. See [Config.Serialized].
	Serialized []string
	// Timeout limits how long the claim lasts and the action takes; 0 means the default,
	// 15 minutes.
	Timeout time.Duration

	Claim       Per[Claim]
	Success     Per[string]
	Failed      Per[string]
	Action      Per[string]
	Validation  Per[string]
	AfterEffect Per[string]
}

// Claim is the status of a claimed entity, and the status that it reverts to.
type Claim struct{ Into, Revert string }

// Per is a field of a step: one value for every requester, or one for each named
// requester.
type Per[T any] struct {
	All *T
	By  map[string]T
}

// For returns the value for a requester.
func (p Per[T]) For(requester string) (v T, ok bool) {
	if p.All != nil {
		return *p.All, true
	}
	v, ok = p.By[requester]
	return v, ok
}

// Requesters returns the requesters that a step names, sorted.
func (s *Step) Requesters() []string {
	var all []string
	for _, names := range [][]string{keys(s.Claim.By), keys(s.Success.By), keys(s.Failed.By), keys(s.Action.By), keys(s.Validation.By), keys(s.AfterEffect.By), s.Serialized} {
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Serialized reports whether a requester is in serialized for a step at a status. Several entries of steps may have the
// step's key; the list of any that starts at the status counts.
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

// Offers reports whether a step is available to a requester: whether it has a successful_state for
// it.
func (s *Step) Offers(requester string) bool {
	_, ok := s.Success.For(requester)
	return ok
}

// Handler describes a handler that a config names.
type Handler struct {
	Kind    string // "action", "validation" or "afterEffect"; "" if it may serve as any one of them
	Safety  Safety
	Timeout time.Duration // 0: no timeout of its own
	Workers bool          // workers run it
}

// Safety is the safety that a handler declares.
type Safety string

// The safeties.
const (
	Undeclared    Safety = ""              // unknown
	Idempotent    Safety = "idempotent"    // may run again
	Transactional Safety = "transactional" // writes only through its transaction
	Journaled     Safety = "journaled"     // journals its side effects with Effect
	Opaque        Safety = "opaque"        // has side effects without a journal
)

// Violation is a rule that a config breaks or, as a warning, is likely to break.
type Violation = configdoc.Violation
