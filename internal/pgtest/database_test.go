package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestDatabaseIsEmptyAndDropped(t *testing.T) {
	t.Parallel()
	server := open(t, shared(t))
	url, drop, err := Database(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn := open(t, url)
	name := one(t, conn, "SELECT current_database()")
	if !strings.HasPrefix(name, "hf_") {
		t.Errorf("database is named %q, want the prefix hf_", name)
	}
	exec1(t, conn, "CREATE TABLE mine (n int)") // it stays connected: drop must work anyway
	drop()
	drop()
	const count = "SELECT count(*)::text FROM pg_database WHERE datname = $1"
	if one(t, server, count, name) != "0" {
		t.Error("the database still exists")
	}
}

// TestTemplateIsPreparedOnce verifies, for callers in many goroutines and in many processes at
// once:
//   - Prepare runs once in all;
//   - every caller gets its own database, with the prepared contents.
func TestTemplateIsPreparedOnce(t *testing.T) {
	t.Parallel()
	url, template := shared(t), templateFor(t)
	var prepared atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			check(t, func() error { return useTemplate(t.Context(), template, func() { prepared.Add(1) }) })
		})
	}
	for range 2 {
		cmd := child(t, "template", EnvURL+"="+url, "HOLDFAST_PGTEST_TEMPLATE="+template)
		all.Go(func() {
			output, err := cmd.Output()
			check(t, func() error { return err })
			prepared.Add(int32(bytes.Count(output, []byte("prepared\n"))))
		})
	}
	all.Wait()
	if n := prepared.Load(); n != 1 {
		t.Errorf("template was prepared %d times, want 1", n)
	}
}

func check(t *testing.T, do func() error) {
	t.Helper()
	if err := do(); err != nil {
		t.Error(err)
	}
}

// templateFor returns a name that no earlier run used and that is dropped with the test, which
// matters on a server given by the environment.
func templateFor(t *testing.T) string {
	template := randomName() + "_template"
	t.Cleanup(func() { dropDatabase(template) })
	return template
}

func childTemplate() {
	err := useTemplate(context.Background(), os.Getenv("HOLDFAST_PGTEST_TEMPLATE"), func() {
		fmt.Println("prepared")
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// useTemplate clones the template and checks that the clone has the prepared contents and nothing
// that another clone wrote.
func useTemplate(ctx context.Context, template string, prepared func()) error {
	url, drop, err := Database(ctx, Options{Template: template, Prepare: func(ctx context.Context, url string) error {
		prepared()
		return inDatabase(ctx, url, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)", nil)
	}})
	if err != nil {
		return err
	}
	defer drop()
	var rows int
	if err := inDatabase(ctx, url, "SELECT count(*) FROM t", &rows); err != nil || rows != 1 {
		return fmt.Errorf("clone has %d rows: %w", rows, err)
	}
	return inDatabase(ctx, url, "INSERT INTO t VALUES (2)", nil)
}

func inDatabase(ctx context.Context, url, sql string, result *int) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if result != nil {
		return conn.QueryRow(ctx, sql).Scan(result)
	}
	_, err = conn.Exec(ctx, sql)
	return err
}

func TestTemplateIsClonedInParallel(t *testing.T) {
	t.Parallel()
	shared(t)
	template := templateFor(t)
	nothing := func() {}
	check(t, func() error { return useTemplate(t.Context(), template, nothing) })
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			check(t, func() error { return useTemplate(t.Context(), template, nothing) })
		})
	}
	all.Wait()
}

// TestTemplateSendsAwayWhoStayed verifies that a connection that Prepare left open does not prevent
// cloning.
func TestTemplateSendsAwayWhoStayed(t *testing.T) {
	t.Parallel()
	shared(t)
	_, drop, err := Database(t.Context(), Options{Template: templateFor(t), Prepare: func(_ context.Context, url string) error {
		open(t, url)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	drop()
}

// TestTemplateIsNeverHalfMade verifies that neither a failed Prepare nor the leftovers of a crashed
// process are ever cloned.
func TestTemplateIsNeverHalfMade(t *testing.T) {
	t.Parallel()
	server := open(t, shared(t))
	template := templateFor(t)
	broken := errors.New("broken")
	_, _, err := Database(t.Context(), Options{Template: template, Prepare: func(context.Context, string) error { return broken }})
	if !errors.Is(err, broken) {
		t.Fatalf("got error %v", err)
	}
	exec1(t, server, "CREATE DATABASE "+template+"_making") // as a crashed process would leave it
	check(t, func() error { return useTemplate(t.Context(), template, func() {}) })
	const count = "SELECT count(*)::text FROM pg_database WHERE starts_with(datname, $1)"
	if n := one(t, server, count, template); n != "1" {
		t.Errorf("got %s databases of the template, want 1", n)
	}
}

func TestTemplateRefusesALongName(t *testing.T) {
	t.Parallel()
	shared(t)
	if _, _, err := Database(t.Context(), Options{Template: strings.Repeat("x", 49)}); err == nil {
		t.Error("a template name of 49 bytes returned no error")
	}
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	for conn, want := range map[string]string{
		"postgres://u:p%2F@h:1/old?sslmode=disable":      "postgres://u:p%2F@h:1/new?sslmode=disable",
		"postgresql://u@h":                               "postgresql://u@h/new",
		"postgres://u@h?dbname=old&connect_timeout=3":    "postgres://u@h/new?connect_timeout=3",
		"postgres://u@h1:1,h2:2/old":                     "postgres://u@h1:1,h2:2/new",
		"postgres://u@[::1]:1/":                          "postgres://u@[::1]:1/new",
		"postgres:///old?host=/run/pg&user=u":            "postgres:///new?host=/run/pg&user=u",
		"host=h user=u dbname=old":                       "host=h user=u dbname=old dbname=new",
		"host=h user=u password='a b' sslmode=disable":   "host=h user=u password='a b' sslmode=disable dbname=new",
		"host=h user=u application_name='dbname=strange": "",
	} {
		got, err := withDatabase(conn, "new")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s\n got %q, %v\nwant %q", conn, got, err, want)
		}
	}
}
