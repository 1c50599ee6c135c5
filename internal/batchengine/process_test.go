package batchengine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/internal/wallets"
)

// nodeVar names the database of a child process.
const nodeVar = "HOLDFAST_BATCHES_NODE"

// eachAt runs a test on both databases, with names for other processes.
func eachAt(t *testing.T, f func(*testing.T, fixture, string)) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, db string) {
		f(t, fixture{t, holdfasttest.OpenOn(t, holdfasttest.At(db))}, db)
	})
}

// TestNodeProcess is no test, but a program in its own process, which the tests below
// start and kill. It runs the commands of its input and prints the results.
func TestNodeProcess(t *testing.T) {
	db := os.Getenv(nodeVar)
	if db == "" {
		return // it is for child processes
	}
	if err := runCommands(db); err != nil {
		fmt.Println("ended", err)
	}
	os.Exit(0)
}

// runCommands runs commands, one per line: "race h n" takes items of a handler with n callers
// and settles them; "post from n" credits and debits with n callers; "work" does items
// until it is killed, and "finish" does them to the end.
func runCommands(db string) error {
	e, err := holdfast.Open(context.Background(), holdfasttest.At(db), holdfast.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		f := strings.Fields(in.Text())
		n := 0
		if len(f) > 2 {
			if _, err := fmt.Sscan(f[2], &n); err != nil {
				return err
			}
		}
		switch f[0] {
		case "race":
			fmt.Println("raced", f[1], race(e, f[1], n))
		case "post":
			fmt.Println("posted", post(e, f[1], n))
		case "work", "finish":
			go serve(e, f[0] == "finish")
		}
	}
	return nil
}

// race takes items with n concurrent callers and settles them. It prints unexpected
// failures.
func race(e *holdfast.Engine, handler string, n int) error {
	ctx := context.Background()
	failures := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			some, err := batchengine.Take(ctx, engine.Of(e), batchengine.Ask{Handlers: []string{handler}, Holder: fmt.Sprint("w", os.Getpid()), Limit: 1})
			for _, x := range some {
				if _, ended := batchengine.Settle(ctx, engine.Of(e), x, nil); fault.CodeOf(ended) != fault.LeaseLost { // it was cancelled
					err = errors.Join(err, ended)
				}
			}
			failures[i] = err
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// post credits and debits with n concurrent callers, and returns the sum.
func post(e *holdfast.Engine, from string, n int) (sum int64) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		all.Go(func() {
			delta := int64(7 + i)
			if i%2 == 1 {
				delta = -int64(5 + i)
			}
			a := wallets.PostArgs{Wallet: "w", Delta: delta, Reason: "test", Reference: fmt.Sprint(from, "/", i)}
			for range 2 { // the second time it is known already
				if _, err := wallets.Post(context.Background(), engine.Of(e), a); err != nil {
					fmt.Println("failed", err)
					return
				}
			}
			mu.Lock()
			sum += delta
			mu.Unlock()
		})
	}
	all.Wait()
	return sum
}

// serve does items. A body that must not finish hangs.
func serve(e *holdfast.Engine, finish bool) {
	w := &batchengine.Worker{Engine: engine.Of(e), Hub: wake.NewHub(), Log: slog.New(slog.DiscardHandler), Name: fmt.Sprint("w", os.Getpid()), Handlers: func() []string { return []string{"h"} }, MaxConcurrency: 1,
		Body: func(ctx context.Context, t batchengine.Taken) ([]byte, []batchengine.Commit, error) {
			fmt.Println("body", t.Key)
			if !finish {
				<-ctx.Done()
			}
			return nil, nil, ctx.Err()
		}}
	w.Run(context.Background())
}

func start(t *testing.T, db string) *testkit.Child {
	t.Helper()
	return testkit.StartChild(t, "TestNodeProcess", nodeVar, db)
}

// TestCancelRacesTheTakes verifies, with four processes of four callers each, that no
// item is taken after a cancel in the batch's own history, and that the charges of the
// items taken before it are refunded.
func TestCancelRacesTheTakes(t *testing.T) {
	eachAt(t, func(t *testing.T, s fixture, db string) {
		ctx := t.Context()
		s.wallet(1_000_000)
		var nodes []*testkit.Child
		for range 4 {
			nodes = append(nodes, start(t, db))
		}
		untouched, rounds := 0, testlevel.Pick(8, 120, 5000)
		for i := range rounds {
			id := fmt.Sprint("b", i)
			_, err := batchengine.Create(ctx, engine.Of(s.e), batchengine.New{ID: id, Wallet: "w", Handler: id, MaxConcurrency: 8, Items: work(20, 3)})
			s.ok(err)
			for _, n := range nodes {
				n.Send("race %s 4", id)
			}
			b, accepted, err := batchengine.Cancel(ctx, engine.Of(s.e), id, "")
			s.ok(err)
			if accepted != (b.Next > 0) {
				t.Fatalf("%d: cancel returned accepted %v, batch %+v", i, accepted, b)
			}
			for _, n := range nodes {
				if failed := n.ExpectPrefix("raced " + id); failed != "<nil>" {
					t.Fatalf("%d: %s", i, failed)
				}
			}
			after, err := batchengine.Get(ctx, engine.Of(s.e), id)
			s.ok(err)
			if after.Next != b.Next {
				t.Fatalf("%d: an item was taken after the cancel: %+v, and then %+v", i, b, after)
			}
			history, err := events.Read(ctx, engine.Of(s.e), events.ReadArgs{Stream: batchengine.Stream(id), Limit: 100})
			s.ok(err)
			cancelled := false
			for _, e := range history {
				if cancelled && e.Name == "itemsTaken" {
					t.Fatalf("%d: the history has a taken item after the cancel: %+v", i, history)
				}
				cancelled = cancelled || e.Name == "cancelRequested" || e.Name == "cancelled"
			}
			if !accepted {
				untouched++
			}
		}
		holdfasttest.Advance(t, s.e, time.Hour)
		for n := 1; n > 0; {
			var err error
			n, err = batchengine.Advance(ctx, engine.Of(s.e), store.Partition{})
			s.ok(err)
		}
		if s.balance() != 1_000_000 {
			t.Errorf("wallet balance is %d, want 1000000", s.balance())
		}
		t.Logf("of %d rounds, the cancel came first in %d", rounds, untouched)
	})
}

// TestProcessesShareAWallet verifies that concurrent credits and debits of four
// processes add up exactly.
func TestProcessesShareAWallet(t *testing.T) {
	eachAt(t, func(t *testing.T, s fixture, db string) {
		s.wallet(1000)
		var nodes []*testkit.Child
		for range 4 {
			nodes = append(nodes, start(t, db))
		}
		for i, n := range nodes {
			n.Send("post p%d 25", i)
		}
		want := int64(1000)
		for _, n := range nodes {
			var sum int64
			if _, err := fmt.Sscan(n.ExpectPrefix("posted"), &sum); err != nil {
				t.Fatal(err)
			}
			want += sum
		}
		a, err := wallets.Audit(t.Context(), engine.Of(s.e), "w")
		if err != nil || len(a.Wrong) > 0 || a.Entries != 101 || s.balance() != want {
			t.Errorf("wallet balance is %d, want %d: audit %+v, %v", s.balance(), want, a, err)
		}
	})
}

// TestKilledWorkersAreChargedOnce verifies that an item whose workers are killed is
// charged once, is done by the next worker, and counts their crashes.
func TestKilledWorkersAreChargedOnce(t *testing.T) {
	eachAt(t, func(t *testing.T, s fixture, db string) {
		s.wallet(25)
		s.create(batchengine.New{Items: work(1, 10)})
		for range 3 {
			n := start(t, db)
			n.Send("work")
			n.ExpectPrefix("body k000")
			n.Kill()
			holdfasttest.Advance(t, s.e, time.Minute)
			if freed, err := batchengine.Expire(t.Context(), engine.Of(s.e), store.Partition{}); freed != 1 || err != nil {
				t.Fatalf("released %d leases, error %v, want 1", freed, err)
			}
			if s.balance() != 15 {
				t.Fatalf("wallet balance is %d, want 15", s.balance())
			}
		}
		n := start(t, db)
		n.Send("finish")
		n.ExpectPrefix("body k000")
		for !s.get().Over() {
			if err := t.Context().Err(); err != nil {
				t.Fatal(err)
			}
		}
		s.is(batchengine.Completed, batchengine.Counts{Succeeded: 1, Accepted: 1}, 10, 0, 15)
		items, err := batchengine.Items(t.Context(), engine.Of(s.e), "b", 0, "", 1)
		if err != nil || items[0].Crashes != 3 || items[0].Attempts() != 4 {
			t.Errorf("got items %+v, error %v, want 3 crashes and 4 attempts", items, err)
		}
	})
}
