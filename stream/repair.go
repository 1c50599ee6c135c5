package stream

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// PositionFilter selects positions of reactions. In a list, the zero value selects every stream of every reaction in
// the workspace; a repair names its reaction in an argument, and the filter selects among that reaction's streams. This
// includes the after-effects of lifecycles ($after:<lifecycle>:<handler>) and webhooks ($hook:<id>).
type PositionFilter struct {
	Reaction string // "" for every reaction
	// Streams selects only these streams; nil selects every stream. A list that is empty but not nil does so too, except in a
	// repair, where it is [holdfast.ErrValidation]: a selection that found nothing must not repair all.
	Streams []string
	Pattern string // RE2 pattern for stream names, "" for every stream
	Source  Source // "" for every source
	// Blocked selects only blocked positions if true, and only unblocked positions if false; nil selects both.
	Blocked *bool
}

// Source is the origin of a stream.
type Source string

// The sources of streams.
const (
	Events    Source = "event"   // streams of the program
	Histories Source = "history" // histories that Holdfast writes; their names begin with $
)

// Position is the position of a reaction in a stream.
type Position struct {
	Reaction  string
	Stream    string
	Watermark Version // the last version handled, -1 for none
	Due       Version // the last version that is known to concern the reaction
	Head      Version // the last version of the stream
	Failures  int
	Crashes   int
	// LostHandOuts counts consecutive hand-outs to workers that never responded.
	LostHandOuts int
	Blocked      bool
	Error        string
	Failing      Version // the version that failed, -1 for none
	Holder       string  // holder of the lease, which ends at Until
	Until        time.Time
	DueAt        time.Time // time of the next attempt
	// Generation counts the resets.
	Generation int64
	// ResetRequested reports that the position is reset when its current lease ends.
	ResetRequested bool
}

// RepairResult is the result of a repair. Leased lists the positions that were skipped because they are leased.
// Pending lists the positions that are reset when their lease ends.
type RepairResult struct {
	Repaired []Position
	Leased   []Position
	Pending  []Position
}

// ListPositions iterates over the positions of reactions, ordered by reaction and stream.
func ListPositions(ctx context.Context, d holdfast.Doer, f PositionFilter) iter.Seq2[Position, error] {
	return store.SeqIn(func() error {
		if f.Reaction == "" {
			return nil
		}
		_, err := reactions.Get(ctx, store.DoerOf(d), f.Reaction)
		return err
	}, func(after reactions.Position, limit int) ([]reactions.Position, error) {
		in, err := f.inner()
		if err != nil {
			return nil, err
		}
		all, _, err := reactions.Query(ctx, store.DoerOf(d), in, after, limit)
		return all, err
	}, position)
}

// ActorOption is the option [By] of [Unblock], [Skip] and [Reset].
type ActorOption struct{ actor string }

// By sets the actor that the histories of the positions record.
func By(actor string) ActorOption { return ActorOption{actor} }

// Unblock lets a blocked reaction continue at the event where it stopped, on the streams that the filter selects. The
// reaction "*" is every reaction, after-effect and webhook; an empty name is [holdfast.ErrValidation], and
// so is a filter with Blocked false, with an empty list of Streams that is not nil, or with the name of another reaction.
func Unblock(ctx context.Context, d holdfast.Doer, reaction string, f PositionFilter, o ...ActorOption) (RepairResult, error) {
	return repair(ctx, d, "unblock", reaction, f, o)
}

// Skip lets a reaction continue after the event that failed, even if that event is only waiting for a retry. The event is not
// handled. The reaction is selected as by [Unblock].
func Skip(ctx context.Context, d holdfast.Doer, reaction string, f PositionFilter, o ...ActorOption) (RepairResult, error) {
	return repair(ctx, d, "skip", reaction, f, o)
}

// Reset moves a reaction back to the first stored event. Every event is delivered again, as a new operation. The
// reaction is selected as by [Unblock], but "*" does not select after-effects and webhooks, which would send messages
// again. A leased stream is reset when that lease ends: its holder gets a request to stop, and cannot renew the lease.
func Reset(ctx context.Context, d holdfast.Doer, reaction string, f PositionFilter, o ...ActorOption) (RepairResult, error) {
	return repair(ctx, d, "reset", reaction, f, o)
}

func repair(ctx context.Context, d holdfast.Doer, how, reaction string, f PositionFilter, o []ActorOption) (RepairResult, error) {
	var by string
	for _, option := range o {
		by = option.actor
	}
	switch {
	case reaction == "":
		return RepairResult{}, fault.New(fault.Validation, "the name of the reaction must not be empty: set a name, or * for all reactions")
	case f.Streams != nil && len(f.Streams) == 0:
		return RepairResult{}, fault.New(fault.Validation, "Streams must not be empty: leave it nil to select all streams")
	case f.Reaction != "" && f.Reaction != reaction:
		return RepairResult{}, fault.New(fault.Validation, "the filter selects reaction %q, but the call repairs %q: leave PositionFilter.Reaction empty", f.Reaction, reaction)
	case reaction != "*":
		f.Reaction = reaction
	default:
		f.Reaction = ""
	}
	if reactions.Kind(f.Reaction) == "" { // a reserved name, of neither an after-effect nor a webhook
		return RepairResult{}, reactions.CheckName(f.Reaction)
	}
	in, err := f.inner()
	if err != nil {
		return RepairResult{}, err
	}
	touched, held, err := reactions.Repair(ctx, store.DoerOf(d), how, by, in)
	r := RepairResult{Leased: positions(held)}
	for _, p := range positions(touched) {
		if p.ResetRequested {
			r.Pending = append(r.Pending, p)
		} else {
			r.Repaired = append(r.Repaired, p)
		}
	}
	return r, err
}

func (f PositionFilter) inner() (reactions.Filter, error) {
	in := reactions.Filter{Reaction: f.Reaction, Streams: f.Streams, Pattern: f.Pattern, Blocked: f.Blocked}
	switch f.Source {
	case "":
	case Events, Histories:
		in.Own = new(f.Source == Histories)
	default:
		return in, fault.New(fault.Validation, "Source must be Events or Histories, got %q", f.Source)
	}
	return in, nil
}

func positions(all []reactions.Position) []Position {
	out := make([]Position, len(all))
	for i, p := range all {
		out[i] = position(p)
	}
	return out
}

func position(p reactions.Position) Position {
	return Position{Reaction: p.Reaction, Stream: p.Stream, Watermark: Version(p.Watermark), Due: Version(p.Due), Head: Version(p.Head),
		Failures: p.Failures, Crashes: p.Crashes, LostHandOuts: p.Lost, Blocked: p.Blocked, Error: p.Error, Failing: Version(p.Failing),
		Holder: p.Holder, Until: p.Until, DueAt: p.DueAt, Generation: p.Generation, ResetRequested: p.ResetRequested}
}
