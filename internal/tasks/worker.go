package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

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
	p := wake.Poller{Hub: w.Hub, Topics: topics, Log: w.Log, Look: func(ctx context.Context) (bool, error) {
		return w.look(ctx, slots, &bodies)
	}}
	p.Run(ctx)
}

// look takes one task and starts its body.
func (w *Worker) look(ctx context.Context, slots chan struct{}, bodies *sync.WaitGroup) (bool, error) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	taken, err := Take(ctx, w.Doer, TakeArgs{Queues: w.Queues, Holder: w.Name, Lease: w.lease(), Limit: 1, All: true})
	if err != nil || len(taken) == 0 {
		<-slots
		return false, err
	}
	bodies.Go(func() {
		defer func() { <-slots }()
		w.serve(ctx, taken[0])
	})
	return true, nil
}

func (w *Worker) lease() time.Duration {
	if w.Lease > 0 {
		return w.Lease
	}
	return hold.Lease
}

// serve runs a body under its hold and records how it ended. The recording does
// not depend on the worker's own context: what was done is told also while the
// worker stops.
func (w *Worker) serve(ctx context.Context, t Taken) {
	k := hold.Keeper{Lease: w.lease(), Timeout: w.Timeout, Renew: func(ctx context.Context) error {
		_, err := Renew(ctx, w.Doer, t, w.lease())
		return err
	}}
	output, err := w.body(k.Start(ctx), t)
	k.Stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.lease())
	defer cancel()
	if err == nil {
		_, err = Settle(ctx, w.Doer, t, output)
	} else {
		_, err = Fail(ctx, w.Doer, t, err.Error(), w.pause(t), w.Retries)
	}
	if err != nil {
		w.Log.Warn("the end of a task was not recorded", "queue", t.Queue, "task", t.ID, "epoch", t.Epoch, "error", err)
	}
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
