package hold

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Sweep frees what a crash left held, and says how many things it freed. It may
// be called by several janitors at once.
type Sweep struct {
	Name string
	// Needs are what it looks for: it is left out while there is nothing of
	// that. With none it is always run.
	Needs []wake.Need
	Run   func(context.Context) (freed int, err error)
}

// Janitor sweeps again and again. A sweep that fails is tried again at the next
// turn; a janitor that does not get round any more shows in [Janitor.Stalled].
type Janitor struct {
	Every  time.Duration
	Sweeps []Sweep
	Log    *slog.Logger
	// Glance says for which of the sweeps' needs there is something; nil is for
	// all. Most rounds find nothing, and ask no more than this.
	Glance func(context.Context, []wake.Need) (map[wake.Need]bool, error)

	// last is when a round was last finished without an error, by the machine's
	// monotonic clock: the wall clock may be set.
	last   atomic.Pointer[time.Time]
	failed atomic.Int32 // rounds since then
	stop context.CancelFunc
	done sync.WaitGroup
}

// Start begins to sweep. Stop must be called.
func (j *Janitor) Start(ctx context.Context) {
	ctx, j.stop = context.WithCancel(ctx)
	j.good()
	j.done.Go(func() {
		for clock.Wait(ctx, clock.Jitter(j.Every)) == nil {
			j.Round(ctx)
		}
	})
}

// Stop ends the sweeping and waits for it. Stopping twice is harmless.
func (j *Janitor) Stop() {
	j.stop()
	j.done.Wait()
}

// Round sweeps everything once. Tests call it instead of Start.
func (j *Janitor) Round(ctx context.Context) {
	healthy := true
	there := j.glance(ctx)
	for _, s := range j.Sweeps {
		if !there(s) {
			continue
		}
		freed, err := s.Run(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			healthy = false
			j.Log.Warn("a sweep failed", "sweep", s.Name, "error", err)
		case freed > 0:
			j.Log.Info("freed what nobody held any more", "sweep", s.Name, "freed", freed)
		}
	}
	if !healthy {
		j.failed.Add(1)
		return
	}
	j.good()
}

func (j *Janitor) good() {
	now := clock.OfMachine()
	j.last.Store(&now)
	j.failed.Store(0)
}

// glance says which sweeps there is something for: all, where it is not known.
func (j *Janitor) glance(ctx context.Context) func(Sweep) bool {
	all := func(Sweep) bool { return true }
	var needs []wake.Need
	for _, s := range j.Sweeps {
		needs = append(needs, s.Needs...)
	}
	if j.Glance == nil || len(needs) == 0 {
		return all
	}
	due, err := j.Glance(ctx, needs)
	if err != nil { // the sweeps tell
		return all
	}
	return func(s Sweep) bool {
		return len(s.Needs) == 0 || slices.ContainsFunc(s.Needs, func(n wake.Need) bool { return due[n] })
	}
}

// stalledAfter is how long a janitor may take for a round, however short its turns
// are: a call of the database alone may take some seconds.
const stalledAfter = 30 * time.Second

// Stalled returns how long ago the last good round was, if that is longer than
// three turns, and three rounds have failed since or 30 seconds have passed: then
// nobody on this node frees what crashes leave held.
func (j *Janitor) Stalled() (time.Duration, bool) {
	last := j.last.Load()
	if last == nil { // it has not begun
		return 0, false
	}
	ago := clock.OfMachine().Sub(*last)
	return ago, ago > 3*j.Every && (j.failed.Load() >= 3 || ago > stalledAfter)
}
