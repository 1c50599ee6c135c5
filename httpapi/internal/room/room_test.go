package room

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

func shareOf(r *Room, workspace string, cut func()) *Share {
	return &Share{room: r, Workspace: workspace, cut: cut}
}

// TestARoomIsBounded verifies that a room never hands out more than it has, that a waiting request
// holds nothing, and that one that gives up leaves nothing behind.
func TestARoomIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(func() bool { return true })
		a, b, c := shareOf(r, "w", nil), shareOf(r, "w", nil), shareOf(r, "w", nil)
		if !a.Try(Bytes-10) || !b.Try(10) || b.Try(11) || c.Try(1) {
			t.Fatal("the room does not hand out exactly Bytes")
		}
		var waited error
		go func() { waited = b.Wait(t.Context(), 100) }()
		synctest.Wait()
		if r.left != 10 {
			t.Errorf("got %d left, want 10: a waiting request took bytes", r.left)
		}
		if c.Try(1) {
			t.Error("a request got bytes before the one that waits")
		}
		if !a.Wanted() || b.Wanted() {
			t.Error("Wanted is not true exactly for the requests that have bytes")
		}
		gone, leave := context.WithCancel(t.Context())
		var left error
		go func() { left = c.Wait(gone, 2*Bytes) }()
		synctest.Wait()
		leave()
		synctest.Wait()
		if !errors.Is(left, context.Canceled) {
			t.Errorf("canceled wait returned %v, want context.Canceled", left)
		}
		a.Shrink(50)
		synctest.Wait()
		if waited != nil || r.left != Bytes-150 {
			t.Errorf("wait returned %v with %d left", waited, r.left)
		}
		a.End()
		b.End()
		c.End()
		if err := c.Wait(t.Context(), 2*Bytes); err != nil || r.left != 0 { // the complete room
			t.Errorf("wait for more than the room returned %v with %d left, want 0", err, r.left)
		}
		if err := a.Wait(t.Context(), 1); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("long wait returned %v, want UNAVAILABLE", err)
		}
		c.End()
		if r.left != Bytes || len(r.waiting) > 0 {
			t.Errorf("got %d left, want %d, and %d waiting, want 0", r.left, Bytes, len(r.waiting))
		}
	})
}

// TestARoomIsSharedByTurns verifies that workspaces take turns: many waiters of one workspace delay
// another's by one.
func TestARoomIsSharedByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(func() bool { return false })
		all := shareOf(r, "other", nil)
		all.Try(Bytes)
		var order string
		waits := func(workspace string) {
			go func() {
				s := shareOf(r, workspace, nil)
				if err := s.Wait(t.Context(), Bytes); err != nil {
					t.Error(err)
				}
				order += workspace
				s.End()
			}()
			synctest.Wait()
		}
		for range 4 {
			waits("a")
		}
		waits("b")
		waits("c")
		waits("b")
		all.End()
		synctest.Wait()
		if order != "abcabaa" {
			t.Errorf("got order %s, want abcabaa", order)
		}
	})
}

// TestAWorkspaceHasHalfOfARoom verifies that a workspace gets at most half of the room beside its
// first request, so that there is room for others; and that a workspace that was skipped for that
// reason gets its turn when one of its requests ends.
func TestAWorkspaceHasHalfOfARoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(func() bool { return false })
		first, second, other := shareOf(r, "a", nil), shareOf(r, "a", nil), shareOf(r, "b", nil)
		if !first.Try(Bytes/2) || second.Try(1) {
			t.Fatal("the first caller cannot take exactly half")
		}
		var waited, passed error
		go func() { waited = second.Wait(t.Context(), 1) }()
		synctest.Wait()
		go func() { passed = other.Wait(t.Context(), Bytes/2) }()
		synctest.Wait()
		if other.n != Bytes/2 || second.n != 0 {
			t.Errorf("the other caller got %d, want half; the second request of the first got %d more, want 0", other.n, second.n)
		}
		first.End()
		synctest.Wait()
		if second.n != 1 || waited != nil || passed != nil {
			t.Errorf("the request that was passed over got %d, want 1: %v, %v", second.n, waited, passed)
		}
		second.End()
		other.End()
		if !first.Try(Bytes) || len(r.used) != 1 { // one request may have all
			t.Errorf("got used %v, want one entry", r.used)
		}
		first.End()
	})
}

// TestASlowClientIsCutOff verifies that a client that reads nothing is disconnected while others
// wait, and not before; and that an active client, or one that is no longer waited for, is not.
func TestASlowClientIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(func() bool { return false })
		cut := map[string]bool{}
		client := func(name string, n int) *Share {
			s := shareOf(r, "w", func() { cut[name] = true })
			s.Try(n)
			s.Active()
			return s
		}
		slow, fast, done := client("slow", Bytes-20), client("fast", 10), client("done", 10)
		done.End()
		time.Sleep(time.Minute)
		fast.Active()
		r.cutSlow()
		if len(cut) != 1 || !cut["slow"] {
			t.Errorf("cut off %v, want only slow", cut)
		}
		slow.End()

		clear(cut)
		slow = client("slow", Bytes-10)
		time.Sleep(time.Minute)
		if len(cut) != 0 {
			t.Errorf("cut off %v while nobody waits, want none", cut)
		}
		slow.cut = func() { go slow.End() } // its handler fails
		if err := done.Wait(t.Context(), 20); err != nil {
			t.Error(err)
		}
		done.End()
	})
}

// slowClient delays each chunk that it receives, and sends a byte at a time.
type slowClient struct {
	http.ResponseWriter
	takes func()
}

func (c slowClient) Write(p []byte) (int, error) { c.takes(); return len(p), nil }
func (c slowClient) Read(p []byte) (int, error)  { c.takes(); return min(len(p), 1), nil }

// TestASteadyClientIsNotCutOff verifies that a client that keeps sending or receiving is not
// disconnected while others wait, however long it takes.
func TestASteadyClientIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := slowClient{takes: func() { time.Sleep(slowAfter - time.Second) }}
		r := New(func() bool { return false })
		cut := false
		s := shareOf(r, "w", func() { cut = true })
		s.Try(Bytes)
		s.Active()
		go func() { // it waits again and again
			for range 3 {
				_ = shareOf(r, "other", nil).Wait(t.Context(), 1)
			}
		}()
		if n, err := (activityWriter{slow, s}).Write(make([]byte, 10*SmallMessage)); n != 10*SmallMessage || err != nil {
			t.Errorf("wrote %d bytes: %v", n, err)
		}
		s.Active()
		if _, err := io.ReadFull(activityReader{slow, s}, make([]byte, 5)); err != nil || cut {
			t.Errorf("cut off is %t, want false: %v", cut, err)
		}
		s.End()
		synctest.Wait()
	})
}
