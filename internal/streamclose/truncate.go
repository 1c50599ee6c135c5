package streamclose

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/snapshots"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

type truncateArgs struct {
	stream string `arg:"stream"`
	before int64  `arg:"first"`
}

var truncateVerb = store.VerbOf[truncateArgs](store.Decl{Name: "streams.truncate", Lane: store.Work}, nil, store.ScanValues[int64])

// Truncate drops the events of a stream below a version. The last event always
// stays, and a lower version than before changes nothing. It returns
// [fault.Conflict] with the names of the reactions that have not handled the
// events to drop.
//
// The snapshot, if there is one, is the state after the dropped events. It is
// stored in the same transaction, as [snapshots.Base]. Events do not change, so a
// snapshot of what is below a version stays right whatever is appended meanwhile.
// If another caller has dropped more, nothing is stored. A stream that was
// truncated to the same version without a snapshot gets one.
func Truncate(ctx context.Context, e Engine, stream string, before int64, snapshot []byte) error {
	if err := checkStream(stream); err != nil {
		return err
	}
	if before < 0 {
		return fault.New(fault.Validation, "the version to truncate below must be at least 0, got %d", before)
	}
	if snapshot != nil {
		if before == 0 {
			return fault.New(fault.Validation, "a snapshot of the events below version 0 has no events: truncate below version 1 or higher, or omit the snapshot")
		}
		if err := strictjson.Check(snapshot); err != nil {
			return err
		}
	}
	at, err := e.Partition(ctx, store.Read)
	if err != nil {
		return err
	}
	_, err = update(ctx, e, func(ctx context.Context, tx *store.Tx) (struct{}, error) {
		return struct{}{}, truncate(ctx, tx, at, truncateArgs{stream, before}, snapshot)
	})
	if err != nil {
		return fmt.Errorf("truncate %s: %w", stream, err)
	}
	return nil
}

func truncate(ctx context.Context, tx *store.Tx, at store.Partition, a truncateArgs, snapshot []byte) error {
	s, err := lock(ctx, tx, at, a.stream)
	switch {
	case err != nil:
		return err
	case s.live:
		return s.busyError(a.stream)
	case a.before > s.head:
		return fault.New(fault.Validation, "stream %q is at version %d and must keep its last event: truncate below version %d or lower", a.stream, s.head, s.head).
			With("lastVersion", s.head)
	case a.before < s.first:
		return nil
	case a.before == s.first:
		return keepBase(ctx, tx, a, snapshot)
	}
	if _, err := ready(ctx, tx, at, a.stream, a.before); err != nil {
		return err
	}
	updated, err := truncateVerb.DoAt(ctx, tx, at, a)
	if err == nil && len(updated) == 0 {
		err = fault.New(fault.Internal, "the stream changed although its row is locked")
	}
	if err != nil {
		return err
	}
	return keepBase(ctx, tx, a, snapshot)
}

// keepBase stores the state before the first event that remains. Only a transaction
// that has locked the stream's row stores it, so it is refused only if it is stored already.
func keepBase(ctx context.Context, tx *store.Tx, a truncateArgs, snapshot []byte) error {
	if snapshot == nil || a.before == 0 {
		return nil
	}
	base := snapshots.Snapshot{Stream: a.stream, Kind: snapshots.Base, Version: a.before - 1, Data: snapshot}
	stored, err := snapshots.Put(ctx, tx, base)
	if err != nil || stored {
		return err
	}
	found, err := snapshots.Get(ctx, tx, a.stream, snapshots.Base)
	if err == nil && found.Version != base.Version {
		err = fault.New(fault.Unavailable, "the snapshot of stream %q could not be stored: try again", a.stream).AsRetryable()
	}
	return err
}
