package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Remote gives out steps of lifecycles whose handlers are workers.
type Remote struct{ Engine *engine.Engine }

// Owns says whether a task is a step of a lifecycle.
func (r Remote) Owns(id string) bool { return strings.HasPrefix(id, taskPrefix) }

// Offer has the steps that the claim's handlers do.
func (r Remote) Offer(_ context.Context, c remote.Claim) (remote.Offer, error) {
	var queues, topics []string
	for _, name := range c.Handlers {
		queue := entities.Workers(c.Workspace, name)
		queues, topics = append(queues, queue), append(topics, entities.QueueTopic(queue))
	}
	return remote.Offer{Topics: topics, Held: wake.HeldOperation, Due: wake.Needs(wake.Operation, queues...), Take: func(ctx context.Context, d store.Doer, limit int) ([]remote.Task, error) {
		return TakeTasks(ctx, r.Engine, d, c.Worker, c.Handlers, limit, c.Lease)
	}}, nil
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

// Complete ends a step that is done.
func (r Remote) Complete(ctx context.Context, h remote.Hold, done remote.Result) (remote.Ended, error) {
	e, err := CompleteTask(ctx, r.Engine, h.ID, h.Epoch, done.Output, done.State)
	return remote.Ended{Status: e.Status, Version: e.Version}, err
}

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

// Fail ends a step that is not done.
func (r Remote) Fail(ctx context.Context, h remote.Hold, why remote.Failure) (remote.Ended, error) {
	e, err := FailTask(ctx, r.Engine, h.ID, h.Epoch, why.Message, !why.Final, why.Invalid)
	return remote.Ended{Status: e.Status, Version: e.Version}, err
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

// Renew extends the lease of a step.
func (r Remote) Renew(ctx context.Context, h remote.Hold, lease time.Duration) (remote.Renewed, error) {
	until, err := RenewTask(ctx, r.Engine, h.ID, h.Epoch, lease)
	return remote.Renewed{Until: until}, err
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

// Effect journals an effect of an action.
func (r Remote) Effect(ctx context.Context, h remote.Hold, x remote.Effect) (remote.EffectState, error) {
	e, err := TaskEffect(ctx, r.Engine, h.ID, h.Epoch, x.Name, x.Ordinal, x.Result, x.NotDone)
	return remote.EffectState{Key: e.Key, State: e.State, Result: e.Result}, err
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

// After makes the tasks of after-effects, which are given out with the events of reactions.
type After struct{ Engine *engine.Engine }

// Is says whether a reaction is an after-effect whose handler is elsewhere.
func (After) Is(x reactions.Info) bool {
	return strings.HasPrefix(x.Name, reactions.AfterPrefix) && x.Options.Handler != ""
}

// Wants says whether an event is one that an after-effect follows.
func (After) Wants(x reactions.Info, e events.Event) (bool, error) {
	t, err := toldOf(e)
	return t.After == x.Options.Handler, err
}

// Task is the task that a delivery of an after-effect is to a worker. The
// operation is the delivery's, not the step's: it acts in its own right.
func (a After) Task(ctx context.Context, t reactions.Task) (remote.Task, error) {
	workflow := workflowOf(t.Reaction)
	s, err := boardOf(a.Engine).find(ctx, workflow)
	if err != nil {
		return remote.Task{}, err
	}
	w, _, err := s.told(ctx, t.Reaction.Options.Handler, t.Event)
	if err != nil {
		return remote.Task{}, err
	}
	x := t.Remote()
	x.Kind, x.Reaction, x.Event = "afterEffect", "", nil
	x.Lifecycle, x.StepKey, x.Requester, x.Input, x.Entity = workflow, w.step, w.requester, w.input, &w.entity
	return x, nil
}
