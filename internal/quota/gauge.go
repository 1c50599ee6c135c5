package quota

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// gauge knows how much of one quota a workspace uses: what a count has found, what this node has accepted since then, and what it is just
// writing. The sum is never less than what this node knows of, but it may be more: what has ended since the count is still in it, and what was
// written during the count may be in it twice. Therefore only two counts refuse a request: one that has found too much by itself and is young,
// if nothing has ended since it began; and one that began after the request came.
//
// All callers that wait share a count. It has its own context, because it must not end with one caller's, and its own time limit.
type gauge struct {
	mu       sync.Mutex
	counted  int64
	at       time.Time     // of the count; zero before the first one
	took     time.Duration // by the count, or by the one that failed
	failed   time.Time     // when the last count failed; zero if it did not
	accepted int64         // after the count
	writing  int64
	begun    int           // counts
	last     int           // which of them counted
	counting chan struct{} // closed when the count in progress is over; nil if there is none
	frees    int           // requests that may have ended something
	seen     int           // frees before the count began
}

const (
	// countEvery is how long a count is used. A count that took long is used for a hundred times as long as it took.
	countEvery = 10 * time.Second
	// refuseFor is the same for refusals, with ten times as long, so that refused callers do not keep the database busy.
	refuseFor = 100 * time.Millisecond
	// failFor is how long everything is accepted after a count that failed, and ten times as long as it took.
	failFor = time.Second
	// countTimeout limits a count.
	countTimeout = 2 * time.Second
)

// counter counts what is used.
type counter func(context.Context) (int64, error)

// take takes n, if there is room. If it cannot be counted, or the caller has gone, n is taken: a quota must not make a request fail that would
// succeed, and one whose caller has gone may have been written.
func (g *gauge) take(ctx context.Context, n, limit int64, life context.Context, count counter) (used int64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for came := g.begun; ; {
		fits, young := g.used()+n <= limit, g.counted+n > limit && g.refuses()
		switch {
		case fits && g.usable(), g.fails(), ctx.Err() != nil:
			g.writing += n
			return g.used(), true
		case young, !fits && g.last > came:
			return max(g.counted, min(g.used(), limit)), false
		}
		g.await(ctx, life, count)
	}
}

// get returns what is used, from a count of the last second or a new one. ok is false if it cannot be counted.
func (g *gauge) get(ctx, life context.Context, count counter) (used int64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for came := g.begun; g.last <= came && (g.at.IsZero() || g.seen != g.frees || clock.OfMachine().Sub(g.at) > time.Second); {
		if g.fails() || ctx.Err() != nil {
			return 0, false
		}
		g.await(ctx, life, count)
	}
	return g.counted + g.accepted, true
}

// await waits for the count in progress, or for a new one. REQUIRES: mu, which it releases meanwhile.
func (g *gauge) await(ctx, life context.Context, count counter) {
	if g.counting == nil {
		go g.count(life, count, g.begin())
	}
	over := g.counting
	g.mu.Unlock()
	defer g.mu.Lock()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// count counts. Between counts, there is at least as much time as one takes.
func (g *gauge) count(life context.Context, count counter, end func(int64, error)) {
	g.mu.Lock()
	rest := g.took - clock.OfMachine().Sub(g.at)
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(life, countTimeout)
	defer cancel()
	err := clock.Wait(ctx, rest)
	found := int64(0)
	if err == nil {
		found, err = count(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	end(found, err)
}

// begin begins a count, and returns the function that ends it. REQUIRES: mu, for both
func (g *gauge) begin() (end func(found int64, err error)) {
	g.begun++
	over, before, frees, which, begun := make(chan struct{}), g.accepted, g.frees, g.begun, clock.OfMachine()
	g.counting = over
	return func(found int64, err error) {
		g.counting = nil
		close(over)
		now := clock.OfMachine()
		g.took = now.Sub(begun)
		if err != nil {
			g.failed = now
			return
		}
		g.accepted -= before // it is in the count
		g.counted, g.seen, g.at, g.last, g.failed = found, frees, now, which, time.Time{}
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

// fails reports whether a count has just failed. REQUIRES: mu
func (g *gauge) fails() bool {
	return !g.failed.IsZero() && clock.OfMachine().Sub(g.failed) < max(failFor, 10*g.took)
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
