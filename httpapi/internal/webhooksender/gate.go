package webhooksender

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

const (
	// most is how many messages are sent to one webhook at once, by one node.
	most = 8
	// crowded is how long a stream waits whose webhook is busy.
	crowded = time.Second
	// A webhook that gave no answer is left alone for a while, that grows.
	shortestRest = time.Second
	longestRest  = time.Minute
	// longestAsked is how long a webhook can ask to be left alone.
	longestAsked = time.Hour
)

// gate keeps one webhook from taking up all the room on a node: few messages are on
// their way to it at once, one while it gives no answer, and none while it rests. No
// stream is taken for it while it is shut; a message that was taken before, and does
// not get through, is deferred, which is no failure of it. What a gate knows is this
// node's: another one finds out for itself.
type gate struct {
	now func() time.Time

	mu     sync.Mutex
	busy   int
	silent int       // calls without an answer, in a row
	until  time.Time // it rests
}

// enter returns 0 for a message that may be sent, or how long it is to wait.
func (g *gate) enter() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := g.wait()
	if wait == 0 {
		g.busy++
	}
	return wait
}

// wait is how long a message is to wait. REQUIRES: mu
func (g *gate) wait() time.Duration {
	room := most
	if g.silent > 0 {
		room = 1
	}
	switch left := g.until.Sub(g.now()); {
	case left > longestAsked: // the clock was put back
		g.until = time.Time{}
	case left > 0:
		return left
	}
	if g.busy >= room {
		return clock.Jitter(crowded)
	}
	return 0
}

// open says whether a message would get through.
func (g *gate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wait() == 0
}

// leave notes what became of a message: whether it was sent at all, whether there was
// an answer, and how long that asks to be left alone.
func (g *gate) leave(called, answered bool, asked time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	switch {
	case !called:
	case answered:
		g.silent = 0
		g.rest(min(asked, longestAsked))
	default:
		g.silent++
		g.rest(min(shortestRest<<min(g.silent-1, 10), longestRest))
	}
}

// rest lets nothing through for a while. REQUIRES: mu
func (g *gate) rest(d time.Duration) {
	if until := g.now().Add(d); d > 0 && until.After(g.until) {
		g.until = until
	}
}
