package batchengine_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// slowEngine holds up the first settle until open is closed, and counts commands by verb.
type slowEngine struct {
	*engine.Engine
	held, open chan struct{} // held is closed when the first settle has come
	mu         sync.Mutex
	did        map[string]int
}

func (e *slowEngine) Do(ctx context.Context, c store.Command) error {
	e.mu.Lock()
	e.did[c.Decl().Name]++
	first := c.Decl().Name == "batches.settle" && e.did["batches.settle"] == 1
	e.mu.Unlock()
	if first {
		close(e.held)
		<-e.open
	}
	return e.Engine.Do(ctx, c)
}

// serveAll lets a worker serve items. The settle of the first is held up while the others are served.
func (s fixture) serveAll(taken []batchengine.Taken, lease time.Duration, body func(batchengine.Taken) ([]byte, error), meanwhile func(*batchengine.Worker)) map[string]int {
	s.t.Helper()
	e := &slowEngine{Engine: engine.Of(s.e), held: make(chan struct{}), open: make(chan struct{}), did: make(map[string]int)}
	w := &batchengine.Worker{Engine: e, Hub: wake.NewHub(), Log: slog.New(slog.DiscardHandler), Name: "me", Lease: lease,
		Body: func(_ context.Context, t batchengine.Taken) ([]byte, []batchengine.Commit, error) {
			output, err := body(t)
			return output, nil, err
		}}
	var all sync.WaitGroup
	for i, t := range taken {
		all.Go(func() { w.Serve(s.t.Context(), t) })
		if i == 0 {
			<-e.held
		}
	}
	meanwhile(w)
	close(e.open)
	all.Wait()
	return e.did
}

// TestAWorkerSettlesTogether verifies that items that finish while another one is settled are settled in one call,
// each with its own event and output.
func TestAWorkerSettlesTogether(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		const items = 20
		s.wallet(items)
		s.create(batchengine.New{MaxConcurrency: items, Items: work(items, 1)})
		did := s.serveAll(s.take(items), time.Minute, func(t batchengine.Taken) ([]byte, error) { return t.Input, nil }, func(w *batchengine.Worker) {
			testkit.Eventually(t, "the others wait", func() bool { return w.Waiting() == items-1 })
		})
		if did["batches.settle"] != 1 || did["batches.settle_items"] != 1 {
			t.Errorf("got commands %v, want one for the first item and one for the others", did)
		}
		s.is(batchengine.Completed, batchengine.Counts{Succeeded: items, Accepted: items}, items, 0, 0)
		all, err := batchengine.Items(t.Context(), engine.Of(s.e), "b", 0, "", items)
		s.ok(err)
		for _, x := range all {
			if string(x.Output) != string(x.Input) {
				t.Errorf("item %s has output %s, want %s", x.Key, x.Output, x.Input)
			}
		}
	})
}

// TestAnItemFailsByItself verifies that an item that cannot be settled, because its output is invalid or its lease
// was lost, does not keep the others that finish with it from being settled.
func TestAnItemFailsByItself(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		const items = 10
		s.wallet(items)
		s.create(batchengine.New{MaxConcurrency: items, Items: work(items, 1)})
		taken, queued := s.take(items/2), make(chan struct{})
		s.serveAll(taken, time.Minute, func(t batchengine.Taken) ([]byte, error) {
			if t.Key == taken[2].Key {
				<-queued
				return []byte("{"), nil
			}
			return []byte("1"), nil
		}, func(w *batchengine.Worker) {
			testkit.Eventually(t, "the others wait", func() bool { return w.Waiting() == len(taken)-2 })
			close(queued)
			testkit.Eventually(t, "all wait", func() bool { return w.Waiting() == len(taken)-1 })
		})
		taken = s.take(items / 2)
		s.serveAll(taken, time.Minute, func(batchengine.Taken) ([]byte, error) { return []byte("1"), nil }, func(w *batchengine.Worker) {
			testkit.Eventually(t, "the others wait", func() bool { return w.Waiting() == len(taken)-1 })
			s.ok(batchengine.Release(t.Context(), engine.Of(s.e), taken[1], time.Hour))
			s.ok(batchengine.Release(t.Context(), engine.Of(s.e), taken[3], time.Hour))
		})
		s.is(batchengine.Running, batchengine.Counts{Pending: 3, Succeeded: items - 3}, items, 0, 0)
	})
}

// TestAnItemDoesNotWaitForever verifies that an item whose context ends while another one is settled is neither
// settled nor waited for.
func TestAnItemDoesNotWaitForever(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		const items = 5
		s.wallet(items)
		s.create(batchengine.New{MaxConcurrency: items, Items: work(items, 1)})
		waited := false
		s.serveAll(s.take(items), 300*time.Millisecond, func(batchengine.Taken) ([]byte, error) { return nil, nil }, func(w *batchengine.Worker) {
			testkit.Eventually(t, "the others have waited", func() bool {
				n := w.Waiting()
				waited = waited || n > 0
				return waited && n == 0
			})
		})
		s.is(batchengine.Running, batchengine.Counts{Running: items}, items, 0, 0)
	})
}

// TestATakeRemembersBatches verifies that a take with [batchengine.Recent] does not search for batches again while the
// batches that it remembers have items, that a batch without further items is forgotten, and that one that permits nothing is not
// taken from.
func TestATakeRemembersBatches(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		s.wallet(100)
		s.create(batchengine.New{MaxConcurrency: 10, Items: work(5, 1)})
		e := &slowEngine{Engine: engine.Of(s.e), did: make(map[string]int)}
		recent := new(batchengine.Recent)
		take := func(want, searches int, known ...string) (taken []batchengine.Taken) {
			t.Helper()
			taken, err := batchengine.Take(t.Context(), e, batchengine.Ask{Handlers: []string{"h"}, Holder: "me", Limit: 2, Recent: recent})
			s.ok(err)
			recent.Remember(time.Hour)
			if len(taken) != want || e.did["batches.list_ready"] != searches || !slices.Equal(recent.Known(), known) {
				t.Fatalf("took %d items after %d searches and remembers %q, want %d, %d and %q", len(taken), e.did["batches.list_ready"], recent.Known(), want, searches, known)
			}
			return taken
		}
		first := take(2, 1, "b")
		take(2, 1, "b")
		take(1, 1)
		take(0, 2)
		s.ok(batchengine.Release(t.Context(), engine.Of(s.e), first[0], 0))
		s.ok(batchengine.Release(t.Context(), engine.Of(s.e), first[1], 0))
		taken := take(2, 3, "b")
		s.ok(batchengine.Release(t.Context(), engine.Of(s.e), taken[0], 0))
		_, _, err := batchengine.Cancel(t.Context(), engine.Of(s.e), "b", "")
		s.ok(err)
		take(0, 4)
	})
}
