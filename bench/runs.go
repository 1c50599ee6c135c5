package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/baseline"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/run"
)

var runSteps = []string{"s1", "s2", "s3"}

// workflow is a type of run: its number of steps, and whether they are recorded behind, which only Holdfast supports.
type workflow struct {
	steps  int
	behind bool
}

var oneStep, threeSteps, threeBehind = workflow{1, false}, workflow{3, false}, workflow{3, true}

// workflows are runs as a user declares them.
var workflows = map[workflow]*run.Definition{oneStep: oneStep.define(), threeSteps: threeSteps.define(), threeBehind: threeBehind.define()}

func (w workflow) define() *run.Definition {
	name, options := fmt.Sprintf("steps-%d", w.steps), []run.StepOption{run.Idempotent()}
	if w.behind {
		name, options = name+"-behind", append(options, run.RecordBehind())
	}
	var all []run.Step
	for _, name := range runSteps[:w.steps] {
		all = append(all, run.Task(name, func(context.Context, invoice) (json.RawMessage, error) { return json.RawMessage(output), nil }, options...))
	}
	return run.Define(name, "1", all...)
}

func (e holdfastSystem) run(ctx context.Context, key string, w workflow) error {
	r, created, err := workflows[w].Start(ctx, e.hf, amount, run.Key(key))
	if err == nil && !created {
		err = errors.New("a run with this key already existed")
	}
	if err != nil {
		return err
	}
	if r, err = run.Await(ctx, e.hf, r.ID); err == nil && r.Status != run.Completed {
		err = fmt.Errorf("the run ended with status %s: %s", r.Status, r.Error)
	}
	return err
}

const stepLease = time.Hour

func (h sqlSystem) run(ctx context.Context, key string, w workflow) error {
	id := "run_" + key
	err := h.StartRun(ctx, baseline.StartRun{Run: id, Key: key, Input: payload, Step: runSteps[0], Holder: holder, Lease: stepLease})
	for i := 0; err == nil && i < w.steps; i++ {
		next := ""
		if i+1 < w.steps {
			next = runSteps[i+1]
		}
		err = h.FinishStep(ctx, baseline.FinishStep{Run: id, Step: runSteps[i], Output: output, Next: next, Holder: holder, Lease: stepLease})
	}
	return err
}

// background runs an engine until stop is called.
func background(ctx context.Context, hf *holdfast.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- hf.Run(ctx) }()
	return func() {
		cancel()
		<-done
	}
}

// openRuns runs Holdfast's engine in the background as long as the workload is measured.
func openRuns(w workflow) func(context.Context, system) (slicer, func(), error) {
	return func(ctx context.Context, s system) (slicer, func(), error) {
		var stop func()
		if k, ok := s.(holdfastSystem); ok {
			stop = background(ctx, k.hf)
		}
		var made atomic.Int64
		return callers(func(ctx context.Context, client, _ int) error {
			return s.run(ctx, fmt.Sprintf("%s-%d-%d", workflows[w].ID(), client, made.Add(1)), w)
		}), stop, nil
	}
}

// idleTime is how long both nodes are idle before each wake-up.
const idleTime = 50 * time.Millisecond

// openWake opens two nodes: one starts runs, and the other runs them. It is for PostgreSQL only.
func openWake(ctx context.Context, s system) (slicer, func(), error) {
	k, ok := s.(holdfastSystem)
	if !ok || !k.nodes {
		return nil, nil, nil
	}
	begun := make(chan time.Time, 1)
	definition := func(step func()) *run.Definition {
		return run.Define("woken", "1", run.Task("only", func(context.Context, invoice) (json.RawMessage, error) {
			step()
			return json.RawMessage(output), nil
		}, run.Idempotent()))
	}
	here := definition(func() { panic("the step began on the node that does not run") })
	caller, err := k.open(ctx, here)
	if err != nil {
		return nil, nil, err
	}
	other, err := k.open(ctx, definition(func() { begun <- clock.Now() }))
	if err != nil {
		return nil, nil, errors.Join(err, caller.Close())
	}
	stop := background(ctx, other)
	end := func() {
		stop()
		_ = other.Close()
		_ = caller.Close()
	}
	return func(ctx context.Context, t sliceSize) (slice, error) {
		return func() (sample, error) { return wake(ctx, caller, here, begun, t.long) }, nil
	}, end, nil
}

// wake starts runs, one after the other, and measures from the call until the step begins on the other node.
func wake(ctx context.Context, caller *holdfast.Engine, d *run.Definition, begun <-chan time.Time, long time.Duration) (s sample, err error) {
	start := clock.Now()
	for clock.Since(start) < long {
		if err := clock.Wait(ctx, idleTime); err != nil {
			return s, err
		}
		from := clock.Now()
		r, _, err := d.Start(ctx, caller, amount)
		if err != nil {
			return s, err
		}
		select {
		case at := <-begun:
			s.latencies = append(s.latencies, at.Sub(from))
		case <-ctx.Done():
			return s, ctx.Err()
		}
		if _, err := run.Await(ctx, caller, r.ID); err != nil {
			return s, err
		}
	}
	s.units, s.took = len(s.latencies), clock.Since(start)
	return s, nil
}
