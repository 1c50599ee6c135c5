package webhooksender

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

const (
	// maxConcurrent is the maximum number of messages that one node sends to one webhook at once.
	maxConcurrent = 8
	// busyDelay is the delay of a stream whose webhook is busy.
	busyDelay = time.Second
	// A webhook that does not respond is paused, for an increasing time.
	minPause = time.Second
	maxPause = time.Minute
	// maxRetryAfter is the maximum Retry-After that is honored.
	maxRetryAfter = time.Hour
)

// gate keeps one webhook from using all slots of a node: it admits few messages at once, one while
// the webhook does not respond, and none while the webhook is paused. While the gate is closed, no
// stream is taken for the webhook; a message that was taken before is deferred, which does not
// count as a failure. Each node has its own gates and learns the state of a webhook for itself.
type gate struct {
	now func() time.Time

	mu     sync.Mutex
	busy   int
	silent int       // consecutive calls without a response
	until  time.Time // end of the pause
}

// enter returns 0 if a message may be sent, or how long it must wait.
func (g *gate) enter() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := g.wait()
	if wait == 0 {
		g.busy++
	}
	return wait
}

// wait returns how long a message must wait. REQUIRES: mu
func (g *gate) wait() time.Duration {
	room := maxConcurrent
	if g.silent > 0 {
		room = 1
	}
	if left := g.until.Sub(g.now()); left > 0 {
		return left
	}
	if g.busy >= room {
		return clock.Jitter(busyDelay)
	}
	return 0
}

// open reports whether a message would be admitted.
func (g *gate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wait() == 0
}

// leave records the result of a message: whether it was sent, whether there was a response, and its
// Retry-After.
func (g *gate) leave(called, answered bool, retryAfter time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	switch {
	case !called:
	case answered:
		g.silent = 0
		g.pause(min(retryAfter, maxRetryAfter))
	default:
		g.silent++
		g.pause(min(minPause<<min(g.silent-1, 10), maxPause))
	}
}

// pause pauses the webhook for d. REQUIRES: mu
func (g *gate) pause(d time.Duration) {
	if until := g.now().Add(d); d > 0 && until.After(g.until) {
		g.until = until
	}
}

// resume ends the pause.
func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = time.Time{}
}
