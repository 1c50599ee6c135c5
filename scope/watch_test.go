package scope_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/scope"
)

// patience is how long a watcher waits for what must come.
const patience = 20 * time.Second

// seenChange is one pair that a loop over [scope.Scope.Watch] gets.
type seenChange[T any] struct {
	scope.Snapshot[T]
	Err error
}

// changesOf sends each pair that a loop gets, except the error of ctx.
func changesOf[T any](ctx context.Context, s scope.Scope[T]) <-chan seenChange[T] {
	news := make(chan seenChange[T])
	go func() {
		defer close(news)
		for c, err := range s.Watch(ctx) {
			if errors.Is(err, context.Canceled) {
				return
			}
			select {
			case news <- seenChange[T]{c, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return news
}

// firstError returns the error of the first pair.
func firstError[T any](ctx context.Context, s scope.Scope[T]) error {
	for _, err := range s.Watch(ctx) {
		return err
	}
	return nil
}

// watched is a scope that is watched until the test ends.
func watched[T any](e *env, s scope.Scope[T]) (<-chan seenChange[T], func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(e.ctx)
	news := changesOf(ctx, s)
	e.Cleanup(func() {
		cancel()
		for range news {
			continue
		}
	})
	return news, cancel
}

// next returns the next change of a watcher.
func next[T any](e *env, news <-chan seenChange[T]) seenChange[T] {
	e.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case c, ok := <-news:
		if !ok {
			e.Fatal("the channel is closed")
		}
		return c
	case <-timer.C:
		e.Fatal("no change arrived")
	}
	panic("not reached")
}

// until reads changes of a watcher up to a version, and checks that versions grow.
func until[T any](e *env, news <-chan seenChange[T], version int64) (last seenChange[T], told int) {
	e.Helper()
	for before := int64(-2); ; told++ {
		last = next(e, news)
		if last.Err != nil || last.Version <= before && last.Version != -1 {
			e.Fatalf("got version %d after %d, %v", last.Version, before, last.Err)
		}
		if before = last.Version; before == version {
			return last, told + 1
		}
	}
}

// TestWatch verifies that a watcher is told how the scope is at first, then of changes by
// any verb, by this process and by another; that what changes nothing is not told; that an
// end and a new beginning are told; and that the loop ends with the context.
func TestWatch(t *testing.T) {
	each(t, func(e *env) {
		news, cancel := watched(e, e.raw("u"))
		first := next(e, news)
		e.absent(first.Snapshot, -1, false)
		e.has("u", full)
		e.like(next(e, news).Snapshot, full, 0, false)
		version := int64(0)
		for _, v := range verbs[:5] {
			s, err := v.do(e.ctx, e.raw("u"))
			e.ok(err)
			version++
			c := next(e, news)
			e.like(c.Snapshot, string(s.State), version, false)
		}
		for range 3 { // it changes nothing
			_, err := e.raw("u").Inc(e.ctx, "n", 0)
			e.ok(err)
		}
		gone, err := e.raw("u").Delete(e.ctx)
		e.ok(err)
		e.absent(next(e, news).Snapshot, -1, false)
		s, err := e.raw("u").Inc(e.ctx, "n", 7)
		e.ok(err)
		if c := next(e, news); c.Version <= gone.Version || c.Version != s.Version || !c.Exists {
			e.Errorf("recreated at version %d, but got change %+v", s.Version, c)
		}
		if e.where != "" {
			other := e.other()
			s, err = other.raw("u").Inc(other.ctx, "n", 1)
			e.ok(err)
			e.like(next(e, news).Snapshot, `{"n":8}`, s.Version, false)
		}
		cancel()
		for c := range news {
			e.Errorf("got change %+v after the end", c)
		}
	})
}

// TestWatchFromThere verifies that who begins to watch a scope that is there is told of it
// at once.
func TestWatchFromThere(t *testing.T) {
	each(t, func(e *env) {
		e.has("u", full)
		for range 2 {
			news, _ := watched(e, e.raw("u"))
			e.like(next(e, news).Snapshot, full, 0, false)
		}
	})
}

// TestASlowWatcherIsToldOfTheLast verifies that a watcher who does not listen for a while is
// told of the last change and not of all, and that the last one always comes, also with
// several watchers and changes from several at once.
func TestASlowWatcherIsToldOfTheLast(t *testing.T) {
	each(t, func(e *env) {
		const changes = 60
		var all []<-chan seenChange[cart]
		for range 4 {
			news, _ := watched(e, at[cart](e, "thing", "u"))
			all = append(all, news)
		}
		for range changes {
			_, err := at[cart](e, "thing", "u").Inc(e.ctx, "total", 1)
			e.ok(err)
		}
		for _, news := range all {
			last, told := until(e, news, changes-1)
			e.equal("total", last.State.Total, changes)
			if told > changes/2 {
				e.Errorf("the slow reader got %d changes, want fewer", told)
			}
		}
		done := make(chan error, 3)
		for range 3 {
			go func() {
				for range changes / 3 {
					if _, err := at[cart](e, "thing", "u").Inc(e.ctx, "total", 1); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for _, news := range all {
			last, _ := until(e, news, 2*changes-1)
			e.equal("total", last.State.Total, 2*changes)
		}
		for range 3 {
			e.ok(<-done)
		}
	})
}

// TestAWatchEndsWithAnError verifies that a state that cannot be read as a T ends the loop with the error, and that the
// end of the context does too.
func TestAWatchEndsWithAnError(t *testing.T) {
	each(t, func(e *env) {
		news, _ := watched(e, at[cart](e, "thing", "u"))
		e.equal("there", next(e, news).Exists, false)
		e.has("u", `{"total":"many"}`)
		if c := next(e, news); fault.CodeOf(c.Err) != fault.Internal {
			e.Errorf("got change %+v, want an internal error", c)
		}
		if c, more := <-news; more {
			e.Errorf("got change %+v after the error", c)
		}
		e.refused(firstError(e.ctx, at[cart](e, "thing", "u")), fault.Internal)
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		var last error
		for _, last = range e.raw("u").Watch(ctx) {
			cancel()
		}
		if !errors.Is(last, context.Canceled) {
			e.Errorf("the last pair has the error %v, want context.Canceled", last)
		}
	})
}

// TestAWatchOutlivesAnOutage verifies that a watcher gets no error while the database is unreachable, and afterwards
// gets the changes that were made meanwhile.
func TestAWatchOutlivesAnOutage(t *testing.T) {
	intercepted(t, func(e *env, set func(intercept)) {
		news, _ := watched(e, e.raw("u"))
		e.absent(next(e, news).Snapshot, -1, false)
		var failed atomic.Int64
		down := make(chan struct{})
		set(func(_ context.Context, verb string, _ func(context.Context) error) (bool, error) {
			if verb != "scopes.get" || failed.Load() >= 2 {
				return false, nil
			}
			if failed.Add(1) == 2 {
				close(down)
			}
			return true, fault.New(fault.Unavailable, "the database is down")
		})
		_, err := e.raw("u").Inc(e.ctx, "n", 1) // does not read
		e.ok(err)
		<-down
		e.like(next(e, news).Snapshot, `{"n":1}`, 0, false)
	})
}

// TestAWatcherIsToldWhatIsNew verifies what a watcher of a store in memory is told, to the
// letter: nothing while nothing has changed, and each state once.
func TestAWatcherIsToldWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &env{T: t, ctx: freshWorkspace(), own: memory(t)}
		ctx, cancel := context.WithCancel(e.ctx)
		news := changesOf(ctx, at[cart](e, "thing", "u"))
		quiet := func() {
			e.Helper()
			<-time.After(time.Minute)
			synctest.Wait()
			select {
			case c := <-news:
				e.Errorf("got change %+v, want none", c)
			default:
			}
		}
		e.equal("there", (<-news).Exists, false)
		quiet()
		e.has("u", `{"total":1}`)
		e.equal("version", (<-news).Version, 0)
		quiet()
		_, err := e.raw("u").Delete(e.ctx)
		e.ok(err)
		if c := <-news; c.Exists || c.Err != nil {
			e.Errorf("got change %+v, want a deleted scope", c)
		}
		quiet()
		cancel()
		if _, open := <-news; open {
			e.Error("the loop goes on")
		}
	})
}

// TestWatchOfWhatEnds verifies that a watcher is told when a scope ends by itself.
func TestWatchOfWhatEnds(t *testing.T) {
	ends := func(e *env) {
		news, cancel := watched(e, e.raw("u"))
		e.absent(next(e, news).Snapshot, -1, false)
		_, err := e.raw("u", scope.TTL(time.Minute)).Inc(e.ctx, "n", 1)
		e.ok(err)
		e.like(next(e, news).Snapshot, `{"n":1}`, 0, false)
		e.pass(2 * time.Minute)
		e.absent(next(e, news).Snapshot, -1, false)
		cancel()
	}
	each(t, ends, "sqlite", "postgres")
	t.Run("memory", func(t *testing.T) { inBubble(t, func() *scope.Store { return memory(t) }, ends) })
	t.Run("files", func(t *testing.T) {
		folder := t.TempDir()
		inBubble(t, func() *scope.Store {
			own, err := scope.FileStore(folder)
			if err != nil {
				t.Fatal(err)
			}
			return own
		}, ends)
	})
}

// TestWatchersOfANodeAskTogether verifies that watchers of what nobody changes do not ask the
// database, on a node that runs: one look serves all of them. What another process changes,
// and what ends, is told to whom it concerns.
func TestWatchersOfANodeAskTogether(t *testing.T) {
	testlevel.Long(t)
	const many = 50
	intercepted(t, func(e *env, set func(intercept)) {
		var gets atomic.Int64
		looks := make(chan struct{}, 1000)
		set(func(ctx context.Context, verb string, do func(context.Context) error) (bool, error) {
			switch verb {
			case "scopes.get":
				gets.Add(1)
			case "wake.list_due":
				defer func() { looks <- struct{}{} }()
				return true, do(ctx)
			}
			return false, nil
		})
		pass := func(n int) { // waits for looks that are yet to end
			for len(looks) > 0 {
				<-looks
			}
			for range n {
				<-looks
			}
		}
		_, err := e.raw("0", scope.TTL(time.Hour)).Inc(e.ctx, "n", 1)
		e.ok(err)
		e.has("1", `{"n":1}`)
		other := e.other()
		testkit.Run(e.T, e.hf)
		pass(1) // the node looks for those who watch from now on
		var (
			all   []<-chan seenChange[json.RawMessage]
			begun time.Time
		)
		// Each looks by itself after half a minute at the earliest. A machine that was too slow for
		// that is given another try, with new ones.
		early := func() bool { return clock.Since(begun) < wake.Seldom/2 }
		for try := 1; ; try++ {
			begun, all = clock.Now(), nil
			var ends []func()
			for i := range many {
				news, end := watched(e, e.raw(fmt.Sprint(i)))
				next(e, news)
				all, ends = append(all, news), append(ends, end)
			}
			pass(2) // what is told of the changes above comes now
			gets.Store(0)
			pass(3)
			n := gets.Load()
			if n == 0 {
				break
			}
			if early() || try == 3 {
				e.Fatalf("%d watchers of unchanged scopes read them %d times", many, n)
			}
			for _, end := range ends {
				end()
			}
		}
		for _, id := range []string{"1", "2"} { // one that is there, and one that is not yet
			_, err := other.raw(id).Inc(e.ctx, "n", 1)
			e.ok(err)
		}
		e.like(next(e, all[1]).Snapshot, `{"n":2}`, 1, false)
		e.like(next(e, all[2]).Snapshot, `{"n":1}`, 0, false)
		e.pass(2 * time.Hour)
		e.absent(next(e, all[0]).Snapshot, -1, false)
		if n := gets.Load(); n > many/5 && early() {
			e.Errorf("three changes made %d watchers read %d times", many, n)
		}
	})
}

// TestATransactionCannotBeWatched verifies that it is refused, and so is what is no name.
func TestATransactionCannotBeWatched(t *testing.T) {
	each(t, func(e *env) {
		e.ok(e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			e.refused(firstError(ctx, scope.In[cart](tx, "thing", "u")), fault.Validation)
			return nil
		}))
		e.refused(firstError(e.ctx, at[cart](e, "thing", "")), fault.Validation)
	}, "sqlite", "postgres")
}

// TestMemory verifies that each call of Memory is a container of its own.
func TestMemory(t *testing.T) {
	ctx := context.Background()
	a, b := scope.Memory[cart](), scope.Memory[cart](scope.Budget(-1))
	for range 3 {
		if _, err := a.Inc(ctx, "total", 1); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.Inc(ctx, "total", 1)
	if err != nil || s.State.Total != 1 || s.Version != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := scope.MemoryStore(scope.Kind{Name: "a"}, scope.Kind{Name: "a"}); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("kind declared twice: got %v, want ErrConflict", err)
	}
	if _, err := scope.FileStore(t.TempDir(), scope.Kind{Name: "a/b"}); !errors.Is(err, holdfast.ErrValidation) {
		t.Errorf("kind with an invalid name: got %v, want ErrValidation", err)
	}
}
