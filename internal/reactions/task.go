package reactions

import (
	"context"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Task is one event in the hands of a handler's worker. The lease of its stream is its
// hold: to complete it is to acknowledge the event.
type Task struct {
	Lease    *Lease
	Reaction Info
	Event    events.Event
}

const taskPrefix = "rct_"

// ID names the task to its worker.
func (t Task) ID() string {
	return lease.ID(taskPrefix, t.Reaction.Name, t.Lease.Stream, strconv.FormatInt(t.Event.Version, 10), strconv.FormatInt(t.Lease.Generation, 10))
}

// IsTask says whether an id is one of a reaction's task.
func IsTask(id string) bool {
	_, yes := lease.Parts(taskPrefix, id, 4)
	return yes
}

// TakeTasks takes events of reactions that are served by workers, one of each stream.
func TakeTasks(ctx context.Context, d store.Doer, a Ask) ([]Task, error) {
	a.Kind, a.Events = "worker", 1
	taken, err := TakeAsked(ctx, d, a)
	byName := make(map[string]Info, len(a.Reactions))
	for _, x := range a.Reactions {
		byName[x.Name] = x
	}
	all := make([]Task, len(taken))
	for i, l := range taken {
		all[i] = Task{Lease: l, Reaction: byName[l.Reaction], Event: l.Events[0]}
	}
	return all, err
}

// task is a task as its id names it.
type task struct {
	reaction Info
	lease    *Lease
	version  int64
}

func taskOf(ctx context.Context, d store.Doer, id string, epoch int64) (t task, err error) {
	none := fault.New(fault.NotFound, "there is no task %q", id)
	parts, ok := lease.Parts(taskPrefix, id, 4)
	if !ok {
		return t, none
	}
	generation, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil {
		return t, none
	}
	if t.version, err = strconv.ParseInt(parts[2], 10, 64); err != nil || t.version < 0 {
		return t, none
	}
	t.reaction, err = Get(ctx, d, parts[0])
	if fault.CodeOf(err) == fault.NotFound || err == nil && t.reaction.Options.Handler == "" {
		return t, none
	}
	if err != nil {
		return t, err
	}
	p, err := Stands(ctx, d, parts[0], parts[1])
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return t, none
	case err != nil:
		return t, err
	case p.Generation != generation || t.version > p.Due: // it was reset, or is not there
		return t, lease.Lost("the task "+id, epoch)
	}
	at, err := d.Partition(ctx, store.Write)
	t.lease = ByHand(at, parts[0], parts[1], epoch)
	if err == nil && t.version > p.Delivered { // it was not given out as a task
		err = p.refusal(t.lease, t.version)
	}
	return t, err
}

// CompleteTask acknowledges the event of a task, and returns its version. Completing again, under the epoch that
// did, gives the same answer.
func CompleteTask(ctx context.Context, d store.Doer, id string, epoch int64) (version int64, err error) {
	t, err := taskOf(ctx, d, id, epoch)
	if err == nil {
		_, err = AckOne(ctx, d, End{Lease: t.lease, Done: t.version})
	}
	return t.version, err
}

// FailTask says that the event of a task could not be handled.
func FailTask(ctx context.Context, d store.Doer, id string, epoch int64, message string, retryable bool) (version int64, f Failed, err error) {
	t, err := taskOf(ctx, d, id, epoch)
	if err == nil {
		f, err = Fail(ctx, d, t.reaction, t.lease, t.version, message, retryable)
	}
	return t.version, f, err
}

// RenewTask extends the hold of a task, as long as its handler may take.
func RenewTask(ctx context.Context, d store.Doer, id string, epoch int64, lease time.Duration, longest func(handler string) (time.Duration, error)) (Renewal, error) {
	t, err := taskOf(ctx, d, id, epoch)
	if err != nil {
		return Renewal{}, err
	}
	most, err := longest(t.reaction.Options.Handler)
	if err != nil {
		return Renewal{}, err
	}
	return RenewOne(ctx, d, t.lease, lease, most)
}
