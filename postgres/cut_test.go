package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// TestCallsThroughACutConnectionAgree verifies that of 300 calls through a proxy that cuts
// connections right after a write was sent, before or after the server has executed it, each is
// reported as applied, with its result, or as not applied, and that the sums agree: callers one by
// one, and sixteen at once whose commands share statements.
func TestCallsThroughACutConnectionAgree(t *testing.T) {
	t.Parallel()
	t.Run("single", func(t *testing.T) { t.Parallel(); cutCalls(t, 1, testlevel.Pick(12, 150, 3000)) })
	t.Run("grouped", func(t *testing.T) { t.Parallel(); cutCalls(t, 16, testlevel.Pick(48, 320, 3200)) })
}

func cutCalls(t *testing.T, callers, calls int) {
	b, through := newBreaker(t, prepared(t))
	hf := openEngine(t, postgres.URL(through))
	for caller := range callers { // one stream each: commands on one row never share a statement
		mustAppend(t, hf, fmt.Sprint("s", caller), stream.None)
	}
	answers := make(chan cutAnswer, calls)
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for n := range calls / callers {
				if callers == 1 || rand.IntN(4) == 0 {
					b.arm("cut-", rand.IntN(2) == 0)
				}
				answers <- cutCall(t.Context(), hf, fmt.Sprint("s", caller), fmt.Sprintf("cut-%d-%d", caller, n))
			}
		})
	}
	group.Wait()
	close(answers)
	checkCut(t, hf, callers, answers)
	t.Logf("%d connections were cut in %d calls", b.broken.Load(), calls)
	if int(b.broken.Load()) < calls/20 {
		t.Errorf("only %d connections were cut, too few for the test to mean anything", b.broken.Load())
	}
}

// cutAnswer is the result that a caller got: of its event the version, of its sum the version and
// the value; -1 if nothing was applied.
type cutAnswer struct {
	stream, name   string
	last, sum, ver int64
	err            error
}

func cutCall(ctx context.Context, hf *holdfast.Engine, to, name string) cutAnswer {
	a := cutAnswer{stream: to, name: name, last: -1, sum: -1, ver: -1}
	last, err := stream.Append(ctx, hf, to, stream.Any, event(name))
	if err != nil {
		a.err = err
		return a
	}
	a.last = int64(last)
	sum, err := storetest.Inc(ctx, hf, storetest.IncArgs{Kind: "k", ID: "sum", Field: "cut-n", By: 1})
	if err != nil {
		a.err = err
		return a
	}
	a.sum, a.ver = sum.Value, sum.Version
	return a
}

func checkCut(t *testing.T, hf *holdfast.Engine, callers int, answers <-chan cutAnswer) {
	names, there := map[string][]string{}, 0
	for caller := range callers {
		name := fmt.Sprint("s", caller)
		names[name] = wantGapless(t, hf, name)
		there += len(names[name]) - 1
	}
	sums := map[int64]bool{}
	events, added := 0, 0
	for a := range answers {
		if a.err != nil {
			t.Errorf("%s: %v", a.name, a.err)
			continue
		}
		events, added = events+1, added+1
		if at := names[a.stream]; at[a.last] != a.name {
			t.Errorf("%s got version %d, which holds %s", a.name, a.last, at[a.last])
		}
		if sums[a.sum] || a.sum != a.ver+1 {
			t.Errorf("%s got sum %d at version %d, want version+1 and no duplicate (seen before: %v)", a.name, a.sum, a.ver, sums[a.sum])
		}
		sums[a.sum] = true
	}
	if there != events {
		t.Errorf("got %d events for %d calls", there, events)
	}
	s, err := scopestore.Get(t.Context(), engine.Of(hf), "k", "sum")
	if err != nil || s.Version != int64(added)-1 {
		t.Errorf("scope is at version %d after %d additions: %v", s.Version, added, err)
	}
}

// TestHeldRowsAndNamesHoldUpNobodyElse verifies that as many rows and names as there are slots,
// locked by transactions of the user's own and waited for by many callers, delay no other caller:
// others commit, read and update meanwhile.
func TestHeldRowsAndNamesHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf := openEngine(t, postgres.URL(url))
	var held []string
	for i := range 8 {
		name := fmt.Sprintf("row%d", i)
		mustAppend(t, hf, name, stream.None)
		held = append(held, name, fmt.Sprintf("name%d", i))
	}
	user, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := postgres.Join(hf, user)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range held { // eight rows that exist, and eight that are not committed yet
		mustAppend(t, tx, name, stream.Any)
	}
	var waiters sync.WaitGroup
	for i := range 48 {
		waiters.Go(func() {
			if _, err := stream.Append(t.Context(), hf, held[i%len(held)], stream.Any, event("late")); err != nil {
				t.Errorf("waiting caller: %v", err)
			}
		})
	}
	watcher := connect(t, url)
	testkit.Eventually(t, "several callers wait", func() bool { return waiting(t, watcher) >= 8 })
	for i := range 10 { // all of it while the locks are held
		name := fmt.Sprintf("free%d", i)
		mustAppend(t, hf, name, stream.None)
		mustAppend(t, hf, name, 0)
		if got, err := holdfast.Collect(stream.Read(t.Context(), hf, name, 0)); err != nil || len(got) != 2 {
			t.Fatalf("read %d events, want 2: %v", len(got), err)
		}
		if err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			_, err := stream.Append(ctx, tx, name, 1, event("in an update"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if waiting(t, watcher) == 0 {
		t.Error("no caller waited any more: the test proves nothing")
	}
	if err := user.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	waiters.Wait()
	for i, name := range held {
		if names := wantGapless(t, hf, name); len(names) != 5-i%2 {
			t.Errorf("stream %s has %v", name, names)
		}
	}
}
