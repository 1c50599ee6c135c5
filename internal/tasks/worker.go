package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Worker takes the tasks of some queues and runs a body for each. While a body
// runs its hold is renewed; when it returns, its output is settled or its error
// counted as a failure.
type Worker struct {
	Doer   store.Doer
	Hub    *wake.Hub
	Log    *slog.Logger
	Name   string // the holder
	Queues []string
	// Body does the work. Its context ends when the hold is lost.
	Body func(context.Context, Taken) (output []byte, err error)
	// Parallel is how many bodies run at once; 1 if not set.
	Parallel int
	Lease    time.Duration // [hold.Lease] if not set
	Timeout  time.Duration // [hold.Timeout] if not set
	Retries  int
	// Backoff is the pause after the n-th failure.
	Backoff func(failures int) time.Duration

	shards  []int16
	learned time.Time
}

// Run works until ctx ends, and then waits for the bodies that run.
func (w *Worker) Run(ctx context.Context) {
	var bodies sync.WaitGroup
	defer bodies.Wait()
	slots := make(chan struct{}, max(w.Parallel, 1))
	var topics []string
	for _, q := range w.Queues {
		topics = append(topics, Topic(q))
	}
	p := wake.Poller{Hub: w.Hub, Topics: topics, Log: w.Log, Needs: func() []wake.Need { return wake.Needs(wake.Task, w.Queues...) }, Look: func(ctx context.Context) (bool, error) {
		return w.look(ctx, slots, &bodies)
	}}
	p.Run(ctx)
}

// look takes one task of each shard, as far as there is room, and starts its
// body.
func (w *Worker) look(ctx context.Context, slots chan struct{}, bodies *sync.WaitGroup) (found bool, err error) {
	if err := w.refresh(ctx); err != nil {
		return false, err
	}
	for _, shard := range w.shards {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return found, ctx.Err()
		}
		taken, err := w.take(ctx, shard)
		if err != nil || len(taken) == 0 {
			<-slots
			if err != nil {
				return found, err
			}
			continue
		}
		found = true
		bodies.Go(func() {
			defer func() { <-slots }()
			w.serve(ctx, taken[0])
		})
	}
	return found, nil
}

// refresh learns from time to time which shards there are.
func (w *Worker) refresh(ctx context.Context) (err error) {
	if len(w.shards) > 0 && clock.Since(w.learned) < 10*time.Second {
		return nil
	}
	w.shards, err = store.Shards(ctx, w.Doer)
	w.learned = clock.Now()
	return err
}

// take finishes also when the worker stops meanwhile: a task that was taken for
// nobody would count as a death.
func (w *Worker) take(ctx context.Context, shard int16) ([]Taken, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.lease())
	defer cancel()
	return Take(ctx, w.Doer, TakeArgs{Queues: w.Queues, Holder: w.Name, Lease: w.lease(), Limit: 1, All: true, Shard: shard})
}

func (w *Worker) lease() time.Duration {
	if w.Lease > 0 {
		return w.Lease
	}
	return hold.Lease
}

// serve runs a body under its hold and records how it ended. Neither the hold
// nor the recording depends on the worker's own context, which ends when it
// stops: the body is told, its hold is kept until it returns, and what it did is
// recorded.
func (w *Worker) serve(ctx context.Context, t Taken) {
	k := hold.Keeper{Lease: w.lease(), Timeout: w.Timeout, Renew: func(ctx context.Context) error {
		_, err := Renew(ctx, w.Doer, t, w.lease())
		return err
	}}
	output, err := w.body(k.Start(ctx), t)
	k.Stop()
	stopping := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.lease())
	defer cancel()
	if err := w.record(ctx, t, output, err, stopping); err != nil {
		w.Log.Warn("the end of a task was not recorded", "queue", t.Queue, "task", t.ID, "epoch", t.Epoch, "error", err)
	}
}

// record writes how a body ended. One that gave up because the worker stops has
// not failed; an output that cannot be kept has.
func (w *Worker) record(ctx context.Context, t Taken, output []byte, failure error, stopping bool) error {
	if failure == nil {
		_, err := Settle(ctx, w.Doer, t, output)
		if code := fault.CodeOf(err); code != fault.Validation && code != fault.PayloadTooLarge {
			return err
		}
		failure = fmt.Errorf("the output cannot be kept: %w", err)
	}
	if stopping && errors.Is(failure, context.Canceled) {
		_, err := Release(ctx, w.Doer, t, 0)
		return err
	}
	_, err := Fail(ctx, w.Doer, t, failure.Error(), w.pause(t), w.Retries)
	return err
}

func (w *Worker) pause(t Taken) time.Duration {
	if w.Backoff == nil {
		return 0
	}
	return w.Backoff(t.Failures + 1)
}

// body runs the user's code; a panic is a failure.
func (w *Worker) body(ctx context.Context, t Taken) (output []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the body panicked: %v", p)
		}
	}()
	return w.Body(ctx, t)
}
