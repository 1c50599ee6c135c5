package batch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// TestItemsOfOldBatchesGo verifies that the items of batches that have ended are deleted after their retention, in pages; that the batch
// stays with its counts, sums and id; that nobody takes a part of the items for all of them; and that a late retry is refused.
func TestItemsOfOldBatchesGo(t *testing.T) {
	const many = 1203 // more than two pages
	kind := batch.Define("fails", func(_ context.Context, i *batch.Item[in]) (int, error) {
		if i.Input.N%2 == 1 {
			return 0, holdfast.NonRetryable(errors.New("odd"))
		}
		return i.Input.N, nil
	}, batch.Options{Cost: 2, MaxConcurrency: 100, MaxWorkers: 100})
	short := batch.Define("short", func(context.Context, *batch.Item[in]) (int, error) { return 0, nil }, batch.Options{Retention: time.Minute, Cost: batch.Free})
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		fund(t, hf, 100000)
		for id, n := range map[string]int{"done": 5, "empty": 0, "cancelled": many} {
			if _, err := kind.Create(ctx, hf, "w", work(n, 2), batch.ID(id)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := batch.Cancel(ctx, hf, "cancelled"); err != nil {
			t.Fatal(err)
		}
		if _, err := short.Create(ctx, hf, "w", work(1, 0), batch.ID("short")); err != nil {
			t.Fatal(err)
		}
		settle := func() {
			t.Helper()
			if left, err := holdfasttest.Settle(ctx, hf); err != nil || len(left) > 0 {
				t.Fatal(left, err)
			}
		}
		settle()
		if _, err := kind.Create(ctx, hf, "w", work(1, 2), batch.ID("open"), batch.LeaveOpen()); err != nil {
			t.Fatal(err)
		}
		settle()
		before := map[string]batch.Batch{}
		for _, id := range []string{"done", "empty", "cancelled", "short", "open"} {
			b, err := batch.Get(ctx, hf, id)
			if err != nil || b.Over() != (id != "open") {
				t.Fatalf("%s: %+v, error %v", id, b, err)
			}
			before[id] = b
		}
		left := func(gone ...string) {
			t.Helper()
			for id, was := range before {
				b, err := batch.Get(ctx, hf, id)
				deleted := !b.ItemsDeletedAt.IsZero()
				b.ItemsDeletedAt = time.Time{}
				if err != nil || b != was {
					t.Errorf("%s: %+v, error %v, want %+v", id, b, err, was)
				}
				want := false
				for _, one := range gone {
					want = want || one == id
				}
				items, err := holdfast.Collect(batch.ListItems(ctx, hf, id, batch.ItemFilter{}))
				if deleted != want || errors.Is(err, holdfast.ErrNotFound) != want || !want && int64(len(items)) != sum(was.Counts) {
					t.Errorf("%s: deleted %t, %d items, error %v, want deleted %t", id, deleted, len(items), err, want)
				}
			}
			if report, err := hf.Check(ctx); err != nil || !report.Clean() {
				t.Errorf("check: %v, error %v", report.Violations, err)
			}
		}
		left()
		holdfasttest.Advance(t, hf, 2*time.Minute)
		engine.Of(hf).Round(ctx)
		left("short")
		holdfasttest.Advance(t, hf, time.Hour)
		at, err := engine.Of(hf).Partition(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		var p batchengine.Pruner
		deleted, rounds := 0, 0
		for more := true; more; rounds++ {
			n := 0
			if n, more, err = p.Sweep(ctx, engine.Of(hf), at, 500); err != nil {
				t.Fatal(err)
			}
			deleted += n
			if rounds == 0 {
				var gone []string
				for id := range before {
					if b, err := batch.Get(ctx, hf, id); err != nil || !b.ItemsDeletedAt.IsZero() {
						gone = append(gone, id)
					}
				}
				left(gone...) // of one, a part of its items is left
			}
		}
		if deleted != 5+many || rounds < 3 {
			t.Errorf("deleted %d items in %d rounds, want %d in 3 or more", deleted, rounds, 5+many)
		}
		left("short", "done", "empty", "cancelled")
		if _, err := kind.Create(ctx, hf, "w", work(5, 2), batch.ID("done")); !errors.Is(err, holdfast.ErrKeyExpired) {
			t.Errorf("created again: error %v, want ErrKeyExpired", err)
		}
		if _, err := batch.Accept(ctx, hf, "done", []string{"k0000"}); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("accepted a deleted item: error %v", err)
		}
		if _, err := batch.Seal(ctx, hf, "open"); err != nil {
			t.Fatal(err)
		}
		settle()
		if b, err := batch.Get(ctx, hf, "open"); err != nil || b.Status != batch.Completed || b.Counts.Accepted != 1 {
			t.Errorf("the open batch: %+v, error %v", b, err)
		}
	}, kind, short, batch.Retention(time.Hour))
}

func sum(c batch.Counts) int64 { return c.Pending + c.Running + c.Succeeded + c.Failed + c.Cancelled }

// TestItemsWithoutARetentionStay verifies that no items are deleted without a setting.
func TestItemsWithoutARetentionStay(t *testing.T) {
	kind := batch.Define("k", func(context.Context, *batch.Item[in]) (int, error) { return 0, nil }, batch.Options{Cost: batch.Free})
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		fund(t, hf, 0)
		if _, err := kind.Create(ctx, hf, "w", work(2, 0), batch.ID("b")); err != nil {
			t.Fatal(err)
		}
		if _, err := holdfasttest.Settle(ctx, hf); err != nil {
			t.Fatal(err)
		}
		holdfasttest.Advance(t, hf, 10000*time.Hour)
		engine.Of(hf).Round(ctx)
		if items, err := holdfast.Collect(batch.ListItems(ctx, hf, "b", batch.ItemFilter{})); err != nil || len(items) != 2 {
			t.Errorf("%d items, error %v, want 2", len(items), err)
		}
	}, kind)
}
