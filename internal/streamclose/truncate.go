package streamclose

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
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
func Truncate(ctx context.Context, e Engine, stream string, before int64) error {
	if err := checkStream(stream); err != nil {
		return err
	}
	if before < 0 {
		return fault.New(fault.Validation, "the version to truncate below must be at least 0, got %d", before)
	}
	at, err := e.Partition(ctx, store.Read)
	if err != nil {
		return err
	}
	_, err = update(ctx, e, func(ctx context.Context, tx *store.Tx) (struct{}, error) {
		return struct{}{}, truncate(ctx, tx, at, truncateArgs{stream, before})
	})
	if err != nil {
		return fmt.Errorf("truncate %s: %w", stream, err)
	}
	return nil
}

func truncate(ctx context.Context, tx *store.Tx, at store.Partition, a truncateArgs) error {
	s, err := lock(ctx, tx, at, a.stream)
	switch {
	case err != nil:
		return err
	case s.live:
		return s.busyError(a.stream)
	case a.before > s.head:
		return fault.New(fault.Validation, "stream %q is at version %d and must keep its last event: truncate below version %d or lower", a.stream, s.head, s.head).
			With("lastVersion", s.head)
	case a.before <= s.first:
		return nil
	}
	if _, err := ready(ctx, tx, at, a.stream, a.before); err != nil {
		return err
	}
	updated, err := truncateVerb.DoAt(ctx, tx, at, a)
	if err == nil && len(updated) == 0 {
		err = fault.New(fault.Internal, "the stream changed although its row is locked")
	}
	return err
}
