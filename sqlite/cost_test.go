package sqlite_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// TestWhatACallCosts verifies that a call of a single caller takes no more transactions, and writes no more pages to the log,
// than it did. A change that makes a call cheaper lowers its limit here; one that makes it more expensive says why.
func TestWhatACallCosts(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "x.db")
	type invoice struct {
		Cents int `json:"cents"`
	}
	invoices := lifecycle.MustParse[invoice]([]byte(`
workflow: invoice
owning_module: billing
status_types: [open, sent]
initial_status: open
steps:
  - {step_id: 10, step_key: send, status: open, successful_state: {admin: sent}}
  - {step_id: 20, step_key: reopen, status: sent, successful_state: {admin: open}}
`))
	steps := func(name string, o ...run.StepOption) *run.Definition {
		body := func(_ context.Context, n int) (int, error) { return n, nil }
		return run.Define(name, "1", run.Task("a", body, o...), run.Task("b", body, o...), run.Task("c", body, o...))
	}
	plain, opaque, behind := steps("plain", run.Idempotent()), steps("opaque", run.Opaque()), steps("behind", run.Idempotent(), run.RecordBehind())
	hf, err := holdfast.Open(ctx, sqlite.File(path), holdfast.Config{}, invoices, plain, opaque, behind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hf.Close() })
	runengine.LocalOf(engine.Of(hf)).Worker.RecordDelay = time.Hour // on a loaded machine, a body may take longer than the delay
	three := func(def *run.Definition) func(int) error {
		return func(i int) error {
			r, _, err := def.Start(ctx, hf, i, run.Key(fmt.Sprint(def.ID(), i)))
			if err == nil {
				r, err = run.Await(ctx, hf, r.ID)
			}
			if err == nil && r.Status != run.Completed {
				err = fmt.Errorf("the run is %s: %s", r.Status, r.Error)
			}
			return err
		}
	}
	counter := scope.In[struct{ N int }](hf, "counter", "c")
	other := openSQL(t, path)
	other.SetMaxOpenConns(1)
	execute := func(text string) {
		t.Helper()
		rows, err := other.QueryContext(ctx, text)
		if err == nil {
			for rows.Next() { //nolint:revive // the rows do not matter
			}
			err = rows.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name                string
		transactions, pages float64 // at most, for each call
		call                func(i int) error
	}{
		{"create an entity", 1, 3.4, func(i int) error {
			_, err := invoices.Create(ctx, hf, fmt.Sprint(i), invoice{i})
			return err
		}},
		{"fire a step", 1, 4.2, func(i int) error {
			_, err := invoices.Fire(ctx, hf, "1", []string{"send", "reopen"}[i%2], "admin")
			return err
		}},
		{"append an event", 1, 3.4, func(i int) error {
			_, err := stream.Append(ctx, hf, "s", stream.Any, stream.Event{Name: "paid", Data: []byte(`{"cents":1}`)})
			return err
		}},
		{"increment a scope", 1, 4, func(i int) error {
			_, err := counter.Inc(ctx, "N", 1)
			return err
		}},
		{"a run of three steps", 4.2, 41, three(plain)},
		{"a run of three opaque steps", 4.2, 47, three(opaque)},
		{"a run of three steps recorded behind", 2.2, 27, three(behind)},
	} {
		if c.name == "a run of three steps" {
			testkit.Run(t, hf) // from here on, the node also writes by itself, every few seconds
		}
		const warm, n = 8, 64
		for i := range warm {
			if err := c.call(i); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		execute(`PRAGMA wal_checkpoint(TRUNCATE)`)
		execute(`BEGIN`)
		execute(`SELECT count(*) FROM holdfast_migration`) // while it reads, the log is not restarted
		for i := range n {
			if err := c.call(warm + i); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		commits, pages := logOf(t, path+"-wal")
		execute(`ROLLBACK`)
		t.Logf("%s: %.2f transactions, %.2f pages of log", c.name, float64(commits)/n, float64(pages)/n)
		if float64(commits)/n > c.transactions || float64(pages)/n > c.pages {
			t.Errorf("%s: %.2f transactions and %.2f pages of log, want at most %.2f and %.2f", c.name, float64(commits)/n, float64(pages)/n, c.transactions, c.pages)
		}
	}
}

// logOf counts the commits and the pages of a log in SQLite's WAL format: a header of 32 bytes, then frames of 24 bytes and a page.
// The second word of a frame is not zero if it ends a commit.
func logOf(t *testing.T, path string) (commits, pages int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	header, frame := make([]byte, 32), make([]byte, 24)
	if _, err := io.ReadFull(f, header); err != nil {
		t.Fatal(err)
	}
	size := 24 + int64(binary.BigEndian.Uint32(header[8:]))
	for at := int64(32); ; at += size {
		if _, err := f.ReadAt(frame, at); err != nil || string(frame[8:16]) != string(header[16:24]) {
			return commits, pages
		}
		if pages++; binary.BigEndian.Uint32(frame[4:]) != 0 {
			commits++
		}
	}
}
