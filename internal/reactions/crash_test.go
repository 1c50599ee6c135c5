package reactions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

// TestCrashOfAReaction verifies that events which are appended, handled with a commit,
// blocked, unblocked and handled again end the same way wherever a fault strikes: each
// is committed once, the stream was blocked once and unblocked once, and no lease is
// left.
func TestCrashOfAReaction(t *testing.T) {
	w := new(holdfasttest.World)
	holdfasttest.Crash(t, holdfasttest.Scenario{Pairs: true,
		Parts: func() []holdfast.Part {
			return []holdfast.Part{stream.React("r", stream.Select{Pattern: "^s$"}, func(ctx context.Context, d *stream.Delivery) error {
				if err := w.Call(ctx, "react", d.Operation); err != nil {
					return err
				}
				if d.Version == 1 && w.Count(ctx, "mended") == 0 {
					return holdfast.NonRetryable(errors.New("not before it is unblocked"))
				}
				d.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
					_, err := stream.Append(ctx, tx, "out", stream.Any, stream.Event{Name: fmt.Sprint(d.Version)})
					return err
				})
				return nil
			}, stream.Options{MaxCrashes: 1000})} // each fault that leaves a lease is a crash
		},
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			_, err := stream.Append(ctx, hf, "s", stream.None, stream.Event{Name: "a"}, stream.Event{Name: "b"})
			return err
		},
		Accepts: []error{holdfast.ErrConcurrency},
		Person: func(ctx context.Context, hf *holdfast.Engine, on holdfasttest.Waiting) (bool, error) {
			if on.Kind != "blockedStream" {
				return false, nil
			}
			if err := w.Call(ctx, "mended", ""); err != nil {
				return false, err
			}
			_, _, err := reactions.Repair(ctx, engine.Of(hf), "unblock", "", reactions.Filter{})
			return true, err
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			if operations := w.Keys(ctx, "react"); len(operations) != 2 {
				return fmt.Errorf("2 events were handled as operations %q", operations)
			}
			return reactedOnce(ctx, hf)
		}})
}

func follower(name string) reactions.Definition {
	d := reactions.Definition{Name: name, Streams: "^s$", Options: reactions.DefaultOptions()}
	d.MaxCrashes = 1000 // each fault that leaves a lease is a crash
	return d
}

// settle does the work of the engine's loops until no lease is left.
func settle(ctx context.Context, hf *holdfast.Engine) error {
	_, err := holdfasttest.Settle(ctx, hf)
	return err
}

func reactedOnce(ctx context.Context, hf *holdfast.Engine) error {
	names := func(name string) (all []string) {
		found, err := holdfast.Collect(stream.Read(ctx, hf, name, 0))
		if err != nil {
			return []string{err.Error()}
		}
		for _, e := range found {
			all = append(all, e.Name)
		}
		return all
	}
	all, _, err := reactions.Query(ctx, engine.Of(hf), reactions.Filter{}, reactions.Position{}, 10)
	if err != nil {
		return err
	}
	if len(all) != 1 || all[0].Watermark != 1 || all[0].Due != 1 || all[0].Blocked || all[0].Holder != "" || all[0].Failures+all[0].Crashes != 0 {
		return fmt.Errorf("got positions %+v", all)
	}
	if got := names("out"); !slices.Equal(got, []string{"0", "1"}) {
		return fmt.Errorf("committed events are %q, want 0 and 1", got)
	}
	if got := names(reactions.Stream("r", "s")); !slices.Equal(got, []string{"blocked", "unblocked"}) {
		return fmt.Errorf("got history %q", got)
	}
	return nil
}

// TestCrashOfARemovedReaction verifies that a reaction which is registered, gets a due
// notice, is removed and registered again leaves nothing of its first registration
// wherever a fault strikes, and that the second registration gets every event.
func TestCrashOfARemovedReaction(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			_, err := stream.Append(ctx, hf, "removed", stream.None, stream.Event{Name: "not yet"})
			if err == nil || errors.Is(err, holdfast.ErrConcurrency) {
				err = removeOnce(ctx, hf)
			}
			if err != nil {
				return err
			}
			_, err = reactions.Register(ctx, engine.Of(hf), follower("r"))
			return err
		},
		Recover: settle,
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			all, err := reactions.List(ctx, engine.Of(hf), "")
			if err != nil || len(all) != 1 || !all[0].Settled {
				return fmt.Errorf("got reactions %+v, %w", all, err)
			}
			at, _, err := reactions.Query(ctx, engine.Of(hf), reactions.Filter{}, reactions.Position{}, 10)
			if err != nil || len(at) != 1 || at[0].Stream != "s" || at[0].Watermark != -1 || at[0].Due != 0 || at[0].Holder != "" || at[0].Epoch < 2<<32 {
				return fmt.Errorf("got positions %+v, %w", at, err)
			}
			return nil
		},
	})
}

// removeOnce registers and removes a reaction for the first time, unless that is done.
func removeOnce(ctx context.Context, hf *holdfast.Engine) error {
	over, err := testkit.First(1, stream.Read(ctx, hf, "over", 0))
	if err != nil || len(over) > 0 {
		return err
	}
	if _, err := reactions.Register(ctx, engine.Of(hf), follower("r")); err != nil {
		return err
	}
	_, err = stream.Append(ctx, hf, "s", stream.None, stream.Event{Name: "a"})
	if err != nil && !errors.Is(err, holdfast.ErrConcurrency) {
		return err
	}
	if _, err := reactions.Remove(ctx, engine.Of(hf), "r"); err != nil {
		return err
	}
	_, err = stream.Append(ctx, hf, "over", stream.Any, stream.Event{Name: "over"})
	return err
}

// TestCrashOfAReset verifies that a reset which is requested for a leased stream, and
// done by the end of that lease, is done once wherever a fault strikes, and that the
// event is delivered again.
func TestCrashOfAReset(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			if _, err := reactions.Register(ctx, engine.Of(hf), follower("r")); err != nil {
				return err
			}
			_, err := stream.Append(ctx, hf, "s", stream.None, stream.Event{Name: "a"})
			if err != nil && !errors.Is(err, holdfast.ErrConcurrency) {
				return err
			}
			if err := handleOnce(ctx, hf, true); err != nil {
				return err
			}
			return handleOnce(ctx, hf, false)
		},
		Recover: settle,
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			all, _, err := reactions.Query(ctx, engine.Of(hf), reactions.Filter{}, reactions.Position{}, 10)
			if err != nil || len(all) != 1 || all[0].Watermark != 0 || all[0].Generation != 1 || all[0].ResetRequested || all[0].Holder != "" {
				return fmt.Errorf("got positions %+v, %w", all, err)
			}
			history, err := holdfast.Collect(stream.Read(ctx, hf, reactions.Stream("r", "s"), 0))
			if err != nil || len(history) != 1 || history[0].Name != "reset" {
				return fmt.Errorf("got history %+v, %w", history, err)
			}
			return nil
		},
	})
}

// handleOnce takes the stream and acknowledges it. It requests a reset between the two, unless that was done before. Settle
// does the two at once.
func handleOnce(ctx context.Context, hf *holdfast.Engine, reset bool) error {
	at, err := engine.Of(hf).Partition(ctx, store.Read)
	if err != nil {
		return err
	}
	if _, err := reactions.CollectDue(ctx, engine.Of(hf), at, []string{"r"}); err != nil {
		return err
	}
	leases, err := reactions.Take(ctx, engine.Of(hf), reactions.TakeArgs{Reactions: []reactions.Wanted{{Name: "r", Lease: time.Minute}}, Holder: "me", Limit: 1, Crashed: 1})
	if err != nil || len(leases) == 0 {
		return err
	}
	if history, err := holdfast.Collect(stream.Read(ctx, hf, reactions.Stream("r", "s"), 0)); err != nil {
		return err
	} else if reset && len(history) == 0 {
		if _, _, err := reactions.Repair(ctx, engine.Of(hf), "reset", "", reactions.Filter{}); err != nil {
			return err
		}
	}
	_, err = reactions.AckOne(ctx, engine.Of(hf), reactions.End{Lease: leases[0], Done: leases[0].Due})
	return err
}
