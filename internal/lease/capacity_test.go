package lease

import (
	"context"
	"fmt"
	"testing"
)

func several() bool { return false }

// Verifies a workspace's share of the capacity: two thirds by itself, less beside others, always leaving room
// for a newcomer however many hang; and everything if it is the only workspace there is.
func TestWorkspacesShareRoom(t *testing.T) {
	for size := 2; size <= 130; size++ {
		r := NewCapacity(size, several, nil)
		if n := r.Take(Share{Workspace: "a"}, size); n < max((2*size-2)/3, 1) || n > max((2*size)/3, 1) {
			t.Errorf("size %d: a single workspace got %d", size, n)
		}
		for i := 0; r.Left() > 0; i++ {
			if r.Take(Share{Workspace: fmt.Sprint("w", i)}, size) == 0 {
				t.Fatalf("size %d: workspace %d got nothing although %d are free", size, i, r.Left())
			}
			if many := map[int]int{8: 3, 16: 4, 128: 6}[size]; r.Left() == 0 && i+2 < many {
				t.Errorf("%d workspaces fill a capacity of %d", i+2, size)
			}
		}
	}
	r := NewCapacity(7, func() bool { return true }, nil)
	if n := r.Take(Share{Workspace: "a"}, 10); n != 7 {
		t.Errorf("a single workspace got %d, want 7", n)
	}
	if NewCapacity(1, several, nil).Take(Share{Workspace: "a"}, 1) != 1 {
		t.Error("a capacity of 1 has no room for one")
	}
}

// Verifies that a handler that hangs leaves room for the other handlers of its workspace, even if it is the
// only workspace.
func TestHandlersShareRoom(t *testing.T) {
	for _, alone := range []bool{false, true} {
		r := NewCapacity(128, func() bool { return alone }, nil).ByHandler()
		if n := r.Take(Share{"a", "hangs"}, 200); n < 60 || n > 64 {
			t.Errorf("one handler got %d", n)
		}
		if shut := r.Shut(); len(shut) != 1 || shut[0] != (Share{"a", "hangs"}) || !r.Full(shut[0]) || r.Full(Share{"a", "h"}) || len(r.ShutWorkspaces()) != 0 {
			t.Errorf("got full shares %v", shut)
		}
		for i := range 10 {
			if r.Take(Share{"a", fmt.Sprint("h", i)}, 1) != 1 {
				t.Errorf("single workspace %t: no room for handler %d", alone, i)
			}
		}
		if r.Take(Share{"b", "h"}, 1) != 1 {
			t.Error("no room for another workspace")
		}
	}
}

// Verifies that freed room is reported after a refusal, and lets a waiting caller continue.
func TestRoomIsFreed(t *testing.T) {
	calls := 0
	r := NewCapacity(3, several, func() { calls++ })
	a, b := Share{Workspace: "a"}, Share{Workspace: "b"}
	if n := r.Take(a, 3); n != 2 {
		t.Fatalf("took %d, want 2", n)
	}
	if shut := r.ShutWorkspaces(); len(shut) != 1 || shut[0] != "a" {
		t.Errorf("got full workspaces %q, want a", shut)
	}
	if r.Take(b, 1) != 1 {
		t.Fatal("no room for workspace b")
	}
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 2)
	go func() { waited <- r.Wait(ctx) }()
	r.Free(a, 1)
	if err := <-waited; err != nil || calls != 1 {
		t.Errorf("Wait returned %v; freed was called %d times, want 1", err, calls)
	}
	r.Free(a, 1)
	r.Free(b, 1)
	if calls != 1 {
		t.Errorf("no caller was refused, but freed was called %d times, want 1", calls)
	}
	r.Take(a, 2)
	r.Take(b, 1)
	cancel()
	if err := r.Wait(ctx); err == nil {
		t.Error("Wait returned at once, want it to wait")
	}
}

// Verifies that each workspace gets one before any gets a second, and that the workspace served longest ago
// comes first.
func TestInTurn(t *testing.T) {
	var o Order
	o.Served("b")
	o.Served("a")
	all := []string{"a1", "a2", "a3", "b1", "c1", "c2"}
	InTurn(&o, all, func(s string) string { return s[:1] })
	if got := fmt.Sprint(all); got != "[c1 b1 a1 c2 a2 a3]" {
		t.Errorf("got order %s", got)
	}
}
