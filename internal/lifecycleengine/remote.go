package lifecycleengine

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/store"
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

// Complete ends a step that is done.
func (r Remote) Complete(ctx context.Context, h remote.Hold, done remote.Result) (remote.Ended, error) {
	e, err := CompleteTask(ctx, r.Engine, h.ID, h.Epoch, done.Output, done.State)
	return remote.Ended{Status: e.Status, Version: e.Version}, err
}

// Fail ends a step that is not done.
func (r Remote) Fail(ctx context.Context, h remote.Hold, why remote.Failure) (remote.Ended, error) {
	e, err := FailTask(ctx, r.Engine, h.ID, h.Epoch, why.Message, !why.Final, why.Invalid)
	return remote.Ended{Status: e.Status, Version: e.Version}, err
}

// Renew extends the lease of a step.
func (r Remote) Renew(ctx context.Context, h remote.Hold, lease time.Duration) (remote.Renewed, error) {
	until, err := RenewTask(ctx, r.Engine, h.ID, h.Epoch, lease)
	return remote.Renewed{Until: until}, err
}

// Effect journals an effect of an action.
func (r Remote) Effect(ctx context.Context, h remote.Hold, x remote.Effect) (remote.EffectState, error) {
	e, err := TaskEffect(ctx, r.Engine, h.ID, h.Epoch, x.Name, x.Ordinal, x.Result, x.NotDone)
	return remote.EffectState{Key: e.Key, State: e.State, Result: e.Result}, err
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
