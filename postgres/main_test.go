package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"

	_ "github.com/holdfast-go/holdfast/internal/storetest/everyverb"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

// These variables make the test binary migrate a database in a process of its own.
const (
	envURL    = "HOLDFAST_POSTGRES_JOB_URL"
	envSchema = "HOLDFAST_POSTGRES_JOB_SCHEMA"
	envName   = "HOLDFAST_POSTGRES_JOB_NAME"
)

func TestMain(m *testing.M) {
	if os.Getenv(envURL) == "" {
		goleak.VerifyTestMain(pgtest.Closing(m))
		return
	}
	begin := func() error {
		fmt.Println("ready")
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		return err
	}
	if err := migrateAndUse(context.Background(), os.Getenv(envURL), os.Getenv(envSchema), os.Getenv(envName), begin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func startChild(t *testing.T, url, schema, name string) *testkit.Child {
	t.Helper()
	c := testkit.Start(t, testkit.Self("", envURL+"="+url, envSchema+"="+schema, envName+"="+name))
	c.Expect("ready")
	return c
}

var (
	quiet   = holdfast.Config{Log: slog.New(slog.DiscardHandler)}
	options = store.Options{Log: quiet.Log}
)

// prepared returns a database with Holdfast's schema in it.
func prepared(t *testing.T) string { t.Helper(); return holdfasttest.PostgreSQL(t) }

// fresh returns an empty database.
func fresh(t *testing.T) string {
	t.Helper()
	url, drop, err := pgtest.Database(t.Context(), pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(drop)
	return url
}

// as returns the URL of the same database for another user, or with more parameters ("name=value").
func as(t *testing.T, base, user, password string, params ...string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		u.User = url.User(user)
	}
	if password != "" {
		u.User = url.UserPassword(u.User.Username(), password)
	}
	q := u.Query()
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func openEngine(t *testing.T, db holdfast.Database) *holdfast.Engine {
	t.Helper()
	hf, err := holdfast.Open(t.Context(), db, quiet)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	t.Cleanup(func() { hf.Close() })
	return hf
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

// connect opens a connection of the test's own.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func query[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func mustAppend(t *testing.T, d holdfast.Doer, name string, want stream.Version) stream.Version {
	t.Helper()
	v, err := stream.Append(t.Context(), d, name, want, event("noted"))
	if err != nil {
		t.Fatalf("append to %s: %v", name, err)
	}
	return v
}

func event(name string) stream.Event { return stream.Event{Name: name} }

// useEverything runs every verb once, on names of its own.
func useEverything(ctx context.Context, d holdfast.Doer, name string) error {
	if _, err := stream.Append(ctx, d, name, stream.None, event("a"), event("b")); err != nil {
		return err
	}
	if _, err := stream.Append(ctx, d, name, 1, event("c")); err != nil {
		return err
	}
	if _, err := stream.Append(ctx, d, name, 0, event("d")); !errors.Is(err, holdfast.ErrConcurrency) {
		return fmt.Errorf("append behind the head: %w", err)
	}
	for _, read := range []func(context.Context, holdfast.Doer, string, stream.Version) iter.Seq2[stream.Event, error]{stream.Read, stream.ReadBackward} {
		all, err := holdfast.Collect(read(ctx, d, name, 1))
		if err != nil || len(all) != 2 {
			return fmt.Errorf("read %d events, want 2: %w", len(all), err)
		}
	}
	if _, err := entities.Create(ctx, store.DoerOf(d), entities.CreateArgs{Lifecycle: "thing", ID: name, Status: "new"}); err != nil {
		return err
	}
	for _, from := range [][]string{{"new"}, {"old", "older"}} {
		if _, err := entities.Transition(ctx, store.DoerOf(d), entities.TransitionArgs{Lifecycle: "thing", ID: name, From: from, To: "old", Event: "aged"}); err != nil {
			return err
		}
	}
	if e, err := entities.Get(ctx, store.DoerOf(d), "thing", name); err != nil || e.Status != "old" || e.Version != 2 {
		return fmt.Errorf("got entity %q at version %d: %w", e.Status, e.Version, err)
	}
	return useScopes(ctx, d, name)
}

func useScopes(ctx context.Context, d holdfast.Doer, name string) error {
	for range 2 {
		if _, err := scopestore.Put(ctx, store.DoerOf(d), scopestore.PutArgs{Kind: "box", ID: name, State: []byte(`{"n":1}`)}); err != nil {
			return err
		}
	}
	if s, err := storetest.Inc(ctx, d, storetest.IncArgs{Kind: "box", ID: name, Field: "n", By: 4}); err != nil || s.Value != 5 {
		return fmt.Errorf("inc returned %d, want 5: %w", s.Value, err)
	}
	if s, err := storetest.Inc(ctx, d, storetest.IncArgs{Kind: "box", ID: name, Field: "m", By: 4}); err != nil || s.Value != 4 {
		return fmt.Errorf("inc of a new field returned %d, want 4: %w", s.Value, err)
	}
	if s, err := scopestore.Get(ctx, store.DoerOf(d), "box", name); err != nil || s.Version != 3 {
		return fmt.Errorf("got scope at version %d, want 3: %w", s.Version, err)
	}
	_, err := scopestore.Delete(ctx, store.DoerOf(d), scopestore.DeleteArgs{Kind: "box", ID: name})
	return err
}

// wantGapless reads a stream to its end, checks versions 0, 1, 2 …, and returns
// the names of its events.
func wantGapless(t *testing.T, hf *holdfast.Engine, name string) []string {
	t.Helper()
	var names []string
	for {
		part, err := holdfast.Collect(stream.Read(t.Context(), hf, name, stream.Version(len(names))))
		if err != nil {
			t.Fatal(err)
		}
		if len(part) == 0 {
			return names
		}
		for _, e := range part {
			if e.Version != stream.Version(len(names)) {
				t.Fatalf("%s: got version %d, want %d", name, e.Version, len(names))
			}
			names = append(names, e.Name)
		}
	}
}

// wantMoved checks that an error refuses a writer that lost, and has the true version.
func wantMoved(t *testing.T, err error, last int64) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Concurrency {
		t.Errorf("losing caller got %v, want ErrConcurrency", err)
		return
	}
	if f.Fields["lastVersion"] != last {
		t.Errorf("losing caller got lastVersion %v, want %d", f.Fields["lastVersion"], last)
	}
}

// exampleDatabase makes a database, sets DATABASE_URL to it, and returns a function that drops it.
func exampleDatabase() (drop func()) {
	url, drop, err := pgtest.Database(context.Background(), pgtest.Options{})
	if err == nil {
		err = os.Setenv("DATABASE_URL", url)
	}
	if err != nil {
		panic(err)
	}
	return drop
}
