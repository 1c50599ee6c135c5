package feed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

var quiet = slog.New(slog.DiscardHandler)

// TestALateCommitIsNotSkipped verifies that an event whose transaction commits after later ones is not in the
// feed before its commit, and comes after the events read meanwhile.
func TestALateCommitIsNotSkipped(t *testing.T) {
	t.Parallel()
	hf := holdfasttest.OpenOn(t, holdfasttest.At(holdfasttest.PostgreSQL(t)), stream.Feed(stream.FeedOptions{}))
	testkit.Run(t, hf)
	write(t, hf, "late", 1)
	written, release := make(chan struct{}, 10), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		err := hf.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) error {
			if _, err := stream.Append(ctx, tx, "late", 0, named(2)...); err != nil {
				return err
			}
			written <- struct{}{}
			<-release
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-written
	for range 10 {
		write(t, hf, "early", 1)
	}
	before := arrived(t, hf, 11)
	_, next := rest(t, hf, "", 3)
	if _, err := stream.GetFeedCursor(t.Context(), hf, "late", 1); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("an uncommitted event has a position (error %v)", err)
	}
	close(release)
	done.Wait()
	arrived(t, hf, 13)
	after, _ := rest(t, hf, next, 0)
	if len(before) != 11 || len(after) != 2 || after[0].Stream != "late" {
		t.Errorf("read %d events before the commit and %v after it", len(before), after)
	}
	wantComplete(t, hf, append(before, after...), "early", "late")
}

// TestTheFeedUnderLoad verifies, with many writers and two numbering nodes while a third comes and goes, that a
// reader that follows continuously and one that repeatedly resumes from its cursor see each event once and in
// its stream's order, and that positions have no gaps.
func TestTheFeedUnderLoad(t *testing.T) {
	each(t, func(t *testing.T, db func() holdfast.Database) {
		part := func() holdfast.Part { return stream.Feed(stream.FeedOptions{}) }
		one, two := holdfasttest.OpenOn(t, db(), part()), holdfasttest.OpenOn(t, db(), part())
		testkit.Run(t, one)
		testkit.Run(t, two)
		reading, finish := context.WithCancel(context.Background())
		var readers, writers sync.WaitGroup
		var followed, resumed []stream.FeedEvent
		var seen atomic.Int64
		readers.Go(func() {
			for e, err := range stream.FollowFeed(reading, two, "") {
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("the follower got %v, want context.Canceled", err)
					}
					break
				}
				followed = append(followed, e)
				seen.Store(int64(len(followed)))
			}
		})
		readers.Go(func() { resumed = resume(t, reading, one) })
		readers.Go(func() { numberAndCancel(t, reading, db) })
		streams := []string{"s0", "s1", "s2", "s3", "s4"}
		var total atomic.Int64
		for w := range 8 {
			writers.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(w)))
				for range 40 {
					n := 1 + random.IntN(3)
					write(t, []holdfast.Doer{one, two}[w%2], streams[random.IntN(len(streams))], n)
					total.Add(int64(n))
				}
			})
		}
		writers.Wait()
		arrived(t, one, int(total.Load()))
		testkit.Eventually(t, "the follower has seen all", func() bool { return seen.Load() >= total.Load() })
		finish()
		readers.Wait()
		all, _ := rest(t, one, "", 7)
		wantComplete(t, one, all, streams...)
		wantComplete(t, one, followed, streams...)
		wantComplete(t, one, append(resumed, restAfter(t, one, resumed)...), streams...)
		if head, err := feed.Head(t.Context(), engine.Of(one)); err != nil || head != total.Load() {
			t.Errorf("%d events have positions up to %d (error %v)", total.Load(), head, err)
		}
	})
}

func restAfter(t *testing.T, d holdfast.Doer, read []stream.FeedEvent) []stream.FeedEvent {
	t.Helper()
	after := stream.Cursor("")
	if len(read) > 0 {
		after = read[len(read)-1].Cursor
	}
	all, _ := rest(t, d, after, 0)
	return all
}

// resume reads a few events at a time until ctx ends.
func resume(t *testing.T, ctx context.Context, d holdfast.Doer) (all []stream.FeedEvent) {
	for next := stream.Cursor(""); ctx.Err() == nil; {
		some, err := readSome(context.Background(), d, next, 1+rand.IntN(20))
		if err != nil {
			t.Errorf("read the feed: %v", err)
			return all
		}
		if len(some) == 0 {
			_ = clock.Wait(ctx, 2*time.Millisecond)
			continue
		}
		all, next = append(all, some...), some[len(some)-1].Cursor
	}
	return all
}

// numberAndCancel numbers events, and is cancelled midway, until ctx ends.
func numberAndCancel(t *testing.T, ctx context.Context, db func() holdfast.Database) {
	hf, err := holdfast.Open(context.Background(), db(), holdfast.Config{Log: quiet})
	if err != nil {
		t.Errorf("open: %v", err)
		return
	}
	defer hf.Close()
	for ctx.Err() == nil {
		life, cancel := context.WithTimeout(context.Background(), rand.N(20*time.Millisecond))
		s := feed.Sequencer{Doer: engine.Of(hf), Hub: engine.Of(hf).Hub(), Log: quiet, Batch: feed.Batch{Streams: 2, Events: 3}}
		s.Run(life)
		cancel()
	}
}

// TestSwitchingOnInTheMiddle verifies that a feed enabled during writes has every event, including that of a
// transaction that began before.
func TestSwitchingOnInTheMiddle(t *testing.T) {
	each(t, func(t *testing.T, db func() holdfast.Database) {
		before := holdfasttest.OpenOn(t, db())
		streams := []string{"s0", "s1", "s2", "s3"}
		for _, name := range streams {
			write(t, before, name, 3)
		}
		written := make(chan struct{}, len(streams))
		var writers sync.WaitGroup
		for _, name := range streams {
			writers.Go(func() {
				for i := range 60 {
					write(t, before, name, 2)
					if i == 3 {
						written <- struct{}{}
					}
				}
			})
		}
		defer writers.Wait()
		for range streams {
			<-written
		}
		hf := holdfasttest.OpenOn(t, db(), stream.Feed(stream.FeedOptions{}))
		testkit.Run(t, hf)
		writers.Wait()
		testkit.Eventually(t, "the feed is complete", func() bool {
			all, _ := rest(t, hf, "", 0)
			return complete(context.Background(), hf, all, streams...) == nil
		})
	})
}

// TestSwitchingOnBesideAnOlderTransaction verifies that an append that began before the feed was known, and
// commits long after, is in the feed.
func TestSwitchingOnBesideAnOlderTransaction(t *testing.T) {
	t.Parallel()
	url := holdfasttest.PostgreSQL(t)
	before := holdfasttest.OpenOn(t, postgres.URL(url))
	write(t, before, "s", 1)
	written, release := make(chan struct{}, 10), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		err := before.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) error {
			if _, err := stream.Append(ctx, tx, "s", 0, named(1)...); err != nil {
				return err
			}
			written <- struct{}{}
			<-release
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-written
	hf := holdfasttest.OpenOn(t, postgres.URL(url), stream.Feed(stream.FeedOptions{}))
	testkit.Run(t, hf)
	arrived(t, hf, 1)
	close(release)
	done.Wait()
	if _, err := reactions.SweepAll(t.Context(), engine.Of(hf), engine.Of(hf).Hub().Wake); err != nil { // as the janitor does
		t.Fatal(err)
	}
	wantComplete(t, hf, arrived(t, hf, 2), "s")
}

// TestBatchesAreBounded verifies that a batch numbers no more than its limit, even of one stream with many
// events, that other streams have their turn before that one is done, and that each event is numbered once.
func TestBatchesAreBounded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		if err := feed.Open(t.Context(), engine.Of(hf)); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			write(t, hf, "long", 1000)
		}
		collectDue(t, hf)
		for _, name := range []string{"x", "y", "z"} {
			write(t, hf, name, 10)
		}
		collectDue(t, hf)
		at, err := engine.Of(hf).Partition(t.Context(), store.Read)
		if err != nil {
			t.Fatal(err)
		}
		heads := []int64{0}
		for {
			some, err := feed.Sequence(t.Context(), engine.Of(hf), at, feed.Batch{Streams: 3, Events: 700})
			if err != nil {
				t.Fatal(err)
			}
			if !some {
				break
			}
			head, err := feed.Head(t.Context(), engine.Of(hf))
			if err != nil {
				t.Fatal(err)
			}
			if last := heads[len(heads)-1]; head <= last || head > last+700 {
				t.Errorf("a batch moved the head from %d to %d", last, head)
			}
			heads = append(heads, head)
		}
		all, _ := rest(t, hf, "", 0)
		wantComplete(t, hf, all, "long", "x", "y", "z")
		if i := slices.IndexFunc(all, func(e stream.FeedEvent) bool { return e.Stream == "x" }); i > 1400 {
			t.Errorf("a short stream waited behind %d events of a long one", i)
		}
	})
}

func collectDue(t *testing.T, hf *holdfast.Engine) {
	t.Helper()
	for {
		some, err := reactions.CollectDue(t.Context(), engine.Of(hf), store.Partition{}, []string{feed.Reaction})
		if err != nil {
			t.Fatal(err)
		}
		if !some {
			return
		}
	}
}

// TestRepairsDoNotNumberAgain verifies that a feed whose watermarks are repeatedly set back during concurrent
// numbering, or that is removed and enabled again, gives no event a second position and causes no failure.
func TestRepairsDoNotNumberAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		if err := feed.Open(t.Context(), engine.Of(hf)); err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		var background, writers sync.WaitGroup
		forever := func(f func() error) {
			background.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := f(); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 4 {
			forever(func() error {
				_, err := feed.Step(context.Background(), engine.Of(hf), 0, feed.Batch{Streams: 2, Events: 5})
				return err
			})
		}
		forever(func() error {
			_, _, err := reactions.Repair(context.Background(), engine.Of(hf), "reset", "", reactions.Filter{Reaction: feed.Reaction})
			return err
		})
		streams := []string{"s0", "s1", "s2", "s3"}
		for _, name := range streams {
			writers.Go(func() {
				for range 50 {
					write(t, hf, name, 2)
				}
			})
		}
		writers.Wait()
		arrived(t, hf, 400)
		close(stop)
		background.Wait()
		all, _ := rest(t, hf, "", 0)
		wantComplete(t, hf, all, streams...)

		if _, err := reactions.Remove(t.Context(), engine.Of(hf), feed.Reaction); err != nil {
			t.Fatal(err)
		}
		write(t, hf, "s0", 1)
		if err := feed.Open(t.Context(), engine.Of(hf)); err != nil {
			t.Fatal(err)
		}
		stepAll(t, hf)
		all, _ = rest(t, hf, "", 0)
		wantComplete(t, hf, all, streams...)
		if head, err := feed.Head(t.Context(), engine.Of(hf)); err != nil || head != 401 {
			t.Errorf("401 events have positions up to %d (error %v)", head, err)
		}
	})
}

func stepAll(t *testing.T, hf *holdfast.Engine) {
	t.Helper()
	for some := true; some; {
		var err error
		if some, err = feed.Step(t.Context(), engine.Of(hf), 0, feed.DefaultBatch); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDroppedEventsArePassedOver verifies that events that their stream has dropped are no longer read,
// numbered or not, and that nothing waits for them.
func TestDroppedEventsArePassedOver(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		write(t, hf, "never", 5)
		write(t, hf, "s", 5)
		if err := stream.Truncate(t.Context(), hf, "never", 3); err != nil {
			t.Fatal(err)
		}
		if err := feed.Open(t.Context(), engine.Of(hf)); err != nil {
			t.Fatal(err)
		}
		if err := stream.Truncate(t.Context(), hf, "s", 2); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("truncation of events that are not in the feed yet: got error %v, want a conflict", err)
		}
		stepAll(t, hf)
		if err := stream.Truncate(t.Context(), hf, "s", 2); err != nil {
			t.Fatal(err)
		}
		all, next := rest(t, hf, "", 2)
		var got []string
		for _, e := range all {
			got = append(got, fmt.Sprint(e.Stream, e.Version))
		}
		slices.Sort(got)
		if want := []string{"never3", "never4", "s2", "s3", "s4"}; !slices.Equal(got, want) {
			t.Errorf("feed has %v, want %v", got, want)
		}
		if _, err := stream.GetFeedCursor(t.Context(), hf, "s", 1); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("a truncated event has a position (error %v)", err)
		}
		if head, err := stream.GetFeedHead(t.Context(), hf); err != nil || head != next {
			t.Errorf("reader is at %q, head of the feed is %q (error %v)", next, head, err)
		}
	})
}

// TestCrashOfTheFeed verifies that appended and numbered events are in the feed once and in order, whatever
// fault strikes where.
func TestCrashOfTheFeed(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{Pairs: true,
		Parts: func() []holdfast.Part { return []holdfast.Part{stream.Feed(stream.FeedOptions{})} },
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			if err := feed.Open(ctx, engine.Of(hf)); err != nil {
				return err
			}
			for _, want := range []stream.Version{stream.None, 1} {
				if _, err := stream.Append(ctx, hf, "s", want, named(2)...); err != nil && !errors.Is(err, holdfast.ErrConcurrency) {
					return err
				}
				// One event of two, which Settle does not do: a batch that is full leaves the rest.
				if _, err := feed.Step(ctx, engine.Of(hf), 0, feed.Batch{Streams: 1, Events: 1}); err != nil {
					return err
				}
			}
			return nil
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			all, err := readSome(ctx, hf, "", 0)
			if err != nil {
				return err
			}
			head, err := feed.Head(ctx, engine.Of(hf))
			if head != 4 {
				err = errors.Join(err, fmt.Errorf("4 events have positions up to %d", head))
			}
			return errors.Join(err, complete(ctx, hf, all, "s"))
		},
	})
}
