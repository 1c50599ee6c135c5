package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/run"
)

// TestAwaitReturnsWhatIsStored verifies that Await returns a run that ends in this process as it is stored, without
// reading it if it completed, and that a context that ends first does not affect the run.
func TestAwaitReturnsWhatIsStored(t *testing.T) {
	for name, where := range storetest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			gate, begun := make(chan struct{}), make(chan struct{}, 100)
			def := run.Define("awaited", "1",
				run.Task("first", func(ctx context.Context, n int) (int, error) {
					begun <- struct{}{}
					<-gate
					return n, run.Patch(ctx, map[string]int{"n": n})
				}, run.Idempotent()),
				run.Task("last", func(_ context.Context, n int) (int, error) {
					if n == 0 {
						return 0, errors.New("it is zero")
					}
					return 100 * n, nil
				}, run.Input("=steps.first.output"), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 1})))
			var reads atomic.Int64
			db := &counting{Database: store.DatabaseOf(holdfasttest.At(where(t))), wrote: make(map[string]int), reading: func(c store.Command) {
				if c.Decl().Name == "runs.get" {
					reads.Add(1)
				}
			}}
			e := holdfasttest.OpenOn(t, store.HandleDatabase(db), def)
			testkit.Run(t, e)
			start := func(n int) run.Run {
				t.Helper()
				r, _, err := def.Start(t.Context(), e, n)
				if err != nil {
					t.Fatal(err)
				}
				<-begun
				return r
			}
			first := start(1) // it may start before the engine runs
			close(gate)
			if _, err := run.Await(t.Context(), e, first.ID); err != nil {
				t.Fatal(err)
			}
			gate = make(chan struct{})
			for n, status := range []run.Status{run.Failed, run.Completed} {
				started := start(n)
				ended, end := context.WithCancel(t.Context())
				end()
				if r, err := run.Await(ended, e, started.ID); !errors.Is(err, context.Canceled) || r.Status != run.Running || r.ID != started.ID {
					t.Errorf("a context that ended: got a run that is %q and %v, want RUNNING and context.Canceled", r.Status, err)
				}
				before := reads.Load()
				got := make(chan run.Run, 2)
				for range cap(got) {
					go func() {
						r, _ := run.Await(t.Context(), e, started.ID)
						got <- r
					}()
				}
				testkit.Eventually(t, "both wait", func() bool { return waitingInAwait() == cap(got) })
				gate <- struct{}{}
				one, two := encoded(t, <-got), encoded(t, <-got)
				if n := reads.Load() - before; n != 0 && status == run.Completed {
					t.Errorf("two calls of Await read the run %d times, want 0", n)
				}
				r, err := run.Get(t.Context(), e, started.ID)
				if err != nil {
					t.Fatal(err)
				}
				if stored := encoded(t, r); one != stored || two != stored || r.Status != status {
					t.Errorf("Await returned\n  %s and\n  %s, but what is stored is %s:\n  %s", one, two, r.Status, stored)
				}
				if !started.CreatedAt.Equal(r.CreatedAt) || r.FinishedAt.IsZero() || !r.UpdatedAt.Equal(r.FinishedAt) || started.UpdatedAt.Before(started.CreatedAt) {
					t.Errorf("created at %v by Start and at %v as stored, finished at %v, updated at %v", started.CreatedAt, r.CreatedAt, r.FinishedAt, r.UpdatedAt)
				}
			}
		})
	}
}

// waitingInAwait counts the goroutines of this process that wait for a run that this process serves. A test that
// uses it does not run in parallel.
func waitingInAwait() (n int) {
	all := make([]byte, 1<<20)
	for g := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		head, frames, _ := strings.Cut(g, "\n")
		if strings.Contains(head, "[select") && strings.Contains(frames, "run.awaitServed(") {
			n++
		}
	}
	return n
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
