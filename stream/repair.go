package stream

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Filter selects positions of reactions. The zero value selects every stream of every reaction of
// the workspace, including the after-effects of lifecycles ($after:<workflow>:<handler>) and
// webhooks ($hook:<id>). [Reset] resets those only if Reaction names one.
type Filter struct {
	Reaction string   // "" for every reaction
	Streams  []string // only these streams; empty for every stream
	Pattern  string   // RE2 pattern for stream names, "" for every stream
	// Own selects only histories of Holdfast (true), or only the program's own streams (false).
	Own     *bool
	Blocked *bool
}

// Position is the position of a reaction on a stream.
type Position struct {
	Reaction  string
	Stream    string
	Watermark Version // the last version handled, -1 for none
	Due       Version // the last version that is known to concern the reaction
	Head      Version // the last version of the stream
	Failures  int
	Crashes   int
	// LostHandOuts counts consecutive hand-outs to remote workers that never reported back.
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

// Repaired is the result of a repair. Touched are the repaired positions, Held those that were
// skipped because they are leased, and Pending those that are reset when their lease ends.
type Repaired struct {
	Touched []Position
	Held    []Position
	Pending []Position
}

// Positions iterates over the positions of reactions, ordered by reaction and stream.
func Positions(ctx context.Context, d holdfast.Doer, f Filter) iter.Seq2[Position, error] {
	return store.Seq(func(after reactions.Position, limit int) ([]reactions.Position, error) {
		all, _, err := reactions.Query(ctx, store.DoerOf(d), f.inner(), after, limit)
		return all, err
	}, position)
}

// Unblock lets blocked reactions continue at the event where they stopped.
func Unblock(ctx context.Context, d holdfast.Doer, f Filter) (Repaired, error) {
	return repair(ctx, d, "unblock", f)
}

// Skip lets reactions continue after the event that failed.
func Skip(ctx context.Context, d holdfast.Doer, f Filter) (Repaired, error) {
	return repair(ctx, d, "skip", f)
}

// Reset moves reactions back to the first stored event. Every event is delivered again, as a new
// operation. After-effects and webhooks are reset only if [Filter.Reaction] names one, because
// they would send again what was already sent. A leased stream is reset when that lease ends: its
// holder gets a request to stop, and cannot renew the lease.
func Reset(ctx context.Context, d holdfast.Doer, f Filter) (Repaired, error) {
	return repair(ctx, d, "reset", f)
}

func repair(ctx context.Context, d holdfast.Doer, how string, f Filter) (Repaired, error) {
	if reactions.Kind(f.Reaction) == "" {
		return Repaired{}, reactions.CheckName(f.Reaction)
	}
	touched, held, err := reactions.Repair(ctx, store.DoerOf(d), how, f.inner())
	r := Repaired{Held: positions(held)}
	for _, p := range positions(touched) {
		if p.ResetRequested {
			r.Pending = append(r.Pending, p)
		} else {
			r.Touched = append(r.Touched, p)
		}
	}
	return r, err
}

func (f Filter) inner() reactions.Filter {
	return reactions.Filter{Reaction: f.Reaction, Streams: f.Streams, Pattern: f.Pattern, Own: f.Own, Blocked: f.Blocked}
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
