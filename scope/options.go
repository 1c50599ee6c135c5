package scope

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// What holds where nobody says otherwise.
const (
	DefaultBudget      = 30 * time.Second
	DefaultMaxAttempts = 4
	DefaultRequestTTL  = time.Hour
	DefaultSessionTTL  = 24 * time.Hour
)

// Names of kinds that are known without being declared. Any other name is a kind too.
const (
	Request = "request"
	Session = "session"
	User    = "user"
	Org     = "org"
)

// Kind says how the scopes of a kind behave. In each, 0 is the default, and less than 0 is
// no limit.
type Kind struct {
	Name string
	// Budget is how long a change may take, waiting and deciding; by default 30 seconds.
	Budget time.Duration
	// MaxAttempts is the number of attempts of Atomic while other writers are faster, the first included; by default 4.
	MaxAttempts int
	// TTL is how long a scope lives after its last change; by default an hour for
	// "request", a day for "session", and for ever else.
	TTL time.Duration
}

// Option says something of one handle. It goes before what is said of its kind.
type Option func(*settings)

// Budget is how long a change may take, waiting and deciding. 0 is that of the kind, less
// than 0 no limit.
func Budget(d time.Duration) Option { return func(s *settings) { s.Budget = d } }

// MaxAttempts is the number of attempts of Atomic while other writers are faster, the first included. 0 takes the
// kind's value; a negative number means no limit but the budget.
func MaxAttempts(n int) Option { return func(s *settings) { s.MaxAttempts = n } }

// TTL is how long the scope lives after a change made with this handle. 0 is that of the
// kind, less than 0 for ever.
func TTL(d time.Duration) Option { return func(s *settings) { s.TTL = d } }

// ExpectVersion makes changes only while the scope is at a version; else they are [ErrPrecondition].
func ExpectVersion(version int64) Option { return func(s *settings) { s.expected = &version } }

// Absent makes changes only while there is no such scope.
func Absent() Option { return ExpectVersion(events.None) }

// Present makes changes only while there is one, at whatever version.
func Present() Option { return ExpectVersion(scopestore.Some) }

// By says who makes the changes, for the history.
func By(actor string) Option { return func(s *settings) { s.meta.Actor = actor } }

// settings are a kind's, with what is said of one handle.
type settings struct {
	Kind
	expected *int64
	meta     events.Meta
}

// Kinds is a [holdfast.Part] that says how scopes of some kinds behave.
func Kinds(kinds ...Kind) holdfast.Part { return kindsPart(kinds) }

type kindsPart []Kind

// Start implements [holdfast.Part].
func (p kindsPart) Start(_ context.Context, e *holdfast.Engine) error {
	return shared(engine.Of(e).Runner().Directory).declare(p)
}

// state is what all handles on one store have in common.
type state struct {
	queues queues
	alarm  clock.Alarm // for budgets
	mu     sync.Mutex
	kinds  map[string]Kind
}

func (h *state) declare(kinds []Kind) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range kinds {
		if err := scopestore.CheckNames(k.Name, "-"); err != nil {
			return err
		}
		if _, twice := h.kinds[k.Name]; twice {
			return fault.New(fault.Conflict, "the kind of scopes %q is declared twice", k.Name)
		}
		if h.kinds == nil {
			h.kinds = make(map[string]Kind)
		}
		h.kinds[k.Name] = k
	}
	return nil
}

// settle fills in what a handle leaves open: as its kind says, as all do.
func (h *state) settle(kind string, s settings) settings {
	h.mu.Lock()
	k := h.kinds[kind]
	h.mu.Unlock()
	s.Budget = cmp.Or(s.Budget, k.Budget, DefaultBudget)
	s.MaxAttempts = cmp.Or(s.MaxAttempts, k.MaxAttempts, DefaultMaxAttempts)
	ttl := time.Duration(-1)
	switch kind {
	case Request:
		ttl = DefaultRequestTTL
	case Session:
		ttl = DefaultSessionTTL
	}
	s.TTL = max(cmp.Or(s.TTL, k.TTL, ttl), 0)
	return s
}

// checkExpected refuses a version that there cannot be.
func checkExpected(want *int64) error {
	if want != nil && *want < scopestore.Some {
		return fault.New(fault.Validation, "the version is %d: it is 0 or more", *want)
	}
	return nil
}

// checkTTL refuses a time to live that no clock can count.
func checkTTL(ttl time.Duration) error {
	const most = 100 * 365 * 24 * time.Hour
	if ttl > most {
		return fault.New(fault.Validation, "the time to live is %s: a hundred years are the most", ttl)
	}
	return nil
}

func checkNames(kind, id string) error {
	if err := strictjson.Text("kind", kind, events.MaxName); err != nil {
		return err
	}
	return scopestore.CheckNames(kind, id)
}
