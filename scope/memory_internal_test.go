package scope

import (
	"context"
	"testing"
	"time"
)

// TestMemoryIsFreeWhileAChangeIsMade verifies that a change in memory that takes long, as that
// of a large state does, is made while all other containers can be used: only who is at the
// same one waits for it.
func TestMemoryIsFreeWhileAChangeIsMade(t *testing.T) {
	m := newMemory()
	called := false
	_, err := m.change(context.Background(), "thing", "u", func(c cell, now time.Time) (cell, answer) {
		called = true
		if !m.mu.TryLock() {
			t.Error("all scopes wait for one change")
			return c, answer{}
		}
		m.mu.Unlock()
		return c.next([]byte("{}"), 0, now), answer{changed: true}
	})
	if err != nil || !called {
		t.Errorf("function called: %t, want true: %v", called, err)
	}
}
