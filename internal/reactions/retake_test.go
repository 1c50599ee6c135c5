package reactions_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/stream"
)

// takeAs takes all streams of the reaction r that a holder can get.
func takeAs(t *testing.T, hf *holdfast.Engine, holder string) (leases []*reactions.Lease, names []string) {
	t.Helper()
	ctx := context.Background()
	if _, err := reactions.CollectDue(ctx, engine.Of(hf), store.Partition{}, []string{"r"}); err != nil {
		t.Fatal(err)
	}
	leases, err := reactions.Take(ctx, engine.Of(hf), reactions.TakeArgs{Reactions: []reactions.Wanted{{Name: "r", Lease: time.Minute}}, Holder: holder, Limit: 100, Crashed: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leases {
		names = append(names, l.Stream)
	}
	slices.Sort(names)
	return leases, names
}

// crash lets all leases expire, and sweeps them.
func crash(t *testing.T, hf *holdfast.Engine) {
	t.Helper()
	holdfasttest.Advance(t, hf, time.Hour)
	sweep(t, hf)
}

// TestTheStreamsOfACrashedWorkerAreRetakenTogether verifies that the next worker takes
// all streams of a crashed worker at once, that no crash is counted, and that unfinished
// events are delivered as a further attempt.
func TestTheStreamsOfACrashedWorkerAreRetakenTogether(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		enlist(t, hf, "r")
		for i := range 60 {
			emit(t, hf, fmt.Sprintf("s%02d", i), "a")
		}
		if _, names := takeAs(t, hf, "first"); len(names) != 60 {
			t.Fatalf("took %d streams, want 60", len(names))
		}
		crash(t, hf)
		leases, names := takeAs(t, hf, "second")
		if len(names) != 60 {
			t.Fatalf("after the crash the next holder took %d of 60 streams", len(names))
		}
		for _, l := range leases {
			if l.Crashes != 0 || l.Attempt() != 2 {
				t.Fatalf("%s was retaken with %d crashes, attempt %d", l.Stream, l.Crashes, l.Attempt())
			}
			if err := ack(hf, l); err != nil {
				t.Fatal(err)
			}
		}
		emit(t, hf, "s00", "b")
		if leases, _ := takeAs(t, hf, "third"); len(leases) != 1 || leases[0].Group != 0 || leases[0].Attempt() != 1 {
			t.Errorf("after the end of the lease took %+v", leases)
		}
	})
}

// TestACrashedGroupIsHalved verifies that an event which crashes its worker each time is
// found by halving: all other streams are handled on the way without a crash counted
// against them, and only the poisoned stream is blocked, after the allowed number of
// crashes on its own.
func TestACrashedGroupIsHalved(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		enlist(t, hf, "r")
		for i := range 8 {
			emit(t, hf, fmt.Sprint("s", i), "a")
		}
		var groups []int
		for range 30 {
			leases, names := takeAs(t, hf, fmt.Sprint("worker ", len(groups)))
			if len(leases) == 0 {
				break
			}
			if slices.Contains(names, "s3") {
				groups = append(groups, len(names))
				crash(t, hf)
				continue
			}
			for _, l := range leases {
				if l.Crashes > 0 {
					t.Errorf("a crash was counted for %s", l.Stream)
				}
				if err := ack(hf, l); err != nil {
					t.Fatal(err)
				}
			}
		}
		// first take, one group, halved three times, and then alone until it is blocked the
		// fifth time
		if want := []int{8, 8, 4, 2, 1, 1, 1, 1, 1}; !slices.Equal(groups, want) {
			t.Errorf("sizes of the crashed groups are %v, want %v", groups, want)
		}
		for i := range 8 {
			p := positionOf(t, hf, "r", fmt.Sprint("s", i))
			if poison := i == 3; p.Blocked != poison || (p.Watermark == 0) == poison || p.Crashes != map[bool]int{true: 5}[poison] {
				t.Errorf("position of s%d is %+v", i, p)
			}
		}
	})
}

// TestAHolderHasOneGroupInHand verifies that a holder gets no more crashed streams than
// their group allows, over any number of takes, and that other holders get theirs.
func TestAHolderHasOneGroupInHand(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		enlist(t, hf, "r")
		for i := range 4 {
			emit(t, hf, fmt.Sprint("s", i), "a")
		}
		for range 2 { // two holders may take them then
			if _, names := takeAs(t, hf, "w"); len(names) != 4 {
				t.Fatalf("took %q, want 4 streams", names)
			}
			crash(t, hf)
		}
		first, _ := takeAs(t, hf, "a")
		if _, more := takeAs(t, hf, "a"); len(first) != 2 || len(more) != 0 {
			t.Errorf("took %d streams, then %d more, want 2 and 0", len(first), len(more))
		}
		emit(t, hf, "new", "a")
		if _, names := takeAs(t, hf, "a"); !slices.Equal(names, []string{"new"}) {
			t.Errorf("took %q, want the stream new", names)
		}
		if _, names := takeAs(t, hf, "b"); len(names) != 2 {
			t.Errorf("another holder took %q, want 2 streams", names)
		}
	})
}

// TestALostHandOutIsNoCrash verifies that streams handed out to a remote holder that
// never called are not part of a crash of that holder: they form no group, halve none,
// count no crash and do not count for the size of a group; and that a requested reset is
// done at the end of such a lease too.
func TestALostHandOutIsNoCrash(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		enlist(t, hf, "r")
		for i := range 6 {
			emit(t, hf, fmt.Sprint("s", i), "a")
		}
		handOut := func(heard ...string) {
			t.Helper()
			if _, err := reactions.CollectDue(ctx, engine.Of(hf), store.Partition{}, []string{"r"}); err != nil {
				t.Fatal(err)
			}
			leases, err := reactions.Take(ctx, engine.Of(hf), reactions.TakeArgs{Reactions: []reactions.Wanted{{Name: "r", Lease: time.Minute}}, Holder: "w", Limit: 100, Crashed: 100, Elsewhere: true})
			if err != nil || len(leases) != 6 {
				t.Fatalf("took %d streams, error %v, want 6", len(leases), err)
			}
			for _, l := range leases {
				if slices.Contains(heard, l.Stream) {
					if _, err := reactions.RenewOne(ctx, engine.Of(hf), l, time.Minute, 0); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		stand := func(want string) {
			t.Helper()
			var got []string
			for i := range 6 {
				p := positionOf(t, hf, "r", fmt.Sprint("s", i))
				got = append(got, fmt.Sprint(p.Crashes, "+", p.LostHandOuts))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("crashes and lost deliveries are %v, want %s", got, want)
			}
		}
		handOut()
		crash(t, hf)
		stand("[0+1 0+1 0+1 0+1 0+1 0+1]")
		handOut("s0") // the other hand-outs are lost, so it is alone
		crash(t, hf)
		stand("[1+0 0+2 0+2 0+2 0+2 0+2]")
		holdfasttest.Advance(t, hf, time.Minute)
		leases, _ := takeAs(t, hf, "here")
		for _, l := range leases {
			if want := map[string]int{"s0": 1}[l.Stream]; l.Group != want {
				t.Errorf("%s has group size %d, want %d", l.Stream, l.Group, want)
			}
			if err := ack(hf, l); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 6 {
			emit(t, hf, fmt.Sprint("s", i), "b")
		}
		handOut("s0", "s1", "s2", "s3")
		crash(t, hf) // a group of four
		stand("[0+0 0+0 0+0 0+0 0+1 0+1]")
		handOut("s0", "s1") // two are lost now, and two crash
		crash(t, hf)
		stand("[0+0 0+0 0+1 0+1 0+2 0+2]")
		holdfasttest.Advance(t, hf, time.Minute)
		groups := make(map[string]int)
		for _, holder := range []string{"a", "b", "c"} {
			leases, _ := takeAs(t, hf, holder)
			for _, l := range leases {
				groups[l.Stream] = l.Group
			}
		}
		if want := (map[string]int{"s0": 1, "s1": 1, "s2": 4, "s3": 4, "s4": 0, "s5": 0}); !maps.Equal(groups, want) {
			t.Errorf("group sizes are %v, want %v", groups, want)
		}
		if touched, _, err := reactions.Repair(ctx, engine.Of(hf), "reset", "", reactions.Filter{}); err != nil || len(touched) != 6 {
			t.Fatalf("reset touched %+v, error %v, want 6 positions", touched, err)
		}
		crash(t, hf)
		handOut()
		crash(t, hf)
		stand("[0+1 0+1 0+1 0+1 0+1 0+1]")
		handOut()
		if touched, _, err := reactions.Repair(ctx, engine.Of(hf), "reset", "", reactions.Filter{}); err != nil || len(touched) != 6 || !touched[0].ResetRequested {
			t.Fatalf("reset touched %+v, error %v, want 6 positions with a requested reset", touched, err)
		}
		crash(t, hf)
		stand("[0+0 0+0 0+0 0+0 0+0 0+0]")
		if p := positionOf(t, hf, "r", "s5"); p.Watermark != -1 || p.Generation != 2 || p.ResetRequested {
			t.Errorf("after the end of the lease the position is %+v", p)
		}
		handOut() // at once
	})
}

// TestAResetOfAStreamInHand verifies that the reset of a leased stream is stored and
// done when that lease ends, however it ends; that it is reported once; that a renewal
// reports it and, like progress, no longer extends the lease; that the stream is not
// taken before; and that every event is delivered again as a new operation.
func TestAResetOfAStreamInHand(t *testing.T) {
	ends := map[string]func(t *testing.T, hf *holdfast.Engine, l *reactions.Lease) error{
		"is acknowledged": func(t *testing.T, hf *holdfast.Engine, l *reactions.Lease) error { return ack(hf, l) },
		"is given back": func(t *testing.T, hf *holdfast.Engine, l *reactions.Lease) error {
			return second(reactions.AckOne(context.Background(), engine.Of(hf), reactions.End{Lease: l, Done: l.Watermark, Unfinished: true}))
		},
		"fails": func(t *testing.T, hf *holdfast.Engine, l *reactions.Lease) error {
			return second(reactions.AckOne(context.Background(), engine.Of(hf), reactions.End{Lease: l, Done: l.Watermark, Error: "no", Failing: 1}))
		},
		"is blocked": func(t *testing.T, hf *holdfast.Engine, l *reactions.Lease) error {
			if reactions.Block(context.Background(), engine.Of(hf), l, l.Watermark, 1, "no", 1, true) == nil {
				return errors.New("the late block succeeded")
			}
			return nil
		},
		"is skipped": func(t *testing.T, hf *holdfast.Engine, l *reactions.Lease) error {
			if reactions.Block(context.Background(), engine.Of(hf), l, l.Watermark, 1, "no", 1, false) == nil {
				return errors.New("the late skip succeeded")
			}
			return nil
		},
		"expires": func(t *testing.T, hf *holdfast.Engine, l *reactions.Lease) error { crash(t, hf); return nil },
	}
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		enlist(t, hf, "r")
		generation := int64(0)
		for how, end := range ends {
			emit(t, hf, "s", "a", "b")
			l := one(t, hf, "r")
			for range 2 { // requesting it again is the same reset
				touched, held, err := reactions.Repair(ctx, engine.Of(hf), "reset", "", reactions.Filter{})
				if err != nil || len(held) != 0 || len(touched) != 1 || !touched[0].ResetRequested || touched[0].Holder == "" {
					t.Fatalf("reset touched %+v, held %+v, error %v", touched, held, err)
				}
			}
			if more := takeByHand(t, hf, "r"); len(more) != 0 {
				t.Errorf("another holder took the stream: %+v", more)
			}
			if _, err := reactions.AckOne(ctx, engine.Of(hf), reactions.End{Lease: l, Done: l.Watermark, Retain: true, Extend: time.Hour}); err != nil {
				t.Errorf("progress under a lease that %s: %v", how, err)
			}
			r, err := reactions.RenewOne(ctx, engine.Of(hf), l, time.Hour, 0)
			if err != nil || !r.CancelRequested || !r.Until.Equal(l.Until) {
				t.Errorf("renewal returned %+v, error %v, want until %s and a cancel request", r, err, l.Until)
			}
			if err := end(t, hf, l); err != nil {
				t.Errorf("a lease that %s: %v", how, err)
			}
			generation++
			p := positionOf(t, hf, "r", "s")
			if p.Watermark != -1 || p.Generation != generation || p.Blocked || p.Failures != 0 || p.Crashes != 0 || p.Holder != "" || p.ResetRequested {
				t.Errorf("after a lease that %s the position is %+v", how, p)
			}
			checkFenced(t, hf, l)
			next := one(t, hf, "r")
			if len(next.Events) == 0 || next.Events[0].Version != 0 || next.Generation != generation || next.Attempt() != 1 {
				t.Errorf("after a lease that %s the next lease is %+v", how, next)
			}
			if err := ack(hf, next); err != nil {
				t.Error(err)
			}
		}
		names, data := historyOf(t, hf, "r", "s")
		for i, name := range names {
			if name != "reset" || data[i]["generation"] != float64(i+1) || data[i]["pending"] != true {
				t.Errorf("history has event %s with data %v", name, data[i])
			}
		}
		if len(names) != len(ends) {
			t.Errorf("got history %q", names)
		}
	})
}

// TestAResetStopsAWorker verifies that a worker cancels a body whose stream is reset,
// and that the stream then starts again, although the body would not have ended by
// itself. No crash and no failure is counted.
func TestAResetStopsAWorker(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		begun := make(chan struct{}, 10)
		first := make(chan struct{}, 1)
		first <- struct{}{}
		hf := startNode(t, databaseAt(db), briskly, stream.React("r", stream.Select{Pattern: "^s$"}, func(ctx context.Context, d *stream.Delivery) error {
			begun <- struct{}{}
			select {
			case <-first:
				<-ctx.Done()
				return ctx.Err()
			default:
				return nil
			}
		}, stream.Options{Lease: 3 * time.Second}))
		emit(t, hf, "s", "a")
		<-begun
		if done, err := stream.Reset(t.Context(), hf, "r", stream.PositionFilter{}); err != nil || len(done.Pending) != 1 || len(done.Repaired)+len(done.Leased) != 0 {
			t.Fatalf("reset returned %+v, error %v", done, err)
		}
		if p := waitForPosition(t, hf, "r", "s", "is done", handled(0)); p.Generation != 1 || p.Crashes != 0 || p.Failures != 0 || p.ResetRequested {
			t.Errorf("got position %+v", p)
		}
	})
}

// TestAnExpiredLeaseIsEndedByANodeThatRuns verifies that a node detects when a lease of
// another node expires and then does the work, although its janitor does not run.
func TestAnExpiredLeaseIsEndedByANodeThatRuns(t *testing.T) {
	testlevel.Long(t)
	onEach(t, func(t *testing.T, db string) {
		hf := openNode(t, databaseAt(db), holdfast.Config{SweepEvery: time.Hour}, stream.React("r", stream.Select{Pattern: "^s$"},
			func(context.Context, *stream.Delivery) error { return nil }, stream.Options{}))
		emit(t, hf, "s", "a")
		one(t, hf, "r")
		hf.start(t)
		holdfasttest.Advance(t, hf.Engine, time.Hour)
		waitForPosition(t, hf, "r", "s", "is done", handled(0))
	})
}

// TestASmallGroupInHandBoundsALargerOne verifies that a holder with a stream of a small
// group gets none of a larger group beside it: a crash caused by the larger group would
// count against the small one until it is blocked.
func TestASmallGroupInHandBoundsALargerOne(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		enlist(t, hf, "r")
		emit(t, hf, "innocent", "a")
		takeAs(t, hf, "w")
		crash(t, hf) // a group of one
		innocent, names := takeAs(t, hf, "a")
		if !slices.Equal(names, []string{"innocent"}) {
			t.Fatalf("took %q, want the stream innocent", names)
		}
		for i := range 4 {
			emit(t, hf, fmt.Sprint("s", i), "a")
		}
		if _, names := takeAs(t, hf, "b"); len(names) != 4 {
			t.Fatalf("took %q, want 4 streams", names)
		}
		holdfasttest.Advance(t, hf, 50*time.Second)
		if _, err := reactions.RenewOne(context.Background(), engine.Of(hf), innocent[0], 10*time.Minute, 0); err != nil {
			t.Fatal(err)
		}
		holdfasttest.Advance(t, hf, 20*time.Second)
		sweep(t, hf)
		if _, names := takeAs(t, hf, "a"); len(names) != 0 {
			t.Errorf("took %q beside a group of one, want none", names)
		}
		if _, names := takeAs(t, hf, "c"); len(names) != 4 {
			t.Errorf("another holder took %q, want 4 streams", names)
		}
		if err := ack(hf, innocent[0]); err != nil {
			t.Error(err)
		}
	})
}

// TestAResetDoesNotWaitForWhatWasDeferred verifies that a stream which is reset by an
// end that defers it starts again at once.
func TestAResetDoesNotWaitForWhatWasDeferred(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		enlist(t, hf, "r")
		emit(t, hf, "s", "a", "b")
		l := one(t, hf, "r")
		if _, _, err := reactions.Repair(ctx, engine.Of(hf), "reset", "", reactions.Filter{}); err != nil {
			t.Fatal(err)
		}
		if _, err := reactions.AckOne(ctx, engine.Of(hf), reactions.End{Lease: l, Done: l.Watermark, Unfinished: true, Delay: 24 * time.Hour}); err != nil {
			t.Fatal(err)
		}
		if next := takeByHand(t, hf, "r"); len(next) != 1 {
			t.Errorf("the stream was not taken, its position is %+v", positionOf(t, hf, "r", "s"))
		}
	})
}

// TestASkipTakesNoResetAway verifies that a skip of a stream whose lease has expired,
// and whose reset is requested, leaves the reset to the end of the lease.
func TestASkipTakesNoResetAway(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		enlist(t, hf, "r")
		emit(t, hf, "s", "a", "b")
		l := one(t, hf, "r")
		if _, err := reactions.AckOne(ctx, engine.Of(hf), reactions.End{Lease: l, Done: 0, Error: "no", Failing: 1}); err != nil {
			t.Fatal(err)
		}
		one(t, hf, "r")
		if _, _, err := reactions.Repair(ctx, engine.Of(hf), "reset", "", reactions.Filter{}); err != nil {
			t.Fatal(err)
		}
		holdfasttest.Advance(t, hf, time.Hour)
		if _, _, err := reactions.Repair(ctx, engine.Of(hf), "skip", "", reactions.Filter{}); err != nil {
			t.Fatal(err)
		}
		sweep(t, hf)
		if p := positionOf(t, hf, "r", "s"); p.Watermark != -1 || p.Generation != 1 || p.ResetRequested {
			t.Errorf("got position %+v", p)
		}
	})
}

// TestASweepThatHangsStopsNoPulse verifies that work without a notification is found
// while a sweep of expired leases, which calls user code, hangs.
func TestASweepThatHangsStopsNoPulse(t *testing.T) {
	testlevel.Long(t)
	onEach(t, func(t *testing.T, db string) {
		react := stream.React("r", stream.Select{Pattern: "^s"}, func(context.Context, *stream.Delivery) error { return nil }, stream.Options{})
		hf := openNode(t, databaseAt(db), holdfast.Config{SweepEvery: time.Hour}, react)
		hangs, release := make(chan struct{}), make(chan struct{})
		engine.Of(hf).Leases("hangs", func(context.Context, bool) (int, error) {
			close(hangs)
			<-release
			return 0, nil
		}, wake.WorkKind{Kind: wake.HeldReaction})
		emit(t, hf, "s", "a")
		one(t, hf, "r")
		other := openNode(t, databaseAt(db), holdfast.Config{})
		hf.start(t)
		t.Cleanup(func() { close(release) })       // before the stop, which waits for it
		_ = clock.Wait(t.Context(), 5*time.Second) // until its poller is idle
		holdfasttest.Advance(t, hf.Engine, time.Hour)
		<-hangs
		waitForPosition(t, hf, "r", "s", "is done", handled(0))
		_ = clock.Wait(t.Context(), 6*time.Second) // until it is idle again
		emit(t, other, "s2", "a")
		waitForPosition(t, hf, "r", "s2", "is done", handled(0))
	})
}
