package feed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

// each runs a test on both databases, with a function that returns a fresh database.
func each(t *testing.T, f func(t *testing.T, db func() holdfast.Database)) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, db string) {
		f(t, func() holdfast.Database { return holdfasttest.At(db) })
	})
}

// write appends n events to a stream.
func write(t *testing.T, d holdfast.Doer, name string, n int) {
	t.Helper()
	if _, err := stream.Append(t.Context(), d, name, stream.Any, named(n)...); err != nil {
		t.Errorf("append to %s: %v", name, err)
	}
}

func named(n int) []stream.Event {
	all := make([]stream.Event, n)
	for i := range all {
		all[i].Name = fmt.Sprint("e", i)
	}
	return all
}

// rest reads the feed from a cursor to its end, in pages of the given size.
func rest(t *testing.T, d holdfast.Doer, after stream.Cursor, limit int) (all []stream.FeedEvent, next stream.Cursor) {
	t.Helper()
	for next = after; ; {
		some, err := readSome(t.Context(), d, next, limit)
		if err != nil {
			t.Fatalf("read the feed after %q: %v", next, err)
		}
		if len(some) == 0 {
			return all, next
		}
		all, next = append(all, some...), some[len(some)-1].Cursor
	}
}

// readSome reads up to limit events of the feed after a cursor; 0 means all.
func readSome(ctx context.Context, d holdfast.Doer, after stream.Cursor, limit int) (all []stream.FeedEvent, err error) {
	for e, err := range stream.ReadFeed(ctx, d, after) {
		if err != nil {
			return all, err
		}
		if all = append(all, e); len(all) == limit {
			break
		}
	}
	return all, nil
}

// arrived reads the feed until it has n events.
func arrived(t *testing.T, d holdfast.Doer, n int) []stream.FeedEvent {
	t.Helper()
	var all []stream.FeedEvent
	testkit.Eventually(t, fmt.Sprintf("the feed has %d events", n), func() bool {
		all, _ = rest(t, d, "", 0)
		return len(all) >= n
	})
	return all
}

// complete compares the events read from a feed with those of the streams: each event once, in the order of its
// stream.
func complete(ctx context.Context, d holdfast.Doer, all []stream.FeedEvent, streams ...string) (err error) {
	next, total := map[string]stream.Version{}, 0
	for i, e := range all {
		if e.Version != next[e.Stream] {
			err = errors.Join(err, fmt.Errorf("event %d is version %d of %s, want version %d", i, e.Version, e.Stream, next[e.Stream]))
		}
		next[e.Stream] = e.Version + 1
	}
	for _, name := range streams {
		last, failed := testkit.First(1, stream.ReadBackward(ctx, d, name, -1))
		if failed != nil || len(last) != 1 {
			return errors.Join(err, fmt.Errorf("end of stream %s: %v, %w", name, last, failed))
		}
		total += int(last[0].Version) + 1
		if next[name] != last[0].Version+1 {
			err = errors.Join(err, fmt.Errorf("stream %s has versions up to %d, the feed those before %d", name, last[0].Version, next[name]))
		}
	}
	if len(all) != total {
		err = errors.Join(err, fmt.Errorf("feed has %d events, the streams have %d", len(all), total))
	}
	return err
}

func wantComplete(t *testing.T, d holdfast.Doer, all []stream.FeedEvent, streams ...string) {
	t.Helper()
	if err := complete(context.Background(), d, all, streams...); err != nil {
		t.Error(err)
	}
}
