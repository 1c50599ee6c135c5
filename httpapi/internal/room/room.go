// Package room bounds the memory that large requests and responses use together.
package room

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// Room bounds the memory that large requests and responses use together, over all callers. A small
// one does not count.
//
// A request has one share. The share either grows immediately or, if there is no room, is released
// completely before the request waits: no request waits while it holds a part, so there is no
// deadlock. Data read before the wait is dropped and read again. Requests wait in order, and
// workspaces take turns, so that many requests of one workspace delay a request of another by one
// each. If there are several workspaces, one workspace gets at most half of the room beyond its
// first request, so that its slow clients leave room for others.
//
// A share is kept while its bytes are received or sent, and a client may be slow. While other
// requests wait, a client that has neither sent nor received anything for a while is disconnected.
type Room struct {
	singleWorkspace func() bool // whether there is only one workspace

	mu      sync.Mutex
	left    int
	used    map[string]int // by workspace
	turn    int            // of the last admitted waiter
	waiting []*waiter
	shares  map[*Share]bool // shares that wait for their clients
}

// Sizes are chosen for the Go heap, which grows to twice the memory in use, and some tens of MiB
// that the process needs besides.
const (
	// Bytes is the size of the room.
	Bytes = 32 << 20
	// SmallBytes is the maximum size of a request or response that needs no share.
	SmallBytes = 128 << 10
	// SmallMessage is the same for one read of an event stream, because there are many streams.
	SmallMessage = SmallBytes / 2
	// BodyWeight is the maximum memory per byte of a body, on its way to the database and in the
	// response.
	BodyWeight = 16
	// TreeWeight is the same for a body that is parsed to a tree, such as configs and definitions.
	// Such a body needs a share from a quarter of SmallBytes on.
	TreeWeight = 64
	// AnswerWeight is the same for a document that is read and written as a whole.
	AnswerWeight = 4
	// PageMargin is the maximum memory of a page besides its elements: one of them as JSON.
	PageMargin = 3 << 20

	// LongestInLine is the maximum wait time for room.
	LongestInLine = 30 * time.Second
	slowAfter     = 5 * time.Second
	scanInterval  = time.Second // for slow clients
)

type waiter struct {
	share *Share
	turn  int           // waiters are admitted in this order; each turn has at most one waiter of a workspace
	n     int           // the bytes that it waits for
	ready chan struct{} // closed when it is admitted
}

// New returns an empty room. singleWorkspace reports whether there is only one workspace.
func New(singleWorkspace func() bool) *Room {
	return &Room{singleWorkspace: singleWorkspace, left: Bytes, used: make(map[string]int), shares: make(map[*Share]bool)}
}

// full reports whether n more bytes would exceed the part of a workspace. REQUIRES: mu
func (r *Room) full(workspace string, n int) bool {
	used := r.used[workspace]
	return used > 0 && used+n > Bytes/2 && !r.singleWorkspace()
}

// give sets the size of a share to n. REQUIRES: mu
func (r *Room) give(s *Share, n int) {
	r.left -= n - s.n
	if r.used[s.Workspace] += n - s.n; r.used[s.Workspace] == 0 {
		delete(r.used, s.Workspace)
	}
	s.n = n
}

// Share is the part of the room that a request has. Only one goroutine at a time may use it.
type Share struct {
	room      *Room
	Workspace string
	cut       func() // aborts reads from the client and writes to it

	// REQUIRES: room.mu
	n     int
	since time.Time // last activity of the client
}

// Share returns the empty share of a request.
func (r *Room) Share(w http.ResponseWriter) *Share {
	return &Share{room: r, cut: func() {
		c, now := http.NewResponseController(w), clock.OfMachine()
		_ = c.SetReadDeadline(now) // fails for a connection without deadlines
		_ = c.SetWriteDeadline(now)
	}}
}

// Try grows the share to at least n, if there is room immediately.
func (s *Share) Try(n int) bool {
	n = min(n, Bytes)
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if n <= s.n {
		return true
	}
	if len(s.room.waiting) > 0 || n-s.n > s.room.left || s.room.full(s.Workspace, n-s.n) {
		return false
	}
	s.room.give(s, n)
	return true
}

// Wait releases the share and waits for one of n bytes.
func (s *Share) Wait(ctx context.Context, n int) error {
	s.Shrink(0)
	n = min(n, Bytes)
	w := s.room.enter(s, n)
	late := time.NewTimer(LongestInLine)
	defer late.Stop()
	scan := time.NewTicker(scanInterval)
	defer scan.Stop()
	for {
		select {
		case <-w.ready:
			return nil
		case <-scan.C:
			s.room.cutSlow()
			continue
		case <-ctx.Done():
		case <-late.C:
		}
		s.room.leave(w)
		if err := ctx.Err(); err != nil {
			return err
		}
		return fault.New(fault.Unavailable, "the server is busy with large requests: try again, or request a smaller page").AsRetryable().With("retryAfter", 1)
	}
}

// Shrink releases all but n bytes.
func (s *Share) Shrink(n int) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if n < s.n {
		s.room.give(s, n)
		s.room.admit()
	}
}

// Wanted reports whether other requests wait while this share has bytes.
func (s *Share) Wanted() bool {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	return s.n > 0 && len(s.room.waiting) > 0
}

// Active records activity of the client. Until [Share.StopWatching] is called, a client without activity is disconnected if other requests
// wait for room.
func (s *Share) Active() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if s.n > 0 {
		s.since, s.room.shares[s] = clock.Now(), true
	}
}

// Reader wraps r to record activity of the share's client.
func (s *Share) Reader(r io.Reader) io.Reader { return activityReader{r, s} }

// Writer wraps w to record activity of the share's client.
func (s *Share) Writer(w http.ResponseWriter) http.ResponseWriter { return activityWriter{w, s} }

// activityReader records activity of the client with each read.
type activityReader struct {
	io.Reader
	share *Share
}

func (r activityReader) Read(p []byte) (n int, err error) {
	if n, err = r.Reader.Read(p); n > 0 {
		r.share.Active()
	}
	return n, err
}

// activityWriter writes in chunks and records activity of the client with each.
type activityWriter struct {
	http.ResponseWriter
	share *Share
}

func (w activityWriter) Write(p []byte) (n int, err error) {
	for first := true; err == nil && (len(p) > 0 || first); first = false {
		w.share.Active()
		var some int
		some, err = w.ResponseWriter.Write(p[:min(len(p), SmallMessage)])
		n, p = n+some, p[some:]
	}
	return n, err
}

// StopWatching ends what the first call of [Share.Active] began.
func (s *Share) StopWatching() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	delete(s.room.shares, s)
}

// End releases the share. After it returns, the client is no longer disconnected.
func (s *Share) End() {
	s.StopWatching()
	s.Shrink(0)
}

// enter adds a waiter to the queue: behind those of its workspace, and behind one of each other
// workspace.
func (r *Room) enter(s *Share, n int) *waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &waiter{s, r.turn + 1, n, make(chan struct{})}
	for _, other := range r.waiting {
		if other.share.Workspace == s.Workspace {
			w.turn = max(w.turn, other.turn+1)
		}
	}
	at := slices.IndexFunc(r.waiting, func(other *waiter) bool { return other.turn > w.turn })
	if at < 0 {
		at = len(r.waiting)
	}
	r.waiting = slices.Insert(r.waiting, at, w)
	r.admit()
	return w
}

// leave removes a waiter from the queue, and releases what it was given meanwhile.
func (r *Room) leave(w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := slices.Index(r.waiting, w); at >= 0 {
		r.waiting = slices.Delete(r.waiting, at, at+1)
	} else {
		r.give(w.share, 0)
	}
	r.admit()
}

// admit admits waiters in order while there is room. It skips workspaces that have used up their
// part.
//
// REQUIRES: mu
func (r *Room) admit() {
	passed := make(map[string]bool)
	for i := 0; i < len(r.waiting); {
		w := r.waiting[i]
		of := w.share.Workspace
		if passed[of] = passed[of] || r.full(of, w.n); passed[of] {
			i++
			continue
		}
		if w.n > r.left { // later waiters must not overtake it
			return
		}
		r.waiting = slices.Delete(r.waiting, i, i+1)
		r.turn = max(r.turn, w.turn)
		r.give(w.share, w.n)
		close(w.ready)
	}
}

// cutSlow disconnects clients without recent activity. It holds the lock, because the connection of
// a request that has ended, and so is not in the list, may serve another one.
func (r *Room) cutSlow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.shares {
		if clock.Since(s.since) > slowAfter {
			s.cut()
			delete(r.shares, s)
		}
	}
}
