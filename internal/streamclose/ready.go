package streamclose

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// lock locks the row of a stream and tells where it stands.
func lock(ctx context.Context, tx *store.Tx, at store.Partition, stream string) (standing, error) {
	found, err := lockVerb.DoAt(ctx, tx, at, stream)
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, "there is no stream %q", stream)
	}
	if err != nil {
		return standing{}, err
	}
	s := found[0]
	return s, nil
}

// covered is the version that the close of a closed stream covers: a tombstone
// comes behind it.
func (s standing) covered() int64 {
	if s.closed == Tombstone {
		return s.head - 1
	}
	return s.head
}

// busy is the refusal of a stream that somebody is closing.
func (s standing) busy(stream string) *fault.Error {
	return fault.New(fault.Conflict, "the stream %s is being closed by %s", stream, s.holder).
		With("holder", s.holder).With("until", s.until)
}

// mostReloads is how often the reactions are looked at while others are being
// registered.
const mostReloads = 20

// ready refuses where a reaction still needs events of a stream below a version,
// and returns the revision of the registry that it went by. Which reactions
// follow the stream is known by their patterns, which the database cannot match:
// so the answer counts only where the registry is still the one that was read.
// REQUIRES: the stream's row is locked
func ready(ctx context.Context, tx *store.Tx, at store.Partition, stream string, below int64) (revision int64, err error) {
	for try := range mostReloads {
		g, err := tx.Registry(ctx, at, try > 0)
		if err != nil {
			return 0, err
		}
		r, err := behindVerb.DoAt(ctx, tx, at, behindArgs{stream, followers(g, stream), below})
		if err != nil {
			return 0, err
		}
		if r.revision != g.Revision {
			continue
		}
		if len(r.all) > 0 {
			return 0, needed(stream, r.all)
		}
		return g.Revision, nil
	}
	return 0, fault.New(fault.Unavailable, "reactions were registered each time it was looked at which there are").Repeatable()
}

// followers names the reactions that follow a stream.
func followers(g *store.Registry, stream string) (names []string) {
	for i := range g.Reactions {
		if r := &g.Reactions[i]; r.Wants(store.StreamEvents, stream) {
			names = append(names, r.Name)
		}
	}
	return names
}

// needed is the refusal of a stream that reactions still need.
func needed(stream string, all []Behind) *fault.Error {
	var by []string
	for _, b := range all {
		by = append(by, fmt.Sprintf("%s (%s)", b.Reaction, b.Why))
	}
	return fault.New(fault.Conflict, "the stream %s is still needed by %s", stream, strings.Join(by, ", ")).With("reactions", all)
}
