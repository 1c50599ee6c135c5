package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/snapshots"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// atBase returns the state that a truncation left before the first event of the stream, or s if there is none. If the
// stream was truncated again after its first event was read, the state is newer and includes that event.
func (a *Aggregate[S]) atBase(ctx context.Context, d holdfast.Doer, s folded[S], first Version) (folded[S], error) {
	base, err := snapshots.Get(ctx, store.DoerOf(d), s.stream, snapshots.Base)
	if err != nil || Version(base.Version) < first-1 {
		return s, err
	}
	state, err := decodeState[S](base.Data)
	if err != nil {
		return s, fmt.Errorf("decode the state of stream %s at version %d, where it was truncated: %w", s.stream, base.Version, err)
	}
	return folded[S]{s.stream, Version(base.Version), state}, nil
}

// gapError reports that events are missing between two versions.
type gapError struct {
	stream       string
	after, first Version
}

func (g *gapError) Error() string {
	return fmt.Sprintf("stream %s has no events between versions %d and %d", g.stream, g.after, g.first)
}

// explain returns the error for the caller: the events were removed by [Truncate], or they are lost.
func (g *gapError) explain(ctx context.Context, d holdfast.Doer) error {
	s, err := events.GetStream(ctx, store.DoerOf(d), g.stream)
	if err != nil {
		return err
	}
	base, err := snapshots.Get(ctx, store.DoerOf(d), g.stream, snapshots.Base)
	switch {
	case err != nil:
		return err
	case s.First > int64(g.first) || s.First == int64(g.first) && base.Version >= s.First-1:
		return fault.New(fault.Conflict, "stream %s was truncated below version %d while the aggregate was loaded: load it again", g.stream, s.First).With("firstVersion", s.First)
	case s.First == int64(g.first):
		return fault.New(fault.Conflict, "stream %s was truncated below version %d without a state, and no snapshot includes the removed events, so the aggregate cannot be loaded: "+
			"truncate it again below version %d with the state before that version (stream.Snapshot)", g.stream, g.first, g.first).With("firstVersion", s.First)
	}
	return fault.New(fault.DatabaseDamaged,
		"%s and no snapshot that replaces them, so the aggregate cannot be loaded: restore the stream from a backup", g.Error())
}

// Truncate removes the events of an id below a version, as the function [Truncate] does, and stores the state that they lead
// to, from which the aggregate is loaded afterwards. Use it to keep only the recent events of an aggregate. JSON must
// preserve all of S, as for [SnapshotEvery], and programs that read the state later must be able to decode it. An aggregate with a vault is
// refused, because the state would be stored unencrypted.
func (a *Aggregate[S]) Truncate(ctx context.Context, e *holdfast.Engine, id string, before Version) error {
	if a.vault != nil {
		return fault.New(fault.Validation, "an aggregate with a vault cannot be truncated, because its state would be stored unencrypted: use Truncate with a state without protected data")
	}
	if err := cmp.Or(strictjson.Text("id", id, events.MaxName), checkJSONRoundTrip[S]()); err != nil {
		return err
	}
	none := folded[S]{stream: a.prefix + id, version: None}
	s, err := a.loadWhole(ctx, e, none, before-1)
	if err != nil {
		return err
	}
	if before < 1 || s.version != before-1 { // nothing to remove, or a version that the stream does not have
		return Truncate(ctx, e, none.stream, before)
	}
	state, err := json.Marshal(s.state)
	if err != nil {
		return err
	}
	return Truncate(ctx, e, none.stream, before, Snapshot(state))
}
