package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/transition"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// parallel is the default number of steps that a node runs at once.
const parallel = 96

// service serves the runs of an engine: it runs their steps, releases leases that a crash
// left behind, and deletes runs whose retention has ended.
type service struct {
	engine *engine.Engine
	*runengine.Local
	once sync.Once

	mu       sync.Mutex
	defined  map[string]bool // the definitions of the program, by id
	handlers map[string]*handler
	known    map[string]runengine.Handled // settings of the handlers; copied on write, never changed
}

type serviceKey struct{}

func serviceOf(e *engine.Engine) *service {
	local := runengine.LocalOf(e)
	return e.Shared(serviceKey{}, func() any {
		k := &service{engine: e, Local: local, defined: make(map[string]bool), handlers: make(map[string]*handler), known: make(map[string]runengine.Handled)}
		k.Executor.Later, k.Handled = k.later, k.all
		k.Worker = &runengine.Worker{Engine: e, Executor: k.Executor, Hub: e.Hub(), Log: e.Log(), Name: e.Node(), Handlers: k.all, Ticks: true,
			Topics: []string{runengine.Topic(""), runengine.Made}, Body: k.body, MaxConcurrency: parallel}
		return k
	}).(*service)
}

// Lease sets the duration of the lease on a run's step. A crash is detected when the lease expires. While the
// step runs, the lease is renewed after every third of its duration. The duration must be between 100ms and 24h;
// 0 means the default of 30 seconds. Pass it to [holdfast.Open].
func Lease(d time.Duration) holdfast.Part {
	return part(func(e *holdfast.Engine) error {
		if d != 0 && d < shortestLease || d > 24*time.Hour {
			return fault.New(fault.Validation, "the lease on run steps must be between %s and 24h, got %s", shortestLease, d)
		}
		serviceOf(engine.Of(e)).Worker.Lease = d
		return engine.Of(e).Once("run.Lease")
	})
}

// MaxWorkers limits how many steps of runs this node runs at the same time; 0 means the default of 96. If there are
// several workspaces, one workspace gets at most two thirds of it. Pass it to [holdfast.Open].
func MaxWorkers(n int) holdfast.Part {
	return part(func(e *holdfast.Engine) error {
		if n < 0 {
			return fault.New(fault.Validation, "MaxWorkers must not be negative, got %d", n)
		}
		serviceOf(engine.Of(e)).Worker.MaxConcurrency = cmp.Or(n, parallel)
		return engine.Of(e).Once("run.MaxWorkers")
	})
}

// part is a [holdfast.Part] made from a function.
type part func(*holdfast.Engine) error

// Register is called by [holdfast.Open].
func (p part) Register(_ context.Context, e *holdfast.Engine) error { return p(e) }

// shortestLease leaves a renewal enough time to arrive.
const shortestLease = 100 * time.Millisecond

// farOff is the delay from which on no timer is set: the regular polls find the work.
const farOff = time.Minute

// later wakes the worker after a delay.
func (k *service) later(d time.Duration) {
	if d < farOff {
		time.AfterFunc(d+time.Millisecond, func() { k.engine.Hub().Wake([]string{runengine.Topic(""), runengine.Made}) })
	}
}

// start starts the worker, the sweep and the wake-up loop, once.
func (k *service) start() {
	k.once.Do(func() {
		k.addDefault(runengine.TransitionHandler, &handler{Handled: runengine.Handled{Safety: "idempotent"}, body: k.transition})
		k.engine.Background(k.Worker.Run)
		k.engine.Serves(k.Worker.WorkKinds)
		k.engine.Steps(k.Worker.WorkKinds, k.Worker.Step) // for tests that step the loops: holdfasttest.Settle
		k.engine.Sweep("runs", k.expire, wake.WorkKind{Kind: wake.HeldStep})
		k.engine.Deletes("ended runs", k.prune, wake.WorkKind{Kind: wake.OldRun})
		k.engine.Background(k.rouse)
	})
}

// rousePause is the pause of rouse between two pages, and rouseEvery the pause after the last page.
const (
	rousePause = time.Second
	rouseEvery = time.Minute
)

// rouse wakes runs that wait although their signal has arrived. This program never leaves a run
// in that state, so the check is slow on purpose: it is not a sweep of the janitor, and an idle
// node runs one statement a minute for it.
func (k *service) rouse(ctx context.Context) {
	for {
		woken, err := store.Sweep(ctx, k.engine, func(at store.Partition) (int, error) { return k.rouseShard(ctx, at.Shard) })
		if woken > 0 {
			k.engine.Log().Warn("woke runs that were still waiting although their signal had arrived", "count", woken)
		}
		if err != nil && ctx.Err() == nil {
			k.engine.Log().Warn("failed to find or wake runs that are still waiting although their signal has arrived", "error", err)
		}
		if clock.Wait(ctx, clock.Jitter(rouseEvery)) != nil {
			return
		}
	}
}

func (k *service) rouseShard(ctx context.Context, shard int16) (woken int, err error) {
	for at := (runengine.Inbox{}); ; {
		n, next, failed := k.Executor.Rouse(ctx, k.engine, shard, at)
		woken, err = woken+n, errors.Join(err, failed)
		if next == (runengine.Inbox{}) || clock.Wait(ctx, rousePause) != nil {
			return woken, err
		}
		at = next
	}
}

// expire ends expired leases.
func (k *service) expire(ctx context.Context) (freed int, err error) {
	return store.Sweep(ctx, k.engine, func(at store.Partition) (int, error) { return k.Executor.Expire(ctx, k.engine, at) })
}

// rowsOfRun is about how many rows a run has.
const rowsOfRun = 5

// prune deletes runs whose retention has ended.
func (k *service) prune(ctx context.Context, size int) (deleted int, more bool, err error) {
	deleted, err = store.Sweep(ctx, k.engine, func(at store.Partition) (int, error) {
		n, full, err := k.Executor.Prune(ctx, k.engine, at, max(size/rowsOfRun, 1))
		more = more || full
		return n, err
	})
	return deleted, more, err
}

// all returns the handlers of this node. Transitions are included only if the engine has
// lifecycles.
func (k *service) all() map[string]runengine.Handled {
	fires := transition.On(k.engine) != nil
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, there := k.known[runengine.TransitionHandler]; there && !fires {
		known := maps.Clone(k.known)
		delete(known, runengine.TransitionHandler)
		return known
	}
	return k.known
}

// define adds a definition of the program, once.
func (k *service) define(id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.defined[id] {
		return fault.New(fault.Conflict, "definition %q is registered twice: register it only once, or use another version", id)
	}
	k.defined[id] = true
	return nil
}

// add registers a handler. For a second handler under the same name it returns
// [fault.Conflict].
func (k *service) add(name string, h *handler) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.handlers[name] != nil {
		return fault.New(fault.Conflict, "run handler %q is registered twice: register it only once", name)
	}
	k.handlers[name] = h
	known := maps.Clone(k.known)
	known[name] = h.Handled
	k.known = known
	return nil
}

// addDefault registers a handler, unless the name has one already.
func (k *service) addDefault(name string, h *handler) {
	k.mu.Lock()
	there := k.handlers[name] != nil
	k.mu.Unlock()
	if !there {
		_ = k.add(name, h) // an error means that a concurrent call registered one first
	}
}

func (k *service) body(ctx context.Context, l *runengine.ClaimedStep) (runengine.Done, error) {
	k.mu.Lock()
	h := k.handlers[l.Step.Handler]
	k.mu.Unlock()
	if h == nil {
		return runengine.Done{}, fault.New(fault.Unavailable, "handler %q is not registered on this node", l.Step.Handler)
	}
	return h.body(ctx, l)
}

// Register is called by [holdfast.Open]. The engine then runs the steps of the definition, and also handles waits,
// signals and decisions. Register returns an error if the definition is invalid, or if the engine already has this definition or a
// handler of the same name ([holdfast.ErrConflict]).
func (d *Definition) Register(_ context.Context, e *holdfast.Engine) error {
	if d.bad != nil {
		return fmt.Errorf("definition %s: %w", d.ID(), d.bad)
	}
	k := serviceOf(engine.Of(e))
	if err := k.define(d.ID()); err != nil {
		return err
	}
	for name, h := range d.handlers {
		if err := k.add(name, h); err != nil {
			return err
		}
	}
	k.start()
	return nil
}

// Maintenance returns a part that maintains runs on an engine that has no definitions of its own:
// it ends waits, delivers signals and decisions, and releases expired leases. Pass it to
// [holdfast.Open].
func Maintenance() holdfast.Part {
	return part(func(e *holdfast.Engine) error {
		serviceOf(engine.Of(e)).start()
		return nil
	})
}

// transition fires a step of a lifecycle.
func (k *service) transition(ctx context.Context, l *runengine.ClaimedStep) (runengine.Done, error) {
	var f transition.Request
	if err := json.Unmarshal(l.Step.Input, &f); err != nil {
		return runengine.Done{}, holdfast.NonRetryable(err)
	}
	return runengine.Transit(ctx, transition.On(k.engine), l, f)
}

// Retention sets the retention of finished runs whose definition does not set one. It must be at least a millisecond, or 0
// for the default: such runs are retained forever. The key of a deleted run stays, see [KeyRetention]. Pass it to
// [holdfast.Open].
func Retention(retention time.Duration) holdfast.Part {
	return part(func(e *holdfast.Engine) error {
		if retention != 0 && retention < time.Millisecond {
			return fault.New(fault.Validation, "the retention of runs must be at least 1ms, or 0 for the default, got %s", retention)
		}
		serviceOf(engine.Of(e)).Executor.Retention = retention
		return engine.Of(e).Once("run.Retention")
	})
}

// KeyRetention sets how long the key of a run that was deleted after its retention is kept, counted from the deletion. It must
// be at least a millisecond, or 0 for the default: forever. While the key is kept, a start with it returns
// [holdfast.ErrKeyExpired]; after that, it starts a new run. Pass it to [holdfast.Open].
func KeyRetention(retention time.Duration) holdfast.Part {
	return part(func(e *holdfast.Engine) error {
		if retention != 0 && retention < time.Millisecond {
			return fault.New(fault.Validation, "the retention of the keys of runs must be at least 1ms, or 0 for the default, got %s", retention)
		}
		serviceOf(engine.Of(e)).Executor.KeyRetention = retention
		return engine.Of(e).Once("run.KeyRetention")
	})
}
