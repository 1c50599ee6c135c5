package reactions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/stream"
)

// claimStreams claims streams of the reaction r by hand, with up to limit events each.
func claimStreams(ctx context.Context, d holdfast.Doer, limit int) ([]*reactions.Lease, error) {
	x, err := reactions.Get(ctx, store.DoerOf(d), "r")
	if err != nil {
		return nil, err
	}
	return reactions.TakeAsked(ctx, store.DoerOf(d), reactions.Ask{Reactions: []reactions.Info{x}, Holder: "hand", Limit: 1, Lease: time.Minute, Events: limit})
}

// claimOne claims the only stream, and checks the range of versions that it shows.
func claimOne(t *testing.T, d holdfast.Doer, limit int, from, to int64) *reactions.Lease {
	t.Helper()
	all, err := claimStreams(context.Background(), d, limit)
	if err != nil || len(all) != 1 || len(all[0].Events) == 0 {
		t.Fatalf("claimed %+v, %v", all, err)
	}
	if shown := all[0].Events; shown[0].Version != from || shown[len(shown)-1].Version != to {
		t.Errorf("got events %d to %d, want %d to %d", shown[0].Version, shown[len(shown)-1].Version, from, to)
	}
	return all[0]
}

// ackByHand acknowledges a version by hand, and returns the code of the refusal.
func ackByHand(ctx context.Context, d holdfast.Doer, l *reactions.Lease, version int64) (fault.Code, error) {
	at := store.Partition{Shard: l.Shard, Workspace: l.Workspace}
	refused, err := reactions.AckAsked(ctx, store.DoerOf(d), []reactions.End{{Lease: reactions.ByHand(at, l.Reaction, l.Stream, l.Epoch), Done: version}})
	if err != nil || refused[0] == nil {
		return "", err
	}
	return refused[0].Code, nil
}

func wantAck(t *testing.T, what string, d holdfast.Doer, l *reactions.Lease, version int64, want fault.Code) {
	t.Helper()
	if code, err := ackByHand(context.Background(), d, l, version); err != nil || code != want {
		t.Errorf("%s: ack of %d returned code %q, error %v, want %q", what, version, code, err, want)
	}
}

// TestCrashOfAnAckByHand verifies that a stream which is claimed by hand, two events at
// a time, with an ack beyond each lease, is handled to its end without a gap wherever a
// fault strikes, and that no ack beyond a lease is accepted.
func TestCrashOfAnAckByHand(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{Do: handleByHand, Recover: settle, Check: handledWithoutGap})
}

const lastByHand = 4

func handleByHand(ctx context.Context, hf *holdfast.Engine) error {
	if _, err := reactions.Register(ctx, engine.Of(hf), follower("r")); err != nil {
		return err
	}
	_, err := stream.Append(ctx, hf, "s", stream.None, slices.Repeat([]stream.Event{{Name: "e"}}, lastByHand+1)...)
	if err != nil && !errors.Is(err, holdfast.ErrConcurrency) {
		return err
	}
	for { // by hand, as a client that claims and acknowledges: the engine has no part that Settle could step
		all, err := claimStreams(ctx, hf, 2)
		if err != nil || len(all) == 0 {
			return err
		}
		if err := handleLease(ctx, hf, all[0]); err != nil {
			return err
		}
	}
}

// handleLease records the events of a lease and acknowledges it, after an ack beyond it.
func handleLease(ctx context.Context, hf *holdfast.Engine, l *reactions.Lease) error {
	note := func(name, what string) error {
		_, err := stream.Append(ctx, hf, name, stream.Any, stream.Event{Name: what})
		return err
	}
	if l.Handled() < lastByHand {
		code, err := ackByHand(ctx, hf, l, lastByHand)
		if err == nil && code != fault.NotDelivered {
			err = note("bad", fmt.Sprintf("beyond %d: %q", l.Handled(), code))
		}
		if err != nil {
			return err
		}
	}
	for _, e := range l.Events {
		if err := note("out", strconv.FormatInt(e.Version, 10)); err != nil {
			return err
		}
	}
	code, err := ackByHand(ctx, hf, l, l.Events[len(l.Events)-1].Version)
	if err == nil && code != "" {
		err = fault.Of(code)
	}
	return err
}

func handledWithoutGap(ctx context.Context, hf *holdfast.Engine) error {
	bad, err := holdfast.Collect(stream.Read(ctx, hf, "bad", 0))
	if err != nil || len(bad) > 0 {
		return fmt.Errorf("%+v, %w", bad, err)
	}
	out, err := holdfast.Collect(stream.Read(ctx, hf, "out", 0))
	if err != nil {
		return err
	}
	last := -1
	for _, e := range out {
		version, err := strconv.Atoi(e.Name)
		if err != nil || version > last+1 {
			return fmt.Errorf("event %d is followed by %q", last, e.Name)
		}
		last = max(last, version)
	}
	p, err := reactions.Stands(ctx, engine.Of(hf), "r", "s")
	if err != nil || last != lastByHand || p.Watermark != lastByHand || p.Holder != "" || p.Blocked {
		return fmt.Errorf("handled up to %d, position %+v, %w", last, p, err)
	}
	return nil
}

// faultyEngine is an engine with a fault before or after each of some commands.
type faultyEngine struct {
	*engine.Engine
	verb          string
	before, after func() error
}

func (s *faultyEngine) Do(ctx context.Context, c store.Command) error {
	if c.Decl().Name != s.verb {
		return s.Engine.Do(ctx, c)
	}
	if err := s.before(); err != nil {
		return err
	}
	return errors.Join(s.Engine.Do(ctx, c), s.after())
}

// TestALeaseThatIsNotToldOf verifies that a server which fails before or after it
// records the delivered version, or loses the lease meanwhile, returns no lease, and
// that the next claim shows all events.
func TestALeaseThatIsNotToldOf(t *testing.T) {
	down := func() error { return fault.New(fault.Unavailable, "down") }
	for name, strike := range map[string]func(lapse func() error) (before, after func() error){
		"before": func(func() error) (func() error, func() error) { return once(down), once(nil) },
		"after":  func(func() error) (func() error, func() error) { return once(nil), once(down) },
		"lost":   func(lapse func() error) (func() error, func() error) { return once(lapse), once(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
				ctx := context.Background()
				enlist(t, hf, "r")
				emit(t, hf, "s", "a", "b", "c")
				lapse := func() error {
					holdfasttest.Advance(t, hf, time.Hour)
					_, err := reactions.SweepAll(ctx, engine.Of(hf), func([]string) {})
					return err
				}
				x := &faultyEngine{Engine: engine.Of(hf), verb: "reactions.record_delivery"}
				x.before, x.after = strike(lapse)
				all, err := claimStreams(ctx, x, 2)
				if name == "lost" { // it is taken again
					if err != nil || len(all) != 1 || int32(all[0].Epoch) < 2 { // the high bits of the epoch identify the registration
						t.Fatalf("claimed %+v, %v", all, err)
					}
					wantAck(t, "of the second take", hf, all[0], 2, fault.NotDelivered)
					return
				}
				if fault.CodeOf(err) != fault.Unavailable || len(all) != 0 {
					t.Fatalf("claimed %+v, %v", all, err)
				}
				if err := lapse(); err != nil {
					t.Fatal(err)
				}
				l := claimOne(t, hf, 9, 0, 2)
				wantAck(t, "of the next claim", hf, l, 2, "")
			})
		})
	}
}

// TestAnAckThatWaitedIsJudgedByTheRow verifies on PostgreSQL that an ack which waited
// for its row is checked against the current epoch and delivered version of that row. A
// concurrent collection of due notices delivers nothing, and refuses nothing that was
// delivered. If the row is deleted meanwhile, the lease is lost.
func TestAnAckThatWaitedIsJudgedByTheRow(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	hf := s.open(t)
	enlist(t, hf, "r")
	emit(t, hf, "s", "a", "b", "c")
	l := claimOne(t, hf, 2, 0, 1)
	for _, c := range []struct {
		change string
		ack    int64
		want   fault.Code
		then   string
	}{
		{`UPDATE holdfast.follow SET due = due + 5`, 2, fault.NotDelivered, ""},
		{`UPDATE holdfast.follow SET epoch = epoch + 1, delivered = 9, delivered_epoch = epoch + 1`, 2, fault.LeaseLost,
			`UPDATE holdfast.follow SET epoch = epoch - 1, due = 1, delivered = 1, delivered_epoch = epoch - 1`},
		{`UPDATE holdfast.follow SET due = due + 1`, 1, "", ""},
		{`DELETE FROM holdfast.follow`, 1, fault.LeaseLost, ""},
	} {
		err := errors.Join(storetest.Queue(t, s.url, c.change, nil, nil, func() error {
			code, err := ackByHand(context.Background(), hf, l, c.ack)
			if err == nil && code != c.want {
				err = fmt.Errorf("ack returned code %q, want %q", code, c.want)
			}
			return err
		})...)
		if err != nil {
			t.Errorf("%s: %v", c.change, err)
		}
		if c.then != "" {
			s.must(t, hf, c.then)
		}
	}
}
