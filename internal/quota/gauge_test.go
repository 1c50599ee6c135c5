package quota

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeCount counts what a test says, and how many times.
type fakeCount struct {
	found  int64
	err    error
	counts int
	pause  func() // nil for none
}

func (c *fakeCount) count(context.Context) (int64, error) {
	c.counts++
	found := c.found
	if c.pause != nil {
		c.pause()
	}
	return found, c.err
}

// take takes one, and fails unless it gets it, or is refused, as the test wants.
func (c *fakeCount) take(t *testing.T, g *gauge, limit int64, want bool) {
	t.Helper()
	if used, ok := g.take(t.Context(), 1, limit, t.Context(), c.count); ok != want {
		t.Fatalf("got %v with %d used, want %v", ok, used, want)
	}
}

// TestACountIsUsedForAWhile verifies that a count is used until it is too old, and then another one finds what others have written and what has
// ended.
func TestACountIsUsedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		c := &fakeCount{found: 3}
		for range 5 {
			c.take(t, &g, 10, true)
			g.end(1, true)
		}
		if c.counts != 1 {
			t.Fatalf("%d counts, want 1", c.counts)
		}
		time.Sleep(countEvery)
		c.found = 9 // other nodes have written
		c.take(t, &g, 10, true)
		c.take(t, &g, 10, false)
		g.end(1, false) // the first one failed
		c.take(t, &g, 10, true)
	})
}

// TestRefusedCallersShareACount verifies that many callers that are refused cost one count in a while, unless something has ended.
func TestRefusedCallersShareACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		c := &fakeCount{found: 10}
		for range 100 {
			c.take(t, &g, 10, false)
		}
		if c.counts != 1 {
			t.Errorf("%d counts for 100 refusals, want 1", c.counts)
		}
		c.found = 9
		g.free()
		c.take(t, &g, 10, true)
		g.end(1, true)
		c.found = 10
		c.take(t, &g, 10, false)
		time.Sleep(refuseFor)
		c.found = 0
		c.take(t, &g, 10, true)
	})
}

// TestACountThatBeganBeforeRefusesNobody verifies that a caller who has ended something is not refused by a count that began before.
func TestACountThatBeganBeforeRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		c := &fakeCount{found: 10, pause: func() { time.Sleep(time.Millisecond) }}
		go func() {
			if used, ok := g.take(t.Context(), 1, 10, t.Context(), c.count); ok {
				t.Errorf("got room with %d used", used)
			}
		}()
		synctest.Wait() // it has found ten, and is not over
		c.found = 9
		g.free()
		c.take(t, &g, 10, true)
		synctest.Wait()
	})
}

// TestAFailedCountRefusesNobody verifies that requests are accepted if their use cannot be counted.
func TestAFailedCountRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		c := &fakeCount{err: errors.New("the database is down")}
		for range 20 {
			c.take(t, &g, 10, true)
		}
		if c.counts != 1 {
			t.Errorf("%d counts, want 1: a database that is down is not asked again at once", c.counts)
		}
		c.err = nil
		time.Sleep(failFor)
		c.take(t, &g, 10, false) // the twenty are still writing
		for range 20 {
			g.end(1, false)
		}
		c.take(t, &g, 10, true)
	})
}

// TestCallersThatGoLeaveNothing verifies that callers whose contexts end while they wait for a count take and free the same: later ones are
// neither accepted beyond the limit nor refused below it.
func TestCallersThatGoLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		c := &fakeCount{found: 10, pause: func() { time.Sleep(time.Second) }}
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			go func() {
				if _, ok := g.take(ctx, 1, 10, t.Context(), c.count); ok {
					g.end(1, false)
				}
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if g.writing != 0 || g.accepted != 0 {
			t.Errorf("%d are writing and %d accepted, want none", g.writing, g.accepted)
		}
		for range 20 {
			c.take(t, &g, 10, false)
		}
	})
}

// TestWaitingCallersShareACount verifies that callers who come while others end something wait for two counts at most: the one that is in
// progress, and the one after it.
func TestWaitingCallersShareACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		c := &fakeCount{found: 10, pause: func() { time.Sleep(500 * time.Millisecond) }}
		ended := make(chan struct{})
		go func() {
			for range 1000 {
				g.free()
				time.Sleep(10 * time.Millisecond)
			}
			close(ended)
		}()
		var all sync.WaitGroup
		begun := time.Now()
		for range 100 {
			all.Go(func() {
				if _, ok := g.take(t.Context(), 1, 10, t.Context(), c.count); ok {
					t.Error("a caller got room that there is not")
				}
			})
		}
		all.Wait()
		if took := time.Since(begun); c.counts > 2 || took > 3*time.Second {
			t.Errorf("%d counts in %s, want two at most", c.counts, took)
		}
		<-ended
	})
}

// TestASlowFailureHoldsUpNobody verifies that callers do not wait one after another for counts that fail.
func TestASlowFailureHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		begun := time.Now()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				_, ok := g.take(t.Context(), 1, 10, t.Context(), func(ctx context.Context) (int64, error) {
					<-ctx.Done() // as a database that does not respond
					return 0, ctx.Err()
				})
				if !ok {
					t.Error("a caller was refused although nothing was counted")
				}
			})
		}
		all.Wait()
		if took := time.Since(begun); took > 2*countTimeout {
			t.Errorf("the callers waited for %s", took)
		}
	})
}
