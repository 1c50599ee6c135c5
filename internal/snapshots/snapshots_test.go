package snapshots_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/snapshots"
	"github.com/holdfast-go/holdfast/internal/store"
)

func at(version int) snapshots.Snapshot {
	return snapshots.Snapshot{Stream: "s", Kind: "k", Version: int64(version), Data: fmt.Append(nil, version)}
}

func want(t *testing.T, hf *holdfast.Engine, version int) {
	t.Helper()
	got, err := snapshots.Get(t.Context(), engine.Of(hf), "s", "k")
	if err != nil || got.Version != int64(version) || version >= 0 && string(got.Data) != fmt.Sprint(version) {
		t.Errorf("snapshot has version %d, data %s (error %v), want version %d", got.Version, got.Data, err, version)
	}
}

// TestASnapshotOnlyGrows verifies that an older snapshot never replaces a newer one, sequentially or in a race,
// and that stream, kind and workspace separate them.
func TestASnapshotOnlyGrows(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		want(t, hf, -1)
		for _, c := range []struct {
			version int
			stored  bool
		}{{3, true}, {3, false}, {2, false}, {4, true}} {
			if stored, err := snapshots.Put(t.Context(), engine.Of(hf), at(c.version)); err != nil || stored != c.stored {
				t.Errorf("version %d: got stored %v, error %v", c.version, stored, err)
			}
		}
		want(t, hf, 4)
		elsewhere := holdfast.InWorkspace(t.Context(), "elsewhere")
		for ctx, s := range map[context.Context]snapshots.Snapshot{
			elsewhere:   at(50),
			t.Context(): {Stream: "s", Kind: "other", Version: 50, Data: []byte(`50`)},
		} {
			if stored, err := snapshots.Put(ctx, engine.Of(hf), s); err != nil || !stored {
				t.Errorf("got stored %v, error %v, want true", stored, err)
			}
		}
		want(t, hf, 4)
		for base := 10; base < 50; base += 10 {
			highest := -1
			stored := make([]bool, 8)
			if _, lost := holdfasttest.Race(t, 8, func(i int) (err error) {
				stored[i], err = snapshots.Put(t.Context(), engine.Of(hf), at(base+i))
				return err
			}); len(lost) > 0 {
				t.Fatal(lost[0])
			}
			for i, k := range stored {
				if k {
					highest = base + i
				}
			}
			want(t, hf, highest)
		}
	})
}

// TestASnapshotWaitsForNobody verifies that Put does not wait for a snapshot that another open transaction is
// just storing.
func TestASnapshotWaitsForNobody(t *testing.T) {
	t.Parallel()
	hf := holdfasttest.OpenOn(t, holdfasttest.At(holdfasttest.PostgreSQL(t))) // SQLite has one writer
	outside, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := snapshots.Put(outside, engine.Of(hf), snapshots.Snapshot{Stream: "first", Kind: "k", Data: []byte(`0`)}); err != nil {
		t.Fatal(err) // creates the workspace, which the transaction would otherwise lock
	}
	for _, version := range []int{1, 3} { // without and with an existing row
		err := hf.Update(outside, func(ctx context.Context, tx holdfast.Tx) error {
			if stored, err := snapshots.Put(ctx, store.DoerOf(tx), at(version)); err != nil || !stored {
				t.Errorf("version %d in the transaction: got stored %v, error %v, want true", version, stored, err)
			}
			if stored, err := snapshots.Put(outside, engine.Of(hf), at(version+1)); err != nil || stored {
				t.Errorf("version %d outside of the transaction: got stored %v, error %v, want false", version+1, stored, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want(t, hf, version)
	}
}
