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
	Stream  string `arg:"stream"`
	Kind    string `arg:"kind"`    // what the data is the state of, and in which form
	Version int64  `arg:"version"` // [events.None] for a snapshot that does not exist
	Data    []byte `arg:"data"`    // JSON
}

var (
	getVerb = store.NewVerb(store.Decl{Name: "snapshots.get", Lane: store.Read}, nil,
		func(s Snapshot, args *store.Args) { args.Text("stream", s.Stream); args.Text("kind", s.Kind) },
		store.Each(func(s *Snapshot) []any { return []any{&s.Version, &s.Data} }))
	putVerb = store.VerbOf[Snapshot](store.Decl{Name: "snapshots.put", Idempotent: true},
		func(s Snapshot) []string { return []string{"snapshot/" + s.Kind + "/" + s.Stream} }, store.ScanApplied)
)

// Get returns the snapshot of a kind that a stream has; its version is
// [events.None] where it has none.
func Get(ctx context.Context, d store.Doer, stream, kind string) (Snapshot, error) {
	s := Snapshot{Stream: stream, Kind: kind, Version: events.None}
	all, err := getVerb.Do(ctx, d, s)
	if err == nil && len(all) > 0 {
		s.Version, s.Data = all[0].Version, all[0].Data
	}
	return s, err
}

// Put keeps a snapshot, and says whether it did: one that is as new, or that
// somebody else is just keeping, stays. It waits for nobody.
func Put(ctx context.Context, d store.Doer, s Snapshot) (kept bool, err error) {
	return putVerb.Do(ctx, d, s)
}
