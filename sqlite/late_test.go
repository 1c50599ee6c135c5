package sqlite

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestEachWhoNoticesKnowsHowLate verifies that of several callers that detect at once that the
// clock was set back, each gets the time since the last check: it shows whether another process has
// stored the step.
func TestEachWhoNoticesKnowsHowLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wrong time.Duration
		w := wallClock{wrong: func() time.Duration { return wrong }}
		w.stepped()
		time.Sleep(20 * time.Millisecond)
		wrong = -time.Hour
		for range 2 {
			if _, back, ago := w.stepped(); back < 59*time.Minute || ago < 20*time.Millisecond {
				t.Errorf("clock was set back by %s, %s ago", back, ago)
			}
		}
		w.stored(time.Hour)
		w.stepped()
		if _, back, ago := w.stepped(); back >= leastStep || ago > 10*time.Second {
			t.Errorf("after the step was stored: clock was set back by %s, %s ago", back, ago)
		}
	})
}
