package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/stream"
)

// TestCallersOfEveryKindMeetAndEachHasItsOwnEnd verifies that of concurrent callers, one that
// loses, one that fails, one that is canceled and one that waits for a row locked by a user's
// transaction each get their own result, and every other commits: over many rounds, so that they
// meet in groups of every kind. Of two on one row one wins.
func TestCallersOfEveryKindMeetAndEachHasItsOwnEnd(t *testing.T) {
	t.Parallel()
	hf, conn := joined(t)
	mustAppend(t, hf, "held", stream.None)
	user, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer user.Rollback(context.Background())
	if _, err := user.Exec(t.Context(), `SELECT 1 FROM holdfast.stream WHERE name = 'held' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	const rounds, others = 40, 12
	waits := make(chan error, 1)
	go func() {
		_, err := stream.Append(t.Context(), hf, "held", 0, event("late"))
		waits <- err
	}()
	cancelled := 0
	for round := range rounds {
		var group sync.WaitGroup
		pair := make([]error, 2)
		for i := range pair { // two on one row
			group.Go(func() {
				_, pair[i] = stream.Append(t.Context(), hf, "pair", stream.Version(round-1), event("next"))
			})
		}
		for i := range others {
			group.Go(func() {
				if _, err := stream.Append(t.Context(), hf, fmt.Sprintf("o%d", i), stream.Version(round-1), event("fine")); err != nil {
					t.Errorf("round %d: unaffected caller: %v", round, err)
				}
			})
		}
		group.Go(func() {
			if _, err := stream.Append(t.Context(), hf, "o0", 9999, event("lost")); !errors.Is(err, holdfast.ErrConcurrency) {
				t.Errorf("round %d: losing caller: got %v, want ErrConcurrency", round, err)
			}
		})
		group.Go(func() {
			if _, err := stream.Append(t.Context(), hf, "fails", stream.Any, event("boom")); err == nil || errors.Is(err, holdfast.ErrOutcomeUnknown) {
				t.Errorf("round %d: failing caller: got %v, want a known failure", round, err)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(round)*50*time.Microsecond) // before, during and after
		var ended error
		group.Go(func() { _, ended = stream.Append(ctx, hf, "cancelled", stream.Any, event("perhaps")) })
		group.Wait()
		cancel()
		if (pair[0] == nil) == (pair[1] == nil) {
			t.Fatalf("round %d: two callers on one row got %v and %v, want one success", round, pair[0], pair[1])
		}
		if ended != nil {
			cancelled++
			if !errors.Is(ended, context.DeadlineExceeded) {
				t.Errorf("round %d: cancelled caller: got %v, want context.DeadlineExceeded", round, ended)
			}
		}
	}
	if there := len(wantGapless(t, hf, "cancelled")); there != rounds-cancelled {
		t.Errorf("%d of %d callers were cancelled, but %d events are stored", cancelled, rounds, there)
	}
	if len(wantGapless(t, hf, "fails")) != 0 || len(wantGapless(t, hf, "pair")) != rounds {
		t.Error("a failed append is stored, or a round of the pair is missing")
	}
	if err := user.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil {
		t.Errorf("waiting caller: %v", err)
	}
}

// TestUpdatesThatDeadlockAreRunAgain verifies that two updates that lock the same rows in opposite
// orders, and so deadlock, both commit in the end, each once.
func TestUpdatesThatDeadlockAreRunAgain(t *testing.T) {
	t.Parallel()
	hf, _ := joined(t)
	mustAppend(t, hf, "a", stream.None)
	mustAppend(t, hf, "b", stream.None)
	var tries sync.WaitGroup
	var runs [2]int
	both := make(chan struct{})
	var met sync.WaitGroup
	met.Add(2)
	go func() { met.Wait(); close(both) }()
	for i, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		tries.Go(func() {
			err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
				runs[i]++
				if _, err := stream.Append(ctx, tx, order[0], stream.Any, event("first")); err != nil {
					return err
				}
				if runs[i] == 1 {
					met.Done()
					<-both
				}
				_, err := stream.Append(ctx, tx, order[1], stream.Any, event("second"))
				return err
			})
			if err != nil {
				t.Errorf("update %d: %v", i, err)
			}
		})
	}
	tries.Wait()
	if runs[0]+runs[1] < 3 {
		t.Errorf("the updates ran %v times, want at least 3 in total: they did not deadlock", runs)
	}
	for _, name := range []string{"a", "b"} {
		if n := len(wantGapless(t, hf, name)); n != 3 {
			t.Errorf("%s has %d events, want 3", name, n)
		}
	}
}
