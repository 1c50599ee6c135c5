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

// Task is one event that is handed out to a worker. The lease of the event's
// stream is the lease of the task: completing the task acknowledges the event.
type Task struct {
	Lease    *Lease
	Reaction Info
	Event    events.Event
}

const taskPrefix = "rct_"

// ID returns the id of the task on the wire.
func (t Task) ID() string {
	return lease.ID(taskPrefix, t.Reaction.Name, t.Lease.Stream, strconv.FormatInt(t.Event.Version, 10), strconv.FormatInt(t.Lease.Generation, 10))
}

// IsTask reports whether an id is the id of a reaction's task.
func IsTask(id string) bool {
	_, yes := lease.Parts(taskPrefix, id, 4)
	return yes
}

// TakeTasks takes events of reactions that are served by workers, one per stream.
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

// task is a task that was parsed from its id.
type task struct {
	reaction Info
	lease    *Lease
	version  int64
}

// taskOf returns the task of an id and an epoch. It refuses a task that was never handed out, and one whose stream was
// reset.
func taskOf(ctx context.Context, d store.Doer, id string, epoch int64) (t task, err error) {
	notFound := fault.New(fault.NotFound, "task %q does not exist", id)
	parts, ok := lease.Parts(taskPrefix, id, 4)
	if !ok {
		return t, notFound
	}
	generation, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil {
		return t, notFound
	}
	if t.version, err = strconv.ParseInt(parts[2], 10, 64); err != nil || t.version < 0 {
		return t, notFound
	}
	t.reaction, err = Get(ctx, d, parts[0])
	if fault.CodeOf(err) == fault.NotFound || err == nil && t.reaction.Options.Handler == "" {
		return t, notFound
	}
	if err != nil {
		return t, err
	}
	p, err := Stands(ctx, d, parts[0], parts[1])
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return t, notFound
	case err != nil:
		return t, err
	case p.Generation != generation || t.version > p.Due: // the stream was reset, or the version is not due
		return t, lease.Lost("task "+id, epoch)
	}
	at, err := d.Partition(ctx, store.Write)
	t.lease = ByHand(at, parts[0], parts[1], epoch)
	if err == nil && t.version > p.Delivered { // the version was never given out as a task
		err = p.refusal(t.lease, t.version)
	}
	return t, err
}

// completeTask acknowledges the event of a task.
// Completing it again under the same epoch returns the same result.
func completeTask(ctx context.Context, d store.Doer, id string, epoch int64) (t task, err error) {
	if t, err = taskOf(ctx, d, id, epoch); err == nil {
		_, err = AckOne(ctx, d, End{Lease: t.lease, Done: t.version})
	}
	return t, err
}

// failTask records that the event of a task failed.
func failTask(ctx context.Context, d store.Doer, id string, epoch int64, message string, retryable bool) (t task, f Failed, err error) {
	if t, err = taskOf(ctx, d, id, epoch); err == nil {
		f, err = Fail(ctx, d, t.reaction, t.lease, t.version, message, retryable)
	}
	return t, f, err
}

// SnoozeTask releases the event of a task until a later time, and returns its version.
func SnoozeTask(ctx context.Context, d store.Doer, id string, epoch int64, delay time.Duration) (version int64, dueAt time.Time, err error) {
	t, err := taskOf(ctx, d, id, epoch)
	if err == nil {
		dueAt, err = Snooze(ctx, d, t.lease, t.version, delay)
	}
	return t.version, dueAt, err
}

// RenewTask extends the lease of a task, within the timeout of its handler.
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
