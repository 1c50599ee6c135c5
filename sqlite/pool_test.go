package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// TestAPoolOfTheProgramsOwnServesEveryVerb verifies that an engine works on a pool that the program
// has opened, deferred or immediate, of one connection or of several: every verb works, of sixteen
// racing callers one wins each version, and Close leaves the pool open.
func TestAPoolOfTheProgramsOwnServesEveryVerb(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{"deferred", "immediate"} {
		for _, size := range []int{1, 8} {
			t.Run(fmt.Sprintf("%s, %d", lock, size), func(t *testing.T) {
				t.Parallel()
				path := dbPath(t)
				db := openSQL(t, path, "_txlock="+lock, "_pragma=journal_mode(WAL)")
				db.SetMaxOpenConns(size)
				execSQL(t, db, `CREATE TABLE mine (n INTEGER)`)
				hf, err := holdfast.Open(t.Context(), sqlite.DB(db), quiet)
				if err != nil {
					t.Fatal(err)
				}
				if err := useEverything(t.Context(), hf, "pool"); err != nil {
					t.Error(err)
				}
				if err := useInUpdate(t, hf); err != nil {
					t.Error(err)
				}
				raceForVersions(t, hf)
				if err := hf.Close(); err != nil {
					t.Error(err)
				}
				execSQL(t, db, `INSERT INTO mine VALUES (1)`)
			})
		}
	}
}

func useInUpdate(t *testing.T, hf *holdfast.Engine) error {
	return hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := sqlite.Raw(tx).ExecContext(ctx, `INSERT INTO mine VALUES (2)`); err != nil {
			return err
		}
		return useEverything(ctx, tx, "update")
	})
}

// raceForVersions makes sixteen callers expect the same version, repeatedly: in each round one
// wins, and the others get the version it created.
func raceForVersions(t *testing.T, hf *holdfast.Engine) {
	t.Helper()
	const rounds = 8
	for round := range rounds {
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				_, err := stream.Append(t.Context(), hf, "race", stream.Version(round-1), event("run", ""))
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, holdfast.ErrConcurrency):
					t.Errorf("round %d: got %v, want ErrConcurrency", round, err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("round %d has %d winners, want 1", round, won.Load())
		}
	}
	if names := wantGapless(t, hf, "race"); len(names) != rounds {
		t.Errorf("got %d events of %d rounds", len(names), rounds)
	}
}
