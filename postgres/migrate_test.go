package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// migrateAndUse opens an engine on command, and uses it.
func migrateAndUse(ctx context.Context, url, schema, name string, begin func() error) error {
	if err := begin(); err != nil {
		return err
	}
	hf, err := holdfast.Open(ctx, postgres.URL(url, postgres.Schema(schema)), quiet)
	if err != nil {
		return err
	}
	_, appended := stream.Append(ctx, hf, "all", stream.Any, event(name))
	return errors.Join(useEverything(ctx, hf, name), appended, hf.Close())
}

// TestManyProcessesMigrateOneEmptyDatabaseAtOnce verifies that many processes can start on one
// empty database at the same moment, half of them on each of two schemas: none fails, each
// migration is recorded once per schema, all of them write, and the schemas share nothing.
func TestManyProcessesMigrateOneEmptyDatabaseAtOnce(t *testing.T) {
	t.Parallel()
	for _, schemas := range [][]string{{"holdfast"}, {"left_side", "right_side"}} {
		t.Run(fmt.Sprint(len(schemas)), func(t *testing.T) {
			t.Parallel()
			url := fresh(t)
			all := make([]*testkit.Child, testlevel.Pick(4, 10, 10))
			for i := range all {
				all[i] = startChild(t, url, schemas[i%len(schemas)], fmt.Sprintf("process-%d", i))
			}
			for _, c := range all {
				c.Send("go")
			}
			for _, c := range all {
				c.Wait()
			}
			for _, schema := range schemas {
				wantMigratedOnce(t, url, schema, len(all)/len(schemas))
			}
		})
	}
}

func wantMigratedOnce(t *testing.T, url, schema string, writers int) {
	t.Helper()
	hf := openEngine(t, postgres.URL(url, postgres.Schema(schema)))
	if names := wantGapless(t, hf, "all"); len(names) != writers {
		t.Errorf("%s: got %d events of %d writers: %v", schema, len(names), writers, names)
	}
	conn := connect(t, url)
	if n := query[int](t, conn, "SELECT count(*) FROM "+schema+".migration"); n == 0 || n != newest(t, conn, schema) {
		t.Errorf("%s: got %d records of migrations, want %d", schema, n, newest(t, conn, schema))
	}
	if n := query[int](t, conn, "SELECT count(*) FROM "+schema+".clock"); n != 1 {
		t.Errorf("%s: table clock has %d rows, want 1", schema, n)
	}
}

func newest(t *testing.T, conn *pgx.Conn, schema string) int {
	t.Helper()
	return query[int](t, conn, "SELECT max(number) FROM "+schema+".migration")
}

// migrated returns a database that has been used.
func migrated(t *testing.T) (url string, conn *pgx.Conn) {
	t.Helper()
	url = fresh(t)
	hf := openEngine(t, postgres.URL(url))
	if err := useEverything(t.Context(), hf, "made"); err != nil {
		t.Fatal(err)
	}
	hf.Close()
	return url, connect(t, url)
}

// content returns a hash of everything in a schema: its tables, columns, constraints, and rows.
func content(t *testing.T, conn *pgx.Conn, schema string) string {
	t.Helper()
	structure := query[string](t, conn, `SELECT coalesce(string_agg(s.text, E'\n' ORDER BY s.text), '') FROM (
		SELECT format('%s %s %s %s', c.relname, a.attname, a.atttypid::regtype, a.attnotnull) AS text
		  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		  JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped WHERE n.nspname = $1
		UNION ALL
		SELECT format('%s %s', c.conname, pg_get_constraintdef(c.oid))
		  FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace WHERE n.nspname = $1) s`, schema)
	rows, err := conn.Query(t.Context(), `SELECT table_name::text FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1`, schema)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		name := pgx.Identifier{schema, table}.Sanitize()
		structure += "\n" + table + query[string](t, conn, "SELECT coalesce(md5(string_agg(r::text, E'\\n' ORDER BY r::text)), '') FROM "+name+" r")
	}
	return structure
}

func recordFuture(t *testing.T, conn *pgx.Conn, number, minReader int) {
	t.Helper()
	execute(t, conn, fmt.Sprintf(`INSERT INTO holdfast.migration (number, name, min_reader, sum, applied_at)
		VALUES (%d, 'future', %d, 'of the future', now())`, number, minReader))
}

// TestAnOlderProgramWorksOnANewerDatabaseThatAllowsIt verifies that a program works on a database
// that a newer one has migrated, if the newer migration permits it: a deploy can roll.
func TestAnOlderProgramWorksOnANewerDatabaseThatAllowsIt(t *testing.T) {
	t.Parallel()
	url, conn := migrated(t)
	now := newest(t, conn, "holdfast")
	recordFuture(t, conn, now+1, 1)
	hf := openEngine(t, postgres.URL(url))
	if err := useEverything(t.Context(), hf, "older"); err != nil {
		t.Error(err)
	}
	if s, err := hf.Status(t.Context()); err != nil || s.Schema != now+1 {
		t.Errorf("got schema %d, want %d: %v", s.Schema, now+1, err)
	}
}

// TestADatabaseThatIsNotOursToTouchIsRefusedAndNotChanged verifies that a database that this
// program must not touch is refused, with its own code and an error that explains why, by Open and
// by Migrate, with and without a role to grant to; and that no row or column of it is changed.
func TestADatabaseThatIsNotOursToTouchIsRefusedAndNotChanged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		spoil  string
		code   fault.Code
		naming []string
	}{
		{"a newer one", `INSERT INTO holdfast.migration SELECT max(number) + 1, 'future', max(number) + 1, '', now() FROM holdfast.migration`,
			fault.DatabaseTooNew, []string{"schema"}},
		{"another text of a migration", `UPDATE holdfast.migration SET sum = 'other' WHERE number = 1`,
			fault.DatabaseForeign, []string{"migration 1"}},
		{"a missing record", `INSERT INTO holdfast.migration SELECT max(number) + 2, 'future', 1, '', now() FROM holdfast.migration`,
			fault.DatabaseDamaged, []string{"migration", "is missing"}},
		{"a dropped table", `DROP TABLE holdfast.event`, fault.DatabaseDamaged, []string{"event"}},
		{"a dropped table of scopes", `DROP TABLE holdfast.scope`, fault.DatabaseDamaged, []string{"scope"}},
		{"a dropped clock", `DROP TABLE holdfast.clock`, fault.DatabaseDamaged, []string{"clock"}},
		{"a dropped column", `ALTER TABLE holdfast.event DROP COLUMN actor`, fault.DatabaseDamaged, []string{"actor"}},
		{"a record of another shape", `ALTER TABLE holdfast.migration DROP COLUMN sum`, fault.DatabaseForeign, []string{`"holdfast"`}},
		{"a schema of another program", `DROP SCHEMA holdfast CASCADE; CREATE SCHEMA holdfast; CREATE TABLE holdfast.boat (id int); INSERT INTO holdfast.boat VALUES (1)`,
			fault.DatabaseForeign, []string{`"holdfast"`, "choose another schema"}},
		{"a schema with another program's view", `DROP SCHEMA holdfast CASCADE; CREATE SCHEMA holdfast; CREATE VIEW holdfast.boat AS SELECT 1 AS id`,
			fault.DatabaseForeign, []string{`"holdfast"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, conn := migrated(t)
			execute(t, conn, c.spoil)
			before := content(t, conn, "holdfast")
			testkit.WantCode(t, openError(t, postgres.URL(url), quiet), c.code, c.naming...)
			if _, err := store.DatabaseOf(postgres.URL(url)).Migrate(t.Context(), options); fault.CodeOf(err) != c.code {
				t.Errorf("Migrate: got %v, want %s", err, c.code)
			}
			if after := content(t, conn, "holdfast"); after != before {
				t.Errorf("the schema was changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// TestNoMigrateRefusesAnEmptyDatabaseAndMakesNothing verifies that NoMigrate refuses an empty
// database, names the command to run, and creates nothing; and that it opens a current one.
func TestNoMigrateRefusesAnEmptyDatabaseAndMakesNothing(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	config := quiet
	config.NoMigrate = true
	testkit.WantCode(t, openError(t, postgres.URL(url), config), fault.DatabaseTooOld, "holdfast migrate", "schema 0")
	conn := connect(t, url)
	if n := query[int](t, conn, `SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast'`); n != 0 {
		t.Error("the schema was created")
	}
	openEngine(t, postgres.URL(url))
	hf, err := holdfast.Open(t.Context(), postgres.URL(url), config)
	if err != nil {
		t.Fatal(err)
	}
	hf.Close()
}

// later returns a program of a later version, which has one more migration.
func later(t *testing.T, text string) postgres.Option {
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
	return postgres.Migrations(all)
}

// TestALaterVersionMigratesADatabaseInUse verifies that a later version migrates a database that is
// in use: it reports what is missing if it may not migrate, applies its migration once, completely
// or not at all, and a running older program continues to work. A program that the migration
// excludes is refused.
func TestALaterVersionMigratesADatabaseInUse(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	hf := openEngine(t, postgres.URL(url))
	conn := connect(t, url)
	now := newest(t, conn, "holdfast")
	const add = "-- min_reader: 14\nALTER TABLE {schema}.token ADD COLUMN later text;\nALTER TABLE {schema}.follow ADD COLUMN later text;"
	before := content(t, conn, "holdfast")
	if _, err := store.DatabaseOf(postgres.URL(url, later(t, add+"\nALTER TABLE {schema}.nowhere ADD COLUMN later text;"))).Migrate(t.Context(), options); err == nil {
		t.Error("a failing migration was applied")
	}
	config, next := quiet, postgres.URL(url, later(t, add))
	config.NoMigrate = true
	testkit.WantCode(t, openError(t, next, config), fault.DatabaseTooOld, "holdfast migrate", fmt.Sprintf("schema %d", now), fmt.Sprintf("requires schema %d", now+1))
	if after := content(t, conn, "holdfast"); after != before {
		t.Errorf("the schema was changed from\n%s\nto\n%s", before, after)
	}
	for _, want := range []store.Migrated{{From: now, To: now + 1}, {From: now + 1, To: now + 1}} {
		if done, err := store.DatabaseOf(next).Migrate(t.Context(), options); err != nil || done != want {
			t.Errorf("migrated %+v, want %+v: %v", done, want, err)
		}
	}
	if err := errors.Join(useEverything(t.Context(), hf, "before"), useEverything(t.Context(), openEngine(t, postgres.URL(url)), "beside"),
		useEverything(t.Context(), openEngine(t, next), "after")); err != nil {
		t.Error(err)
	}

	execute(t, conn, fmt.Sprintf(`UPDATE holdfast.migration SET min_reader = %d WHERE number = %[1]d`, now+1))
	testkit.WantCode(t, openError(t, postgres.URL(url), quiet), fault.DatabaseTooNew, fmt.Sprintf("schema %d", now+1))
	openEngine(t, next)
}

// TestADatabaseFromBeforeTheFirstReleaseIsRefusedAndNotChanged verifies that a database from before
// the first release, which has other migrations with the same numbers, is refused with an error of
// one line: by this version and by a later one, for every role and every kind of opening; and that
// nothing in it is changed. It may have fewer migrations than this program, as many, or more, and
// the next one may be one that this program could apply.
func TestADatabaseFromBeforeTheFirstReleaseIsRefusedAndNotChanged(t *testing.T) {
	t.Parallel()
	for _, last := range []int{1, 2, 23} {
		t.Run(fmt.Sprint(last), func(t *testing.T) {
			t.Parallel()
			url := fresh(t)
			conn := connect(t, url)
			app := newRole(t, url, "LOGIN")
			execute(t, conn, `CREATE SCHEMA holdfast`,
				`CREATE TABLE holdfast.migration (number integer PRIMARY KEY, name text NOT NULL, min_reader integer NOT NULL, sum text NOT NULL, applied_at timestamptz NOT NULL)`,
				fmt.Sprintf(`INSERT INTO holdfast.migration SELECT n, CASE n WHEN 1 THEN 'ground' ELSE 'step_' || n END, n, md5(n::text), now() FROM generate_series(1, %d) n`, last),
				`CREATE TABLE holdfast.event (name text)`, `INSERT INTO holdfast.event VALUES ('kept')`,
				`GRANT USAGE ON SCHEMA holdfast TO `+app, `GRANT SELECT ON ALL TABLES IN SCHEMA holdfast TO `+app)
			const privileges = `SELECT string_agg(c.relname || coalesce(c.relacl::text, ''), ' ' ORDER BY c.relname) FROM pg_class c WHERE c.relnamespace = 'holdfast'::regnamespace`
			before := content(t, conn, "holdfast") + query[string](t, conn, privileges)
			closed, granting := quiet, options
			closed.NoMigrate, granting.RuntimeRole = true, app
			for name, options := range map[string][]postgres.Option{
				"this version": nil, "a later one": {later(t, "-- min_reader: 14\nCREATE TABLE {schema}.more (id int);")},
			} {
				for role, url := range map[string]string{"the owner": url, "the runtime role": as(t, url, app, "")} {
					db := postgres.URL(url, options...)
					_, plain := store.DatabaseOf(db).Migrate(t.Context(), store.Options{Log: quiet.Log})
					_, granted := store.DatabaseOf(db).Migrate(t.Context(), granting)
					for what, err := range map[string]error{
						"Open": openError(t, db, quiet), "NoMigrate": openError(t, db, closed), "Migrate": plain, "Migrate with a role": granted,
					} {
						if testkit.WantCode(t, err, fault.DatabaseForeign, "before the first release", "use a new database or schema"); strings.Contains(err.Error(), "\n") {
							t.Errorf("%s by %s as %s returned an error of several lines: %v", what, name, role, err)
						}
					}
				}
			}
			if after := content(t, conn, "holdfast") + query[string](t, conn, privileges); after != before {
				t.Errorf("the schema was changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// TestAMigrationTakesItsLocksFirst verifies that a migration beside running nodes takes its locks
// before it changes anything, in the order in which nodes poll the tables: a node that has read the
// first of them can read the others.
func TestAMigrationTakesItsLocksFirst(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	openEngine(t, postgres.URL(url)).Close()
	node := connect(t, url)
	now := newest(t, node, "holdfast")
	execute(t, node, `BEGIN`, `SET LOCAL lock_timeout = '200ms'`, `SELECT FROM holdfast.follow`)
	next := postgres.URL(url, later(t, "-- min_reader: 14\nALTER TABLE {schema}.ledger ADD COLUMN later text;\nALTER TABLE {schema}.follow ADD COLUMN later text;"))
	done := make(chan error, 1)
	go func() {
		_, err := store.DatabaseOf(next).Migrate(t.Context(), options)
		done <- err
	}()
	watcher := connect(t, url)
	for query[int](t, watcher, `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE NOT l.granted AND a.datname = current_database()`) == 0 {
		select {
		case err := <-done:
			t.Fatalf("the migration did not wait for the open transaction: %v", err)
		default:
		}
	}
	execute(t, node, `SELECT FROM holdfast.entity, holdfast.step, holdfast.batch, holdfast.item, holdfast.request, holdfast.token, holdfast.ledger`, `COMMIT`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := newest(t, watcher, "holdfast"); n != now+1 {
		t.Errorf("got schema %d, want %d", n, now+1)
	}
}

// TestAMigrationHoldsNoLockWhileItWaits verifies that a migration that waits for a table in use has released the tables that it had
// locked: the transaction that uses the table can use them too, and ends.
func TestAMigrationHoldsNoLockWhileItWaits(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	openEngine(t, postgres.URL(url)).Close()
	node, watcher := connect(t, url), connect(t, url)
	execute(t, node, `BEGIN`, `SELECT FROM holdfast.ledger`)
	next := postgres.URL(url, later(t, "-- min_reader: 14\nALTER TABLE {schema}.ledger ADD COLUMN later text;\nALTER TABLE {schema}.follow ADD COLUMN later text;"))
	done := make(chan error, 1)
	go func() {
		_, err := store.DatabaseOf(next).Migrate(t.Context(), options)
		done <- err
	}()
	const locks = `SELECT coalesce(string_agg(c.relname || ' ' || l.granted, ' '), '') FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
		WHERE l.mode = 'AccessExclusiveLock' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	testkit.Eventually(t, "the migration waits for the ledger only", func() bool { return query[string](t, watcher, locks) == "ledger false" })
	execute(t, node, `SELECT FROM holdfast.follow, holdfast.entity`, `COMMIT`)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestThePrintedScriptMakesWhatMigrateMakes verifies that the printed script creates exactly the
// database that Migrate creates, grants included.
func TestThePrintedScriptMakesWhatMigrateMakes(t *testing.T) {
	t.Parallel()
	byHand, byMigrate := fresh(t), fresh(t)
	role := newRole(t, byHand, "LOGIN")
	with := options
	with.RuntimeRole = role
	script, err := store.DatabaseOf(postgres.URL(byHand)).Script(with)
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, byHand)
	if _, err := conn.PgConn().Exec(t.Context(), script).ReadAll(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.DatabaseOf(postgres.URL(byMigrate)).Migrate(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	other := connect(t, byMigrate)
	for _, c := range []*pgx.Conn{conn, other} {
		execute(t, c, `UPDATE holdfast.migration SET applied_at = 'epoch'`, `UPDATE holdfast.secret SET value = ''`)
	}
	if a, b := content(t, conn, "holdfast"), content(t, other, "holdfast"); a != b {
		t.Errorf("applied manually:\n%s\nby Migrate:\n%s", a, b)
	}
	const privileges = `SELECT string_agg(c.relname || ' ' || coalesce(c.relacl::text, ''), E'\n' ORDER BY c.relname)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'holdfast' AND c.relkind = 'r'`
	if a, b := query[string](t, conn, privileges), query[string](t, other, privileges); a != b {
		t.Errorf("privileges applied manually:\n%s\nby Migrate:\n%s", a, b)
	}
	hf := openEngine(t, postgres.URL(as(t, byHand, role, "")))
	if err := useEverything(t.Context(), hf, "runtime"); err != nil {
		t.Error(err)
	}
}

// TestTablesThatEveryCommandWritesToHaveNoChecks verifies that frequently written tables have no
// CHECK: PostgreSQL compiles the CHECKs of a table again for each statement that writes to it,
// which is a third of the cost of a small one.
func TestTablesThatEveryCommandWritesToHaveNoChecks(t *testing.T) {
	url := fresh(t)
	openEngine(t, postgres.URL(url))
	found := query[string](t, connect(t, url), `SELECT coalesce(string_agg(c.conrelid::regclass || ' ' || c.conname, ', '), '')
		FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid JOIN pg_namespace n ON n.oid = t.relnamespace
		WHERE c.contype = 'c' AND n.nspname = 'holdfast'
		AND t.relname IN ('due', 'effect', 'entity', 'event', 'feed', 'follow', 'history', 'scope', 'sequence', 'stream', 'batch', 'item', 'ledger')`)
	if found != "" {
		t.Errorf("these objects slow down every write: %s", found)
	}
}
