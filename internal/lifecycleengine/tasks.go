package lifecycleengine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// A remote handler may poll for its work. Its task is the claim itself: one lease, one epoch, one
// renewal. The caller that fires the step takes the claim and hands it over, in the claim status,
// to the queue of the handler. A worker takes it from there, which increments the epoch, and ends
// it as a body in a program would: the same statement decides, on the same row. A step whose
// validation is also served by workers has two stages and is handed over twice.
//
// At every moment the claim has a holder or a way to proceed: the caller has leased it, and the
// janitor releases it if the lease expires; or it is due and waits for a worker, until the janitor
// withdraws it at the step's timeout; or a worker has leased it.

// Remote hands out steps of lifecycles to workers.
type Remote struct{ Engine *engine.Engine }

// Owns reports whether a task is a step of a lifecycle.
func (r Remote) Owns(id string) bool { return strings.HasPrefix(id, taskPrefix) }

// Offer returns the offer of steps for the claim's handlers.
func (r Remote) Offer(_ context.Context, c remote.Claim) (remote.Offer, error) {
	var queues, topics []string
	if d := registryOf(r.Engine).published; d != nil {
		c.Handlers = d.servedHandlers(c.Workspace, c.Handlers)
	}
	for _, name := range c.Handlers {
		queue := entities.Workers(c.Workspace, name)
		queues, topics = append(queues, queue), append(topics, entities.QueueTopic(queue))
	}
	return remote.Offer{Topics: topics, Leased: wake.HeldOperation, Due: wake.WorkKinds(wake.Operation, queues...), Take: func(ctx context.Context, d store.Doer, limit int) ([]remote.Task, error) {
		return r.take(ctx, d, c, limit)
	}}, nil
}

// ref is the decoded id of a task.
type ref struct {
	lifecycle, entity, operation, stage string
	probe                               bool
}

const taskPrefix = "tsk_"

func (r ref) id() string {
	kind := r.stage
	if r.probe {
		kind = kindProbe
	}
	return lease.ID(taskPrefix, r.lifecycle, r.entity, r.operation, kind)
}

func refOf(id string) (ref, error) {
	parts, ok := lease.Parts(taskPrefix, id, 4)
	if !ok || parts[3] != stageAction && parts[3] != stageValidation && parts[3] != kindProbe {
		return ref{}, noTask(id)
	}
	r := ref{lifecycle: parts[0], entity: parts[1], operation: parts[2], stage: parts[3]}
	if r.probe = r.stage == kindProbe; r.probe {
		r.stage = stageAction
	}
	return r, nil
}

func noTask(id string) error { return fault.New(fault.NotFound, "task %q does not exist", id) }

// ticket returns the claim of a task under an epoch.
func (r ref) ticket(epoch int64) entities.Ticket {
	return entities.Ticket{Lifecycle: r.lifecycle, ID: r.entity, Operation: r.operation, Epoch: epoch}
}

// take takes due operations for handlers of the context's workspace, on the engine or in a transaction of it.
func (r Remote) take(ctx context.Context, d store.Doer, c remote.Claim, limit int) ([]remote.Task, error) {
	if err := strictjson.Text("worker", c.Worker, events.MaxName); err != nil {
		return nil, err
	}
	if err := entities.CheckLease(c.Lease); err != nil {
		return nil, err
	}
	at, err := r.Engine.Partition(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	a := entities.ResumeArgs{Leases: make(map[string]time.Duration, len(c.Handlers)), Holder: c.Worker, Limit: limit, Elsewhere: true}
	for _, name := range c.Handlers {
		a.Leases[entities.Workers(at.Workspace, name)] = c.Lease
	}
	for queue := range a.Leases { // map order, so that no queue is always first
		a.Turns = append(a.Turns, lease.Turn{Name: queue, Workspace: at.Workspace})
	}
	taken, err := entities.TakeDue(ctx, d, at.Shard, a)
	all := make([]remote.Task, 0, len(taken))
	for _, x := range taken {
		t, failed := r.handOut(ctx, d, at, x, c.Lease)
		if failed != nil { // its lease expires, and it is taken again
			r.Engine.Log().Warn("failed to hand out a task", "workspace", x.Workspace, "lifecycle", x.Lifecycle, "entity", x.ID, "operation", x.Claim.Operation, "error", failed)
			continue
		}
		all = append(all, t)
	}
	return all, err
}

// handOut creates the task for an operation that was taken. An opaque body counts as a begun effect
// from here on, because the worker is about to receive the task.
func (r Remote) handOut(ctx context.Context, d store.Doer, at store.Partition, x entities.Resumed, lease time.Duration) (remote.Task, error) {
	s, err := registryOf(r.Engine).find(ctx, x.Lifecycle)
	if err != nil {
		return remote.Task{}, err
	}
	t, err := s.attemptOf(ctx, at, x.Entity, x.Claim.Operation, x.Claim.Epoch)
	if err != nil {
		return remote.Task{}, err
	}
	h := t.worker(x.Claim.Stage)
	if h == nil {
		return remote.Task{}, fault.New(fault.Conflict, "step %q is no longer served by workers", x.Claim.Step)
	}
	switch o := s.store.(type) { // before the body counts as begun, because a task without its row is not handed out
	case *userTable:
		tx, _ := d.(*store.Tx)
		if err := o.refresh(ctx, tx, &x.Entity); err != nil {
			return remote.Task{}, err
		}
	case noTable:
		return remote.Task{}, o.why
	}
	decoded := ref{lifecycle: x.Lifecycle, entity: x.ID, operation: x.Claim.Operation, stage: x.Claim.Stage}
	kind := x.Claim.Stage
	if x.Claim.Stage == stageAction && t.opaque {
		body, err := effects.Begin(ctx, d, at, x.Ticket(), effects.Body, 0, t.unknown(t.step, x.Claim.Requester), nil)
		if err != nil {
			return remote.Task{}, err
		}
		if decoded.probe = body.State == effects.Begun && h.unknown == effects.Probe; decoded.probe { // begun by an earlier attempt
			kind = kindProbe
		}
	}
	if limit := t.stageTimeout(x.Claim.Stage); lease > limit { // a lease does not exceed the timeout
		until, err := entities.Limit(ctx, d, at, x.Ticket(), limit)
		if err != nil {
			return remote.Task{}, err
		}
		x.Claim.Until = until
	}
	return remote.Task{ID: decoded.id(), Epoch: x.Claim.Epoch, Handler: h.name, Kind: kind,
		Attempt: x.Claim.Failures + x.Claim.Crashes + 1, Until: x.Claim.Until, Operation: x.Claim.Operation, Lifecycle: x.Lifecycle, StepKey: x.Claim.Step,
		Requester: x.Claim.Requester, Input: x.Claim.Input, Entity: &x.Entity}, nil
}

// task is an attempt that a worker executes.
type task struct {
	*attempt
	ref ref
	now entities.Entity // the current state
}

// task returns the task that a worker has leased.
func (r Remote) task(ctx context.Context, h remote.Lease) (*task, error) {
	decoded, err := refOf(h.ID)
	if err != nil {
		return nil, err
	}
	s, err := registryOf(r.Engine).find(ctx, decoded.lifecycle)
	if err != nil {
		return nil, orNoTask(err, h)
	}
	at, err := r.Engine.Partition(ctx, store.Write)
	if err != nil {
		return nil, err
	}
	now, err := s.claimed(ctx, decoded.entity)
	if err != nil {
		return nil, orNoTask(err, h)
	}
	if now.Claim.Operation != decoded.operation {
		return nil, gone(lostTask(h), now)
	}
	queue, stage, err := entities.Queued(ctx, r.Engine, decoded.lifecycle, decoded.entity)
	if err != nil {
		return nil, err
	}
	a, err := s.attemptOf(ctx, at, now, decoded.operation, h.Epoch)
	if err != nil {
		return nil, err
	}
	// An operation that was not handed out as a task is not a task, even if the caller knows its id. A
	// stage that has ended can only be completed again.
	worker := a.worker(decoded.stage)
	if now.Claim.Manual || queue == "" || worker == nil || stage == decoded.stage && queue != worker.queue {
		return nil, noTask(h.ID)
	}
	t := &task{a, decoded, now}
	switch {
	case stage == decoded.stage:
		return t, nil
	case decoded.stage == stageValidation && now.Claim.Phase == entities.Due && now.Claim.Error == "" && now.Claim.Epoch == h.Epoch:
		return t, errPassed
	}
	return nil, lostTask(h)
}

// errPassed means that a validation was completed before.
var errPassed = errors.New("the validation has already ended")

// orNoTask maps a missing lifecycle or entity to a missing task.
func orNoTask(err error, h remote.Lease) error {
	if fault.CodeOf(err) == fault.NotFound {
		return noTask(h.ID)
	}
	return err
}

func lostTask(h remote.Lease) *fault.Error { return lease.Lost("task "+h.ID, h.Epoch) }

// Complete ends a step that is done. State is a merge patch for the entity's data; output is
// returned to the caller that fired the step.
func (r Remote) Complete(ctx context.Context, h remote.Lease, done remote.Result) (remote.Ended, error) {
	e, err := r.complete(ctx, h, done)
	lost := fault.CodeOf(err) == fault.LeaseLost // endedBefore clears it, also if it was an operator that ended the step this way
	x, err := r.endedBefore(ctx, h, e, err, func(r ref, was AttemptEnd) bool {
		return was.How == EndedSuccess && r.stage == stageAction || was.How == EndedQueued && (r.stage == stageValidation || r.probe)
	})
	if decoded, bad := refOf(h.ID); bad == nil && decoded.stage == stageAction && !decoded.probe && (lost || late(err)) {
		LateCalls(ctx, r.Engine, decoded.ticket(h.Epoch), bodyDone...)
	}
	return x, r.noteGone(ctx, h, "settle", err)
}

// noteGone is [NoteGone] for a task.
func (r Remote) noteGone(ctx context.Context, h remote.Lease, action string, err error) error {
	decoded, bad := refOf(h.ID)
	if bad != nil {
		return err
	}
	return NoteGone(ctx, r.Engine, decoded.ticket(h.Epoch), "", action, err)
}

// late reports whether an error means that the caller may have lost its lease.
func late(err error) bool {
	switch fault.CodeOf(err) {
	case fault.LeaseLost, fault.NotFound, fault.Conflict:
		return true
	}
	return false
}

// endedBefore returns the recorded end of a task to a caller that ends it again the same way, under
// the same epoch, even if the entity has changed since then.
func (r Remote) endedBefore(ctx context.Context, h remote.Lease, e entities.Entity, err error, same func(ref, AttemptEnd) bool) (remote.Ended, error) {
	now := remote.Ended{Status: e.Status, Version: e.Version}
	decoded, bad := refOf(h.ID)
	if fault.CodeOf(err) != fault.LeaseLost || bad != nil {
		return now, err
	}
	was, failed := Ended(ctx, r.Engine, decoded.ticket(h.Epoch))
	if failed != nil || was.How == "" || !same(decoded, was) {
		return now, err
	}
	return remote.Ended{Status: was.Status, Version: was.Version}, nil
}

func (r Remote) complete(ctx context.Context, h remote.Lease, done remote.Result) (e entities.Entity, err error) {
	t, err := r.task(ctx, h)
	if errors.Is(err, errPassed) {
		return t.now, nil
	}
	if err != nil {
		return e, err
	}
	if len(done.Output) > 0 {
		if err := strictjson.Check(done.Output); err != nil {
			return e, err
		}
	}
	if t.ref.stage == stageValidation {
		return t.passed(ctx)
	}
	if t.ref.probe {
		happened, result, err := remote.Probed(done.Output)
		if err != nil {
			return e, err
		}
		if !happened {
			return t.notHappened(ctx)
		}
		done.Output = result
	}
	if t.now.Claim.Phase == entities.Uncertain && t.now.Claim.Epoch == h.Epoch {
		was, err := Ended(ctx, r.Engine, t.entity.Ticket())
		if err == nil && was.How == EndedOpen && was.Message == "" { // this end was recorded before
			err = t.outcome(effects.ErrOpen, "uncertain", t.now)
		} else if err == nil {
			err = lostTask(h)
		}
		return t.now, err
	}
	w := &work{requester: t.entity.Claim.Requester, output: done.Output}
	if len(done.State) > 0 {
		if err := t.patch(w, t.now, done.State); err != nil {
			return e, err
		}
	}
	e, err = t.settleElsewhere(ctx, w)
	if t.lost {
		t.reportLate(ctx, bodyDone)
	}
	return e, err
}

// notHappened continues after a probe reported that the body has not acted: the operation is due,
// and the next worker starts it anew.
func (t *task) notHappened(ctx context.Context) (e entities.Entity, err error) {
	if t.now.Claim.Phase == entities.Due && t.now.Claim.Epoch == t.entity.Claim.Epoch {
		journal, err := effects.List(ctx, t.engine, t.at, t.entity.Claim.Operation)
		if err != nil {
			return t.now, err
		}
		if slices.ContainsFunc(journal, func(x effects.Entry) bool { return x.Name == effects.Body && x.State == effects.NotDone }) {
			return t.now, nil // this result was recorded before
		}
	}
	err = t.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		state, err := effects.End(ctx, tx, t.at, t.entity.Ticket(), effects.Body, 0, effects.NotDone, nil, true)
		if err == nil && state != effects.NotDone {
			err = fault.New(fault.Conflict, "the action of operation %s is already recorded as %s", t.entity.Claim.Operation, state)
		}
		if err != nil {
			return err
		}
		e, err = t.queue(ctx, tx, stageAction, t.worker(stageAction).queue)
		return err
	})
	return e, err
}

// passed continues after a worker has passed a validation.
func (t *task) passed(ctx context.Context) (entities.Entity, error) {
	h := t.handler(t.step.Action, t.entity.Claim.Requester)
	if h == nil {
		return t.settleElsewhere(ctx, &work{requester: t.entity.Claim.Requester})
	}
	return t.queue(ctx, t.engine, stageAction, h.queue)
}

// Fail ends a step that is not done. Invalid refuses the step. If an effect was begun, the step is
// retried unless the failure is Final; if none was begun, the entity is reverted, or moves to the
// step's failed status.
func (r Remote) Fail(ctx context.Context, h remote.Lease, why remote.Failure) (remote.Ended, error) {
	e, err := r.fail(ctx, h, why)
	x, err := r.endedBefore(ctx, h, e, err, func(_ ref, was AttemptEnd) bool {
		return was.How == EndedOpen && was.Message != "" || was.How == EndedInvalid && why.Invalid || was.How == EndedFailed && !why.Invalid
	})
	return x, r.noteGone(ctx, h, "settle", err)
}

func (r Remote) fail(ctx context.Context, h remote.Lease, why remote.Failure) (e entities.Entity, err error) {
	t, err := r.task(ctx, h)
	if err != nil {
		return e, err
	}
	if c := t.now.Claim; c.Epoch == h.Epoch && (c.Phase == entities.Due && c.Error != "" || c.Phase == entities.Uncertain) {
		return t.now, nil // this end was recorded before
	}
	u := unfinished{err: errors.New(why.Message), outcome: "failed", reported: true, park: why.Final, unchecked: t.ref.stage == stageValidation}
	if why.Invalid {
		u.outcome = "invalid"
		u.err = fault.New(fault.ActionInvalid, "%s", why.Message)
	}
	doubtful, err := t.doubtful(ctx)
	if err != nil {
		return e, err
	}
	switch {
	case t.ref.probe: // the probe failed: the outcome is as unknown as before
		u.outcome, u.reported = "unheard", false
	case doubtful: // this attempt says nothing about the earlier one
		u.reported = false
	}
	e, err = t.giveBack(ctx, u)
	f, ok := errors.AsType[*fault.Error](err)
	switch {
	case ok && f.Fields["outcome"] == "unreleased":
		err = lostTask(h).Wrap(err)
	case ok && (f.Code == fault.ActionFailed || f.Code == fault.ActionInvalid):
		err = nil // this is the failure that the worker reported
	}
	return e, err
}

// Snooze returns [fault.Validation]: until a step ends, its entity is claimed, and nothing else can
// be done with it.
func (r Remote) Snooze(context.Context, remote.Lease, time.Duration) (remote.Ended, error) {
	return remote.Ended{}, fault.New(fault.Validation, "a step of a lifecycle cannot be snoozed, because its entity is claimed meanwhile: fail the task, and fire the step again later")
}

// Renew extends the lease of a step up to the timeout of its handler, so that a hanging worker does
// not hold it forever.
func (r Remote) Renew(ctx context.Context, h remote.Lease, lease time.Duration) (remote.Renewed, error) {
	t, err := r.task(ctx, h)
	if err != nil {
		return remote.Renewed{}, r.noteGone(ctx, h, "renew", err)
	}
	until, err := entities.RenewWithin(ctx, r.Engine, t.at, t.entity.Ticket(), lease, t.stageTimeout(t.ref.stage))
	return remote.Renewed{Until: until}, err
}

// Effect journals an effect of an action; see [Claim.Effect]. An effect that an earlier attempt
// began, and whose outcome is unknown, is returned as begun if the handler's policy is to retry or
// probe it. Otherwise the operation is parked for manual resolution, and the error is
// [holdfast.ErrConflict].
func (r Remote) Effect(ctx context.Context, h remote.Lease, x remote.Effect) (remote.EffectState, error) {
	t, err := r.task(ctx, h)
	if err != nil {
		if decoded, bad := refOf(h.ID); bad == nil && len(x.Result) > 0 && strictjson.Check(x.Result) == nil && late(err) {
			LateCalls(ctx, r.Engine, decoded.ticket(h.Epoch), effects.LateCall{Name: x.Name, Ordinal: x.Ordinal, State: effects.Done, Result: x.Result})
		}
		return remote.EffectState{}, r.noteGone(ctx, h, x.Action(), err)
	}
	if t.ref.stage != stageAction {
		return remote.EffectState{}, fault.New(fault.Validation, "only an action can journal effects, but this task is a %s", t.ref.stage)
	}
	return t.effect(ctx, t.worker(stageAction).unknown, x)
}
