package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/stream"
)

// TestCloseExportsInPages verifies that the events of a long stream are handed on
// in order, page by page, each once and before anything is removed, and that an
// error of the export keeps them.
func TestCloseExportsInPages(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		const size = 2500
		var some []stream.Event
		for i := range 500 {
			some = append(some, stream.Event{Name: "a", Data: fmt.Appendf(nil, "%d", i), Actor: "me"})
		}
		for range size / len(some) {
			if _, err := stream.Append(ctx, hf, "s", stream.Any, some...); err != nil {
				t.Fatal(err)
			}
		}
		full := errors.New("the disk is full")
		var seen []stream.Event
		pages := 0
		o := stream.Export(func(ctx context.Context, page []stream.Event) error {
			if pages++; pages == 2 {
				return full
			}
			seen = append(seen, page...)
			return nil
		})
		if _, err := stream.Close(ctx, hf, "s", stream.Tombstone, o); !errors.Is(err, full) {
			t.Errorf("got %v, want the error of the export", err)
		}
		seen = nil
		got, err := stream.Close(ctx, hf, "s", stream.Tombstone, o)
		if err != nil || got != (stream.Closed{Stream: "s", Mode: stream.Tombstone, First: size, Last: size}) {
			t.Errorf("close returned %+v, %v", got, err)
		}
		if len(seen) != size || pages != 2+3 {
			t.Fatalf("exported %d events in %d pages", len(seen), pages)
		}
		for i, e := range seen {
			if int(e.Version) != i || e.Actor != "me" || string(e.Data) != fmt.Sprint(i%500) {
				t.Fatalf("event %d is %+v", i, e)
			}
		}
	})
}

// TestCloseWants verifies that a snapshot that covers less than the stream has is
// refused, that a restart must say what it covers, and that it can be repeated.
func TestCloseWants(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		if _, err := stream.Append(ctx, hf, "s", stream.Any, stream.Event{Name: "a"}, stream.Event{Name: "b"}); err != nil {
			t.Fatal(err)
		}
		o := stream.Snapshot([]byte(`{}`))
		if _, err := stream.Close(ctx, hf, "s", stream.Restart, o, stream.ExpectVersion(0)); !errors.Is(err, holdfast.ErrConcurrency) {
			t.Errorf("got %v, want ErrConcurrency", err)
		}
		if _, err := stream.Close(ctx, hf, "s", stream.Restart, o); fault.CodeOf(err) != fault.Validation {
			t.Errorf("got %v, want a validation error", err)
		}
		if _, err := stream.Close(ctx, hf, "s", stream.Tombstone, stream.Export(nil)); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("export without a function: got %v, want ErrValidation", err)
		}
		for _, mode := range []stream.CloseMode{stream.Archive, stream.Tombstone, stream.Restart} {
			if _, err := stream.Close(ctx, hf, "s", mode, stream.Snapshot(nil), stream.ExpectVersion(1)); !errors.Is(err, holdfast.ErrValidation) {
				t.Errorf("%s with a snapshot that is nil: got %v, want ErrValidation", mode, err)
			}
		}
		if err := stream.Truncate(ctx, hf, "s", 1, stream.Snapshot(nil)); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("truncate with a snapshot that is nil: got %v, want ErrValidation", err)
		}
		for range 2 {
			if got, err := stream.Close(ctx, hf, "s", stream.Restart, o, stream.ExpectVersion(1)); err != nil || got != (stream.Closed{Stream: "s", Mode: stream.Restart, First: 2, Last: 2}) {
				t.Errorf("close returned %+v, %v", got, err)
			}
			if _, err := stream.Append(ctx, hf, "s", stream.Any, stream.Event{Name: "c"}); err != nil {
				t.Error(err)
			}
		}
		if all, err := holdfast.Collect(stream.Read(ctx, hf, "s", 0)); err != nil || len(all) != 3 {
			t.Errorf("stream has %+v, %v, want 3 events", all, err)
		}
		if err := stream.Truncate(ctx, hf, "s", 5); fault.CodeOf(err) != fault.Validation {
			t.Errorf("got %v, want a validation error", err)
		}
	})
}

// TestTruncatedWhileLoading verifies that an aggregate whose stream is truncated by others between two pages of its events is loaded, and
// truncated, as if they had come before; and that such a stream is not reported as damaged, however often that happens.
func TestTruncatedWhileLoading(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		const page, pages = 1000, 6
		type counted struct{ N int }
		var cuts [][2]stream.Version // truncations by others: when an event is folded, and below which version
		tally := stream.Fold("tally-", func(s counted, e stream.Event) (counted, error) {
			s.N++
			if len(cuts) > 0 && e.Version == cuts[0][0] {
				cut := cuts[0][1]
				cuts = cuts[1:]
				if err := stream.Truncate(ctx, hf, e.Stream, cut, stream.Snapshot(fmt.Appendf(nil, `{"N":%d}`, cut))); err != nil {
					t.Error(err)
				}
			}
			return s, nil
		})
		for id, run := range map[string]func(id string) error{
			"load":     func(id string) error { _, _, err := tally.Load(ctx, hf, id); return err },
			"truncate": func(id string) error { return tally.Truncate(ctx, hf, id, pages*page-2) },
		} {
			for name, all := range map[string][][2]stream.Version{"once": {{900, 1500}}, "always": {{900, 1500}, {2400, 2900}, {3800, 4400}}} {
				id := id + name
				for range pages {
					if _, err := stream.Append(ctx, hf, "tally-"+id, stream.Any, slices.Repeat([]stream.Event{{Name: "x"}}, page)...); err != nil {
						t.Fatal(err)
					}
				}
				cuts = all
				err := run(id)
				if name == "once" && err != nil || name == "always" && (fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "while")) {
					t.Errorf("%s: got %v", id, err)
				}
				cuts = nil
				if s, v, err := tally.Load(ctx, hf, id); err != nil || s.N != pages*page || v != pages*page-1 {
					t.Errorf("%s: loaded %+v at version %d, %v", id, s, v, err)
				}
			}
		}
	})
}

// TestTruncatedAggregate verifies that an aggregate can be loaded after its stream was truncated with its state, with and
// without stored snapshots; that without a state the error says what was done and how to repair it, not that the database is
// damaged; and that events that are really missing are damage.
func TestTruncatedAggregate(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		plain := stream.Fold("purse-", foldPurse)
		stored := stream.Fold("purse-", foldPurse, stream.SnapshotEvery(3, "purse 1"))
		want := make(map[string]purse)
		for _, id := range []string{"a", "b", "c", "d"} {
			for i := range 10 {
				mustDo(t, plain, hf, id, add(i))
			}
			var err error
			if want[id], _, err = plain.Load(ctx, hf, id); err != nil {
				t.Fatal(err)
			}
		}
		mustDo(t, stored, hf, "b", func(purse) ([]stream.Event, error) { return nil, nil })
		for _, before := range []stream.Version{0, 4, 4, 2, 7, 9} {
			for _, id := range []string{"a", "b"} {
				if err := plain.Truncate(ctx, hf, id, before); err != nil {
					t.Fatalf("before %d: %v", before, err)
				}
				for _, a := range []*stream.Aggregate[purse]{plain, stored} {
					if got, version, err := a.Load(ctx, hf, id); err != nil || version != 9 || fmt.Sprint(got) != fmt.Sprint(want[id]) {
						t.Errorf("before %d: loaded %v at %d, %v, want %v", before, got, version, err, want[id])
					}
				}
			}
		}
		if got := mustDo(t, stored, hf, "a", add(5)); got.Balance != 50 {
			t.Errorf("balance is %d, want 50", got.Balance)
		}
		for _, before := range []stream.Version{-1, 11, 12} {
			if err := plain.Truncate(ctx, hf, "b", before); fault.CodeOf(err) != fault.Validation {
				t.Errorf("before %d: got %v, want a validation error", before, err)
			}
		}

		if err := stream.Truncate(ctx, hf, "purse-c", 6); err != nil {
			t.Fatal(err)
		}
		_, _, err := plain.Load(ctx, hf, "c")
		if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "truncated below version 6") {
			t.Errorf("got %v, want a conflict that names the truncation", err)
		}
		if err := plain.Truncate(ctx, hf, "c", 8); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("got %v, want a conflict", err)
		}
		for _, base := range []string{`{"Balance": 1000}`, `{"Balance": 2000}`} { // the second is a repetition, and changes nothing
			if err := stream.Truncate(ctx, hf, "purse-c", 6, stream.Snapshot([]byte(base))); err != nil {
				t.Fatal(err)
			}
		}
		if got, _, err := plain.Load(ctx, hf, "c"); err != nil || got.Balance != 1000+6+7+8+9 {
			t.Errorf("loaded %v, %v", got, err)
		}

		sql := func(text string) {
			err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				_, err := storetest.Exec(ctx, tx, text)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		sql(`DELETE FROM holdfast_event WHERE stream = 'purse-d' AND version = 0`)
		if _, _, err := plain.Load(ctx, hf, "d"); fault.CodeOf(err) != fault.DatabaseDamaged {
			t.Errorf("got %v, want damage", err)
		}
		sql(`UPDATE holdfast_stream SET first = 1 WHERE name = 'purse-d'`) // for the check at the end
	})
}
