package live_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/live"
	"github.com/holdfast-go/holdfast/internal/retention"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

// fakes is a source whose events have the positions of the feed.
type fakes struct {
	mu     sync.Mutex
	all    []live.Item
	reads  int
	states int
	value  any
	fails  error
	page   int // how many events a read returns at most; 0 means all
	takes  time.Duration
	starts time.Duration // how long a start takes
	slow   time.Duration // how long a state takes
}

func (f *fakes) append(n int, stream string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		f.all = append(f.all, live.Item{Position: int64(len(f.all) + 1), Event: events.Event{Stream: stream, Version: int64(len(f.all)), Name: "n"}})
	}
}

func (f *fakes) Start(context.Context) (live.Place, error) {
	_ = clock.Wait(context.Background(), f.starts)
	f.mu.Lock()
	defer f.mu.Unlock()
	return live.Place{Position: int64(len(f.all))}, f.fails
}

func (f *fakes) Read(_ context.Context, from live.Place, far bool, limit int) (live.Batch, error) {
	_ = clock.Wait(context.Background(), f.takes)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	rest := f.all[from.Position:]
	b := live.Batch{Place: from, Far: far}
	if f.page > 0 {
		limit = min(limit, f.page)
	}
	if len(rest) > limit {
		rest, b.More = rest[:limit], true
	}
	b.Items = append(b.Items, rest...)
	b.Place.Position += int64(len(rest))
	return b, f.fails
}

func (f *fakes) State(context.Context, string) (any, error) {
	_ = clock.Wait(context.Background(), f.slow)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.states++
	return f.value, nil
}

// counts returns the numbers of reads since the last call.
func (f *fakes) counts() (reads, states int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reads, states = f.reads, f.states
	f.reads, f.states = 0, 0
	return reads, states
}

func (f *fakes) set(value any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.value = value
}

func hubOf(f *fakes) *live.Hub {
	return &live.Hub{Source: f, Log: slog.New(slog.DiscardHandler), In: func(string) context.Context { return context.Background() }}
}

func all(*live.Item) bool { return true }

func watch(t *testing.T, h *live.Hub, match func(*live.Item) bool, from *live.Place, states ...string) *live.Watcher {
	t.Helper()
	w, err := h.Watch(t.Context(), "w", match, states, from)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// seen counts what a watcher is told.
type seen struct {
	messages, states, resets int
	versions                 map[int64]int // how often each event was told
	folded                   int           // events
	last                     live.Message
}

// during takes the messages of a watcher for some time.
func during(t *testing.T, w *live.Watcher, d time.Duration) seen {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	s := seen{versions: make(map[int64]int)}
	for {
		m, err := w.Next(ctx)
		if err != nil {
			return s
		}
		s.messages++
		s.last = m
		for _, i := range m.Items {
			s.versions[i.Version]++
		}
		for _, f := range m.Folds {
			s.folded += f.Events
		}
		if m.States != nil {
			s.states++
		}
		if m.Reset {
			s.resets++
		}
	}
}

// TestFourMessagesASecond verifies that a watcher gets at most four messages a second, with every event once, while
// events and states change all the time.
func TestFourMessagesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		w := watch(t, hubOf(f), all, nil, "state")
		defer w.Close()
		ctx, stop := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				f.append(1, "s")
				f.set(n)
				time.Sleep(10 * time.Millisecond)
			}
		})
		s := during(t, w, 10*time.Second)
		stop()
		done.Wait()
		if s.messages < 30 || s.messages > 41 || s.states < 9 || s.states > 11 {
			t.Errorf("got %d messages, %d of them states, in 10 s", s.messages, s.states)
		}
		for v := range int64(900) {
			if s.versions[v] != 1 {
				t.Fatalf("event %d was told %d times", v, s.versions[v])
			}
		}
	})
}

// TestOneReadForAllWatchers verifies that fifty watchers cost as many reads as one, and that none is read for when all have left.
func TestOneReadForAllWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		h := hubOf(f)
		watchers := make([]*live.Watcher, 50)
		for i := range watchers {
			watchers[i] = watch(t, h, all, nil, "state")
		}
		f.counts()
		var done sync.WaitGroup
		for _, w := range watchers {
			done.Go(func() {
				if s := during(t, w, 10*time.Second); len(s.versions) != 1 {
					t.Errorf("got events %v, want one", s.versions)
				}
			})
		}
		f.append(1, "s")
		done.Wait()
		if reads, states := f.counts(); reads < 35 || reads > 41 || states < 9 || states > 11 {
			t.Errorf("%d reads and %d reads of the state in 10 s", reads, states)
		}
		for _, w := range watchers {
			w.Close()
		}
		f.counts()
		time.Sleep(time.Minute)
		if reads, states := f.counts(); reads+states != 0 {
			t.Errorf("%d reads and %d reads of the state for nobody", reads, states)
		}
	})
}

// TestASlowWatcher verifies that what a watcher does not take is folded to subjects, that the number of subjects is
// bounded, and that others are not affected.
func TestASlowWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		h := hubOf(f)
		slow, quick := watch(t, h, all, nil), watch(t, h, all, nil)
		defer slow.Close()
		defer quick.Close()
		for range 50 {
			f.append(90, "s")
			if s := during(t, quick, time.Second); len(s.versions) != 90 || s.folded > 0 {
				t.Fatalf("the quick one got %d events, %d folded", len(s.versions), s.folded)
			}
		}
		s := during(t, slow, 300*time.Millisecond)
		if s.messages != 1 || s.folded != 4500 || len(s.versions) != 0 || s.resets != 0 || len(s.last.Folds) != 1 || s.last.Folds[0].Version != 4499 {
			t.Errorf("the slow one got %+v", s)
		}
		for i := range 1000 {
			f.append(1, fmt.Sprint("s", i))
		}
		time.Sleep(time.Second)
		if s := during(t, slow, 300*time.Millisecond); s.resets != 1 || len(s.last.Folds) > 0 {
			t.Errorf("got %d resets, %d subjects", s.resets, len(s.last.Folds))
		}
		f.append(1, "s")
		if s := during(t, slow, time.Second); len(s.versions) != 1 || s.folded != 0 || s.resets != 0 {
			t.Errorf("after it has caught up, the slow one got %+v", s)
		}
	})
}

// TestAWatcherContinues verifies that a watcher that continues from any message gets each further event once, also while
// more are written, and that one that has missed too many is told so.
func TestAWatcherContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{page: 7, takes: 20 * time.Millisecond} // so the reader is slower than a watcher that reads by itself
		h := hubOf(f)
		other := watch(t, h, all, nil) // keeps the reader at another place
		defer other.Close()
		told := make(map[int64]int)
		var place *live.Place
		for range 12 {
			w := watch(t, h, all, place)
			f.append(30, "s")
			s := during(t, w, time.Duration(1+len(told)%3)*400*time.Millisecond)
			for v, n := range s.versions {
				told[v] += n
			}
			place = &s.last.Place
			w.Close()
			f.append(11, "s")
		}
		w := watch(t, h, all, place)
		for v, n := range during(t, w, 5*time.Second).versions {
			told[v] += n
		}
		w.Close()
		for v := range int64(len(f.all)) {
			if told[v] != 1 {
				t.Errorf("event %d was told %d times", v, told[v])
			}
		}
		f.append(7*60, "s")
		w = watch(t, h, all, place)
		defer w.Close()
		if s := during(t, w, time.Second); s.resets != 1 {
			t.Errorf("%d resets after too many events", s.resets)
		}
		old := *place
		old.Low = retention.First
		w = watch(t, h, all, &old)
		defer w.Close()
		if s := during(t, w, time.Second); s.resets != 1 || len(s.versions)+s.folded > 0 {
			t.Errorf("%d resets after a long time, %d events", s.resets, len(s.versions)+s.folded)
		}
	})
}

// TestTheReaderFallsBehind verifies that a reader that cannot keep up begins again at the present, and that watchers
// learn it; and that it goes on after an error.
func TestTheReaderFallsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{page: 1, takes: time.Millisecond}
		w := watch(t, hubOf(f), all, nil)
		defer w.Close()
		f.append(100_000, "s")
		if s := during(t, w, 40*time.Second); s.resets != 1 || s.last.Place.Position != 100_000 {
			t.Errorf("%d resets, at %d", s.resets, s.last.Place.Position)
		}
		f.mu.Lock()
		f.fails = errors.New("no database")
		f.mu.Unlock()
		if s := during(t, w, 30*time.Second); s.messages == 0 || s.last.Lag < 10*time.Second {
			t.Errorf("without a database: %d messages, the last with a lag of %s", s.messages, s.last.Lag)
		}
		f.mu.Lock()
		f.fails = nil
		f.mu.Unlock()
		f.append(1, "s")
		if s := during(t, w, 3*time.Second); len(s.versions) != 1 {
			t.Errorf("after the error got %d events", len(s.versions))
		}
	})
}

// TestAStateIsToldIfItChanges verifies that a watcher gets a state once, and again only if it differs, and that a message
// with a state does not skip changes that are not told yet.
func TestAStateIsToldIfItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{value: map[string]int{"a": 1}}
		h := hubOf(f)
		w := watch(t, h, all, nil, "state")
		defer w.Close()
		if s := during(t, w, 9*time.Second); s.messages != 2 || s.states != 1 {
			t.Errorf("got %d messages, %d states, want the place and the state", s.messages, s.states)
		}
		f.set(map[string]int{"a": 1})
		if s := during(t, w, 5*time.Second); s.states != 0 {
			t.Errorf("the same state was told again")
		}
		f.append(1, "s")
		if s := during(t, w, time.Second); s.messages != 1 || s.versions[0] != 1 {
			t.Fatalf("got %+v, want a change", s)
		}
		f.set(map[string]int{"a": 2})
		f.append(3, "s")
		time.Sleep(3 * time.Second)
		m, err := w.Next(t.Context()) // changes and states take turns
		if err != nil || m.States == nil || len(m.Items) > 0 {
			t.Fatalf("got %+v, %v, want the state", m, err)
		}
		again := watch(t, h, all, &m.Place)
		defer again.Close()
		for _, w := range []*live.Watcher{w, again} {
			if s := during(t, w, time.Second); len(s.versions) != 3 || s.versions[0] != 0 {
				t.Errorf("after the state got %v, want 3 changes", s.versions)
			}
		}
	})
}

// TestASlowStateIsReadOften verifies that a state that takes long to read, because the database is far away or busy, is read again after
// two seconds.
func TestASlowStateIsReadOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{slow: time.Second}
		w := watch(t, hubOf(f), all, nil, "inbox")
		defer w.Close()
		_ = clock.Wait(t.Context(), time.Minute)
		if _, states := f.counts(); states < 19 || states > 21 {
			t.Errorf("the state was read %d times in a minute, want every three seconds", states)
		}
	})
}

// TestAFailingStart verifies that a watcher is refused if the workspace cannot be read, and that the next one is not.
func TestAFailingStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{fails: errors.New("no database")}
		h := hubOf(f)
		if _, err := h.Watch(t.Context(), "w", all, nil, nil); err == nil || !strings.Contains(err.Error(), "no database") {
			t.Errorf("got %v", err)
		}
		f.fails = nil
		watch(t, h, all, nil).Close()
	})
}
