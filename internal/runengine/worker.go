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

// Worker is a loop of a node that takes the due steps of a set of handlers, in all workspaces, and runs a body for each. It
// continues with the next step of a run, if one of its handlers serves it, without releasing the
// run in between.
type Worker struct {
	Engine   Engine
	Executor *Executor
	Hub      *wake.Hub
	Log      *slog.Logger
	Name     string // the holder
	// Handlers returns the handlers whose steps it takes. Kind is the kind that they must be declared as, such as "http"; "" is for the
	// handlers of this program, which are not declared.
	Handlers func() map[string]Handled
	Kind     string
	// Ticks makes it also execute the engine's own steps, which have no handler: waits for a time, a signal or a decision.
	Ticks  bool
	Topics []string
	Body   Body
	// MaxConcurrency limits the concurrent bodies; workspaces share this limit.
	MaxConcurrency int
	Lease          time.Duration // [lease.DefaultDuration] if not set
	RecordDelay    time.Duration // [defaultRecordDelay] if not set
	TakesNext      bool          // [Worker.Step] continues with the next step of a run; for tests

	once     sync.Once
	capacity *lease.Capacity
	finder   Finder
	ticker   Finder
	bodies   sync.WaitGroup

	mu      sync.Mutex
	stop    context.Context // ends when it must stop; nil if it is not running
	serving map[runKey]*ServedRun
}

func (w *Worker) init() {
	w.once.Do(func() {
		w.capacity = lease.NewCapacity(w.MaxConcurrency, func() bool { return store.SingleWorkspace(w.Engine) }, func() { w.Hub.WakeHere(w.again()) })
		w.finder.Order, w.finder.Capacity, w.ticker.Order = &w.capacity.Order, w.capacity, new(lease.Order)
	})
}

// again returns the topic that wakes the worker when capacity becomes free.
func (w *Worker) again() string { return "steps/" + w.Name }

// Run works until ctx ends, and then waits for the bodies in flight. The engine's own steps need no
// capacity: they have a poller of their own and do not wait for bodies.
func (w *Worker) Run(ctx context.Context) {
	w.init()
	w.setRunning(ctx)
	defer w.bodies.Wait()
	//lint:ignore SA1012 a nil context means that the worker is not running
	defer w.setRunning(nil)
	var ticking sync.WaitGroup
	defer ticking.Wait()
	if w.Ticks {
		p := wake.Poller{Hub: w.Hub, Topics: []string{Topic("")}, Log: w.Log, Poll: w.each(w.tickAll), WorkKinds: func() []wake.WorkKind { return []wake.WorkKind{{Kind: wake.Step}} }}
		ticking.Go(func() { p.Run(ctx) })
	}
	p := wake.Poller{Hub: w.Hub, Topics: append([]string{w.again()}, w.Topics...), Log: w.Log, Poll: w.each(func(ctx context.Context, at store.Partition) (bool, error) {
		return w.take(ctx, at, pollLimit, func(s lease.Share, l ClaimedStep) {
			w.bodies.Go(func() {
				defer w.capacity.Free(s, 1)
				w.Serve(ctx, l)
			})
		})
	}), WorkKinds: w.handled}
	p.Run(ctx)
}

// handled returns the steps with a handler that the worker serves.
func (w *Worker) handled() []wake.WorkKind {
	return wake.WorkKinds(wake.Step, slices.Collect(maps.Keys(w.Handlers()))...)
}

// WorkKinds returns all work that the worker serves.
func (w *Worker) WorkKinds() []wake.WorkKind {
	if !w.Ticks {
		return w.handled()
	}
	return append(w.handled(), wake.WorkKind{Kind: wake.Step})
}

// setRunning sets the context of the running worker; nil means that it has stopped.
func (w *Worker) setRunning(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = ctx
}

// each returns a poll function that calls poll for every shard.
func (w *Worker) each(poll func(context.Context, store.Partition) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (found bool, err error) {
		shards, err := w.Engine.Shards(ctx)
		if err != nil {
			return false, err
		}
		for _, shard := range shards {
			some, err := poll(ctx, store.Partition{Shard: shard})
			found = found || some
			if err != nil {
				return found, err
			}
		}
		return found, nil
	}
}

// TickDue executes the engine's own due steps once, on every shard.
func (w *Worker) TickDue(ctx context.Context) error {
	w.init()
	_, err := w.each(w.tickAll)(ctx)
	return err
}

// pollLimit is how many steps one poll reads.
const pollLimit = 100

func (w *Worker) tickAll(ctx context.Context, at store.Partition) (found bool, err error) {
	return w.tick(ctx, at, pollLimit)
}

// tick executes up to limit of the engine's own due steps.
func (w *Worker) tick(ctx context.Context, at store.Partition, limit int) (more bool, err error) {
	ready, more, err := w.ticker.Find(ctx, w.Engine, at, []string{""}, "", limit)
	var failed error
	for i := range ready {
		w.ticker.Order.Served(ready[i].Run.Workspace)
		mine, serve, free := w.Eager(ready[i].Run.Workspace)
		next, moved, err := w.Executor.Tick(ctx, w.Engine, &ready[i], w.Taker(), mine)
		// A step that cannot be moved must not block the others.
		if failed = errors.Join(failed, err); moved && next.taken {
			serve(&next)
		}
		free()
		if moved {
			w.countEnd(next.Run)
		}
		more = more || moved
	}
	return more, errors.Join(err, failed)
}

// take takes up to limit due steps, as far as there is capacity, and calls serve for each.
func (w *Worker) take(ctx context.Context, at store.Partition, limit int, serve func(lease.Share, ClaimedStep)) (found bool, err error) {
	handlers := w.Handlers()
	if len(handlers) == 0 {
		return false, nil
	}
	if err := w.capacity.Wait(ctx); err != nil {
		return false, err
	}
	ready, found, err := w.finder.Find(ctx, w.Engine, at, slices.Collect(maps.Keys(handlers)), w.Kind, limit)
	if err != nil {
		return false, err
	}
	// The result of a take is recorded even if the worker stops meanwhile: a step that was taken
	// but not served would count as a crash.
	in, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.lease())
	defer cancel()
	var failed error
	for i := range ready {
		if ctx.Err() != nil {
			break
		}
		s := ready[i].share()
		if w.capacity.Take(s, 1) == 0 {
			if w.capacity.Left() == 0 { // it polls again when capacity is free
				return true, failed
			}
			continue
		}
		next, taken, err := w.Executor.Take(in, w.Engine, &ready[i], handlers[ready[i].Step.Handler], w.Taker())
		failed = errors.Join(failed, err) // a step that cannot be taken must not block the others
		if !taken {
			w.capacity.Free(s, 1)
			continue
		}
		found = true
		serve(s, next)
	}
	return found, failed
}

// Step executes one due step of a workspace before it returns.
func (w *Worker) Step(ctx context.Context, at store.Partition) (found bool, err error) {
	w.init()
	if w.Ticks {
		if found, err = w.tick(ctx, at, 1); found || err != nil {
			return found, err
		}
	}
	return w.take(ctx, at, 1, func(s lease.Share, l ClaimedStep) {
		defer w.capacity.Free(s, 1)
		w.Serve(ctx, l)
	})
}

// Eager lets a caller that starts or moves a run take the step that begins. mine reports whether this worker
// serves a handler, is running and has capacity for the workspace, and then reserves capacity for one body; serve executes a
// step that was taken this way; free must be called and returns unused capacity.
func (w *Worker) Eager(workspace string) (mine LocalHandlers, serve func(*ClaimedStep), free func()) {
	w.init()
	share := lease.Share{Workspace: workspace}
	var stop context.Context // set while capacity is reserved
	mine = func(handler string) (Handled, bool) {
		h, ok := w.Handlers()[handler]
		if ok && stop == nil && w.Kind == "" {
			stop = w.reserve(share)
		}
		return h, ok && stop != nil
	}
	done := func() {
		w.capacity.Free(share, 1)
		w.bodies.Done()
	}
	free = func() {
		if stop != nil {
			stop = nil
			done()
		}
	}
	serve = func(l *ClaimedStep) {
		ctx, step, s := stop, *l, w.serves(l)
		stop = nil
		go func() {
			defer done()
			w.serveRun(ctx, step, s)
		}()
	}
	return mine, serve, free
}

// reserve reserves capacity for a body, if the worker is running and has any, and returns the body's context.
func (w *Worker) reserve(s lease.Share) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == nil || w.stop.Err() != nil || w.capacity.Take(s, 1) == 0 {
		return nil
	}
	w.bodies.Add(1)
	return w.stop
}

// Local is an engine's local support for runs.
type Local struct {
	Executor *Executor
	// Worker executes the steps whose handlers the program defines; nil if there are none.
	Worker *Worker
	// Handled returns the options of these handlers.
	Handled func() map[string]Handled
}

type localKey struct{}

// LocalOf returns the local support of an engine. Package run fills it before the engine runs.
func LocalOf(e interface {
	Shared(key any, make func() any) any
}) *Local {
	return e.Shared(localKey{}, func() any { return &Local{Executor: new(Executor)} }).(*Local)
}

// Has reports whether the program defines a handler.
func (l *Local) Has(handler string) bool {
	if l.Handled == nil {
		return false
	}
	_, has := l.Handled()[handler]
	return has
}

// Start starts a run. If it is not part of a transaction and there is capacity, the first step begins here at once.
func (l *Local) Start(ctx context.Context, d store.Doer, s Start) (at ClaimedStep, created bool, err error) {
	if store.Uncommitted(d) || l.Worker == nil {
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
