package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
)

func shareOf(r *room, workspace string, cut func()) *share {
	return &share{room: r, workspace: workspace, cut: cut}
}

// Verifies that no more is taken than there is, that who waits has nothing in hand, and that who gives up leaves nothing behind.
func TestARoomIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(func() bool { return true })
		a, b, c := shareOf(r, "w", nil), shareOf(r, "w", nil), shareOf(r, "w", nil)
		if !a.try(roomBytes-10) || !b.try(10) || b.try(11) || c.try(1) {
			t.Fatal("there is another amount than there should be")
		}
		var waited error
		go func() { waited = b.wait(t.Context(), 100) }()
		synctest.Wait()
		if r.left != 10 {
			t.Errorf("%d are left: who waits has something in hand", r.left)
		}
		if c.try(1) {
			t.Error("somebody came before who waits")
		}
		if !a.wanted() || b.wanted() {
			t.Error("who has something is not told that others wait for it, or who has nothing is")
		}
		gone, leave := context.WithCancel(t.Context())
		var left error
		go func() { left = c.wait(gone, 2*roomBytes) }()
		synctest.Wait()
		leave()
		synctest.Wait()
		if !errors.Is(left, context.Canceled) {
			t.Errorf("who left was told %v", left)
		}
		a.keep(50)
		synctest.Wait()
		if waited != nil || r.left != roomBytes-150 {
			t.Errorf("%v, and %d are left", waited, r.left)
		}
		a.end()
		b.end()
		c.end()
		if err := c.wait(t.Context(), 2*roomBytes); err != nil || r.left != 0 { // all that there is
			t.Errorf("%v, and %d are left", err, r.left)
		}
		if err := a.wait(t.Context(), 1); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("who waited for long was told %v", err)
		}
		c.end()
		if r.left != roomBytes || len(r.waiting) > 0 {
			t.Errorf("%d are left of %d, and %d wait", r.left, roomBytes, len(r.waiting))
		}
	})
}

// Verifies that workspaces come by turns: many who wait of one delay another's by one.
func TestARoomIsSharedByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(func() bool { return false })
		all := shareOf(r, "other", nil)
		all.try(roomBytes)
		var order string
		waits := func(workspace string) {
			go func() {
				s := shareOf(r, workspace, nil)
				if err := s.wait(t.Context(), roomBytes); err != nil {
					t.Error(err)
				}
				order += workspace
				s.end()
			}()
			synctest.Wait()
		}
		for range 4 {
			waits("a")
		}
		waits("b")
		waits("c")
		waits("b")
		all.end()
		synctest.Wait()
		if order != "abcabaa" {
			t.Errorf("they came in the order %s", order)
		}
	})
}

// Verifies that what a workspace has beside its first request is not more than half of the room, so that there is some for
// another's; and that a workspace that is passed over for that comes again when something of its own has ended.
func TestAWorkspaceHasHalfOfARoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(func() bool { return false })
		first, second, other := shareOf(r, "a", nil), shareOf(r, "a", nil), shareOf(r, "b", nil)
		if !first.try(roomBytes/2) || second.try(1) {
			t.Fatal("one has more than half, or less")
		}
		var waited, passed error
		go func() { waited = second.wait(t.Context(), 1) }()
		synctest.Wait()
		go func() { passed = other.wait(t.Context(), roomBytes/2) }()
		synctest.Wait()
		if other.n != roomBytes/2 || second.n != 0 {
			t.Errorf("the other has %d, and who has half %d more", other.n, second.n)
		}
		first.end()
		synctest.Wait()
		if second.n != 1 || waited != nil || passed != nil {
			t.Errorf("who was passed over has %d: %v, %v", second.n, waited, passed)
		}
		second.end()
		other.end()
		if !first.try(roomBytes) || len(r.used) != 1 { // one request may have all
			t.Errorf("what is used is %v", r.used)
		}
		first.end()
	})
}

// Verifies that a client that takes nothing is cut off while others wait, and not before; and one that is heard of, or of which nothing
// is wanted any more, is not.
func TestASlowClientIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(func() bool { return false })
		cut := map[string]bool{}
		client := func(name string, n int) *share {
			s := shareOf(r, "w", func() { cut[name] = true })
			s.try(n)
			s.client()
			return s
		}
		slow, fast, done := client("slow", roomBytes-20), client("fast", 10), client("done", 10)
		done.end()
		time.Sleep(time.Minute)
		fast.client()
		r.cutSlow()
		if len(cut) != 1 || !cut["slow"] {
			t.Errorf("cut off: %v", cut)
		}
		slow.end()

		clear(cut)
		slow = client("slow", roomBytes-10)
		time.Sleep(time.Minute)
		if len(cut) != 0 {
			t.Errorf("cut off while nobody waits: %v", cut)
		}
		slow.cut = func() { go slow.end() } // its handler fails
		if err := done.wait(t.Context(), 20); err != nil {
			t.Error(err)
		}
		done.end()
	})
}

// slowClient takes a while for each piece that it is sent, and sends a byte at a time.
type slowClient struct {
	http.ResponseWriter
	takes func()
}

func (c slowClient) Write(p []byte) (int, error) { c.takes(); return len(p), nil }
func (c slowClient) Read(p []byte) (int, error)  { c.takes(); return min(len(p), 1), nil }

// Verifies that a client that goes on sending, or taking what it is sent, is not cut off while others wait, however long
// it takes for all.
func TestASteadyClientIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := slowClient{takes: func() { time.Sleep(slowAfter - time.Second) }}
		r := newRoom(func() bool { return false })
		cut := false
		s := shareOf(r, "w", func() { cut = true })
		s.try(roomBytes)
		s.client()
		go func() { // it asks again and again
			for range 3 {
				_ = shareOf(r, "other", nil).wait(t.Context(), 1)
			}
		}()
		if n, err := (heardWriter{slow, s}).Write(make([]byte, 10*smallMessage)); n != 10*smallMessage || err != nil {
			t.Errorf("%d bytes were written: %v", n, err)
		}
		s.client()
		if _, err := io.ReadFull(heardReader{slow, s}, make([]byte, 5)); err != nil || cut {
			t.Errorf("it was cut off: %t, %v", cut, err)
		}
		s.end()
		synctest.Wait()
	})
}

// Verifies that an answer that is written already waits for no room.
func TestAnAnswerThatIsWrittenWaitsForNoRoom(t *testing.T) {
	api, _, _ := newAPI(t)
	put := httptest.NewRequest("PATCH", "http://127.0.0.1/api/v1/scopes/k/s", strings.NewReader(`{"text":"`+strings.Repeat("x", 2*smallBytes)+`"}`))
	put.Header.Set("Content-Type", mergePatch)
	w := httptest.NewRecorder()
	api.ServeHTTP(w, put)
	etag := w.Header().Get("ETag")
	if w.Code >= 300 {
		t.Fatalf("put: %d %s", w.Code, w.Body)
	}
	if etag == "" {
		etag = ask(api, "GET", "/api/v1/scopes/k/s").Header().Get("ETag")
	}
	all := shareOf(api.room, "other", func() {})
	if !all.try(roomBytes) {
		t.Fatal("there is less room than there should be")
	}
	defer all.end()
	begun := clock.Now()
	if got := ask(api, "GET", "/api/v1/scopes/k/s", "If-None-Match", etag); got.Code != http.StatusNotModified || clock.Since(begun) >= longestInLine {
		t.Errorf("answered %d after %s", got.Code, clock.Since(begun))
	}
}
