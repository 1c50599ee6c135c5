package stream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/stream"
)

// numbered appends events one by one, on two streams, and numbers them.
func numbered(t *testing.T, ctx context.Context, hf *holdfast.Engine, n int) {
	t.Helper()
	if err := feed.Open(ctx, engine.Of(hf)); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := stream.Append(ctx, hf, fmt.Sprint("s", i%2), stream.Any, stream.Event{Name: "e", Data: []byte(fmt.Sprint(i)), Actor: "me"}); err != nil {
			t.Fatal(err)
		}
	}
	for some := true; some; {
		var err error
		if some, err = feed.Step(ctx, engine.Of(hf), 0, feed.DefaultBatch); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadFeedGoesOn verifies that the feed is read in pages of any size, each
// event once and whole; that the position of each is where to go on; and that each
// workspace has its own.
func TestReadFeedGoesOn(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		if page, err := stream.ReadFeed(ctx, hf, "", 0); err != nil || len(page.Events) != 0 || page.Next != "" {
			t.Errorf("feed without events: got %+v, %v", page, err)
		}
		numbered(t, ctx, hf, 10)
		numbered(t, holdfast.InWorkspace(ctx, "other"), hf, 3)
		for limit := 1; limit < 12; limit++ {
			var all []stream.FeedEvent
			for next := stream.Cursor(""); ; {
				page, err := stream.ReadFeed(ctx, hf, next, limit)
				if err != nil || len(page.Events) > limit {
					t.Fatalf("got %d events with limit %d: %v", len(page.Events), limit, err)
				}
				if len(page.Events) == 0 {
					if page.Next != next {
						t.Errorf("the end of the feed moved from %q to %q", next, page.Next)
					}
					break
				}
				all, next = append(all, page.Events...), page.Next
			}
			wantInOrder(t, hf, all, 10)
		}
		other, err := stream.ReadFeed(holdfast.InWorkspace(ctx, "other"), hf, "", 0)
		if err != nil || len(other.Events) != 3 {
			t.Errorf("feed of the other workspace is %+v, %v, want 3 events", other, err)
		}
	})
}

// wantInOrder checks that the events of the default workspace are as numbered wrote
// them, and that PositionOf returns their positions.
func wantInOrder(t *testing.T, hf *holdfast.Engine, all []stream.FeedEvent, n int) {
	t.Helper()
	if len(all) != n {
		t.Fatalf("the feed has %d events, want %d", len(all), n)
	}
	next := map[string]stream.Version{}
	for _, e := range all {
		var i int
		if _, err := fmt.Sscan(string(e.Data), &i); err != nil || e.Stream != fmt.Sprint("s", i%2) || int(e.Version) != i/2 ||
			e.Version != next[e.Stream] || e.Name != "e" || e.Actor != "me" || e.At.IsZero() {
			t.Errorf("got %+v", e)
		}
		next[e.Stream]++
		if p, found, err := stream.FeedPosition(t.Context(), hf, e.Stream, e.Version); err != nil || !found || p != e.Position {
			t.Errorf("position of %s %d: want %q, got %q (%v)", e.Stream, e.Version, e.Position, p, err)
		}
	}
}

// TestBadCursors verifies that a cursor which the feed did not give out is refused,
// and is not taken for the beginning or the end.
func TestBadCursors(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		numbered(t, t.Context(), hf, 3)
		head, err := stream.FeedHead(t.Context(), hf)
		if err != nil || head != "p3" {
			t.Fatalf("got feed head %q, %v, want p3", head, err)
		}
		for _, c := range []stream.Cursor{"p", "x3", "3", "p03", "p+3", "p-1", "p0", "P3", "p3 ", "pA", "p4", "pzzzzzzzzzzzzzzzz", "p\x00", "\xff"} {
			_, err := stream.ReadFeed(t.Context(), hf, c, 0)
			if !errors.Is(err, holdfast.ErrValidation) {
				t.Errorf("cursor %q: got %v, want ErrValidation", c, err)
			}
			if err := stream.Follow(t.Context(), hf, c, func(stream.FeedEvent) error { return nil }); !errors.Is(err, holdfast.ErrValidation) {
				t.Errorf("follow from cursor %q: got %v, want ErrValidation", c, err)
			}
		}
		if page, err := stream.ReadFeed(t.Context(), hf, head, 0); err != nil || len(page.Events) != 0 || page.Next != head {
			t.Errorf("at the end of the feed: got %+v, %v, want no events", page, err)
		}
		if c, found, err := stream.FeedPosition(t.Context(), hf, "s0", 7); err != nil || found || c != "" {
			t.Errorf("position of a missing event: got %q, %v", c, err)
		}
	})
}

// TestFollowEnds verifies that Follow ends with the error of its function, or of
// its context, goes on from the last event that was handled, and cannot be used
// inside a transaction.
func TestFollowEnds(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		numbered(t, t.Context(), hf, 5)
		var last stream.Cursor
		enough := errors.New("enough")
		seen := 0
		for seen < 5 {
			err := stream.Follow(t.Context(), hf, last, func(e stream.FeedEvent) error {
				if last == e.Position || seen == 5 {
					t.Errorf("%s %d was delivered twice", e.Stream, e.Version)
				}
				last = e.Position
				if seen++; seen%2 == 0 || seen == 5 {
					return enough
				}
				return nil
			})
			if err != enough {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := stream.Follow(ctx, hf, last, func(stream.FeedEvent) error { return enough }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			return stream.Follow(ctx, hf, "", func(stream.FeedEvent) error { return enough })
		})
		if fault.CodeOf(err) != fault.Reentrant {
			t.Error(err)
		}
	})
}
