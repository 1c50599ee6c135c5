package quota

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// gauge knows how much of one quota a workspace uses: what a count has found, what this node has accepted since then, and what it is just
// writing. The sum is never less than what this node knows of, but it may be more, because what has ended since then counts until the next count.
// Therefore a request is refused only if a count alone has found too much, or by a count that began after the request came.
type gauge struct {
	mu       sync.Mutex
	counted  int64
	at       time.Time     // of the count; zero before the first one
	took     time.Duration // by the count
	accepted int64         // after the count
	writing  int64
	counting chan struct{} // closed when the count in progress is over; nil if there is none
	frees    int           // requests that may have ended something
	seen     int           // frees before the count began
}

const (
	// countEvery is how long a count is used. A count that took long is used for a hundred times as long as it took.
	countEvery = 10 * time.Second
	// refuseFor is the same for refusals, with ten times as long, so that refused callers do not keep the database busy.
	refuseFor = 100 * time.Millisecond
)

// take takes n, if there is room. count returns what is used. If it fails, n is taken: a quota must not make a request fail that
// would succeed.
func (g *gauge) take(ctx context.Context, n, limit int64, count func(context.Context) (int64, error)) (used int64, ok bool) {
	for {
		g.mu.Lock()
		switch {
		case g.usable() && g.used()+n <= limit:
			g.writing += n
			g.mu.Unlock()
			return 0, true
		case g.refuses() && g.counted+n > limit:
			used = g.counted
			g.mu.Unlock()
			return used, false
		case g.counting == nil:
			return g.countFor(ctx, n, limit, count)
		}
		over := g.counting
		g.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return 0, true // the request fails by itself
		}
	}
}

// countFor counts, and then takes n if there is room. REQUIRES: mu, which it releases.
func (g *gauge) countFor(ctx context.Context, n, limit int64, count func(context.Context) (int64, error)) (used int64, ok bool) {
	end := g.begin()
	g.mu.Unlock()
	found, err := count(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	end(found, err)
	if err == nil && g.used()+n > limit {
		return max(found, min(g.used(), limit)), false
	}
	g.writing += n
	return 0, true
}

// begin begins a count, and returns the function that ends it. REQUIRES: mu, for both
func (g *gauge) begin() (end func(found int64, err error)) {
	over, before, frees, begun := make(chan struct{}), g.accepted, g.frees, clock.OfMachine()
	g.counting = over
	return func(found int64, err error) {
		g.counting = nil
		close(over)
		if err != nil {
			return
		}
		g.accepted -= before // it is in the count
		g.counted, g.seen, g.at = found, frees, clock.OfMachine()
		g.took = g.at.Sub(begun)
	}
}

// used returns what is used. REQUIRES: mu
func (g *gauge) used() int64 { return g.counted + g.accepted + g.writing }

// usable reports whether the count is new enough to accept requests. REQUIRES: mu
func (g *gauge) usable() bool {
	return !g.at.IsZero() && clock.OfMachine().Sub(g.at) < max(countEvery, 100*g.took)
}

// refuses reports whether the count is new enough to refuse requests. REQUIRES: mu
func (g *gauge) refuses() bool {
	return !g.at.IsZero() && g.seen == g.frees && clock.OfMachine().Sub(g.at) < max(refuseFor, 10*g.took)
}

// free notes that a request may have ended or deleted something, so that a caller who did that is not refused by the count before it.
func (g *gauge) free() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.frees++
}

// end ends a write that take has accepted.
func (g *gauge) end(n int64, written bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writing -= n
	if written {
		g.accepted += n
	}
}
