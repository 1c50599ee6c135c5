package stream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/stream"
)

// TestCloseExportsInPages verifies that the events of a long stream are handed on
// in order, page by page, each once and before anything is removed, and that an
// error of the export keeps them.
func TestCloseExportsInPages(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
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
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
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
