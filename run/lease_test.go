package run_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/run"
)

// Verifies that the lease of steps is the program's to choose, for steps that are taken at the start of their run and for
// those that are found; and that one which cannot be is refused at the start of the program.
func TestTheLeaseOfStepsIsChosen(t *testing.T) {
	const chosen = 7 * time.Minute
	eachAt(t, func(t *testing.T, _ *holdfast.Engine, db string) {
		begun, end := make(chan struct{}), make(chan struct{})
		def := run.Define("held", "1", run.Task("a", func(context.Context, any) (string, error) { begun <- struct{}{}; <-end; return "", nil }, run.Idempotent()))
		b := newBench(t, holdfasttest.OpenOn(t, holdfasttest.At(db), def, run.Lease(chosen)), def)
		var done sync.WaitGroup
		done.Go(b.once)
		<-begun
		if s := b.live().Step; s.Until.Sub(s.StartedAt) != chosen {
			t.Errorf("got lease from %s to %s", s.StartedAt, s.Until)
		}
		close(end)
		done.Wait()
	})
	for _, bad := range []time.Duration{-1, time.Millisecond, 25 * time.Hour} {
		if err := run.Lease(bad).Register(t.Context(), nil); fault.CodeOf(err) != fault.Validation {
			t.Errorf("lease of %s: got %v, want a validation error", bad, err)
		}
	}
}

// Verifies that a body learns that its run is to be cancelled long before its lease is renewed: from this engine at once,
// and from another process, which wakes nobody here, soon.
func TestABodyLearnsOfACancelOfItsRun(t *testing.T) {
	eachAt(t, func(t *testing.T, _ *holdfast.Engine, db string) {
		begun := make(chan struct{})
		def := run.Define("waits", "1", run.Task("a", func(ctx context.Context, _ any) (string, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		}, run.Idempotent()))
		e := holdfasttest.OpenOn(t, holdfasttest.At(db), def, run.Lease(12*time.Minute))
		other := holdfasttest.OpenOn(t, holdfasttest.At(db))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		testkit.Run(t, e)
		for _, by := range []*holdfast.Engine{e, other} {
			r, _, err := def.Start(t.Context(), e, nil)
			if err != nil {
				t.Fatal(err)
			}
			<-begun
			if _, err := run.Cancel(t.Context(), by, r.ID); err != nil {
				t.Fatal(err)
			}
			if r, err = run.Await(ctx, e, r.ID); err != nil || r.Status != "CANCELLED" {
				t.Fatalf("got run %+v, %v, want CANCELLED", r, err)
			}
		}
	})
}
