package check_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// TestPause verifies that a check pauses four times as long as a page took, and that a page with its pause takes at most the
// period, or as long as the page.
func TestPause(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: 0, 5: 20, 20: 80, 30: 70, 99: 1, 100: 0, 3000: 0} {
		if got := check.Pause(took * time.Millisecond); got != want*time.Millisecond {
			t.Errorf("a page that took %d ms is followed by a pause of %v, want %d ms", took, got, want)
		}
	}
}
