package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Engine is what runs run on.
type Engine interface {
	store.Doer
	Update(context.Context, func(context.Context, *store.Tx) error) error
	Shards(context.Context) ([]int16, error)
}

// Commit is written in the transaction that ends a step.
type Commit func(context.Context, *store.Tx) error

// Done is what a body has brought.
type Done struct {
	Output, Patch []byte
	Commits       []Commit
	// Whole says that others may have journaled effects: where one is left open, it is not done.
	Whole bool
}

// Body does a step.
type Body func(ctx context.Context, l *Live) (Done, error)

// Worker takes the steps of some handlers, in all workspaces, and runs a body for each. It
// goes on with the next step of a run, if that is one of its own, without giving it away in
// between.
type Worker struct {
	Engine Engine
	Desk   *Desk
	Hub    *wake.Hub
	Log    *slog.Logger
	Name   string // the holder
	// Handlers are those whose steps it takes, and Kind what they must be declared as.
	Handlers func() map[string]Handled
	Kind     string
	// Ticks says that it does the engine's own steps too.
	Ticks  bool
	Topics []string
	Body   Body
	// Parallel is how many bodies run at once; workspaces share that.
	Parallel int
	Lease    time.Duration // [hold.Lease] if not set

	once   sync.Once
	room   *hold.Room
	finder Finder
	ticker Finder
	bodies sync.WaitGroup

	mu   sync.Mutex
	stop context.Context // ends when it is to stop; nil: it does not run
}

func (w *Worker) init() {
	w.once.Do(func() {
		w.room = hold.NewRoom(w.Parallel, func() bool { return store.Alone(w.Engine) }, func() { w.Hub.WakeHere(w.again()) })
		w.finder.Order, w.finder.Room, w.ticker.Order = &w.room.Order, w.room, new(hold.Order)
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
		p := wake.Poller{Hub: w.Hub, Topics: []string{Topic("")}, Log: w.Log, Look: w.each(w.tick), Needs: func() []wake.Need { return []wake.Need{{Kind: wake.Step}} }}
		ticking.Go(func() { p.Run(ctx) })
	}
	p := wake.Poller{Hub: w.Hub, Topics: append([]string{w.again()}, w.Topics...), Log: w.Log, Look: w.each(func(ctx context.Context, at store.Place) (bool, error) {
		return w.take(ctx, at, func(s hold.Share, l Live) {
			w.bodies.Go(func() {
				defer w.room.Free(s, 1)
				w.Serve(ctx, l)
			})
		})
	}), Needs: func() []wake.Need { return wake.Needs(wake.Step, slices.Collect(maps.Keys(w.Handlers()))...) }}
	p.Run(ctx)
}

// runs notes whether it runs. Who has begun a body, or is about to, has done so before.
func (w *Worker) runs(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = ctx
}

// running says whether it runs.
func (w *Worker) running() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stop != nil
}

// each looks at all shards.
func (w *Worker) each(look func(context.Context, store.Place) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (found bool, err error) {
		shards, err := w.Engine.Shards(ctx)
		if err != nil {
			return false, err
		}
		for _, shard := range shards {
			some, err := look(ctx, store.Place{Shard: shard})
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
func (w *Worker) tick(ctx context.Context, at store.Place) (found bool, err error) {
	ready, found, err := w.ticker.Find(ctx, w.Engine, at, []string{""}, "", fewSteps)
	var failed error
	for i := range ready {
		w.ticker.Order.Served(ready[i].Run.Workspace)
		mine, serve, free := w.Eager(ready[i].Run.Workspace)
		next, moved, err := w.Desk.Tick(ctx, w.Engine, &ready[i], w.Name, w.lease(), mine)
		if failed = errors.Join(failed, err); moved && next.taken {
			serve(&next)
		}
		free()
		found = found || moved // one that cannot be moved must not hold up the others
	}
	return found, errors.Join(err, failed)
}

// take takes what there is room for, and has a body run for each step.
func (w *Worker) take(ctx context.Context, at store.Place, serve func(hold.Share, Live)) (found bool, err error) {
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
		next, taken, err := w.Desk.Take(in, w.Engine, &ready[i], handlers[ready[i].Step.Handler], w.Name, w.lease())
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

// share is whose room a body of a step takes.
func (l *Live) share() hold.Share {
	return hold.Share{Workspace: l.Run.Workspace, Handler: l.Step.Handler}
}

// Once looks once, at one workspace or at all on a shard, and does what it takes by itself,
// before it returns. It is for tests, which step by hand what loops do.
func (w *Worker) Once(ctx context.Context, at store.Place) (found bool, err error) {
	w.init()
	if w.Ticks {
		if found, err = w.tick(ctx, at); err != nil {
			return found, err
		}
	}
	taken, err := w.take(ctx, at, func(s hold.Share, l Live) {
		defer w.room.Free(s, 1)
		w.Serve(ctx, l)
	})
	return found || taken, err
}

// HeldFor is how long it holds a step without a renewal.
func (w *Worker) HeldFor() time.Duration { return w.lease() }

func (w *Worker) lease() time.Duration {
	if w.Lease > 0 {
		return w.Lease
	}
	return hold.Lease
}

// Eager says of the steps that a run begins with which this worker does at once: those of
// its handlers, while it runs and has room for the workspace. It returns what to do with a step that was taken
// so; free must be called, and gives back room that was not used.
func (w *Worker) Eager(workspace string) (mine Mine, serve func(*Live), free func()) {
	w.init()
	share := hold.Share{Workspace: workspace}
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
	serve = func(l *Live) {
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
func (w *Worker) reserve(s hold.Share) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == nil || w.stop.Err() != nil || w.room.Take(s, 1) == 0 {
		return nil
	}
	w.bodies.Add(1)
	return w.stop
}

// Serve runs a body under its hold and records how it ended, and goes on with the run as
// long as its next step is this worker's too. Neither the hold nor the recording depends on
// the worker's own context, which ends when it stops.
func (w *Worker) Serve(ctx context.Context, l Live) {
	for {
		next, more := w.serve(ctx, l)
		if !more {
			return
		}
		l = next
	}
}

// serve does one step, and says whether the run goes on here.
func (w *Worker) serve(ctx context.Context, l Live) (next Live, more bool) {
	ctx = store.InWorkspace(ctx, l.Run.Workspace)
	var told atomic.Bool // the body was, that it is not wanted any more
	wanted, unwanted := context.WithCancelCause(ctx)
	defer unwanted(nil)
	woken, leave := w.Hub.Watch(CancelTopic(l.Run.ID), wake.Cancelled(wake.CancelledRun, l.place(), l.Run.ID))
	defer leave()
	k := hold.Keeper{Lease: w.lease(), Woken: woken, Since: l.since, Timeout: max(l.Step.Timeout-grace, time.Millisecond), Renew: func(ctx context.Context) error {
		r, err := Renew(ctx, w.Engine, &l, w.lease())
		if fault.CodeOf(err) == fault.LeaseLost {
			told.Store(true)
		}
		if err == nil && r.CancelRequested { // the hold goes on until it has stopped
			unwanted(errCancelled)
			leave() // or it would be told again and again, by a renewal each time
		}
		return err
	}}
	j := &effects.Journal{Book: l.Book(w.Engine), Held: k.Held}
	body := k.Start(effects.With(wanted, j))
	var done Done
	err := k.Held(body) // it may have waited for its turn
	started := err == nil
	if started {
		done, err = w.body(body, &l)
	}
	failure := err
	if err != nil && context.Cause(body) != nil { // one that is told to stop says nothing of what it did before
		failure = Unheard(err)
	}
	if err != nil && errors.Is(context.Cause(body), hold.ErrTimeout) {
		err = &unheard{fmt.Errorf("it took longer than %s: %w", l.Step.Timeout-grace, err)}
	}
	stopping := ctx.Err() != nil
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.lease())
	defer cancel()
	next, err = w.record(rest, &l, done, err, j, stopping)
	k.Stop()
	if started && (fault.CodeOf(err) == fault.LeaseLost || err != nil && k.RanOut()) {
		w.late(rest, &l, done, failure, j)
	}
	if err != nil && !(told.Load() && fault.CodeOf(err) == fault.LeaseLost) {
		w.Log.Warn("the end of a step was not recorded", "workspace", l.Run.Workspace, "run", l.Run.ID, "step", l.Step.Name, "visit", l.Step.Visit, "epoch", l.Step.Epoch, "error", err)
	}
	return next, err == nil && next.taken
}

// late reports the calls of a body that has lost its lease. An opaque body is a call itself,
// unless it said that it did nothing.
func (w *Worker) late(ctx context.Context, l *Live, done Done, failure error, j *effects.Journal) {
	calls := j.Made()
	_, unknown := errors.AsType[*unheard](failure)
	switch {
	case l.Step.Safety == opaque && failure == nil:
		calls = append(calls, effects.LateCall{Name: effects.Body, State: effects.Done, Result: done.Output})
	case l.Step.Safety == opaque && unknown:
		calls = append(calls, effects.LateCall{Name: effects.Body, State: effects.Unknown})
	}
	l.Late(ctx, w.Engine, w.Name, calls, w.Log)
}

// errCancelled ends the context of a body whose run is to be cancelled; its hold goes on.
var errCancelled = errors.New("the run is to be cancelled")

// unheard is an end of which nobody knows what was done before.
type unheard struct{ error }

func (u *unheard) Unwrap() error { return u.error }

// Unheard says of an error that the body may have acted.
func Unheard(err error) error { return &unheard{err} }

// passing is no error: the step waits for something elsewhere.
type passing struct{ delay time.Duration }

func (passing) Error() string { return "it waits for something elsewhere" }

// Pass has a step wait a while, which is no failure: its body is run again then.
func Pass(delay time.Duration) error { return passing{delay} }

// settleAgain is the pause before the end of a step is written again, as long as it is held.
const settleAgain = 250 * time.Millisecond

// record writes how a body ended. One that gave up because the worker stops has not failed;
// an output that cannot be kept has.
func (w *Worker) record(ctx context.Context, l *Live, done Done, failure error, j *effects.Journal, stopping bool) (Live, error) {
	if failure == nil {
		next, err := w.settle(ctx, l, done, j)
		for fault.CodeOf(err) == fault.Unavailable && clock.Wait(ctx, settleAgain) == nil {
			next, err = w.settle(ctx, l, done, j)
		}
		if code := fault.CodeOf(err); err == nil || code == fault.LeaseLost || code == fault.Unavailable || code == fault.OutcomeUnknown || ctx.Err() != nil ||
			errors.Is(err, context.Canceled) { // it is not recorded: the hold runs out
			return next, err
		}
		failure = Unheard(fmt.Errorf("what it did cannot be kept: %w", err)) // it has done it
	}
	return w.failed(ctx, l, failure, j, stopping)
}

func (w *Worker) failed(ctx context.Context, l *Live, failure error, j *effects.Journal, stopping bool) (Live, error) {
	results, _, doubt := restOf(j)
	if pass, ok := errors.AsType[passing](failure); ok {
		return w.Desk.Pass(ctx, w.Engine, l, pass.delay, results)
	}
	_, untold := errors.AsType[*unheard](failure)
	untold = untold && l.Step.Safety == opaque
	if doubt || untold && l.Step.Unknown == "hold" {
		return w.Desk.Park(ctx, w.Engine, l, failure.Error(), results)
	}
	if stopping && !untold && errors.Is(failure, context.Canceled) {
		doubtful, err := l.Doubtful(ctx, w.Engine)
		if err != nil || !doubtful {
			return w.released(ctx, l, results, err)
		}
	}
	_, over := errors.AsType[*unfired](failure)
	return w.Desk.Fail(ctx, w.Engine, l, Failure{Message: failure.Error(), Final: fault.IsFinal(failure), Told: !untold, Unfired: over, Results: results})
}

// released gives a step back whose body gave up because the worker stops: it has not failed.
func (w *Worker) released(ctx context.Context, l *Live, results []Result, err error) (Live, error) {
	if err != nil {
		return *l, err
	}
	return w.Desk.Release(ctx, w.Engine, l, l.Step.Safety == opaque, results)
}

// restOf are the results of effects that are not noted yet.
func restOf(j *effects.Journal) (results []Result, open, doubt bool) {
	rest, open, doubt := j.Rest()
	for _, r := range rest {
		results = append(results, Result{Name: r.Name, Ordinal: r.Ordinal, State: string(effects.Done), Result: r.Result})
	}
	return results, open, doubt
}

// settle ends a step well, with what its body wants written in that transaction.
func (w *Worker) settle(ctx context.Context, l *Live, done Done, j *effects.Journal) (Live, error) {
	results, open, _ := restOf(j)
	if open {
		return w.Desk.Park(ctx, w.Engine, l, effects.ErrOpen.Error(), results)
	}
	mine := func(handler string) (Handled, bool) {
		h, ok := w.Handlers()[handler]
		return h, ok && w.running() && w.Kind == ""
	}
	e := Ended{Output: done.Output, Patch: done.Patch, Results: results, Holder: w.Name, Lease: w.lease(), Mine: mine, Whole: done.Whole}
	if len(done.Commits) == 0 {
		next, err := w.Desk.Complete(ctx, w.Engine, l, e)
		if errors.Is(err, effects.ErrOpen) {
			return w.Desk.Park(ctx, w.Engine, l, effects.ErrOpen.Error(), results)
		}
		return next, err
	}
	var next Live
	err := w.Engine.Update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		// What the program writes may be an entity or a stream, which everybody else has
		// before the run.
		for _, f := range done.Commits {
			if err := careful(ctx, tx, f); err != nil {
				return err
			}
		}
		next, err = w.Desk.Complete(ctx, tx, l, e)
		if err == nil && next.again { // it is written already
			err = lostStep(l)
		}
		return err
	})
	return next, err
}

// careful runs what the program wants written; a panic is an error.
func careful(ctx context.Context, tx *store.Tx, f Commit) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("what was to be written panicked: %v", p)
		}
	}()
	return f(ctx, tx)
}

// body runs the user's code; a panic is a failure of which nobody knows what was done.
func (w *Worker) body(ctx context.Context, l *Live) (done Done, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &unheard{fmt.Errorf("the body panicked: %v", p)}
		}
	}()
	return w.Body(ctx, l)
}
