package lifecycleengine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
)

// board is all lifecycles of an engine: one poll resumes the operations of all, and
// one janitor frees what crashes left of all.
type board struct {
	engine  *engine.Engine
	log     *refusals.Log
	refusal atomic.Int64

	mu     sync.Mutex
	sites  map[string]*site
	behind map[int16][3]string  // how far each shard was looked through for strays
	swept  map[string]time.Time // when a lifecycle's own time to sweep last came

	door *door // set before the engine runs, if at all
	once sync.Once
}

type boardKey struct{}

func boardOf(e *engine.Engine) *board {
	return e.Shared(boardKey{}, func() any {
		return &board{engine: e, log: refusals.NewLog(e), sites: make(map[string]*site), behind: make(map[int16][3]string), swept: make(map[string]time.Time)}
	}).(*board)
}

func (b *board) site(name string) *site {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sites[name]
}

// names returns the lifecycles, by rising name.
func (b *board) names() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.sites {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// putThrough returns the lifecycles that were put, as far as this node knows, without those
// that the program has itself, with their claim statuses in whatever workspace.
func (b *board) putThrough() map[string][]string {
	all := make(map[string][]string)
	if b.door == nil {
		return all
	}
	b.door.mu.Lock()
	defer b.door.mu.Unlock()
	for name, claims := range b.door.known {
		if b.site(name) == nil {
			all[name] = claims
		}
	}
	return all
}

// find returns a lifecycle in the context's workspace.
func (b *board) find(ctx context.Context, name string) (*site, error) {
	s := b.site(name)
	if s == nil && b.door != nil {
		return b.door.site(ctx, name)
	}
	if s == nil || len(s.workspaces) > 0 && !slices.Contains(s.workspaces, store.WorkspaceOf(ctx)) {
		return nil, unknown(name)
	}
	return s, nil
}

// owner returns a lifecycle of the program, in whatever workspace, or one that was put into the context's.
func (b *board) owner(ctx context.Context, name string) (*site, error) {
	if s := b.site(name); s != nil {
		return s, nil
	}
	return b.find(ctx, name)
}

// Named returns a lifecycle of an engine by its name, for entities whose data is
// whatever JSON it is. There is none, or none for the context's workspace:
// [holdfast.ErrNotFound].
func Named(ctx context.Context, e *engine.Engine, name string) (*Lifecycle, error) {
	s, err := boardOf(e).find(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.Lifecycle, nil
}

// Names returns the names of the lifecycles of an engine that are for the context's
// workspace, rising.
func Names(ctx context.Context, e *engine.Engine) (all []string, err error) {
	b := boardOf(e)
	for _, name := range b.names() {
		if _, err := b.find(ctx, name); err == nil {
			all = append(all, name)
		}
	}
	if b.door != nil {
		found, err := put(ctx, e)
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

// at returns the lifecycle on an engine that it was started on.
func (c *Lifecycle) at(e *engine.Engine) (*site, error) {
	if c.bound != nil && c.bound.engine == e {
		return c.bound, nil
	}
	if s := boardOf(e).site(c.config.Workflow); s != nil && s.Lifecycle == c {
		return s, nil
	}
	return nil, fault.New(fault.Validation, "the lifecycle %q is not part of this engine: hand it to holdfast.Open", c.config.Workflow)
}

// Get returns an entity.
func (l *Lifecycle) Get(ctx context.Context, e *engine.Engine, id string) (Entity, error) {
	s, err := l.at(e)
	if err != nil {
		return Entity{}, err
	}
	return shown(s.ground.get(ctx, id))
}

// FateOf returns what became of an operation on an entity, also long after its end,
// as long as its history is kept: [holdfast.ErrNotFound] if nothing is known of it.
func (l *Lifecycle) FateOf(ctx context.Context, e *engine.Engine, id, operation string) (Fate, error) {
	s, err := l.at(e)
	if err != nil {
		return Fate{}, err
	}
	return s.fateOf(ctx, id, operation)
}

// Refused is how many tries this engine has refused, because another was in
// progress or had come first.
func Refused(e *engine.Engine) int64 { return boardOf(e).refusal.Load() }

// Attempts returns who was refused on an entity, the last first. It is a log by the
// way: what could not be noted is missing.
func (l *Lifecycle) Attempts(ctx context.Context, e *engine.Engine, id string) ([]refusals.Attempt, error) {
	boardOf(e).log.Flush()
	return refusals.List(ctx, e, l.Name(), id, 0)
}
