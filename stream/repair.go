package stream

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// PositionFilter selects positions of reactions. The zero value selects every stream of every reaction in
// the workspace, including the after-effects of lifecycles ($after:<lifecycle>:<handler>) and
// webhooks ($hook:<id>). [Reset] resets those only if Reaction selects one.
type PositionFilter struct {
	Reaction string   // "" for every reaction
	Streams  []string // only these streams; empty for every stream
	Pattern  string   // RE2 pattern for stream names, "" for every stream
	Source   Source   // "" for every source
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

// Position is the position of a reaction on a stream.
type Position struct {
	Reaction  string
	Stream    string
	Watermark Version // the last version handled, -1 for none
	Due       Version // the last version that is known to concern the reaction
	Head      Version // the last version of the stream
	Failures  int
	Crashes   int
	// LostDeliveries counts consecutive deliveries to remote workers that never responded.
	LostDeliveries int
	Blocked        bool
	Error          string
	Failing        Version // the version that failed, -1 for none
	Holder         string  // holder of the lease, which ends at Until
	Until          time.Time
	DueAt          time.Time // time of the next attempt
	// Generation counts the resets.
	Generation int64
	// ResetRequested reports that the position is reset when its current lease ends.
	ResetRequested bool
}

// RepairResult is the result of a repair. Leased has the positions that were skipped because they are leased. Pending
// has the positions that are reset when their lease ends.
type RepairResult struct {
	Repaired []Position
	Leased   []Position
	Pending  []Position
}

// ListPositions iterates over the positions of reactions, ordered by reaction and stream.
func ListPositions(ctx context.Context, d holdfast.Doer, f PositionFilter) iter.Seq2[Position, error] {
	return store.Seq(func(after reactions.Position, limit int) ([]reactions.Position, error) {
		all, _, err := reactions.Query(ctx, store.DoerOf(d), f.inner(), after, limit)
		return all, err
	}, position)
}

// Unblock lets blocked reactions continue at the event where they stopped. It changes only blocked positions, and
// returns [holdfast.ErrValidation] if [PositionFilter.Blocked] is false.
func Unblock(ctx context.Context, d holdfast.Doer, f PositionFilter) (RepairResult, error) {
	return repair(ctx, d, "unblock", f)
}

// Skip lets reactions continue after the event that failed. Skip, [Unblock] and [Reset] record no actor.
func Skip(ctx context.Context, d holdfast.Doer, f PositionFilter) (RepairResult, error) {
	return repair(ctx, d, "skip", f)
}

// Reset moves reactions back to the first stored event. Every event is delivered again, as a new operation.
// After-effects and webhooks are reset only if [PositionFilter.Reaction] selects one, because a reset would send messages
// again. A leased stream is reset when that lease ends: its holder gets a request to stop, and cannot renew the lease.
func Reset(ctx context.Context, d holdfast.Doer, f PositionFilter) (RepairResult, error) {
	return repair(ctx, d, "reset", f)
}

func repair(ctx context.Context, d holdfast.Doer, how string, f PositionFilter) (RepairResult, error) {
	if reactions.Kind(f.Reaction) == "" {
		return RepairResult{}, reactions.CheckName(f.Reaction)
	}
	touched, held, err := reactions.Repair(ctx, store.DoerOf(d), how, f.inner())
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

func (f PositionFilter) inner() reactions.Filter {
	in := reactions.Filter{Reaction: f.Reaction, Streams: f.Streams, Pattern: f.Pattern, Blocked: f.Blocked}
	if f.Source != "" {
		in.Own = new(f.Source == Histories)
	}
	return in
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
		Failures: p.Failures, Crashes: p.Crashes, LostDeliveries: p.Lost, Blocked: p.Blocked, Error: p.Error, Failing: Version(p.Failing),
		Holder: p.Holder, Until: p.Until, DueAt: p.DueAt, Generation: p.Generation, ResetRequested: p.ResetRequested}
}
