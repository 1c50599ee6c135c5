package baseline_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/baseline"
	"github.com/holdfast-go/holdfast/internal/pgtest"
)

// A comparison is worth nothing if what is compared with does not do the job:
// every way to write must keep the same promises.
func TestSystems(t *testing.T) {
	ctx := context.Background()
	url, drop, err := pgtest.Database(ctx, pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(drop)
	pg := openPostgres(t, url, "baseline")
	pgBest := openPostgres(t, url, "baseline_best").Coalesced(2)
	t.Cleanup(pgBest.Close)
	lite := openSQLite(t)
	liteBest, err := openSQLite(t).Coalesced(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(liteBest.Close)
	for name, s := range map[string]baseline.System{
		"postgres": pg, "postgres coalesced": pgBest, "sqlite": lite, "sqlite coalesced": liteBest,
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("entity", func(t *testing.T) { testEntity(t, s) })
			t.Run("stream", func(t *testing.T) { testStream(t, s) })
			t.Run("race", func(t *testing.T) { testRace(t, s) })
			t.Run("sum", func(t *testing.T) { testSum(t, s) })
		})
	}
}

func openPostgres(t *testing.T, url, schema string) *baseline.Postgres {
	t.Helper()
	p, err := baseline.OpenPostgres(context.Background(), url, schema, 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func openSQLite(t *testing.T) *baseline.SQLite {
	t.Helper()
	s, err := baseline.OpenSQLite(context.Background(), filepath.Join(t.TempDir(), "baseline.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func testEntity(t *testing.T, s baseline.System) {
	ctx := context.Background()
	invoice := baseline.New{Lifecycle: "invoice", ID: "1", Status: "open", Data: `{"n": 1}`}
	if e, err := s.Create(ctx, invoice); err != nil || e.Status != "open" || e.Version != 0 || e.CreatedAt.IsZero() {
		t.Fatalf("create: %+v, %v", e, err)
	}
	if _, err := s.Create(ctx, invoice); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("the second create: %v", err)
	}
	closing := baseline.Move{Lifecycle: "invoice", ID: "1", From: "open", To: "closed", Event: "close"}
	if e, err := s.Transition(ctx, closing); err != nil || e.Status != "closed" || e.Version != 1 || len(e.Data) == 0 {
		t.Errorf("transition: %+v, %v", e, err)
	}
	if _, err := s.Transition(ctx, closing); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("the second transition: %v", err)
	}
}

func testStream(t *testing.T, s baseline.System) {
	ctx := context.Background()
	for want := int64(-1); want < 2; want++ {
		last, err := s.Append(ctx, baseline.Append{Stream: "s", Want: want, Name: "paid", Data: `{}`})
		if err != nil || last != want+1 {
			t.Fatalf("append at %d: %d, %v", want, last, err)
		}
		if _, err := s.Append(ctx, baseline.Append{Stream: "s", Want: want, Name: "paid", Data: `{}`}); !errors.Is(err, baseline.ErrRefused) {
			t.Errorf("the second append at %d: %v", want, err)
		}
	}
}

// Of many who want the same, one wins.
func testRace(t *testing.T, s baseline.System) {
	ctx := context.Background()
	if _, err := s.Create(ctx, baseline.New{Lifecycle: "invoice", ID: "race", Status: "open", Data: `{}`}); err != nil {
		t.Fatal(err)
	}
	won := race(t, 32, func() error {
		_, err := s.Transition(ctx, baseline.Move{Lifecycle: "invoice", ID: "race", From: "open", To: "closed", Event: "close"})
		return err
	})
	if won != 1 {
		t.Errorf("%d of 32 transitions won", won)
	}
}

// Nothing that was added is lost, and every answer is a sum of its own.
func testSum(t *testing.T, s baseline.System) {
	ctx := context.Background()
	if err := s.PutScope(ctx, "org", "a", `{"n": 5}`); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := make(map[int64]bool)
	won := race(t, 32, func() error {
		n, err := s.Inc(ctx, baseline.Inc{Kind: "org", ID: "a", Field: "n", By: 2})
		mu.Lock()
		defer mu.Unlock()
		seen[n] = true
		return err
	})
	if won != 32 || len(seen) != 32 || !seen[7] || !seen[5+64] {
		t.Errorf("%d of 32 were added, to %d sums: %v", won, len(seen), seen)
	}
	if _, err := s.Inc(ctx, baseline.Inc{Kind: "org", ID: "none", Field: "n", By: 2}); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("of a scope that is not there: %v", err)
	}
}

func race(t *testing.T, n int, f func() error) (won int) {
	t.Helper()
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { errs[i] = f() })
	}
	group.Wait()
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, baseline.ErrRefused):
			t.Error(err)
		}
	}
	return won
}
