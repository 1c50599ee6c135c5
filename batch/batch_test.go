package batch_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

type in struct{ N int }

func work(n int, cost int64) iter.Seq[batch.NewItem[in]] {
	return func(yield func(batch.NewItem[in]) bool) {
		for i := range n {
			if !yield(batch.NewItem[in]{Key: fmt.Sprintf("k%04d", i), Cost: cost, Input: in{i}}) {
				return
			}
		}
	}
}

// each runs a test on both databases, each with parts of its own, on an engine that runs.
func each(t *testing.T, f func(t *testing.T, open func(parts ...holdfast.Part) *holdfast.Engine)) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, db string) {
		f(t, func(parts ...holdfast.Part) *holdfast.Engine {
			return run(t, holdfasttest.OpenOn(t, holdfasttest.At(db), parts...))
		})
	})
}

func run(t *testing.T, e *holdfast.Engine) *holdfast.Engine {
	testkit.Run(t, e)
	return e
}

func fund(t *testing.T, e *holdfast.Engine, points int64) {
	t.Helper()
	_, err := batch.PutWallet(t.Context(), e, "w")
	if err == nil && points > 0 {
		_, err = batch.Credit(t.Context(), e, "w", points, "first")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// until waits until a batch is as it is wanted.
func until(t *testing.T, e *holdfast.Engine, id string, want func(batch.Batch) bool) batch.Batch {
	t.Helper()
	for begun := clock.Now(); ; {
		b, err := batch.Get(t.Context(), e, id)
		if err != nil {
			t.Fatal(err)
		}
		if want(b) {
			return b
		}
		if clock.Since(begun) > time.Minute {
			t.Fatalf("batch did not change in a minute: %+v", b)
		}
		if err := clock.Wait(t.Context(), 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

func over(b batch.Batch) bool { return b.Over() }

func balance(t *testing.T, e *holdfast.Engine) int64 {
	t.Helper()
	w, err := batch.GetWallet(t.Context(), e, "w")
	if err != nil {
		t.Fatal(err)
	}
	return w.Balance
}

// TestAPanicInAWriteIsAFailure verifies that a panic in WriteTx fails its item, and does not end the process.
func TestAPanicInAWriteIsAFailure(t *testing.T) {
	each(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		kind := batch.Define("panics", func(_ context.Context, i *batch.Item[in]) (int, error) {
			i.WriteTx(func(context.Context, holdfast.Tx) error { panic("no row") })
			return 1, nil
		}, batch.Options{Retry: holdfast.RetryPolicy{MaxAttempts: 1}})
		e := open(kind)
		fund(t, e, 100)
		if _, err := kind.Create(t.Context(), e, "w", work(1, 2), batch.ID("b")); err != nil {
			t.Fatal(err)
		}
		if b := until(t, e, "b", over); b.Counts != (batch.Counts{Failed: 1}) {
			t.Errorf("got %+v, want one failed item", b.Counts)
		}
	})
}

func TestAKindDoesItsItems(t *testing.T) {
	each(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		var calls, most, now atomic.Int64
		kind := batch.Define("double", func(ctx context.Context, i *batch.Item[in]) (int, error) {
			calls.Add(1)
			defer now.Add(-1)
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			if i.Input.N%10 == 3 && i.Attempt == 1 {
				return 0, errors.New("not at first")
			}
			if i.Input.N == 7 {
				return 0, holdfast.NonRetryable(errors.New("never"))
			}
			i.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
				_, err := stream.Append(ctx, tx, "done", stream.Any, stream.Event{Name: "done", Data: []byte(fmt.Sprint(i.Input.N))})
				return err
			})
			return 2 * i.Input.N, nil
		}, batch.Options{MaxConcurrency: 3, Retry: holdfast.RetryPolicy{Backoff: time.Millisecond, Multiplier: 1}})
		e := open(kind)
		fund(t, e, 100)
		b, err := kind.Create(t.Context(), e, "w", work(30, 2), batch.ID("b"))
		if err != nil || b.Kind != "double" {
			t.Fatalf("created %+v, %v", b, err)
		}
		b = until(t, e, "b", over)
		if b.Status != batch.Completed || b.Counts != (batch.Counts{Succeeded: 29, Failed: 1, Accepted: 29}) || b.Charged != 60 || b.Refunded != 2 || balance(t, e) != 42 {
			t.Errorf("got batch %+v and balance %d", b, balance(t, e))
		}
		if calls.Load() != 33 || most.Load() > 3 {
			t.Errorf("got %d calls, at most %d at once, want 33 and 3", calls.Load(), most.Load())
		}
		n := 0
		for s, err := range batch.ListItems(t.Context(), e, "b", batch.ItemFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if s.Status == batch.ItemSucceeded && string(s.Output) != fmt.Sprint(2*n) {
				t.Errorf("item %s has output %s", s.Key, s.Output)
			}
			n++
		}
		events, err := holdfast.Collect(stream.Read(t.Context(), e, "done", 0))
		if n != 30 || len(events) != 29 || err != nil {
			t.Errorf("got %d items and %d events, %v, want 30 and 29", n, len(events), err)
		}
		// Made again, it is the one that is there; with other items it is refused.
		if again, err := kind.Create(t.Context(), e, "w", work(30, 2), batch.ID("b")); err != nil || again.Status != batch.Completed {
			t.Errorf("second create: got %+v, %v, want the completed batch", again, err)
		}
		for _, other := range []iter.Seq[batch.NewItem[in]]{work(29, 2), work(31, 2), work(30, 3)} {
			if _, err := kind.Create(t.Context(), e, "w", other, batch.ID("b")); !errors.Is(err, holdfast.ErrConflict) {
				t.Errorf("create with other items: got %v, want ErrConflict", err)
			}
		}
	})
}

// Verifies that a cancel at any moment refunds what was charged for what nobody accepted,
// that at most as many items finish after it as run at once, and that what was begun is
// undone, once each.
func TestACancelUndoesWhatWasBegun(t *testing.T) {
	each(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		const parallel = 4
		var after atomic.Int64
		var cancelled atomic.Bool
		begun := make(chan struct{}, 1000)
		kind := batch.Define("slow", func(ctx context.Context, i *batch.Item[in]) (string, error) {
			if cancelled.Load() {
				t.Errorf("%s began after the cancel", i.Key)
			}
			begun <- struct{}{}
			if i.Input.N >= 20 { // these wait to be cancelled
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "out-" + i.Key, nil
		}, batch.Options{MaxConcurrency: parallel, Lease: 1500 * time.Millisecond}).Undo(func(ctx context.Context, u *batch.Undone[in, string]) error {
			after.Add(1)
			if u.Status != batch.ItemCancelled || u.Input.N < 20 && (u.Output == nil || *u.Output != "out-"+u.Key) {
				t.Errorf("cleanup got %+v", u)
			}
			u.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
				_, err := stream.Append(ctx, tx, "undone/"+u.Key, stream.None, stream.Event{Name: "undone"})
				return err
			})
			return nil
		})
		e := open(kind)
		fund(t, e, 2000)
		if _, err := kind.Create(t.Context(), e, "w", work(1000, 1), batch.ID("b")); err != nil {
			t.Fatal(err)
		}
		for range 20 + parallel {
			<-begun
		}
		b := until(t, e, "b", func(b batch.Batch) bool { return b.Counts.Succeeded == 20 })
		if n, err := batch.Accept(t.Context(), e, "b", []string{"k0000", "k0001"}); n != 2 || err != nil {
			t.Fatalf("accepted %d, %v, want 2", n, err)
		}
		if b, err := batch.Cancel(t.Context(), e, "b"); err != nil || !b.CancelRequested || b.Over() {
			t.Fatalf("cancel returned %+v, %v; want a batch that is being torn down", b, err)
		}
		cancelled.Store(true)
		b = until(t, e, "b", over)
		if b.Status != batch.Cancelled || b.Counts != (batch.Counts{Succeeded: 2, Accepted: 2, Cancelled: 998}) || b.Charged != 24 || b.Refunded != 22 || balance(t, e) != 1998 {
			t.Errorf("got batch %+v and balance %d", b, balance(t, e))
		}
		if n := after.Load(); n < 22 {
			t.Errorf("%d items were cleaned up, want at least 22", n)
		}
	})
}

// Verifies that a cleanup that fails is shown, keeps the batch from its end, and converges
// when the cause is gone.
func TestACleanupThatFailsIsShown(t *testing.T) {
	each(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		var broken atomic.Bool
		broken.Store(true)
		kind := batch.Define("k", func(context.Context, *batch.Item[in]) (int, error) { return 1, nil }, batch.Options{}).
			Undo(func(context.Context, *batch.Undone[in, int]) error {
				if broken.Load() {
					panic("the other side is down")
				}
				return nil
			})
		e := open(kind)
		fund(t, e, 1)
		if _, err := kind.Create(t.Context(), e, "w", work(3, 1), batch.ID("b")); err != nil {
			t.Fatal(err)
		}
		until(t, e, "b", func(b batch.Batch) bool { return b.Status == batch.Paused })
		if _, err := batch.Cancel(t.Context(), e, "b"); err != nil {
			t.Fatal(err)
		}
		b := until(t, e, "b", func(b batch.Batch) bool { return b.Error != "" })
		if b.Status != batch.Cancelling || !strings.Contains(b.Error, "the other side is down") || balance(t, e) != 1 {
			t.Errorf("got batch %+v, want CANCELLING with the error", b)
		}
		broken.Store(false)
		holdfasttest.Advance(t, e, time.Minute)
		if b = until(t, e, "b", over); b.Status != batch.Cancelled || b.Error != "" || balance(t, e) != 1 {
			t.Errorf("got batch %+v, want CANCELLED without an error", b)
		}
	})
}

// Verifies that artifacts of what is given up or cancelled are swept, those that come after
// the end too, and that those of what succeeded stay.
func TestArtifactsAreSwept(t *testing.T) {
	each(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		files, err := batch.FileStore(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		put := func(name string) {
			if err := files.Put(context.Background(), name, strings.NewReader("x")); err != nil {
				t.Error(err)
			}
		}
		var stays, goes sync.Map
		kind := batch.Define("k", func(_ context.Context, i *batch.Item[in]) (int, error) {
			put(i.Prefix + "a/b.txt")
			put(i.Prefix + "c")
			if i.Input.N == 1 {
				goes.Store(i.Prefix, true)
				return 0, holdfast.NonRetryable(errors.New("no"))
			}
			stays.Store(i.Prefix, true)
			return 1, nil
		}, batch.Options{Timeout: 10 * time.Minute})
		e := open(kind, batch.Artifacts(files))
		fund(t, e, 100)
		has := func(prefix any, want int) {
			t.Helper()
			if names, err := files.List(t.Context(), prefix.(string)); err != nil || len(names) != want {
				t.Errorf("%s has files %q, want %d: %v", prefix, names, want, err)
			}
		}
		if _, err := kind.Create(t.Context(), e, "w", work(3, 1), batch.ID("B/../../x")); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("id with slashes: got %v, want ErrValidation", err)
		}
		if _, err := kind.Create(t.Context(), e, "w", work(3, 1), batch.ID("")); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("empty id: got %v, want ErrValidation", err)
		}
		if _, err := kind.Create(t.Context(), e, "w", work(3, 1), batch.ID("..")); err != nil {
			t.Fatal(err)
		}
		b := until(t, e, "..", over)
		if b.Status != batch.Completed || b.Counts.Failed != 1 {
			t.Fatalf("got batch %+v, want COMPLETED with one failed item", b)
		}
		stays.Range(func(prefix, _ any) bool { has(prefix, 2); return true })
		goes.Range(func(prefix, _ any) bool { has(prefix, 0); return true })
		// Cancelled: all go, and what comes afterwards too.
		if _, err := kind.Create(t.Context(), e, "w", work(3, 1), batch.ID("c"), batch.LeaveOpen()); err != nil {
			t.Fatal(err)
		}
		until(t, e, "c", func(b batch.Batch) bool { return b.Counts.Succeeded == 2 })
		if _, err := batch.Cancel(t.Context(), e, "c"); err != nil {
			t.Fatal(err)
		}
		until(t, e, "c", over)
		late := batchengine.Prefix("default", "c", "k0000")
		has(late, 0)
		put(late + "late")
		has(late, 1)
		holdfasttest.Advance(t, e, 11*time.Minute)
		for begun := clock.Now(); ; {
			if names, err := files.List(t.Context(), late); err != nil || len(names) == 0 {
				break
			}
			if clock.Since(begun) > time.Minute {
				t.Fatal("the late artifact was not deleted")
			}
			if err := clock.Wait(t.Context(), 20*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Verifies that credits that race the pauses for want of funds never leave a batch asleep.
func TestACreditRacesThePause(t *testing.T) {
	each(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		kind := batch.Define("k", func(context.Context, *batch.Item[in]) (int, error) { return 1, nil }, batch.Options{MaxConcurrency: 2})
		e := open(kind)
		fund(t, e, 0)
		const items = 200
		if _, err := kind.Create(t.Context(), e, "w", work(items, 1), batch.ID("b")); err != nil {
			t.Fatal(err)
		}
		for i := range items {
			if _, err := batch.Credit(t.Context(), e, "w", 1, fmt.Sprint("c", i)); err != nil {
				t.Fatal(err)
			}
			if i%10 == 9 { // let it run dry
				until(t, e, "b", func(b batch.Batch) bool { return b.Counts.Succeeded == int64(i+1) })
			}
		}
		if b := until(t, e, "b", over); b.Status != batch.Completed || balance(t, e) != 0 {
			t.Errorf("got batch %+v, want COMPLETED", b)
		}
	})
}

// Verifies that with funds for one item, and room for eight, one call is made.
func TestFundsForOneAreOneCall(t *testing.T) {
	each(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		var calls atomic.Int64
		kind := batch.Define("k", func(context.Context, *batch.Item[in]) (int, error) { return int(calls.Add(1)), nil }, batch.Options{MaxConcurrency: 8})
		e := open(kind)
		fund(t, e, 15)
		if _, err := kind.Create(t.Context(), e, "w", work(8, 10), batch.ID("b")); err != nil {
			t.Fatal(err)
		}
		b := until(t, e, "b", func(b batch.Batch) bool { return b.Status == batch.Paused })
		if calls.Load() != 1 || b.Counts.Succeeded != 1 || balance(t, e) != 5 {
			t.Errorf("got %d calls: %+v", calls.Load(), b)
		}
	})
}

// Verifies that an undo that hangs holds up no other teardown, and that an item whose input
// its kind cannot read is given up without one.
func TestAnUndoThatHangs(t *testing.T) {
	each(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		entered, free := make(chan struct{}, 10), make(chan struct{})
		hangs := batch.Define("hangs", func(context.Context, *batch.Item[in]) (int, error) { return 1, nil }, batch.Options{}).
			Undo(func(context.Context, *batch.Undone[in, int]) error { entered <- struct{}{}; <-free; return nil })
		other := batch.Define("other", func(context.Context, *batch.Item[in]) (int, error) { return 1, nil }, batch.Options{}).
			Undo(func(context.Context, *batch.Undone[in, int]) error { return nil })
		e := open(hangs, other)
		fund(t, e, 100)
		cancelled := func(k *batch.Kind[in, int], id string) {
			if _, err := k.Create(t.Context(), e, "w", work(1, 1), batch.ID(id), batch.LeaveOpen()); err != nil {
				t.Fatal(err)
			}
			until(t, e, id, func(b batch.Batch) bool { return b.Counts.Succeeded == 1 })
			if _, err := batch.Cancel(t.Context(), e, id); err != nil {
				t.Fatal(err)
			}
		}
		cancelled(hangs, "a")
		<-entered
		cancelled(other, "b")
		if b := until(t, e, "b", over); b.Refunded != 1 {
			t.Errorf("got batch %+v, want 1 refunded", b)
		}
		if b, err := batch.Get(t.Context(), e, "a"); err != nil || b.Status != batch.Cancelling || b.Refunded != 1 {
			t.Errorf("got batch %+v, %v, want CANCELLING with 1 refunded", b, err)
		}
		// A kind of another program has the name: its items are poison here.
		poison := func(yield func(batch.NewItem[string]) bool) {
			yield(batch.NewItem[string]{Key: "k", Cost: 1, Input: "no object"})
		}
		if _, err := foreign("other").Create(t.Context(), e, "w", poison, batch.ID("c")); err != nil {
			t.Fatal(err)
		}
		if b := until(t, e, "c", over); b.Status != batch.Completed || b.Counts.Failed != 1 {
			t.Errorf("got batch %+v, want COMPLETED with one failed item", b)
		}
		free <- struct{}{}
		until(t, e, "a", over)
	})
}

// foreign is a kind of another program, whose items are undone.
func foreign(name string) *batch.Kind[string, int] {
	return batch.Define(name, func(context.Context, *batch.Item[string]) (int, error) { return 1, nil }, batch.Options{}).
		Undo(func(context.Context, *batch.Undone[string, int]) error { return nil })
}

// Verifies that a batch that is made again under its id goes on where it was left, and takes
// no other items.
func TestABatchIsMadeAgain(t *testing.T) {
	each(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		kind := batch.Define("k", func(context.Context, *batch.Item[in]) (int, error) { return 1, nil }, batch.Options{})
		e := open() // nobody does the items
		fund(t, e, 0)
		first, err := kind.Create(t.Context(), e, "w", work(3, 1), batch.ID("b"), batch.LeaveOpen())
		if err != nil || !first.Open {
			t.Fatalf("created %+v, %v", first, err)
		}
		for _, c := range []iter.Seq[batch.NewItem[in]]{work(2, 1), work(3, 2)} {
			if _, err := kind.Create(t.Context(), e, "w", c, batch.ID("b")); !errors.Is(err, holdfast.ErrConflict) {
				t.Errorf("create with other items: got %v, want ErrConflict", err)
			}
		}
		if _, err := kind.Create(t.Context(), e, "other", work(3, 1), batch.ID("b")); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("create with another wallet: got %v, want ErrConflict", err)
		}
		b, err := kind.Create(t.Context(), e, "w", work(2500, 1), batch.ID("b"))
		if err != nil || b.Open || b.Counts.Pending != 2500 {
			t.Errorf("create with all items: got %+v, %v, want a sealed batch of 2500", b, err)
		}
		// Several who make the same at once make one.
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, err := kind.Create(t.Context(), e, "w", work(2500, 1), batch.ID("same")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := len(itemsOf(t, e, "same")); n != 2500 {
			t.Errorf("got %d items, want 2500", n)
		}
		if n := len(itemsOf(t, e, "b")); n != 2500 {
			t.Errorf("got %d items, want 2500", n)
		}
	})
}

func itemsOf(t *testing.T, e *holdfast.Engine, id string) (keys []string) {
	t.Helper()
	for s, err := range batch.ListItems(t.Context(), e, id, batch.ItemFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, s.Key)
	}
	return keys
}

// Verifies that a body learns of a cancel of its batch long before its lease is renewed: from this engine at once, and from
// another process, which wakes nobody here, soon.
func TestABodyLearnsOfACancel(t *testing.T) {
	for name, where := range storetest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := where(t)
			db := holdfasttest.At(at)
			begun, told := make(chan struct{}), make(chan struct{})
			kind := batch.Define("waits", func(ctx context.Context, _ *batch.Item[in]) (string, error) {
				begun <- struct{}{}
				<-ctx.Done()
				told <- struct{}{}
				return "", ctx.Err()
			}, batch.Options{Lease: 12 * time.Minute})
			e := run(t, holdfasttest.OpenOn(t, db, kind))
			other := holdfasttest.OpenOn(t, db)
			fund(t, e, 10)
			for id, by := range map[string]*holdfast.Engine{"here": e, "elsewhere": other} {
				if _, err := kind.Create(t.Context(), e, "w", work(1, 1), batch.ID(id)); err != nil {
					t.Fatal(err)
				}
				<-begun
				if _, err := batch.Cancel(t.Context(), by, id); err != nil {
					t.Fatal(err)
				}
				select {
				case <-told:
				case <-time.After(time.Minute):
					t.Fatalf("the body did not get the cancel %s", id)
				}
				until(t, e, id, over)
			}
		})
	}
}

// TestACancelIsNotLoggedAsAFailure verifies that an item that stops because its batch is cancelled is not logged as failed.
func TestACancelIsNotLoggedAsAFailure(t *testing.T) {
	begun := make(chan struct{})
	kind := batch.Define("waits", func(ctx context.Context, _ *batch.Item[in]) (string, error) {
		close(begun)
		<-ctx.Done()
		return "", ctx.Err()
	}, batch.Options{})
	var log strings.Builder
	e, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	stop := testkit.Run(t, e)
	fund(t, e, 1)
	if _, err := kind.Create(t.Context(), e, "w", work(1, 1), batch.ID("b")); err != nil {
		t.Fatal(err)
	}
	<-begun
	if _, err := batch.Cancel(t.Context(), e, "b"); err != nil {
		t.Fatal(err)
	}
	until(t, e, "b", over)
	stop()
	if text := log.String(); strings.Contains(text, "level=WARN") || !strings.Contains(text, `msg="item stopped: its batch is cancelled, or its lease was lost"`) {
		t.Errorf("got log\n%s", text)
	}
}

// TestTheCostOfAnItem verifies that an item costs what it says, or else what its kind says, that an
// item of no cost must say so, and that an item without a cost is refused.
func TestTheCostOfAnItem(t *testing.T) {
	body := func(context.Context, *batch.Item[in]) (int, error) { return 1, nil }
	one := func(cost int64) iter.Seq[batch.NewItem[in]] {
		return slices.Values([]batch.NewItem[in]{{Key: "k", Cost: cost}})
	}
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		if _, err := batch.PutWallet(t.Context(), e, "w"); err != nil {
			t.Fatal(err)
		}
		for i, c := range []struct{ kind, item, want int64 }{{0, 3, 3}, {5, 3, 3}, {5, 0, 5}, {5, batch.Free, 0}, {batch.Free, 0, 0}, {batch.Free, 3, 3}} {
			b, err := batch.Define(fmt.Sprint("kind", i), body, batch.Options{Cost: c.kind}).Create(t.Context(), e, "w", one(c.item))
			if err != nil {
				t.Fatal(err)
			}
			items, err := holdfast.Collect(batch.ListItems(t.Context(), e, b.ID, batch.ItemFilter{}))
			if err != nil || len(items) != 1 || items[0].Cost != c.want {
				t.Errorf("an item of cost %d of a kind of cost %d: got %+v, %v, want cost %d", c.item, c.kind, items, err, c.want)
			}
		}
		kind := batch.Define("none", body, batch.Options{})
		b, err := kind.Create(t.Context(), e, "w", one(1), batch.LeaveOpen())
		if err != nil {
			t.Fatal(err)
		}
		_, created := kind.Create(t.Context(), e, "w", one(0))
		_, added := kind.Add(t.Context(), e, b.ID, one(0))
		for _, err := range []error{created, added} {
			if !errors.Is(err, holdfast.ErrValidation) || !strings.Contains(err.Error(), "batch.Free") {
				t.Errorf("an item without a cost: got %v, want a validation error that names batch.Free", err)
			}
		}
	})
}

// Verifies that a concurrency of 0 is that of the kind.
func TestConcurrencyOfABatch(t *testing.T) {
	each(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		kind := batch.Define("k", func(context.Context, *batch.Item[in]) (int, error) { return 1, nil }, batch.Options{MaxConcurrency: 8})
		e := open(kind)
		fund(t, e, 0)
		for n, want := range map[int]int{0: 8, 3: 3} {
			b, err := kind.Create(t.Context(), e, "w", work(1, 1), batch.MaxConcurrency(n))
			if err != nil || b.MaxConcurrency != want {
				t.Errorf("MaxConcurrency(%d): got %d, %v, want %d", n, b.MaxConcurrency, err, want)
			}
		}
	})
}
