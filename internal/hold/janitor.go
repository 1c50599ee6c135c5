package hold

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Sweep frees what a crash left held, and says how many things it freed. It may
// be called by several janitors at once.
type Sweep struct {
	Name string
	Run  func(context.Context) (freed int, err error)
}

// Janitor sweeps again and again. A sweep that fails is tried again at the next
// turn; a janitor that does not get round any more shows in [Janitor.Stalled].
type Janitor struct {
	Every  time.Duration
	Sweeps []Sweep
	Log    *slog.Logger

	last atomic.Int64 // when a round was last finished without an error
	stop context.CancelFunc
	done sync.WaitGroup
}

// Start begins to sweep. Stop must be called.
func (j *Janitor) Start(ctx context.Context) {
	ctx, j.stop = context.WithCancel(ctx)
	j.last.Store(clock.Now().UnixNano())
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
	for _, s := range j.Sweeps {
		freed, err := s.Run(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			healthy = false
			j.Log.Warn("a sweep failed", "sweep", s.Name, "error", err)
		case freed > 0:
			j.Log.Info("freed what nobody held any more", "sweep", s.Name, "freed", freed)
		}
	}
	if healthy {
		j.last.Store(clock.Now().UnixNano())
	}
}

// Stalled returns how long ago the last good round was, if that is longer than
// three turns: then nobody on this node frees what crashes leave held.
func (j *Janitor) Stalled() (time.Duration, bool) {
	last := j.last.Load()
	if last == 0 { // it has not begun
		return 0, false
	}
	ago := clock.Since(time.Unix(0, last))
	return ago, ago > 3*j.Every
}
