package lifecycleengine

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/store"
)

// unfinished is an attempt that did not succeed.
type unfinished struct {
	err       error // of the body, or of settling
	cause     error // why the body's context ended, if it did
	results   []entities.Result
	outcome   string // as returned by decide
	reported  bool   // the body reported the outcome itself, or has not begun
	park      bool   // another attempt would not help
	probed    bool   // a probe reported that no earlier attempt acted
	unchecked bool   // the validation did not pass: the action has not begun, and so has not failed
}

// Limits for resuming an operation whose body failed after an effect began: the number of
// attempts and the pauses between them.
const (
	maxResumes   = 5
	firstPause   = time.Second
	longestPause = 5 * time.Minute
)

// ending limits how long the end of an attempt is retried. record and refuse also give the end a context of this length
// that does not end with the caller's; with the caller's own context, retries stop when that ends.
const ending = 15 * time.Second

// settle ends an operation that is done. Because the work is done, it retries while the database is unavailable, for at
// most the time of ending; if the lease has expired by then, the database refuses the end.
func (t *attempt) settle(ctx context.Context, w *work, results []entities.Result) (e entities.Entity, err error) {
	defer func() {
		if p := recover(); p != nil { // a panic in a commit
			err = &panicked{p, debug.Stack()}
		}
	}()
	to, _ := t.step.Success.For(w.requester)
	if t.opaque {
		results = append(slices.Clone(results), entities.Result{Name: effects.Body, Result: []byte("null")})
	}
	args := entities.EndArgs{Ticket: t.entity.Ticket(), How: entities.Success, To: to, Data: w.data, Results: results, Event: settled(t.step.Key),
		Outcome: "success", Meta: t.meta}
	args.After = afterOf(t.step, w.requester)
	args.Note = settledNote(args.After, w.output, t.wasOf(t.entity.Data, w.data))
	e, err = retryUnavailable(ctx, func() (entities.Entity, error) { return t.store.end(ctx, t.at, args, t.claim, w.commits) })
	t.lost = t.lost || e.Claim.Repeated // the end was already recorded, so this holder has no lease any more
	if err == nil && t.output != nil {
		*t.output = w.output
	}
	if err == nil && e.Claim.Phase != entities.Free {
		return e, t.outcome(effects.ErrOpen, "uncertain", e) // an effect that this attempt's journal does not contain is unknown
	}
	return e, err
}

// settleElsewhere is settle for a body that ran elsewhere. If the row of the entity was deleted, the success cannot be recorded in
// it. The operation then ends without it or, if an effect may have happened, waits for manual resolution.
func (t *attempt) settleElsewhere(ctx context.Context, w *work) (entities.Entity, error) {
	e, err := t.settle(ctx, w, nil)
	code := fault.CodeOf(err)
	if err == nil || t.config.Table == nil || code == fault.LeaseLost || code == fault.OutcomeUnknown || e.Claim.Phase == entities.Uncertain {
		return e, err
	}
	if _, missing := t.store.get(ctx, t.entity.ID); fault.CodeOf(missing) != fault.NotFound {
		return e, err
	}
	u := unfinished{err: fault.New(fault.NotFound, "the row of %s %q was deleted, so its result cannot be recorded", t.entity.Lifecycle, t.entity.ID),
		outcome: "failed", reported: !t.opaque, park: true}
	if t.opaque {
		u.results = []entities.Result{{Name: effects.Body, Result: []byte("null")}}
	}
	return t.giveBack(ctx, u)
}

// giveBack ends an attempt that is not done. The entity is reverted, or moves to the step's failed
// status, if it has one; but if an effect was begun, the operation waits for another attempt or for an
// operator.
func (t *attempt) giveBack(ctx context.Context, u unfinished) (entities.Entity, error) {
	args := entities.EndArgs{Ticket: t.entity.Ticket(), How: entities.Back, Results: u.results, Event: "released", Outcome: u.outcome, Message: messageOf(u.err),
		Delay: pauseAfter(t.entity.Claim.Failures), MaxRetries: maxResumes, Meta: t.meta}
	if failed, ok := t.step.Failed.For(t.entity.Claim.Requester); ok && u.outcome == "failed" && !u.unchecked {
		args.To, args.Event = failed, "failed/"+t.step.Key
	}
	if !u.reported && t.safety(t.step, t.entity.Claim.Requester) == lifecycleconfig.Undeclared {
		args.Note = []byte(`{"outcomeUnknown":true}`)
	}
	if u.park || u.outcome == "invalid" || fault.IsNonRetryable(u.err) || (t.opaque && !u.reported && t.unknown(t.step, t.entity.Claim.Requester) == effects.Hold) {
		args.How = entities.Park
	}
	e, ended := t.end(ctx, args, t.opaque && u.reported, u.probed)
	t.lost, t.gaveBack = t.lost || fault.CodeOf(ended) == fault.LeaseLost, ended == nil
	if ended != nil {
		// The claim stays until its lease expires.
		return t.entity, errors.Join(t.outcome(u.err, "unreleased", t.entity), ended)
	}
	switch e.Claim.Phase {
	case entities.Due:
		return e, t.outcome(u.err, "pending", e)
	case entities.Uncertain:
		t.engine.Log().Warn("operation is uncertain and waits for manual resolution", "workspace", t.at.Workspace, "lifecycle", e.Lifecycle, "entity", e.ID,
			"operation", e.Claim.Operation, "epoch", t.entity.Claim.Epoch, "step", e.Claim.Step, "error", u.err)
		return e, t.outcome(u.err, "uncertain", e)
	}
	return e, t.outcome(u.err, "released", e)
}

// end records the end of an attempt. If bodyDidNotAct is set, it first records that an opaque body
// did not act.
func (t *attempt) end(ctx context.Context, args entities.EndArgs, bodyDidNotAct, probed bool) (e entities.Entity, err error) {
	return retryUnavailable(ctx, func() (entities.Entity, error) {
		if bodyDidNotAct {
			if _, err := effects.End(ctx, t.engine, t.at, args.Ticket, effects.Body, 0, effects.NotDone, nil, probed); err != nil && fault.CodeOf(err) != fault.LeaseLost {
				return e, err // a lost lease is detected below, and ending again returns the same result
			}
		}
		return t.store.end(ctx, t.at, args, t.claim, nil)
	})
}

// retryUnavailable retries f for a while if the database is unavailable. An error of the function that the caller passed to
// WriteTx is not retried.
func retryUnavailable(ctx context.Context, f func() (entities.Entity, error)) (entities.Entity, error) {
	begun := clock.Now()
	for pause := 20 * time.Millisecond; ; pause *= 2 {
		e, err := f()
		known, ok := errors.AsType[*fault.Error](err)
		if _, own := errors.AsType[*commitError](err); own || !ok || known.Code != fault.Unavailable || !known.Retryable || clock.Since(begun)+pause > ending || clock.Wait(ctx, pause) != nil {
			return e, err
		}
	}
}

// decide returns the outcome of a body that did not succeed, and whether the body reported
// it itself. "unheard" means that a remote handler did not respond.
func (t *attempt) decide(err, cause error) (outcome string, reported bool) {
	var p *panicked
	switch {
	case errors.As(err, &p):
		t.engine.Log().Error("step action panicked", "workspace", t.at.Workspace, "lifecycle", t.entity.Lifecycle, "entity", t.entity.ID, "step", t.step.Key,
			"panic", p.value, "stack", string(p.stack))
		return "panicked", false
	case errors.Is(cause, lease.ErrTimeout), errors.Is(err, errTimeout):
		return "timeout", false
	case cause != nil:
		return "cancelled", false
	case errors.Is(err, ErrNoResponse):
		return "unheard", false
	case fault.CodeOf(err) == fault.ActionInvalid:
		return "invalid", true
	}
	return "failed", true
}

// messageOf returns the message of an error without its code.
func messageOf(err error) string {
	if f, ok := err.(*fault.Error); ok {
		return f.Message
	}
	return err.Error()
}

func pauseAfter(failures int) time.Duration {
	pause := firstPause
	for range min(failures, 20) {
		pause = min(2*pause, longestPause)
	}
	return clock.Jitter(pause)
}

// outcome returns the error that the caller gets for an attempt that did not succeed.
func (t *attempt) outcome(err error, outcome string, e entities.Entity) error {
	if _, ok := errors.AsType[*panicked](err); ok {
		return err
	}
	f := fault.New(fault.ActionFailed, "%s", messageOf(err))
	if as, ok := errors.AsType[*fault.Error](err); ok && as.Code == fault.ActionInvalid {
		f = fault.New(fault.ActionInvalid, "%s", as.Message)
	}
	switch outcome {
	case "pending":
		f.Message += " (an effect was begun and may have happened: the operation will be resumed)"
	case "uncertain":
		f.Message += " (an effect was begun and may have happened: the operation is parked until it is resolved manually)"
	}
	return f.Wrap(err).With("outcome", outcome).With("operation", e.Claim.Operation).With("status", e.Status)
}

func (t *attempt) reportLate(ctx context.Context, calls []effects.LateCall) {
	reportLate(ctx, t.engine, t.at, t.entity.Ticket(), calls)
}

func reportLate(ctx context.Context, e *engine.Engine, at store.Partition, t entities.Ticket, calls []effects.LateCall) {
	effects.Late(ctx, e, at, effects.Holder{Operation: t.Operation, Subject: t.Lifecycle + "/" + t.ID, Epoch: t.Epoch, Node: e.Node()}, calls, e.Log())
}
