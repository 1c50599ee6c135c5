// Package holdfasttest opens engines on real databases for tests.
//
//	func TestClose(t *testing.T) {
//		holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) { … })
//	}
//
// The SQLite database is a file in the test's temporary folder. PostgreSQL is the server at
// HOLDFAST_TEST_POSTGRES_URL or, if that is not set, a temporary server that is started from the installed binaries
// and stopped with the test program. Each test gets its own database on that server.
package holdfasttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// Open opens an engine on a temporary SQLite file. When the test ends, [holdfast.Engine.Check] must find no violation
// in the database, and the engine is closed.
func Open(t testing.TB, parts ...holdfast.Part) *holdfast.Engine {
	t.Helper()
	return OpenOn(t, At(SQLite(t)), parts...)
}

// OpenOn opens an engine on the given database. Otherwise it is like [Open].
func OpenOn(t testing.TB, db holdfast.Database, parts ...holdfast.Part) *holdfast.Engine {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	hf, err := holdfast.Open(context.Background(), db, holdfast.Config{Log: log}, parts...)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		checkWhole(t, hf)
		if err := hf.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return hf
}

// checkWhole fails a test that leaves a database with violated invariants. If the test has closed the engine or
// stopped its server, nothing is checked.
func checkWhole(t testing.TB, hf *holdfast.Engine) {
	t.Helper()
	report, err := hf.Check(context.Background())
	switch {
	case errors.Is(err, holdfast.ErrUnavailable):
		t.Logf("failed to check the database after the test: %v", err)
	case err != nil:
		t.Errorf("check: %v", err)
	case !report.Clean():
		t.Errorf("the test left a database that violates invariants:\n%s", report)
	}
}

// Each runs a test on SQLite and on PostgreSQL in parallel, as subtests.
func Each(t *testing.T, f func(*testing.T, *holdfast.Engine), parts ...holdfast.Part) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, Open(t, parts...))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f(t, OpenOn(t, At(PostgreSQL(t)), parts...))
	})
}

// SQLite returns the path of a database file for this test, with Holdfast's schema. The file is removed when the test
// ends or, with [Main], emptied for the next test.
func SQLite(t testing.TB) string {
	t.Helper()
	t.Attr(testlevel.DatabaseAttr, "sqlite")
	if reuses.Load() {
		return reusedFile(t)
	}
	path := filepath.Join(t.TempDir(), "holdfast.db")
	if err := writeEmpty(path); err != nil {
		t.Fatalf("sqlite: %v", err)
	}
	return path
}

func writeEmpty(path string) error {
	schema, err := emptyFile()
	if err != nil {
		return err
	}
	return os.WriteFile(path, schema, 0o600)
}

// emptyFile returns a migrated database file, which is made once per process: a copy costs less than the migrations.
var emptyFile = sync.OnceValues(func() (file []byte, err error) {
	folder, err := os.MkdirTemp("", "holdfast-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "holdfast.db")
	hf, err := holdfast.Open(context.Background(), sqlite.File(path), holdfast.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := hf.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// PostgreSQL returns the URL of a database for this test, with Holdfast's schema. The database is dropped when the
// test ends or, with [Main], emptied for the next test.
func PostgreSQL(t testing.TB) string {
	t.Helper()
	name, err := template()
	if err != nil {
		t.Fatalf("postgresql: %v", err)
	}
	t.Attr(testlevel.DatabaseAttr, "postgres")
	o := pgtest.Options{Template: name, Prepare: migrate}
	if reuses.Load() {
		return reused(t, o)
	}
	url, drop, err := pgtest.Database(context.Background(), o)
	if err != nil {
		t.Fatalf("postgresql: %v", err)
	}
	t.Cleanup(drop)
	return url
}

// template returns the name of the template database. It is derived from the text of the schema, so a server that is
// reused between test runs never provides an outdated schema.
var template = sync.OnceValues(func() (string, error) {
	script, err := store.DatabaseOf(postgres.URL("")).Script(store.Options{})
	sum := sha256.Sum256([]byte(script))
	return "hf_template_" + hex.EncodeToString(sum[:8]), err
})

func migrate(ctx context.Context, url string) error {
	if _, err := store.DatabaseOf(postgres.URL(url)).Migrate(ctx, store.Options{Log: slog.Default()}); err != nil {
		return err
	}
	return pgtest.Exec(ctx, url, `UPDATE holdfast.clock SET movable = true`) // for Advance
}

// Race calls f from n goroutines that start at the same time. It returns the number of calls that succeeded, and
// the errors of the calls that failed.
func Race(t testing.TB, n int, f func(i int) error) (won int, lost []error) {
	t.Helper()
	errs := make([]error, n)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	group.Wait()
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			lost = append(lost, err)
		}
	}
	return won, lost
}

// Round runs every sweep of the engine's janitor once, now, so that a test need not wait for it.
func Round(t testing.TB, hf *holdfast.Engine) { engine.Of(hf).Round(t.Context()) }

// Advance moves the clock of the engine's database forward, for all of its users, so that a test need not wait for
// leases to expire or timers to become due. It fails the test if the clock cannot be moved. On PostgreSQL, only the
// clock of a database from [PostgreSQL] can be moved. In [Crash] it does not count as a point: time passes whatever
// happens to the engine.
func Advance(t testing.TB, hf *holdfast.Engine, by time.Duration) {
	t.Helper()
	if err := store.Shift(crash.Aside(context.Background()), engine.Of(hf), by); err != nil {
		t.Fatalf("advance: %v (%v)", err, errors.Unwrap(err))
	}
}
