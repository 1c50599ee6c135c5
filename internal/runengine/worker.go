package runengine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Worker takes the steps of some handlers, in all workspaces, and runs a body for each. It
// goes on with the next step of a run, if that is one of its own, without giving it away in
// between.
type Worker struct {
	Engine   Engine
	Executor *Executor
	Hub      *wake.Hub
	Log      *slog.Logger
	Name     string // the holder
	// Handlers are those whose steps it takes, and Kind what they must be declared as.
	Handlers func() map[string]Handled
	Kind     string
	// Ticks says that it does the engine's own steps too.
	Ticks  bool
	Topics []string
	Body   Body
	// MaxConcurrency is how many bodies run at once; workspaces share that.
	MaxConcurrency int
	Lease          time.Duration // [lease.DefaultDuration] if not set

	once   sync.Once
	room   *lease.Capacity
	finder Finder
	ticker Finder
	bodies sync.WaitGroup

	mu   sync.Mutex
	stop context.Context // ends when it is to stop; nil: it does not run
}

func (w *Worker) init() {
	w.once.Do(func() {
		w.room = lease.NewCapacity(w.MaxConcurrency, func() bool { return store.Alone(w.Engine) }, func() { w.Hub.WakeHere(w.again()) })
		w.finder.Order, w.finder.Capacity, w.ticker.Order = &w.room.Order, w.room, new(lease.Order)
	})
}

// again is what wakes it when there is room for one who could have none.
func (w *Worker) again() string { return "steps/" + w.Name }

// Run works until ctx ends, and then waits for the bodies that run. What is due at the
// engine's own steps needs no room: it is looked for apart, and does not wait for bodies.
func (w *Worker) Run(ctx context.Context) {
	w.init()
	w.runs(ctx)
	defer w.bodies.Wait()
	//lint:ignore SA1012 no context says that it does not run
	defer w.runs(nil)
	var ticking sync.WaitGroup
	defer ticking.Wait()
	if w.Ticks {
		p := wake.Poller{Hub: w.Hub, Topics: []string{Topic("")}, Log: w.Log, Poll: w.each(w.tick), WorkKinds: func() []wake.WorkKind { return []wake.WorkKind{{Kind: wake.Step}} }}
		ticking.Go(func() { p.Run(ctx) })
	}
	p := wake.Poller{Hub: w.Hub, Topics: append([]string{w.again()}, w.Topics...), Log: w.Log, Poll: w.each(func(ctx context.Context, at store.Partition) (bool, error) {
		return w.take(ctx, at, func(s lease.Share, l ClaimedStep) {
			w.bodies.Go(func() {
				defer w.room.Free(s, 1)
				w.Serve(ctx, l)
			})
		})
	}), WorkKinds: func() []wake.WorkKind { return wake.WorkKinds(wake.Step, slices.Collect(maps.Keys(w.Handlers()))...) }}
	p.Run(ctx)
}

// runs notes whether it runs. Who has begun a body, or is about to, has done so before.
func (w *Worker) runs(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = ctx
}

// each looks at all shards.
func (w *Worker) each(look func(context.Context, store.Partition) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (found bool, err error) {
		shards, err := w.Engine.Shards(ctx)
		if err != nil {
			return false, err
		}
		for _, shard := range shards {
			some, err := look(ctx, store.Partition{Shard: shard})
			found = found || some
			if err != nil {
				return found, err
			}
		}
		return found, nil
	}
}

// fewSteps is how many steps one look considers.
const fewSteps = 100

// tick does what is due at the engine's own steps.
func (w *Worker) tick(ctx context.Context, at store.Partition) (found bool, err error) {
	ready, found, err := w.ticker.Find(ctx, w.Engine, at, []string{""}, "", fewSteps)
	var failed error
	for i := range ready {
		w.ticker.Order.Served(ready[i].Run.Workspace)
		mine, serve, free := w.Eager(ready[i].Run.Workspace)
		next, moved, err := w.Executor.Tick(ctx, w.Engine, &ready[i], w.Taker(), mine)
		if failed = errors.Join(failed, err); moved && next.taken {
			serve(&next)
		}
		free()
		found = found || moved // one that cannot be moved must not hold up the others
	}
	return found, errors.Join(err, failed)
}

// take takes what there is room for, and has a body run for each step.
func (w *Worker) take(ctx context.Context, at store.Partition, serve func(lease.Share, ClaimedStep)) (found bool, err error) {
	handlers := w.Handlers()
	if len(handlers) == 0 {
		return false, nil
	}
	if err := w.room.Wait(ctx); err != nil {
		return false, err
	}
	ready, found, err := w.finder.Find(ctx, w.Engine, at, slices.Collect(maps.Keys(handlers)), w.Kind, fewSteps)
	if err != nil {
		return false, err
	}
	// What was taken is recorded also when the worker stops meanwhile: a step that was
	// taken for nobody would count as a death.
	in, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.lease())
	defer cancel()
	var failed error
	for i := range ready {
		if ctx.Err() != nil {
			break
		}
		s := ready[i].share()
		if w.room.Take(s, 1) == 0 {
			if w.room.Left() == 0 { // it looks again when there is some
				return true, failed
			}
			continue
		}
		next, taken, err := w.Executor.Take(in, w.Engine, &ready[i], handlers[ready[i].Step.Handler], w.Taker())
		failed = errors.Join(failed, err) // one that cannot be taken must not hold up the others
		if !taken {
			w.room.Free(s, 1)
			continue
		}
		found = true
		serve(s, next)
	}
	return found, failed
}

// Once looks once, at one workspace or at all on a shard, and does what it takes by itself,
// before it returns. It is for tests, which step by hand what loops do.
func (w *Worker) Once(ctx context.Context, at store.Partition) (found bool, err error) {
	w.init()
	if w.Ticks {
		if found, err = w.tick(ctx, at); err != nil {
			return found, err
		}
	}
	taken, err := w.take(ctx, at, func(s lease.Share, l ClaimedStep) {
		defer w.room.Free(s, 1)
		w.Serve(ctx, l)
	})
	return found || taken, err
}

// Eager says of the steps that a run begins with which this worker does at once: those of
// its handlers, while it runs and has room for the workspace. It returns what to do with a step that was taken
// so; free must be called, and gives back room that was not used.
func (w *Worker) Eager(workspace string) (mine LocalHandlers, serve func(*ClaimedStep), free func()) {
	w.init()
	share := lease.Share{Workspace: workspace}
	var stop context.Context // room is reserved
	mine = func(handler string) (Handled, bool) {
		h, ok := w.Handlers()[handler]
		if ok && stop == nil && w.Kind == "" {
			stop = w.reserve(share)
		}
		return h, ok && stop != nil
	}
	done := func() {
		w.room.Free(share, 1)
		w.bodies.Done()
	}
	free = func() {
		if stop != nil {
			stop = nil
			done()
		}
	}
	serve = func(l *ClaimedStep) {
		ctx, step := stop, *l
		stop = nil
		go func() {
			defer done()
			w.Serve(ctx, step)
		}()
	}
	return mine, serve, free
}

// reserve makes room for a body, if it runs and there is any, and returns its context.
func (w *Worker) reserve(s lease.Share) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == nil || w.stop.Err() != nil || w.room.Take(s, 1) == 0 {
		return nil
	}
	w.bodies.Add(1)
	return w.stop
}

// Local is what an engine has for runs.
type Local struct {
	Executor *Executor
	// Worker does the steps whose handlers the program has brought; nil is nobody.
	Worker *Worker
	// Handled tells what is known of those handlers.
	Handled func() map[string]Handled
}

type localKey struct{}

// LocalOf returns what an engine has. Package run fills it before the engine runs.
func LocalOf(e interface {
	Shared(key any, make func() any) any
}) *Local {
	return e.Shared(localKey{}, func() any { return &Local{Executor: new(Executor)} }).(*Local)
}

// Start starts a run. One that is not part of a transaction is begun here at once, where there is room.
func (l *Local) Start(ctx context.Context, d store.Doer, s Start) (at ClaimedStep, created bool, err error) {
	if _, inside := d.(*store.Tx); inside || l.Worker == nil {
		return l.Executor.Start(ctx, d, s)
	}
	mine, serve, free := l.Worker.Eager(store.WorkspaceOf(ctx))
	defer free()
	s.Local, s.Holder, s.Lease = mine, l.Worker.Name, l.Worker.lease()
	if at, created, err = l.Executor.Start(ctx, d, s); created && at.taken {
		serve(&at)
	}
	return at, created, err
}
