// Package holdfasttest opens engines for tests, on real databases.
//
//	func TestClose(t *testing.T) {
//		holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) { … })
//	}
//
// SQLite is a file in the test's temporary folder. PostgreSQL is the server
// that HOLDFAST_TEST_POSTGRES_URL names or, where it names none, a throwaway
// one that is started from the installed binaries and ends with the test
// program; each test gets a database of its own in it.
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
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// Open opens an engine on a temporary SQLite file. When the test ends, what it
// left must be as [holdfast.Engine.Check] wants it, and the engine is closed.
func Open(t testing.TB, parts ...holdfast.Part) *holdfast.Engine {
	t.Helper()
	return OpenOn(t, At(SQLite(t)), parts...)
}

// OpenOn opens an engine on a database, as [Open] does on a temporary one.
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

// checkWhole fails a test that left a database which breaks an invariant. One
// that has closed the engine itself, or ended its server, is not asked.
func checkWhole(t testing.TB, hf *holdfast.Engine) {
	t.Helper()
	report, err := hf.Check(context.Background())
	switch {
	case errors.Is(err, holdfast.ErrUnavailable):
		t.Logf("what the test left was not checked: %v", err)
	case err != nil:
		t.Errorf("check: %v", err)
	case !report.Clean():
		t.Errorf("the test left a database that breaks its invariants:\n%s", report)
	}
}

// Each runs a test on SQLite and on PostgreSQL, at the same time.
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

// SQLite returns the path of a database file of the test's own, with Holdfast's
// schema in it, which is removed when the test ends, or emptied for the next one ([Main]).
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

// emptyFile is a file that was migrated once, for all tests of the process: a copy
// costs less than the migrations.
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

// PostgreSQL returns the URL of a database of the test's own, with Holdfast's
// schema in it, which is dropped when the test ends, or emptied for the next one ([Main]).
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

// template is named after the text of the schema, so that a server that is
// kept between runs never hands out an old one.
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

// Race calls f from n goroutines that start together. It returns how many
// calls succeeded, and the errors of those that did not.
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

// Round has the engine's janitor go round once, now: a test need not wait for it.
func Round(ctx context.Context, hf *holdfast.Engine) { engine.Of(hf).Round(ctx) }

// Advance moves the time of the engine's database, for everyone who uses it:
// holds run out and timers fall due without anybody waiting.
func Advance(t testing.TB, hf *holdfast.Engine, by time.Duration) {
	t.Helper()
	if err := store.Shift(context.Background(), engine.Of(hf), by); err != nil {
		t.Fatalf("advance: %v", err)
	}
}
