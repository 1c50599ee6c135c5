package reactions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/stream"
)

// enlist registers a reaction without a worker; the tests handle its events by hand.
func enlist(t testing.TB, hf *holdfast.Engine, name string, change ...func(*reactions.Definition)) {
	t.Helper()
	d := reactions.Definition{Name: name, Options: reactions.DefaultOptions()}
	for _, c := range change {
		c(&d)
	}
	if _, err := reactions.Register(context.Background(), engine.Of(hf), d); err != nil {
		t.Fatal(err)
	}
}

// one takes the only due stream.
func one(t testing.TB, d holdfast.Doer, reaction string) *reactions.Lease {
	t.Helper()
	all := takeByHand(t, d, reaction)
	if len(all) != 1 {
		t.Fatalf("took %d streams for %s, want 1", len(all), reaction)
	}
	return all[0]
}

// ack ends a lease with all events handled.
func ack(d holdfast.Doer, l *reactions.Lease) error {
	_, err := reactions.AckOne(context.Background(), store.DoerOf(d), reactions.End{Lease: l, Done: l.Handled()})
	return err
}

// blockAt blocks a stream at a version.
func blockAt(t testing.TB, d holdfast.Doer, l *reactions.Lease, version int64) {
	t.Helper()
	if err := reactions.Block(context.Background(), store.DoerOf(d), l, version-1, version, "no", 4, true); err != nil {
		t.Fatal(err)
	}
}

// repair repairs, and checks that the returned positions match a query.
func repair(t testing.TB, hf *holdfast.Engine, how string, f reactions.Filter) (touched, held []string) {
	t.Helper()
	ctx := context.Background()
	some, others, err := reactions.Repair(ctx, engine.Of(hf), how, "", f)
	if err != nil {
		t.Fatalf("%s: %v", how, err)
	}
	for _, p := range some {
		now, _, err := reactions.Query(ctx, engine.Of(hf), reactions.Filter{Reaction: p.Reaction, Streams: []string{p.Stream}}, reactions.Position{}, 1)
		if err != nil || len(now) != 1 {
			t.Fatal(now, err)
		}
		if p != now[0] {
			t.Errorf("%s: repair returned %+v, but the position is %+v", how, p, now[0])
		}
		touched = append(touched, p.Reaction+" "+p.Stream)
	}
	for _, p := range others {
		held = append(held, p.Reaction+" "+p.Stream)
	}
	return touched, held
}

func wantNames(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestRepairsAndHolds verifies that repairs other than a reset do not change leased
// positions, return them as held and do not disturb their holders; that they end an
// expired lease, so that its holder can write nothing more; and that unblock changes
// only blocked positions.
func TestRepairsAndHolds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		enlist(t, hf, "r")
		for _, how := range []string{"skip", "unblock"} {
			emit(t, hf, "s", "a", "b")
			l := one(t, hf, "r")
			if _, err := reactions.AckOne(ctx, engine.Of(hf), reactions.End{Lease: l, Done: l.Watermark, Error: "no", Failing: l.Watermark + 1}); err != nil { // there is an event to skip
				t.Fatal(err)
			}
			l = one(t, hf, "r")
			touched, held := repair(t, hf, how, reactions.Filter{})
			wantNames(t, how+" touched", touched)
			if how != "unblock" {
				wantNames(t, how+" held", held, "r s")
			}
			if err := ack(hf, l); err != nil {
				t.Errorf("ack of the holder after a refused %s: %v", how, err)
			}
		}
		for _, how := range []string{"reset", "skip"} {
			emit(t, hf, "s", "c", "d") // one to skip, and one to continue with
			l := one(t, hf, "r")
			if how == "skip" {
				if _, err := reactions.AckOne(ctx, engine.Of(hf), reactions.End{Lease: l, Done: l.Watermark, Error: "no", Failing: l.Watermark + 1}); err != nil {
					t.Fatal(err)
				}
				l = one(t, hf, "r")
			}
			holdfasttest.Advance(t, hf, time.Hour)
			checkFenced(t, hf, l) // it expired, and no sweep has run yet
			touched, held := repair(t, hf, how, reactions.Filter{})
			wantNames(t, how+" touched", touched, "r s")
			wantNames(t, how+" held", held)
			before := *positionOf(t, hf, "r", "s")
			checkFenced(t, hf, l)
			if after := *positionOf(t, hf, "r", "s"); after != before {
				t.Errorf("%s: a late holder changed the position: got %+v, want %+v", how, after, before)
			}
			next := one(t, hf, "r")
			if next.Epoch <= l.Epoch+1 {
				t.Errorf("%s: the epoch went from %d to %d, want it to be incremented in between", how, l.Epoch, next.Epoch)
			}
			checkFenced(t, hf, l)
			if err := ack(hf, next); err != nil {
				t.Error(err)
			}
		}
	})
}

// checkFenced tries every call of a holder, and expects each to be refused.
func checkFenced(t testing.TB, hf *holdfast.Engine, l *reactions.Lease) {
	t.Helper()
	ctx := context.Background()
	for what, err := range map[string]error{
		"ack":   ack(hf, l),
		"fail":  second(reactions.AckOne(ctx, engine.Of(hf), reactions.End{Lease: l, Done: l.Watermark, Error: "late", Failing: l.Watermark + 1})),
		"block": reactions.Block(ctx, engine.Of(hf), l, l.Watermark, l.Watermark+1, "late", 1, true),
		"skip":  reactions.Block(ctx, engine.Of(hf), l, l.Watermark, l.Watermark+1, "late", 1, false),
	} {
		if fault.CodeOf(err) != fault.LeaseLost {
			t.Errorf("late %s returned %v, want LEASE_LOST", what, err)
		}
	}
	if held, err := reactions.Renew(ctx, engine.Of(hf), []*reactions.Lease{l}, func(*reactions.Lease) time.Duration { return time.Minute }); err != nil || !held[0].Until.IsZero() {
		t.Errorf("late renewal returned %v, error %v", held, err)
	}
	err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := stream.Append(ctx, tx, "late", stream.Any, stream.Event{Name: "late"}); err != nil {
			return err
		}
		return ack(tx, l)
	})
	if all, read := holdfast.Collect(stream.Read(ctx, hf, "late", 0)); fault.CodeOf(err) != fault.LeaseLost || read != nil || len(all) != 0 {
		t.Errorf("late commit returned %v, and wrote %v (%v)", err, all, read)
	}
}

func second[A any](_ A, err error) error { return err }

// TestWhatARepairTouches verifies which positions a repair selects: of one reaction or
// of all, by name, by pattern, histories or not, blocked or not; that each returned
// position matches a query; and that an unknown reaction, an unknown repair and an
// invalid pattern are refused.
func TestWhatARepairTouches(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		enlist(t, hf, "one", func(d *reactions.Definition) { d.Streams = "^[ab]" })
		enlist(t, hf, "own", func(d *reactions.Definition) { d.Streams = `^\$entity/` })
		enlist(t, hf, "two", func(d *reactions.Definition) { d.Streams = "^[ab]" })
		for _, name := range []string{"a-1", "a-2", "b-1"} {
			emit(t, hf, name, "x", "y", "z")
		}
		if _, err := entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "a", ID: "1", Status: "new"}); err != nil {
			t.Fatal(err)
		}
		blockAll := func() {
			for _, l := range takeByHand(t, hf, "one", "own", "two") {
				blockAt(t, hf, l, l.Watermark+1)
			}
		}
		const a1, a2, b1, own = "one a-1", "one a-2", "one b-1", "own $entity/a/1"
		for _, c := range []struct {
			f    reactions.Filter
			want []string
		}{
			{reactions.Filter{}, []string{a1, a2, b1, own, "two a-1", "two a-2", "two b-1"}},
			{reactions.Filter{Reaction: "one"}, []string{a1, a2, b1}},
			{reactions.Filter{Streams: []string{"a-2", "nowhere"}}, []string{a2, "two a-2"}},
			{reactions.Filter{Reaction: "one", Pattern: "^a-"}, []string{a1, a2}},
			{reactions.Filter{Pattern: "1$"}, []string{a1, b1, own, "two a-1", "two b-1"}},
			{reactions.Filter{Pattern: "1$", Own: new(true)}, []string{own}},
			{reactions.Filter{Reaction: "one", Own: new(false)}, []string{a1, a2, b1}},
			{reactions.Filter{Reaction: "one", Own: new(true)}, nil},
		} {
			for _, how := range []string{"unblock", "reset", "skip"} {
				blockAll()
				touched, held := repair(t, hf, how, c.f)
				wantNames(t, fmt.Sprintf("%s %+v", how, c.f), touched, c.want...)
				wantNames(t, "held", held)
				repair(t, hf, "reset", reactions.Filter{}) // for the next round
			}
		}
		blockAt(t, hf, takeSome(t, hf, 1, 0, "two")[0], 0)
		touched, _ := repair(t, hf, "reset", reactions.Filter{Blocked: new(false), Reaction: "two"})
		if len(touched) != 2 {
			t.Errorf("repair of streams that are not blocked touched %v, want 2", touched)
		}
		if touched, _, err := reactions.Repair(ctx, engine.Of(hf), "unblock", "", reactions.Filter{Blocked: new(false)}); !errors.Is(err, holdfast.ErrValidation) || len(touched) != 0 {
			t.Errorf("unblock of streams that are not blocked: touched %v, error %v, want none and a validation error", touched, err)
		}
		touched, _ = repair(t, hf, "unblock", reactions.Filter{})
		if len(touched) != 1 {
			t.Errorf("repair of blocked streams touched %v, want 1", touched)
		}
		if _, _, err := reactions.Repair(ctx, engine.Of(hf), "unblock", "", reactions.Filter{Reaction: "none"}); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("unknown reaction: got error %v, want NOT_FOUND", err)
		}
		if _, _, err := reactions.Repair(ctx, engine.Of(hf), "mend", "", reactions.Filter{}); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("unknown repair: got error %v, want a validation error", err)
		}
		if _, _, err := reactions.Repair(ctx, engine.Of(hf), "reset", "", reactions.Filter{Pattern: "("}); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("invalid pattern: got error %v, want a validation error", err)
		}
	})
}

// TestWhereARepairGoesOn verifies where a reaction continues: after unblock with the
// failed event, after skip with the next one, after reset with the first one as a new
// operation; and that each repair writes its event.
func TestWhereARepairGoesOn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		enlist(t, hf, "r")
		emit(t, hf, "s", "0", "1", "2", "3", "4")
		versions := func(l *reactions.Lease) (all []int64) {
			for _, e := range l.Events {
				all = append(all, e.Version)
			}
			return all
		}
		l := one(t, hf, "r")
		operation := l.Operation(2)
		blockAt(t, hf, l, 2)
		if err := reactions.Block(context.Background(), engine.Of(hf), l, 1, 2, "no", 4, true); err != nil {
			t.Errorf("second block under the same epoch: %v", err)
		}
		if got := takeByHand(t, hf, "r"); len(got) != 0 {
			t.Fatalf("a blocked stream was taken: %+v", got[0])
		}
		repair(t, hf, "unblock", reactions.Filter{Reaction: "r"})
		l = one(t, hf, "r")
		if !slices.Equal(versions(l), []int64{2, 3, 4}) || l.Operation(2) != operation || l.Attempt() != 1 {
			t.Errorf("after unblock: got versions %v, operation %s, attempt %d", versions(l), l.Operation(2), l.Attempt())
		}
		blockAt(t, hf, l, 2)
		repair(t, hf, "skip", reactions.Filter{Reaction: "r"})
		l = one(t, hf, "r")
		if !slices.Equal(versions(l), []int64{3, 4}) {
			t.Errorf("after skip: got versions %v, want 3 and 4", versions(l))
		}
		if err := ack(hf, l); err != nil {
			t.Fatal(err)
		}
		repair(t, hf, "reset", reactions.Filter{Reaction: "r"})
		l = one(t, hf, "r")
		if !slices.Equal(versions(l), []int64{0, 1, 2, 3, 4}) || l.Operation(2) == operation || l.Generation != 1 {
			t.Errorf("after reset: got versions %v, operation %s", versions(l), l.Operation(2))
		}
		if err := ack(hf, l); err != nil {
			t.Fatal(err)
		}
		repair(t, hf, "skip", reactions.Filter{Reaction: "r"})    // nothing failed
		repair(t, hf, "unblock", reactions.Filter{Reaction: "r"}) // nothing is blocked
		names, _ := historyOf(t, hf, "r", "s")
		wantNames(t, "history", names, "blocked", "unblocked", "blocked", "skipped", "reset")
	})
}

// TestARemovalOfNothingIsNone verifies that removing a missing reaction does not change
// the registry: otherwise every node would read it again.
func TestARemovalOfNothingIsNone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		enlist(t, hf, "r")
		at, err := engine.Of(hf).Partition(ctx, store.Read)
		if err != nil {
			t.Fatal(err)
		}
		before, err := engine.Of(hf).Registry(ctx, at, true)
		if err != nil {
			t.Fatal(err)
		}
		if removed, err := reactions.Remove(ctx, engine.Of(hf), "other"); err != nil || removed {
			t.Errorf("removal of an unknown reaction returned %t, error %v, want false", removed, err)
		}
		if after, err := engine.Of(hf).Registry(ctx, at, true); err != nil || after.Revision != before.Revision {
			t.Errorf("registry revision was %d and is %d, want it unchanged, error %v", before.Revision, after.Revision, err)
		}
		emit(t, hf, "s", "a") // uses the current registry
		one(t, hf, "r")
	})
}

// TestEpochsGrowOverRemoveAndRegister verifies that epochs never go back, even if a
// reaction is removed and registered again under its name: a holder of the old one can
// write nothing.
func TestEpochsGrowOverRemoveAndRegister(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		enlist(t, hf, "r")
		emit(t, hf, "s", "a")
		last := int64(-1)
		for range 4 {
			l := one(t, hf, "r")
			if l.Epoch <= last {
				t.Errorf("the epoch went from %d to %d, want a higher one", last, l.Epoch)
			}
			if removed, err := reactions.Remove(ctx, engine.Of(hf), "r"); err != nil || !removed {
				t.Fatalf("removal returned %t, error %v, want true", removed, err)
			}
			checkFenced(t, hf, l)
			if again, err := reactions.Remove(ctx, engine.Of(hf), "r"); err != nil || again {
				t.Errorf("second removal returned %t, error %v, want false", again, err)
			}
			enlist(t, hf, "r")
			checkFenced(t, hf, l)
			next := one(t, hf, "r")
			if next.Epoch <= l.Epoch {
				t.Errorf("the epoch went from %d to %d, want a higher one", l.Epoch, next.Epoch)
			}
			checkFenced(t, hf, l)
			if _, err := reactions.AckOne(ctx, engine.Of(hf), reactions.End{Lease: next, Done: next.Watermark, Unfinished: true}); err != nil {
				t.Fatal(err)
			}
			checkFenced(t, hf, l)
			last = next.Epoch
		}
	})
}

// TestARepairTellsHowAStreamStandsNow verifies that the positions returned by a repair
// match a query, also for a due stream, whose due time the repair changes.
func TestARepairTellsHowAStreamStandsNow(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		enlist(t, hf, "r")
		emit(t, hf, "s", "a")
		l := one(t, hf, "r")
		if _, err := reactions.AckOne(context.Background(), engine.Of(hf), reactions.End{Lease: l, Done: -1, Error: "no", Failing: 0, Delay: time.Hour}); err != nil {
			t.Fatal(err)
		}
		done, err := stream.Reset(context.Background(), hf, "*", stream.PositionFilter{})
		if err != nil || len(done.Repaired) != 1 {
			t.Fatal(done, err)
		}
		if now := *positionOf(t, hf, "r", "s"); done.Repaired[0] != now {
			t.Errorf("repair returned %+v, but the position is %+v", done.Repaired[0], now)
		}
	})
}

// TestALateAckChangesNothing verifies that an ack after the release of its lease does
// not change the crashes and the error, although it looks like a repeated ack because
// its version was recorded before.
func TestALateAckChangesNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		enlist(t, hf, "r")
		emit(t, hf, "s", "a", "b")
		l := one(t, hf, "r")
		if _, err := reactions.AckOne(ctx, engine.Of(hf), reactions.End{Lease: l, Done: 0, Retain: true}); err != nil {
			t.Fatal(err)
		}
		holdfasttest.Advance(t, hf, time.Hour)
		if n, err := reactions.SweepAll(ctx, engine.Of(hf), func([]string) {}); err != nil || n != 1 {
			t.Fatal(n, err)
		}
		before := *positionOf(t, hf, "r", "s")
		_, _ = reactions.AckOne(ctx, engine.Of(hf), reactions.End{Lease: l, Done: 0})
		if after := *positionOf(t, hf, "r", "s"); after != before {
			t.Errorf("a late holder changed the position: got %+v, want %+v", after, before)
		}
	})
}

// TestProgressExtendsAHold verifies that an ack that keeps its lease extends it:
// renewals may find the row locked by the holder's own transactions each time.
func TestProgressExtendsAHold(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		enlist(t, hf, "r")
		emit(t, hf, "s", "a", "b", "c", "d")
		l := one(t, hf, "r")
		for v := range int64(4) {
			end := reactions.End{Lease: l, Done: v, Retain: true, Extend: time.Minute}
			if _, err := reactions.AckOne(context.Background(), engine.Of(hf), end); err != nil {
				t.Fatalf("event %d: %v", v, err)
			}
			holdfasttest.Advance(t, hf, 45*time.Second)
		}
		end := reactions.End{Lease: l, Done: 3, Retain: true}
		if _, err := reactions.AckOne(context.Background(), engine.Of(hf), end); err != nil {
			t.Fatal(err)
		}
		holdfasttest.Advance(t, hf, 45*time.Second)
		if _, err := reactions.AckOne(context.Background(), engine.Of(hf), end); fault.CodeOf(err) != fault.LeaseLost {
			t.Errorf("ack without an extension, and ack after the lease expired: got error %v, want LEASE_LOST", err)
		}
	})
}

// TestFewSuspectsAreTakenAtOnce verifies that a take does not exceed its limit of
// crashed streams over all its reactions together: a healthy stream that is held beside
// a poisoned one would crash with it each time.
func TestFewSuspectsAreTakenAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		enlist(t, hf, "one")
		enlist(t, hf, "two")
		emit(t, hf, "s", "a")
		if n := len(takeByHand(t, hf, "one", "two")); n != 2 {
			t.Fatalf("took %d streams, want 2", n)
		}
		holdfasttest.Advance(t, hf, time.Hour)
		if n, err := reactions.SweepAll(context.Background(), engine.Of(hf), func([]string) {}); err != nil || n != 2 {
			t.Fatal(n, err)
		}
		if got := takeSome(t, hf, 10, 1, "one", "two"); len(got) != 1 {
			t.Errorf("took %d streams with crashes, want 1", len(got))
		}
	})
}

// TestSkipGoesBehindWhatKills verifies for a reaction with an event filter that the
// position and the history name the event that crashed the worker, and that a skip
// continues right after it.
func TestSkipGoesBehindWhatKills(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		enlist(t, hf, "r", func(d *reactions.Definition) { d.MaxCrashes, d.Events = 1, []string{"wanted"} })
		emit(t, hf, "s", "other", "other", "wanted", "wanted")
		wanted := func(l *reactions.Lease) {
			if err := reactions.LoadEvents(ctx, engine.Of(hf), store.StreamEvents, []*reactions.Lease{l}, func(*reactions.Lease) []string { return []string{"wanted"} }, 100); err != nil {
				t.Fatal(err)
			}
		}
		l := one(t, hf, "r")
		wanted(l)
		if l.Events[0].Version != 2 {
			t.Fatalf("first event is %+v, want version 2", l.Events[0])
		}
		holdfasttest.Advance(t, hf, time.Hour) // it crashes its holder
		if n, err := reactions.SweepAll(ctx, engine.Of(hf), func([]string) {}); err != nil || n != 1 {
			t.Fatal(n, err)
		}
		if p := positionOf(t, hf, "r", "s"); !p.Blocked || p.Failing != 2 {
			t.Errorf("after the crash the position is %+v, want version 2 blocked", p)
		}
		if _, data := historyOf(t, hf, "r", "s"); data[0]["version"] != 2.0 {
			t.Errorf("got history %v, want version 2", data)
		}
		repair(t, hf, "skip", reactions.Filter{})
		l = one(t, hf, "r")
		wanted(l)
		if l.Events[0].Version != 3 {
			t.Errorf("after the skip the first event is %+v, want version 3", l.Events[0])
		}
	})
}

// TestSkippingAgainHasTheSameAnswer verifies that a block that skips may be repeated
// under its epoch, as after a lost response.
func TestSkippingAgainHasTheSameAnswer(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		enlist(t, hf, "r")
		emit(t, hf, "s", "a")
		l := one(t, hf, "r")
		for range 2 {
			if err := reactions.Block(context.Background(), engine.Of(hf), l, -1, 0, "no", 1, false); err != nil {
				t.Errorf("skip: %v", err)
			}
		}
	})
}

// TestARepairNamesItsReaction verifies that a repair with a forgotten name, or with two names, changes nothing.
func TestARepairNamesItsReaction(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		enlist(t, hf, "r")
		emit(t, hf, "s", "a")
		l := one(t, hf, "r")
		if _, err := reactions.AckOne(t.Context(), engine.Of(hf), reactions.End{Lease: l, Done: -1, Error: "no", Failing: 0, Delay: time.Hour}); err != nil {
			t.Fatal(err)
		}
		before := *positionOf(t, hf, "r", "s")
		for name, repair := range map[string]func(context.Context, holdfast.Doer, string, stream.PositionFilter, ...stream.ActorOption) (stream.RepairResult, error){
			"unblock": stream.Unblock, "skip": stream.Skip, "reset": stream.Reset,
		} {
			for _, x := range [][2]string{{"", ""}, {"", "r"}, {"*", "r"}, {"other", "r"}} {
				if done, err := repair(t.Context(), hf, x[0], stream.PositionFilter{Reaction: x[1]}); !errors.Is(err, holdfast.ErrValidation) {
					t.Errorf("%s of %q with the filter %q: got %+v, %v, want ErrValidation", name, x[0], x[1], done, err)
				}
			}
			if done, err := repair(t.Context(), hf, "r", stream.PositionFilter{Streams: []string{}}); !errors.Is(err, holdfast.ErrValidation) {
				t.Errorf("%s of an empty list of streams: got %+v, %v, want ErrValidation", name, done, err)
			}
		}
		if now := *positionOf(t, hf, "r", "s"); now != before {
			t.Errorf("position is %+v, was %+v", now, before)
		}
		if done, err := stream.Skip(t.Context(), hf, "r", stream.PositionFilter{Reaction: "r"}); err != nil || len(done.Repaired) != 1 {
			t.Errorf("skip returned %+v, %v", done, err)
		}
	})
}

// Verifies that a repair records its actor with each event that it writes: of a position that it changes, and of a leased
// one whose reset it requests.
func TestARepairRecordsItsActor(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		enlist(t, hf, "r")
		emit(t, hf, "s", "a", "b")
		blockAt(t, hf, one(t, hf, "r"), 0)
		for _, repair := range []func(context.Context, holdfast.Doer, string, stream.PositionFilter, ...stream.ActorOption) (stream.RepairResult, error){stream.Unblock, stream.Reset} {
			if _, err := repair(t.Context(), hf, "r", stream.PositionFilter{}, stream.By("ann")); err != nil {
				t.Fatal(err)
			}
		}
		blockAt(t, hf, one(t, hf, "r"), 0)
		if _, err := stream.Skip(t.Context(), hf, "r", stream.PositionFilter{}, stream.By("bob")); err != nil {
			t.Fatal(err)
		}
		one(t, hf, "r")
		if _, err := stream.Reset(t.Context(), hf, "r", stream.PositionFilter{}, stream.By("eve")); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Reset(t.Context(), hf, "r", stream.PositionFilter{}, stream.By("\x00")); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("an actor that cannot be stored: got %v, want ErrValidation", err)
		}
		var got []string
		for e, err := range stream.Read(t.Context(), hf, "$reaction/r/s", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Name == "blocked" && e.Actor != "" {
				t.Errorf("the event %s has the actor %q, want none", e.Name, e.Actor)
			}
			if e.Name != "blocked" {
				got = append(got, e.Name+" "+e.Actor)
			}
		}
		if want := []string{"unblocked ann", "reset ann", "skipped bob", "reset eve"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
