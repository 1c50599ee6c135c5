package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A handler may be elsewhere and ask for what there is to do. Its task is the claim
// itself: one hold, one epoch, one renewal. Whoever fires the step takes the claim,
// and hands it on, in the claim status, to the queue of the handler; a worker takes it
// from there, which adds one to the epoch, and ends it as a body in a program would
// have: the same statement decides, by the same row. A step whose validation is a
// worker's too has two stages, and is handed on twice.
//
// Between the two there is no moment in which nobody has it and nobody takes it up: it
// is held, and the janitor puts it back; or it is due, and waits for a worker, until the
// janitor withdraws it when the step's timeout is over; or a worker holds it.

// The stages of an operation that workers take up.
const (
	stageValidation = "validation"
	stageAction     = "action"
	// kindProbe is the kind of a task at the stage of the action, of which nothing is
	// known: whether it has happened is to be found out first.
	kindProbe = "probe"
)

// handOn is what bodies return where a worker comes next.
type handOn struct{ stage, queue string }

func (h *handOn) Error() string { return "a worker is to go on: " + h.stage }

// handOn hands the operation on to the workers of a handler.
func (t *attempt) handOn(ctx context.Context, next *handOn) (entities.Entity, error) {
	e, err := patiently(ctx, func() (entities.Entity, error) {
		return entities.Queue(ctx, t.engine, t.at, entities.QueueArgs{Ticket: t.entity.Ticket(), Queue: next.queue, Stage: next.stage, Claim: t.claim})
	})
	if err != nil {
		return e, err
	}
	e.Claim.Operation = t.entity.Claim.Operation // also where the answer was lost
	return e, waits(e)
}

// waits is the error of a step that is not done yet: its operation goes on.
func waits(e entities.Entity) error {
	return fault.New(fault.ActionFailed, "the step waits for a worker").With("outcome", "pending").With("operation", e.Claim.Operation).With("status", e.Status)
}

// ref is what a task's id says.
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
	return hold.ID(taskPrefix, r.lifecycle, r.entity, r.operation, kind)
}

func refOf(id string) (ref, error) {
	parts, ok := hold.Parts(taskPrefix, id, 4)
	if !ok || parts[3] != stageAction && parts[3] != stageValidation && parts[3] != kindProbe {
		return ref{}, fault.New(fault.NotFound, "there is no task %q", id)
	}
	r := ref{lifecycle: parts[0], entity: parts[1], operation: parts[2], stage: parts[3]}
	if r.probe = r.stage == kindProbe; r.probe {
		r.stage = stageAction
	}
	return r, nil
}

// TakeTasks takes what there is to do for handlers of the context's workspace, for so
// long, on the engine or in a transaction of it.
func TakeTasks(ctx context.Context, e *engine.Engine, d store.Doer, worker string, names []string, limit int, lease time.Duration) ([]remote.Task, error) {
	if err := strict.Text("worker", worker, events.MaxName); err != nil {
		return nil, err
	}
	if err := entities.CheckLease(lease); err != nil {
		return nil, err
	}
	at, err := e.Place(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	a := entities.ResumeArgs{Leases: make(map[string]time.Duration, len(names)), Holder: worker, Limit: limit, Elsewhere: true}
	for _, name := range names {
		a.Leases[entities.Workers(at.Workspace, name)] = lease
	}
	for queue := range a.Leases { // in any order: none is always the first
		a.Turns = append(a.Turns, hold.Turn{Name: queue, Workspace: at.Workspace})
	}
	taken, err := entities.TakeDue(ctx, d, at.Shard, a)
	all := make([]remote.Task, 0, len(taken))
	for _, r := range taken {
		t, failed := boardOf(e).task(ctx, d, at, r, lease)
		if failed != nil { // it runs out, and is taken again
			e.Log().Warn("a task could not be given out", "lifecycle", r.Lifecycle, "entity", r.ID, "operation", r.Claim.Operation, "error", failed)
			continue
		}
		all = append(all, t)
	}
	return all, err
}

// task makes a task of an operation that was taken. An opaque body is an effect begun
// from here on: the worker is about to be told.
func (b *board) task(ctx context.Context, d store.Doer, at store.Place, r entities.Resumed, lease time.Duration) (remote.Task, error) {
	s, err := b.find(ctx, r.Lifecycle)
	if err != nil {
		return remote.Task{}, err
	}
	t, err := s.attemptOf(ctx, at, r.Entity, r.Claim.Operation, r.Claim.Epoch)
	if err != nil {
		return remote.Task{}, err
	}
	h := t.worker(r.Claim.Stage)
	if h == nil {
		return remote.Task{}, fault.New(fault.Conflict, "the step %q has no worker any more", r.Claim.Step)
	}
	name := ref{lifecycle: r.Lifecycle, entity: r.ID, operation: r.Claim.Operation, stage: r.Claim.Stage}
	kind := r.Claim.Stage
	if r.Claim.Stage == stageAction && t.opaque {
		x, err := effects.Begin(ctx, d, at, r.Ticket(), effects.Body, 0, t.unknown(t.step, r.Claim.Requester), nil)
		if err != nil {
			return remote.Task{}, err
		}
		if name.probe = x.State == effects.Begun && h.unknown == effects.Probe; name.probe { // by an earlier attempt
			kind = kindProbe
		}
	}
	if longest := t.longest(r.Claim.Stage); lease > longest { // nobody is held longer than he may take
		until, err := entities.Limit(ctx, d, at, r.Ticket(), longest)
		if err != nil {
			return remote.Task{}, err
		}
		r.Claim.Until = until
	}
	return remote.Task{ID: name.id(), Epoch: r.Claim.Epoch, Handler: h.name, Kind: kind,
		Attempt: r.Claim.Failures + r.Claim.Deaths + 1, Until: r.Claim.Until, Operation: r.Claim.Operation, Lifecycle: r.Lifecycle, StepKey: r.Claim.Step,
		Requester: r.Claim.Requester, Input: r.Claim.Input, Entity: &r.Entity}, nil
}

// worker is the handler of a stage, if workers have it.
func (t *attempt) worker(stage string) *handler {
	if stage == stageValidation {
		h := t.handler(t.step.Validation, t.entity.Claim.Requester)
		if h == nil || h.queue == "" {
			return nil
		}
		return h
	}
	return t.site.worker(t.step, t.entity.Claim.Requester)
}

// worker is the handler of a step's action, if workers have it.
func (s *site) worker(step *lifecycles.Step, as string) *handler {
	h := s.handler(step.Action, as)
	if h == nil || h.queue == "" {
		return nil
	}
	return h
}

// taskOf returns the attempt that a task is.
func taskOf(ctx context.Context, e *engine.Engine, id string, epoch int64) (*attempt, ref, entities.Entity, error) {
	r, err := refOf(id)
	if err != nil {
		return nil, r, entities.Entity{}, err
	}
	s, err := boardOf(e).find(ctx, r.lifecycle)
	if fault.CodeOf(err) == fault.NotFound {
		err = fault.New(fault.NotFound, "there is no task %q", id)
	}
	if err != nil {
		return nil, r, entities.Entity{}, err
	}
	at, err := e.Place(ctx, store.Write)
	if err != nil {
		return nil, r, entities.Entity{}, err
	}
	now, err := s.ground.get(ctx, r.entity)
	if fault.CodeOf(err) == fault.NotFound {
		err = fault.New(fault.NotFound, "there is no task %q", id)
	}
	if err != nil {
		return nil, r, now, err
	}
	if now.Claim.Operation != r.operation {
		return nil, r, now, hold.Lost("the task "+id, epoch)
	}
	queue, stage, err := entities.Queued(ctx, e, r.lifecycle, r.entity)
	if err != nil {
		return nil, r, now, err
	}
	t, err := s.attemptOf(ctx, at, now, r.operation, epoch)
	if err != nil {
		return nil, r, now, err
	}
	// What was not given out as a task is none, whoever knows its operation; and a
	// stage that is over can only be told again.
	h := t.worker(r.stage)
	if now.Claim.Manual || queue == "" || h == nil || stage == r.stage && queue != h.queue {
		return nil, r, now, fault.New(fault.NotFound, "there is no task %q", id)
	}
	if stage != r.stage {
		if r.stage == stageValidation && now.Claim.Phase == entities.Due && now.Claim.Error == "" && now.Claim.Epoch == epoch {
			return t, r, now, errPassed
		}
		return nil, r, now, hold.Lost("the task "+id, epoch)
	}
	return t, r, now, nil
}

// errPassed says that a validation was completed before.
var errPassed = errors.New("the stage is over")

// CompleteTask ends a task that is done. State is a merge patch of the entity's data,
// output is told to who fired the step. Completing again, under the epoch that did,
// gives the same answer.
func CompleteTask(ctx context.Context, e *engine.Engine, id string, epoch int64, output, state json.RawMessage) (Entity, error) {
	x, err := completeTask(ctx, e, id, epoch, output, state)
	lost := fault.CodeOf(err) == fault.LeaseLost // a person may have ended it the same way since then
	x, err = toldAgain(ctx, e, id, epoch, x, err, func(r ref, was Ending) bool {
		return was.How == EndedSuccess && r.stage == stageAction || was.How == EndedQueued && (r.stage == stageValidation || r.probe)
	})
	if r, bad := refOf(id); bad == nil && r.stage == stageAction && !r.probe && (lost || late(err)) {
		LateCalls(ctx, e, r.lifecycle, r.entity, r.operation, epoch, bodyDone...)
	}
	return x, err
}

// late says of a refusal that the one who is refused may have lost its lease.
func late(err error) bool {
	switch fault.CodeOf(err) {
	case fault.LeaseLost, fault.NotFound, fault.Conflict:
		return true
	}
	return false
}

// LateCalls reports calls of a worker that has lost its lease. An epoch that the entity never had is
// not reported: nobody held it.
func LateCalls(ctx context.Context, e *engine.Engine, lifecycle, id, operation string, epoch int64, calls ...effects.LateCall) {
	at, err := e.Place(ctx, store.Write)
	if err != nil {
		return
	}
	if now, err := entities.Get(ctx, e, lifecycle, id); err == nil && epoch > now.Claim.Epoch {
		return
	}
	reportLate(ctx, e, at, lifecycle, id, operation, epoch, calls)
}

// toldAgain answers who ends a task again that ended under its epoch, the same way, and of
// which the entity has gone on since then.
func toldAgain(ctx context.Context, e *engine.Engine, id string, epoch int64, x Entity, err error, same func(ref, Ending) bool) (Entity, error) {
	if fault.CodeOf(err) != fault.LeaseLost {
		return x, err
	}
	r, bad := refOf(id)
	if bad != nil {
		return x, err
	}
	was, failed := Ended(ctx, e, r.lifecycle, r.entity, r.operation, epoch)
	if failed != nil || was.How == "" || !same(r, was) {
		return x, err
	}
	return Entity{ID: r.entity, Status: was.Status, Version: was.Version}, nil
}

func completeTask(ctx context.Context, e *engine.Engine, id string, epoch int64, output, state json.RawMessage) (Entity, error) {
	t, r, now, err := taskOf(ctx, e, id, epoch)
	if errors.Is(err, errPassed) {
		return shown(now, nil)
	}
	if err != nil {
		return Entity{}, err
	}
	if len(output) > 0 {
		if err := strict.Check(output); err != nil {
			return Entity{}, err
		}
	}
	if r.stage == stageValidation {
		return shown(t.validatedElsewhere(ctx))
	}
	if r.probe {
		happened, result, err := remote.Probed(output)
		if err != nil {
			return Entity{}, err
		}
		if !happened {
			return shown(t.notHappened(ctx, now))
		}
		output = result
	}
	if now.Claim.Phase == entities.Uncertain && now.Claim.Epoch == epoch {
		was, err := Ended(ctx, e, r.lifecycle, r.entity, r.operation, epoch)
		if err == nil && was.How == EndedOpen && was.Message == "" { // it was said before
			err = t.outcome(effects.ErrOpen, "uncertain", now)
		} else if err == nil {
			err = hold.Lost("the task "+id, epoch)
		}
		return shown(now, err)
	}
	w := &work{requester: t.entity.Claim.Requester, output: output}
	if len(state) > 0 {
		if w.data, err = strict.Merge(now.Data, state); err != nil {
			return Entity{}, err
		}
	}
	done, err := t.settle(ctx, w, nil)
	if t.lost {
		t.reportLate(ctx, bodyDone)
	}
	return shown(done, err)
}

// doubtful says whether an earlier attempt of an opaque body may have acted.
func (t *attempt) doubtful(ctx context.Context) (bool, error) {
	if !t.opaque {
		return false, nil
	}
	journal, err := effects.List(ctx, t.engine, t.at, t.entity.Claim.Operation)
	return slices.ContainsFunc(journal, func(x effects.Entry) bool {
		return x.Name == effects.Body && x.State == effects.Begun && x.Epoch != t.entity.Claim.Epoch
	}), err
}

// notHappened goes on behind a probe which says that the body has not acted: it is due,
// and the next who takes it up begins anew.
func (t *attempt) notHappened(ctx context.Context, now entities.Entity) (e entities.Entity, err error) {
	if now.Claim.Phase == entities.Due && now.Claim.Epoch == t.entity.Claim.Epoch {
		journal, err := effects.List(ctx, t.engine, t.at, t.entity.Claim.Operation)
		if err != nil {
			return now, err
		}
		if slices.ContainsFunc(journal, func(x effects.Entry) bool { return x.Name == effects.Body && x.State == effects.NotDone }) {
			return now, nil // it was said before
		}
	}
	err = t.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		state, err := effects.End(ctx, tx, t.at, t.entity.Ticket(), effects.Body, 0, effects.NotDone, nil, true)
		if err == nil && state != effects.NotDone {
			err = fault.New(fault.Conflict, "of the body of the operation %s it is known already that it is %s", t.entity.Claim.Operation, state)
		}
		if err != nil {
			return err
		}
		e, err = entities.Queue(ctx, tx, t.at, entities.QueueArgs{Ticket: t.entity.Ticket(), Queue: t.worker(stageAction).queue, Stage: stageAction, Claim: t.claim})
		return err
	})
	return e, err
}

// validatedElsewhere goes on behind a validation that a worker has passed.
func (t *attempt) validatedElsewhere(ctx context.Context) (entities.Entity, error) {
	h := t.handler(t.step.Action, t.entity.Claim.Requester)
	if h == nil {
		return t.settle(ctx, &work{requester: t.entity.Claim.Requester}, nil)
	}
	return entities.Queue(ctx, t.engine, t.at, entities.QueueArgs{Ticket: t.entity.Ticket(), Queue: h.queue, Stage: stageAction, Claim: t.claim})
}

// FailTask ends a task that is not done: invalid refuses the step; retryable says that
// another attempt may help, if something was begun. Where nothing was begun, the entity
// goes back.
func FailTask(ctx context.Context, e *engine.Engine, id string, epoch int64, message string, retryable, invalid bool) (Entity, error) {
	x, err := failTask(ctx, e, id, epoch, message, retryable, invalid)
	return toldAgain(ctx, e, id, epoch, x, err, func(r ref, was Ending) bool {
		return was.How == EndedOpen && was.Message != "" || was.How == EndedInvalid && (invalid || r.stage == stageValidation) || was.How == EndedFailed && !invalid
	})
}

func failTask(ctx context.Context, e *engine.Engine, id string, epoch int64, message string, retryable, invalid bool) (Entity, error) {
	t, r, now, err := taskOf(ctx, e, id, epoch)
	if err != nil {
		return Entity{}, err
	}
	if c := now.Claim; c.Epoch == epoch && (c.Phase == entities.Due && c.Error != "" || c.Phase == entities.Uncertain) {
		return shown(now, nil) // it was said before
	}
	u := unfinished{err: errors.New(message), outcome: "failed", told: true, park: !retryable}
	if invalid || r.stage == stageValidation {
		u.outcome = "invalid"
		u.err = fault.New(fault.ActionInvalid, "%s", message)
	}
	doubtful, err := t.doubtful(ctx)
	if err != nil {
		return Entity{}, err
	}
	switch {
	case r.probe: // it could not be found out: nothing more is known than before
		u.outcome, u.told = "unheard", false
	case doubtful: // what it says of this attempt is no word on the one before
		u.told = false
	}
	x, err := t.giveBack(ctx, u)
	if f, ok := errors.AsType[*fault.Error](err); ok && (f.Code == fault.ActionFailed || f.Code == fault.ActionInvalid) && f.Fields["outcome"] != "unreleased" {
		err = nil // that is what it was told
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Fields["outcome"] == "unreleased" {
		err = hold.Lost("the task "+id, epoch).Wrap(err)
	}
	return shown(x, err)
}

// longest is how long the handler of a stage may take.
func (t *attempt) longest(stage string) time.Duration {
	if h := t.worker(stage); h != nil && h.Timeout > 0 {
		return h.Timeout
	}
	return timeoutOf(t.step)
}

// RenewTask extends the hold of a task, as long as its handler may take: what hangs is
// not held for ever.
func RenewTask(ctx context.Context, e *engine.Engine, id string, epoch int64, lease time.Duration) (time.Time, error) {
	t, r, _, err := taskOf(ctx, e, id, epoch)
	if err != nil {
		return time.Time{}, err
	}
	return entities.RenewWithin(ctx, e, t.at, t.entity.Ticket(), lease, t.longest(r.stage))
}

// TaskEffect journals an effect of a task; see [Claim.Effect]. One that an earlier
// attempt began, and of which nothing is known, is told as begun where the handler says
// that it may be tried again or asked about; otherwise the operation waits for a person,
// and the error is [holdfast.ErrConflict].
func TaskEffect(ctx context.Context, e *engine.Engine, id string, epoch int64, name string, ordinal int, result json.RawMessage, notDone bool) (Effect, error) {
	t, r, _, err := taskOf(ctx, e, id, epoch)
	if err != nil {
		if len(result) > 0 && strict.Check(result) == nil && late(err) && r.operation != "" {
			LateCalls(ctx, e, r.lifecycle, r.entity, r.operation, epoch, effects.LateCall{Name: name, Ordinal: ordinal, State: effects.Done, Result: result})
		}
		return Effect{}, err
	}
	h := t.worker(r.stage)
	if h == nil || r.stage != stageAction {
		return Effect{}, fault.New(fault.Validation, "effects are those of actions")
	}
	return t.effect(ctx, h.unknown, name, ordinal, result, notDone)
}

// attemptOf is an attempt whose body is elsewhere.
func (s *site) attemptOf(ctx context.Context, at store.Place, now entities.Entity, operation string, epoch int64) (*attempt, error) {
	now.Claim.Operation, now.Claim.Epoch = operation, epoch
	c := now.Claim
	s, step, err := s.planned(ctx, c.Plan, c.Step, c.Requester, c.Revert)
	if err == nil && step == nil {
		err = fault.New(fault.Conflict, "the config has no step %q any more that leaves %q", c.Step, c.Revert)
	}
	if err != nil {
		return nil, err
	}
	return &attempt{site: s, at: at, entity: now, claim: claimOf(step, c), step: step, lease: s.stuckAfter(), opaque: s.opaque(step, c.Requester)}, nil
}

// claimOf is the status that an operation of a step is held in: that of its claim or, under a
// lease, where the step starts.
func claimOf(step *lifecycles.Step, c entities.Claim) string {
	if claim, claimed := step.Claim.For(c.Requester); claimed {
		return claim.Into
	}
	return c.Revert
}
