package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// Renew extends a hold, or returns [fault.LeaseLost].
func Renew(ctx context.Context, d store.Doer, t Taken, lease time.Duration) (time.Time, error) {
	if err := checkLease(lease); err != nil {
		return time.Time{}, err
	}
	until, err := renewVerb.DoAt(ctx, d, t.place(), renewArgs{t.Queue, t.ID, t.Epoch, lease})
	if err == nil && len(until) == 0 {
		return time.Time{}, hold.Lost("the task "+t.ID, t.Epoch)
	}
	if err != nil {
		return time.Time{}, err
	}
	return until[0], nil
}

// Settle ends a task with its output. Settling again under the epoch that
// settled it, with the same output, gives the same answer.
func Settle(ctx context.Context, d store.Doer, t Taken, output []byte) (Task, error) {
	if output == nil {
		output = []byte("null")
	}
	if err := strict.Check(output); err != nil {
		return Task{}, err
	}
	return end(ctx, d, t, endArgs{how: "done", output: output})
}

// Fail ends an attempt that its worker lived to report. The task is due again
// after the delay, or has failed for good where the failures exceed the retries.
func Fail(ctx context.Context, d store.Doer, t Taken, message string, delay time.Duration, retries int) (Task, error) {
	return end(ctx, d, t, endArgs{how: "fail", message: hold.Plain(message), delay: delay, retries: retries})
}

// Release gives a task back untouched, due after the delay.
func Release(ctx context.Context, d store.Doer, t Taken, delay time.Duration) (Task, error) {
	return end(ctx, d, t, endArgs{how: "release", delay: delay})
}

func end(ctx context.Context, d store.Doer, t Taken, a endArgs) (Task, error) {
	if err := checkDelay(a.delay); err != nil {
		return Task{}, err
	}
	a.queue, a.id, a.epoch = t.Queue, t.ID, t.Epoch
	r, err := endVerb.DoAt(ctx, d, t.place(), a)
	task := named(r.task, t.Queue, t.ID)
	if err != nil || r.applied || again(task, a) {
		return task, err
	}
	return task, hold.Lost("the task "+t.ID, t.Epoch)
}

// again says whether this very end was recorded before: a worker whose answer
// was lost repeats it, and nobody has taken the task since.
func again(t Task, a endArgs) bool {
	return a.how == "done" && t.State == "done" && t.Epoch == a.epoch && strict.Equal(t.Output, a.output)
}

func (t Taken) place() store.Place { return store.Place{Shard: t.Shard, Workspace: t.Workspace} }

// sweepLimit is how many holds one sweep frees at the most.
const sweepLimit = 500

// Sweep frees the holds that have run out, on one shard, and returns how many.
// It may run on every node at once: what another has freed is left alone.
func Sweep(ctx context.Context, d store.Doer, shard int16, maxDeaths int) (freed int, err error) {
	all, err := expiredVerb.DoAt(ctx, d, store.Place{Shard: shard}, sweepLimit)
	if err != nil {
		return 0, err
	}
	var failed error
	for _, e := range all {
		at := store.Place{Shard: shard, Workspace: e.workspace}
		r, err := freeVerb.DoAt(ctx, d, at, freeArgs{e, maxDeaths})
		if err != nil { // one that cannot be freed must not keep the others held
			failed = errors.Join(failed, err)
		}
		if r.applied {
			freed++
		}
	}
	return freed, failed
}

// SweepAll frees the holds that have run out on every shard that is in use.
func SweepAll(ctx context.Context, d store.Doer, maxDeaths int) (freed int, err error) {
	shards, err := store.Shards(ctx, d)
	for _, shard := range shards {
		n, failed := Sweep(ctx, d, shard, maxDeaths)
		freed, err = freed+n, errors.Join(err, failed)
	}
	return freed, err
}
