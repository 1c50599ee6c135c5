package clock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Properties: a pause is between half and all of what the policy says, grows by the multiplier up to the longest,
// and never overflows; zero values are a second that doubles up to five minutes.
func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		first      time.Duration
		multiplier float64
		longest    time.Duration
		n          int64
		want       time.Duration
	}{
		{0, 0, 0, 0, time.Second}, {0, 0, 0, 1, time.Second}, {0, 0, 0, 2, 2 * time.Second}, {0, 0, 0, 5, 16 * time.Second},
		{0, 0, 0, 10, 5 * time.Minute}, {0, 0, 0, 1 << 40, 5 * time.Minute},
		{time.Minute, 1, 0, 9, time.Minute}, {time.Second, 10, 30 * time.Second, 2, 10 * time.Second}, {time.Second, 10, 30 * time.Second, 3, 30 * time.Second},
		{time.Hour, 2, time.Minute, 1, time.Minute},
	} {
		for range 20 {
			if got := clock.Backoff(c.first, c.multiplier, c.longest, c.n); got < c.want/2 || got > c.want {
				t.Fatalf("%+v: got backoff %s", c, got)
			}
		}
	}
}
