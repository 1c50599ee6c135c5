package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

// take begins the request "k" for a new holder, with the fingerprint "print".
func take(ctx context.Context, d store.Doer) (idempotency.Request, bool, error) {
	return takeAs(ctx, d, store.NewID().String(), "print")
}

func takeAs(ctx context.Context, d store.Doer, holder, print string) (idempotency.Request, bool, error) {
	return idempotency.Take(ctx, d, idempotency.TakeArgs{Key: "k", Fingerprint: print, Holder: holder, Lease: time.Minute})
}

// leaseAt returns the lease of an epoch on the request "k".
func leaseAt(epoch int64) idempotency.Lease { return idempotency.Lease{Key: "k", Epoch: epoch} }

// mustTake takes the request and checks that the caller got it.
func mustTake(t *testing.T, d store.Doer) idempotency.Request {
	t.Helper()
	q, mine, err := take(context.Background(), d)
	if err != nil || !mine {
		t.Fatalf("take failed: request %+v, error %v", q, err)
	}
	return q
}

// mustFind takes the request and checks that another holder has it, in a state.
func mustFind(t *testing.T, d store.Doer, want idempotency.State) idempotency.Request {
	t.Helper()
	q, mine, err := take(context.Background(), d)
	if err != nil || mine || q.State != want {
		t.Fatalf("got request %+v (taken %t), error %v, want state %s", q, mine, err, want)
	}
	return q
}

func wantNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCheckKey(t *testing.T) {
	for _, key := range []string{"k", "a b", "~!", strings.Repeat("x", 255)} {
		wantNil(t, idempotency.CheckKey(key))
	}
	for _, key := range []string{"", " ", " k", "k ", "a\tb", "a\x00", "ä", "a\x7f", strings.Repeat("x", 256)} {
		testkit.WantCode(t, idempotency.CheckKey(key), fault.Validation)
	}
}

// TestLife verifies the life of a request that is held and finished, and that each verb recognizes
// its repetition.
func TestLife(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		q, mine, err := takeAs(ctx, engine.Of(hf), "me", "print")
		if err != nil || !mine || q.State != idempotency.Held || q.Holder != "me" || q.Key != "k" || q.RetryAfter <= 0 || q.RetryAfter > time.Minute {
			t.Fatalf("got request %+v, taken %t, error %v", q, mine, err)
		}
		again, mine, err := takeAs(ctx, engine.Of(hf), "me", "print")
		if err != nil || !mine || again.Epoch != q.Epoch || !again.Until.Equal(q.Until) {
			t.Errorf("second take by the holder returned %+v, taken %t, error %v, want %+v", again, mine, err, q)
		}
		held := mustFind(t, engine.Of(hf), idempotency.Held)
		if held.Holder != "me" || held.RetryAfter <= 0 {
			t.Errorf("got held request %+v", held)
		}
		until, err := leaseAt(q.Epoch).Renew(ctx, engine.Of(hf), time.Hour)
		if err != nil || until.Sub(q.Until) < 58*time.Minute {
			t.Errorf("renewed until %s, before until %s, error %v", until, q.Until, err)
		}
		testkit.WantCode(t, leaseAt(q.Epoch).Finish(ctx, engine.Of(hf), 99, nil), fault.Validation)
		testkit.WantCode(t, leaseAt(q.Epoch).Finish(ctx, engine.Of(hf), 200, []byte("{")), fault.Validation)
		wantNil(t, leaseAt(q.Epoch).Finish(ctx, engine.Of(hf), 201, []byte(`{"a": "\u0000"}`)))
		wantNil(t, leaseAt(q.Epoch).Finish(ctx, engine.Of(hf), 201, []byte(`{"a": "\u0000"}`)))
		testkit.WantCode(t, leaseAt(q.Epoch).Finish(ctx, engine.Of(hf), 200, []byte(`{"a": "\u0000"}`)), fault.LeaseLost)
		testkit.WantCode(t, leaseAt(q.Epoch).Finish(ctx, engine.Of(hf), 201, nil), fault.LeaseLost)
		testkit.WantCode(t, leaseAt(q.Epoch).Point(ctx, engine.Of(hf), "o", ""), fault.LeaseLost)
		_, err = leaseAt(q.Epoch).Renew(ctx, engine.Of(hf), time.Hour)
		testkit.WantCode(t, err, fault.LeaseLost)
		wantNil(t, leaseAt(q.Epoch).Free(ctx, engine.Of(hf)))
		done := mustFind(t, engine.Of(hf), idempotency.Done)
		if done.Status != 201 || string(done.Answer) != `{"a": "\u0000"}` || done.Epoch != q.Epoch || done.Holder != "" || !done.Until.IsZero() || done.RetryAfter != 0 {
			t.Errorf("got done request %+v", done)
		}
		got, err := idempotency.Get(ctx, engine.Of(hf), "k")
		if err != nil || fmt.Sprint(got) != fmt.Sprint(done) {
			t.Errorf("got request %+v, error %v, want %+v", got, err, done)
		}
		if _, mine, err := take(holdfast.InWorkspace(ctx, "other"), engine.Of(hf)); err != nil || !mine {
			t.Errorf("the same key in another workspace cannot be taken: %v", err)
		}
		if q, err := idempotency.Get(ctx, engine.Of(hf), "nothing"); err != nil || q.State != "" {
			t.Errorf("unknown key: got request %+v, error %v", q, err)
		}
	})
}

// TestTimeIsOver verifies that a response is stored for 24 hours, and that the key is then free,
// also for another request.
func TestTimeIsOver(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		q := mustTake(t, engine.Of(hf))
		wantNil(t, leaseAt(q.Epoch).Finish(ctx, engine.Of(hf), 200, nil))
		holdfasttest.Advance(t, hf, idempotency.TTL-time.Minute)
		mustFind(t, engine.Of(hf), idempotency.Done)
		holdfasttest.Advance(t, hf, time.Minute)
		if q, err := idempotency.Get(ctx, engine.Of(hf), "k"); err != nil || q.State != "" {
			t.Errorf("after the retention: got request %+v, error %v", q, err)
		}
		next, mine, err := takeAs(ctx, engine.Of(hf), "me", "another")
		if err != nil || !mine || next.Epoch != q.Epoch+1 || next.Fingerprint != "another" || next.Status != 0 || !next.CreatedAt.After(q.CreatedAt) {
			t.Errorf("take after the retention: got request %+v, taken %t, error %v", next, mine, err)
		}
		wantNil(t, leaseAt(next.Epoch).Finish(ctx, engine.Of(hf), 200, nil))
	})
}

// TestTakesAtOnce verifies that of 20 concurrent Takes of a request one gets it, and the others
// find it held.
func TestTakesAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		var mine atomic.Int64
		_, lost := holdfasttest.Race(t, 20, func(int) error {
			q, yes, err := take(context.Background(), engine.Of(hf))
			if yes {
				mine.Add(1)
			} else if err == nil && q.State != idempotency.Held {
				err = fmt.Errorf("got request %+v, want it held", q)
			}
			return err
		})
		if mine.Load() != 1 || len(lost) > 0 {
			t.Errorf("%d callers took the key, want 1; %v", mine.Load(), errors.Join(lost...))
		}
	})
}

// inOneTransaction is a request in one transaction: it appends an event.
func inOneTransaction(ctx context.Context, hf *holdfast.Engine, holder string) (q idempotency.Request, mine bool, err error) {
	err = hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		if q, mine, err = takeAs(ctx, store.DoerOf(tx), holder, "print"); err != nil || !mine {
			return err
		}
		if _, err := stream.Append(ctx, tx, "done", stream.Any, stream.Event{Name: "done"}); err != nil {
			return err
		}
		return leaseAt(q.Epoch).Finish(ctx, store.DoerOf(tx), 200, []byte(`"well"`))
	})
	return q, mine, err
}

func wantEvents(t *testing.T, hf *holdfast.Engine, want int) {
	t.Helper()
	all, err := holdfast.Collect(stream.Read(context.Background(), hf, "done", 0))
	if err != nil || len(all) != want {
		t.Errorf("executed %d times, want %d; %v", len(all), want, err)
	}
}

// TestTransactionsAtOnce verifies that of 20 transactions that take, do and finish a request, one
// does it, and that the others wait and find its response.
func TestTransactionsAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		var mine atomic.Int64
		_, lost := holdfasttest.Race(t, 20, func(int) error {
			q, yes, err := inOneTransaction(context.Background(), hf, store.NewID().String())
			if err == nil && yes {
				mine.Add(1)
			} else if err == nil && (q.State != idempotency.Done || string(q.Answer) != `"well"`) {
				err = fmt.Errorf("got request %+v, want it done", q)
			}
			return err
		})
		if mine.Load() != 1 || len(lost) > 0 {
			t.Errorf("%d callers took the key, want 1; %v", mine.Load(), errors.Join(lost...))
		}
		wantEvents(t, hf, 1)
	})
}

// TestRolledBack verifies that a transaction that is rolled back leaves nothing: a waiting one gets
// the request.
func TestRolledBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		refused := errors.New("refused")
		second := make(chan error)
		err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			mustTake(t, store.DoerOf(tx))
			go func() {
				_, mine, err := inOneTransaction(context.Background(), hf, "second")
				if err == nil && !mine {
					err = errors.New("the second caller did not take the key")
				}
				second <- err
			}()
			return refused
		})
		if !errors.Is(err, refused) {
			t.Error(err)
		}
		wantNil(t, <-second)
		wantEvents(t, hf, 1)
	})
}

// TestRunOut verifies that the holder of an expired lease can write nothing, whether another holder
// has the request by then or not, and that another takes it over under the next epoch.
func TestRunOut(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		writesNothing := func(epoch int64) {
			t.Helper()
			testkit.WantCode(t, leaseAt(epoch).Finish(ctx, engine.Of(hf), 200, nil), fault.LeaseLost)
			testkit.WantCode(t, leaseAt(epoch).Answer(ctx, engine.Of(hf), 200, nil), fault.LeaseLost)
			testkit.WantCode(t, leaseAt(epoch).Point(ctx, engine.Of(hf), "o", ""), fault.LeaseLost)
			testkit.WantCode(t, commit(ctx, hf, epoch), fault.LeaseLost)
			_, err := leaseAt(epoch).Renew(ctx, engine.Of(hf), time.Hour)
			testkit.WantCode(t, err, fault.LeaseLost)
			wantNil(t, leaseAt(epoch).Free(ctx, engine.Of(hf)))
		}
		old := mustTake(t, engine.Of(hf))
		holdfasttest.Advance(t, hf, 2*time.Minute)
		writesNothing(old.Epoch)
		if q, mine, err := takeAs(ctx, engine.Of(hf), "another", "another"); err != nil || mine || q.Fingerprint != "print" || q.RetryAfter != 0 {
			t.Errorf("request with another fingerprint got %+v, taken %t, error %v", q, mine, err)
		}
		next := mustTake(t, engine.Of(hf))
		if next.Epoch != old.Epoch+1 || !next.CreatedAt.Equal(old.CreatedAt) {
			t.Errorf("got request %+v after %+v, want the next epoch", next, old)
		}
		writesNothing(old.Epoch)
		wantNil(t, leaseAt(next.Epoch).Finish(ctx, engine.Of(hf), 202, nil))
		writesNothing(old.Epoch)
		if done := mustFind(t, engine.Of(hf), idempotency.Done); done.Status != 202 {
			t.Errorf("got request %+v, want status 202", done)
		}
	})
}

func commit(ctx context.Context, hf *holdfast.Engine, epoch int64) error {
	return hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		return leaseAt(epoch).Commit(ctx, store.TxOf(tx))
	})
}

// TestTakeOverAgainstFinish verifies that an old holder that finishes while others take over its
// request is refused, and that one of them gets it.
func TestTakeOverAgainstFinish(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		old := mustTake(t, engine.Of(hf))
		for range 5 {
			holdfasttest.Advance(t, hf, 2*time.Minute)
			var epoch, mine atomic.Int64
			_, lost := holdfasttest.Race(t, 8, func(i int) error {
				if i%2 == 0 {
					return leaseAt(old.Epoch).Finish(context.Background(), engine.Of(hf), 200, nil)
				}
				q, yes, err := take(context.Background(), engine.Of(hf))
				if yes {
					mine.Add(1)
					epoch.Store(q.Epoch)
				}
				return err
			})
			for _, err := range lost {
				testkit.WantCode(t, err, fault.LeaseLost)
			}
			if len(lost) != 4 || mine.Load() != 1 || epoch.Load() != old.Epoch+1 {
				t.Fatalf("%d callers were refused, %d took the key, epoch %d after %d", len(lost), mine.Load(), epoch.Load(), old.Epoch)
			}
			old.Epoch = epoch.Load()
		}
	})
}

// TestFinishAgainstTransactions verifies that a holder that commits and concurrent Takes, also in
// their own transactions, all see one outcome.
func TestFinishAgainstTransactions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		q := mustTake(t, engine.Of(hf))
		_, lost := holdfasttest.Race(t, 8, func(i int) error {
			if i == 0 {
				return hf.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) error {
					if err := leaseAt(q.Epoch).Commit(ctx, store.TxOf(tx)); err != nil {
						return err
					}
					_, err := stream.Append(ctx, tx, "done", stream.Any, stream.Event{Name: "done"})
					return err
				})
			}
			_, mine, err := inOneTransaction(context.Background(), hf, store.NewID().String())
			if err == nil && mine {
				err = errors.New("the key was already taken")
			}
			return err
		})
		if len(lost) > 0 {
			t.Error(errors.Join(lost...))
		}
		wantEvents(t, hf, 1)
	})
}

// TestFreed verifies that a freed key is free for any request, and that calls of the old holder do
// not affect the next one.
func TestFreed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		seen := map[int64]bool{}
		for range 20 {
			q := mustTake(t, engine.Of(hf))
			if seen[q.Epoch] {
				t.Fatalf("two holders have epoch %d", q.Epoch)
			}
			seen[q.Epoch] = true
			wantNil(t, leaseAt(q.Epoch).Free(ctx, engine.Of(hf)))
			wantNil(t, leaseAt(q.Epoch).Free(ctx, engine.Of(hf)))
			testkit.WantCode(t, leaseAt(q.Epoch).Finish(ctx, engine.Of(hf), 200, nil), fault.LeaseLost)
		}
		next := mustTake(t, engine.Of(hf))
		for epoch := range seen {
			testkit.WantCode(t, leaseAt(epoch).Finish(ctx, engine.Of(hf), 200, nil), fault.LeaseLost)
			wantNil(t, leaseAt(epoch).Free(ctx, engine.Of(hf)))
		}
		wantNil(t, leaseAt(next.Epoch).Finish(ctx, engine.Of(hf), 200, nil))
	})
}

// TestFreeAgainstTake verifies that a Take concurrent with Free gets the request or finds it held,
// and that two holders never have it at once.
func TestFreeAgainstTake(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		for range 5 {
			old := mustTake(t, engine.Of(hf))
			var mine, epoch atomic.Int64
			_, lost := holdfasttest.Race(t, 8, func(i int) error {
				if i == 0 {
					return leaseAt(old.Epoch).Free(ctx, engine.Of(hf))
				}
				q, yes, err := take(ctx, engine.Of(hf))
				if yes {
					mine.Add(1)
					epoch.Store(q.Epoch)
				}
				return err
			})
			if len(lost) > 0 || mine.Load() > 1 {
				t.Fatalf("%d callers took the key, want at most 1; %v", mine.Load(), errors.Join(lost...))
			}
			wantNil(t, leaseAt(epoch.Load()).Free(ctx, engine.Of(hf)))
		}
	})
}

// TestCommit verifies that a committed request is done, that committing it again is refused, and
// that its response is stored once.
func TestCommit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		q := mustTake(t, engine.Of(hf))
		testkit.WantCode(t, leaseAt(q.Epoch).Answer(ctx, engine.Of(hf), 200, nil), fault.LeaseLost)
		wantNil(t, commit(ctx, hf, q.Epoch))
		testkit.WantCode(t, commit(ctx, hf, q.Epoch), fault.Conflict)
		wantNil(t, leaseAt(q.Epoch).Free(ctx, engine.Of(hf)))
		if done := mustFind(t, engine.Of(hf), idempotency.Done); !done.Answerless() || done.Answer != nil || done.RetryAfter <= 0 {
			t.Errorf("committed request without a response: %+v", done)
		}
		holdfasttest.Advance(t, hf, time.Hour) // no lease is needed
		if done := mustFind(t, engine.Of(hf), idempotency.Done); !done.Answerless() || done.RetryAfter != 0 {
			t.Errorf("committed request without a response, after its lease: %+v", done)
		}
		wantNil(t, leaseAt(q.Epoch).Answer(ctx, engine.Of(hf), 200, []byte("1")))
		wantNil(t, leaseAt(q.Epoch).Answer(ctx, engine.Of(hf), 200, []byte("1")))
		testkit.WantCode(t, leaseAt(q.Epoch).Answer(ctx, engine.Of(hf), 200, []byte("2")), fault.LeaseLost)
		if done := mustFind(t, engine.Of(hf), idempotency.Done); done.Status != 200 || string(done.Answer) != "1" || !done.Until.IsZero() {
			t.Errorf("request with a stored response: %+v", done)
		}
	})
}

// TestPoint verifies that a request points to one operation, and that of several concurrent
// Repoints one succeeds.
func TestPoint(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		q := mustTake(t, engine.Of(hf))
		if yes, err := idempotency.Repoint(ctx, engine.Of(hf), idempotency.RepointArgs{Key: "k", Fingerprint: "print", From: "", Operation: "o", Subject: ""}); err != nil || yes {
			t.Errorf("Repoint of a held request returned %t, error %v", yes, err)
		}
		wantNil(t, leaseAt(q.Epoch).Point(ctx, engine.Of(hf), "first", "invoice/i"))
		wantNil(t, leaseAt(q.Epoch).Point(ctx, engine.Of(hf), "first", "invoice/i"))
		testkit.WantCode(t, leaseAt(q.Epoch).Point(ctx, engine.Of(hf), "other", "invoice/i"), fault.LeaseLost)
		if p := mustFind(t, engine.Of(hf), idempotency.Operation); p.Operation != "first" || p.Subject != "invoice/i" || p.Holder != "" {
			t.Errorf("got request %+v", p)
		}
		for _, wrong := range [][2]string{{"print", "none"}, {"another", "first"}} {
			if yes, err := idempotency.Repoint(ctx, engine.Of(hf), idempotency.RepointArgs{Key: "k", Fingerprint: wrong[0], From: wrong[1], Operation: "o", Subject: ""}); err != nil || yes {
				t.Errorf("%v: Repoint returned %t, error %v, want false", wrong, yes, err)
			}
		}
		var won atomic.Int64
		_, lost := holdfasttest.Race(t, 20, func(i int) error {
			name := fmt.Sprint("o", i)
			yes, err := idempotency.Repoint(ctx, engine.Of(hf), idempotency.RepointArgs{Key: "k", Fingerprint: "print", From: "first", Operation: name, Subject: "invoice/j"})
			if yes && err == nil {
				won.Add(1)
				if yes, err = idempotency.Repoint(ctx, engine.Of(hf), idempotency.RepointArgs{Key: "k", Fingerprint: "print", From: "first", Operation: name, Subject: "invoice/j"}); err == nil && !yes {
					err = errors.New("the repeated request is not recognized")
				}
			}
			return err
		})
		if won.Load() != 1 || len(lost) > 0 {
			t.Errorf("Repoint succeeded %d times, want 1; %v", won.Load(), errors.Join(lost...))
		}
		if p := mustFind(t, engine.Of(hf), idempotency.Operation); p.Subject != "invoice/j" {
			t.Errorf("got request %+v, want subject invoice/j", p)
		}
	})
}

// TestPrune verifies that requests are deleted when their TTL is over, in all workspaces, unless
// they are held.
func TestPrune(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		prune := func(want int) {
			t.Helper()
			if n, err := idempotency.PruneAll(ctx, engine.Of(hf)); err != nil || n != want {
				t.Errorf("pruned %d requests, want %d; %v", n, want, err)
			}
		}
		for _, w := range []string{"a", "b"} {
			in := holdfast.InWorkspace(ctx, w)
			q, _, err := take(in, engine.Of(hf))
			wantNil(t, err)
			wantNil(t, leaseAt(q.Epoch).Finish(in, engine.Of(hf), 200, nil))
		}
		mustTake(t, engine.Of(hf)) // and crashes
		prune(0)
		holdfasttest.Advance(t, hf, idempotency.TTL-time.Hour)
		long, mine, err := idempotency.Take(ctx, engine.Of(hf), idempotency.TakeArgs{Key: "long", Fingerprint: "f", Holder: "h", Lease: 24 * time.Hour})
		if err != nil || !mine {
			t.Fatal(err)
		}
		holdfasttest.Advance(t, hf, time.Hour)
		prune(3)
		prune(0)
		holdfasttest.Advance(t, hf, 22*time.Hour)
		_, err = idempotency.Lease{Key: "long", Epoch: long.Epoch}.Renew(ctx, engine.Of(hf), 24*time.Hour)
		wantNil(t, err)
		holdfasttest.Advance(t, hf, 2*time.Hour)
		prune(0) // its TTL is over, but it is held
		wantNil(t, idempotency.Lease{Key: "long", Epoch: long.Epoch}.Finish(ctx, engine.Of(hf), 200, nil))
	})
}

// TestPruneAgainstTake verifies that a request that is taken again after its TTL stays, however
// many Prunes run concurrently.
func TestPruneAgainstTake(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		for range 5 {
			var mine, epoch atomic.Int64
			_, lost := holdfasttest.Race(t, 12, func(i int) error {
				if i%2 == 0 {
					_, err := idempotency.PruneAll(ctx, engine.Of(hf))
					return err
				}
				q, yes, err := take(ctx, engine.Of(hf))
				if yes {
					mine.Add(1)
					epoch.Store(q.Epoch)
				}
				return err
			})
			if len(lost) > 0 || mine.Load() != 1 {
				t.Fatalf("%d callers took the key, want 1; %v", mine.Load(), errors.Join(lost...))
			}
			wantNil(t, leaseAt(epoch.Load()).Finish(ctx, engine.Of(hf), 200, nil))
			holdfasttest.Advance(t, hf, idempotency.TTL)
		}
	})
}
