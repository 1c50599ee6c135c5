package lifecycleengine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
)

// registry contains all lifecycles of an engine. One poller resumes the operations of all of
// them, and one janitor releases their expired leases. It is not the registry of a workspace, which is
// stored and has a revision.
type registry struct {
	engine  *engine.Engine
	refused atomic.Int64

	mu          sync.Mutex
	bound       map[string]*bound
	strayCursor map[int16][3]string  // where the scan of each shard for entities in a claim status without a claim continues
	swept       map[string]time.Time // when a lifecycle was last swept; see isDue
	adoptCursor map[string]int       // where the next sweep of a user table for rows in a claim status without a claim begins; keys as in swept

	published  *publishedSet       // nil, or set before the engine runs
	stuckAfter time.Duration       // 0 for the default; set before the engine runs
	modules    map[string]Coverage // by owning_module; set before parts are registered
	once       sync.Once
}

type registryKey struct{}

func registryOf(e *engine.Engine) *registry {
	return e.Shared(registryKey{}, func() any {
		return &registry{engine: e, bound: make(map[string]*bound), strayCursor: make(map[int16][3]string), adoptCursor: make(map[string]int), modules: make(map[string]Coverage), swept: make(map[string]time.Time)}
	}).(*registry)
}

// SetStuckAfter sets how long an unrenewed claim is held if its config does not set it.
func SetStuckAfter(e *engine.Engine, d time.Duration) { registryOf(e).stuckAfter = d }

// CoverModule declares that the expired claims of all lifecycles of a module are recovered: by the given janitors, or by the
// standard janitor if none is given.
func CoverModule(e *engine.Engine, module string, by ...Janitor) error {
	modules := registryOf(e).modules
	if module == "" {
		return fault.New(fault.Validation, "the name of a module with a janitor is empty: name the module")
	}
	if _, taken := modules[module]; taken {
		return fault.New(fault.Conflict, "module %q is registered with janitors twice: register all of its janitors at once", module)
	}
	modules[module] = Coverage{Standard: len(by) == 0, Janitors: by}
	return nil
}

func (b *registry) boundTo(name string) *bound {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bound[name]
}

// names returns the names of the lifecycles in ascending order.
func (b *registry) names() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.bound {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// publishedClaims returns the published lifecycles that this node serves in some workspace, except those that the
// program defines itself, with their claim statuses across all workspaces.
func (b *registry) publishedClaims() map[string][]string {
	all := make(map[string][]string)
	if b.published == nil {
		return all
	}
	b.published.mu.Lock()
	defer b.published.mu.Unlock()
	for name, claims := range b.published.known {
		if b.boundTo(name) == nil {
			all[name] = claims
		}
	}
	return all
}

// find returns a lifecycle in the context's workspace.
func (b *registry) find(ctx context.Context, name string) (*bound, error) {
	s := b.boundTo(name)
	if s == nil && b.published != nil {
		return b.published.boundTo(ctx, name)
	}
	if s == nil || len(s.workspaces) > 0 && !slices.Contains(s.workspaces, store.WorkspaceOf(ctx)) {
		return nil, noLifecycle(name)
	}
	return s, nil
}

// owner returns a lifecycle of the program in any workspace, or a lifecycle published into the context's workspace.
func (b *registry) owner(ctx context.Context, name string) (*bound, error) {
	if s := b.boundTo(name); s != nil {
		return s, nil
	}
	return b.find(ctx, name)
}

// Named returns a lifecycle of an engine by its name, for entities whose data is
// arbitrary JSON. If the context's workspace has no such lifecycle, the error is
// [holdfast.ErrNotFound].
func Named(ctx context.Context, e *engine.Engine, name string) (*Lifecycle, error) {
	s, err := registryOf(e).find(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.Lifecycle, nil
}

// Details describe how an engine serves a lifecycle.
type Details struct {
	Published bool   // through the API, else it is defined by a program
	Janitor   string // standard, program, or none if the lifecycle needs none
	// Every is how often the claims are swept; 0 means with every round of the engine's janitor. StuckAfter is how long an
	// unrenewed claim is held.
	Every, StuckAfter time.Duration
	Warnings          []lifecycleconfig.Violation
}

// DetailsOf returns the details of a lifecycle in the context's workspace.
func DetailsOf(ctx context.Context, e *engine.Engine, name string) (Details, error) {
	b := registryOf(e)
	s, err := b.find(ctx, name)
	if err != nil {
		return Details{}, err
	}
	d := Details{Published: s.origin() == originAPI, Janitor: "none", StuckAfter: s.stuckAfter()}
	module := b.modules[s.config.OwningModule]
	if j := s.config.Janitor; j != nil {
		d.Every = j.Every
	}
	if s.standard || module.Standard || s.config.Janitor != nil {
		d.Janitor = "standard"
	}
	for _, c := range s.config.Claims() {
		if s.janitorFor(module, c.Into) != nil {
			d.Janitor = "program"
		}
	}
	_, d.Warnings = s.config.Lint(s.declared())
	return d, nil
}

// Names returns the names of the engine's lifecycles in the context's workspace, in
// ascending order.
func Names(ctx context.Context, e *engine.Engine) (all []string, err error) {
	b := registryOf(e)
	for _, name := range b.names() {
		if _, err := b.find(ctx, name); err == nil {
			all = append(all, name)
		}
	}
	if b.published != nil {
		found, err := listPublished(ctx, e)
		if err != nil {
			return nil, err
		}
		for _, x := range found {
			all = append(all, x.name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// at returns the lifecycle as bound to the engine that it was started on.
func (c *Lifecycle) at(e *engine.Engine) (*bound, error) {
	if c.bound != nil && c.bound.engine == e {
		return c.bound, nil
	}
	if s := registryOf(e).boundTo(c.config.Workflow); s != nil && s.Lifecycle == c {
		return s, nil
	}
	return nil, fault.New(fault.Validation, "lifecycle %q is not part of this engine: pass it to holdfast.Open", c.config.Workflow)
}

// Get returns an entity. In a transaction it reads only Holdfast's own table.
func (l *Lifecycle) Get(ctx context.Context, d store.Doer, id string) (Entity, error) {
	e, ok := d.(*engine.Engine)
	switch {
	case !ok && l.config.Table != nil:
		return Entity{}, l.userTableError()
	case !ok:
		return publicEntity(entities.Get(ctx, d, l.Name(), id))
	}
	s, err := l.at(e)
	if err != nil {
		return Entity{}, err
	}
	return publicEntity(s.store.get(ctx, id))
}

// OutcomeOf returns the outcome of an operation on an entity, as long as the entity's
// history is retained. For an unknown operation the error is [holdfast.ErrNotFound].
func (l *Lifecycle) OutcomeOf(ctx context.Context, e *engine.Engine, id, operation string) (OperationOutcome, error) {
	s, err := l.at(e)
	if err != nil {
		return OperationOutcome{}, err
	}
	return s.outcomeOf(ctx, id, operation)
}

// Refused returns how many requests this engine has refused because another was in
// progress or had come first.
func Refused(e *engine.Engine) int64 { return registryOf(e).refused.Load() }

// Refusals returns refused writes to an entity, the latest first, beginning before the given one; nil is the
// latest. Those of this node are included, even if they have just been refused.
func (l *Lifecycle) Refusals(ctx context.Context, e *engine.Engine, id string, before *refusals.Refusal, limit int) ([]refusals.Refusal, error) {
	e.Refusals().Flush(ctx)
	return refusals.List(ctx, e, entities.Stream(l.Name(), id), before, limit)
}
