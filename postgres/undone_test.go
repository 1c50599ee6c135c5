package postgres_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// TestAnUpdateWithRowsOfTheUsersOwnIsSettledByItsLastMark verifies that an update in which the user
// has rolled back a verb, through a savepoint of their own, and whose response to COMMIT is lost,
// is applied once: the rolled-back verb proves nothing. The same holds for an update that writes
// only the user's own rows.
func TestAnUpdateWithRowsOfTheUsersOwnIsSettledByItsLastMark(t *testing.T) {
	t.Parallel()
	for name, verbs := range map[string]bool{"with verbs": true, "without a verb": false} {
		for _, arrives := range []bool{true, false} {
			t.Run(name+", "+map[bool]string{true: "the commit arrives", false: "it does not"}[arrives], func(t *testing.T) {
				t.Parallel()
				base := prepared(t)
				b, through := newBreaker(t, base)
				hf := openEngine(t, postgres.URL(through))
				conn := connect(t, base)
				execute(t, conn, `CREATE TABLE mine (n int)`)
				mustAppend(t, hf, "s", stream.None)
				b.arm("commit\x00", arrives)
				err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error { return undoAndPay(ctx, tx, verbs) })
				if err != nil || b.broken.Load() != 1 {
					t.Fatalf("got %v, and %d connections were broken, want 1", err, b.broken.Load())
				}
				var rows int
				if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM mine`).Scan(&rows); err != nil || rows != 1 {
					t.Errorf("the user's row is stored %d times, want 1: %v", rows, err)
				}
				want := map[bool]int{true: 2, false: 1}[verbs]
				if names := wantGapless(t, hf, "s"); len(names) != want {
					t.Errorf("stream has %v, want %d events", names, want)
				}
			})
		}
	}
}

func undoAndPay(ctx context.Context, tx holdfast.Tx, verbs bool) error {
	raw := postgres.Raw(tx)
	if _, err := raw.Exec(ctx, `INSERT INTO mine VALUES (1)`); err != nil || !verbs {
		return err
	}
	savepoint, err := raw.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := stream.Append(ctx, tx, "tried", stream.Any, event("undone")); err != nil {
		return err
	}
	if err := savepoint.Rollback(ctx); err != nil {
		return err
	}
	_, err = stream.Append(ctx, tx, "s", stream.Any, event("paid"))
	return err
}

// TestATransactionTellsItsFirstError verifies that a transaction with a failed statement returns
// that first error, whatever is tried in it afterwards and whatever its closure returns: it decides
// whether the update is run again.
func TestATransactionTellsItsFirstError(t *testing.T) {
	t.Parallel()
	base := prepared(t)
	hf := openEngine(t, postgres.URL(base))
	mustAppend(t, hf, "s", stream.None)
	execute(t, connect(t, base), `ALTER TABLE holdfast.request RENAME TO gone`)
	for name, then := range map[string]func(context.Context, holdfast.Tx) error{
		"another statement": func(ctx context.Context, tx holdfast.Tx) error {
			_, err := stream.Append(ctx, tx, "s", stream.Any, event("more"))
			return err
		},
		"nothing": func(context.Context, holdfast.Tx) error { return nil },
	} {
		err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			_, _, _ = idempotency.Take(ctx, store.DoerOf(tx), idempotency.TakeArgs{Key: "k", Fingerprint: "f", Holder: "h"})
			return then(ctx, tx)
		})
		if fault.CodeOf(err) != fault.DatabaseDamaged {
			t.Errorf("then %s: got %v, want DATABASE_DAMAGED", name, err)
		}
	}
	if names := wantGapless(t, hf, "s"); len(names) != 1 {
		t.Errorf("stream has %v, want 1 event", names)
	}
}
