package lease

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/wake"
)

var heldStep = wake.WorkKind{Kind: wake.HeldStep}

// TestASweepThatFreesNothingIsLeftAlone verifies that leases which a sweep cannot release are swept rarely, and
// others at each poll; and that the pause is reset when there are none left.
func TestASweepThatFreesNothingIsLeftAlone(t *testing.T) {
	frees, runs := 0, 0
	j := &Janitor{Every: time.Hour, Log: slog.New(slog.DiscardHandler), Sweeps: []Sweep{{Name: "s", Needs: []wake.WorkKind{heldStep, {Kind: wake.OldRun}},
		Run: func(context.Context, bool) (int, error) { runs++; return frees, nil }}}}
	polls := func(due map[wake.WorkKind]bool) int {
		runs = 0
		for range 1000 {
			j.Expire(t.Context(), due)
		}
		return runs
	}
	there := map[wake.WorkKind]bool{heldStep: true}
	if n := polls(there); n == 0 || n > 100 {
		t.Errorf("sweeps that release nothing: got %d in 1000 polls", n)
	}
	if n := polls(map[wake.WorkKind]bool{{Kind: wake.OldRun}: true}); n != 0 {
		t.Errorf("without expired leases: got %d sweeps, want 0", n)
	}
	if frees = 1; polls(there) != 1000 {
		t.Errorf("sweeps that release leases: got %d in 1000 polls, want 1000", runs)
	}
}

// TestManyWhoAskSweepOnce verifies that of many concurrent callers with expired leases, one sweeps and the
// others wait for it; and that none sweeps if no lease has expired.
func TestManyWhoAskSweepOnce(t *testing.T) {
	const many = 20
	runs := 0
	var all, polled sync.WaitGroup
	polled.Add(many)
	expired := true
	j := &Janitor{Log: slog.New(slog.DiscardHandler), Sweeps: []Sweep{{Name: "s", Needs: []wake.WorkKind{heldStep}, Run: func(_ context.Context, onDemand bool) (int, error) {
		if !onDemand {
			t.Error("the sweep does not run on demand")
		}
		runs++ // under the janitor's lock
		return 1, nil
	}}}, HasWork: func(_ context.Context, needs []wake.WorkKind) (map[wake.WorkKind]bool, error) {
		if expired {
			polled.Done()
			polled.Wait()
		}
		return map[wake.WorkKind]bool{heldStep: expired}, nil
	}}
	for range many {
		all.Go(func() {
			due, err := j.Due(t.Context(), []wake.WorkKind{heldStep, {Kind: wake.Step, Name: "h"}})
			if err != nil || !due[wake.WorkKind{Kind: wake.Step, Name: "h"}] || runs == 0 {
				t.Errorf("got due work %v, error %v", due, err)
			}
		})
	}
	all.Wait()
	expired = false
	if due, err := j.Due(t.Context(), []wake.WorkKind{heldStep}); err != nil || due[heldStep] {
		t.Errorf("got due work %v, error %v", due, err)
	}
	if runs != 1 {
		t.Errorf("got %d sweeps, want 1", runs)
	}
}

var heldItem = wake.WorkKind{Kind: wake.HeldItem}

// TestWhoSweepsOneKindSweepsNoOther verifies that a caller that needs leases of one kind sweeps them even if
// another caller has begun to sweep another kind since it polled.
func TestWhoSweepsOneKindSweepsNoOther(t *testing.T) {
	runs := make(map[string]int)
	sweep := func(name string, n wake.WorkKind) Sweep {
		return Sweep{Name: name, Needs: []wake.WorkKind{n}, Run: func(context.Context, bool) (int, error) { runs[name]++; return 1, nil }}
	}
	var polled sync.WaitGroup
	polled.Add(2)
	j := &Janitor{Log: slog.New(slog.DiscardHandler), Sweeps: []Sweep{sweep("steps", heldStep), sweep("items", heldItem)},
		HasWork: func(_ context.Context, needs []wake.WorkKind) (map[wake.WorkKind]bool, error) {
			polled.Done()
			polled.Wait()
			return map[wake.WorkKind]bool{needs[0]: true}, nil
		}}
	var all sync.WaitGroup
	for _, n := range []wake.WorkKind{heldStep, heldItem} {
		all.Go(func() { _, _ = j.Due(t.Context(), []wake.WorkKind{n}) })
	}
	all.Wait()
	if runs["steps"] != 1 || runs["items"] != 1 {
		t.Errorf("got sweeps %v, want one each", runs)
	}
}

// TestASweepThatWasBrokenOffIsNone verifies that a caller that waits for another's sweep sweeps itself if that
// one failed.
func TestASweepThatWasBrokenOffIsNone(t *testing.T) {
	runs := 0
	var polled, all sync.WaitGroup
	polled.Add(2)
	j := &Janitor{Log: slog.New(slog.DiscardHandler), Sweeps: []Sweep{{Name: "s", Needs: []wake.WorkKind{heldStep}, Run: func(context.Context, bool) (int, error) {
		if runs++; runs == 1 {
			return 0, context.Canceled
		}
		return 1, nil
	}}}, HasWork: func(context.Context, []wake.WorkKind) (map[wake.WorkKind]bool, error) {
		polled.Done()
		polled.Wait()
		return map[wake.WorkKind]bool{heldStep: true}, nil
	}}
	for range 2 {
		all.Go(func() { _, _ = j.Due(t.Context(), []wake.WorkKind{heldStep}) })
	}
	all.Wait()
	if runs != 2 {
		t.Errorf("got %d sweeps, want 2", runs)
	}
}

// TestASweepThatHangsHoldsNobodyUp verifies that a caller waits for another's hanging sweep no longer than its
// context, and that a sweep that calls Due does not wait for itself.
func TestASweepThatHangsHoldsNobodyUp(t *testing.T) {
	hangs, release := make(chan struct{}), make(chan struct{})
	var j *Janitor
	j = &Janitor{Log: slog.New(slog.DiscardHandler), Sweeps: []Sweep{{Name: "s", Needs: []wake.WorkKind{heldStep}, Run: func(ctx context.Context, _ bool) (int, error) {
		if _, err := j.Due(ctx, []wake.WorkKind{heldStep}); err != nil {
			t.Error(err)
		}
		close(hangs)
		<-release
		return 1, nil
	}}}, HasWork: func(context.Context, []wake.WorkKind) (map[wake.WorkKind]bool, error) {
		return map[wake.WorkKind]bool{heldStep: true}, nil
	}}
	var all sync.WaitGroup
	all.Go(func() { _, _ = j.Due(t.Context(), []wake.WorkKind{heldStep}) })
	defer all.Wait()
	defer close(release)
	select {
	case <-hangs:
	case <-time.After(10 * time.Second):
		t.Fatal("deadlock: the sweep waits for itself")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := j.Due(ctx, []wake.WorkKind{heldStep}); err == nil {
		t.Error("Due returned at once, want it to wait")
	}
}

// TestWhoAskLeaveASweepAloneThatFreesNothing verifies that not every caller tries to release a lease that
// cannot be released.
func TestWhoAskLeaveASweepAloneThatFreesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frees, runs := 0, 0
		j := &Janitor{Log: slog.New(slog.DiscardHandler), Sweeps: []Sweep{{Name: "s", Needs: []wake.WorkKind{heldStep}, Run: func(context.Context, bool) (int, error) {
			runs++
			return frees, errors.New("no")
		}}}, HasWork: func(context.Context, []wake.WorkKind) (map[wake.WorkKind]bool, error) {
			return map[wake.WorkKind]bool{heldStep: true}, nil
		}}
		poll := func() int {
			runs = 0
			for range 1000 { // 100 polls a second for ten seconds
				if _, err := j.Due(t.Context(), []wake.WorkKind{heldStep}); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			return runs
		}
		if n := poll(); n < 20 || n > 40 {
			t.Errorf("sweeps that release nothing: got %d in 10 s", n)
		}
		frees = 1
		if n := poll(); n < 950 {
			t.Errorf("sweeps that release leases: got %d, want at least 950", n)
		}
	})
}
