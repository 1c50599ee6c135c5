package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
)

// Verifies that a benchmark that is interrupted while it writes removes what it has created, and says that it
// was interrupted.
func TestAnInterruptedBenchmarkLeavesNothing(t *testing.T) {
	url, drop, err := pgtest.Database(t.Context(), pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(drop)
	folder := t.TempDir()
	files := func() []string {
		found, err := filepath.Glob(filepath.Join(folder, "*", "*-wal"))
		if err != nil {
			t.Error(err)
		}
		return found
	}
	interruptBench(t, url, func() bool { return len(scratchSchemas(t, url)) > 0 })
	interruptBench(t, "sqlite:"+filepath.Join(folder, "my.db"), func() bool { return len(files()) > 0 })
	if left := scratchSchemas(t, url); len(left) > 0 {
		t.Errorf("schemas %v are left", left)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("files %v are left (%v)", left, err)
	}
}

// interruptBench interrupts a benchmark once it has begun.
func interruptBench(t *testing.T, db string, begun func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out strings.Builder
	code := make(chan int, 1)
	go func() {
		code <- newProgram(nil, io.Discard, &out).run(ctx, []string{"bench", "--db", db, "--duration", "5m"})
	}()
	testkit.Eventually(t, "the benchmark begins", begun)
	cancel()
	if got := <-code; got != 1 || !strings.Contains(out.String(), "holdfast: interrupted") {
		t.Errorf("%s: exit code %d, output %s", redact(db), got, out.String())
	}
}

func scratchSchemas(t *testing.T, url string) (names []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT coalesce(array_agg(nspname::text), '{}') FROM pg_namespace WHERE nspname LIKE 'holdfast%'").Scan(&names); err != nil {
		t.Fatal(err)
	}
	return names
}

// Verifies that only a schema of a benchmark can be dropped.
func TestOnlyAScratchSchemaIsDropped(t *testing.T) {
	url, drop, err := pgtest.Database(t.Context(), pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(drop)
	p := newProgram(nil, io.Discard, io.Discard)
	if code := p.run(t.Context(), []string{"migrate", "--db", url}); code != 0 {
		t.Fatalf("migrate: exit code %d", code)
	}
	for _, schema := range []string{"holdfast", "other"} {
		if err := store.DatabaseOf(postgres.URL(url, postgres.Schema(schema))).(store.Dropper).Drop(t.Context()); exitCode(err) != 2 {
			t.Errorf("drop of %s: %v", schema, err)
		}
	}
	if names := scratchSchemas(t, url); !slices.Equal(names, []string{"holdfast"}) {
		t.Errorf("schemas %v, want holdfast", names)
	}
}

func TestPercentile(t *testing.T) {
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(i+1)*time.Millisecond)
	}
	for percent, want := range map[int]float64{50: 50, 95: 95, 99: 99} {
		if got := percentile(all, percent); got != want {
			t.Errorf("p%d is %v, want %v", percent, got, want)
		}
	}
	if got := percentile(all[:1], 99); got != 1 {
		t.Errorf("p99 of one value is %v, want 1", got)
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("p50 of nothing is %v, want 0", got)
	}
}
