// Package room bounds the memory that large requests and answers take together.
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

// Room bounds the memory that large requests and answers take together, over all callers. A small one takes no part of it.
//
// A request has one share. It either grows at once or, where there is no room, is given back whole before the request waits:
// nobody waits with a part in hand, so nobody waits for ever. What was read before the wait is dropped, and read again.
// Requests wait in order, and workspaces by turns, so that many requests of one delay another's by one of them each. Where there
// are several workspaces, what one has beside its first request is not more than half of the room: clients of one that are
// slow leave room for another's.
//
// A share is kept while its bytes come in or go out, and a client may be slow. While others wait, a client that has neither sent nor
// taken anything for a while is cut off.
type Room struct {
	alone func() bool // there is but one workspace

	mu      sync.Mutex
	left    int
	used    map[string]int // by workspace
	turn    int            // of who was last let in
	waiting []*waiter
	shares  map[*Share]bool // those that wait for their clients
}

// How much there is: the Go heap is up to twice what is in use, and the process has some tens of MiB besides.
const (
	Bytes = 32 << 20
	// SmallBytes is how many bytes a request or an answer has that takes no part of the room.
	SmallBytes = 128 << 10
	// SmallMessage is the same for what a stream of events reads at once: there are many of them.
	SmallMessage = SmallBytes / 2
	// BodyWeight is how much memory a byte of a body takes on its way to the database and in the answer, at the most.
	BodyWeight = 16
	// TreeWeight is the same for a body that is read as a tree, as configs and definitions are. Small ones have a share, too.
	TreeWeight = 64
	// AnswerWeight is the same for a document that is read and written out as one.
	AnswerWeight = 4
	// PageMargin is what a page takes besides its elements, at the most: one of them as JSON.
	PageMargin = 3 << 20

	LongestInLine = 30 * time.Second
	slowAfter     = 5 * time.Second
	looksEvery    = time.Second // for slow clients
)

type waiter struct {
	share   *Share
	turn, n int
	ready   chan struct{} // closed when it is let in
}

func New(alone func() bool) *Room {
	return &Room{alone: alone, left: Bytes, used: make(map[string]int), shares: make(map[*Share]bool)}
}

// full says whether a workspace has so much that n more would be more than its part. REQUIRES: mu
func (r *Room) full(workspace string, n int) bool {
	used := r.used[workspace]
	return used > 0 && used+n > Bytes/2 && !r.alone()
}

// give makes a share one of n. REQUIRES: mu
func (r *Room) give(s *Share, n int) {
	r.left -= n - s.n
	if r.used[s.Workspace] += n - s.n; r.used[s.Workspace] == 0 {
		delete(r.used, s.Workspace)
	}
	s.n = n
}

// Share is the part of the room that a request has. One goroutine at a time takes and gives back.
type Share struct {
	room      *Room
	Workspace string
	cut       func() // ends what is read from the client, or written to it

	// REQUIRES: room.mu
	n     int
	since time.Time // when the client was last heard of
}

// Share is that of a request, which has nothing yet.
func (r *Room) Share(w http.ResponseWriter) *Share {
	return &Share{room: r, cut: func() {
		c, now := http.NewResponseController(w), clock.OfMachine()
		_ = c.SetReadDeadline(now) // a connection without deadlines has none
		_ = c.SetWriteDeadline(now)
	}}
}

// Try makes the share one of n at least, if there is room at once.
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

// Wait gives the share back, and waits for one of n.
func (s *Share) Wait(ctx context.Context, n int) error {
	s.Keep(0)
	n = min(n, Bytes)
	w := s.room.enter(s, n)
	late := time.NewTimer(LongestInLine)
	defer late.Stop()
	looks := time.NewTicker(looksEvery)
	defer looks.Stop()
	for {
		select {
		case <-w.ready:
			return nil
		case <-looks.C:
			s.room.cutSlow()
			continue
		case <-ctx.Done():
		case <-late.C:
		}
		s.room.leave(w)
		if err := ctx.Err(); err != nil {
			return err
		}
		return fault.New(fault.Unavailable, "there are too many large requests at once: try again, or ask for less").Repeatable().With("retryAfter", 1)
	}
}

// Keep gives back all but n.
func (s *Share) Keep(n int) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if n < s.n {
		s.room.give(s, n)
		s.room.admit()
	}
}

// Wanted says that others wait for what the share has.
func (s *Share) Wanted() bool {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	return s.n > 0 && len(s.room.waiting) > 0
}

// Client says that something is wanted of the client from now on, or that it was just heard of.
func (s *Share) Client() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if s.n > 0 {
		s.since, s.room.shares[s] = clock.Now(), true
	}
}

// Reader reads from the share's client through r, and notes that the client was heard of.
func (s *Share) Reader(r io.Reader) io.Reader { return heardReader{r, s} }

// Writer writes to the share's client through w, and notes that the client was heard of.
func (s *Share) Writer(w http.ResponseWriter) http.ResponseWriter { return heardWriter{w, s} }

// heardReader reads from a client, which is heard of with each piece.
type heardReader struct {
	io.Reader
	share *Share
}

func (r heardReader) Read(p []byte) (n int, err error) {
	if n, err = r.Reader.Read(p); n > 0 {
		r.share.Client()
	}
	return n, err
}

// heardWriter writes to a client, in pieces: it is heard of with each.
type heardWriter struct {
	http.ResponseWriter
	share *Share
}

func (w heardWriter) Write(p []byte) (n int, err error) {
	for first := true; err == nil && (len(p) > 0 || first); first = false {
		w.share.Client()
		var some int
		some, err = w.ResponseWriter.Write(p[:min(len(p), SmallMessage)])
		n, p = n+some, p[some:]
	}
	return n, err
}

// NoClient says that nothing is wanted of the client.
func (s *Share) NoClient() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	delete(s.room.shares, s)
}

// End gives the share back. Behind it the client is not cut off any more.
func (s *Share) End() {
	s.NoClient()
	s.Keep(0)
}

// enter puts a waiter in line: behind those of its workspace, and behind one of each other.
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

// leave takes a waiter out of the line, and gives back what it was given meanwhile.
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

// admit lets in who is first, and who is next, as long as there is room. Workspaces that have their part are passed over.
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
		if w.n > r.left { // it is its turn
			return
		}
		r.waiting = slices.Delete(r.waiting, i, i+1)
		r.turn = max(r.turn, w.turn)
		r.give(w.share, w.n)
		close(w.ready)
	}
}

// cutSlow cuts off clients that were not heard of for a while. Under the lock: a request that has ended is not in the list, and
// its connection serves another.
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
