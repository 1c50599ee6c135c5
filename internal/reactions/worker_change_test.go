package reactions_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
)

// serving runs a worker without handlers.
func serving(t *testing.T, hf *holdfast.Engine) *reactions.Worker {
	t.Helper()
	w := &reactions.Worker{Engine: engine.Of(hf), Hub: engine.Of(hf).Hub(), Log: discardLog(), Name: "w", Idle: true}
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { w.Run(ctx) })
	t.Cleanup(func() {
		stop()
		done.Wait()
	})
	return w
}

// reportingHandler is a handler that reports the events that it gets.
func reportingHandler(d reactions.Definition, delivered chan<- string, wait <-chan struct{}) *reactions.Handler {
	return &reactions.Handler{Definition: d, Body: func(_ context.Context, v *reactions.Delivery) error {
		delivered <- v.Lease.Reaction + " " + v.Event.Name
		<-wait
		return nil
	}}
}

// TestReactionsAreAddedAndDroppedWhileAWorkerRuns verifies that a running worker serves
// a reaction from when it is added until it is dropped, that leases in flight run to
// their end, that nothing more is taken, and that the reaction continues at its position
// when it is added again.
func TestReactionsAreAddedAndDroppedWhileAWorkerRuns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		w := serving(t, hf)
		a, b := define("a", "^s"), define("b", "")
		a.Lease = 1500 * time.Millisecond // renewed more often than the leases before
		register(t, hf, a)
		register(t, hf, b)
		delivered, goOn, free := make(chan string, 10), make(chan struct{}), make(chan struct{})
		close(free)
		if err := w.Add(reportingHandler(a, delivered, goOn)); err != nil {
			t.Fatal(err)
		}
		if err := w.Add(reportingHandler(a, delivered, goOn)); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("second Add returned %v, want a conflict", err)
		}
		appendTo(t, hf, "s1", "one")
		expect(t, delivered, "a one")
		w.Drop("", "a")
		appendTo(t, hf, "s2", "two")
		if err := w.Add(reportingHandler(b, delivered, free)); err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{<-delivered: true, <-delivered: true}
		if !got["b one"] || !got["b two"] {
			t.Errorf("got deliveries %v", got)
		}
		close(goOn)
		waitForPosition(t, hf, "a", "s1", "is handled to its end", handled(0))
		if p := positionOf(t, hf, "a", "s2"); p != nil && (p.Watermark != -1 || p.Holder != "") {
			t.Errorf("a dropped reaction was executed: %+v", p)
		}
		if err := w.Add(reportingHandler(a, delivered, free)); err != nil {
			t.Fatal(err)
		}
		expect(t, delivered, "a two")
		waitForPosition(t, hf, "a", "s2", "is handled", handled(0))
	})
}

// TestNothingIsTakenWithoutRoom verifies that nothing is taken for a reaction without
// capacity, and that it continues when it has capacity.
func TestNothingIsTakenWithoutRoom(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		w := serving(t, hf)
		a, b := define("a", ""), define("b", "")
		register(t, hf, a)
		register(t, hf, b)
		delivered, free := make(chan string, 10), make(chan struct{})
		close(free)
		var room atomic.Bool
		full := reportingHandler(a, delivered, free)
		full.Ready = room.Load
		if err := errors.Join(w.Add(full), w.Add(reportingHandler(b, delivered, free))); err != nil {
			t.Fatal(err)
		}
		appendTo(t, hf, "s", "one")
		expect(t, delivered, "b one")
		waitForPosition(t, hf, "b", "s", "is handled", handled(0))
		if p := positionOf(t, hf, "a", "s"); p != nil && (p.Watermark != -1 || p.Holder != "") {
			t.Errorf("a stream was taken: %+v", p)
		}
		room.Store(true)
		expect(t, delivered, "a one")
		waitForPosition(t, hf, "a", "s", "is handled", handled(0))
	})
}

func expect(t *testing.T, delivered <-chan string, want string) {
	t.Helper()
	if got := <-delivered; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAReactionOfATransaction verifies that a reaction which is created and removed in
// the caller's transactions follows their commits, and only those.
func TestAReactionOfATransaction(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx, d := context.Background(), define("a", "")
		d.FromNow = true
		appendTo(t, hf, "s", "before")
		enlist := func(then error) error {
			return hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				if err := reactions.Enlist(ctx, store.TxOf(tx), d); err != nil {
					return err
				}
				return then
			})
		}
		if err := enlist(fault.New(fault.Conflict, "no")); fault.CodeOf(err) != fault.Conflict {
			t.Fatal(err)
		}
		if all, err := reactions.List(ctx, engine.Of(hf), ""); err != nil || len(all) != 0 {
			t.Fatalf("after the rollback: got reactions %v, error %v, want none", all, err)
		}
		if err := enlist(nil); err != nil {
			t.Fatal(err)
		}
		appendTo(t, hf, "s", "after")
		same(t, "delivered", drain(t, hf, d), []string{"s 1 after"})
		testkit.Eventually(t, "the registration is settled", func() bool { sweep(t, hf); return settled(t, hf, "a") })
		for _, want := range []bool{true, false} {
			err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				removed, err := reactions.Dismiss(ctx, store.TxOf(tx), "a")
				if removed != want {
					t.Errorf("removal returned %v, want %v", removed, want)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			sweep(t, hf)
		}
		if all, err := reactions.List(ctx, engine.Of(hf), ""); err != nil || len(all) != 0 {
			t.Fatalf("got reactions %v, error %v, want none", all, err)
		}
	})
}
