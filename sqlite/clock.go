package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// now is the database's time in milliseconds since 1970: the machine's clock, because SQLite has no
// other, and the shift that tests can set.
//
// The machine's part is bound and not read in SQL: SQLite would read the same clock, at three times
// the cost.
//
// # A clock that is set back
//
// If the time went back with the clock, the lease of a crashed holder would last longer by that
// amount. So it does not: it continues from where it was, at half the clock's speed, until the
// clock has caught up. The column meets has the time when that will be; so all processes have the
// same time, and those that start later too.
//
//   - A process detects such a step of the clock by its monotonic clock, at its next
//     command: an idle process polls. If several do, meets shows that another has
//     stored the step.
//   - A step while no process ran is detected at the next start: there are events
//     in the future.
//   - A step of more than a day is not compensated: then the clock was wrong
//     before, and its time must not last.
//
// The cost: leases and timers take up to twice as long while the time is ahead, which is for twice
// the amount by which the clock was set back, and events then have times ahead of the clock. A
// second step while the time is still ahead of the clock is compensated by at least half.
//
// Rejected: a time that stands still until the clock has caught up (no lease expires meanwhile); a
// time that stays ahead (daily schedules would run early forever).
const now = `(SELECT max(:now, (:now + c.meets) / 2) + c.shift FROM holdfast_clock AS c WHERE c.one = 1)`

const (
	leastStep = time.Second // a smaller step is drift
	mostStep  = 24 * time.Hour
)

// aheadText returns by how many milliseconds the newest event is ahead of now.
const aheadText = `SELECT coalesce(max((SELECT h.at FROM holdfast_history AS h WHERE h.shard = w.shard ORDER BY h.shard DESC, h.id DESC LIMIT 1)), 0)
       - (SELECT max(?1, (?1 + c.meets) / 2) + c.shift FROM holdfast_clock AS c WHERE c.one = 1)
  FROM (SELECT DISTINCT shard FROM holdfast_workspace) AS w`

// wallClock is the machine's clock.
type wallClock struct {
	// wrong returns the offset that tests have set; nil means none.
	wrong func() time.Duration

	mu     sync.Mutex
	begun  time.Time // with a monotonic reading
	offset time.Duration
	asked  time.Duration // time since begun, by the monotonic clock, of the last check without a step
}

// ms returns the wall clock's time in milliseconds.
func (w *wallClock) ms() int64 {
	wall, _ := w.read()
	return wall
}

func (w *wallClock) read() (ms int64, at time.Time) {
	at = clock.OfMachine()
	ms = at.UnixMilli()
	if w.wrong != nil {
		ms += w.wrong().Milliseconds()
	}
	return ms, at
}

// stepped returns the current time, by how much the clock has been set back, and the time since the
// last check that found no step.
func (w *wallClock) stepped() (ms int64, back, ago time.Duration) {
	ms, at := w.read()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun.IsZero() {
		w.begun = at
	}
	since := at.Sub(w.begun)
	offset := time.Duration(ms)*time.Millisecond - since
	back, ago = w.offset-offset, since-w.asked
	if w.offset == 0 || back < 0 {
		w.offset, back = offset, 0
	}
	if back < leastStep { // until a step is stored, ago counts from the last check before it
		w.asked = since
	}
	return ms, back, ago
}

// stored records that a step is compensated.
func (w *wallClock) stored(back time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offset -= back
}

// adjustTime compensates a clock that was set back since the last call.
func (s *adapter) adjustTime(ctx context.Context) error {
	_, back, ago := s.wall.stepped()
	if back < leastStep {
		return nil
	}
	s.stepping.Lock()
	defer s.stepping.Unlock()
	ms, back, _ := s.wall.stepped()
	if back < leastStep { // another caller in this process was first
		return nil
	}
	set := func() error { return s.setBack(ctx, ms, back, ago) }
	if back > mostStep {
		set = func() error { return s.follow(ctx, back) }
	}
	if err := set(); err != nil {
		return err
	}
	s.wall.stored(back)
	return nil
}

// adjustTimeAtStart compensates a clock that was set back while no process ran.
func (s *adapter) adjustTimeAtStart(ctx context.Context) error {
	ms, _, _ := s.wall.stepped()
	var ahead int64
	err := store.Retry(ctx, func() error { return s.fault(s.read.QueryRowContext(ctx, aheadText, ms).Scan(&ahead)) })
	if back := time.Duration(ahead) * time.Millisecond; err == nil && back >= leastStep && back <= mostStep {
		err = s.setBack(ctx, ms, back, 0)
	}
	return err
}

// setBack makes the time continue from where it was.
func (s *adapter) setBack(ctx context.Context, ms int64, back, ago time.Duration) error {
	meets := ms + 2*back.Milliseconds()
	// The step happened within ago. A value above the limit was stored by another process for the same step.
	first, err := s.setMeets(ctx, meets, "meets < ?2", meets-(ago+leastStep).Milliseconds())
	if first {
		s.log.Warn("clock was set back: database time runs at half speed until the clock has caught up", "by", back)
	}
	return err
}

// follow makes the time go back with the clock.
func (s *adapter) follow(ctx context.Context, back time.Duration) error {
	s.log.Warn("clock was set back by more than a day: leases of crashed holders last longer by that amount", "by", back)
	_, err := s.setMeets(ctx, 0, "meets > ?2", 0)
	return err
}

// setMeets sets the column meets if the condition where holds, in which ?2 is limit. It reports whether it changed the
// row: another process may have changed it first.
func (s *adapter) setMeets(ctx context.Context, meets int64, where string, limit int64) (changed bool, err error) {
	err = store.Retry(ctx, func() error {
		link, release, err := s.writer(ctx)
		if err != nil {
			return err
		}
		defer release()
		done, err := link.ExecContext(context.WithoutCancel(ctx), "UPDATE holdfast_clock SET meets = ?1 WHERE one = 1 AND "+where, meets, limit)
		if err != nil {
			return s.fault(err)
		}
		n, err := done.RowsAffected()
		changed = n > 0
		return s.fault(err)
	})
	return changed, err
}
