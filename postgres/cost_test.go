package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/stream"
)

// TestWhatACallCosts verifies that a call of a single caller takes no more transactions, and writes no more log, than
// it did. It counts on a server of its own, because the log is that of the whole server. A change that makes a call
// cheaper lowers its limit here; one that makes it more expensive says why.
func TestWhatACallCosts(t *testing.T) {
	ctx := t.Context()
	server, err := pgtest.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	// What the server writes by itself is not counted.
	execute(t, conn, `ALTER SYSTEM SET autovacuum = off`, `ALTER SYSTEM SET full_page_writes = off`, `SELECT pg_reload_conf()`)

	type invoice struct {
		Cents int `json:"cents"`
	}
	invoices := lifecycle.MustParse[invoice]([]byte(`
workflow: invoice
owning_module: billing
status_types: [open, sent, gone]
initial_status: open
steps:
  - {step_id: 10, step_key: send, status: open, successful_state: {admin: sent}}
  - {step_id: 20, step_key: reopen, status: sent, successful_state: {admin: open}}
  - {step_id: 30, step_key: end, status: sent, successful_state: {admin: gone}}
`))
	steps := func(name string, o ...run.StepOption) *run.Definition {
		body := func(_ context.Context, n int) (int, error) { return n, nil }
		return run.Define(name, "1", run.Task("a", body, o...), run.Task("b", body, o...), run.Task("c", body, o...))
	}
	plain, opaque, behind := steps("plain", run.Idempotent()), steps("opaque", run.Opaque()), steps("behind", run.Idempotent(), run.RecordBehind())
	db := postgres.URL(server.URL())
	hf, err := holdfast.Open(ctx, db, holdfast.Config{}, invoices, plain, opaque, behind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hf.Close() })
	runengine.LocalOf(engine.Of(hf)).Worker.RecordDelay = time.Hour // on a loaded machine, a body may take longer than the delay
	testkit.Run(t, hf)
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
	keyed := func(key, to string) error {
		_, done, err := keyedCall(ctx, hf, key, to, "paid")
		if err == nil && !done {
			err = fmt.Errorf("the append under %s was not one command", key)
		}
		return err
	}
	counter := scope.In[struct{ N int }](hf, "counter", "c")
	for _, c := range []struct {
		name              string
		transactions, log float64 // at most, for each call; a wake-up of other nodes is up to 150 bytes of log
		call              func(i int) error
	}{
		{"create an entity", 1, 850, func(i int) error {
			_, err := invoices.Create(ctx, hf, fmt.Sprint(i), invoice{i})
			return err
		}},
		{"fire a step", 1, 880, func(i int) error {
			_, err := invoices.Fire(ctx, hf, "1", []string{"send", "reopen"}[i%2], "admin")
			return err
		}},
		{"append an event", 1, 600, func(i int) error {
			_, err := stream.Append(ctx, hf, "s", stream.Any, stream.Event{Name: "paid", Data: []byte(`{"cents":1}`)})
			return err
		}},
		{"append an event under a key", 1, 850, func(i int) error { return keyed(fmt.Sprint("k", i), "s") }},
		{"16 appends under keys at once", 8, 15_000, func(i int) error {
			var group sync.WaitGroup
			errs := make([]error, 16)
			for n := range errs {
				group.Go(func() { errs[n] = keyed(fmt.Sprint("k", i, "-", n), fmt.Sprint("s", n)) })
			}
			group.Wait()
			return errors.Join(errs...)
		}},
		{"increment a scope", 1, 700, func(i int) error {
			_, err := counter.Inc(ctx, "N", 1)
			return err
		}},
		{"a run of three steps", 4, 9_600, three(plain)},
		{"a run of three opaque steps", 4, 10_800, three(opaque)},
		{"a run of three steps recorded behind", 2, 7_800, three(behind)},
	} {
		const warm, n = 8, 64
		var before, after [2]int64 // the next transaction, and the end of the log
		for i := range warm + n {
			if i == warm {
				before = costs(t, conn)
			}
			if err := c.call(i); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		after = costs(t, conn)
		transactions, log := float64(written(t, conn, before[0]))/n, float64(after[1]-before[1])/n
		t.Logf("%s: %.2f transactions, %.0f bytes of log", c.name, transactions, log)
		if transactions > c.transactions || log > c.log {
			t.Errorf("%s: %.2f transactions and %.0f bytes of log, want at most %.0f and %.0f", c.name, transactions, log, c.transactions, c.log)
		}
	}
}

// written counts the transactions that wrote events since a transaction. Wake-ups of other nodes are not among them.
func written(t *testing.T, conn *pgx.Conn, since int64) (n int) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `SELECT count(DISTINCT h.xmin::text) FROM (SELECT xmin FROM holdfast.history UNION ALL SELECT xmin FROM holdfast.event) AS h WHERE h.xmin::text::bigint >= $1`, since).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// costs returns the next transaction, and the end of the log.
func costs(t *testing.T, conn *pgx.Conn) (n [2]int64) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, (pg_current_wal_insert_lsn() - '0/0')::bigint`).Scan(&n[0], &n[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
