package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/streamclose"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// newRole creates a role for the test on the server of a database, and drops it with what it owns
// there.
func newRole(t *testing.T, url, attributes string) string {
	t.Helper()
	role := "hf_" + strings.ToLower(rand.Text()[:12])
	admin := connect(t, url)
	execute(t, admin, "CREATE ROLE "+role+" "+attributes)
	t.Cleanup(func() { // before the database is dropped, since cleanups run backward
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(context.Background())
		for _, s := range []string{"DROP OWNED BY " + role + " CASCADE", "DROP ROLE " + role} {
			if _, err := conn.Exec(context.Background(), s); err != nil {
				t.Logf("%s: %v", s, err)
			}
		}
	})
	return role
}

// TestARuntimeRoleThatOwnsNothingRunsEveryVerb verifies that a node needs no privilege to change
// the schema: a migrator that owns it, by creating it or by a grant, migrates and grants; a role
// that owns nothing then opens the database and runs every verb, alone and in a transaction, and
// can neither rewrite history nor create tables.
func TestARuntimeRoleThatOwnsNothingRunsEveryVerb(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, prepare string }{
		{"the migrator may create schemas", `GRANT CREATE ON DATABASE {database} TO {migrator}`},
		{"the migrator was given the schema", `CREATE SCHEMA holdfast AUTHORIZATION {migrator}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := fresh(t)
			admin := connect(t, url)
			migrator, app := newRole(t, url, "LOGIN"), newRole(t, url, "LOGIN")
			execute(t, admin, strings.NewReplacer("{database}", query[string](t, admin, "SELECT current_database()"),
				"{migrator}", migrator).Replace(c.prepare))
			with := options
			with.RuntimeRole = app
			for range 2 { // a second time changes nothing
				if _, err := store.DatabaseOf(postgres.URL(as(t, url, migrator, ""))).Migrate(t.Context(), with); err != nil {
					t.Fatal(err, errors.Unwrap(err))
				}
			}
			hf := openEngine(t, postgres.URL(as(t, url, app, "")))
			if err := useEverything(t.Context(), hf, "alone"); err != nil {
				t.Error(err)
			}
			err := hf.Update(holdfast.InWorkspace(t.Context(), "other"), func(ctx context.Context, tx holdfast.Tx) error {
				return useEverything(ctx, tx, "inside")
			})
			if err != nil {
				t.Error(err)
			}
			sweepsOld(t, admin, hf)
			wantDenied(t, connect(t, as(t, url, app, "")))
		})
	}
}

// sweepsOld checks that the sweeps of a node delete old rows.
func sweepsOld(t *testing.T, admin *pgx.Conn, hf *holdfast.Engine) {
	t.Helper()
	mustAppend(t, hf, "cut", stream.Any)
	mustAppend(t, hf, "cut", stream.Any)
	if err := streamclose.Truncate(t.Context(), engine.Of(hf), "cut", 1, nil); err != nil {
		t.Fatal(err)
	}
	execute(t, admin, `UPDATE holdfast.event SET at = at - interval '1 day'`, `UPDATE holdfast.history SET at = at - interval '1 day', id = ('00000000' || substr(id::text, 9))::uuid`)
	if _, err := streamclose.SweepAll(t.Context(), engine.Of(hf)); err != nil {
		t.Error(err, errors.Unwrap(err))
	}
	if n := query[int](t, admin, `SELECT count(*) FROM holdfast.event WHERE stream = 'cut'`); n != 1 {
		t.Errorf("the truncated stream has %d events, want 1", n)
	}
	p := retention.Pruner{Retention: time.Hour}
	if n, _, err := p.Sweep(t.Context(), engine.Of(hf), 2000); n == 0 || err != nil {
		t.Errorf("removed %d events of the history, want some: %v", n, err)
	}
}

func wantDenied(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, s := range []string{
		`UPDATE holdfast.event SET data = '{}'`,
		`UPDATE holdfast.history SET name = 'other'`,
		`UPDATE holdfast.audit SET actor = 'other'`,
		`DELETE FROM holdfast.event`,
		`DELETE FROM holdfast.history`,
		`DELETE FROM holdfast.audit`,
		`TRUNCATE holdfast.event`,
		`TRUNCATE holdfast.history`,
		`TRUNCATE holdfast.audit`,
		`CREATE TABLE holdfast.mine (id int)`,
		`ALTER TABLE holdfast.event ADD COLUMN mine int`,
		`DROP TABLE holdfast.scope`,
		`INSERT INTO holdfast.migration VALUES (99, 'x', 1, '', now())`,
		`UPDATE holdfast.clock SET shift = '1 hour'`,
		`UPDATE holdfast.workspace SET shard = 7`,
		`DELETE FROM holdfast.workspace`,
	} {
		_, err := conn.Exec(t.Context(), s)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "42501" {
			t.Errorf("the runtime role can run %s: %v", s, err)
		}
	}
}

// TestTheRuntimeRoleDeletesWhatRetentionPermits verifies that the runtime role can delete only the
// events and history that retention permits, whatever arguments it passes: no event that its stream
// retains, nor the last one, nor a young one; of a history nothing younger than an hour, nor the
// last event of an object, nor an event that a reaction has yet to handle. The same holds in a new
// database, and after a migration of one in which the role could delete and the functions belonged
// to another role. Events that retention permits are deleted. Other roles cannot even call the
// functions.
func TestTheRuntimeRoleDeletesWhatRetentionPermits(t *testing.T) {
	t.Parallel()
	for _, granted := range []bool{false, true} {
		t.Run(fmt.Sprint("granted ", granted), func(t *testing.T) {
			t.Parallel()
			url := fresh(t)
			admin := connect(t, url)
			migrator, app, stranger := newRole(t, url, "LOGIN"), newRole(t, url, "LOGIN"), newRole(t, url, "LOGIN")
			execute(t, admin, `GRANT CREATE ON DATABASE `+query[string](t, admin, `SELECT current_database()`)+` TO `+migrator)
			with, db := options, postgres.URL(as(t, url, migrator, ""))
			with.RuntimeRole = app
			if granted { // the last migrator is another than the first, and grants nothing
				if _, err := store.DatabaseOf(db).Migrate(t.Context(), options); err != nil {
					t.Fatal(err)
				}
				db = postgres.URL(url, later(t, "-- min_reader: 14\n"))
				execute(t, admin, `ALTER FUNCTION holdfast.drop_events OWNER TO CURRENT_USER`, `ALTER FUNCTION holdfast.prune_history OWNER TO CURRENT_USER`,
					`GRANT EXECUTE ON FUNCTION holdfast.drop_events, holdfast.prune_history TO PUBLIC`, `GRANT USAGE ON SCHEMA holdfast TO `+app, `GRANT SELECT, INSERT, DELETE ON holdfast.event, holdfast.history TO `+app,
					`GRANT DELETE ON holdfast.event, holdfast.history TO PUBLIC`, `GRANT ALL ON holdfast.event, holdfast.history, holdfast.clock TO `+app+` WITH GRANT OPTION`)
				with.RuntimeRole = ""
			}
			if _, err := store.DatabaseOf(db).Migrate(t.Context(), with); err != nil {
				t.Fatal(err, errors.Unwrap(err))
			}
			execute(t, admin, `GRANT USAGE ON SCHEMA holdfast TO `+stranger)
			retained(t, admin, connect(t, as(t, url, app, "")), connect(t, as(t, url, stranger, "")))
			if n := query[int](t, admin, `SELECT count(*) FROM pg_proc WHERE pronamespace = 'holdfast'::regnamespace AND prosecdef AND proowner = '`+migrator+`'::regrole`); n != 2 {
				t.Errorf("%d functions run as the owner of the tables, want 2", n)
			}
		})
	}
}

// retained checks that protected rows stay, and that the rest is deleted.
func retained(t *testing.T, admin, app, stranger *pgx.Conn) {
	t.Helper()
	execute(t, admin,
		`INSERT INTO holdfast.stream (shard, workspace, name, head, first) VALUES (0, 'w', 'cut', 9, 5), (0, 'w', 'whole', 9, 0), (0, 'w', 'beyond', 9, 100)`,
		`INSERT INTO holdfast.event (shard, id, n, workspace, stream, version, name, data, at)
		 SELECT 0, gen_random_uuid(), 0, 'w', s, v, 'e', '{}', clock_timestamp() - CASE v WHEN 4 THEN 1 ELSE 11 END * interval '1 minute'
		   FROM (VALUES ('cut'), ('whole'), ('beyond')) AS s(s), generate_series(0, 9) v`,
		`INSERT INTO holdfast.reaction (shard, workspace, name, source, events, streams, options, max_deaths, priority, base, state, created_at, updated_at)
		 VALUES (0, 'w', 'r', 'history', '["*"]', '', '{}', 1, 0, 0, 'live', clock_timestamp(), clock_timestamp())`,
		`INSERT INTO holdfast.follow (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
		 VALUES (0, 'w', 'r', '$entity/l/b', 3, 9, clock_timestamp(), clock_timestamp(), 1, clock_timestamp())`,
		`INSERT INTO holdfast.due (shard, reaction, workspace, stream, version) VALUES (0, 'r', 'w', '$entity/l/c', 9)`,
		`INSERT INTO holdfast.history (shard, id, n, workspace, stream, version, name, data, at)
		 SELECT 0, gen_random_uuid(), 0, 'w', '$entity/l/' || s, v, 'e', '{}', clock_timestamp() - CASE v WHEN 8 THEN 30 ELSE 61 END * interval '1 minute'
		   FROM (VALUES ('a'), ('b'), ('c')) AS s(s), generate_series(0, 9) v`)
	calls := []string{
		`SELECT holdfast.drop_events(0::smallint, 'w', s, f, u) FROM (VALUES ('cut'), ('whole'), ('beyond')) AS s(s), (VALUES (-1), (0), (5)) AS f(f), (VALUES (5), (10), (100)) AS u(u)`,
		`SELECT count(*) FROM (VALUES (0), (-1000000000), (3600000)) AS k(k), LATERAL holdfast.prune_history(0::smallint, '', '` + least + `', '` + most + `', 1000, k)`,
	}
	for _, call := range calls {
		if _, err := stranger.Exec(t.Context(), call); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("any role can run %s: %v", call, err)
		}
		execute(t, app, call)
	}
	for _, s := range []string{`DELETE FROM holdfast.event`, `DELETE FROM holdfast.history`, `UPDATE holdfast.event SET name = ''`, `UPDATE holdfast.history SET name = ''`,
		`TRUNCATE holdfast.event`, `TRUNCATE holdfast.history`, `UPDATE holdfast.clock SET shift = shift`,
		`CREATE TRIGGER t BEFORE DELETE ON holdfast.event FOR EACH ROW EXECUTE FUNCTION pg_catalog.suppress_redundant_updates_trigger()`, `ALTER FUNCTION holdfast.drop_events OWNER TO CURRENT_USER`} {
		if _, err := app.Exec(t.Context(), s); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("the runtime role can run %s: %v", s, err)
		}
	}
	for table, want := range map[string]string{
		"event":   "beyond:4,9 cut:4,5,6,7,8,9 whole:0,1,2,3,4,5,6,7,8,9",
		"history": "$entity/l/a:8,9 $entity/l/b:4,5,6,7,8,9 $entity/l/c:0,1,2,3,4,5,6,7,8,9",
	} {
		got := query[string](t, admin, `SELECT string_agg(x.line, ' ' ORDER BY x.line) FROM (
			SELECT stream || ':' || string_agg(version::text, ',' ORDER BY version) AS line FROM holdfast.`+table+` GROUP BY stream) x`)
		if got != want {
			t.Errorf("%s has %s, want %s", table, got, want)
		}
	}
}

// TestARoleWithoutRightsIsToldWhatToDo verifies that a role that may not change the schema gets an
// error to migrate if the database is behind, and to grant privileges if it has none; and that
// nothing is created.
func TestARoleWithoutRightsIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	admin := connect(t, url)
	app, stranger := newRole(t, url, "LOGIN"), newRole(t, url, "LOGIN")
	testkit.WantCode(t, openError(t, postgres.URL(as(t, url, app, "")), quiet), fault.DatabaseTooOld, "holdfast migrate", "schema 0")
	if n := query[int](t, admin, `SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast'`); n != 0 {
		t.Error("the schema was created")
	}
	with := options
	with.RuntimeRole = app
	if _, err := store.DatabaseOf(postgres.URL(url)).Migrate(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	testkit.WantCode(t, openError(t, postgres.URL(as(t, url, stranger, "")), quiet), fault.DatabaseDenied, "grant", "--runtime-role")

	// The tables exist, but a migration is not recorded: the database is behind, not foreign.
	execute(t, admin, `CREATE TABLE saved AS SELECT * FROM holdfast.migration`, `DELETE FROM holdfast.migration`)
	before := content(t, admin, "holdfast")
	testkit.WantCode(t, openError(t, postgres.URL(as(t, url, app, "")), quiet), fault.DatabaseTooOld, "holdfast migrate")
	if content(t, admin, "holdfast") != before {
		t.Error("the schema was changed")
	}
}

// TestAMissingGrantIsNamed verifies that a missing privilege is detected, if not at the start then
// at the verb that needs it, and is reported with the name of the table.
func TestAMissingGrantIsNamed(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	app := newRole(t, url, "LOGIN")
	with := options
	with.RuntimeRole = app
	if _, err := store.DatabaseOf(postgres.URL(url)).Migrate(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	execute(t, connect(t, url), "REVOKE INSERT ON holdfast.event FROM "+app)
	hf, err := holdfast.Open(t.Context(), postgres.URL(as(t, url, app, "")), quiet)
	if err == nil {
		defer hf.Close()
		err = useEverything(t.Context(), hf, "denied")
	}
	testkit.WantCode(t, err, fault.DatabaseDenied, "event")
}

// TestTheRuntimeRoleHasTheRightsOfEveryVerb verifies, statement by statement, that the privileges
// of the runtime role are enough for every verb, also for those that this test does not know: the
// server plans each under the role, which checks its privileges. Shifting the database's time is
// for tests only, and is not granted.
func TestTheRuntimeRoleHasTheRightsOfEveryVerb(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Parallel()
	url := fresh(t)
	app := newRole(t, url, "LOGIN")
	with := options
	with.RuntimeRole = app
	if _, err := store.DatabaseOf(postgres.URL(url)).Migrate(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	texts, err := store.DatabaseOf(postgres.URL("")).Texts()
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, as(t, url, app, "", "default_query_exec_mode=exec"))
	for name, text := range texts {
		denied := explain(t, conn, text)
		switch {
		case name == "meta.shift_clock" && denied == nil:
			t.Error("the runtime role can change the database's time")
		case name != "meta.shift_clock" && denied != nil:
			t.Errorf("the runtime role cannot run %s: %v", name, denied)
		}
	}
}

// explain plans a statement with NULL for every argument.
func explain(t *testing.T, conn *pgx.Conn, text string) error {
	t.Helper()
	d, err := conn.PgConn().Prepare(t.Context(), "", text, nil)
	if err != nil {
		return err
	}
	arguments := strings.TrimSuffix(strings.Repeat("NULL, ", len(d.ParamOIDs)), ", ")
	if arguments != "" {
		arguments = "(" + arguments + ")"
	}
	defer conn.Exec(t.Context(), "DEALLOCATE ALL")
	if _, err := conn.Exec(t.Context(), "PREPARE verb AS "+text); err != nil {
		return err
	}
	_, err = conn.Exec(t.Context(), "EXPLAIN EXECUTE verb"+arguments)
	return err
}
