package stream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/storetest"
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

// TestReadFeedGoesOn verifies that the feed is read in parts of any size, each
// event once and whole; that the position of each is where to go on; and that each
// workspace has its own.
func TestReadFeedGoesOn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		if none, err := holdfast.Collect(stream.ReadFeed(ctx, hf, "")); !errors.Is(err, holdfast.ErrNotFound) || len(none) != 0 {
			t.Errorf("workspace without a feed: got %+v, %v, want ErrNotFound", none, err)
		}
		if head, err := stream.GetFeedHead(ctx, hf); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("head of a workspace without a feed: got %q, %v, want ErrNotFound", head, err)
		}
		for _, err := range stream.FollowFeed(ctx, hf, "") {
			if !errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("followed a workspace without a feed: got %v, want ErrNotFound", err)
			}
		}
		numbered(t, ctx, hf, 10)
		numbered(t, holdfast.InWorkspace(ctx, "other"), hf, 3)
		for limit := 1; limit < 12; limit++ {
			var all []stream.FeedEvent
			for next, read := stream.Cursor(""), limit; read == limit; {
				read = 0
				for e, err := range stream.ReadFeed(ctx, hf, next) {
					if err != nil {
						t.Fatal(err)
					}
					all, next = append(all, e), e.Cursor
					if read++; read == limit {
						break
					}
				}
			}
			wantInOrder(t, hf, all, 10)
		}
		other, err := holdfast.Collect(stream.ReadFeed(holdfast.InWorkspace(ctx, "other"), hf, ""))
		if err != nil || len(other) != 3 {
			t.Errorf("feed of the other workspace is %+v, %v, want 3 events", other, err)
		}
	})
}

// wantInOrder checks that the events of the default workspace are as numbered wrote
// them, and that GetFeedCursor returns their cursors.
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
		if p, err := stream.GetFeedCursor(t.Context(), hf, e.Stream, e.Version); err != nil || p != e.Cursor {
			t.Errorf("position of %s %d: want %q, got %q (%v)", e.Stream, e.Version, e.Cursor, p, err)
		}
	}
}

// TestBadCursors verifies that a cursor which the feed did not give out is refused,
// and is not taken for the beginning or the end.
func TestBadCursors(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		numbered(t, t.Context(), hf, 3)
		head, err := stream.GetFeedHead(t.Context(), hf)
		if err != nil || head != "p3" {
			t.Fatalf("got feed head %q, %v, want p3", head, err)
		}
		for _, c := range []stream.Cursor{"p", "x3", "3", "p03", "p+3", "p-1", "p0", "P3", "p3 ", "pA", "p4", "pzzzzzzzzzzzzzzzz", "p\x00", "\xff"} {
			_, err := holdfast.Collect(stream.ReadFeed(t.Context(), hf, c))
			if !errors.Is(err, holdfast.ErrValidation) {
				t.Errorf("cursor %q: got %v, want ErrValidation", c, err)
			}
			if _, err := holdfast.Collect(stream.FollowFeed(t.Context(), hf, c)); !errors.Is(err, holdfast.ErrValidation) {
				t.Errorf("follow from cursor %q: got %v, want ErrValidation", c, err)
			}
		}
		if none, err := holdfast.Collect(stream.ReadFeed(t.Context(), hf, head)); err != nil || len(none) != 0 {
			t.Errorf("at the end of the feed: got %+v, %v, want no events", none, err)
		}
		if c, err := stream.GetFeedCursor(t.Context(), hf, "s0", 7); !errors.Is(err, holdfast.ErrNotFound) || c != "" {
			t.Errorf("position of a missing event: got %q, %v", c, err)
		}
	})
}

// TestFollowFeedEnds verifies that a loop over FollowFeed ends when it breaks, or with the
// error of its context, goes on from the last event that was handled, and cannot be used
// inside a transaction.
func TestFollowFeedEnds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		numbered(t, t.Context(), hf, 5)
		var last stream.Cursor
		seen := 0
		for seen < 5 {
			for e, err := range stream.FollowFeed(t.Context(), hf, last) {
				if err != nil {
					t.Fatal(err)
				}
				if last == e.Cursor || seen == 5 {
					t.Errorf("%s %d was delivered twice", e.Stream, e.Version)
				}
				last = e.Cursor
				if seen++; seen%2 == 0 || seen == 5 {
					break
				}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		left, leave := context.WithCancel(t.Context())
		defer leave()
		for _, err := range stream.FollowFeed(left, hf, "") { // both at once
			if err != nil {
				t.Error(err)
			}
			leave()
			break
		}
		if some, err := holdfast.Collect(stream.FollowFeed(ctx, hf, last)); !errors.Is(err, context.Canceled) || len(some) > 0 {
			t.Error(some, err)
		}
		err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			_, err := holdfast.Collect(stream.FollowFeed(ctx, hf, ""))
			return err
		})
		if fault.CodeOf(err) != fault.Reentrant {
			t.Error(err)
		}
	})
}
