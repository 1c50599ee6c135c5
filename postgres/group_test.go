package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// TestAFailingCallerTouchesNoOtherThatSharesItsStatement verifies that of many callers that share
// statements only those with a failing command fail: every other append exists, once, in its
// caller's order, and no failed one does.
func TestAFailingCallerTouchesNoOtherThatSharesItsStatement(t *testing.T) {
	t.Parallel()
	hf, _ := joined(t)
	const callers, rounds = 32, 20
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for round := range rounds {
				last := "fine"
				if (caller+round)%7 == 0 {
					last = "boom"
				}
				_, err := stream.Append(t.Context(), hf, fmt.Sprintf("g%d", caller), stream.Any, event(fmt.Sprintf("r%d", round)), event(last))
				if (err != nil) != (last == "boom") {
					t.Errorf("caller %d, round %d (%s): %v", caller, round, last, err)
				}
			}
		})
	}
	wg.Wait()
	for caller := range callers {
		var want []string
		for round := range rounds {
			if (caller+round)%7 != 0 {
				want = append(want, fmt.Sprintf("r%d", round), "fine")
			}
		}
		if names := wantGapless(t, hf, fmt.Sprintf("g%d", caller)); fmt.Sprint(names) != fmt.Sprint(want) {
			t.Errorf("caller %d: got %v, want %v", caller, names, want)
		}
	}
}

// TestRowsHeldElsewhereHoldUpOnlyThoseWhoWantThem verifies that rows that a user's transaction has
// locked delay only the callers that need them: while four are locked and waited for by many,
// sixteen callers on other streams continue; and when they are released, the waiting callers
// succeed.
func TestRowsHeldElsewhereHoldUpOnlyThoseWhoWantThem(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf := openEngine(t, postgres.URL(url))
	tx, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	for i := range 4 {
		mustAppend(t, hf, fmt.Sprintf("held%d", i), stream.None)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM holdfast.stream FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	var waiters, others sync.WaitGroup
	for i := range 12 {
		waiters.Go(func() {
			if _, err := stream.Append(t.Context(), hf, fmt.Sprintf("held%d", i%4), stream.Any, event("late")); err != nil {
				t.Errorf("caller that waited for a locked row: %v", err)
			}
		})
	}
	watcher := connect(t, url)
	testkit.Eventually(t, "a caller waits for a locked row", func() bool { return waiting(t, watcher) > 0 })
	slowest := make([]time.Duration, 16)
	for caller := range slowest {
		others.Go(func() {
			for range 30 {
				started := time.Now()
				if _, err := stream.Append(t.Context(), hf, fmt.Sprintf("free%d", caller), stream.Any, event("free")); err != nil {
					t.Error(err)
				}
				slowest[caller] = max(slowest[caller], time.Since(started))
			}
		})
	}
	others.Wait()
	t.Logf("slowest caller without a locked row: %v", slowest)
	for caller, took := range slowest {
		if took > 2*time.Second {
			t.Errorf("caller %d needs no locked row, but waited %v", caller, took)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	waiters.Wait()
	for i := range 4 {
		if names := wantGapless(t, hf, fmt.Sprintf("held%d", i)); len(names) != 4 {
			t.Errorf("stream held%d has %v, want 4 events", i, names)
		}
	}
}
