package lease

import (
	"context"
	"log/slog"
	"maps"
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
	Needs []wake.WorkKind
	// Run sweeps. asked says that somebody is about to take what is freed; else it is the turn of the janitor.
	Run func(ctx context.Context, asked bool) (freed int, err error)
}

// leases are the needs of sweeps that end expired leases.
var leases = []string{wake.HeldReaction, wake.HeldStream, wake.HeldOperation, wake.HeldStep, wake.HeldItem}

// Janitor sweeps again and again. A sweep that fails is tried again at the next
// turn; a janitor that does not get round any more shows in [Janitor.Stalled].
type Janitor struct {
	Every  time.Duration
	Sweeps []Sweep
	Log    *slog.Logger
	// HasWork says for which of the sweeps' needs there is something; nil is for
	// all. Most rounds find nothing, and ask no more than this.
	HasWork func(context.Context, []wake.WorkKind) (map[wake.WorkKind]bool, error)

	mu       sync.Mutex
	expiring chan struct{}    // who has put something into it ends expired leases: one at a time
	begun    map[string]turns // how often that was begun, by the name of the sweep
	stuck    map[string]stuck // by the name of the sweep; the pulse's
	// last is when a round was last finished without an error, by the machine's
	// monotonic clock: the wall clock may be set.
	last   atomic.Pointer[time.Time]
	failed atomic.Int32 // rounds since then
	stop   context.CancelFunc
	done   sync.WaitGroup
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
	there := j.hasWork(ctx)
	for _, s := range j.Sweeps {
		if there(s) {
			_, ok := j.sweep(ctx, s, false)
			healthy = healthy && ok
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

func (j *Janitor) sweep(ctx context.Context, s Sweep, asked bool) (freed int, healthy bool) {
	freed, err := s.Run(ctx, asked)
	switch {
	case err != nil && ctx.Err() == nil:
		j.Log.Warn("a sweep failed", "sweep", s.Name, "error", err)
		return freed, false
	case freed > 0:
		j.Log.Info("freed what nobody held any more", "sweep", s.Name, "freed", freed)
	}
	return freed, true
}

// Leases are the needs of the sweeps that end expired leases.
func (j *Janitor) Leases() (all []wake.WorkKind) {
	for _, s := range j.Sweeps {
		for _, n := range s.Needs {
			if slices.Contains(leases, n.Kind) {
				all = append(all, n)
			}
		}
	}
	return all
}

// Expire runs the sweeps of leases for which there is something, as a glance said. A pulse calls it after each of its
// glances. What is there again after a sweep that freed nothing, such as the leases of a lifecycle that this node does not
// have, is looked at less and less often.
func (j *Janitor) Expire(ctx context.Context, due map[wake.WorkKind]bool) {
	if j.stuck == nil {
		j.stuck = make(map[string]stuck)
	}
	for _, s := range j.Sweeps {
		was := j.stuck[s.Name]
		switch {
		case !s.expired(due):
			delete(j.stuck, s.Name)
		case clock.OfMachine().Sub(was.since) >= was.pause:
			next := stuck{clock.OfMachine(), min(max(2*was.pause, time.Millisecond), j.Every)}
			if freed, _ := j.sweep(ctx, s, false); freed > 0 {
				next = stuck{}
			}
			j.stuck[s.Name] = next
		}
	}
}

// expired says whether leases that a sweep ends have expired, as a glance said.
func (s Sweep) expired(due map[wake.WorkKind]bool) bool {
	return slices.ContainsFunc(s.Needs, func(n wake.WorkKind) bool { return due[n] && slices.Contains(leases, n.Kind) })
}

// stuck is a sweep that freed nothing: when, and how long it is left alone.
type stuck struct {
	since time.Time
	pause time.Duration
}

// Due says for which needs there is something, and ends the expired leases among them first: whoever takes
// something asks this, so that what a dead holder had can be taken. Where leases were ended, all of needs
// counts as due. Many may ask at once: one sweeps for all. What a sweep itself asks, such as a hook of its user's, sweeps nothing.
func (j *Janitor) Due(ctx context.Context, needs []wake.WorkKind) (map[wake.WorkKind]bool, error) {
	begun := j.turns()
	due, err := j.HasWork(ctx, needs)
	if err != nil || !slices.ContainsFunc(needs, func(n wake.WorkKind) bool { return due[n] && slices.Contains(leases, n.Kind) }) {
		return due, err
	}
	if ctx.Value(sweeping{}) != nil {
		return due, nil
	}
	select {
	case j.expiring <- struct{}{}:
		defer func() { <-j.expiring }()
	case <-ctx.Done():
		return due, context.Cause(ctx)
	}
	for _, s := range j.Sweeps {
		if s.expired(due) {
			j.sweepSince(context.WithValue(ctx, sweeping{}, true), s, begun[s.Name])
		}
	}
	for _, n := range needs {
		due[n] = true
	}
	return due, nil
}

// sweeping marks the context of a sweep that somebody has asked for.
type sweeping struct{}

// turns are how often a sweep was begun because somebody asked, and which of these was the last that was finished.
// barren is of those that freed nothing, one after the other.
type turns struct {
	begun, finished int
	barren          stuck
}

// longestBarren is how long those who ask leave a sweep alone at the most that freed nothing again and again: else each of
// many who wait for work would try to end a lease that cannot be ended whenever it looks.
const longestBarren = 500 * time.Millisecond

// turns are those of all sweeps, as they are now.
func (j *Janitor) turns() map[string]turns {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.begun == nil {
		j.begun, j.expiring = make(map[string]turns), make(chan struct{}, 1)
	}
	return maps.Clone(j.begun)
}

// sweepSince sweeps, unless another has done so since.
func (j *Janitor) sweepSince(ctx context.Context, s Sweep, since turns) {
	j.mu.Lock()
	now := j.begun[s.Name]
	if now.finished > since.begun || clock.OfMachine().Sub(now.barren.since) < now.barren.pause {
		j.mu.Unlock()
		return
	}
	now.begun++
	j.begun[s.Name] = now
	j.mu.Unlock()
	freed, healthy := j.sweep(ctx, s, true)
	if ctx.Err() != nil {
		return
	}
	if healthy {
		now.finished = now.begun
	}
	switch {
	case freed > 0:
		now.barren = stuck{}
	case now.barren.since.IsZero(): // once tells nothing: another node has freed it, perhaps
		now.barren.since = clock.OfMachine()
	default:
		now.barren = stuck{clock.OfMachine(), min(2*now.barren.pause+time.Millisecond, longestBarren)}
	}
	j.mu.Lock()
	j.begun[s.Name] = now
	j.mu.Unlock()
}

// hasWork says which sweeps there is something for: all, where it is not known.
func (j *Janitor) hasWork(ctx context.Context) func(Sweep) bool {
	all := func(Sweep) bool { return true }
	var needs []wake.WorkKind
	for _, s := range j.Sweeps {
		needs = append(needs, s.Needs...)
	}
	if j.HasWork == nil || len(needs) == 0 {
		return all
	}
	due, err := j.HasWork(ctx, needs)
	if err != nil { // the sweeps tell
		return all
	}
	return func(s Sweep) bool {
		return len(s.Needs) == 0 || slices.ContainsFunc(s.Needs, func(n wake.WorkKind) bool { return due[n] })
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
