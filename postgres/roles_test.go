package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/postgres"
)

// newRole makes a role of the test's own on the server of a database, and drops
// it with what it owns there.
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

// Verifies that a node needs no right to change the schema: a migrator that
// owns it, by creating it or by having been given it, migrates and grants; a
// role that owns nothing then opens the database and runs every verb, alone and
// in a transaction, and can neither rewrite what happened nor make tables.
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
				if _, err := postgres.URL(as(t, url, migrator, "")).Migrate(t.Context(), with); err != nil {
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
			wantDenied(t, connect(t, as(t, url, app, "")))
		})
	}
}

func wantDenied(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, s := range []string{
		`UPDATE holdfast.event SET data = '{}'`,
		`UPDATE holdfast.history SET name = 'other'`,
		`TRUNCATE holdfast.event`,
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
			t.Errorf("the runtime role may %s: %v", s, err)
		}
	}
}

// Verifies that a role that may not change the schema is told to have it
// migrated when the database is behind, and to have rights granted when it has
// none; and that nothing is made.
func TestARoleWithoutRightsIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	admin := connect(t, url)
	app, stranger := newRole(t, url, "LOGIN"), newRole(t, url, "LOGIN")
	wantFault(t, openError(t, postgres.URL(as(t, url, app, "")), quiet), fault.DatabaseTooOld, "holdfast migrate", "schema 0")
	if n := query[int](t, admin, `SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast'`); n != 0 {
		t.Error("the schema was made")
	}
	with := options
	with.RuntimeRole = app
	if _, err := postgres.URL(url).Migrate(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	wantFault(t, openError(t, postgres.URL(as(t, url, stranger, "")), quiet), fault.DatabaseDenied, "grant", "--runtime-role")

	// Tables are there, but a migration is not recorded: behind, not foreign.
	execute(t, admin, `CREATE TABLE saved AS SELECT * FROM holdfast.migration`, `DELETE FROM holdfast.migration`)
	before := content(t, admin, "holdfast")
	wantFault(t, openError(t, postgres.URL(as(t, url, app, "")), quiet), fault.DatabaseTooOld, "holdfast migrate")
	if content(t, admin, "holdfast") != before {
		t.Error("the schema was changed")
	}
}

// Verifies that one right too few is found, if not at the start then at the
// verb that needs it, and is told with the name of the table.
func TestAMissingGrantIsNamed(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	app := newRole(t, url, "LOGIN")
	with := options
	with.RuntimeRole = app
	if _, err := postgres.URL(url).Migrate(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	execute(t, connect(t, url), "REVOKE INSERT ON holdfast.event FROM "+app)
	hf, err := holdfast.Open(t.Context(), postgres.URL(as(t, url, app, "")), quiet)
	if err == nil {
		defer hf.Close()
		err = useEverything(t.Context(), hf, "denied")
	}
	wantFault(t, err, fault.DatabaseDenied, "event")
}

// Verifies, statement by statement, that the rights granted to the runtime role
// are enough for every verb there is, also for those that this test does not
// know: the server plans each under the role, which checks its rights. Moving
// the database's time is for tests alone, and is not granted.
func TestTheRuntimeRoleHasTheRightsOfEveryVerb(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	app := newRole(t, url, "LOGIN")
	with := options
	with.RuntimeRole = app
	if _, err := postgres.URL(url).Migrate(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	texts, err := postgres.Texts("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, as(t, url, app, "", "default_query_exec_mode=exec"))
	for name, text := range texts {
		denied := explain(t, conn, text)
		switch {
		case name == "meta.shift" && denied == nil:
			t.Error("the runtime role may move the database's time")
		case name != "meta.shift" && denied != nil:
			t.Errorf("the runtime role may not run %s: %v", name, denied)
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
