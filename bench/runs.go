package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/bench/baseline"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/workflow"
	"github.com/holdfast-go/holdfast/run"
)

var runSteps = []string{"s1", "s2", "s3", "s4", "s5"}

// threeSteps is a run as a user declares it.
var threeSteps = func() *run.Definition {
	step := func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(output), nil }
	return run.Define("three", "1", run.Task(runSteps[0], step, run.Idempotent()), run.Task(runSteps[1], step, run.Idempotent()), run.Task(runSteps[2], step, run.Idempotent()))
}()

// awaitRun is what a user calls. The engine runs in the background.
func (e kernel) awaitRun(ctx context.Context, key string) error {
	r, created, err := threeSteps.Start(ctx, e.hf, json.RawMessage(payload), run.Key(key))
	if err == nil && !created {
		err = errors.New("there was a run under the key")
	}
	if err != nil {
		return err
	}
	if r, err = run.Await(ctx, e.hf, r.ID); err == nil && r.Status != run.Completed {
		err = fmt.Errorf("the run is %s: %s", r.Status, r.Error)
	}
	return err
}

// background runs the engine until stop is called.
func (e kernel) background(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- e.hf.Run(ctx) }()
	return func() {
		cancel()
		<-done
	}
}

func startAwaited(s system) unit {
	var made atomic.Int64
	return single(func(ctx context.Context, client, _ int) error {
		return s.awaitRun(ctx, fmt.Sprintf("w-%d-%d", client, made.Add(1)))
	})
}

func startRuns(s system) unit {
	var made atomic.Int64
	return single(func(ctx context.Context, client, _ int) error {
		return s.takeRun(ctx, fmt.Sprintf("k-%d-%d", client, made.Add(1)))
	})
}

// fiveSteps is the definition, and the desk that its runs are moved at.
var fiveSteps, fiveExecutor = func() (*workflow.Definition, *runengine.Executor) {
	d := &workflow.Definition{Name: "five", Version: "1"}
	for _, name := range runSteps {
		d.Steps = append(d.Steps, workflow.Step{Name: name, Type: workflow.Task, Handler: name, Safety: "idempotent"})
	}
	return d, new(runengine.Executor)
}()

func everyone(string) (runengine.Handled, bool) { return runengine.Handled{Safety: "idempotent"}, true }

func (e kernel) takeRun(ctx context.Context, key string) error {
	if err := fiveExecutor.Ensure(ctx, engine.Of(e.hf), fiveSteps); err != nil {
		return err
	}
	l, created, err := fiveExecutor.Start(ctx, engine.Of(e.hf), runengine.Start{Definition: fiveSteps.ID(), Input: []byte(payload), Key: key, Holder: holder, Lease: itemLease, Local: everyone})
	if err == nil && !created {
		err = errors.New("there was a run under the key")
	}
	for err == nil && l.Taken() {
		l, err = fiveExecutor.Complete(ctx, engine.Of(e.hf), &l, runengine.Ended{Output: []byte(output), Holder: holder, Lease: itemLease, Local: everyone})
	}
	if err == nil && l.Run.Status != runengine.Completed {
		err = fmt.Errorf("the run is %s", l.Run.Status)
	}
	return err
}

func (h hand) takeRun(ctx context.Context, key string) error { return h.runSteps(ctx, key, runSteps) }

func (h hand) awaitRun(ctx context.Context, key string) error {
	return h.runSteps(ctx, key, runSteps[:3])
}

func (h hand) runSteps(ctx context.Context, key string, steps []string) error {
	id := "run_" + key
	err := h.StartRun(ctx, baseline.StartRun{Run: id, Key: key, Input: payload, Step: steps[0], Holder: holder, Lease: itemLease})
	for i := 0; err == nil && i < len(steps); i++ {
		next := ""
		if i+1 < len(steps) {
			next = steps[i+1]
		}
		err = h.FinishStep(ctx, baseline.FinishStep{Run: id, Step: steps[i], Output: output, Next: next, Holder: holder, Lease: itemLease})
	}
	return err
}
