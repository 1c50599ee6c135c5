package engine

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// unserved warns, once, if nobody serves the work of an engine on which Run was never called: a forgotten Run has no
// other symptom than work that never happens.
//
// A program may rightly leave Run to other nodes, so it is not enough that there is work. Work counts only if it is due
// in every check of a period, and if no node holds a lease on work of its kind: a busy cluster always has work due, but
// then it also has leases. Expired leases count only after a longer period, because the config of a lifecycle may
// set a long interval between the janitor's sweeps; so do timers and conditions of runs, which have no lease. The checks are caused by opening the engine and by commits that make work due, and continue only while
// they find something: an engine at rest runs none.
type unserved struct {
	served []func() []wake.WorkKind // set before the engine is used
	ran    atomic.Bool              // Run was called, or the warning was logged
	armed  atomic.Bool              // a check is scheduled or runs, or the engine is being opened

	mu     sync.Mutex
	closed bool
	timer  *time.Timer
	since  map[wake.WorkKind]time.Time // the first of the consecutive checks that found the work unserved
}

const (
	checkUnserved = 30 * time.Second // the interval of the checks
	// UnservedAfter is the period after which work that a node would take at once is reported; ExpiredAfter is that of
	// expired leases, and of timers and conditions of runs.
	UnservedAfter = 30 * time.Second
	ExpiredAfter  = 5 * time.Minute
)

// Serves adds work that this engine serves once it runs. Parts call it when they are registered.
func (e *Engine) Serves(kinds func() []wake.WorkKind) {
	e.unserved.served = append(e.unserved.served, kinds)
}

// Opened is called when all parts are registered.
func (e *Engine) Opened() {
	e.unserved.armed.Store(false)
	e.watchUnserved()
}

// IgnoreUnserved ends the checks, for tests that count the calls of the database.
func (e *Engine) IgnoreUnserved() { e.unserved.ran.Store(true) }

// watchUnserved schedules a check, unless there is one or none is needed.
func (e *Engine) watchUnserved() {
	u := &e.unserved
	if u.ran.Load() || !u.armed.CompareAndSwap(false, true) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.timer = time.AfterFunc(checkUnserved, e.checkUnserved)
	}
}

// checkUnserved runs a scheduled check, and schedules the next if it found something.
func (e *Engine) checkUnserved() {
	ctx, cancel := context.WithTimeout(context.Background(), checkUnserved)
	defer cancel()
	again := e.Unserved(ctx, clock.OfMachine())
	e.unserved.armed.Store(false)
	if again {
		e.watchUnserved()
	}
}

// Unserved checks now whether somebody serves the work of this engine, logs the warning if it is time, and reports
// whether another check is needed. It is exported for tests.
func (e *Engine) Unserved(ctx context.Context, now time.Time) (again bool) {
	u := &e.unserved
	if u.ran.Load() {
		return false
	}
	needs := e.follow.WorkKinds()
	for _, kinds := range u.served {
		needs = append(needs, kinds()...)
	}
	if len(needs) == 0 {
		return false
	}
	shards, err := e.Shards(ctx)
	var found []wake.WorkKind
	if err == nil {
		found, err = wake.Unserved(ctx, e, shards, append(needs, e.janitor.Leases()...))
	}
	if err != nil { // the callers of the engine learn of it too
		e.log.Debug("failed to check for unserved work", "error", err)
		return false
	}
	if late := u.observe(found, now); len(late) > 0 && u.ran.CompareAndSwap(false, true) {
		e.log.LogAttrs(ctx, slog.LevelWarn, "due work is not served: call Engine.Run on this node or on another", slog.String("work", strings.Join(late, ", ")))
	}
	return len(found) > 0 && !u.ran.Load()
}

// observe records what a check found, and returns what has been unserved for too long.
func (u *unserved) observe(found []wake.WorkKind, now time.Time) (late []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.since
	u.since = make(map[wake.WorkKind]time.Time, len(found))
	for _, k := range found {
		first, known := before[k]
		if !known {
			first = now
		}
		u.since[k] = first
		patience := ExpiredAfter
		if k.TakenAtOnce() {
			patience = UnservedAfter
		}
		if known && now.Sub(first) >= patience {
			late = append(late, k.String())
		}
	}
	slices.Sort(late)
	return slices.Compact(late)
}

// stop ends the checks.
func (u *unserved) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	if u.timer != nil {
		u.timer.Stop()
	}
}
