package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
)

// Verifies that a janitor counts as stalled when three intervals have passed without a good round, and three
// rounds have failed or 30 seconds have passed, until a round is good; and that setting the wall clock does not
// matter.
func TestAJanitorThatStalls(t *testing.T) {
	for _, every := range []time.Duration{time.Nanosecond, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			defer clock.Skew(0)
			fails := true
			j := &lease.Janitor{Every: every, Log: slog.New(slog.DiscardHandler), Sweeps: []lease.Sweep{{Name: "s", Run: func(context.Context, bool) (int, error) {
				if fails {
					return 0, errors.New("no")
				}
				return 0, nil
			}}}}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			j.Start(ctx)
			j.Stop()
			limit := max(3*every, 30*time.Second)
			stalled := func(want bool, when string) {
				t.Helper()
				if ago, yes := j.Stalled(); yes != want {
					t.Errorf("every %s, %s: got stalled %v after %s", every, when, yes, ago)
				}
			}
			for _, skew := range []time.Duration{0, 24 * time.Hour, -24 * time.Hour} {
				clock.Skew(skew)
				stalled(false, "after its start")
			}
			time.Sleep(limit)
			j.Round(t.Context())
			stalled(false, "at the limit")
			time.Sleep(time.Second)
			j.Round(t.Context())
			for _, skew := range []time.Duration{0, 24 * time.Hour, -24 * time.Hour} {
				clock.Skew(skew)
				stalled(true, "after bad rounds")
			}
			fails = false
			j.Round(t.Context())
			stalled(false, "after a good round")
			fails = true
			time.Sleep(3*every + 1)
			for range 2 {
				j.Round(t.Context())
			}
			stalled(every >= 10*time.Second, "after two bad rounds")
			j.Round(t.Context())
			stalled(true, "after three bad rounds")
		})
	}
}
