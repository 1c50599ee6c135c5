package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// joined returns an engine and a pool of the user's own on one file, with a table of the user's and
// a trigger that makes any verb that writes an event "boom" fail half-way, by the given kind of
// RAISE.
func joined(t *testing.T, lock, raise string) (*holdfast.Engine, *sql.DB) {
	t.Helper()
	path := holdfasttest.SQLite(t)
	hf := openEngine(t, sqlite.File(path))
	mustAppend(t, hf, "s", stream.None, "first")
	db := openSQL(t, path, "_txlock="+lock, "_pragma=journal_mode(WAL)")
	execSQL(t, db, `CREATE TABLE mine (n INTEGER)`, `INSERT INTO mine VALUES (0)`,
		`CREATE TRIGGER boom BEFORE INSERT ON holdfast_event WHEN NEW.name = 'boom'
		 BEGIN SELECT RAISE(`+raise+`, 'boom'); END`,
		`CREATE TRIGGER mine_boom BEFORE INSERT ON mine WHEN NEW.n = -1
		 BEGIN SELECT RAISE(`+raise+`, 'boom'); END`)
	return hf, db
}

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func mustExec(t *testing.T, tx *sql.Tx, statement string) {
	t.Helper()
	if _, err := tx.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func mustJoin(t *testing.T, hf *holdfast.Engine, tx *sql.Tx) holdfast.Tx {
	t.Helper()
	j, err := sqlite.Join(hf, tx)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// wantState checks the number of the user's rows and of the stream's events.
func wantState(t *testing.T, hf *holdfast.Engine, db *sql.DB, rows, events int) {
	t.Helper()
	if n := queryInt(t, db, `SELECT count(*) FROM mine`); n != rows {
		t.Errorf("got %d rows in the user's table, want %d", n, rows)
	}
	if names := wantGapless(t, hf, "s"); len(names) != events {
		t.Errorf("got %d events, want %d: %v", len(names), events, names)
	}
	if n := queryInt(t, db, `SELECT head FROM holdfast_stream WHERE name = 's'`); n != events-1 {
		t.Errorf("got head %d for %d events", n, events)
	}
}

// TestJoinRefusesATransactionThatReadAnOlderState verifies that a transaction that has read an
// older state cannot be joined, that the error explains how to begin it, and that the transaction
// can still be read from.
func TestJoinRefusesATransactionThatReadAnOlderState(t *testing.T) {
	t.Parallel()
	hf, db := joined(t, "deferred", "ABORT")
	tx := begin(t, db)
	var n int
	if err := tx.QueryRow(`SELECT count(*) FROM mine`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, hf, "s", 0, "meanwhile")
	_, err := sqlite.Join(hf, tx)
	testkit.WantCode(t, err, fault.Validation, "immediate", "before it reads")
	if err := tx.QueryRow(`SELECT count(*) FROM mine`).Scan(&n); err != nil {
		t.Errorf("the transaction is no longer usable: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	wantState(t, hf, db, 1, 2)
}

// TestJoinTakesATransactionThatCanHaveTheWriteLock verifies that a deferred transaction that has
// not read yet, or has read the newest state, can be joined, and one begun immediate always.
func TestJoinTakesATransactionThatCanHaveTheWriteLock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, lock string
		reads      bool
	}{
		{"deferred, nothing read", "deferred", false},
		{"deferred, the newest state read", "deferred", true},
		{"immediate, nothing read", "immediate", false},
		{"immediate, something read", "immediate", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hf, db := joined(t, c.lock, "ABORT")
			tx := begin(t, db)
			if c.reads {
				mustExec(t, tx, `SELECT * FROM mine`)
			}
			mustAppend(t, mustJoin(t, hf, tx), "s", 0, "joined")
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			wantState(t, hf, db, 1, 2)
		})
	}
}

// TestAJoinedTransactionCommitsAndRollsBackAsOne verifies that the user's row and every verb in a
// joined transaction commit together and roll back together, and are not visible before.
func TestAJoinedTransactionCommitsAndRollsBackAsOne(t *testing.T) {
	t.Parallel()
	hf, db := joined(t, "immediate", "ABORT")
	for _, commit := range []bool{false, true} {
		tx := begin(t, db)
		j := mustJoin(t, hf, tx)
		mustExec(t, tx, `INSERT INTO mine VALUES (1)`)
		mustAppend(t, j, "s", 0, "joined")
		if err := useEverything(t.Context(), j, "joined"); err != nil {
			t.Fatal(err)
		}
		wantState(t, hf, db, 1, 1)
		if !commit {
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			wantState(t, hf, db, 1, 1)
			continue
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		wantState(t, hf, db, 2, 2)
	}
}

// TestAWorkspaceOfARolledBackTransactionIsNotRemembered verifies that a workspace first named in a
// joined transaction that is rolled back is not remembered: the next caller that needs it creates
// it.
func TestAWorkspaceOfARolledBackTransactionIsNotRemembered(t *testing.T) {
	t.Parallel()
	hf, db := joined(t, "immediate", "ABORT")
	ctx := holdfast.InWorkspace(t.Context(), "fresh")
	tx := begin(t, db)
	if _, err := stream.Append(ctx, mustJoin(t, hf, tx), "s", stream.None, event("a", "")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Append(ctx, hf, "s", stream.None, event("a", "")); err != nil {
		t.Fatal(err)
	}
	if n := queryInt(t, db, `SELECT count(*) FROM holdfast_workspace WHERE name = 'fresh'`); n != 1 {
		t.Errorf("the workspace has %d rows, want 1", n)
	}
}

// TestARefusedVerbLeavesTheJoinedTransactionUsable verifies that a refused verb leaves the user's
// transaction unchanged, and usable.
func TestARefusedVerbLeavesTheJoinedTransactionUsable(t *testing.T) {
	t.Parallel()
	hf, db := joined(t, "immediate", "ABORT")
	tx := begin(t, db)
	j := mustJoin(t, hf, tx)
	mustExec(t, tx, `INSERT INTO mine VALUES (1)`)
	if _, err := stream.Append(t.Context(), j, "s", 7, event("late", "")); !errors.Is(err, holdfast.ErrConcurrency) {
		t.Errorf("append with a wrong expected version: got %v, want ErrConcurrency", err)
	}
	move := entities.TransitionArgs{Lifecycle: "thing", ID: "none", From: []string{"a"}, To: "b", Event: "moved"}
	if _, err := entities.Transition(t.Context(), store.DoerOf(j), move); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("transition of a missing entity: got %v, want ErrNotFound", err)
	}
	mustAppend(t, j, "s", 0, "joined")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	wantState(t, hf, db, 2, 2)
}

// TestAVerbThatFailsInItsMiddleLeavesTheJoinedTransactionAsItWas verifies that a verb that fails
// half-way (the head is moved, then an event cannot be written) leaves the user's transaction as it
// was before the verb, and usable; whether the failed statement undoes itself or not.
func TestAVerbThatFailsInItsMiddleLeavesTheJoinedTransactionAsItWas(t *testing.T) {
	t.Parallel()
	for _, raise := range []string{"ABORT", "FAIL"} {
		t.Run(raise, func(t *testing.T) {
			t.Parallel()
			hf, db := joined(t, "immediate", raise)
			tx := begin(t, db)
			j := mustJoin(t, hf, tx)
			mustExec(t, tx, `INSERT INTO mine VALUES (1)`)
			mustAppend(t, j, "s", 0, "before")
			if _, err := stream.Append(t.Context(), j, "s", 1, event("ok", ""), event("boom", "")); err == nil {
				t.Error("the verb succeeded, want an error")
			}
			mustExec(t, tx, `INSERT INTO mine VALUES (2)`)
			mustAppend(t, j, "s", 1, "after")
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			wantState(t, hf, db, 3, 3)
		})
	}
}

// TestAnUpdateNeverCommitsHalfAVerb verifies that an update in which a verb fails half-way commits
// none of it, even if the function ignores the error; and that the engine continues to work.
func TestAnUpdateNeverCommitsHalfAVerb(t *testing.T) {
	t.Parallel()
	for _, raise := range []string{"ABORT", "FAIL", "ROLLBACK"} {
		t.Run(raise, func(t *testing.T) {
			t.Parallel()
			hf, db := joined(t, "immediate", raise)
			err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
				mustAppend(t, tx, "s", 0, "before")
				if _, err := stream.Append(ctx, tx, "s", 1, event("ok", ""), event("boom", "")); err == nil {
					t.Error("the verb succeeded, want an error")
				}
				if _, err := stream.Append(ctx, tx, "s", stream.Any, event("after", "")); err == nil {
					t.Error("a verb after the failed one succeeded, want an error")
				}
				return nil
			})
			if err == nil {
				t.Error("the update reports success, want an error")
			}
			wantState(t, hf, db, 1, 1)
			mustAppend(t, hf, "s", 0, "later")
		})
	}
}

// TestAnUpdateThatLostItsTransactionWritesNothingMore verifies the same for the function's own
// writes after the failure: an error that made SQLite roll back the transaction must not let the
// rest of the function commit one statement at a time.
func TestAnUpdateThatLostItsTransactionWritesNothingMore(t *testing.T) {
	t.Parallel()
	hf, db := joined(t, "immediate", "ROLLBACK")
	for name, f := range map[string]func(context.Context, holdfast.Tx) error{
		"rows after a verb that failed": func(ctx context.Context, tx holdfast.Tx) error {
			_, _ = stream.Append(ctx, tx, "s", 0, event("boom", ""))
			_, _ = sqlite.Raw(tx).ExecContext(ctx, `INSERT INTO mine VALUES (1)`)
			return nil
		},
		"a verb after a row that failed": func(ctx context.Context, tx holdfast.Tx) error {
			_, _ = sqlite.Raw(tx).ExecContext(ctx, `INSERT INTO mine VALUES (-1)`)
			_, _ = stream.Append(ctx, tx, "s", 0, event("after", ""))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := hf.Update(t.Context(), f); err == nil {
				t.Error("the update reports success, want an error")
			}
			wantState(t, hf, db, 1, 1)
		})
	}
}

// TestAnUpdateThatDoesNotEndWellLeavesNothing verifies that an update whose function fails, panics,
// or outlives its context leaves nothing, and releases the write lock.
func TestAnUpdateThatDoesNotEndWellLeavesNothing(t *testing.T) {
	t.Parallel()
	hf, db := joined(t, "immediate", "ABORT")
	write := func(ctx context.Context, tx holdfast.Tx) {
		mustAppend(t, tx, "s", 0, "gone")
		if _, err := sqlite.Raw(tx).ExecContext(ctx, `INSERT INTO mine VALUES (1)`); err != nil {
			t.Error(err)
		}
	}
	sorry := errors.New("sorry")
	if err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error { write(ctx, tx); return sorry }); !errors.Is(err, sorry) {
		t.Errorf("the function's error is not returned: got %v", err)
	}
	wantState(t, hf, db, 1, 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not propagate")
			}
		}()
		_ = hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error { write(ctx, tx); panic("ouch") })
	}()
	wantState(t, hf, db, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error { write(ctx, tx); cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled context: got %v, want context.Canceled", err)
	}
	wantState(t, hf, db, 1, 1)
	mustAppend(t, hf, "s", 0, "later")
}

// TestATransactionUsedAfterItsEndIsRefused verifies that a transaction used after its function has
// returned is refused.
func TestATransactionUsedAfterItsEndIsRefused(t *testing.T) {
	t.Parallel()
	hf, db := joined(t, "immediate", "ABORT")
	var ended holdfast.Tx
	if err := hf.Update(t.Context(), func(_ context.Context, tx holdfast.Tx) error { ended = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	_, err := stream.Append(t.Context(), ended, "s", 0, event("late", ""))
	testkit.WantCode(t, err, fault.Unavailable, "has ended")
	tx := begin(t, db)
	j := mustJoin(t, hf, tx)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	_, err = stream.Append(t.Context(), j, "s", 0, event("late", ""))
	testkit.WantCode(t, err, fault.Unavailable, "has ended")
	wantState(t, hf, db, 1, 1)
}

// TestJoinRefusesATransactionOfAnotherDatabase verifies that a transaction of another database is
// not taken for one of the engine's.
func TestJoinRefusesATransactionOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	hf, _ := joined(t, "immediate", "ABORT")
	other := openSQL(t, dbPath(t))
	execSQL(t, other, `CREATE TABLE mine (n INTEGER)`)
	_, err := sqlite.Join(hf, begin(t, other))
	if err == nil || fault.CodeOf(err) == fault.Internal && !strings.Contains(err.Error(), "statement failed") {
		t.Errorf("join of a database without Holdfast's tables: got %v", err)
	}
	t.Log(err)
}
