package stream

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Filter chooses where reactions stand. The zero value is every stream of every
// reaction of the workspace, the after-effects of lifecycles ($after:<workflow>:<handler>)
// and webhooks ($hook:<id>) included; [Reset] leaves those alone that it does not name.
type Filter struct {
	Reaction string   // "" for every one
	Streams  []string // these, if any are named
	Pattern  string   // of streams (RE2), "" for every one
	// Own chooses only histories, or only the program's own streams.
	Own     *bool
	Blocked *bool
}

// Position is where a reaction stands on a stream.
type Position struct {
	Reaction  string
	Stream    string
	Watermark Version // the last version handled, -1 for none
	Due       Version // the last version that is known to concern the reaction
	Head      Version // the last version of the stream
	Failures  int
	Crashes   int
	// LostHandOuts counts hand-outs in a row to workers elsewhere of whom nothing was heard.
	LostHandOuts int
	Blocked      bool
	Error        string
	Failing      Version // the version that failed, -1 for none
	Holder       string  // who works on it, and until when
	Until        time.Time
	DueAt        time.Time // when it is tried next
	// Generation counts the resets.
	Generation int64
	// ResetRequested says that it is reset when the lease of its holder ends.
	ResetRequested bool
}

// Repaired is what a repair touched, and what it left alone because somebody
// works on it at this moment. Pending is what is reset when the lease of who works on it ends.
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

// Unblock lets blocked reactions go on where they stopped.
func Unblock(ctx context.Context, d holdfast.Doer, f Filter) (Repaired, error) {
	return repair(ctx, d, "unblock", f)
}

// Skip lets reactions go on behind the event that failed.
func Skip(ctx context.Context, d holdfast.Doer, f Filter) (Repaired, error) {
	return repair(ctx, d, "skip", f)
}

// Reset sends reactions back to the first event that is kept. Every event is
// delivered again, as another operation. After-effects and webhooks are reset only
// where [Filter.Reaction] names one: they would send again what was sent. A stream that somebody works on is reset
// when that lease ends: its holder is told to stop, and cannot renew it any more.
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
