package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// TestEveryLoopGoesOnWhenConnectionsDieSilently verifies that every loop of a node continues when
// all of its connections die silently in the middle of its work, some before and some after a write
// was sent: callers, one by one and in groups, the janitor, timers, reactions, the feed, the
// listener, and the health check. Every acknowledged append exists once, a reaction's writes exist
// once, and the feed has each event once. At level check the limits are those of production, and
// all loops continue within 15 seconds.
func TestEveryLoopGoesOnWhenConnectionsDieSilently(t *testing.T) {
	t.Parallel()
	t.Run("soon", func(t *testing.T) {
		t.Parallel()
		silentLoops(t, "call_timeout=500ms", testlevel.Pick(1, 3, 20), time.Minute)
	})
	t.Run("by default", func(t *testing.T) {
		testlevel.Long(t)
		t.Parallel()
		silentLoops(t, "application_name=holdfast", 1, 15*time.Second)
	})
}

func silentLoops(t *testing.T, param string, rounds int, within time.Duration) {
	direct := prepared(t)
	b, through := newBreaker(t, direct)
	n := newSilentNode(t, as(t, through, "", "", param), connect(t, direct))
	n.breaker = b
	progress(t, n.writers, 3)
	for range rounds {
		n.goOn(t, within, b.HangAll)
	}
	n.check(t)
}

// silentNode is an engine with every loop, and callers that it serves.
type silentNode struct {
	hf      *holdfast.Engine
	breaker *breaker
	watcher *pgx.Conn // not through the breaker
	writers []*writer
	working sync.WaitGroup // callers
	stop    atomic.Bool

	rounds, handled, timers atomic.Int64
}

// Start makes the node a part that counts the rounds of the janitor.
func (n *silentNode) Register(_ context.Context, e *holdfast.Engine) error {
	engine.Of(e).Sweep("probe", func(ctx context.Context) (int, error) {
		_, err := testkit.First(1, stream.Read(ctx, e, "writer-0", 0))
		n.rounds.Add(1)
		return 0, err
	})
	return nil
}

func newSilentNode(t *testing.T, url string, watcher *pgx.Conn) *silentNode {
	t.Helper()
	n := &silentNode{watcher: watcher}
	copies := stream.React("copy", stream.Select{Pattern: "^writer-[0-9]$"}, func(_ context.Context, d *stream.Delivery) error {
		d.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
			_, err := stream.Append(ctx, tx, "copy-"+d.Stream, stream.Any, event(d.Name))
			return err
		})
		n.handled.Add(1)
		return nil
	}, stream.Options{})
	pauses := run.Define("pauses", "1", run.Wait("pause", time.Millisecond), run.Task("count", func(context.Context, any) (any, error) {
		n.timers.Add(1)
		return nil, nil
	}, run.Idempotent()))
	hf, err := holdfast.Open(t.Context(), postgres.URL(url), holdfast.Config{Log: quiet.Log, SweepEvery: 50 * time.Millisecond},
		n, copies, pauses, stream.Feed(stream.FeedOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	n.hf = hf
	ctx, cancel := context.WithCancel(t.Context())
	var loops sync.WaitGroup
	loops.Go(func() { _ = hf.Run(ctx) })
	t.Cleanup(func() { n.finish(); cancel(); loops.Wait(); hf.Close() })
	for i := range 8 {
		w := &writer{name: fmt.Sprint("writer-", i), update: i%4 == 3, pause: 20 * time.Millisecond}
		n.writers = append(n.writers, w)
		n.working.Go(func() { w.run(ctx, hf) })
	}
	n.working.Go(func() {
		for i := 0; !n.stop.Load() && clock.Wait(ctx, 20*time.Millisecond) == nil; i++ {
			_, _, _ = pauses.Start(ctx, hf, nil, run.Key(fmt.Sprint("pause-", i)))
		}
	})
	return n
}

// finish ends the callers.
func (n *silentNode) finish() {
	for _, w := range n.writers {
		w.stop.Store(true)
	}
	n.stop.Store(true)
	n.working.Wait()
}

// goOn checks that every loop continues within a time, after happens was called.
func (n *silentNode) goOn(t *testing.T, within time.Duration, happens func()) {
	t.Helper()
	ctx := t.Context()
	listened := n.breaker.listened.Load()
	happens()
	begun := time.Now()
	var all sync.WaitGroup
	wants := func(what string, holds func() bool) {
		all.Go(func() {
			for !holds() {
				if time.Since(begun) > within {
					t.Errorf("timed out after %s waiting for: %s", within, what)
					return
				}
				_ = clock.Wait(ctx, 10*time.Millisecond)
			}
			t.Logf("%s after %s", what, time.Since(begun).Round(time.Millisecond))
		})
	}
	more := func(what string, count *atomic.Int64) {
		goal := count.Load() + 3
		wants(what, func() bool { return count.Load() >= goal })
	}
	more("the janitor goes round", &n.rounds)
	more("the reaction handles", &n.handled)
	more("timers fire", &n.timers)
	for _, w := range n.writers {
		more(w.name+" appends", &w.acked)
	}
	wants("the database lives", func() bool { _, err := n.hf.Status(ctx); return err == nil })
	heads := map[stream.Cursor]bool{}
	wants("the feed numbers", func() bool {
		if head, err := stream.GetFeedHead(ctx, n.hf); err == nil {
			heads[head] = true
		}
		return len(heads) > 3
	})
	wants("a new connection listens", func() bool {
		return n.breaker.listened.Load() > listened
	})
	all.Wait()
}

// check checks that everything exists once when all loops are idle.
func (n *silentNode) check(t *testing.T) {
	t.Helper()
	n.finish()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(query[string](t, n.watcher, `SELECT coalesce(string_agg(row_to_json(f)::text, E'\n'), '') FROM (
				SELECT f.*, now() AS now FROM holdfast.follow f WHERE f.holder IS NOT NULL OR f.due > f.watermark) f`))
			t.Log(query[string](t, n.watcher, `SELECT coalesce(string_agg(concat_ws(' | ', pid, application_name, state, wait_event, now() - xact_start, left(query, 80)), E'\n'), '')
				FROM pg_stat_activity WHERE datname = current_database()`))
		}
	})
	for _, w := range n.writers {
		w.check(t, n.hf)
		names := wantGapless(t, n.hf, w.name)
		testkit.Eventually(t, "the reaction is at the end of "+w.name, func() bool { return len(wantGapless(t, n.hf, "copy-"+w.name)) >= len(names) })
		if copied := wantGapless(t, n.hf, "copy-"+w.name); !slices.Equal(copied, names) {
			t.Errorf("%s has %d events, but its copy has %d", w.name, len(names), len(copied))
		}
		t.Logf("%s: %d acknowledged, %d unknown, %d failed", w.name, len(w.known), len(w.unknown), len(w.failed))
	}
	events := query[int](t, n.watcher, "SELECT count(*) FROM holdfast.event WHERE stream NOT LIKE '$%'")
	var fed map[string]int
	testkit.Eventually(t, "the feed has every event", func() bool { fed = n.feed(t); return len(fed) >= events })
	for at, times := range fed {
		if times != 1 || len(fed) > events {
			t.Errorf("the feed has %d events of %d, and %s %d times, want once", len(fed), events, at, times)
		}
	}
	report, err := n.hf.Check(t.Context())
	if err != nil || !report.Clean() {
		t.Errorf("%v: %v", report, err)
	}
}

// feed reads the feed, and counts how often it has each event.
func (n *silentNode) feed(t *testing.T) map[string]int {
	t.Helper()
	fed := map[string]int{}
	for e, err := range stream.ReadFeed(t.Context(), n.hf, "") {
		if err != nil {
			t.Fatal(err)
		}
		fed[fmt.Sprint(e.Stream, "@", e.Version)]++
	}
	return fed
}
