package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// joined returns an engine with a stream of one event, a table of the user's own, and a trigger
// that makes an event "boom" fail.
func joined(t *testing.T) (*holdfast.Engine, *pgx.Conn) {
	t.Helper()
	url := prepared(t)
	hf := openEngine(t, postgres.URL(url))
	mustAppend(t, hf, "s", stream.None)
	conn := connect(t, url)
	execute(t, conn, `CREATE TABLE mine (n int)`,
		`CREATE FUNCTION boom() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'boom'; END $$`,
		`CREATE TRIGGER boom BEFORE INSERT ON holdfast.event FOR EACH ROW WHEN (NEW.name = 'boom') EXECUTE FUNCTION boom()`)
	return hf, conn
}

func begin(t *testing.T, hf *holdfast.Engine, conn *pgx.Conn) (pgx.Tx, holdfast.Tx) {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	j, err := postgres.Join(hf, tx)
	if err != nil {
		t.Fatal(err)
	}
	return tx, j
}

func wantState(t *testing.T, hf *holdfast.Engine, conn *pgx.Conn, rows, events int) {
	t.Helper()
	if n := query[int](t, conn, `SELECT count(*) FROM mine`); n != rows {
		t.Errorf("got %d rows in the user's table, want %d", n, rows)
	}
	if names := wantGapless(t, hf, "s"); len(names) != events {
		t.Errorf("got %d events, want %d: %v", len(names), events, names)
	}
	if n := query[int](t, conn, `SELECT head FROM holdfast.stream WHERE name = 's'`); n != events-1 {
		t.Errorf("got head %d for %d events", n, events)
	}
}

// TestAJoinedTransactionCommitsAndRollsBackAsOne verifies that the user's row and every verb in a
// joined transaction commit together and roll back together, and that a refused verb leaves the
// transaction usable.
func TestAJoinedTransactionCommitsAndRollsBackAsOne(t *testing.T) {
	t.Parallel()
	hf, conn := joined(t)
	for _, commit := range []bool{false, true} {
		tx, j := begin(t, hf, conn)
		if _, err := tx.Exec(t.Context(), `INSERT INTO mine VALUES (1)`); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Append(t.Context(), j, "s", 7, event("late")); !errors.Is(err, holdfast.ErrConcurrency) {
			t.Errorf("append with a wrong expected version: got %v, want ErrConcurrency", err)
		}
		mustAppend(t, j, "s", 0)
		if err := useEverything(t.Context(), j, "joined"); err != nil {
			t.Fatal(err)
		}
		again := entities.CreateArgs{Lifecycle: "thing", ID: "joined", Status: "new"}
		if _, err := entities.Create(t.Context(), store.DoerOf(j), again); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("second create: got %v, want ErrConflict", err)
		}
		if !commit {
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantState(t, hf, conn, 0, 1)
			continue
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantState(t, hf, conn, 1, 2)
	}
}

// TestAnUpdateNeverCommitsHalfAVerb verifies that an update in which a verb fails commits none of
// it and returns the error, even if the function ignores it.
func TestAnUpdateNeverCommitsHalfAVerb(t *testing.T) {
	t.Parallel()
	hf, conn := joined(t)
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		mustAppend(t, tx, "s", 0)
		if _, err := postgres.Raw(tx).Exec(ctx, `INSERT INTO mine VALUES (1)`); err != nil {
			t.Error(err)
		}
		if _, err := stream.Append(ctx, tx, "s", 1, event("ok"), event("boom")); err == nil {
			t.Error("the verb succeeded, want an error")
		}
		if _, err := stream.Append(ctx, tx, "s", stream.Any, event("after")); err == nil {
			t.Error("a verb after the failed one succeeded, want an error")
		}
		return nil
	})
	if err == nil {
		t.Error("the update reports success, want an error")
	}
	t.Log(fault.CodeOf(err), err)
	if errors.Is(err, holdfast.ErrOutcomeUnknown) {
		t.Errorf("a transaction that the server rolled back is reported as unknown: %v", err)
	}
	wantState(t, hf, conn, 0, 1)
	mustAppend(t, hf, "s", 0)
}

// TestATransactionUsedAfterItsEndIsRefused verifies that a transaction used after its function has
// returned is refused.
func TestATransactionUsedAfterItsEndIsRefused(t *testing.T) {
	t.Parallel()
	hf, conn := joined(t)
	var ended holdfast.Tx
	if err := hf.Update(t.Context(), func(_ context.Context, tx holdfast.Tx) error { ended = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	_, err := stream.Append(t.Context(), ended, "s", 0, event("late"))
	testkit.WantCode(t, err, fault.Unavailable, "has ended")
	tx, j := begin(t, hf, conn)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = stream.Append(t.Context(), j, "s", 0, event("late"))
	testkit.WantCode(t, err, fault.Unavailable, "has ended")
	wantState(t, hf, conn, 0, 1)
}

// TestAnUpdateThatDoesNotEndWellLeavesNothing verifies that a function that fails, panics, or
// outlives its context leaves nothing, and releases its connection.
func TestAnUpdateThatDoesNotEndWellLeavesNothing(t *testing.T) {
	t.Parallel()
	hf, conn := joined(t)
	sorry := errors.New("sorry")
	if err := hf.Update(t.Context(), func(_ context.Context, tx holdfast.Tx) error { mustAppend(t, tx, "s", 0); return sorry }); !errors.Is(err, sorry) {
		t.Errorf("the function's error is not returned: got %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not propagate")
			}
		}()
		_ = hf.Update(t.Context(), func(_ context.Context, tx holdfast.Tx) error { mustAppend(t, tx, "s", 0); panic("ouch") })
	}()
	ctx, cancel := context.WithCancel(t.Context())
	err := hf.Update(ctx, func(_ context.Context, tx holdfast.Tx) error { mustAppend(t, tx, "s", 0); cancel(); return nil })
	if !errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrOutcomeUnknown) {
		t.Errorf("context canceled before the commit: got %v", err)
	}
	wantState(t, hf, conn, 0, 1)
	mustAppend(t, hf, "s", 0)
}
