package scope

import (
	"cmp"
	"context"
	"fmt"
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

// Defaults of kinds and handles.
const (
	defaultBudget      = 30 * time.Second
	defaultMaxAttempts = 4
	defaultRequestTTL  = time.Hour
	defaultSessionTTL  = 24 * time.Hour
)

// Names of predeclared kinds. Any other name is a valid kind too.
const (
	Request = "request"
	Session = "session"
	User    = "user"
	Org     = "org"
)

// Kind configures the scopes of a kind. In each field, 0 means the default, and a negative value means no limit.
type Kind struct {
	Name string
	// Budget limits the duration of a change, including waiting; the default is 30 seconds. It has no effect in a
	// transaction.
	Budget time.Duration
	// MaxAttempts is how many times Atomic or Put tries to write while other writers are faster, including the first
	// attempt; the default is 4.
	MaxAttempts int
	// TTL is how long a scope lives after its last change, at most 100 years; the default is an
	// hour for "request", a day for "session", and forever for other kinds.
	TTL time.Duration
}

// Option is an option of one handle. It takes precedence over the kind's settings.
type Option struct{ set func(*settings) }

// Budget limits the duration of a change, including waiting. 0 means the value of the kind, and a negative value means
// no limit. In a transaction, the error is [holdfast.ErrValidation].
func Budget(d time.Duration) Option { return Option{func(s *settings) { s.Budget = d }} }

// MaxAttempts sets how many times Atomic or Put tries to write while other writers are faster, including the first attempt. 0
// means the value of the kind, and a negative number means that only the budget limits the attempts.
func MaxAttempts(n int) Option { return Option{func(s *settings) { s.MaxAttempts = n }} }

// TTL sets how long the scope lives after a change made with this handle, at most 100 years. 0 means the value of the
// kind, and a negative value means forever.
func TTL(d time.Duration) Option { return Option{func(s *settings) { s.TTL = d }} }

// ExpectVersion applies changes only if the scope is at this version. Otherwise the change returns
// [holdfast.ErrConcurrency] with the field lastVersion, which is -1 if the scope does not exist. For a negative version
// the change returns [holdfast.ErrValidation]: use [Absent] or [Present].
func ExpectVersion(version int64) Option {
	if version < 0 {
		return Option{func(s *settings) {
			s.bad = fault.New(fault.Validation, "the expected version must be 0 or more, got %d", version)
		}}
	}
	return expect(version)
}

func expect(version int64) Option {
	return Option{func(s *settings) {
		if s.expected != nil && *s.expected != version && s.bad == nil {
			s.bad = fault.New(fault.Validation, "ExpectVersion, Absent and Present exclude each other: pass only one of them, once")
		}
		s.expected = &version
	}}
}

// Absent applies changes only if the scope does not exist; otherwise the change returns
// [holdfast.ErrConcurrency].
func Absent() Option { return expect(events.None) }

// Present applies changes only if the scope exists, at any version; otherwise the change returns
// [holdfast.ErrConcurrency].
func Present() Option { return expect(scopestore.Some) }

// By sets the actor that the history records for changes made with this handle. Scopes in memory and in files have no
// history, so it has no effect there.
func By(actor string) Option { return Option{func(s *settings) { s.meta.Actor = actor }} }

// settings are the settings of a kind, overridden by the options of one handle.
type settings struct {
	Kind
	expected *int64
	bad      error // of an expected version that cannot exist
	meta     events.Meta
}

// Kinds returns a [holdfast.Part] that declares kinds of scopes. If a kind is declared twice,
// [holdfast.Open] returns [holdfast.ErrConflict].
func Kinds(kinds ...Kind) holdfast.Part { return kindsPart(kinds) }

type kindsPart []Kind

// Register implements [holdfast.Part].
func (p kindsPart) Register(_ context.Context, e *holdfast.Engine) error {
	return shared(engine.Of(e).Runner().Directory).declare(p)
}

// state is shared by all handles on one store.
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
		if err := checkTTL(k.TTL); err != nil {
			return fmt.Errorf("scope kind %q: %w", k.Name, err)
		}
		if _, twice := h.kinds[k.Name]; twice {
			return fault.New(fault.Conflict, "scope kind %q is declared twice: declare it only once", k.Name)
		}
		if h.kinds == nil {
			h.kinds = make(map[string]Kind)
		}
		h.kinds[k.Name] = k
	}
	return nil
}

// withDefaults fills in the settings that a handle leaves open, from its kind and then from the
// defaults.
func (h *state) withDefaults(kind string, s settings) settings {
	h.mu.Lock()
	k := h.kinds[kind]
	h.mu.Unlock()
	s.Budget = cmp.Or(s.Budget, k.Budget, defaultBudget)
	s.MaxAttempts = cmp.Or(s.MaxAttempts, k.MaxAttempts, defaultMaxAttempts)
	ttl := time.Duration(-1)
	switch kind {
	case Request:
		ttl = defaultRequestTTL
	case Session:
		ttl = defaultSessionTTL
	}
	s.TTL = max(cmp.Or(s.TTL, k.TTL, ttl), 0)
	return s
}

// checkTTL rejects a time to live of more than 100 years.
func checkTTL(ttl time.Duration) error {
	const most = 100 * 365 * 24 * time.Hour
	if ttl > most {
		return fault.New(fault.Validation, "the time to live must be at most 100 years, got %s", ttl)
	}
	return nil
}

func checkNames(kind, id string) error {
	if err := strictjson.Text("kind", kind, events.MaxName); err != nil {
		return err
	}
	return scopestore.CheckNames(kind, id)
}
