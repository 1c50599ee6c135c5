package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// expired returns a context that ends after a moment.
func expired(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// rounds makes sixteen callers do the same at once, in several rounds, and checks that each round
// has one winner.
func rounds(t *testing.T, n int, try func(round int) (won bool)) {
	t.Helper()
	for round := range n {
		var won atomic.Int32
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for range 16 {
			wg.Go(func() {
				<-begin
				if try(round) {
					won.Add(1)
				}
			})
		}
		close(begin)
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d has %d winners, want 1", round, won.Load())
		}
	}
}

// TestOfManyRacingCreatesOneWinsAndTheLosersAreToldTheTruth verifies that of sixteen callers that
// create the same object at once one wins, and that each loser gets the winner's version, although
// its own statement began before the winner's row was visible. The same for streams, entities and
// scopes.
func TestOfManyRacingCreatesOneWinsAndTheLosersAreToldTheTruth(t *testing.T) {
	t.Parallel()
	hf := openEngine(t, postgres.URL(prepared(t)))
	t.Run("streams", func(t *testing.T) {
		rounds(t, testlevel.Pick(8, 80, 2000), func(round int) bool {
			_, err := stream.Append(t.Context(), hf, fmt.Sprintf("s%d", round), stream.None, event("made"))
			if err != nil {
				wantMoved(t, err, 0)
			}
			return err == nil
		})
	})
	t.Run("entities", func(t *testing.T) {
		rounds(t, testlevel.Pick(8, 80, 2000), func(round int) bool {
			e, err := entities.Create(t.Context(), engine.Of(hf), entities.CreateArgs{Lifecycle: "thing", ID: fmt.Sprintf("e%d", round), Status: "new"})
			if err != nil && (!errors.Is(err, holdfast.ErrConflict) || e.Status != "new" || e.Version != 0) {
				t.Errorf("losing caller got %v, and the entity as %q at version %d", err, e.Status, e.Version)
			}
			return err == nil
		})
	})
	t.Run("scopes", func(t *testing.T) {
		none := int64(-1)
		rounds(t, testlevel.Pick(8, 80, 2000), func(round int) bool {
			_, err := scopestore.Put(t.Context(), engine.Of(hf), scopestore.PutArgs{Kind: "box", ID: fmt.Sprintf("x%d", round), ExpectVersion: &none, State: []byte(`{}`)})
			if err != nil {
				wantMoved(t, err, 0)
			}
			return err == nil
		})
	})
}

// TestRacingSumsThatMakeTheirScopeLoseNothing verifies that no sum is lost if sixteen callers add
// to a field that does not exist at first.
func TestRacingSumsThatMakeTheirScopeLoseNothing(t *testing.T) {
	t.Parallel()
	hf := openEngine(t, postgres.URL(prepared(t)))
	for round := range testlevel.Pick(5, 100, 1000) {
		id := fmt.Sprintf("x%d", round)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if _, err := storetest.Inc(t.Context(), hf, storetest.IncArgs{Kind: "box", ID: id, Field: "n", By: 1}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if s, err := storetest.Inc(t.Context(), hf, storetest.IncArgs{Kind: "box", ID: id, Field: "n", By: 0}); err != nil || s.Value != 16 || s.Version != 15 { // adding nothing writes nothing
			t.Fatalf("16 increments made %d at version %d, want 16 and 15: %v", s.Value, s.Version, err)
		}
	}
}

// TestALoserThatWaitedForTheRowIsToldTheTrueVersion verifies the result of a caller that waits for
// a row locked by another transaction: if that commits, the caller gets the version that it lost
// to, and not the one that it found at first; if that rolls back, it wins. The stream exists
// already, or the other transaction creates it; the fast form of the statement and the general one
// behave alike.
func TestALoserThatWaitedForTheRowIsToldTheTrueVersion(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		for _, exists := range []bool{true, false} {
			for _, commit := range []bool{true, false} {
				t.Run(fmt.Sprintf("plain %v, exists %v, commit %v", plain, exists, commit), func(t *testing.T) {
					t.Parallel()
					url := prepared(t)
					var db holdfast.Database = postgres.URL(url)
					if plain {
						db = store.Plain(db)
					}
					waitedFor(t, url, openEngine(t, db), exists, commit)
				})
			}
		}
	}
}

func waitedFor(t *testing.T, url string, hf *holdfast.Engine, exists, commit bool) {
	t.Helper()
	want := stream.None
	if exists {
		want = mustAppend(t, hf, "s", stream.None)
	} else {
		mustAppend(t, hf, "other", stream.None) // so that the workspace exists
	}
	mine := connect(t, url)
	tx, err := mine.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	a, err := postgres.Join(hf, tx)
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Append(t.Context(), a, "s", want, event("a1"), event("a2"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := stream.Append(t.Context(), hf, "s", want, event("b"))
		done <- err
	}()
	watcher := connect(t, url)
	testkit.Eventually(t, "the second append waits for the first", func() bool { return waiting(t, watcher) == 1 })
	if !commit {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("the first rolled back, but the second failed: %v", err)
		}
		wantNames(t, hf, int(want)+2)
		return
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantMoved(t, <-done, int64(first))
	wantNames(t, hf, int(want)+3)
}

func wantNames(t *testing.T, hf *holdfast.Engine, n int) {
	t.Helper()
	if names := wantGapless(t, hf, "s"); len(names) != n {
		t.Errorf("got %d events, want %d: %v", len(names), n, names)
	}
}

// waiting returns how many sessions of this database wait for a lock.
func waiting(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	return query[int](t, conn, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()`)
}

// TestAWriteThatWaitsForARowEndsWithItsContext verifies that a write that waits for a row locked
// elsewhere ends with its context, whatever error it returns, and is not applied.
func TestAWriteThatWaitsForARowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf := openEngine(t, postgres.URL(url))
	mustAppend(t, hf, "s", stream.None)
	tx, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM holdfast.stream FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	_, err = stream.Append(expired(t), hf, "s", 0, event("late"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("took %v, want at most 5s", took)
	}
	t.Log(err)
	watcher := connect(t, url)
	testkit.Eventually(t, "no caller waits any more", func() bool { return waiting(t, watcher) == 0 })
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, hf, "s", 0)
	if names := wantGapless(t, hf, "s"); len(names) != 2 {
		t.Errorf("got events %v, want 2", names)
	}
}
