package batchengine_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/wallets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

// fixture is an engine with a batch.
type fixture struct {
	t *testing.T
	e *holdfast.Engine
}

func each(t *testing.T, f func(*testing.T, fixture)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) { f(t, fixture{t, e}) })
}

func (s fixture) wallet(points int64) {
	s.t.Helper()
	_, err := wallets.Put(s.t.Context(), engine.Of(s.e), "w", false)
	if err == nil && points > 0 {
		_, err = wallets.Post(s.t.Context(), engine.Of(s.e), wallets.PostArgs{Wallet: "w", Delta: points, Reason: "credit", Reference: "first"})
	}
	s.ok(err)
}

func (s fixture) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s fixture) code(err error, want fault.Code) {
	s.t.Helper()
	if fault.CodeOf(err) != want {
		s.t.Fatalf("got error %v, want code %q", err, want)
	}
}

func work(n int, cost int64) (all []batchengine.Work) {
	for i := range n {
		all = append(all, batchengine.Work{Key: fmt.Sprintf("k%03d", i), Cost: cost, Input: []byte(fmt.Sprintf(`{"i":%d}`, i))})
	}
	return all
}

func (s fixture) create(n batchengine.New) batchengine.Batch {
	s.t.Helper()
	n.ID, n.Wallet, n.Handler = "b", "w", "h"
	b, err := batchengine.Create(s.t.Context(), engine.Of(s.e), n)
	s.ok(err)
	return b
}

func (s fixture) take(limit int) []batchengine.Taken {
	s.t.Helper()
	all, err := batchengine.Take(s.t.Context(), engine.Of(s.e), batchengine.Ask{Handlers: []string{"h"}, Holder: "me", Limit: limit})
	s.ok(err)
	return all
}

func (s fixture) settle(all ...batchengine.Taken) {
	s.t.Helper()
	for _, x := range all {
		_, err := batchengine.Settle(s.t.Context(), engine.Of(s.e), x, []byte(`"done"`))
		s.ok(err)
	}
}

func (s fixture) get() batchengine.Batch {
	s.t.Helper()
	b, err := batchengine.Get(s.t.Context(), engine.Of(s.e), "b")
	s.ok(err)
	return b
}

func (s fixture) balance() int64 {
	s.t.Helper()
	w, err := wallets.Get(s.t.Context(), engine.Of(s.e), "w")
	s.ok(err)
	return w.Balance
}

func (s fixture) is(status string, want batchengine.Counts, charged, refunded, balance int64) {
	s.t.Helper()
	b := s.get()
	if b.Status != status || b.Counts() != want || b.Charged != charged || b.Refunded != refunded || s.balance() != balance {
		s.t.Fatalf("batch has status %s, counts %+v, charged %d, refunded %d (%+v), wallet balance %d", b.Status, b.Counts(), b.Charged, b.Refunded, b, s.balance())
	}
	report, err := s.e.Check(s.t.Context())
	if err != nil || !report.Clean() {
		s.t.Fatal(report, err)
	}
}

// maintain tears down, cleans up and closes as far as possible now.
func (s fixture) maintain() {
	s.t.Helper()
	ctx := s.t.Context()
	for range 10 {
		n, err := batchengine.Advance(ctx, engine.Of(s.e), store.Partition{})
		s.ok(err)
		all, err := batchengine.Dirty(ctx, engine.Of(s.e), batchengine.Sweep{At: store.Partition{Workspace: store.DefaultWorkspace}, Lease: time.Minute, Limit: 100})
		s.ok(err)
		for _, x := range all {
			s.ok(batchengine.Cleaned(ctx, engine.Of(s.e), x))
		}
		if n == 0 && len(all) == 0 {
			return
		}
	}
	s.t.Fatalf("batch did not end: %+v", s.get())
}

func TestABatchIsDoneOnce(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		s.wallet(100)
		b := s.create(batchengine.New{MaxConcurrency: 3, Items: work(5, 10)})
		if b.Status != batchengine.Pending || !b.Sealed || b.Counts().Pending != 5 {
			t.Fatalf("created batch %+v", b)
		}
		_, err := batchengine.Create(t.Context(), engine.Of(s.e), batchengine.New{ID: "b", Wallet: "w", Handler: "h"})
		s.code(err, fault.Conflict)
		_, err = batchengine.Create(t.Context(), engine.Of(s.e), batchengine.New{ID: "c", Wallet: "none", Handler: "h"})
		s.code(err, fault.NotFound)
		first := s.take(10)
		if len(first) != 3 || first[0].Key != "k000" || string(first[1].Input) != `{"i":1}` || first[0].Attempt() != 1 || first[0].Until.IsZero() {
			t.Fatalf("took items %+v, want 3", first)
		}
		s.is(batchengine.Running, batchengine.Counts{Pending: 2, Running: 3}, 30, 0, 70)
		if more := s.take(10); len(more) > 0 {
			t.Fatalf("took items %+v beyond the maximum in flight", more)
		}
		s.settle(first[0])
		s.settle(first[0]) // repeated, with the same result
		_, err = batchengine.Settle(t.Context(), engine.Of(s.e), first[0], []byte(`"other"`))
		s.code(err, fault.LeaseLost)
		if n, err := batchengine.Finalize(t.Context(), engine.Of(s.e), "b", []string{"k000", "k001"}, ""); n != 1 || err != nil {
			t.Fatalf("accepted %d items, error %v, want 1", n, err)
		}
		_, err = batchengine.Finalize(t.Context(), engine.Of(s.e), "b", []string{"k000", "x"}, "")
		s.code(err, fault.NotFound)
		s.is(batchengine.Running, batchengine.Counts{Pending: 2, Running: 2, Succeeded: 1, Accepted: 1}, 30, 0, 70)
		// One fails, and is retried before the items that were never taken.
		e, err := batchengine.Fail(t.Context(), engine.Of(s.e), first[1], "no", 0, false)
		if err != nil || e.State != "waiting" || e.Failures != 1 {
			t.Fatalf("Fail returned %+v, error %v", e, err)
		}
		next := s.take(1)
		if len(next) != 1 || next[0].Key != "k001" || next[0].Attempt() != 2 || next[0].Epoch != 2 {
			t.Fatalf("took items %+v, want k001 at attempt 2", next)
		}
		s.settle(first[2], next[0])
		s.settle(s.take(10)...)
		s.is(batchengine.Completed, batchengine.Counts{Succeeded: 5, Accepted: 5}, 50, 0, 50)
		_, _, err = batchengine.Cancel(t.Context(), engine.Of(s.e), "b", "")
		s.code(err, fault.InvalidTransition)
		items, err := batchengine.Items(t.Context(), engine.Of(s.e), "b", 0, "", 10)
		if err != nil || len(items) != 5 || items[4].Decision != "accepted" || items[1].Attempts() != 2 || string(items[0].Output) != `"done"` {
			t.Fatalf("got items %+v, error %v", items, err)
		}
	})
}

func TestABatchIsCancelled(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		s.wallet(100)
		s.create(batchengine.New{MaxConcurrency: 3, Items: work(6, 10)})
		all := s.take(10)
		s.settle(all[0], all[1])
		if _, err := batchengine.Finalize(t.Context(), engine.Of(s.e), "b", []string{"k000"}, ""); err != nil {
			t.Fatal(err)
		}
		b, accepted, err := batchengine.Cancel(t.Context(), engine.Of(s.e), "b", "")
		if err != nil || !accepted || b.Status != batchengine.Running || !b.CancelRequested {
			t.Fatalf("cancel returned batch %+v, accepted %v, error %v", b, accepted, err)
		}
		if more := s.take(10); len(more) > 0 {
			t.Fatalf("took items %+v after the cancel", more)
		}
		if r, err := batchengine.Renew(t.Context(), engine.Of(s.e), all[2], time.Minute); err != nil || !r.CancelRequested {
			t.Fatalf("renewal returned %+v, error %v, want a cancel request", r, err)
		}
		s.maintain()
		s.is(batchengine.Cancelling, batchengine.Counts{Pending: 3, Succeeded: 1, Accepted: 1, Cancelled: 2}, 30, 20, 90)
		other := all[2]
		other.Epoch += 3
		for range 2 { // ends under a lease that never existed are refused
			_, err = batchengine.Settle(t.Context(), engine.Of(s.e), other, nil)
			s.code(err, fault.LeaseLost)
			s.maintain()
			s.is(batchengine.Cancelling, batchengine.Counts{Pending: 3, Succeeded: 1, Accepted: 1, Cancelled: 2}, 30, 20, 90)
		}
		_, err = batchengine.Settle(t.Context(), engine.Of(s.e), all[2], nil)
		s.code(err, fault.LeaseLost)
		_, accepted, err = batchengine.Cancel(t.Context(), engine.Of(s.e), "b", "")
		if err != nil || !accepted {
			t.Fatalf("second cancel: accepted %v, error %v, want true", accepted, err)
		}
		s.maintain() // the holder of the item has reported that it finished
		s.is(batchengine.Cancelled, batchengine.Counts{Succeeded: 1, Accepted: 1, Cancelled: 5}, 30, 20, 90)
		b, accepted, err = batchengine.Cancel(t.Context(), engine.Of(s.e), "b", "")
		if err != nil || accepted || b.Status != batchengine.Cancelled {
			t.Fatalf("cancel of a cancelled batch returned %+v, accepted %v, error %v", b, accepted, err)
		}
		holdfasttest.Advance(t, s.e, time.Hour)
		s.maintain() // the final check
		items, err := batchengine.Items(t.Context(), engine.Of(s.e), "b", 0, "cancelled", 10)
		if err != nil || len(items) != 5 {
			t.Fatalf("got cancelled items %+v, error %v, want 5", items, err)
		}
	})
}

func TestAnUntouchedBatchIsCancelledAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		s.wallet(100)
		s.create(batchengine.New{Items: work(3, 10)})
		b, accepted, err := batchengine.Cancel(t.Context(), engine.Of(s.e), "b", "")
		if err != nil || accepted || b.Status != batchengine.Cancelled {
			t.Fatalf("cancel returned batch %+v, accepted %v, error %v", b, accepted, err)
		}
		s.is(batchengine.Cancelled, batchengine.Counts{Cancelled: 3}, 0, 0, 100)
		if ledger, err := wallets.Ledger(t.Context(), engine.Of(s.e), "w", 0, 10); err != nil || len(ledger) != 1 {
			t.Fatalf("got ledger %+v, error %v, want 1 row", ledger, err)
		}
	})
}

func TestABatchWithoutFundsIsPausedUntilACredit(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		s.wallet(15)
		s.create(batchengine.New{MaxConcurrency: 8, Items: work(3, 10)})
		all := s.take(8)
		if len(all) != 1 {
			t.Fatalf("took %d items with funds for 1", len(all))
		}
		if more := s.take(8); len(more) > 0 {
			t.Fatalf("took items %+v, want none", more)
		}
		s.is(batchengine.Running, batchengine.Counts{Pending: 2, Running: 1}, 10, 0, 5) // the running item may still return its charge
		s.settle(all...)
		if more := s.take(8); len(more) > 0 {
			t.Fatalf("took items %+v, want none", more)
		}
		s.is(batchengine.Paused, batchengine.Counts{Pending: 2, Succeeded: 1}, 10, 0, 5)
		credit := func(points int64, reference string) {
			_, err := wallets.Post(t.Context(), engine.Of(s.e), wallets.PostArgs{Wallet: "w", Delta: points, Reason: "credit", Reference: reference})
			s.ok(err)
			s.ok(batchengine.Resume(t.Context(), engine.Of(s.e), "w"))
		}
		credit(4, "second")
		s.is(batchengine.Paused, batchengine.Counts{Pending: 2, Succeeded: 1}, 10, 0, 9)
		credit(1, "third")
		s.is(batchengine.Running, batchengine.Counts{Pending: 2, Succeeded: 1}, 10, 0, 10)
		s.settle(s.take(8)...)
		s.take(8)
		s.is(batchengine.Paused, batchengine.Counts{Pending: 1, Succeeded: 2}, 20, 0, 0)
		b, accepted, err := batchengine.Cancel(t.Context(), engine.Of(s.e), "b", "")
		if err != nil || !accepted {
			t.Fatalf("cancel returned batch %+v, error %v", b, err)
		}
		s.maintain()
		s.is(batchengine.Cancelled, batchengine.Counts{Cancelled: 3}, 20, 20, 20)
	})
}

func TestAnItemIsGivenUpAndReturned(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		s.wallet(20)
		s.create(batchengine.New{Items: work(2, 10), Attempts: 2, MaxCrashes: 3})
		for i := range 2 {
			x := s.take(1)
			e, err := batchengine.Fail(t.Context(), engine.Of(s.e), x[0], "no", 0, false)
			if want := []string{"waiting", "failed"}[i]; err != nil || e.State != want {
				t.Fatalf("Fail returned %+v, error %v", e, err)
			}
		}
		s.is(batchengine.Running, batchengine.Counts{Pending: 1, Failed: 1}, 10, 10, 20)
		for range 3 { // the other crashes every worker that takes it
			x := s.take(1)
			if len(x) != 1 || x[0].Key != "k001" {
				t.Fatalf("took items %+v, want k001", x)
			}
			if s.balance() != 10 {
				t.Fatalf("wallet balance is %d, want 10", s.balance())
			}
			holdfasttest.Advance(t, s.e, time.Minute)
			if n, err := batchengine.Expire(t.Context(), engine.Of(s.e), store.Partition{}); n != 1 || err != nil {
				t.Fatalf("released %d leases, error %v, want 1", n, err)
			}
			_, err := batchengine.Settle(t.Context(), engine.Of(s.e), x[0], nil)
			s.code(err, fault.LeaseLost)
			_, err = batchengine.Fail(t.Context(), engine.Of(s.e), x[0], "too late", 0, false)
			s.code(err, fault.LeaseLost)
		}
		s.is(batchengine.Running, batchengine.Counts{Failed: 2}, 20, 20, 20)
		s.maintain()
		s.is(batchengine.Completed, batchengine.Counts{Failed: 2}, 20, 20, 20)
	})
}

// TestAnItemIsItsHoldersAlone verifies that an item can be renewed and ended only under
// its own epoch and only until its lease has expired, even before a sweep has released
// it.
func TestAnItemIsItsHoldersAlone(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		s.wallet(100)
		s.create(batchengine.New{Items: work(1, 10)})
		x := s.take(1)[0]
		refused := func(why string, x batchengine.Taken) {
			t.Helper()
			for name, end := range map[string]func() error{
				"renew":   func() error { _, err := batchengine.Renew(t.Context(), engine.Of(s.e), x, time.Minute); return err },
				"settle":  func() error { _, err := batchengine.Settle(t.Context(), engine.Of(s.e), x, nil); return err },
				"fail":    func() error { _, err := batchengine.Fail(t.Context(), engine.Of(s.e), x, "no", 0, false); return err },
				"release": func() error { return batchengine.Release(t.Context(), engine.Of(s.e), x, 0) },
			} {
				if err := end(); fault.CodeOf(err) != fault.LeaseLost {
					t.Errorf("%s %s: got error %v, want LEASE_LOST", name, why, err)
				}
			}
		}
		for _, by := range []int64{-1, 1} {
			other := x
			other.Epoch += by
			refused("under another epoch", other)
		}
		holdfasttest.Advance(t, s.e, time.Minute)
		refused("too late", x)
		s.is(batchengine.Running, batchengine.Counts{Running: 1}, 10, 0, 90)
	})
}

func TestABatchIsMadeInPages(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		s.wallet(1000)
		s.create(batchengine.New{Open: true, MaxConcurrency: 100})
		all := work(30, 1)
		for range 2 { // each page is sent twice
			for i := 0; i < 30; i += 10 {
				_, err := batchengine.Add(t.Context(), engine.Of(s.e), "b", all[i:i+10])
				s.ok(err)
			}
		}
		if n, err := batchengine.Add(t.Context(), engine.Of(s.e), "b", append(work(2, 1), batchengine.Work{Key: "new"})); n != 1 || err != nil {
			t.Fatalf("added %d items, error %v, want 1", n, err)
		}
		_, err := batchengine.Add(t.Context(), engine.Of(s.e), "b", []batchengine.Work{{Key: "newer"}, {Key: "k001", Cost: 2}})
		s.code(err, fault.Conflict)
		s.settle(s.take(100)...)
		s.is(batchengine.Running, batchengine.Counts{Succeeded: 31}, 30, 0, 970)
		for range 2 {
			if b, err := batchengine.Seal(t.Context(), engine.Of(s.e), "b", ""); err != nil || b.Status != batchengine.Completed {
				t.Fatalf("Seal returned batch %+v, error %v, want it completed", b, err)
			}
		}
		_, err = batchengine.Add(t.Context(), engine.Of(s.e), "b", work(1, 1))
		s.code(err, fault.InvalidTransition)
		_, err = batchengine.Add(t.Context(), engine.Of(s.e), "x", work(1, 1))
		s.code(err, fault.NotFound)
	})
}

func TestBadBatches(t *testing.T) {
	each(t, func(t *testing.T, s fixture) {
		s.wallet(0)
		for name, n := range map[string]batchengine.New{
			"slash":    {ID: "a/b", Wallet: "w", Handler: "h"},
			"no id":    {Wallet: "w", Handler: "h"},
			"parallel": {ID: "b", Wallet: "w", Handler: "h", MaxConcurrency: -1},
			"twice":    {ID: "b", Wallet: "w", Handler: "h", Items: []batchengine.Work{{Key: "a"}, {Key: "a"}}},
			"cost":     {ID: "b", Wallet: "w", Handler: "h", Items: []batchengine.Work{{Key: "a", Cost: -1}}},
			"dear":     {ID: "b", Wallet: "w", Handler: "h", Items: []batchengine.Work{{Key: "a", Cost: batchengine.MaxCost + 1}}},
			"input":    {ID: "b", Wallet: "w", Handler: "h", Items: []batchengine.Work{{Key: "a", Input: []byte("{")}}},
			"key":      {ID: "b", Wallet: "w", Handler: "h", Items: []batchengine.Work{{}}},
		} {
			if _, err := batchengine.Create(t.Context(), engine.Of(s.e), n); fault.CodeOf(err) != fault.Validation {
				t.Errorf("%s: got error %v, want a validation error", name, err)
			}
		}
		if b, err := batchengine.Create(t.Context(), engine.Of(s.e), batchengine.New{ID: "e", Wallet: "w", Handler: "h"}); err != nil || b.Status != batchengine.Completed {
			t.Errorf("empty batch is %+v, error %v, want it completed", b, err)
		}
	})
}
