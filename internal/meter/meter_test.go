package meter

import (
	"testing"
	"time"
)

// TestHistogram verifies that durations are counted in the first bucket that has room for them, and in all after it.
func TestHistogram(t *testing.T) {
	var w Work
	now := time.Now()
	w.Waited(now, now.Add(10*time.Second+100*time.Millisecond), 10*time.Second) // waited exactly 0.1 s
	w.Waited(now, now.Add(-time.Hour), 0)                                       // clocks differ
	w.Waited(now, now.Add(time.Hour), 0)
	w.Waited(time.Unix(0, 0), now, 0) // unknown
	n, sum, buckets := w.Wait.Read()
	if n != 3 || sum != 3600.1 || buckets[0.005] != 1 || buckets[0.05] != 1 || buckets[0.1] != 2 || buckets[1800] != 2 || len(buckets) != len(Bounds) || len(w.Wait.buckets) != len(Bounds)+1 {
		t.Errorf("got %d, %f, %v", n, sum, buckets)
	}
}

// TestKindsAreFixed verifies that a kind that is not known adds nothing to what is shown.
func TestKindsAreFixed(t *testing.T) {
	m := newMeter()
	m.Expire("feed")
	m.Expire(Item)
	m.Kind(Item).Take(1)
	m.Kind(Item).Take(2)
	if len(m.kinds) != len(Kinds) || m.Kind(Item).Expired.Load() != 1 || m.Kind(Item).Retries.Load() != 1 {
		t.Errorf("got %+v", m.kinds)
	}
}

// TestRecentDurations verifies that 95 % of the durations are at most what Take returns, which is at most a quarter too long, and that each
// duration counts once.
func TestRecentDurations(t *testing.T) {
	var r Recent
	if d, ok := r.Take(); ok {
		t.Errorf("got %v of nothing", d)
	}
	for i := range 100 {
		r.Observe(time.Duration(i+1) * time.Millisecond)
	}
	if d, ok := r.Take(); !ok || d < 95*time.Millisecond || d > 95*time.Millisecond*5/4 {
		t.Errorf("got %v, %t, want 95 ms and at most a quarter more", d, ok)
	}
	if d, ok := r.Take(); ok {
		t.Errorf("got %v, which was taken before", d)
	}
	for _, d := range []time.Duration{-time.Second, 0, time.Nanosecond} {
		r.Observe(d)
	}
	if d, _ := r.Take(); d != recentFirst {
		t.Errorf("got %v, want the first bucket", d)
	}
	r.Observe(24 * time.Hour)
	if d, _ := r.Take(); d < time.Minute {
		t.Errorf("got %v, want the last bucket", d)
	}
}
