package live_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/live"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/postgres"
)

func follow(t *testing.T, h *live.Hub, from *live.Place) *live.Follower {
	t.Helper()
	f, err := h.Follow(t.Context(), "w", from)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFollowersShareAReader verifies that fifty followers cost as many reads as one, and that each gets every event in order.
func TestFollowersShareAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		h := hubOf(f)
		all := make([]*live.Follower, 50)
		var done sync.WaitGroup
		for i := range all {
			all[i] = follow(t, h, nil)
			done.Go(func() {
				for v := range int64(300) {
					if i, err := all[i].Next(t.Context()); err != nil || i.Version != v {
						t.Errorf("got %+v, %v, want event %d", i, err, v)
						return
					}
				}
			})
		}
		time.Sleep(time.Second)
		f.counts()
		for range 30 {
			f.append(10, "s")
			time.Sleep(333 * time.Millisecond)
		}
		done.Wait()
		if reads, _ := f.counts(); reads < 35 || reads > 41 {
			t.Errorf("%d reads in 10 s", reads)
		}
		for _, one := range all {
			one.Close()
		}
	})
}

// TestASlowFollower verifies that a follower that is too slow for the reader, one whose reader begins again at the present, and one
// that cannot reach the database get every event once.
func TestASlowFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{page: 7, takes: time.Millisecond}
		h := hubOf(f)
		w := follow(t, h, nil)
		defer w.Close()
		told := int64(0)
		take := func(n int) {
			t.Helper()
			for range n {
				i, err := w.Next(t.Context())
				if err != nil || i.Version != told || w.Place().Position != told+1 {
					t.Fatalf("got %+v at %d, %v, want event %d", i, w.Place().Position, err, told)
				}
				told++
			}
		}
		for range 20 {
			f.append(10, "s")
			time.Sleep(2 * time.Second) // more batches than wait for it
			take(7)
		}
		take(60)
		f.append(5000, "s")
		time.Sleep(time.Minute) // the reader begins again
		f.mu.Lock()
		f.fails = errors.New("no database")
		f.mu.Unlock()
		time.AfterFunc(5*time.Second, func() { f.mu.Lock(); f.fails = nil; f.mu.Unlock() })
		take(5000)
	})
}

// TestAFollowerJoinsAReaderThatStarts verifies that an event that is written while the reader starts is not left out, and that a
// follower goes on if the reader cannot start.
func TestAFollowerJoinsAReaderThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		h := hubOf(f)
		w := follow(t, h, nil)
		defer w.Close()
		f.starts = time.Second // of the reader
		time.AfterFunc(500*time.Millisecond, func() { f.append(1, "s") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if i, err := w.Next(ctx); err != nil || i.Version != 0 {
			t.Fatalf("got %+v, %v, want event 0", i, err)
		}
		f.append(1, "s")
		if i, err := w.Next(ctx); err != nil || i.Version != 1 {
			t.Fatalf("got %+v, %v, want event 1", i, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		w := follow(t, hubOf(f), nil)
		defer w.Close()
		f.fails = errors.New("no database")
		time.AfterFunc(5*time.Second, func() { f.mu.Lock(); f.fails = nil; f.mu.Unlock(); f.append(1, "s") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if i, err := w.Next(ctx); err != nil || i.Version != 0 {
			t.Fatalf("got %+v, %v, want event 0", i, err)
		}
	})
}

// source reads an engine.
type source struct{ e *holdfast.Engine }

func (s source) Start(ctx context.Context) (live.Place, error) {
	return live.Start(ctx, engine.Of(s.e))
}

func (s source) Read(ctx context.Context, from live.Place, far bool, limit int) (live.Batch, error) {
	return live.Read(ctx, engine.Of(s.e), from, far, limit)
}

// State returns a state that always changes.
func (source) State(context.Context, string) (any, error) { return rand.Int(), nil }

func hubOn(e *holdfast.Engine) *live.Hub {
	return &live.Hub{Source: source{e}, Log: slog.New(slog.DiscardHandler), In: func(string) context.Context { return context.Background() }}
}

// write writes n events from several callers, some in transactions that are open for a while, and returns their names.
func write(t *testing.T, e *holdfast.Engine, done *sync.WaitGroup, n int) (names []string) {
	const callers = 4
	for w := range callers {
		for i := range n / callers {
			names = append(names, fmt.Sprintf("$entity/l/%d-%d 0", w, i))
		}
		done.Go(func() {
			for i := range n / callers {
				id := fmt.Sprint(w, "-", i)
				err := e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
					err := create(ctx, store.DoerOf(tx), id)
					if i%5 == 0 {
						_ = clock.Wait(ctx, rand.N(20*time.Millisecond)) // others commit first
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	return names
}

// TestAFollowerResumes verifies that a follower that reconnects after any event, on one of two nodes, gets every event once, while
// others write, and although the readers are at other places; also if its cursor is treated as one from long ago.
func TestAFollowerResumes(t *testing.T) {
	live.SetLimit(3)
	t.Cleanup(func() { live.SetLimit(5000) })
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		if err := create(t.Context(), engine.Of(e), "before"); err != nil {
			t.Fatal(err)
		}
		nodes := []*live.Hub{hubOn(e), hubOn(e)}
		for _, h := range nodes { // keeps its reader running
			other, err := h.Watch(t.Context(), "w", all, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
		}
		from, told := start(t, e), make(map[string]int)
		var writers sync.WaitGroup
		names := write(t, e, &writers, 120)
		defer writers.Wait()
		for n := 0; len(told) < len(names); n++ {
			if old := resumed(t, from); n%7 == 3 {
				old.Low = retention.Back(old.Low, 20*time.Minute)
				if old.Upto == nil && old.After == "" {
					from = old
				}
			}
			w := follow(t, nodes[n%2], new(resumed(t, from)))
			for range 1 + rand.IntN(12) {
				if len(told) == len(names) {
					break
				}
				i, err := w.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				told[fmt.Sprint(i.Stream, " ", i.Version)]++
				from = w.Place()
			}
			w.Close()
		}
		for _, name := range names {
			if told[name] != 1 {
				t.Errorf("%s was told %d times", name, told[name])
			}
		}
		last := make(map[string]int)
		if read(t, e, &from, true, last); len(last) > 0 {
			t.Errorf("after all events, told %v", last)
		}
	})
}

// TestCursorsOfWatchersThatJoin verifies that the cursor of each message of a watcher that joined a running reader is exact: the events
// that were told up to it, and those that are read after it, are all events, each once.
func TestCursorsOfWatchersThatJoin(t *testing.T) {
	live.SetLimit(3)
	t.Cleanup(func() { live.SetLimit(5000) })
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		h, from := hubOn(e), start(t, e)
		other, err := h.Watch(t.Context(), "w", all, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		var writers sync.WaitGroup
		names := write(t, e, &writers, 80)
		type told struct {
			events map[string]int
			place  live.Place
		}
		var messages []told
		for range 2 {
			w, err := h.Watch(t.Context(), "w", all, []string{"state"}, new(resumed(t, from))) // messages with states have places of their own
			if err != nil {
				t.Fatal(err)
			}
			so := told{events: make(map[string]int)}
			for range 3 {
				m, err := w.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, i := range m.Items {
					so.events[fmt.Sprint(i.Stream, " ", i.Version)]++
				}
				copied := told{make(map[string]int), m.Place}
				for name, n := range so.events {
					copied.events[name] = n
				}
				messages = append(messages, copied)
				if len(m.Folds) > 0 || m.Reset {
					t.Fatalf("got %+v", m)
				}
			}
			w.Close()
			writers.Wait() // the reader is still behind
		}
		writers.Wait()
		for i, m := range messages {
			place := resumed(t, m.place)
			read(t, e, &place, true, m.events)
			read(t, e, &place, true, m.events)
			for _, name := range names {
				if m.events[name] != 1 {
					t.Errorf("message %d: %s was told %d times", i, name, m.events[name])
				}
			}
		}
	})
}

// TestAnOpenTransactionAtTheStart verifies that an event of a transaction that is open when a reader starts is told after the commit,
// although its id is minutes old. The server is its own, because an open transaction in another database of the server holds back the reads, too.
func TestAnOpenTransactionAtTheStart(t *testing.T) {
	server, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	e := holdfasttest.OpenOn(t, postgres.URL(server.URL()))
	if err := create(t.Context(), engine.Of(e), "x"); err != nil {
		t.Fatal(err)
	}
	var p live.Place
	told := make(map[string]int)
	err = e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		_, err := postgres.Raw(tx).Exec(ctx, `INSERT INTO holdfast.history (shard, id, n, workspace, stream, version, name, data, at)
			SELECT h.shard, $1::uuid, 0, h.workspace, '$entity/l/old', 0, 'created', '{}', h.at FROM holdfast.history h WHERE h.stream = '$entity/l/x'`,
			retention.Back(retention.Now(), 9*time.Minute))
		p = start(t, e)
		for range 3 {
			read(t, e, &p, true, told)
		}
		return err
	})
	if err != nil || len(told) > 0 {
		t.Fatalf("told %v before the commit, %v", told, err)
	}
	read(t, e, &p, true, told)
	if err := e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		_, err := postgres.Raw(tx).Exec(ctx, `DELETE FROM holdfast.history WHERE stream = '$entity/l/old'`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if told["$entity/l/old 0"] != 1 || len(told) != 1 {
		t.Errorf("told %v", told)
	}
	if p.Low < retention.Back(retention.Now(), time.Minute) {
		t.Errorf("after the commit, reads go back to %s", p.Low)
	}
}
