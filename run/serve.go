package run

import (
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

// parallel is how many steps a node does at once. Where there are several workspaces, one has two thirds of it at the most.
const parallel = 96

// maintenance is what an engine has for runs: it does their steps, frees what a crash left held,
// and deletes those whose time is over.
type maintenance struct {
	engine *engine.Engine
	*runengine.Local
	once sync.Once

	mu       sync.Mutex
	handlers map[string]*handler
	known    map[string]runengine.Handled // of the handlers; replaced, never changed
}

type maintenanceKey struct{}

func maintenanceOf(e *engine.Engine) *maintenance {
	local := runengine.LocalOf(e)
	return e.Shared(maintenanceKey{}, func() any {
		k := &maintenance{engine: e, Local: local, handlers: make(map[string]*handler), known: make(map[string]runengine.Handled)}
		k.Executor.Later, k.Handled = k.later, k.all
		k.Worker = &runengine.Worker{Engine: e, Executor: k.Executor, Hub: e.Hub(), Log: e.Log(), Name: e.Node(), Handlers: k.all, Ticks: true,
			Topics: []string{runengine.Topic(""), runengine.Made}, Body: k.body, MaxConcurrency: parallel}
		return k
	}).(*maintenance)
}

// Lease sets how long the engine that it is handed to holds a step of a run without a renewal: a
// crash of the program is noticed after that. It renews three times as often. The default is 30 seconds.
func Lease(d time.Duration) holdfast.Part {
	return part(func(e *holdfast.Engine) error {
		if d < shortestLease || d > 24*time.Hour {
			return fault.New(fault.Validation, "a lease of run steps must be between %s and 24h, got %s", shortestLease, d)
		}
		maintenanceOf(engine.Of(e)).Worker.Lease = d
		return nil
	})
}

// part is a part that is a function.
type part func(*holdfast.Engine) error

// Start is called by [holdfast.Open].
func (p part) Start(_ context.Context, e *holdfast.Engine) error { return p(e) }

// shortestLease leaves a renewal time to arrive.
const shortestLease = 100 * time.Millisecond

// farOff is what this node does not remember to look at: it finds out by itself.
const farOff = time.Minute

func (k *maintenance) later(d time.Duration) {
	if d < farOff {
		time.AfterFunc(d+time.Millisecond, func() { k.engine.Hub().Wake([]string{runengine.Topic(""), runengine.Made}) })
	}
}

// start starts what serves runs.
func (k *maintenance) start() {
	k.once.Do(func() {
		k.engine.Background(k.Worker.Run)
		k.engine.Sweep("runs", k.sweep, wake.WorkKind{Kind: wake.HeldStep}, wake.WorkKind{Kind: wake.OldRun})
		k.engine.Background(k.rouse)
	})
}

// The pauses of rouse: between pages, and behind the last.
const (
	rousePause = time.Second
	rouseEvery = time.Minute
)

// rouse wakes runs that wait although their signal is there. That there are any is no state
// of this program's making, so it takes its time: it is no sweep of the janitor's, and an
// idle node asks a statement a minute for it.
func (k *maintenance) rouse(ctx context.Context) {
	for {
		shards, err := store.Shards(ctx, k.engine)
		woken, err := store.OnShards(shards, err, func(at store.Partition) (int, error) { return k.rouseShard(ctx, at.Shard) })
		if woken > 0 {
			k.engine.Log().Warn("woke runs that waited although their signal was there", "woken", woken)
		}
		if err != nil && ctx.Err() == nil {
			k.engine.Log().Warn("could not look for runs that wait although their signal is there", "error", err)
		}
		if clock.Wait(ctx, clock.Jitter(rouseEvery)) != nil {
			return
		}
	}
}

func (k *maintenance) rouseShard(ctx context.Context, shard int16) (woken int, err error) {
	for at := (runengine.Inbox{}); ; {
		n, next, failed := k.Executor.Rouse(ctx, k.engine, shard, at)
		woken, err = woken+n, errors.Join(err, failed)
		if next == (runengine.Inbox{}) || clock.Wait(ctx, rousePause) != nil {
			return woken, err
		}
		at = next
	}
}

// sweep ends the holds that have run out, and deletes runs whose time is over.
func (k *maintenance) sweep(ctx context.Context) (freed int, err error) {
	shards, err := store.Shards(ctx, k.engine)
	return store.OnShards(shards, err, func(at store.Partition) (int, error) {
		n, err := k.Executor.Expire(ctx, k.engine, at)
		gone, failed := runengine.Prune(ctx, k.engine, at)
		return n + gone, errors.Join(err, failed)
	})
}

// all are the handlers that this node has, with transitions if it has lifecycles.
func (k *maintenance) all() map[string]runengine.Handled {
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

// add makes a handler known.
func (k *maintenance) add(name string, h *handler) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.handlers[name] != nil && k.handlers[name] != h {
		return fault.New(fault.Conflict, "there are two handlers with the name %q", name)
	}
	k.handlers[name] = h
	known := maps.Clone(k.known)
	known[name] = h.Handled
	k.known = known
	return nil
}

func (k *maintenance) body(ctx context.Context, l *runengine.ClaimedStep) (runengine.Done, error) {
	k.mu.Lock()
	h := k.handlers[l.Step.Handler]
	k.mu.Unlock()
	if h == nil {
		return runengine.Done{}, fault.New(fault.Unavailable, "the handler %q is not this node's", l.Step.Handler)
	}
	return h.body(ctx, l)
}

// Serve has an engine do the steps of some definitions, and everything else that runs need:
// their waits, their signals, their decisions. Hand it to [holdfast.Open].
func Serve(defs ...*Definition) holdfast.Part {
	return part(func(e *holdfast.Engine) error {
		k := maintenanceOf(engine.Of(e))
		for _, d := range defs {
			if d.bad != nil {
				return fmt.Errorf("the definition %s: %w", d.ID(), d.bad)
			}
			for name, h := range d.handlers {
				if err := k.add(name, h); err != nil {
					return err
				}
			}
		}
		Maintain(e)
		return nil
	})
}

// transition fires a step of a lifecycle.
func (k *maintenance) transition(ctx context.Context, l *runengine.ClaimedStep) (runengine.Done, error) {
	var f transition.Request
	if err := json.Unmarshal(l.Step.Input, &f); err != nil {
		return runengine.Done{}, holdfast.NonRetryable(err)
	}
	return runengine.Transit(ctx, transition.On(k.engine), l, f)
}

// Retention says how long runs are kept beyond their end whose definitions do not say; without
// it, they are kept for ever. Hand it to [holdfast.Open].
func Retention(how time.Duration) holdfast.Part {
	return part(func(e *holdfast.Engine) error {
		if how <= 0 {
			return fault.New(fault.Validation, "runs are kept for longer than nothing: %s", how)
		}
		maintenanceOf(engine.Of(e)).Executor.Retention = how
		return nil
	})
}
