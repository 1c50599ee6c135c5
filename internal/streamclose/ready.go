package streamclose

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// lock locks the head row of a stream and returns it.
func lock(ctx context.Context, tx *store.Tx, at store.Partition, stream string) (headRow, error) {
	found, err := lockVerb.DoAt(ctx, tx, at, stream)
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, "stream %q does not exist", stream)
	}
	if err != nil {
		return headRow{}, err
	}
	s := found[0]
	return s, nil
}

// covered returns the version that the close of a closed stream covers. A
// tombstone follows that version.
func (s headRow) covered() int64 {
	if s.closed == Tombstone {
		return s.head - 1
	}
	return s.head
}

// busyError returns the error for a stream that another caller is closing.
func (s headRow) busyError(stream string) *fault.Error {
	return fault.New(fault.Conflict, "stream %q is being closed by %s: try again later", stream, s.holder).
		With("holder", s.holder).With("until", s.until)
}

// maxReloads limits how often the reactions are read again because others are
// being registered.
const maxReloads = 20

// ready returns an error if a reaction still needs events of a stream below a
// version, and otherwise the registry revision that it used. The database cannot
// match the patterns of reactions, so the followers come from the registry, and
// the result is valid only if the registry has not changed since.
// REQUIRES: the stream's row is locked
func ready(ctx context.Context, tx *store.Tx, at store.Partition, stream string, below int64) (revision int64, err error) {
	for try := range maxReloads {
		g, err := tx.Registry(ctx, at, try > 0)
		if err != nil {
			return 0, err
		}
		r, err := listBehindReactionsVerb.DoAt(ctx, tx, at, listBehindReactionsArgs{stream, followers(g, stream), below})
		if err != nil {
			return 0, err
		}
		if r.revision != g.Revision {
			continue
		}
		if len(r.all) > 0 {
			return 0, neededError(stream, r.all)
		}
		return g.Revision, nil
	}
	return 0, fault.New(fault.Unavailable, "the registered reactions kept changing during the check: try again").AsRetryable()
}

// followers returns the names of the reactions that follow a stream.
func followers(g *store.Registry, stream string) (names []string) {
	for i := range g.Reactions {
		if r := &g.Reactions[i]; r.Wants(store.StreamEvents, stream) {
			names = append(names, r.Name)
		}
	}
	return names
}

// neededError returns the error for a stream that reactions still need.
func neededError(stream string, all []Behind) *fault.Error {
	var by []string
	for _, b := range all {
		by = append(by, fmt.Sprintf("%s (%s)", b.Reaction, b.Why))
	}
	return fault.New(fault.Conflict, "stream %q is still needed by %s: wait until these reactions have handled its events, or unblock or remove them", stream, strings.Join(by, ", ")).With("reactions", all)
}
