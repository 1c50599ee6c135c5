package runengine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/transition"
	"github.com/holdfast-go/holdfast/internal/wake"
)

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
type Body func(ctx context.Context, l *ClaimedStep) (Done, error)

func (w *Worker) lease() time.Duration {
	if w.Lease > 0 {
		return w.Lease
	}
	return lease.DefaultDuration
}

// Taker is who holds the steps that it takes.
func (w *Worker) Taker() Taker { return Taker{Holder: w.Name, Lease: w.lease()} }

// running says whether it runs.
func (w *Worker) running() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stop != nil
}

// mayHaveActed is an end of which nobody knows what was done before.
type mayHaveActed struct{ error }

func (u *mayHaveActed) Unwrap() error { return u.error }

// MayHaveActed says of an error that the body may have acted.
func MayHaveActed(err error) error { return &mayHaveActed{err} }

// passing is no error: the step waits for something elsewhere.
type passing struct{ delay time.Duration }

func (passing) Error() string { return "it waits for something elsewhere" }

// Pass has a step wait a while, which is no failure: its body is run again then.
func Pass(delay time.Duration) error { return passing{delay} }

// Serve runs a body under its hold and records how it ended, and goes on with the run as
// long as its next step is this worker's too. Neither the hold nor the recording depends on
// the worker's own context, which ends when it stops.
func (w *Worker) Serve(ctx context.Context, l ClaimedStep) {
	for {
		next, more := w.serve(ctx, l)
		if !more {
			return
		}
		l = next
	}
}

// serve does one step, and says whether the run goes on here.
func (w *Worker) serve(ctx context.Context, l ClaimedStep) (next ClaimedStep, more bool) {
	ctx = store.InWorkspace(ctx, l.Run.Workspace)
	var told atomic.Bool // the body was, that it is not wanted any more
	wanted, unwanted := context.WithCancelCause(ctx)
	defer unwanted(nil)
	woken, leave := w.Hub.Watch(CancelTopic(l.Run.ID), wake.Cancelled(wake.CancelledRun, l.partition(), l.Run.ID))
	defer leave()
	k := lease.Renewer{Lease: w.lease(), Woken: woken, Since: l.since, Timeout: max(l.Step.Timeout-grace, time.Millisecond), Renew: func(ctx context.Context) error {
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
	j := &effects.Journal{Book: l.Book(w.Engine), Leased: k.Held}
	body := k.Start(effects.With(wanted, j))
	var done Done
	err := k.Held(body) // it may have waited for its turn
	started := err == nil
	if started {
		done, err = w.body(body, &l)
	}
	failure := err
	if err != nil && context.Cause(body) != nil { // one that is told to stop says nothing of what it did before
		failure = MayHaveActed(err)
	}
	if err != nil && errors.Is(context.Cause(body), lease.ErrTimeout) {
		err = &mayHaveActed{fmt.Errorf("it took longer than %s: %w", l.Step.Timeout-grace, err)}
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

// body runs the user's code; a panic is a failure of which nobody knows what was done.
func (w *Worker) body(ctx context.Context, l *ClaimedStep) (done Done, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &mayHaveActed{fmt.Errorf("the body panicked: %v", p)}
		}
	}()
	return w.Body(ctx, l)
}

// errCancelled ends the context of a body whose run is to be cancelled; its hold goes on.
var errCancelled = errors.New("the run is to be cancelled")

// record writes how a body ended. One that gave up because the worker stops has not failed;
// an output that cannot be kept has.
func (w *Worker) record(ctx context.Context, l *ClaimedStep, done Done, failure error, j *effects.Journal, stopping bool) (ClaimedStep, error) {
	if failure == nil {
		next, err := w.settle(ctx, l, done, j)
		for fault.CodeOf(err) == fault.Unavailable && clock.Wait(ctx, settleAgain) == nil {
			next, err = w.settle(ctx, l, done, j)
		}
		if code := fault.CodeOf(err); err == nil || code == fault.LeaseLost || code == fault.Unavailable || code == fault.OutcomeUnknown || ctx.Err() != nil ||
			errors.Is(err, context.Canceled) { // it is not recorded: the hold runs out
			return next, err
		}
		failure = MayHaveActed(fmt.Errorf("what it did cannot be kept: %w", err)) // it has done it
	}
	return w.failed(ctx, l, failure, j, stopping)
}

// settleAgain is the pause before the end of a step is written again, as long as it is held.
const settleAgain = 250 * time.Millisecond

// settle ends a step well, with what its body wants written in that transaction.
func (w *Worker) settle(ctx context.Context, l *ClaimedStep, done Done, j *effects.Journal) (ClaimedStep, error) {
	results, open, _ := restOf(j)
	if open {
		return w.Executor.Park(ctx, w.Engine, l, effects.ErrOpen.Error(), results)
	}
	mine := func(handler string) (Handled, bool) {
		h, ok := w.Handlers()[handler]
		return h, ok && w.running() && w.Kind == ""
	}
	e := Ended{Output: done.Output, Patch: done.Patch, Results: results, Holder: w.Name, Lease: w.lease(), Local: mine, Whole: done.Whole}
	if len(done.Commits) == 0 {
		next, err := w.Executor.Complete(ctx, w.Engine, l, e)
		if errors.Is(err, effects.ErrOpen) {
			return w.Executor.Park(ctx, w.Engine, l, effects.ErrOpen.Error(), results)
		}
		return next, err
	}
	var next ClaimedStep
	err := w.Engine.Update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		// What the program writes may be an entity or a stream, which everybody else has
		// before the run.
		for _, f := range done.Commits {
			if err := careful(ctx, tx, f); err != nil {
				return err
			}
		}
		next, err = w.Executor.Complete(ctx, tx, l, e)
		if err == nil && next.again { // it is written already
			err = lostStep(l)
		}
		return err
	})
	return next, err
}

// restOf are the results of effects that are not noted yet.
func restOf(j *effects.Journal) (results []Result, open, doubt bool) {
	rest, open, doubt := j.Rest()
	for _, r := range rest {
		results = append(results, Result{Name: r.Name, Ordinal: r.Ordinal, State: string(effects.Done), Result: r.Result})
	}
	return results, open, doubt
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

func (w *Worker) failed(ctx context.Context, l *ClaimedStep, failure error, j *effects.Journal, stopping bool) (ClaimedStep, error) {
	results, _, doubt := restOf(j)
	if pass, ok := errors.AsType[passing](failure); ok {
		return w.Executor.Pass(ctx, w.Engine, l, pass.delay, results)
	}
	_, untold := errors.AsType[*mayHaveActed](failure)
	untold = untold && l.Step.Safety == opaque
	if doubt || untold && l.Step.Unknown == "hold" {
		return w.Executor.Park(ctx, w.Engine, l, failure.Error(), results)
	}
	if stopping && !untold && errors.Is(failure, context.Canceled) {
		doubtful, err := l.Doubtful(ctx, w.Engine)
		if err != nil {
			return *l, err
		}
		if !doubtful { // it gave up because the worker stops: it has not failed
			return w.Executor.Release(ctx, w.Engine, l, l.Step.Safety == opaque, results)
		}
	}
	_, over := errors.AsType[*unfired](failure)
	return w.Executor.Fail(ctx, w.Engine, l, Failure{Message: failure.Error(), Final: fault.IsFinal(failure), Reported: !untold, Unfired: over, Results: results})
}

// late reports the calls of a body that has lost its lease. An opaque body is a call itself,
// unless it said that it did nothing.
func (w *Worker) late(ctx context.Context, l *ClaimedStep, done Done, failure error, j *effects.Journal) {
	calls := j.Made()
	_, unknown := errors.AsType[*mayHaveActed](failure)
	switch {
	case l.Step.Safety == opaque && failure == nil:
		calls = append(calls, effects.LateCall{Name: effects.Body, State: effects.Done, Result: done.Output})
	case l.Step.Safety == opaque && unknown:
		calls = append(calls, effects.LateCall{Name: effects.Body, State: effects.Unknown})
	}
	l.Late(ctx, w.Engine, w.Name, calls, w.Log)
}

// pollAgain is when the fate of an operation is asked for again that goes on elsewhere.
const pollAgain = time.Second

// pollElsewhere is when a transition is given up again by a node that has not its lifecycle.
const pollElsewhere = 5 * time.Second

// Transit does a transition: it fires once, under the step's hold, and then asks what
// became of it.
func Transit(ctx context.Context, firer transition.Transitioner, l *ClaimedStep, f transition.Request) (Done, error) {
	if _, here := firer.Steps(ctx, f.Lifecycle); !here { // another node has it, or will
		return Done{}, Pass(pollElsewhere)
	}
	if l.Step.Fired != "" {
		return fated(ctx, firer, l, f)
	}
	output, err := firer.Fire(ctx, f, func(ctx context.Context, tx *store.Tx, operation string) error {
		return Point(ctx, tx, l, operation)
	})
	if err == nil {
		return Done{Output: output}, nil
	}
	x, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return Done{}, err
	}
	switch outcome, _ := x.Fields["outcome"].(string); {
	case outcome == "pending" || outcome == "uncertain":
		return Done{}, Pass(pollAgain)
	case x.Code == fault.ActionFailed && outcome == "released":
		return Done{}, &unfired{err}
	case x.Code == fault.ActionInvalid:
		return Done{}, &unfired{fault.NonRetryable(err)}
	case x.Code == fault.InvalidTransition, x.Code == fault.Forbidden, x.Code == fault.NotFound, x.Code == fault.Validation:
		return Done{}, fault.NonRetryable(err)
	}
	return Done{}, err
}

func fated(ctx context.Context, firer transition.Transitioner, l *ClaimedStep, f transition.Request) (Done, error) {
	outcome, output, message, err := firer.Outcome(ctx, f, l.Step.Fired)
	switch {
	case err != nil:
		return Done{}, err
	case outcome == "success":
		return Done{Output: output}, nil
	case outcome == "pending" || outcome == "uncertain":
		return Done{}, Pass(pollAgain)
	}
	return Done{}, &unfired{fault.New(fault.ActionFailed, "%s", message)}
}

// unfired is the error of a transition whose operation has ended, without effect: the next
// attempt fires another.
type unfired struct{ error }

func (u *unfired) Unwrap() error { return u.error }
