package quota

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// counter counts what a test says, and how many times.
type counter struct {
	found  int64
	err    error
	counts int
	pause  func() // nil for none
}

func (c *counter) count(context.Context) (int64, error) {
	c.counts++
	found := c.found
	if c.pause != nil {
		c.pause()
	}
	return found, c.err
}

// take takes one, and fails unless it gets it, or is refused, as the test wants.
func (c *counter) take(t *testing.T, g *gauge, limit int64, want bool) {
	t.Helper()
	if used, ok := g.take(t.Context(), 1, limit, c.count); ok != want {
		t.Fatalf("got %v with %d used, want %v", ok, used, want)
	}
}

// TestACountIsUsedForAWhile verifies that a count is used until it is too old, and then another one finds what others have written and what has
// ended.
func TestACountIsUsedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		c := &counter{found: 3}
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
		c := &counter{found: 10}
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
		c := &counter{found: 10, pause: func() { time.Sleep(time.Millisecond) }}
		go func() {
			if used, ok := g.take(t.Context(), 1, 10, c.count); ok {
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
		c := &counter{err: errors.New("the database is down")}
		for range 20 {
			c.take(t, &g, 10, true)
		}
		c.err = nil
		c.take(t, &g, 10, false) // the twenty are still writing
		for range 20 {
			g.end(1, false)
		}
		c.take(t, &g, 10, true)
	})
}
