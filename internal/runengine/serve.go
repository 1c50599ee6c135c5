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
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/transition"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Commit is a write in the transaction that ends a step.
type Commit func(context.Context, *store.Tx) error

// Done is the result of a body.
type Done struct {
	Output  []byte
	Patches [][]byte
	Commits []Commit
	// Whole is for a body that calls a URL, which may have journaled effects through the API: the step is not done if the
	// outcome of one of them is unknown.
	Whole bool
}

// Body executes a step.
type Body func(ctx context.Context, l *ClaimedStep) (Done, error)

func (w *Worker) lease() time.Duration {
	if w.Lease > 0 {
		return w.Lease
	}
	return lease.DefaultDuration
}

// Taker returns the worker as the holder of the steps that it takes.
func (w *Worker) Taker() Taker { return Taker{Holder: w.Name, Lease: w.lease()} }

// running reports whether the worker is running, and so continues with the next step of a run.
func (w *Worker) running() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stop != nil || w.TakesNext
}

// mayHaveActed is the error of a body that may have acted.
type mayHaveActed struct{ error }

func (u *mayHaveActed) Unwrap() error { return u.error }

// MayHaveActed marks an error to mean that the body may have acted.
func MayHaveActed(err error) error { return &mayHaveActed{err} }

// passing means that the step waits for something elsewhere. It is not a failure.
type passing struct{ delay time.Duration }

func (passing) Error() string { return "waiting for an external operation" }

// Pass makes a step wait a while, without a failure. Its body then runs again.
func Pass(delay time.Duration) error { return passing{delay} }

// Serve runs a body under its lease, records its result, and continues with the run as long as this
// worker serves the next step. Neither the lease nor the recording depends on the worker's own context,
// which ends when the worker stops.
func (w *Worker) Serve(ctx context.Context, l ClaimedStep) { w.serveRun(ctx, l, w.serves(&l)) }

func (w *Worker) serveRun(ctx context.Context, l ClaimedStep, s *ServedRun) {
	defer w.served(s)
	ctx = store.InWorkspace(ctx, l.Run.Workspace)
	t := newTrail(ctx, w, &l)
	for {
		next, ok := w.serve(ctx, l, t)
		if !ok {
			return
		}
		w.Hub.Tally.Steps.Add(1)
		w.countEnd(next.Run)
		if !next.taken {
			s.run = next.Run
			return
		}
		l = next
	}
}

// countEnd counts a run that has ended.
func (w *Worker) countEnd(r Run) {
	if Over(r.Status) {
		w.Hub.Tally.Runs.Add(1)
	}
}

// ServedRun is a run that a worker of this process serves.
type ServedRun struct {
	// Done is closed when the worker has left the run.
	Done chan struct{}
	key  runKey
	run  Run // as the worker left it or, if the worker lost its lease, as it was when taken; read after Done
}

type runKey struct{ workspace, id string }

// Run returns the run as the worker left it.
func (s *ServedRun) Run() Run { return s.run }

// Served returns a run that the worker serves now, or nil. A caller that waits for the end of such a run need not read
// the run from the database, because the worker has it.
func (w *Worker) Served(workspace, id string) *ServedRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.serving[runKey{workspace, id}]
}

// serves records that the worker serves a run.
func (w *Worker) serves(l *ClaimedStep) *ServedRun {
	s := &ServedRun{Done: make(chan struct{}), key: runKey{l.Run.Workspace, l.Run.ID}, run: l.Run}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.serving == nil {
		w.serving = make(map[runKey]*ServedRun)
	}
	w.serving[s.key] = s
	return s
}

// served records that the worker has left a run.
func (w *Worker) served(s *ServedRun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.serving[s.key] == s { // not that of a later lease of the same run
		delete(w.serving, s.key)
	}
	close(s.Done)
}

// serve executes one step and reports whether its end was recorded, or is recorded behind.
func (w *Worker) serve(ctx context.Context, l ClaimedStep, t *trail) (next ClaimedStep, ok bool) {
	var leaseLost atomic.Bool // the renewer has seen that the lease is lost
	wanted, unwanted := context.WithCancelCause(ctx)
	defer unwanted(nil)
	var leave func()
	renewed, err := t.begin(unwanted)
	k := lease.Renewer{Lease: w.lease(), Since: l.since, Renewed: renewed, Timeout: max(l.Step.Timeout-grace, time.Millisecond), Renew: func(ctx context.Context) error {
		r, err := t.renew(ctx)
		if fault.CodeOf(err) == fault.LeaseLost {
			leaseLost.Store(true)
		}
		if err == nil && r.CancelRequested { // the lease is renewed until the body has stopped
			unwanted(errCancelled)
			leave() // or every renewal would wake the next one
		}
		return err
	}}
	leave = w.Hub.Watch(CancelTopic(l.Run.ID), wake.Cancelled(wake.CancelledRun, l.partition(), l.Run.ID), k.RenewNow)
	defer leave()
	j := &effects.Journal{Book: &trailBook{l.Book(w.Engine), t}, Leased: k.Held}
	body := k.Start(effects.With(wanted, j))
	var done Done
	if err == nil {
		err = k.Held(body) // time has passed since the lease was taken
	}
	started := err == nil
	if started {
		done, err = w.body(body, &l)
	}
	failure := err
	if err != nil && context.Cause(body) != nil { // a body that was stopped does not report what it did before
		failure = MayHaveActed(err)
	}
	if err != nil && errors.Is(context.Cause(body), lease.ErrTimeout) {
		err = &mayHaveActed{fmt.Errorf("timeout after %s: %w", l.Step.Timeout-grace, err)}
	}
	stopping := ctx.Err() != nil
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.lease())
	defer cancel()
	behind := false
	if err == nil && body.Err() == nil {
		next, behind, err = t.follow(done, j)
	}
	if !behind {
		next, err = t.end(rest, done, err, j, stopping)
	}
	k.Stop()
	if started && (fault.CodeOf(err) == fault.LeaseLost || err != nil && k.RanOut()) {
		w.late(rest, &l, done, failure, j)
	}
	if err != nil && !(leaseLost.Load() && fault.CodeOf(err) == fault.LeaseLost) && !errors.Is(err, errMovedOn) {
		w.Log.Warn("failed to record the end of a step", "workspace", l.Run.Workspace, "run", l.Run.ID, "step", l.Step.Name, "visit", l.Step.Visit, "epoch", l.Step.Epoch, "error", err)
	}
	return next, err == nil
}

// body runs the user's code. After a panic it is unknown what the code did.
func (w *Worker) body(ctx context.Context, l *ClaimedStep) (done Done, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &mayHaveActed{fmt.Errorf("the handler panicked: %v", p)}
		}
	}()
	defer meter.Of(w.Engine).Kind(meter.Step).Begin()()
	return w.Body(ctx, l)
}

// errCancelled ends the context of a body whose run is to be cancelled. Its lease stays.
var errCancelled = errors.New("cancellation of the run was requested")

// record records how a body ended. A body that gave up because the worker stops has not failed; a
// body whose output cannot be stored has.
func (w *Worker) record(ctx context.Context, l *ClaimedStep, done Done, failure error, j *effects.Journal, stopping bool) (ClaimedStep, error) {
	if failure == nil {
		next, err := w.settle(ctx, l, done, j)
		for fault.CodeOf(err) == fault.Unavailable && clock.Wait(ctx, settleAgain) == nil {
			next, err = w.settle(ctx, l, done, j)
		}
		if code := fault.CodeOf(err); err == nil || code == fault.LeaseLost || code == fault.Unavailable || code == fault.OutcomeUnknown || ctx.Err() != nil ||
			errors.Is(err, context.Canceled) { // not recorded: the lease expires
			return next, err
		}
		failure = MayHaveActed(fmt.Errorf("the result cannot be stored: %w", err)) // the body has acted
	}
	return w.failed(ctx, l, failure, j, stopping)
}

// settleAgain is the pause before the end of a step is written again, as long as its lease lasts.
const settleAgain = 250 * time.Millisecond

// settle ends a step with success, with its body's commits in the same transaction.
func (w *Worker) settle(ctx context.Context, l *ClaimedStep, done Done, j *effects.Journal) (ClaimedStep, error) {
	results, open, _ := restOf(j)
	if open {
		return w.park(ctx, l, effects.ErrOpen.Error(), results)
	}
	e := w.ended(done, results)
	if len(done.Commits) == 0 {
		next, err := w.Executor.Complete(ctx, w.Engine, l, e)
		if errors.Is(err, effects.ErrOpen) {
			return w.park(ctx, l, effects.ErrOpen.Error(), results)
		}
		return next, err
	}
	var next ClaimedStep
	err := w.Engine.Update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		// The commits may lock an entity or a stream, which all other code locks before the
		// run.
		for _, f := range done.Commits {
			if err := runCommit(ctx, tx, f); err != nil {
				return err
			}
		}
		next, err = w.Executor.Complete(ctx, tx, l, e)
		if err == nil && next.again { // it was recorded before
			err = lostStep(l)
		}
		return err
	})
	return next, err
}

// ended returns the successful end of a step. The worker takes the next step if it serves it.
func (w *Worker) ended(done Done, results []Result) Ended {
	mine := func(handler string) (Handled, bool) {
		h, ok := w.Handlers()[handler]
		return h, ok && w.running() && w.Kind == ""
	}
	return Ended{Output: done.Output, Patches: done.Patches, Results: results, Holder: w.Name, Lease: w.lease(), Local: mine, Whole: done.Whole}
}

// restOf returns the results of effects that are not journaled yet, whether the outcome of an effect is unknown (open),
// and whether only an operator can resolve it (doubt).
func restOf(j *effects.Journal) (results []Result, open, doubt bool) {
	rest, open, doubt := j.Rest()
	for _, r := range rest {
		results = append(results, Result{Name: r.Name, Ordinal: r.Ordinal, State: string(effects.Done), Result: r.Result})
	}
	return results, open, doubt
}

// runCommit runs a commit and returns a panic as an error.
func runCommit(ctx context.Context, tx *store.Tx, f Commit) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a WriteTx function panicked: %v", p)
		}
	}()
	return f(ctx, tx)
}

// failed records the end of a body that returned an error: as a failure, or as what the error stands for.
func (w *Worker) failed(ctx context.Context, l *ClaimedStep, failure error, j *effects.Journal, stopping bool) (ClaimedStep, error) {
	results, _, doubt := restOf(j)
	if pass, ok := errors.AsType[passing](failure); ok {
		return w.Executor.Pass(ctx, w.Engine, l, pass.delay, results)
	}
	_, unreported := errors.AsType[*mayHaveActed](failure)
	unreported = unreported && l.Step.Safety == opaque
	if doubt || unreported && l.Step.Unknown == "hold" {
		return w.park(ctx, l, failure.Error(), results)
	}
	if stopping && !unreported && errors.Is(failure, context.Canceled) {
		doubtful, err := l.Doubtful(ctx, w.Engine)
		if err != nil {
			return *l, err
		}
		if !doubtful { // it gave up because the worker stops: this is not a failure
			return w.Executor.Release(ctx, w.Engine, l, l.Step.Safety == opaque, results)
		}
	}
	_, noEffect := errors.AsType[*unfired](failure)
	w.warn("step failed", l, failure.Error())
	return w.Executor.Fail(ctx, w.Engine, l, Failure{Message: failure.Error(), Final: fault.IsNonRetryable(failure), Reported: !unreported, Unfired: noEffect, Results: results})
}

// park makes a step wait for an operator.
func (w *Worker) park(ctx context.Context, l *ClaimedStep, message string, results []Result) (ClaimedStep, error) {
	next, err := w.Executor.Park(ctx, w.Engine, l, message, results)
	if err == nil {
		w.warn("operation is uncertain and waits for manual resolution", l, message)
	}
	return next, err
}

// warn logs a step that did not succeed.
func (w *Worker) warn(what string, l *ClaimedStep, message string) {
	w.Log.Warn(what, "workspace", l.Run.Workspace, "run", l.Run.ID, "step", l.Step.Name, "visit", l.Step.Visit, "operation", l.Operation(), "epoch", l.Step.Epoch,
		"failures", l.Step.Failures, "error", message)
}

// late reports the calls of a body that has lost its lease. An opaque body is itself a call, unless
// it reported that it did nothing.
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

// pollAgain is the pause between polls for the outcome of a fired operation.
const pollAgain = time.Second

// pollElsewhere is the pause after a node that does not have the lifecycle has left a transition to others.
const pollElsewhere = 5 * time.Second

// Transit executes a transition: it fires once, under the step's lease, and then polls for the
// outcome.
func Transit(ctx context.Context, firer transition.Transitioner, l *ClaimedStep, f transition.Request) (Done, error) {
	if _, here := firer.Steps(ctx, f.Lifecycle); !here { // another node has the lifecycle, or will have it
		return Done{}, Pass(pollElsewhere)
	}
	if l.Step.Fired != "" {
		return firedOutcome(ctx, firer, l, f)
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

// firedOutcome returns the result of a step whose operation was fired before.
func firedOutcome(ctx context.Context, firer transition.Transitioner, l *ClaimedStep, f transition.Request) (Done, error) {
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

// unfired is the error of a transition whose operation has ended without effect: the next attempt
// fires another.
type unfired struct{ error }

func (u *unfired) Unwrap() error { return u.error }
