package run_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/run"
)

// Verifies that what the holder of a step did whose lease had run out, and of which a person has said
// that it did not happen, is stored, changes nothing, and is listed until it is acknowledged.
func TestALateStepIsReported(t *testing.T) {
	t.Parallel()
	var meanwhile sync.Map // what happens inside the first call of a run, by the run's id
	late := func(ctx context.Context) {
		info, _ := run.Of(ctx)
		if f, ok := meanwhile.LoadAndDelete(info.Run); ok {
			f.(func())()
		}
	}
	defs := map[string]*run.Definition{
		"charge": run.Define("journaled", "1", run.Task("a", func(ctx context.Context, _ any) (string, error) {
			return holdfast.Effect(ctx, "charge", func(context.Context, string) (string, error) { late(ctx); return "ref", nil })
		}, run.Journaled())),
		effects.Body: run.Define("opaque", "1", run.Task("a", func(ctx context.Context, _ any) (string, error) { late(ctx); return "ref", nil }, run.Opaque())),
	}
	// A body whose context ends, because its lease is lost, says nothing of what it did.
	stopped := run.Define("stopped", "1", run.Task("a", func(ctx context.Context, _ any) (string, error) { late(ctx); <-ctx.Done(); return "", ctx.Err() }, run.Opaque()))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for name, def := range defs {
			b := newBench(t, e, def)
			meanwhile.Store(b.id, func() { b.expireAndResolve(name) })
			b.once()
			b.is("FAILED", "a", "FAILED")
			all, err := holdfast.Collect(holdfast.ListContradictions(b.ctx, e, holdfast.ContradictionFilter{}))
			b.ok(err)
			if len(all) != 1 || all[0].Effect != name || all[0].Operation != runengine.Operation(b.id, "a", 1) || all[0].Epoch != 1 || all[0].Unknown || string(all[0].Result) != `"ref"` {
				t.Fatalf("%s: got contradictions %+v", name, all)
			}
			b.ok(holdfast.AcknowledgeContradictions(b.ctx, e, all[0].Operation, []string{all[0].ID}, holdfast.By("ann")))
		}
		run.WorkerOf(e).Lease = 2 * time.Second // its renewal tells the body, after a third
		b := newBench(t, e, stopped)
		meanwhile.Store(b.id, func() { b.expireAndResolve(effects.Body) })
		b.once()
		all, err := holdfast.Collect(holdfast.ListContradictions(b.ctx, e, holdfast.ContradictionFilter{}))
		b.ok(err)
		if len(all) != 1 || all[0].Effect != effects.Body || !all[0].Unknown {
			t.Fatalf("body that was stopped: got contradictions %+v", all)
		}
		b.ok(holdfast.AcknowledgeContradictions(b.ctx, e, all[0].Operation, []string{all[0].ID}, holdfast.By("ann")))
		if all, err := holdfast.Collect(holdfast.ListContradictions(t.Context(), e, holdfast.ContradictionFilter{})); err != nil || len(all) != 0 {
			t.Errorf("got contradictions %+v after the acknowledgement (%v), want none", all, err)
		}
	}, defs["charge"], defs[effects.Body], stopped)
}

// expireAndResolve lets the lease of the step expire and resolves its effect as not happened.
func (b *bench) expireAndResolve(effect string) {
	b.t.Helper()
	for range 2 {
		holdfasttest.Advance(b.t, b.e, 10*time.Minute)
		b.expire()
		b.once()
	}
	b.uncertain("RUNNING")
	_, err := b.executor().Resolve(b.ctx, engine.Of(b.e), runengine.Operation(b.id, "a", 1), []effects.Resolution{{Name: effect, State: effects.NotDone}}, "failure", lease.Intervention{Actor: "ann"})
	b.ok(err)
}
