package run_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/run"
)

// TestMaxWorkers verifies that a node runs at most so many steps at once.
func TestMaxWorkers(t *testing.T) {
	var mu sync.Mutex
	now, most := make(map[string]int), make(map[string]int) // by test, because tests on two databases share the definition
	def := run.Define("counted", "1", run.Task("a", func(ctx context.Context, test string) (int, error) {
		mu.Lock()
		now[test]++
		most[test] = max(most[test], now[test])
		mu.Unlock()
		err := clock.Wait(ctx, 5*time.Millisecond) // enough for another step to start, if it may
		mu.Lock()
		now[test]--
		mu.Unlock()
		return 0, err
	}, run.Idempotent()))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		var ids []string
		for range 20 {
			r, _, err := def.Start(t.Context(), e, t.Name())
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.ID)
		}
		testkit.Run(t, e)
		for _, id := range ids {
			if r, err := run.Await(t.Context(), e, id); err != nil || r.Status != run.Completed {
				t.Fatalf("got %+v, %v", r, err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if n := most[t.Name()]; n != 1 {
			t.Errorf("%d steps ran at once, want 1", n)
		}
	}, def, run.MaxWorkers(1))
	if _, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{}, run.MaxWorkers(-1)); !errors.Is(err, holdfast.ErrValidation) {
		t.Errorf("MaxWorkers(-1): got %v, want ErrValidation", err)
	}
}
