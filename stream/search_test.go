package stream_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
)

// number gives every event its position in the feed.
func number(t *testing.T, hf *holdfast.Engine) {
	t.Helper()
	if err := feed.Open(t.Context(), engine.Of(hf)); err != nil {
		t.Fatal(err)
	}
	for found := true; found; {
		var err error
		if found, err = feed.Step(t.Context(), engine.Of(hf), 0, feed.DefaultBatch); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSearch verifies that a search of a stream and of the feed returns what a filter of all events returns, in the same
// order, forward and backward, over several pages, without dropped events; and that ranges of times are found although
// the search starts in the middle.
func TestSearch(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		daily := testlevel.Pick(310, 700, 700) // events of a stream; a page has 1,000
		for day := range 4 {
			for _, name := range []string{"a", "b"} {
				var all []stream.Event
				for i := range daily {
					e := stream.Event{Name: fmt.Sprint("n", i%3), Correlation: fmt.Sprint("c", i%101), Actor: fmt.Sprint("ann", i%2)}
					if i == daily/2 {
						e.Name = "rare"
					}
					all = append(all, e)
				}
				if _, err := stream.Append(ctx, hf, name, stream.Any, all...); err != nil {
					t.Fatal(err)
				}
			}
			if day < 3 {
				holdfasttest.Advance(t, hf, 24*time.Hour)
			}
		}
		number(t, hf)
		if err := stream.Truncate(ctx, hf, "b", stream.Version(daily/2+50)); err != nil {
			t.Fatal(err)
		}
		ordered, err := holdfast.Collect(stream.ReadFeed(ctx, hf, ""))
		if err != nil || len(ordered) != 2*4*daily-(daily/2+50) {
			t.Fatalf("the feed has %d events, %v", len(ordered), err)
		}
		last := ordered[len(ordered)-1].At
		for _, f := range []stream.EventFilter{
			{},
			{Names: []string{"rare"}},
			{Names: []string{"rare", "n1"}, Actor: "ann1"},
			{Correlation: "c7"},
			{Correlation: "c7", Actor: "ann0", Names: []string{"n2"}},
			{Correlation: "none"},
			{Since: last.Add(-36 * time.Hour), Names: []string{"rare"}},
			{Until: last.Add(-36 * time.Hour), Correlation: "c1"},
			{Since: last.Add(-60 * time.Hour), Until: last.Add(-12 * time.Hour), Correlation: "c1"},
			{Since: last.Add(time.Hour)},
			{Until: last.Add(-100 * time.Hour)},
		} {
			for _, name := range []string{"", "a", "b"} {
				for _, backward := range []bool{false, true} {
					f.Stream, f.Backward = name, backward
					var want []string
					for _, e := range ordered {
						if (name == "" || e.Stream == name) && (len(f.Names) == 0 || slices.Contains(f.Names, e.Name)) &&
							(f.Correlation == "" || e.Correlation == f.Correlation) && (f.Actor == "" || e.Actor == f.Actor) &&
							!e.At.Before(f.Since) && (f.Until.IsZero() || e.At.Before(f.Until)) {
							want = append(want, fmt.Sprint(e.Event))
						}
					}
					if backward {
						slices.Reverse(want)
					}
					var got []string
					for e, err := range stream.Search(ctx, hf, f) {
						if err != nil {
							t.Fatal(err)
						}
						got = append(got, fmt.Sprint(e))
					}
					if !slices.Equal(got, want) {
						t.Errorf("%+v: got %d events, want %d", f, len(got), len(want))
					}
				}
			}
		}
		for _, bad := range []stream.EventFilter{{Names: []string{""}}, {Since: last, Until: last}, {Actor: strings.Repeat("x", 300)}} {
			if _, err := holdfast.Collect(stream.Search(ctx, hf, bad)); fault.CodeOf(err) != fault.Validation {
				t.Errorf("%+v: got %v, want a validation error", bad, err)
			}
		}
		other := holdfast.InWorkspace(ctx, "other")
		if all, err := holdfast.Collect(stream.Search(other, hf, stream.EventFilter{Stream: "a"})); err != nil || len(all) != 0 {
			t.Errorf("another workspace finds %d events, %v", len(all), err)
		}
		if all, err := holdfast.Collect(stream.Search(other, hf, stream.EventFilter{})); !errors.Is(err, holdfast.ErrNotFound) || len(all) != 0 {
			t.Errorf("a workspace without a feed finds %d events, %v, want ErrNotFound", len(all), err)
		}
		for e, err := range stream.Search(ctx, hf, stream.EventFilter{Backward: true}) {
			if err != nil || fmt.Sprint(e) != fmt.Sprint(ordered[len(ordered)-1].Event) {
				t.Errorf("the newest event is %v, %v", e, err)
			}
			break
		}
	})
}

// TestListStreams verifies that streams are listed in the order of their names, by prefix, with their range, state and times.
func TestListStreams(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		for _, name := range []string{"order-2", "order-1", "orders", "zoo", "order-\U0010FFFF", "ord\u00e9"} {
			if _, err := stream.Append(ctx, hf, name, stream.Any, stream.Event{Name: "a"}, stream.Event{Name: "b"}, stream.Event{Name: "c"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.Truncate(ctx, hf, "order-1", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Close(ctx, hf, "zoo", stream.Tombstone); err != nil {
			t.Fatal(err)
		}
		for prefix, want := range map[string]string{
			"":                 "order-1 order-2 order-\U0010FFFF orders ord\u00e9 zoo",
			"order-":           "order-1 order-2 order-\U0010FFFF",
			"order-\U0010FFFF": "order-\U0010FFFF",
			"ord":              "order-1 order-2 order-\U0010FFFF orders ord\u00e9",
			"x":                "",
			"ord\u00e9":        "ord\u00e9",
		} {
			var got []string
			for s, err := range stream.List(ctx, hf, stream.Filter{Prefix: prefix}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, s.Name)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("prefix %q: got %q, want %q", prefix, got, want)
			}
		}
		for name, want := range map[string]stream.Info{
			"order-1": {Name: "order-1", First: 1, Last: 2, Status: stream.StreamOpen, LastName: "c"},
			"zoo":     {Name: "zoo", First: 3, Last: 3, Status: stream.StreamClosed, Mode: stream.Tombstone, LastName: "$tombstone"},
		} {
			got, err := stream.Get(ctx, hf, name)
			if got.FirstAt.IsZero() || got.LastAt.Before(got.FirstAt) {
				t.Errorf("times are %v and %v", got.FirstAt, got.LastAt)
			}
			got.FirstAt, got.LastAt = want.FirstAt, want.LastAt
			if err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		}
		if all, err := holdfast.Collect(stream.List(holdfast.InWorkspace(ctx, "other"), hf, stream.Filter{})); err != nil || len(all) != 0 {
			t.Errorf("another workspace lists %v, %v", all, err)
		}
		if _, err := stream.Get(ctx, hf, "none"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}
