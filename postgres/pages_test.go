package postgres_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
)

// TestPagesOfABatchCostTheSame verifies that adding a page of items to a batch reads the same
// number of rows whether the batch is empty or large: with the plan that was made when the tables
// were, and were known to be, empty, and that was not made again.
func TestPagesOfABatchCostTheSame(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Parallel()
	url := prepared(t)
	hf, conn := openEngine(t, postgres.URL(url)), planner(t, url)
	kind := batch.Define("paid", func(context.Context, *batch.Item[int]) (int, error) { return 0, nil }, batch.Options{})
	if _, err := batch.PutWallet(t.Context(), hf, "w"); err != nil {
		t.Fatal(err)
	}
	if _, err := kind.Create(t.Context(), hf, "w", page(0, 0), batch.ID("b"), batch.LeaveOpen()); err != nil {
		t.Fatal(err)
	}
	unknown(t, conn)
	execute(t, conn, `VACUUM ANALYZE`)
	for n := range 20 {
		tx, joined := begin(t, hf, conn)
		for _, c := range []struct {
			what       string
			adds, most int
		}{{what: "new", adds: 1000, most: 100}, {what: "again", most: 1100}} { // it finds none of the items, and then all of them
			before := rowsRead(t, conn)
			if added, err := kind.Add(t.Context(), joined, "b", page(n, 1000)); err != nil || added != c.adds {
				t.Fatalf("page %d, %s: added %d, want %d: %v", n, c.what, added, c.adds, err)
			}
			if read := rowsRead(t, conn) - before; read > c.most {
				t.Fatalf("page %d, %s: read %d rows, want at most %d", n, c.what, read, c.most)
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// rowsRead returns how many rows the connection has read recently, from statistics that do not
// change within a transaction.
func rowsRead(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	return query[int](t, conn, `SELECT sum(idx_tup_fetch + seq_tup_read)::integer FROM pg_stat_xact_user_tables`)
}

// page returns a page of items.
func page(n, size int) iter.Seq[batch.NewItem[int]] {
	return func(yield func(batch.NewItem[int]) bool) {
		for i := range size {
			if !yield(batch.NewItem[int]{Key: fmt.Sprintf("%d-%d", n, i), Cost: 1, Input: i}) {
				return
			}
		}
	}
}
