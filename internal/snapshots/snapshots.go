// Package snapshots stores the state of an aggregate at a version of its stream, so that it need not be folded
// from the beginning. A snapshot can be rebuilt from the events: if it is missing, late or unusable, nothing is
// lost. The exception is the kind [Base].
package snapshots

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Base is the kind of the snapshot that a truncated stream keeps of its dropped events. It is right before the
// first event that remains, and nothing can rebuild it.
const Base = "$base"

// Snapshot is a state at a version.
type Snapshot struct {
	Stream  string `arg:"stream"`
	Kind    string `arg:"kind"`    // type and format of the state
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

// Get returns a stream's snapshot of a kind; its version is [events.None] if there is none.
func Get(ctx context.Context, d store.Doer, stream, kind string) (Snapshot, error) {
	s := Snapshot{Stream: stream, Kind: kind, Version: events.None}
	all, err := getVerb.Do(ctx, d, s)
	if err == nil && len(all) > 0 {
		s.Version, s.Data = all[0].Version, all[0].Data
	}
	return s, err
}

// Put stores a snapshot, and reports whether it did: a snapshot that is as new, or that another transaction is
// just storing, stays. It never waits for a lock.
func Put(ctx context.Context, d store.Doer, s Snapshot) (stored bool, err error) {
	return putVerb.Do(ctx, d, s)
}
