package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/store"
)

// attempt is one attempt of an operation, under a lease.
//
// The body runs while a renewer renews the lease, and holds no transaction. However it ends,
// the database decides the next state of the claim under the lock of the entity's row, because
// the database knows which effects were begun. If a body failed after an effect began, its entity can
// therefore not be reverted, whatever any node believes.
type attempt struct {
	*bound
	at      store.Partition
	entity  entities.Entity // as passed to the body
	claim   string          // the status while claimed: the claim status, or the one that the claim keeps
	step    *lifecycleconfig.Step
	lease   time.Duration
	since   time.Time // this node's clock before the lease was taken
	meta    events.Meta
	opaque  bool // the body as a whole is one effect
	resumed bool // taken as a due operation: an earlier attempt may have acted
	// How the attempt ended: its lease was lost, or another caller ended it the same way before; the lease
	// may have expired by the node's clock; it was given back.
	lost, ranOut, gaveBack bool
	output                 *json.RawMessage // receives the output; may be nil
}

// attemptOf returns an attempt whose body runs elsewhere.
func (s *bound) attemptOf(ctx context.Context, at store.Partition, now entities.Entity, operation string, epoch int64) (*attempt, error) {
	now.Claim.Operation, now.Claim.Epoch = operation, epoch
	c := now.Claim
	s, step, err := s.planned(ctx, c.Plan, c.Step, c.Requester, c.Revert)
	if err == nil && step == nil {
		err = fault.New(fault.Conflict, "the config no longer has a step %q that starts in status %q: add the step to the config again", c.Step, c.Revert)
	}
	if err != nil {
		return nil, err
	}
	return &attempt{bound: s, at: at, entity: now, claim: claimOf(step, c), step: step, lease: s.stuckAfter(), opaque: s.opaque(step, c.Requester)}, nil
}

// refreshed returns the entity with the current data of its row.
func (t *attempt) refreshed(ctx context.Context) (entities.Entity, error) {
	if t.config.Table == nil {
		return t.entity, nil
	}
	e, err := t.store.get(ctx, t.entity.ID)
	e.Claim = t.entity.Claim
	return e, err
}

// run runs the bodies and ends the attempt. It repanics afterwards if a body panicked.
func (t *attempt) run(ctx context.Context) (entities.Entity, error) {
	e, err := t.try(ctx)
	if p, ok := errors.AsType[*panicked](err); ok {
		panic(p.value)
	}
	return e, err
}

// try runs the bodies and ends the attempt. It returns a panic as an error.
func (t *attempt) try(ctx context.Context) (entities.Entity, error) {
	c := t.entity.Claim
	w := &work{entity: t.entity, step: c.Step, requester: c.Requester, operation: c.Operation, attempt: c.Failures + c.Crashes + 1, input: c.Input,
		own: t.config.Table != nil, stage: c.Stage, doubtful: t.opaque && c.Begun > 0 && t.resumed}
	j := &effects.Journal{Book: effects.OfClaim(t.engine, t.at, t.entity.Ticket())}
	err, cause := t.work(ctx, j, w)
	e, ended := t.record(ctx, w, j, err, cause)
	if t.lost || t.ranOut && !t.gaveBack {
		t.late(ctx, w, j, err, cause)
	}
	return e, ended
}

// record ends the attempt according to the result of its bodies.
func (t *attempt) record(ctx context.Context, w *work, j *effects.Journal, err, cause error) (entities.Entity, error) {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
	defer cancel()
	if errors.Is(cause, lease.ErrLost) {
		t.lost = true
		lost := lease.Lost(t.entity.Lifecycle+" "+t.entity.ID, t.entity.Claim.Epoch)
		if err != nil {
			lost = lost.Wrap(err)
		}
		return t.entity, lost
	}
	if next, ok := errors.AsType[*handOn](err); ok {
		return t.handOn(end, next)
	}
	u := unfinished{err: err, cause: cause, probed: w.cleared, unchecked: w.checking}
	var open bool
	u.results, open, u.park = j.Rest()
	if err == nil && open {
		u.err = effects.ErrOpen
	}
	if u.err == nil {
		e, settling := t.settle(end, w, u.results)
		_, inCommit := errors.AsType[*commitError](settling)
		if !inCommit && fault.CodeOf(settling) == fault.LeaseLost {
			t.lost = true
			return e, settling
		}
		if settling != nil && e.Claim.Phase == entities.Uncertain {
			return e, settling // the database has an effect that this attempt does not know
		}
		if settling == nil {
			return e, nil
		}
		if !inCommit && fault.CodeOf(settling) == fault.OutcomeUnknown {
			return t.entity, settling // as it was when the step was claimed
		}
		u.err, u.cause = settling, nil
		again, stop := context.WithTimeout(context.WithoutCancel(ctx), ending)
		defer stop()
		end = again
	}
	u.outcome, u.reported = t.decide(u.err, u.cause)
	u.reported = u.reported || !w.started
	if w.doubtful && !w.cleared { // this attempt says nothing about the earlier one
		u.reported = false
	}
	if t.opaque && err == nil { // the body acted, whatever failed here
		u.reported, u.park = false, true
		u.results = append(u.results, entities.Result{Name: effects.Body, Result: []byte("null")})
	}
	return t.giveBack(end, u)
}

// work runs the bodies while the lease is renewed, and returns their error and why their context ended, if
// it did.
func (t *attempt) work(ctx context.Context, j *effects.Journal, w *work) (err, cause error) {
	ticket := t.entity.Ticket()
	k := &lease.Renewer{Lease: t.lease, Since: t.since, Timeout: timeoutOf(t.step), Renew: func(ctx context.Context) error {
		_, err := entities.Renew(ctx, t.engine, t.at, ticket, t.lease)
		return err
	}}
	var timedOut atomic.Bool // although the context of the bodies may not have ended yet
	held := func(ctx context.Context) error {
		err := k.Held(ctx)
		if errors.Is(err, lease.ErrTimeout) {
			timedOut.Store(true)
		}
		return err
	}
	j.Leased, w.held = held, held
	body := k.Start(effects.With(ctx, j))
	defer k.Stop()
	end := meter.Of(t.engine).Kind(meter.Operation).Begin()
	err = catchPanic(func() error { return t.bodies(body, t.step, w) })
	end()
	if cause = context.Cause(body); cause == nil && timedOut.Load() {
		cause = lease.ErrTimeout
	}
	t.ranOut = k.RanOut()
	return err, cause
}

// late reports the calls of an attempt that has lost its lease. An opaque body is itself a call,
// unless it reported that it did nothing.
func (t *attempt) late(ctx context.Context, w *work, j *effects.Journal, err, cause error) {
	calls := j.Made()
	if t.opaque && w.started {
		state := effects.Done
		if err != nil {
			state = effects.Unknown
		}
		if _, reported := t.decide(err, cause); err == nil || !reported {
			calls = append(calls, effects.LateCall{Name: effects.Body, State: state})
		}
	}
	t.reportLate(ctx, calls)
}

// handOn hands the operation over to the workers of a handler.
func (t *attempt) handOn(ctx context.Context, next *handOn) (entities.Entity, error) {
	e, err := retryUnavailable(ctx, func() (entities.Entity, error) { return t.queue(ctx, t.engine, next.stage, next.queue) })
	if err != nil {
		return e, err
	}
	if o, ok := t.store.(*userTable); ok { // the companion row was queued, and has versions of its own
		if err := o.refresh(ctx, nil, &e); err != nil {
			return e, err
		}
	}
	e.Claim.Operation = t.entity.Claim.Operation // also if the response was lost
	return e, fault.New(fault.ActionFailed, "the step is waiting for a worker").With("outcome", "pending").With("operation", e.Claim.Operation).With("status", e.Status)
}

// queue queues the operation for the workers of a stage.
func (t *attempt) queue(ctx context.Context, d store.Doer, stage, queue string) (entities.Entity, error) {
	return entities.Queue(ctx, d, t.at, entities.QueueArgs{Ticket: t.entity.Ticket(), Queue: queue, Stage: stage, Claim: t.claim})
}

// worker returns the handler of a stage if workers serve it.
func (t *attempt) worker(stage string) *handler {
	p := t.step.Action
	if stage == stageValidation {
		p = t.step.Validation
	}
	return t.bound.worker(p, t.entity.Claim.Requester)
}

// stageTimeout returns the timeout of a stage.
func (t *attempt) stageTimeout(stage string) time.Duration {
	if h := t.worker(stage); h != nil && h.Timeout > 0 {
		return h.Timeout
	}
	return timeoutOf(t.step)
}

// doubtful reports whether an earlier attempt of an opaque body may have acted.
func (t *attempt) doubtful(ctx context.Context) (bool, error) {
	if !t.opaque {
		return false, nil
	}
	journal, err := effects.List(ctx, t.engine, t.at, t.entity.Claim.Operation)
	return slices.ContainsFunc(journal, func(x effects.Entry) bool {
		return x.Name == effects.Body && x.State == effects.Begun && x.Epoch != t.entity.Claim.Epoch
	}), err
}
