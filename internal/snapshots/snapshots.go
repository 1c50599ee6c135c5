// Package snapshots keeps what an aggregate was at a version of its stream, so
// that it need not be folded from the beginning. A snapshot can be made again
// from the events: it may be missing, late or unusable, and nothing is lost.
package snapshots

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Snapshot is a state as of a version.
type Snapshot struct {
	Stream  string
	Kind    string // what the data is the state of, and in which form
	Version int64  // [events.None] for a snapshot that does not exist
	Data    []byte // JSON
}

type result struct {
	applied  bool
	snapshot Snapshot
}

var (
	getVerb = store.NewVerb(store.Decl{Name: "snapshots.get", Lane: store.Read},
		nil,
		func(s Snapshot, args *store.Args) { args.Text("stream", s.Stream); args.Text("kind", s.Kind) },
		func(r *result, row store.Row) error {
			r.applied = true
			return row.Scan(&r.snapshot.Version, &r.snapshot.Data)
		})
	putVerb = store.NewVerb(store.Decl{Name: "snapshots.put", Repeat: true},
		func(s Snapshot) []string { return []string{"snapshot/" + s.Kind + "/" + s.Stream} },
		func(s Snapshot, args *store.Args) {
			args.Text("stream", s.Stream)
			args.Text("kind", s.Kind)
			args.Int("version", s.Version)
			args.Text("data", string(s.Data))
		},
		func(r *result, row store.Row) error {
			r.applied = row.Applied()
			return row.Scan(&r.snapshot.Version)
		})
)

// Get returns the snapshot of a kind that a stream has; its version is
// [events.None] where it has none.
func Get(ctx context.Context, d store.Doer, stream, kind string) (Snapshot, error) {
	r, err := getVerb.Do(ctx, d, Snapshot{Stream: stream, Kind: kind})
	if err != nil || !r.applied {
		return Snapshot{Stream: stream, Kind: kind, Version: events.None}, err
	}
	r.snapshot.Stream, r.snapshot.Kind = stream, kind
	return r.snapshot, nil
}

// Put keeps a snapshot, and says whether it did: one that is as new, or that
// somebody else is just keeping, stays. It waits for nobody.
func Put(ctx context.Context, d store.Doer, s Snapshot) (kept bool, err error) {
	r, err := putVerb.Do(ctx, d, s)
	return r.applied, err
}
