package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/bench/baseline"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

var runSteps = []string{"s1", "s2", "s3", "s4", "s5"}

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

func (h hand) takeRun(ctx context.Context, key string) error {
	id := "run_" + key
	err := h.StartRun(ctx, baseline.StartRun{Run: id, Key: key, Input: payload, Step: runSteps[0], Holder: holder, Lease: itemLease})
	for i := 0; err == nil && i < len(runSteps); i++ {
		next := ""
		if i+1 < len(runSteps) {
			next = runSteps[i+1]
		}
		err = h.FinishStep(ctx, baseline.FinishStep{Run: id, Step: runSteps[i], Output: output, Next: next, Holder: holder, Lease: itemLease})
	}
	return err
}
