package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// TestTheStatusIsAnsweredWhileEveryConnectionIsBusy verifies that the health check succeeds while
// every connection of the pool is in use, and that an update then waits no longer than its context
// and writes nothing.
func TestTheStatusIsAnsweredWhileEveryConnectionIsBusy(t *testing.T) {
	t.Parallel()
	hf := openEngine(t, postgres.URL(as(t, fresh(t), "", "", "pool_max_conns=2")))
	mustAppend(t, hf, "s", stream.None)
	release := make(chan struct{})
	done := make(chan error, 2)
	for range 2 {
		entered := make(chan struct{})
		go func() {
			done <- hf.Update(t.Context(), func(context.Context, holdfast.Tx) error {
				close(entered)
				<-release
				return nil
			})
		}()
		<-entered
	}
	started := time.Now()
	s, err := hf.Status(expired(t))
	if err != nil || s.Schema == 0 || s.Now.IsZero() || !strings.HasPrefix(s.Database, "PostgreSQL ") {
		t.Errorf("got status %+v: %v", s, err)
	}
	if err := updateOnce(expired(t), hf); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, holdfast.ErrOutcomeUnknown) {
		t.Errorf("update without a connection: got %v, want context.DeadlineExceeded", err)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("took %v, want at most 5s", took)
	}
	close(release)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	mustAppend(t, hf, "s", 0)
}

// TestAPoolOfTheProgramsOwnStaysOpen verifies that an engine on a pool of the program leaves it
// open, and does not change it.
func TestAPoolOfTheProgramsOwnStaysOpen(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), fresh(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	hf, err := holdfast.Open(t.Context(), postgres.Pool(pool), quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := useEverything(t.Context(), hf, "pool"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(hf.Close(), hf.Close()); err != nil {
		t.Error(err)
	}
	if err := pool.Ping(t.Context()); err != nil {
		t.Errorf("the pool was closed: %v", err)
	}
}

// TestAPoolThatCannotBeWorkedWithIsRefused verifies that a pool whose statements put arguments into
// the text, or whose transactions have another isolation, is refused like such a URL.
func TestAPoolThatCannotBeWorkedWithIsRefused(t *testing.T) {
	t.Parallel()
	for _, param := range []string{"default_query_exec_mode=simple_protocol", "default_transaction_isolation=serializable"} {
		pool, err := pgxpool.New(t.Context(), as(t, fresh(t), "", "", param))
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		hf, err := holdfast.Open(t.Context(), postgres.Pool(pool), quiet)
		if err == nil {
			hf.Close()
		}
		if fault.CodeOf(err) != fault.Validation {
			t.Errorf("%s: %v", param, err)
		}
	}
}

// TestAWrongURLIsRefusedWithoutRepeatingThePassword verifies that invalid settings are refused
// before or at the first connection, each with its own code and error, and that a password is never
// repeated, neither in the error nor in what it wraps.
func TestAWrongURLIsRefusedWithoutRepeatingThePassword(t *testing.T) {
	t.Parallel()
	good := as(t, fresh(t), "", "hunter2")
	for _, c := range []struct {
		name, url string
		code      fault.Code
		parts     []string
		with      []postgres.Option
	}{
		{"a mode that puts arguments into the text", as(t, good, "", "", "default_query_exec_mode=simple_protocol"), fault.Validation, []string{"simple_protocol", "cache_describe"}, nil},
		{"garbage", "postgres://app:hunter2@host:port/db", fault.Validation, []string{"postgres://user@host"}, nil},
		{"more garbage", "hunter2 and something else", fault.Validation, []string{"postgres://user@host"}, nil},
		{"another scheme", "mysql://app:hunter2@host/db", fault.Validation, []string{"postgres://user@host"}, nil},
		{"a bad number", "postgres://app:hunter2@host/db?pool_max_conns=many", fault.Validation, []string{"URL"}, nil},
		{"an unknown mode", "postgres://app:hunter2@host/db?default_query_exec_mode=fast", fault.Validation, []string{"URL"}, nil},
		{"a bad schema", good, fault.Validation, []string{`"Bad-Name"`}, []postgres.Option{postgres.Schema("Bad-Name")}},
		{"the schema public", good, fault.Validation, []string{"public"}, []postgres.Option{postgres.Schema("public")}},
		{"an unknown parameter", as(t, good, "", "", "no_such_setting=1"), fault.Validation, []string{"no_such_setting"}, nil},
		{"no such database", strings.Replace(good, "/hf_", "/none_", 1), fault.NotFound, []string{"none_", "create the database"}, nil},
		{"no such role", as(t, good, "nobody_of_this_name", "hunter2"), fault.DatabaseDenied, []string{"login"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := openError(t, postgres.URL(c.url, c.with...), quiet)
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(e.Error(), "hunter2") {
					t.Errorf("the error contains the password: %v", e)
				}
			}
			testkit.WantCode(t, err, c.code, c.parts...)
		})
	}
}

// onServer runs statements as the superuser of a server of the test's own.
func onServer(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	execute(t, conn, statements...)
}

// TestAWrongPasswordIsARefusedLogin verifies that a wrong password is reported as a refused login,
// and at once.
func TestAWrongPasswordIsARefusedLogin(t *testing.T) {
	t.Parallel()
	server := cluster(t)
	conn := connect(t, server.URL())
	execute(t, conn, `CREATE ROLE app LOGIN SUPERUSER PASSWORD 'right'`)
	hba := query[string](t, conn, `SHOW hba_file`)
	rules, err := os.ReadFile(hba)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hba, append([]byte("host all app 127.0.0.1/32 scram-sha-256\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	execute(t, conn, `SELECT pg_reload_conf()`)
	testkit.Eventually(t, "the server requires passwords", func() bool {
		probe, err := pgx.Connect(t.Context(), as(t, server.URL(), "app", "wrong"))
		if err == nil {
			probe.Close(t.Context())
		}
		return err != nil
	})
	started := time.Now()
	err = openError(t, postgres.URL(as(t, server.URL(), "app", "wrong")), quiet)
	testkit.WantCode(t, err, fault.DatabaseDenied, "password")
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("a wrong password was retried for %v", took)
	}
	openEngine(t, postgres.URL(as(t, server.URL(), "app", "right")))
}

// TestADefaultOfReadOnlyIsSetAsideOrRefused verifies the effect of a "read only" default: an engine
// with its own session settings overrides it and works; one behind a pooler, which cannot, is
// refused at the start and not at its first write.
func TestADefaultOfReadOnlyIsSetAsideOrRefused(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	openEngine(t, postgres.URL(url)).Close()
	admin := connect(t, url)
	execute(t, admin, "ALTER DATABASE "+query[string](t, admin, "SELECT current_database()")+" SET default_transaction_read_only = on")
	hf := openEngine(t, postgres.URL(url))
	if err := useEverything(t.Context(), hf, "direct"); err != nil {
		t.Error(err)
	}
	pooled, err := holdfast.Open(t.Context(), postgres.URL(url, postgres.Pooled()), quiet)
	if err != nil {
		testkit.WantCode(t, err, fault.DatabaseReadOnly, "default_transaction_read_only")
		return
	}
	defer pooled.Close()
	_, err = stream.Append(t.Context(), pooled, "s", stream.Any, event("a"))
	testkit.WantCode(t, err, fault.DatabaseReadOnly, "default_transaction_read_only")
	err = pooled.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		_, err := stream.Append(ctx, tx, "s", stream.Any, event("a"))
		return err
	})
	t.Errorf("open succeeded; update then returned %v", err)
}

// TestAStandbyIsRefused verifies that a standby is refused at the start, with an error that names
// the primary; that an engine whose server became one gets an error at its next write, and
// continues to read; and that it writes again when the server is promoted.
func TestAStandbyIsRefused(t *testing.T) {
	t.Parallel()
	testlevel.Long(t)
	server := cluster(t)
	hf := openEngine(t, postgres.URL(server.URL()))
	mustAppend(t, hf, "s", stream.None)
	var data string
	func() {
		conn := connect(t, server.URL())
		data = query[string](t, conn, `SHOW data_directory`)
		conn.Close(t.Context())
	}()
	if err := server.Stop("fast"); err != nil {
		t.Fatal(err)
	}
	signal := filepath.Join(data, "standby.signal")
	if err := os.WriteFile(signal, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if owner, err := os.Stat(filepath.Join(data, "PG_VERSION")); err == nil {
		chownLike(t, signal, owner)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	testkit.WantCode(t, openError(t, postgres.URL(server.URL()), quiet), fault.DatabaseReadOnly, "standby", "primary")
	if _, err := store.DatabaseOf(postgres.URL(server.URL())).Migrate(t.Context(), options); fault.CodeOf(err) != fault.DatabaseReadOnly {
		t.Errorf("Migrate: got %v, want DATABASE_READ_ONLY", err)
	}
	writes := map[string]func() error{
		"a command": func() error { return appendOnce(t.Context(), hf) },
		"an update": func() error { return updateOnce(t.Context(), hf) },
	}
	for name, write := range writes {
		var err error
		testkit.Eventually(t, "old connections are gone", func() bool { // a lost connection means an unknown outcome, and there may be several
			err = write()
			return !errors.Is(err, holdfast.ErrOutcomeUnknown)
		})
		if fault.CodeOf(err) != fault.DatabaseReadOnly || !strings.Contains(fmt.Sprint(err), "primary") {
			t.Errorf("%s on a standby: got %v, want DATABASE_READ_ONLY", name, err)
		}
	}
	if names := wantGapless(t, hf, "s"); len(names) != 1 {
		t.Errorf("a standby accepted a write: %v", names)
	}
	onServer(t, server.URL(), `SELECT pg_promote(true, 60)`)
	mustAppend(t, hf, "s", 0)
}

// TestTheShapeOfASchema verifies that a migrated schema, of any name, has the shape that opening
// relies on, that every statement can be parsed against it, and that a schema without one of its
// columns has another shape.
func TestTheShapeOfASchema(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Parallel()
	url := fresh(t)
	conn := connect(t, url)
	for _, schema := range []string{"holdfast", "another"} {
		openEngine(t, postgres.URL(url, postgres.Schema(schema)))
		var shape string
		if err := conn.QueryRow(t.Context(), postgres.ShapeSQL, schema).Scan(&shape); err != nil {
			t.Fatal(err)
		}
		if shape != postgres.MigratedShape {
			t.Errorf("the migrations create schema %q of shape %s: set migratedShape to it", schema, shape)
		}
		texts, err := store.DatabaseOf(postgres.URL("", postgres.Schema(schema))).Texts()
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range texts {
			if _, err := conn.PgConn().Prepare(t.Context(), "", text, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	execute(t, conn, `ALTER TABLE holdfast.event DROP COLUMN data`)
	if err := openError(t, postgres.URL(url), quiet); fault.CodeOf(err) != fault.DatabaseDamaged {
		t.Errorf("open without a column: got %v, want DATABASE_DAMAGED", err)
	}
}
