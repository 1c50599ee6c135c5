package baseline_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
			t.Run("run", func(t *testing.T) { testRun(t, s) })
			t.Run("tasks", func(t *testing.T) { testTasks(t, s) })
			t.Run("task race", func(t *testing.T) { testTaskRace(t, s) })
			t.Run("wallet", func(t *testing.T) { testWallet(t, s) })
			t.Run("all tasks", func(t *testing.T) { testAckAll(t, s) })
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
	won := race(t, 32, func(int) error {
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
	won := race(t, 32, func(int) error {
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

// A run of transitions leaves a version for each, and none can be left out.
func testRun(t *testing.T, s baseline.System) {
	ctx := context.Background()
	if _, err := s.Create(ctx, baseline.New{Lifecycle: "invoice", ID: "run", Status: "s0", Data: `{}`}); err != nil {
		t.Fatal(err)
	}
	statuses := []string{"s0", "s1", "s2", "s3", "s4", "s5"}
	for i := range 5 {
		m := baseline.Move{Lifecycle: "invoice", ID: "run", From: statuses[i], To: statuses[i+1], Event: "moved"}
		if e, err := s.Transition(ctx, m); err != nil || e.Version != int64(i+1) {
			t.Fatalf("step %d: %+v, %v", i, e, err)
		}
		if _, err := s.Transition(ctx, m); !errors.Is(err, baseline.ErrRefused) {
			t.Errorf("step %d again: %v", i, err)
		}
	}
}

func addTasks(t *testing.T, s baseline.System, queue string, n int) {
	t.Helper()
	won := race(t, n, func(i int) error {
		return s.AddTask(context.Background(), baseline.Task{Queue: queue, ID: fmt.Sprint(i), Input: `{"n": 1}`})
	})
	if won != n {
		t.Fatalf("%d of %d tasks were added", won, n)
	}
}

// Only who holds the lease, and while it runs, ends a task, and once.
func testTasks(t *testing.T, s baseline.System) {
	ctx := context.Background()
	addTasks(t, s, "one", 1)
	if err := s.AddTask(ctx, baseline.Task{Queue: "one", ID: "0", Input: `{}`}); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("the second add: %v", err)
	}
	all, err := s.Lease(ctx, "one", "me", time.Minute)
	if err != nil || len(all) != 1 || all[0].ID != "0" || all[0].Epoch != 1 || string(all[0].Input) != `{"n": 1}` || all[0].Until.IsZero() {
		t.Fatalf("lease: %+v, %v", all, err)
	}
	if more, err := s.Lease(ctx, "one", "you", time.Minute); err != nil || len(more) != 0 {
		t.Errorf("the second lease: %+v, %v", more, err)
	}
	other := all[0]
	other.Epoch--
	if _, err := s.Ack(ctx, other, `{}`); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("of an earlier epoch: %v", err)
	}
	if version, err := s.Ack(ctx, all[0], `{}`); err != nil || version != 1 {
		t.Errorf("ack: %d, %v", version, err)
	}
	if _, err := s.Ack(ctx, all[0], `{}`); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("the second ack: %v", err)
	}
	if more, err := s.Lease(ctx, "one", "you", time.Minute); err != nil || len(more) != 0 {
		t.Errorf("a lease of what is done: %+v, %v", more, err)
	}
	addTasks(t, s, "late", 1)
	all, err = s.Lease(ctx, "late", "me", -time.Second)
	if err != nil || len(all) != 1 {
		t.Fatalf("a lease that has run out: %+v, %v", all, err)
	}
	if _, err := s.Ack(ctx, all[0], `{}`); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("too late: %v", err)
	}
}

// Many lease and acknowledge at once, each task twice: no task is leased twice,
// none is left, and each is acknowledged once.
func testTaskRace(t *testing.T, s baseline.System) {
	ctx := context.Background()
	const tasks = 3*baseline.LeaseSize + 7
	addTasks(t, s, "race", tasks)
	var mu sync.Mutex
	var all []baseline.Leased
	race(t, 8, func(int) error {
		for {
			some, err := s.Lease(ctx, "race", "me", time.Minute)
			if err != nil || len(some) == 0 {
				return err
			}
			if len(some) > baseline.LeaseSize {
				return fmt.Errorf("%d in one lease", len(some))
			}
			mu.Lock()
			all = append(all, some...)
			mu.Unlock()
		}
	})
	ids := make(map[string]bool)
	for _, k := range all {
		ids[k.ID] = true
	}
	if len(all) != tasks || len(ids) != tasks {
		t.Fatalf("%d leases of %d tasks, of %d", len(all), len(ids), tasks)
	}
	won := race(t, 2*tasks, func(i int) error { _, err := s.Ack(ctx, all[i%tasks], `{}`); return err })
	if won != tasks {
		t.Errorf("%d acknowledged, of %d", won, tasks)
	}
}

// Of many who acknowledge the same tasks at once, each task has one who did.
func testAckAll(t *testing.T, s baseline.System) {
	a, ok := s.(baseline.AckAller)
	if !ok {
		return // this system acknowledges one by one
	}
	ctx := context.Background()
	addTasks(t, s, "all", 50)
	all, err := s.Lease(ctx, "all", "me", time.Minute)
	if err != nil || len(all) != 50 {
		t.Fatalf("%d leased, %v", len(all), err)
	}
	lost := all[0]
	lost.Epoch++
	if n, err := a.AckAll(ctx, []baseline.Leased{lost, all[1]}, `{}`); err != nil || n != 1 {
		t.Errorf("one of two: %d, %v", n, err)
	}
	var acked atomic.Int64
	race(t, 8, func(int) error {
		n, err := a.AckAll(ctx, all, `{}`)
		acked.Add(int64(n))
		return err
	})
	if acked.Load() != 49 {
		t.Errorf("%d acknowledged, of 49", acked.Load())
	}
}

// A wallet never pays for more than it has, an item is taken once, and of the
// two moves both are made or neither.
func testWallet(t *testing.T, s baseline.System) {
	ctx := context.Background()
	if err := s.PutWallet(ctx, "w", 30); err != nil {
		t.Fatal(err)
	}
	item := func(i int, from, to string) baseline.Move {
		return baseline.Move{Lifecycle: "item", ID: fmt.Sprint(i), From: from, To: to, Event: to}
	}
	for i := range 8 {
		if _, err := s.Create(ctx, baseline.New{Lifecycle: "item", ID: fmt.Sprint(i), Status: "free", Data: `{}`}); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	taken := make(map[int]int)
	won := race(t, 32, func(i int) error {
		_, err := s.Buy(ctx, item(i%8, "free", "taken").Take("w", 10))
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			taken[i%8]++
		}
		return err
	})
	if won != 3 || len(taken) != 3 {
		t.Fatalf("%d were taken, of 3 that can be paid for: %v", won, taken)
	}
	for i := range 8 {
		balance, err := s.Buy(ctx, item(i, "taken", "paid").Settle("w", 10))
		if taken[i] == 1 && (err != nil || balance != 0) {
			t.Errorf("settle %d: %d, %v", i, balance, err)
		}
		if taken[i] == 0 && !errors.Is(err, baseline.ErrRefused) {
			t.Errorf("settle %d, which nobody took: %v", i, err)
		}
		// What could not be paid for is as free as it was.
		_, err = s.Transition(ctx, item(i, "free", "gone"))
		if (err == nil) != (taken[i] == 0) {
			t.Errorf("item %d, taken %d times: %v", i, taken[i], err)
		}
	}
	if _, err := s.Buy(ctx, item(0, "gone", "taken").Take("none", 0)); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("from a wallet that is not there: %v", err)
	}
}

func race(t *testing.T, n int, f func(i int) error) (won int) {
	t.Helper()
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { errs[i] = f(i) })
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
