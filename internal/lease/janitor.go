package lease

import (
	"cmp"
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

// Sweep releases expired leases or deletes expired rows, and returns how many. Several janitors may run it at once.
type Sweep struct {
	Name string
	// Needs are the kinds of work it looks for: it is skipped while there is none. Without needs it always runs.
	Needs []wake.WorkKind
	// Run sweeps. onDemand is true if a caller is about to claim what is released, false if the janitor or the idle
	// poller runs it.
	Run func(ctx context.Context, onDemand bool) (freed int, err error)
}

// longestRepeat limits how long a sweep repeats: until it ends, the other sweeps wait.
const longestRepeat = 5 * time.Second

// Pages deletes pages of rows, in a size that takes about as long as writers may have to wait for one: on SQLite there is one writer. There is a smallest
// size, because a page takes some time however small it is, for example a round trip. The zero value is ready to use, and remembers the size. It is safe for
// concurrent use.
type Pages struct{ size atomic.Int64 }

// The sizes of pages, in rows, and how long one should take.
const (
	smallestPage = 200
	largestPage  = 2000
	pageTime     = 20 * time.Millisecond
)

// Repeat deletes page after page while there is more, for at most a time. It waits after each page as long as the page
// took, so that deleting leaves half of one connection's time to others. page deletes about as many rows as it is told, and returns how many it
// deleted, and whether there may be more.
func (p *Pages) Repeat(ctx context.Context, limit time.Duration, page func(ctx context.Context, size int) (n int, more bool, err error)) (sum int, err error) {
	for begun := clock.OfMachine(); ; {
		since, size := clock.OfMachine(), cmp.Or(p.size.Load(), smallestPage)
		n, more, err := page(ctx, int(size))
		took := clock.OfMachine().Sub(since)
		switch {
		case took > pageTime:
			p.size.Store(max(size/2, smallestPage))
		case more:
			p.size.Store(min(size*2, largestPage))
		}
		if sum += n; err != nil || !more || clock.OfMachine().Sub(begun)+took >= min(limit, longestRepeat) {
			return sum, err
		}
		if err := clock.Wait(ctx, took); err != nil {
			return sum, err
		}
	}
}

// leases are the kinds of the needs of sweeps that release expired leases.
var leases = []string{wake.HeldReaction, wake.HeldStream, wake.HeldOperation, wake.HeldStep, wake.HeldItem}

// Janitor runs sweeps periodically: in each of its rounds, every sweep that has work. A sweep that fails is retried in
// the next round; [Janitor.Stalled] reports a janitor that no longer completes its rounds.
type Janitor struct {
	Every  time.Duration
	Sweeps []Sweep
	Log    *slog.Logger
	// HasWork returns which of the sweeps' needs have work; nil means all. Most rounds find nothing and run only
	// this query.
	HasWork func(context.Context, []wake.WorkKind) (map[wake.WorkKind]bool, error)

	mu       sync.Mutex
	rounds   map[string]Swept  // the last run of each sweep in a round
	expiring chan struct{}     // semaphore: one caller at a time releases expired leases
	begun    map[string]demand // sweeps on demand, by the name of the sweep
	stuck    map[string]stuck  // by the name of the sweep; used by the idle poller
	// last is the time of the last round without an error, by the monotonic clock: the wall clock may be set.
	last   atomic.Pointer[time.Time]
	failed atomic.Int32 // failed rounds since then
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// Start starts sweeping. Stop must be called.
func (j *Janitor) Start(ctx context.Context) {
	ctx, j.stop = context.WithCancel(ctx)
	j.good()
	j.done.Go(func() {
		for clock.Wait(ctx, clock.Jitter(j.Every)) == nil {
			j.Round(ctx)
		}
	})
}

// Stop stops sweeping and waits for it. Calling it twice is harmless.
func (j *Janitor) Stop() {
	j.stop()
	j.done.Wait()
}

// Round runs every sweep once. Tests call it instead of Start.
func (j *Janitor) Round(ctx context.Context) {
	healthy := true
	there := j.hasWork(ctx)
	for _, s := range j.Sweeps {
		var err error
		if there(s) {
			_, err = j.sweep(ctx, s, false)
			healthy = healthy && (err == nil || ctx.Err() != nil)
		}
		j.swept(s.Name, err)
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

// Swept is the last run of a sweep in a round of the janitor.
type Swept struct {
	At  time.Time // by the machine's clock
	Err error
}

// swept records a run of a sweep. A sweep that had nothing to do counts.
func (j *Janitor) swept(name string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.rounds == nil {
		j.rounds = make(map[string]Swept)
	}
	j.rounds[name] = Swept{clock.OfMachine(), err}
}

// Rounds returns the last run of each sweep, by name.
func (j *Janitor) Rounds() map[string]Swept {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.rounds)
}

func (j *Janitor) sweep(ctx context.Context, s Sweep, onDemand bool) (freed int, err error) {
	freed, err = s.Run(ctx, onDemand)
	switch {
	case err != nil && ctx.Err() == nil:
		j.Log.Warn("failed to run a sweep", "sweep", s.Name, "error", err)
	case freed > 0:
		j.Log.Info("sweep released or deleted expired rows", "sweep", s.Name, "count", freed)
	}
	return freed, err
}

// Leases returns the needs of the sweeps that release expired leases.
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

// Expire runs the sweeps of expired leases that have work according to due. The idle poller calls it after each
// poll. Leases that a sweep could not release, such as those of a lifecycle that this node does not have, are
// swept less and less often.
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

// expired reports whether due contains leases that the sweep releases.
func (s Sweep) expired(due map[wake.WorkKind]bool) bool {
	return slices.ContainsFunc(s.Needs, func(n wake.WorkKind) bool { return due[n] && slices.Contains(leases, n.Kind) })
}

// stuck records a sweep that released nothing: when, and how long it is skipped.
type stuck struct {
	since time.Time
	pause time.Duration
}

// Due returns which needs have work, and first releases the expired leases among them. Callers use it before a
// claim, so that the work of a crashed holder can be claimed. If leases were released, all needs count as due.
// One of several concurrent callers sweeps for all. A call from within a sweep, such as from user code that the sweep
// runs, sweeps nothing.
func (j *Janitor) Due(ctx context.Context, needs []wake.WorkKind) (map[wake.WorkKind]bool, error) {
	begun := j.demands()
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

// sweeping marks the context of a sweep on demand.
type sweeping struct{}

// demand counts the on-demand runs of a sweep: how many began, and which was the last to finish. barren covers
// consecutive runs that released nothing.
type demand struct {
	begun, finished int
	barren          stuck
}

// maxBarren limits how long callers skip a sweep that repeatedly released nothing. Without the pause, each of
// many callers waiting for work would try to release a lease that cannot be released, at every poll.
const maxBarren = 500 * time.Millisecond

// demands returns the current counts of all sweeps.
func (j *Janitor) demands() map[string]demand {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.begun == nil {
		j.begun, j.expiring = make(map[string]demand), make(chan struct{}, 1)
	}
	return maps.Clone(j.begun)
}

// sweepSince sweeps, unless another caller has done so since.
func (j *Janitor) sweepSince(ctx context.Context, s Sweep, since demand) {
	j.mu.Lock()
	now := j.begun[s.Name]
	if now.finished > since.begun || clock.OfMachine().Sub(now.barren.since) < now.barren.pause {
		j.mu.Unlock()
		return
	}
	now.begun++
	j.begun[s.Name] = now
	j.mu.Unlock()
	freed, err := j.sweep(ctx, s, true)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		now.finished = now.begun
	}
	switch {
	case freed > 0:
		now.barren = stuck{}
	case now.barren.since.IsZero(): // once is not enough: another node may have released it
		now.barren.since = clock.OfMachine()
	default:
		now.barren = stuck{clock.OfMachine(), min(2*now.barren.pause+time.Millisecond, maxBarren)}
	}
	j.mu.Lock()
	j.begun[s.Name] = now
	j.mu.Unlock()
}

// hasWork returns which sweeps have work; all of them if that is unknown.
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
	if err != nil { // the sweeps report the error
		return all
	}
	return func(s Sweep) bool {
		return len(s.Needs) == 0 || slices.ContainsFunc(s.Needs, func(n wake.WorkKind) bool { return due[n] })
	}
}

// stalledAfter is the time that a round may take even with a short interval: a single database call may take
// seconds.
const stalledAfter = 30 * time.Second

// Stalled returns the time since the last successful round and reports whether the janitor has stalled: since that
// round, more than three intervals have passed, and either three rounds have failed or more than 30 seconds have
// passed. This node then releases nothing that crashes leave behind.
func (j *Janitor) Stalled() (time.Duration, bool) {
	last := j.last.Load()
	if last == nil { // not started
		return 0, false
	}
	ago := clock.OfMachine().Sub(*last)
	return ago, ago > 3*j.Every && (j.failed.Load() >= 3 || ago > stalledAfter)
}
