package batchengine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/wallets"
)

// TestManyWorkAtOnce verifies that many concurrent takes and settles, of single items and of
// several, some of them twice, do each item once, and that the counts are right.
func TestManyWorkAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		const items, workers = 300, 8
		s.wallet(items)
		s.create(batchengine.New{MaxConcurrency: 6, Items: work(items, 1)})
		var all sync.WaitGroup
		var mu sync.Mutex
		done := make(map[string]int)
		for n := range workers {
			all.Go(func() {
				for {
					some, err := batchengine.Take(t.Context(), engine.Of(s.e), batchengine.Ask{Handlers: []string{"h"}, Holder: "me", Limit: 2})
					if err != nil {
						t.Error(err)
						return
					}
					if len(some) > 1 && n%2 == 0 { // one of them twice
						finished := []batchengine.Finished{{Taken: some[1]}, {Taken: some[0]}}
						other := make(chan bool, 1)
						go func() {
							settled, _ := batchengine.SettleAll(t.Context(), engine.Of(s.e), finished[:1])
							other <- settled
						}()
						settled, err := batchengine.SettleAll(t.Context(), engine.Of(s.e), finished)
						if err != nil || settled == <-other {
							t.Error("both callers have settled an item, or none has: ", err)
						}
					}
					for _, x := range some {
						if _, err := batchengine.Settle(t.Context(), engine.Of(s.e), x, nil); err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						done[x.Key]++
						mu.Unlock()
					}
					mu.Lock()
					n := len(done)
					mu.Unlock()
					if n == items {
						return
					}
				}
			})
		}
		all.Wait()
		for key, n := range done {
			if n != 1 {
				t.Errorf("item %s was executed %d times, want 1", key, n)
			}
		}
		s.is(batchengine.Completed, batchengine.Counts{Succeeded: items, Accepted: items}, items, 0, 0)
	})
}

// TestTeardownsAtOnce verifies that concurrent teardowns, with cancels, a result that is
// delivered twice and items that are accepted meanwhile, refund each item once or accept
// it, and that the refund matches the cancelled items.
func TestTeardownsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		ctx := t.Context()
		s.wallet(10_000)
		const runs, items = 25, 7
		spent := int64(0)
		for i := range runs {
			id := fmt.Sprint("b", i)
			_, err := batchengine.Create(ctx, engine.Of(s.e), batchengine.New{ID: id, Wallet: "w", Handler: id, MaxConcurrency: items, Items: work(items, 7)})
			s.ok(err)
			taken, err := batchengine.Take(ctx, engine.Of(s.e), batchengine.Ask{Handlers: []string{id}, Holder: "me", Limit: items})
			s.ok(err)
			s.settle(taken[:4]...)
			var all sync.WaitGroup
			begin := make(chan struct{})
			try := func(f func() error) {
				all.Go(func() {
					<-begin
					if err := f(); err != nil && fault.CodeOf(err) != fault.LeaseLost {
						t.Error(err)
					}
				})
			}
			for range 2 {
				try(func() error { _, _, err := batchengine.Cancel(ctx, engine.Of(s.e), id, ""); return err })
				try(func() error { _, err := batchengine.Settle(ctx, engine.Of(s.e), taken[4], nil); return err })
				try(func() error {
					_, err := batchengine.SettleAll(ctx, engine.Of(s.e), []batchengine.Finished{{Taken: taken[5]}, {Taken: taken[4]}})
					return err
				})
				try(func() error { _, err := batchengine.Advance(ctx, engine.Of(s.e), store.Partition{}); return err })
				try(func() error {
					_, err := batchengine.Finalize(ctx, engine.Of(s.e), id, []string{"k001", "k002"}, "")
					return err
				})
			}
			close(begin)
			all.Wait()
			_, err = batchengine.Advance(ctx, engine.Of(s.e), store.Partition{})
			s.ok(err)
			b, err := batchengine.Get(ctx, engine.Of(s.e), id)
			s.ok(err)
			if b.Status != batchengine.Cancelling || b.Refunded != 7*(items-b.Accepted) || b.Charged != 7*items || b.Running != 0 {
				t.Fatalf("%d: got batch %+v", i, b)
			}
			spent += 7 * b.Accepted
			if s.balance() != 10_000-spent {
				t.Fatalf("%d: wallet balance is %d, want %d", i, s.balance(), 10_000-spent)
			}
		}
		holdfasttest.Advance(t, s.e, time.Hour)
		s.maintain()
	})
}

// TestNothingIsFlippedWithoutItsWallet verifies that no item is cancelled or given up
// without the wallet for its refund, that the batch shows the reason, and that the
// teardown continues once the wallet exists.
func TestNothingIsFlippedWithoutItsWallet(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		ctx := t.Context()
		s.wallet(100)
		s.create(batchengine.New{MaxConcurrency: 2, Attempts: 1, Items: work(3, 10)})
		all := s.take(2)
		s.settle(all[0])
		s.rename("w", "gone")
		_, err := batchengine.Fail(ctx, engine.Of(s.e), all[1], "no", 0, false)
		s.code(err, fault.NotFound)
		_, _, err = batchengine.Cancel(ctx, engine.Of(s.e), "b", "")
		s.ok(err)
		_, err = batchengine.Advance(ctx, engine.Of(s.e), store.Partition{})
		s.code(err, fault.NotFound)
		if b := s.get(); b.Over() || b.Flipped != 0 || b.Succeeded != 1 || !strings.Contains(b.Error, "does not exist") {
			t.Fatalf("got batch %+v", b)
		}
		s.rename("gone", "w")
		holdfasttest.Advance(t, s.e, time.Hour)
		s.maintain()
		s.is(batchengine.Cancelled, batchengine.Counts{Cancelled: 3}, 20, 20, 100)
	})
}

// rename renames a wallet and its ledger directly in the tables.
func (s fixture) rename(from, to string) {
	s.t.Helper()
	s.exec("UPDATE holdfast_wallet SET id = '" + to + "' WHERE id = '" + from + "'")
	s.exec("UPDATE holdfast_ledger SET wallet = '" + to + "' WHERE wallet = '" + from + "'")
}

// exec runs a statement on the tables, named as on SQLite.
func (s fixture) exec(text string) {
	s.t.Helper()
	s.ok(s.e.Update(s.t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		_, err := storetest.Exec(ctx, tx, text)
		return err
	}))
}

// TestTheCheckSeesWhatIsWrong verifies that a check detects every kind of damage to a
// batch.
func TestTheCheckSeesWhatIsWrong(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		s.wallet(100)
		s.create(batchengine.New{MaxConcurrency: 3, Attempts: 1, Items: work(4, 10)})
		all := s.take(3)
		s.settle(all[0])
		_, err := batchengine.Fail(t.Context(), engine.Of(s.e), all[1], "no", 0, false)
		s.ok(err)
		for name, c := range map[string][3]string{
			"a charge that is another's": {"UPDATE holdfast_ledger SET reference = '$batch/b/charge/kxxx' WHERE reference = '$batch/b/charge/k000'", "UPDATE holdfast_ledger SET reference = '$batch/b/charge/k000' WHERE reference = '$batch/b/charge/kxxx'", "ledger"},
			"a return that is a refund":  {"UPDATE holdfast_ledger SET reference = '$batch/b/refund/k001' WHERE reference = '$batch/b/return/k001'", "UPDATE holdfast_ledger SET reference = '$batch/b/return/k001' WHERE reference = '$batch/b/refund/k001'", "ledger"},
			"a charge to another wallet": {`INSERT INTO holdfast_wallet SELECT shard, workspace, 'v', 0, negative, 2, created_at, updated_at FROM holdfast_wallet WHERE id = 'w';
				INSERT INTO holdfast_ledger SELECT shard, workspace, 'v', 1, -1, -1, reason, '$batch/b/charge/k000', at FROM holdfast_ledger WHERE wallet = 'w' AND n = 1;
				INSERT INTO holdfast_ledger SELECT shard, workspace, 'v', 2, 1, 0, reason, 'x', at FROM holdfast_ledger WHERE wallet = 'w' AND n = 1`,
				`DELETE FROM holdfast_ledger WHERE wallet = 'v'; DELETE FROM holdfast_wallet WHERE id = 'v'`, "another wallet"},
			"charges that do not add up":   {"UPDATE holdfast_batch SET charged = charged + 1", "UPDATE holdfast_batch SET charged = charged - 1", "charges"},
			"an item in another state":     {"UPDATE holdfast_item SET state = 'waiting' WHERE key = 'k000'", "UPDATE holdfast_item SET state = 'succeeded' WHERE key = 'k000'", "counts"},
			"a gap in the order of items":  {"UPDATE holdfast_item SET n = 9 WHERE n = 4", "UPDATE holdfast_item SET n = 4 WHERE n = 9", "counts"},
			"an end with something to do":  {"UPDATE holdfast_batch SET status = 'CANCELLED'", "UPDATE holdfast_batch SET status = 'RUNNING'", "status is final"},
			"a version without its event":  {"UPDATE holdfast_batch SET version = version + 1", "UPDATE holdfast_batch SET version = version - 1", "version"},
			"an item that nobody will see": {"UPDATE holdfast_item SET dirty = NOT dirty WHERE key = 'k001'", "UPDATE holdfast_item SET dirty = NOT dirty WHERE key = 'k001'", "counts"},
		} {
			s.exec(c[0])
			if r, err := s.e.Check(t.Context()); err != nil || !strings.Contains(r.String(), c[2]) {
				t.Errorf("%s: check returned %q, error %v", name, r, err)
			}
			s.exec(c[1])
		}
		if r, err := s.e.Check(t.Context()); err != nil || !r.Clean() {
			t.Errorf("check returned %s, error %v, want no violations", r, err)
		}
	})
}

// TestAnEndMeetsATake verifies that an end under an epoch that is just being taken
// changes all of the item or nothing: on PostgreSQL the statement then waits, and sees
// rows of two snapshots.
func TestAnEndMeetsATake(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		ctx := t.Context()
		s.wallet(1000)
		const runs = 40
		for i := range runs {
			id := fmt.Sprint("b", i)
			_, err := batchengine.Create(ctx, engine.Of(s.e), batchengine.New{ID: id, Wallet: "w", Handler: id, Items: work(1, 10)})
			s.ok(err)
			ask := batchengine.Ask{Handlers: []string{id}, Holder: "me", Limit: 1}
			taken, err := batchengine.Take(ctx, engine.Of(s.e), ask)
			s.ok(err)
			s.ok(batchengine.Release(ctx, engine.Of(s.e), taken[0], 0))
			early := taken[0]
			early.Epoch = 2
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					if _, err := batchengine.Take(ctx, engine.Of(s.e), ask); err != nil {
						t.Error(err)
					}
				})
				all.Go(func() {
					_, err := batchengine.Fail(ctx, engine.Of(s.e), early, "no", 0, i%2 == 0)
					if err != nil && fault.CodeOf(err) != fault.LeaseLost {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		if r, err := s.e.Check(ctx); err != nil || !r.Clean() {
			t.Errorf("check returned %s, error %v, want no violations", r, err)
		}
	})
}

// TestPoorBatchesHoldUpNoOther verifies that batches which cannot pay, or of which
// nothing can be taken, do not delay others.
func TestPoorBatchesHoldUpNoOther(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		ctx := t.Context()
		put := func(wallet string, points int64) {
			_, err := wallets.Put(ctx, engine.Of(s.e), wallet, false)
			s.ok(err)
			_, err = wallets.Post(ctx, engine.Of(s.e), wallets.PostArgs{Wallet: wallet, Delta: points, Reason: "credit", Reference: "first"})
			s.ok(err)
			_, err = batchengine.Create(ctx, engine.Of(s.e), batchengine.New{ID: "of-" + wallet, Wallet: wallet, Handler: "h", MaxConcurrency: 5, Items: work(5, 1)})
			s.ok(err)
		}
		for i := range 20 {
			put(fmt.Sprint("poor", i), 1)
			if taken := s.take(5); len(taken) != 1 { // and it runs
				t.Fatalf("took items %+v, want 1", taken)
			}
		}
		put("rich", 100)
		if taken := s.take(5); len(taken) != 5 || taken[0].Batch != "of-rich" {
			t.Fatalf("took items %+v, want 5 of batch of-rich", taken)
		}
	})
}

// TestACleanupIsNotedTwice verifies that a cleanup that is recorded twice still gets its
// final check.
func TestACleanupIsNotedTwice(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		ctx := t.Context()
		s.wallet(100)
		s.create(batchengine.New{Attempts: 1, Items: work(1, 10)})
		_, err := batchengine.Fail(ctx, engine.Of(s.e), s.take(1)[0], "no", 0, false)
		s.ok(err)
		sweep := func() []batchengine.Swept {
			all, err := batchengine.Dirty(ctx, engine.Of(s.e), batchengine.Sweep{At: store.Partition{Workspace: store.DefaultWorkspace}, Lease: time.Minute, Limit: 10})
			s.ok(err)
			return all
		}
		dirty := sweep()
		for range 2 {
			s.ok(batchengine.Cleaned(ctx, engine.Of(s.e), dirty...))
			s.ok(batchengine.Unclean(ctx, engine.Of(s.e), dirty[0], context.Canceled)) // it is clean by now
		}
		if more := sweep(); len(more) > 0 {
			t.Fatalf("second sweep found %+v, want nothing", more)
		}
		holdfasttest.Advance(t, s.e, time.Hour)
		last := sweep()
		if len(last) != 1 || last[0].Dirty {
			t.Fatalf("last sweep found %+v, want one batch that is not dirty", last)
		}
		s.ok(batchengine.Unclean(ctx, engine.Of(s.e), last[0], context.Canceled))
		if b := s.get(); b.Status != batchengine.Completed || b.Error != "" {
			t.Fatalf("got batch %+v, want it completed without an error", b)
		}
		holdfasttest.Advance(t, s.e, time.Hour)
		s.ok(batchengine.Cleaned(ctx, engine.Of(s.e), sweep()...))
		holdfasttest.Advance(t, s.e, time.Hour)
		if more := sweep(); len(more) > 0 {
			t.Fatalf("sweep after the end found %+v, want nothing", more)
		}
	})
}

// TestPruneLeavesTheLastCleanup verifies that an item whose last cleanup is still due when its batch is past its retention is not deleted
// before that, while the others are, and that two nodes that prune at once delete all.
func TestPruneLeavesTheLastCleanup(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		ctx := t.Context()
		s.wallet(100)
		s.create(batchengine.New{Attempts: 1, MaxConcurrency: 3, Items: work(3, 10), Retention: time.Minute})
		for i, l := range s.take(3) {
			var err error
			if i == 0 {
				_, err = batchengine.Fail(ctx, engine.Of(s.e), l, "no", 0, false)
			} else {
				_, err = batchengine.Settle(ctx, engine.Of(s.e), l, nil)
			}
			s.ok(err)
		}
		at := store.Partition{Workspace: store.DefaultWorkspace}
		sweep := func() {
			all, err := batchengine.Dirty(ctx, engine.Of(s.e), batchengine.Sweep{At: at, Lease: time.Minute, Limit: 10})
			s.ok(err)
			s.ok(batchengine.Cleaned(ctx, engine.Of(s.e), all...))
		}
		prune := func(want int64) {
			t.Helper()
			var nodes sync.WaitGroup
			var deleted atomic.Int64
			for range 2 {
				nodes.Go(func() {
					var p batchengine.Pruner
					for more := true; more; {
						var n int
						var err error
						if n, more, err = p.Sweep(ctx, engine.Of(s.e), at, 1); err != nil {
							t.Error(err)
							return
						}
						deleted.Add(int64(n))
					}
				})
			}
			if nodes.Wait(); deleted.Load() != want {
				t.Errorf("deleted %d items, want %d", deleted.Load(), want)
			}
		}
		sweep()
		holdfasttest.Advance(t, s.e, 2*time.Minute)
		prune(2)
		holdfasttest.Advance(t, s.e, time.Hour)
		sweep()
		prune(1)
		if b := s.get(); b.Failed != 1 || b.ItemsDeletedAt.IsZero() {
			t.Errorf("the batch: %+v", b)
		}
		holdfasttest.Advance(t, s.e, time.Hour)
		var p batchengine.Pruner
		if n, more, err := p.Sweep(ctx, engine.Of(s.e), at, 500); n != 0 || more || err != nil {
			t.Errorf("deleted %d more, more %t, error %v", n, more, err)
		}
	})
}

// TestPruneSkipsALockedBatch verifies that a batch that a transaction has locked does not hold up the deletion of the items of others.
func TestPruneSkipsALockedBatch(t *testing.T) {
	e := holdfasttest.OpenOn(t, holdfasttest.At(holdfasttest.PostgreSQL(t))) // on SQLite, there is one writer
	s, ctx := fixture{t, e}, t.Context()
	s.wallet(100)
	for _, id := range []string{"locked", "other"} {
		_, err := batchengine.Create(ctx, engine.Of(e), batchengine.New{ID: id, Wallet: "w", Handler: "h", Items: work(2, 0), Retention: time.Minute})
		s.ok(err)
		_, _, err = batchengine.Cancel(ctx, engine.Of(e), id, "")
		s.ok(err)
		holdfasttest.Advance(t, e, time.Second)
	}
	holdfasttest.Advance(t, e, time.Hour)
	var p batchengine.Pruner
	sweep := func(want int) {
		t.Helper()
		if n, _, err := p.Sweep(ctx, engine.Of(e), store.Partition{Workspace: store.DefaultWorkspace}, 100); n != want || err != nil {
			t.Errorf("deleted %d items, error %v, want %d", n, err, want)
		}
	}
	s.ok(engine.Of(e).Update(ctx, func(inside context.Context, tx *store.Tx) error {
		_, err := batchengine.Finalize(inside, tx, "locked", nil, "")
		sweep(2)
		return err
	}))
	sweep(2)
}
