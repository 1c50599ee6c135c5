// Package meter counts what happens to leases on a node, by kind of work: those that expired, attempts that were not the first,
// how long work waited and how long it took. Metrics are made from the counts.
//
// The kinds are fixed, so that the metrics have few series: no count is by workspace, handler or object.
package meter

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Kinds of work. A reaction, an after-effect and a webhook are deliveries of events.
const (
	Operation   = "operation" // of an entity
	Step        = "step"      // of a run
	Item        = "item"      // of a batch
	Reaction    = "reaction"
	AfterEffect = "afterEffect"
	Webhook     = "webhook"
)

// Kinds are all kinds.
var Kinds = []string{Operation, Step, Item, Reaction, AfterEffect, Webhook}

// Work counts one kind of work since the engine was opened. It is safe for concurrent use.
type Work struct {
	Expired atomic.Int64 // leases that a janitor of this node ended
	Retries atomic.Int64 // attempts that were not the first, taken on this node
	Wait    Histogram    // from the time at which the work was due to the time at which it was taken, by the database's clock
	Took    Histogram    // of the handlers that this node ran or called
}

// Meter counts the work of an engine.
type Meter struct {
	log   atomic.Pointer[slog.Logger]
	kinds map[string]*Work // does not change
	other Work             // of the engine itself, which is not shown

	// Requests are the durations of HTTP requests, without the time for which they waited for work.
	Requests Recent
}

type meterKey struct{}

func newMeter() *Meter {
	m := &Meter{kinds: make(map[string]*Work)}
	for _, k := range Kinds {
		m.kinds[k] = new(Work)
	}
	return m
}

// Of returns the meter of the engine behind a doer.
func Of(d store.Doer) *Meter {
	shared := store.DirectoryOf(d)
	if shared == nil {
		return newMeter()
	}
	return shared.Shared(meterKey{}, func() any { return newMeter() }).(*Meter)
}

// Kind returns the counts of a kind. Those of an unknown kind are not shown.
func (m *Meter) Kind(name string) *Work {
	if w := m.kinds[name]; w != nil {
		return w
	}
	return &m.other
}

// LogTo sets the logger of expired leases. Without one they are not logged.
func (m *Meter) LogTo(log *slog.Logger) { m.log.Store(log) }

// Expire counts a lease that a janitor ended, and logs it with the attributes that identify its work and its holder.
func (m *Meter) Expire(kind string, attrs ...slog.Attr) {
	m.Kind(kind).Expired.Add(1)
	if log := m.log.Load(); log != nil {
		log.LogAttrs(context.Background(), slog.LevelWarn, "lease expired", append([]slog.Attr{slog.String("kind", kind)}, attrs...)...)
	}
}

// Take counts an attempt that was taken on this node.
func (w *Work) Take(attempt int) {
	if attempt > 1 {
		w.Retries.Add(1)
	}
}

// Waited counts how long work was due before it was taken. The time of a take is the end of its lease without the duration of
// the lease. Both times are by the database's clock; work with an unknown one is not counted.
func (w *Work) Waited(due, until time.Time, lease time.Duration) {
	if due.Unix() > 0 && until.Unix() > 0 {
		w.Wait.Observe(until.Add(-lease).Sub(due))
	}
}

// Begin measures a handler: call end when it has returned.
func (w *Work) Begin() (end func()) {
	began := clock.OfMachine()
	return func() { w.Took.Observe(clock.OfMachine().Sub(began)) }
}

// Bounds are the upper bounds of the buckets of a histogram, in seconds.
var Bounds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

// Histogram counts durations.
type Histogram struct {
	buckets [16]atomic.Int64 // one more than Bounds: the last has no upper bound
	sum     atomic.Int64     // in ns
}

// Observe counts a duration. A negative one, of clocks that differ, counts as 0.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < len(Bounds) && d.Seconds() > Bounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(d))
}

// Read returns the number and the sum of the durations, in seconds, and how many of them are at most each of the [Bounds].
func (h *Histogram) Read() (count uint64, sum float64, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(Bounds))
	for i := range h.buckets {
		count += uint64(h.buckets[i].Load())
		if i < len(Bounds) {
			buckets[Bounds[i]] = count
		}
	}
	return count, time.Duration(h.sum.Load()).Seconds(), buckets
}

// Recent counts durations until they are taken, in buckets from 0.1 ms to some minutes, each a quarter longer than the one before.
type Recent struct {
	buckets [64]atomic.Int64
}

const (
	recentFirst = 100 * time.Microsecond
	recentStep  = 1.25
)

// Observe counts a duration.
func (r *Recent) Observe(d time.Duration) {
	i := 0
	if d > recentFirst {
		i = min(int(math.Ceil(math.Log(float64(d)/float64(recentFirst))/math.Log(recentStep))), len(r.buckets)-1)
	}
	r.buckets[i].Add(1)
}

// Take returns the duration that 95 % of the durations since the last call do not exceed, rounded up to the end of its bucket, and
// false if there were none.
func (r *Recent) Take() (within time.Duration, ok bool) {
	var counts [len(r.buckets)]int64
	total := int64(0)
	for i := range r.buckets {
		counts[i] = r.buckets[i].Swap(0)
		total += counts[i]
	}
	for i, sum := 0, int64(0); total > 0; i++ {
		if sum += counts[i]; sum*100 >= total*95 {
			return time.Duration(float64(recentFirst) * math.Pow(recentStep, float64(i))), true
		}
	}
	return 0, false
}
