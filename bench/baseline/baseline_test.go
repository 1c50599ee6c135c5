package baseline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/baseline"
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
			t.Run("swap", func(t *testing.T) { testSwap(t, s) })
			t.Run("run", func(t *testing.T) { testRun(t, s) })
			t.Run("tasks", func(t *testing.T) { testTasks(t, s) })
			t.Run("task race", func(t *testing.T) { testTaskRace(t, s) })
			t.Run("all tasks", func(t *testing.T) { testAckAll(t, s) })
			t.Run("items", func(t *testing.T) { testItems(t, s) })
			t.Run("item race", func(t *testing.T) { testItemRace(t, s, "one", takeOne(s)) })
			if m, ok := s.(baseline.ManyItems); ok {
				t.Run("many items", func(t *testing.T) { testItemRace(t, s, "many", takeMany(m)) })
				t.Run("all items", func(t *testing.T) { testSettleItems(t, s, m) })
			}
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
		t.Errorf("second create: got %v, want ErrRefused", err)
	}
	closing := baseline.Move{Lifecycle: "invoice", ID: "1", From: "open", To: "closed", Event: "close"}
	if e, err := s.Transition(ctx, closing); err != nil || e.Status != "closed" || e.Version != 1 || len(e.Data) == 0 {
		t.Errorf("transition: %+v, %v", e, err)
	}
	if _, err := s.Transition(ctx, closing); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("second transition: got %v, want ErrRefused", err)
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
			t.Errorf("second append at %d: got %v, want ErrRefused", want, err)
		}
	}
}

// testRace checks that one of many concurrent transitions wins.
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
		t.Errorf("%d of 32 transitions won, want 1", won)
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
		t.Errorf("%d of 32 increments succeeded with %d distinct sums: %v", won, len(seen), seen)
	}
	if _, err := s.Inc(ctx, baseline.Inc{Kind: "org", ID: "none", Field: "n", By: 2}); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("inc of a missing scope: got %v, want ErrRefused", err)
	}
}

// Nothing is lost that was decided in the program.
func testSwap(t *testing.T, s baseline.System) {
	ctx := context.Background()
	if err := s.PutScope(ctx, "org", "swap", `{"n": 0}`); err != nil {
		t.Fatal(err)
	}
	add := func(state string) (string, error) {
		var now struct{ N int64 }
		err := json.Unmarshal([]byte(state), &now)
		return fmt.Sprintf(`{"n": %d}`, now.N+1), err
	}
	won := race(t, 8, func(int) error { return s.Swap(ctx, "org", "swap", add) })
	n, err := s.Inc(ctx, baseline.Inc{Kind: "org", ID: "swap", Field: "n", By: 1})
	if won != 8 || n != 9 || err != nil {
		t.Errorf("%d of 8 swaps succeeded, and the next made %d, %v", won, n, err)
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
			t.Errorf("second step %d: got %v, want ErrRefused", i, err)
		}
	}
}

func addTasks(t *testing.T, s baseline.System, queue string, n int) {
	t.Helper()
	won := race(t, n, func(i int) error {
		return s.AddTask(context.Background(), baseline.Task{Queue: queue, ID: fmt.Sprint(i), Input: `{"n": 1}`})
	})
	if won != n {
		t.Fatalf("added %d of %d tasks", won, n)
	}
}

// testTasks checks that only the holder of a valid lease ends a task, and once.
func testTasks(t *testing.T, s baseline.System) {
	ctx := context.Background()
	addTasks(t, s, "one", 1)
	if err := s.AddTask(ctx, baseline.Task{Queue: "one", ID: "0", Input: `{}`}); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("second add: got %v, want ErrRefused", err)
	}
	all, err := s.Lease(ctx, "one", "me", time.Minute)
	if err != nil || len(all) != 1 || all[0].ID != "0" || all[0].Epoch != 1 || string(all[0].Input) != `{"n": 1}` || all[0].Until.IsZero() {
		t.Fatalf("lease: %+v, %v", all, err)
	}
	if more, err := s.Lease(ctx, "one", "you", time.Minute); err != nil || len(more) != 0 {
		t.Errorf("second lease: got %+v, %v, want none", more, err)
	}
	other := all[0]
	other.Epoch--
	if _, err := s.Ack(ctx, other, `{}`); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("ack of an earlier epoch: got %v, want ErrRefused", err)
	}
	if version, err := s.Ack(ctx, all[0], `{}`); err != nil || version != 1 {
		t.Errorf("ack: %d, %v", version, err)
	}
	if _, err := s.Ack(ctx, all[0], `{}`); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("second ack: got %v, want ErrRefused", err)
	}
	if more, err := s.Lease(ctx, "one", "you", time.Minute); err != nil || len(more) != 0 {
		t.Errorf("lease of a finished task: got %+v, %v, want none", more, err)
	}
	addTasks(t, s, "late", 1)
	all, err = s.Lease(ctx, "late", "me", -time.Second)
	if err != nil || len(all) != 1 {
		t.Fatalf("lease after expiry: got %+v, %v, want one", all, err)
	}
	if _, err := s.Ack(ctx, all[0], `{}`); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("late ack: got %v, want ErrRefused", err)
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
				return fmt.Errorf("got %d tasks in one lease, more than LeaseSize", len(some))
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
		t.Fatalf("got %d leases of %d tasks, want %d", len(all), len(ids), tasks)
	}
	won := race(t, 2*tasks, func(i int) error { _, err := s.Ack(ctx, all[i%tasks], `{}`); return err })
	if won != tasks {
		t.Errorf("acknowledged %d, want %d", won, tasks)
	}
}

// testAckAll checks that of many concurrent acks of the same tasks, one succeeds for each task.
func testAckAll(t *testing.T, s baseline.System) {
	a, ok := s.(baseline.AckAller)
	if !ok {
		return // this system acknowledges one by one
	}
	ctx := context.Background()
	addTasks(t, s, "all", 50)
	all, err := s.Lease(ctx, "all", "me", time.Minute)
	if err != nil || len(all) != 50 {
		t.Fatalf("leased %d, want 50: %v", len(all), err)
	}
	lost := all[0]
	lost.Epoch++
	if n, err := a.AckAll(ctx, []baseline.Leased{lost, all[1]}, `{}`); err != nil || n != 1 {
		t.Errorf("ack of two with one lost: got %d, %v, want 1", n, err)
	}
	var acked atomic.Int64
	race(t, 8, func(int) error {
		n, err := a.AckAll(ctx, all, `{}`)
		acked.Add(int64(n))
		return err
	})
	if acked.Load() != 49 {
		t.Errorf("acknowledged %d, want 49", acked.Load())
	}
}

// addBatch makes a batch with items that cost 10 each, in two pages, and its wallet.
func addBatch(t *testing.T, s baseline.System, id string, items int, balance int64) baseline.Batcher {
	t.Helper()
	ctx := context.Background()
	var b baseline.Batcher = s
	if err := s.PutWallet(ctx, "w-"+id, balance); err != nil {
		t.Fatal(err)
	}
	if err := b.CreateBatch(ctx, baseline.Batch{ID: id, Wallet: "w-" + id, Handler: "call", Parallel: 1000}); err != nil {
		t.Fatal(err)
	}
	all := make([]baseline.Item, items)
	for i := range all {
		all[i] = baseline.Item{Key: fmt.Sprintf("k%d", i), Cost: 10, Input: `{"n": 1}`}
	}
	for _, page := range [][]baseline.Item{all[:items/2], all[items/2:]} {
		if err := b.AddItems(ctx, id, page); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// testItems checks that items are claimed in order while the wallet can pay, and that
// only the holder of a valid lease settles one, once.
func testItems(t *testing.T, s baseline.System) {
	ctx := context.Background()
	b := addBatch(t, s, "items", 5, 25)
	if err := b.CreateBatch(ctx, baseline.Batch{ID: "items", Wallet: "w-items", Handler: "call", Parallel: 1}); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("second create: got %v, want ErrRefused", err)
	}
	first, err := b.TakeItem(ctx, "items", "me", time.Minute)
	if err != nil || first.Key != "k0" || first.Epoch != 1 || string(first.Input) != `{"n": 1}` || first.Until.IsZero() {
		t.Fatalf("take: %+v, %v", first, err)
	}
	other := first
	other.Epoch++
	if err := b.SettleItem(ctx, other, `{}`); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("settle under another epoch: got %v, want ErrRefused", err)
	}
	if err := b.SettleItem(ctx, first, `{}`); err != nil {
		t.Errorf("settle: %v", err)
	}
	if err := b.SettleItem(ctx, first, `{}`); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("second settle: got %v, want ErrRefused", err)
	}
	late, err := b.TakeItem(ctx, "items", "me", -time.Second)
	if err != nil || late.Key != "k1" {
		t.Fatalf("second take: got %+v, %v, want k1", late, err)
	}
	if err := b.SettleItem(ctx, late, `{}`); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("late settle: got %v, want ErrRefused", err)
	}
	if more, err := b.TakeItem(ctx, "items", "me", time.Minute); !errors.Is(err, baseline.ErrRefused) {
		t.Errorf("take without balance: got %+v, %v, want ErrRefused", more, err)
	}
	want := baseline.BatchCounts{Items: 5, Next: 2, Running: 1, Succeeded: 1, Charged: 20, Version: 5, Balance: 5, Settled: 1, Entries: 2, Sum: -20, Events: 1}
	if c, err := b.CountBatch(ctx, "items"); err != nil || c != want {
		t.Errorf("got counts %+v, %v, want %+v", c, err, want)
	}
}

// taker takes some items of a batch, or none.
type taker func(batch string) ([]baseline.Held, error)

func takeOne(s baseline.System) taker {
	return func(batch string) ([]baseline.Held, error) {
		h, err := s.TakeItem(context.Background(), batch, "me", time.Minute)
		if errors.Is(err, baseline.ErrRefused) {
			return nil, nil
		}
		return []baseline.Held{h}, err
	}
}

func takeMany(m baseline.ManyItems) taker {
	return func(batch string) ([]baseline.Held, error) {
		return m.TakeItems(context.Background(), batch, "me", time.Minute, 7)
	}
}

// Many take and settle at once, each item twice: each that the wallet can pay is taken
// once and settled once, and the sums agree: those of the batch, of the wallet, of the
// ledger and of the history.
func testItemRace(t *testing.T, s baseline.System, id string, take taker) {
	ctx := context.Background()
	const items, paid = 120, 100
	b := addBatch(t, s, id, items, 10*paid+5)
	var mu sync.Mutex
	seen := make(map[string]int)
	var settled atomic.Int64
	race(t, 8, func(int) error {
		for {
			some, err := take(id)
			if err != nil || len(some) == 0 {
				return err
			}
			for _, h := range some {
				mu.Lock()
				seen[h.Key]++
				mu.Unlock()
				settled.Add(int64(race(t, 2, func(int) error { return b.SettleItem(ctx, h, `{}`) })))
			}
		}
	})
	if len(seen) != paid || settled.Load() != paid {
		t.Errorf("%d items were claimed and %d settled, want %d", len(seen), settled.Load(), paid)
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("item %s was claimed %d times, want 1", key, n)
		}
	}
	c, err := b.CountBatch(ctx, id)
	c.Version = 0 // it counts the takes too
	want := baseline.BatchCounts{Items: items, Next: paid, Succeeded: paid, Charged: 10 * paid, Balance: 5, Settled: paid, Entries: paid, Sum: -10 * paid, Events: paid}
	if err != nil || c != want {
		t.Errorf("got counts %+v, %v, want %+v", c, err, want)
	}
}

// testSettleItems checks that of many concurrent settles of the same items, one succeeds for each.
func testSettleItems(t *testing.T, s baseline.System, m baseline.ManyItems) {
	ctx := context.Background()
	b := addBatch(t, s, "all", 50, 1000)
	all, err := m.TakeItems(ctx, "all", "me", time.Minute, 50)
	if err != nil || len(all) != 50 {
		t.Fatalf("claimed %d, want 50: %v", len(all), err)
	}
	lost := all[0]
	lost.Epoch++
	if n, err := m.SettleItems(ctx, "all", []baseline.Held{lost, all[1]}, `{}`); err != nil || n != 1 {
		t.Errorf("settle of two with one lost: got %d, %v, want 1", n, err)
	}
	var settled atomic.Int64
	race(t, 8, func(int) error {
		n, err := m.SettleItems(ctx, "all", all, `{}`)
		settled.Add(int64(n))
		return err
	})
	c, err := b.CountBatch(ctx, "all")
	if err != nil || settled.Load() != 49 || c.Succeeded != 50 || c.Events != 50 || c.Running != 0 {
		t.Errorf("settled %d, want 49: %+v, %v", settled.Load(), c, err)
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
