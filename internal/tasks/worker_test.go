package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/tasks"
	"github.com/holdfast-go/holdfast/sqlite"
)

// start runs a worker until the test ends.
func start(t *testing.T, hf *holdfast.Engine, w tasks.Worker) {
	t.Helper()
	w.Doer, w.Hub, w.Name, w.Queues = hf, hf.Hub(), t.Name(), []string{"q"}
	w.Log = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { w.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
}

func add(t *testing.T, hf *holdfast.Engine, id string) {
	t.Helper()
	if _, _, err := tasks.Add(context.Background(), hf, tasks.AddArgs{Queue: "q", ID: id}); err != nil {
		t.Fatal(err)
	}
}

// until waits until a task is in a state, and returns it.
func until(t *testing.T, hf *holdfast.Engine, id, state string) tasks.Task {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		got, err := tasks.Get(ctx, hf, "q", id)
		if err == nil && got.State == state {
			return got
		}
		if clock.Wait(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("the task %s is %+v (%v), and was to be %s", id, got, err, state)
		}
	}
}

// TestWorkerRunsEachTaskOnce verifies that many workers, in two engines on one
// database, run each of many tasks once, and settle it.
func TestWorkerRunsEachTaskOnce(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		var mu sync.Mutex
		ran := map[string]int{}
		for range 3 {
			start(t, hf, tasks.Worker{Parallel: 4, Body: func(_ context.Context, k tasks.Taken) ([]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				ran[k.ID]++
				return []byte(`"` + k.ID + `"`), nil
			}})
		}
		for i := range 100 {
			add(t, hf, fmt.Sprint(i))
		}
		for i := range 100 {
			id := fmt.Sprint(i)
			if got := until(t, hf, id, "done"); string(got.Output) != `"`+id+`"` || got.Epoch != 1 {
				t.Errorf("%+v", got)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for id, n := range ran {
			if n != 1 {
				t.Errorf("%s ran %d times", id, n)
			}
		}
	})
}

// TestWorkerRenewsALongBody verifies that a body that takes several times its
// lease keeps its hold, while a janitor sweeps, and is settled once.
func TestWorkerRenewsALongBody(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		const lease = 1500 * time.Millisecond // long enough for a busy machine to renew
		start(t, hf, tasks.Worker{Lease: lease, Body: func(ctx context.Context, _ tasks.Taken) ([]byte, error) {
			return []byte(`1`), clock.Wait(ctx, 3*lease)
		}})
		janitor := &hold.Janitor{Every: 50 * time.Millisecond, Log: slog.New(slog.DiscardHandler), Sweeps: []hold.Sweep{{
			Name: "tasks", Run: func(ctx context.Context, _ bool) (int, error) { return tasks.Sweep(ctx, hf, 0, 5) },
		}}}
		janitor.Start(context.Background())
		defer janitor.Stop()
		add(t, hf, "long")
		if got := until(t, hf, "long", "done"); got.Epoch != 1 || got.Deaths != 0 {
			t.Errorf("the long task is %+v", got)
		}
		if ago, stalled := janitor.Stalled(); stalled {
			t.Errorf("the janitor has stalled for %s", ago)
		}
	})
}

// TestWorkerCountsFailuresAndPanics verifies that a body's error and its panic
// are failures, tried again until they exceed the retries, with the message
// kept.
func TestWorkerCountsFailuresAndPanics(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		var ran atomic.Int32
		start(t, hf, tasks.Worker{Retries: 2, Body: func(_ context.Context, k tasks.Taken) ([]byte, error) {
			if ran.Add(1) == 2 {
				panic("ouch")
			}
			return nil, errors.New("no")
		}})
		add(t, hf, "bad")
		got := until(t, hf, "bad", "failed")
		if got.Failures != 3 || got.Deaths != 0 || got.Error != "no" || ran.Load() != 3 {
			t.Errorf("the task is %+v after %d runs", got, ran.Load())
		}
	})
}

// TestWorkerEndsABodyThatHangs verifies that a body's hold is not renewed beyond
// its timeout: its context ends, and says why.
func TestWorkerEndsABodyThatHangs(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		start(t, hf, tasks.Worker{Lease: 2 * time.Second, Timeout: time.Second,
			Body: func(ctx context.Context, _ tasks.Taken) ([]byte, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}})
		add(t, hf, "hangs")
		if got := until(t, hf, "hangs", "failed"); got.Error != hold.ErrTimeout.Error() {
			t.Errorf("the task is %+v", got)
		}
	})
}

// TestBodyLearnsThatItsHoldIsLost verifies that a body whose hold was ended by
// somebody else has its context ended, and that its late result is not kept.
func TestBodyLearnsThatItsHoldIsLost(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		cause := make(chan error, 1)
		var ran atomic.Int32
		start(t, hf, tasks.Worker{Lease: 900 * time.Millisecond, Body: func(ctx context.Context, k tasks.Taken) ([]byte, error) {
			if ran.Add(1) > 1 {
				return []byte(`"second"`), nil
			}
			if _, err := tasks.Release(context.WithoutCancel(ctx), hf, k, time.Second); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return []byte(`"first"`), nil
		}})
		add(t, hf, "lost")
		if err := <-cause; !errors.Is(err, hold.ErrLost) {
			t.Errorf("the body's context ended by %v", err)
		}
		if got := until(t, hf, "lost", "done"); string(got.Output) != `"second"` || got.Epoch != 2 {
			t.Errorf("the task is %+v", got)
		}
	})
}

// TestStoppingWorkerFailsNothing verifies that a worker that stops tells its
// bodies and waits for them: one that gives up is released, not failed, and one
// that goes on for several leases keeps its hold and is settled.
func TestStoppingWorkerFailsNothing(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		const lease = time.Second
		begun := make(chan string, 2)
		w := tasks.Worker{Doer: hf, Hub: hf.Hub(), Name: "w", Queues: []string{"q"}, Parallel: 2, Lease: lease,
			Log: slog.New(slog.DiscardHandler),
			Body: func(ctx context.Context, k tasks.Taken) ([]byte, error) {
				begun <- k.ID
				<-ctx.Done()
				if k.ID == "gives up" {
					return nil, ctx.Err()
				}
				return []byte(`"finished"`), clock.Wait(context.WithoutCancel(ctx), 3*lease)
			}}
		ctx, stop := context.WithCancel(context.Background())
		var done sync.WaitGroup
		done.Go(func() { w.Run(ctx) })
		add(t, hf, "gives up")
		add(t, hf, "goes on")
		<-begun
		<-begun
		stop()
		done.Wait()
		if got := until(t, hf, "gives up", "due"); got.Failures != 0 || got.Deaths != 0 || got.Version != 1 {
			t.Errorf("the one that gave up is %+v", got)
		}
		if got := until(t, hf, "goes on", "done"); string(got.Output) != `"finished"` {
			t.Errorf("the one that went on is %+v", got)
		}
	})
}

// TestWhatCannotBeKeptIsAFailure verifies that an output that is no JSON, and an
// error whose text is no text, are failures with their reason, and not deaths.
func TestWhatCannotBeKeptIsAFailure(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		start(t, hf, tasks.Worker{Body: func(_ context.Context, k tasks.Taken) ([]byte, error) {
			if k.ID == "output" {
				return []byte("{"), nil
			}
			return nil, errors.New("bad \xff\x00 text")
		}})
		add(t, hf, "output")
		add(t, hf, "error")
		if got := until(t, hf, "output", "failed"); !strings.Contains(got.Error, "cannot be kept") || got.Deaths != 0 {
			t.Errorf("%+v", got)
		}
		if got := until(t, hf, "error", "failed"); got.Error != "bad \uFFFD\uFFFD text" {
			t.Errorf("%+v", got)
		}
	})
}

// TestWorkersAndJanitorsServeEveryShard verifies that tasks of workspaces on all
// shards are run, and that holds left on a shard are freed also by a node that
// would give no new workspace a place there.
func TestWorkersAndJanitorsServeEveryShard(t *testing.T) {
	path := holdfasttest.SQLite(t)
	ctx := context.Background()
	many, err := holdfast.Open(ctx, sqlite.File(path), holdfast.Config{Shards: 8})
	if err != nil {
		t.Fatal(err)
	}
	var spaces []context.Context
	for i := range 16 {
		spaces = append(spaces, holdfast.InWorkspace(ctx, fmt.Sprint("w", i)))
	}
	for _, space := range spaces {
		for _, queue := range []string{"q", "held"} {
			if _, _, err := tasks.Add(space, many, tasks.AddArgs{Queue: queue, ID: "t"}); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := tasks.Take(space, many, tasks.TakeArgs{Queues: []string{"held"}, Holder: "h", Limit: 1}); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
	}
	shards, err := store.Shards(ctx, many)
	if err != nil || len(shards) < 2 {
		t.Fatalf("the workspaces are on shards %v, %v", shards, err)
	}
	if err := many.Close(); err != nil {
		t.Fatal(err)
	}
	one := holdfasttest.OpenOn(t, sqlite.File(path))
	holdfasttest.Advance(t, one, time.Hour)
	if freed, err := tasks.SweepAll(ctx, one, 5); err != nil || freed != 16 {
		t.Errorf("freed %d, %v", freed, err)
	}
	start(t, one, tasks.Worker{Body: func(context.Context, tasks.Taken) ([]byte, error) { return nil, nil }})
	for _, space := range spaces {
		limit, cancel := context.WithTimeout(space, 20*time.Second)
		for got, err := tasks.Get(limit, one, "q", "t"); err != nil || got.State != "done"; got, err = tasks.Get(limit, one, "q", "t") {
			if clock.Wait(limit, 5*time.Millisecond) != nil {
				t.Fatalf("a task was not run: %+v, %v", got, err)
			}
		}
		cancel()
	}
}
