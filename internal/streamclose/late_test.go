package streamclose_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/snapshots"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/streamclose"
)

// TestNoSnapshotComesAfterATombstone verifies that a snapshot made before a tombstone is
// not stored after the events have been deleted: it would never be deleted.
func TestNoSnapshotComesAfterATombstone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		add(t, hf, "gone", 3)
		holdfasttest.Advance(t, hf, streamclose.Grace+time.Second)
		if _, err := closeAt(hf, "gone", streamclose.Tombstone, nil); err != nil {
			t.Fatal(err)
		}
		if n, err := streamclose.Prune(ctx, engine.Of(hf), store.Partition{Shard: shard(t, hf)}, 100); err != nil || n == 0 {
			t.Fatal(n, err)
		}
		late := snapshots.Snapshot{Stream: "gone", Kind: "k", Version: 2, Data: []byte(`"secret"`)}
		if stored, err := snapshots.Put(ctx, engine.Of(hf), late); err != nil || stored {
			t.Errorf("late snapshot: got stored %v, error %v, want false", stored, err)
		}
		if s, err := snapshots.Get(ctx, engine.Of(hf), "gone", "k"); err != nil || s.Version != events.None {
			t.Errorf("a tombstone has snapshot %+v (error %v)", s, err)
		}
		add(t, hf, "goes on", 3)
		for _, v := range []int64{0, 2} { // an open stream has snapshots
			if stored, err := snapshots.Put(ctx, engine.Of(hf), snapshots.Snapshot{Stream: "goes on", Kind: "k", Version: v, Data: []byte(`1`)}); err != nil || !stored {
				t.Errorf("snapshot at %d was not stored: error %v", v, err)
			}
		}
	})
}
