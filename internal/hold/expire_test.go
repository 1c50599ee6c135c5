package hold

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/wake"
)

var heldStep = wake.Need{Kind: wake.HeldStep}

// TestASweepThatFreesNothingIsLeftAlone verifies that leases which a sweep cannot end are looked at seldom, and those
// that it can at each glance; and that it begins anew when there are none any more.
func TestASweepThatFreesNothingIsLeftAlone(t *testing.T) {
	frees, runs := 0, 0
	j := &Janitor{Every: time.Hour, Log: slog.New(slog.DiscardHandler), Sweeps: []Sweep{{Name: "s", Needs: []wake.Need{heldStep, {Kind: wake.OldRun}},
		Run: func(context.Context, bool) (int, error) { runs++; return frees, nil }}}}
	glances := func(due map[wake.Need]bool) int {
		runs = 0
		for range 1000 {
			j.Expire(t.Context(), due)
		}
		return runs
	}
	there := map[wake.Need]bool{heldStep: true}
	if n := glances(there); n == 0 || n > 100 {
		t.Errorf("what cannot be freed is swept %d times in 1000 glances", n)
	}
	if n := glances(map[wake.Need]bool{{Kind: wake.OldRun}: true}); n != 0 {
		t.Errorf("without expired leases it is swept %d times", n)
	}
	if frees = 1; glances(there) != 1000 {
		t.Errorf("what is freed is swept %d times in 1000 glances", runs)
	}
}

// TestManyWhoAskSweepOnce verifies that of many who ask at once, while leases have expired, one sweeps and the others wait
// for that; and that nobody sweeps where none has expired.
func TestManyWhoAskSweepOnce(t *testing.T) {
	const many = 20
	runs := 0
	var all, glanced sync.WaitGroup
	glanced.Add(many)
	expired := true
	j := &Janitor{Log: slog.New(slog.DiscardHandler), Sweeps: []Sweep{{Name: "s", Needs: []wake.Need{heldStep}, Run: func(_ context.Context, asked bool) (int, error) {
		if !asked {
			t.Error("it was not told that somebody asks")
		}
		runs++ // under the janitor's lock
		return 1, nil
	}}}, Glance: func(_ context.Context, needs []wake.Need) (map[wake.Need]bool, error) {
		if expired {
			glanced.Done()
			glanced.Wait()
		}
		return map[wake.Need]bool{heldStep: expired}, nil
	}}
	for range many {
		all.Go(func() {
			due, err := j.Due(t.Context(), []wake.Need{heldStep, {Kind: wake.Step, Name: "h"}})
			if err != nil || !due[wake.Need{Kind: wake.Step, Name: "h"}] || runs == 0 {
				t.Errorf("asked: %v, %v", due, err)
			}
		})
	}
	all.Wait()
	expired = false
	if due, err := j.Due(t.Context(), []wake.Need{heldStep}); err != nil || due[heldStep] {
		t.Errorf("asked: %v, %v", due, err)
	}
	if runs != 1 {
		t.Errorf("%d swept", runs)
	}
}
