package holdfast_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// onOwnDatabases runs a test on databases that no other test uses: a restore ends connections.
func onOwnDatabases(t *testing.T, f func(t *testing.T, db holdfast.Database)) {
	for _, name := range testlevel.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Attr(testlevel.DatabaseAttr, name)
			if name == "sqlite" {
				f(t, sqlite.File(filepath.Join(t.TempDir(), "holdfast.db")))
				return
			}
			url, drop, err := pgtest.Database(t.Context(), pgtest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(drop)
			f(t, postgres.URL(url))
		})
	}
}

// TestRestored verifies that a restore refuses the engines that were open, that numbers which the backup did not have are not given
// again, and that nothing else is lost.
func TestRestored(t *testing.T) {
	onOwnDatabases(t, func(t *testing.T, db holdfast.Database) {
		ctx := t.Context()
		var all, some atomic.Int64 // events of scopes that were delivered to reactions
		count := func(n *atomic.Int64) func(context.Context, *stream.Delivery) error {
			return func(context.Context, *stream.Delivery) error { n.Add(1); return nil }
		}
		scopes := stream.Select{Source: stream.Histories, Pattern: `^\$scope/`}
		deletions := scopes
		deletions.Events = []string{"deleted"}
		open := func(workspaces ...string) *holdfast.Engine {
			t.Helper()
			hf, err := holdfast.Open(ctx, db, holdfast.Config{}, stream.Feed(stream.FeedOptions{Workspaces: workspaces}),
				stream.React("all", scopes, count(&all), stream.Options{}), stream.React("deletions", deletions, count(&some), stream.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = hf.Close() })
			return hf
		}
		old := open()
		ran := make(chan error, 1)
		go func() { ran <- old.Run(ctx) }()
		cart := func(hf *holdfast.Engine, id string) scope.Scope[map[string]int] {
			return scope.In[map[string]int](hf, scope.Session, id)
		}
		for range 3 {
			if _, err := stream.Append(ctx, old, "orders", stream.Any, stream.Event{Name: "placed"}); err != nil {
				t.Fatal(err)
			}
		}
		before, err := cart(old, "1").Put(ctx, map[string]int{"cents": 5})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cart(old, "gone").Put(ctx, map[string]int{"cents": 5}); err != nil {
			t.Fatal(err)
		}
		if _, err := cart(old, "gone").Delete(ctx); err != nil {
			t.Fatal(err)
		}
		var head stream.Cursor
		testkit.Eventually(t, "the feed has all events", func() bool {
			events, err := holdfast.Collect(stream.ReadFeed(ctx, old, ""))
			if len(events) == 3 {
				head = events[2].Cursor
			}
			return err == nil && len(events) == 3
		})

		testkit.Eventually(t, "the reactions have the events of scopes", func() bool { return all.Load() == 3 && some.Load() == 1 })

		first, err := holdfast.MigrateRestored(ctx, db, holdfast.Migration{})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-ran; !errors.Is(err, holdfast.ErrDatabaseRestored) {
			t.Errorf("Run ended with %v, want ErrDatabaseRestored", err)
		}
		if _, err := stream.Append(ctx, old, "orders", stream.Any, stream.Event{Name: "late"}); !errors.Is(err, holdfast.ErrDatabaseRestored) {
			t.Errorf("an append of an old engine: got %v, want ErrDatabaseRestored", err)
		}
		if err := old.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			_, err := stream.Append(ctx, tx, "orders", stream.Any, stream.Event{Name: "late"})
			return err
		}); !errors.Is(err, holdfast.ErrDatabaseRestored) {
			t.Errorf("an update of an old engine: got %v, want ErrDatabaseRestored", err)
		}

		hf := open("default", "other")
		if got := engine.Of(hf).Generation(); got != first.Generation || got == 0 {
			t.Errorf("the generation is %d, want %d", got, first.Generation)
		}
		now, err := cart(hf, "1").Get(ctx)
		if err != nil || now.State["cents"] != 5 || now.Version <= before.Version+1 {
			t.Errorf("a scope is %v at version %d after version %d: %v, want the same state at a version far above", now.State, now.Version, before.Version, err)
		}
		if at, err := cart(hf, "1").GetAt(ctx, before.Version); err != nil || at.State["cents"] != 5 {
			t.Errorf("the state before the restore is %v: %v", at.State, err)
		}
		if made, err := cart(hf, "gone").Put(ctx, map[string]int{"cents": 1}); err != nil || made.Version < now.Version {
			t.Errorf("a scope that was deleted begins at version %d: %v, want at least %d", made.Version, err, now.Version)
		}
		if made, err := cart(hf, "new").Put(ctx, map[string]int{"cents": 1}); err != nil || made.Version < now.Version {
			t.Errorf("a new scope begins at version %d: %v, want at least %d", made.Version, err, now.Version)
		}
		// The next position of the lost history, which a reader may have seen.
		lost := stream.Cursor("p4")
		for range 2 {
			if _, err := stream.Append(ctx, hf, "orders", 2, stream.Event{Name: "placed"}); err != nil && !errors.Is(err, holdfast.ErrConcurrency) {
				t.Fatal(err)
			}
		}
		_, err = holdfast.Collect(stream.ReadFeed(ctx, hf, lost))
		if f, ok := errors.AsType[*fault.Error](err); !ok || !errors.Is(err, holdfast.ErrCursorExpired) || f.Fields["cursor"] != string(head) {
			t.Errorf("a cursor of a lost event: got %v, want ErrCursorExpired with cursor %s", err, head)
		}
		go func() { ran <- hf.Run(ctx) }()
		testkit.Eventually(t, "the feed goes on after the last event that was not lost", func() bool {
			events, err := holdfast.Collect(stream.ReadFeed(ctx, hf, head))
			return err == nil && len(events) == 1 && events[0].Version == 3
		})
		// The event "restored" of one scope, and the creation of two.
		testkit.Eventually(t, "the reactions go on", func() bool { return all.Load() == 6 })
		if some.Load() != 1 {
			t.Errorf("a reaction that follows deletions was called %d times, want once", some.Load())
		}
		if r, err := check.Run(ctx, engine.Of(hf)); err != nil || len(r.Violations) > 0 {
			t.Errorf("check: %v, %v", r.Violations, err)
		}
		// A workspace that the backup did not have, and of whose lost feed a reader has a cursor.
		other := holdfast.InWorkspace(ctx, "other")
		if _, err := stream.Append(other, hf, "orders", stream.None, stream.Event{Name: "placed"}); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "a new feed has its first event", func() bool {
			events, err := holdfast.Collect(stream.ReadFeed(other, hf, ""))
			return err == nil && len(events) == 1
		})
		if _, err := holdfast.Collect(stream.ReadFeed(other, hf, lost)); !errors.Is(err, holdfast.ErrCursorExpired) {
			t.Errorf("a cursor of a lost feed: got %v, want ErrCursorExpired", err)
		}

		second, err := holdfast.MigrateRestored(ctx, db, holdfast.Migration{})
		if err != nil || second.Generation <= first.Generation {
			t.Errorf("the second restore has generation %d after %d: %v", second.Generation, first.Generation, err)
		}
		if err := <-ran; !errors.Is(err, holdfast.ErrDatabaseRestored) {
			t.Errorf("after the second restore, Run ended with %v, want ErrDatabaseRestored", err)
		}
		if r, err := check.Run(ctx, engine.Of(open())); err != nil || len(r.Violations) > 0 {
			t.Errorf("check after the second restore: %v, %v", r.Violations, err)
		}
	})
}

// TestRestoredWithoutEvents verifies that an engine that was open is also refused writes that have no events, so that the revision of the
// registry does not refuse them, although it does not run and makes no other calls. On PostgreSQL, not one is accepted.
func TestRestoredWithoutEvents(t *testing.T) {
	onOwnDatabases(t, func(t *testing.T, db holdfast.Database) {
		old, err := holdfast.Open(t.Context(), db, holdfast.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer old.Close()
		write := func() error {
			_, err := batch.PutWallet(t.Context(), old, "w")
			return err
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if _, err := holdfast.MigrateRestored(t.Context(), db, holdfast.Migration{}); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the engine is refused", func() bool {
			err := write()
			if err == nil && strings.HasSuffix(t.Name(), "/postgres") {
				t.Fatal("a write was accepted")
			}
			return errors.Is(err, holdfast.ErrDatabaseRestored)
		})
	})
}

// TestAReplacedFile verifies that an engine refuses to write to a file that was moved away, with a path that was relative, and with a
// pool of the program.
func TestAReplacedFile(t *testing.T) {
	t.Attr(testlevel.DatabaseAttr, "sqlite")
	for name, open := range map[string]func(t *testing.T) holdfast.Database{
		"a path": func(t *testing.T) holdfast.Database { return sqlite.File("shop.db") },
		"a pool": func(t *testing.T) holdfast.Database {
			pool, err := sql.Open("sqlite", "file:shop.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1000)")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = pool.Close() })
			return sqlite.DB(pool)
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			t.Chdir(folder)
			hf, err := holdfast.Open(t.Context(), open(t), holdfast.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer hf.Close()
			write := func() error {
				_, err := stream.Append(t.Context(), hf, "s", stream.Any, stream.Event{Name: "e"})
				return err
			}
			t.Chdir(t.TempDir())
			if err := write(); err != nil {
				t.Errorf("after a change of the folder: %v", err)
			}
			if err := os.Rename(filepath.Join(folder, "shop.db"), filepath.Join(folder, "lost.db")); err != nil {
				t.Fatal(err)
			}
			if err := write(); !errors.Is(err, holdfast.ErrDatabaseRestored) {
				t.Errorf("after the file was moved: got %v, want ErrDatabaseRestored", err)
			}
		})
	}
}
