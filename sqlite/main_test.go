package sqlite_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/store"
	_ "github.com/holdfast-go/holdfast/internal/storetest/everyverb"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// These variables make the test binary do one job in a process of its own.
const (
	envJob  = "HOLDFAST_SQLITE_JOB"
	envPath = "HOLDFAST_SQLITE_PATH"
	envName = "HOLDFAST_SQLITE_NAME"
)

// jobs are the jobs of a helper process. A job prints "ready" when it can begin, and begins at a
// line on its standard input.
var jobs = map[string]func(ctx context.Context, path, name string, begin func() error) error{
	"migrate": jobMigrate,
	"append":  jobAppend,
	"lock":    jobLock,
}

func TestMain(m *testing.M) {
	name := os.Getenv(envJob)
	if name == "" {
		goleak.VerifyTestMain(m)
		return
	}
	job, ok := jobs[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such job:", name)
		os.Exit(2)
	}
	begin := func() error {
		fmt.Println("ready")
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		return err
	}
	if err := job(context.Background(), os.Getenv(envPath), os.Getenv(envName), begin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startChild starts a job and waits until it is ready. alter may change the
// command before it starts.
func startChild(t *testing.T, job, path, name string, alter func(*exec.Cmd)) *testkit.Child {
	t.Helper()
	c, err := launch(t, job, path, name, alter)
	if err != nil {
		t.Fatalf("start job %s: %v", job, err)
	}
	c.Expect("ready")
	return c
}

func launch(t *testing.T, job, path, name string, alter func(*exec.Cmd)) (*testkit.Child, error) {
	t.Helper()
	cmd := testkit.Self("", envJob+"="+job, envPath+"="+path, envName+"="+name)
	if alter != nil {
		alter(cmd)
	}
	return testkit.TryStart(t, cmd)
}

var quiet = holdfast.Config{Log: slog.New(slog.DiscardHandler)}

func dbPath(t *testing.T) string { return filepath.Join(t.TempDir(), "app.db") }

// openEngine opens an engine that the test closes.
func openEngine(t *testing.T, db holdfast.Database) *holdfast.Engine {
	t.Helper()
	hf, err := holdfast.Open(t.Context(), db, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hf.Close(); err != nil {
			t.Error(err)
		}
	})
	return hf
}

// openSQL opens a file with the plain driver. params are "name=value".
func openSQL(t *testing.T, path string, params ...string) *sql.DB {
	t.Helper()
	params = append([]string{"_pragma=busy_timeout(5000)"}, params...)
	db, err := sql.Open("sqlite", "file:"+path+"?"+strings.Join(params, "&"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func execSQL(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func queryInt(t *testing.T, db *sql.DB, query string, args ...any) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// makeDatabase creates a database with contents, several pages large.
func makeDatabase(t *testing.T, path string) {
	t.Helper()
	made.once.Do(func() {
		first := holdfasttest.SQLite(t)
		hf, err := holdfast.Open(t.Context(), sqlite.File(first), quiet)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			mustAppend(t, hf, fmt.Sprintf("made-%d", i%3), stream.Any, strings.Repeat("x", 400))
		}
		if err := useEverything(t.Context(), hf, "made"); err != nil {
			t.Fatal(err)
		}
		if err := hf.Close(); err != nil {
			t.Fatal(err)
		}
		made.file = readFile(t, first)
	})
	writeFile(t, path, made.file)
}

// made is what makeDatabase writes.
var made struct {
	once sync.Once
	file []byte
}

func mustAppend(t *testing.T, d holdfast.Doer, name string, want stream.Version, text string) stream.Version {
	t.Helper()
	v, err := stream.Append(t.Context(), d, name, want, event("noted", text))
	if err != nil {
		t.Fatalf("append to %s: %v", name, err)
	}
	return v
}

func event(name, text string) stream.Event {
	return stream.Event{Name: name, Data: fmt.Appendf(nil, "{\"text\":%q}", text)}
}

// useEverything runs every verb once, on names of its own.
func useEverything(ctx context.Context, d holdfast.Doer, name string) error {
	if _, err := stream.Append(ctx, d, name, stream.None, event("a", ""), event("b", "")); err != nil {
		return err
	}
	if _, err := stream.Append(ctx, d, name, 0, event("c", "")); !errors.Is(err, holdfast.ErrConcurrency) {
		return fmt.Errorf("append behind the head: %w", err)
	}
	for _, read := range []func(context.Context, holdfast.Doer, string, stream.Version) iter.Seq2[stream.Event, error]{stream.Read, stream.ReadBackward} {
		all, err := holdfast.Collect(read(ctx, d, name, 1))
		if err != nil || len(all) == 0 {
			return fmt.Errorf("read %d events, want some: %w", len(all), err)
		}
	}
	if _, err := entities.Create(ctx, store.DoerOf(d), entities.CreateArgs{Lifecycle: "thing", ID: name, Status: "new"}); err != nil {
		return err
	}
	if _, err := entities.Transition(ctx, store.DoerOf(d), entities.TransitionArgs{Lifecycle: "thing", ID: name, From: []string{"new"}, To: "old", Event: "aged"}); err != nil {
		return err
	}
	if e, err := entities.Get(ctx, store.DoerOf(d), "thing", name); err != nil || e.Status != "old" {
		return fmt.Errorf("got entity status %q, want old: %w", e.Status, err)
	}
	return useScopes(ctx, d, name)
}

func useScopes(ctx context.Context, d holdfast.Doer, name string) error {
	if _, err := scopestore.Put(ctx, store.DoerOf(d), scopestore.PutArgs{Kind: "box", ID: name, State: []byte(`{"n":1}`)}); err != nil {
		return err
	}
	if s, err := storetest.Inc(ctx, d, storetest.IncArgs{Kind: "box", ID: name, Field: "n", By: 4}); err != nil || s.Value != 5 {
		return fmt.Errorf("inc returned %d, want 5: %w", s.Value, err)
	}
	if s, err := scopestore.Get(ctx, store.DoerOf(d), "box", name); err != nil || s.Version != 1 {
		return fmt.Errorf("got scope at version %d, want 1: %w", s.Version, err)
	}
	_, err := scopestore.Delete(ctx, store.DoerOf(d), scopestore.DeleteArgs{Kind: "box", ID: name})
	return err
}

// wantGapless reads a stream to its end and checks versions 0, 1, 2 …; it
// returns the names of its events.
func wantGapless(t *testing.T, hf *holdfast.Engine, name string) []string {
	t.Helper()
	names, err := gapless(t.Context(), hf, name)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func gapless(ctx context.Context, hf *holdfast.Engine, name string) ([]string, error) {
	var names []string
	for {
		part, err := holdfast.Collect(stream.Read(ctx, hf, name, stream.Version(len(names))))
		if err != nil {
			return nil, err
		}
		if len(part) == 0 {
			return names, nil
		}
		for _, e := range part {
			if e.Version != stream.Version(len(names)) {
				return nil, fmt.Errorf("%s: got version %d, want %d", name, e.Version, len(names))
			}
			names = append(names, e.Name)
		}
	}
}

// snapshot returns the contents of a folder: each file by name, with a hash of its bytes. The -shm
// file is left out: it is memory that readers share, not data.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "-shm") {
			return err
		}
		bytes, err := os.ReadFile(path)
		all[filepath.Base(path)] = fmt.Sprintf("%d bytes, %x", len(bytes), sha256.Sum256(bytes))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantSame checks that a folder is unchanged.
func wantSame(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	after := snapshot(t, dir)
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s was changed from %s to %s", name, was, after[name])
		}
		delete(after, name)
	}
	for name, is := range after {
		t.Errorf("%s was created: %s", name, is)
	}
}
