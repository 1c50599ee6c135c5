package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// TestAFailingCallerTouchesNoOtherThatSharesItsCommit verifies that of many callers that share
// commits only those with a failing command fail: every other append exists, once, in its caller's
// order, and no failed one does. The failure may undo its statement, leave it half done, or end the
// whole transaction.
func TestAFailingCallerTouchesNoOtherThatSharesItsCommit(t *testing.T) {
	t.Parallel()
	for _, raise := range []string{"ABORT", "FAIL", "ROLLBACK"} {
		t.Run(raise, func(t *testing.T) {
			t.Parallel()
			hf, _ := joined(t, "immediate", raise)
			const callers, rounds = 32, 20
			var wg sync.WaitGroup
			for caller := range callers {
				wg.Go(func() {
					for round := range rounds {
						last := "fine"
						if (caller+round)%7 == 0 {
							last = "boom"
						}
						_, err := stream.Append(t.Context(), hf, fmt.Sprintf("g%d", caller), stream.Any,
							event(fmt.Sprintf("r%d", round), ""), event(last, ""))
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
		})
	}
}

// TestCallersWhoWaitTogetherEachEndWithTheirContext verifies that callers that wait together for a
// lock of another process each end with their own context, and that none of their writes exists
// afterwards.
func TestCallersWhoWaitTogetherEachEndWithTheirContext(t *testing.T) {
	t.Parallel()
	path := holdfasttest.SQLite(t)
	hf := openEngine(t, sqlite.File(path))
	mustAppend(t, hf, "s", stream.None, "before")
	holder := startChild(t, "lock", path, "", nil)
	var wg sync.WaitGroup
	for caller := range 16 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(100+20*caller)*time.Millisecond)
			defer cancel()
			_, err := stream.Append(ctx, hf, "s", stream.Any, event("late", ""))
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, holdfast.ErrOutcomeUnknown) {
				t.Errorf("caller %d: got %v, want context.DeadlineExceeded", caller, err)
			}
		})
	}
	wg.Wait()
	holder.Send("go")
	holder.Wait()
	mustAppend(t, hf, "s", 0, "after")
	if names := wantGapless(t, hf, "s"); len(names) != 2 {
		t.Errorf("a canceled write is stored: %v", names)
	}
}
