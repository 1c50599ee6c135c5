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
