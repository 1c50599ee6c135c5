package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Queue makes calls wait for a row on PostgreSQL, one behind the other, releases them when all
// wait, and returns their errors. Under READ COMMITTED each call then sees that row as it is now,
// and everything else as it was when the call began. The row is the one that a statement with its
// arguments locks, or changes. between, if not nil, runs while all calls wait.
func Queue(t testing.TB, url, row string, args []any, between func(), calls ...func() error) []error {
	t.Helper()
	ctx := t.Context()
	conns := make([]*pgx.Conn, 2)
	for i := range conns {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		conns[i] = conn
	}
	tx, err := conns[0].Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if tag, err := tx.Exec(ctx, row, args...); err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%s locked %d rows, want 1: %v", row, tag.RowsAffected(), err)
	}
	answers := make([]chan error, len(calls))
	for i, call := range calls {
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- call() }()
		// A command may first try on a connection for groups, which stops waiting for a lock after 20 ms, and then waits on
		// another connection. Only that second wait counts.
		for waiting := 0; waiting <= i; {
			if len(answers[i]) > 0 {
				t.Fatalf("call %d did not wait: %v", i, <-answers[i])
			}
			if err := clock.Wait(ctx, 5*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if err := conns[1].QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
				AND wait_event_type = 'Lock' AND application_name <> 'holdfast groups'`).Scan(&waiting); err != nil {
				t.Fatal(err)
			}
		}
	}
	if between != nil {
		between()
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, len(calls))
	for i, answer := range answers {
		errs[i] = <-answer
	}
	return errs
}
