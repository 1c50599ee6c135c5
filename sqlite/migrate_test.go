package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// jobMigrate opens an engine on command, and uses it.
func jobMigrate(ctx context.Context, path, name string, begin func() error) error {
	if err := begin(); err != nil {
		return err
	}
	hf, err := holdfast.Open(ctx, sqlite.File(path), quiet)
	if err != nil {
		return err
	}
	_, appended := stream.Append(ctx, hf, "all", stream.Any, event(name, ""))
	return errors.Join(useEverything(ctx, hf, name), appended, hf.Close())
}

// TestTenProcessesMigrateOneEmptyFileAtOnce verifies that ten processes can start on one empty file
// at the same moment: none fails, each migration is recorded once, and all of them write.
func TestTenProcessesMigrateOneEmptyFileAtOnce(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	all := make([]*testkit.Child, 10)
	for i := range all {
		all[i] = startChild(t, "migrate", path, fmt.Sprintf("process-%d", i), nil)
	}
	for _, c := range all {
		c.Send("go")
	}
	for _, c := range all {
		c.Wait()
	}
	wantMigratedOnce(t, path, len(all))
}

// TestTenEnginesInOneProcessMigrateOneEmptyFileAtOnce verifies the same for ten engines of one
// process, each with connections of its own.
func TestTenEnginesInOneProcessMigrateOneEmptyFileAtOnce(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			wait := func() error { <-begin; return nil }
			if err := jobMigrate(t.Context(), path, fmt.Sprintf("engine-%d", i), wait); err != nil {
				t.Errorf("engine %d: %v", i, err)
			}
		})
	}
	close(begin)
	wg.Wait()
	wantMigratedOnce(t, path, 10)
}

func wantMigratedOnce(t *testing.T, path string, writers int) {
	t.Helper()
	hf := openEngine(t, sqlite.File(path))
	if names := wantGapless(t, hf, "all"); len(names) != writers {
		t.Errorf("got %d events of %d writers: %v", len(names), writers, names)
	}
	db := openSQL(t, path)
	if n, newest := migrations(t, path); n != newest || n == 0 {
		t.Errorf("got %d records of migrations, want %d", n, newest)
	}
	if n := queryInt(t, db, `SELECT count(*) FROM holdfast_clock`); n != 1 {
		t.Errorf("table holdfast_clock has %d rows, want 1", n)
	}
}

// migrations returns the number of migrations that a file records, and the newest.
func migrations(t *testing.T, path string) (count, newest int) {
	t.Helper()
	db := openSQL(t, path)
	defer db.Close()
	return queryInt(t, db, `SELECT count(*) FROM holdfast_migration`), queryInt(t, db, `SELECT max(number) FROM holdfast_migration`)
}

// TestAnOlderProgramWorksOnANewerDatabaseThatAllowsIt verifies that a program works on a database
// that a newer one has migrated, if the newer migration permits it: a deploy can roll.
func TestAnOlderProgramWorksOnANewerDatabaseThatAllowsIt(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	makeDatabase(t, path)
	_, newest := migrations(t, path)
	recordFuture(t, path, newest+1, 1)
	hf := openEngine(t, sqlite.File(path))
	if err := useEverything(t.Context(), hf, "older"); err != nil {
		t.Error(err)
	}
	if s, err := hf.Status(t.Context()); err != nil || s.Schema != newest+1 {
		t.Errorf("got schema %d, want %d: %v", s.Schema, newest+1, err)
	}
	if n, _ := migrations(t, path); n != newest+1 {
		t.Errorf("got %d records of migrations, want %d", n, newest+1)
	}
}

// TestAnOlderProgramRefusesANewerDatabaseAndChangesNothing verifies that a program refuses a
// database whose newest migration it does not support, names the numbers, and changes nothing.
func TestAnOlderProgramRefusesANewerDatabaseAndChangesNothing(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	makeDatabase(t, path)
	_, newest := migrations(t, path)
	recordFuture(t, path, newest+1, newest+1)
	before := snapshot(t, filepath.Dir(path))
	for range 2 {
		err := openError(t, sqlite.File(path), quiet)
		testkit.WantCode(t, err, fault.DatabaseTooNew, fmt.Sprintf("schema %d", newest+1), fmt.Sprintf("schema %d", newest))
	}
	if _, err := store.DatabaseOf(sqlite.File(path)).Migrate(t.Context(), options); fault.CodeOf(err) != fault.DatabaseTooNew {
		t.Errorf("Migrate: got %v, want DATABASE_TOO_NEW", err)
	}
	wantSame(t, filepath.Dir(path), before)
}

func recordFuture(t *testing.T, path string, number, minReader int) {
	t.Helper()
	db := openSQL(t, path)
	defer db.Close()
	execSQL(t, db, fmt.Sprintf(`INSERT INTO holdfast_migration (number, name, min_reader, sum, applied_at)
		VALUES (%d, 'future', %d, 'of the future', 0)`, number, minReader))
}

// later returns a program of a later version, which has one more migration.
func later(t *testing.T, text string) sqlite.Option {
	t.Helper()
	names, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	all := fstest.MapFS{fmt.Sprintf("migrations/%04d_later.sql", len(names)+1): {Data: []byte(text)}}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.ToSlash(name)] = &fstest.MapFile{Data: text}
	}
	return sqlite.Migrations(all)
}

// TestALaterVersionMigratesADatabaseInUse verifies that a later version migrates a database that is
// in use: it reports what is missing if it may not migrate, applies its migration once, completely
// or not at all, and a running older program continues to work. A program that the migration
// excludes is refused.
func TestALaterVersionMigratesADatabaseInUse(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	hf := openEngine(t, sqlite.File(path))
	_, now := migrations(t, path)
	const add = "-- min_reader: 14\nALTER TABLE holdfast_token ADD COLUMN later TEXT;\nALTER TABLE holdfast_follow ADD COLUMN later TEXT;"
	broken := sqlite.File(path, later(t, add+"\nALTER TABLE holdfast_nowhere ADD COLUMN later TEXT;"))
	if _, err := store.DatabaseOf(broken).Migrate(t.Context(), options); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("migration %d", now+1)) {
		t.Errorf("failing migration: got %v, want an error that names it", err)
	}
	config, next := quiet, sqlite.File(path, later(t, add))
	config.NoMigrate = true
	testkit.WantCode(t, openError(t, next, config), fault.DatabaseTooOld, "holdfast migrate", fmt.Sprintf("schema %d", now), fmt.Sprintf("requires schema %d", now+1))
	db := openSQL(t, path)
	if n := queryInt(t, db, `SELECT count(*) FROM pragma_table_info('holdfast_token') WHERE name = 'later'`); n != 0 {
		t.Error("the schema was changed")
	}
	for _, want := range []store.Migrated{{From: now, To: now + 1}, {From: now + 1, To: now + 1}} {
		if done, err := store.DatabaseOf(next).Migrate(t.Context(), options); err != nil || done != want {
			t.Errorf("migrated %+v, want %+v: %v", done, want, err)
		}
	}
	if err := errors.Join(useEverything(t.Context(), hf, "before"), useEverything(t.Context(), openEngine(t, sqlite.File(path)), "beside"),
		useEverything(t.Context(), openEngine(t, next), "after")); err != nil {
		t.Error(err)
	}

	execSQL(t, db, fmt.Sprintf(`UPDATE holdfast_migration SET min_reader = %d WHERE number = %[1]d`, now+1))
	testkit.WantCode(t, openError(t, sqlite.File(path), quiet), fault.DatabaseTooNew, fmt.Sprintf("schema %d", now+1))
	openEngine(t, next)
}

// TestADatabaseFromBeforeTheFirstReleaseIsRefusedAndNotChanged verifies that a database from before
// the first release, which has other migrations with the same numbers, is refused with an error of
// one line, by this version and by a later one, for every kind of opening; and that no byte of it
// is changed. It may have fewer migrations than this program, as many, or more, and the next one
// may be one that this program could apply.
func TestADatabaseFromBeforeTheFirstReleaseIsRefusedAndNotChanged(t *testing.T) {
	t.Parallel()
	for _, last := range []int{1, 2, 20} {
		t.Run(fmt.Sprint(last), func(t *testing.T) {
			t.Parallel()
			path := dbPath(t)
			pool := openSQL(t, path)
			execSQL(t, pool, `PRAGMA journal_mode = WAL`,
				`CREATE TABLE holdfast_migration (number INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, min_reader INTEGER NOT NULL, sum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`,
				fmt.Sprintf(`WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d)
					INSERT INTO holdfast_migration SELECT n, CASE n WHEN 1 THEN 'ground' ELSE 'step_' || n END, n, 'sum ' || n, 0 FROM s`, last),
				`CREATE TABLE holdfast_event (name TEXT)`, `INSERT INTO holdfast_event VALUES ('kept')`)
			pool.Close()
			before := snapshot(t, filepath.Dir(path))
			closed, next := quiet, later(t, "-- min_reader: 14\nCREATE TABLE holdfast_more (id INTEGER);")
			closed.NoMigrate = true
			for name, db := range map[string]*sqlite.Database{
				"this version": sqlite.File(path), "the server": sqlite.File(path, sqlite.Dedicated()), "a later one": sqlite.File(path, next),
			} {
				_, migrated := store.DatabaseOf(db).Migrate(t.Context(), options)
				for what, err := range map[string]error{"Open": openError(t, db, quiet), "NoMigrate": openError(t, db, closed), "Migrate": migrated} {
					if testkit.WantCode(t, err, fault.DatabaseForeign, "before the first release", "use a new database"); strings.Contains(err.Error(), "\n") {
						t.Errorf("%s by %s returned an error of several lines: %v", what, name, err)
					}
				}
			}
			wantSame(t, filepath.Dir(path), before)

			pool = openSQL(t, path)
			testkit.WantCode(t, openError(t, sqlite.DB(pool), quiet), fault.DatabaseForeign, "before the first release")
			if n := queryInt(t, pool, `SELECT count(*) FROM holdfast_migration, sqlite_schema WHERE type = 'table'`); n != 2*last {
				t.Errorf("the program's own pool changed the schema: got %d, want %d", n, 2*last)
			}
		})
	}
}

// openError returns the error of an Open that must fail.
func openError(t *testing.T, db holdfast.Database, c holdfast.Config) error {
	t.Helper()
	hf, err := holdfast.Open(t.Context(), db, c)
	if err == nil {
		hf.Close()
		t.Fatal("open succeeded, want an error")
	}
	return err
}

// TestAMigrationOfAnotherTextIsForeign verifies that a database made from another text of a
// migration is refused: it is of a different build, even if it looks the same.
func TestAMigrationOfAnotherTextIsForeign(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	makeDatabase(t, path)
	db := openSQL(t, path)
	execSQL(t, db, `UPDATE holdfast_migration SET sum = 'other' WHERE number = 1`)
	db.Close()
	before := snapshot(t, filepath.Dir(path))
	testkit.WantCode(t, openError(t, sqlite.File(path), quiet), fault.DatabaseForeign, "migration 1")
	wantSame(t, filepath.Dir(path), before)
}

// TestAMissingRecordOfAMigrationIsDamage verifies that a missing record below a later one is
// damage.
func TestAMissingRecordOfAMigrationIsDamage(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	makeDatabase(t, path)
	_, newest := migrations(t, path)
	recordFuture(t, path, newest+1, 1)
	db := openSQL(t, path)
	execSQL(t, db, fmt.Sprintf(`DELETE FROM holdfast_migration WHERE number = %d`, newest))
	db.Close()
	before := snapshot(t, filepath.Dir(path))
	testkit.WantCode(t, openError(t, sqlite.File(path), quiet), fault.DatabaseDamaged, fmt.Sprintf("migration %d", newest))
	wantSame(t, filepath.Dir(path), before)
}

// TestNoMigrateRefusesAnEmptyFileAndMakesNoTable verifies that NoMigrate refuses an empty or
// missing file, names the command to run, and creates no table and no file; and that it opens a
// current one.
func TestNoMigrateRefusesAnEmptyFileAndMakesNoTable(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	config := quiet
	config.NoMigrate = true
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, filepath.Dir(path))
	testkit.WantCode(t, openError(t, sqlite.File(path), config), fault.DatabaseTooOld, "holdfast migrate", "schema 0")
	db := openSQL(t, path)
	if n := queryInt(t, db, `SELECT count(*) FROM sqlite_schema`); n != 0 {
		t.Errorf("%d tables or indexes were created, want none", n)
	}
	db.Close()
	wantSame(t, filepath.Dir(path), before)

	missing := dbPath(t)
	testkit.WantCode(t, openError(t, sqlite.File(missing), config), fault.DatabaseTooOld, "holdfast migrate", "schema 0")
	wantSame(t, filepath.Dir(missing), nil)

	current := dbPath(t)
	makeDatabase(t, current)
	hf, err := holdfast.Open(t.Context(), sqlite.File(current), config)
	if err != nil {
		t.Fatal(err)
	}
	hf.Close()
}
