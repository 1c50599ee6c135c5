// Package streamclose closes and truncates streams. A close ends the stream and
// keeps its events (archive), ends it and removes them (tombstone), or continues
// it from a snapshot (restart). It never loses a committed event that it does
// not cover, nor an event that a reaction still needs.
//
// # The protocol
//
// The head row of the stream, which every append checks, also records a close in
// progress.
//
//  1. The guard. One transaction locks the row, checks the reactions and, if none
//     of them needs the stream any more, takes a lease: the state is closing, and
//     the closer has an epoch and an expiry. From that commit on every append is
//     refused; every event committed before is in the stream.
//  2. The export, if requested. It reads a stream that does not change, while the
//     lease is renewed.
//  3. The end. One transaction, under that epoch and before the lease expires,
//     checks the reactions again and closes the stream, or restarts it from its
//     snapshot.
//
// Without an export, the guard and the end are one transaction. A closer that
// fails reopens the stream. A closer that crashes leaves a lease that expires: the
// next append, another closer or a sweep reopens the stream. Epoch and expiry keep
// the crashed closer from writing anything later.
//
// # The version that a close covers
//
// A close may name the version that it covers: the last event that its caller has
// read. If the stream is at another version, the close is refused and the stream
// does not change. A restart must name the version: events appended after its
// snapshot was made would be removed without being in any snapshot. An archive
// keeps every event and a tombstone removes every event, so they may omit the
// version.
//
// # Repeating a close
//
// A close whose response was lost, or whose caller crashed, can be repeated: that
// changes nothing and returns the same result. A closed stream records its mode
// and the covered version. A restart at version n leaves its snapshot at n+1, as
// the first event of the stream. While that event exists with the same data, a
// restart at n is the same close, whatever was appended since. Once a later
// restart or a truncate has removed it, n is below the head, and the repeated close
// is refused like every outdated close. Nothing else has to be stored.
//
// The row of the stream orders all of this. It is locked before any decision:
//
//   - An append that commits before the lock: the head is beyond n, and the close
//     is refused.
//   - An append that waits for the lock: it follows the snapshot, at n+2.
//   - Two concurrent restarts at n: the second one waits and finds the snapshot of
//     the first. With the same data it returns the same result; otherwise it is
//     refused.
//   - A crash or a lost response before the commit: nothing has happened. After the
//     commit: the repeated close finds the snapshot.
//   - A crash between the guard and the end: the stream stays leased until the lease
//     expires, and a repeated close is refused until then. After that it closes the
//     stream if the stream is still at n, and is refused if an append came first.
//
// # Reading the reactions without locks
//
// The position of a reaction on a stream is a row of its own. Its workers lock
// that row and not the stream's. The statement that reads the positions begins
// after the stream's row was locked, so it can miss only commits after its start:
//
//   - A due notice of an append is never missed, because the append locks the
//     stream.
//   - A take needs a lagging position, and a lagging position is refused like a
//     leased one. An ack, a failure and a repair of a blocked position change only
//     positions that are refused. The collection of a due notice is one
//     transaction, so one statement sees the notice in one of its two places.
//   - A reset or a registration that is missed comes after the close: a reset
//     starts at the first remaining event, and a registration waits for the
//     transactions in flight, this one included, before its second scan.
//
// Rejected: locking the positions too. A body that appends to the stream in the
// transaction of its ack locks the two rows in the opposite order.
//
// Rejected: a guard event on the stream. Every append would have to look for it,
// and a crashed closer would leave it behind.
//
// # Removal
//
// The first version of the stream decides which events exist: an event below it is
// invisible to every reader. [Prune] deletes the rows later, page by page. It keeps
// the rows of recent events for a while, because an append whose response was lost
// is resolved by its events.
package streamclose

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Mode is the way in which a stream is closed.
type Mode string

// Modes of a close.
const (
	Archive   Mode = "archive"   // refuse further events, keep the existing ones
	Tombstone Mode = "tombstone" // refuse further events, replace the existing ones by a tombstone
	Restart   Mode = "restart"   // replace the existing events by a snapshot and continue
)

// Names of the events that a close writes.
const (
	TombstoneEvent = "$tombstone"
	SnapshotEvent  = "$snapshot"
)

// Engine runs verbs and transactions.
type Engine interface {
	store.Doer
	Update(context.Context, func(context.Context, *store.Tx) error) error
}

// Args are the arguments of [Close].
type Args struct {
	Stream string
	Mode   Mode
	// ExpectVersion is the version that the close covers; the stream must be at it.
	// A restart needs one; for the other modes nil accepts any version.
	ExpectVersion *int64
	// Snapshot is the data of the one event that a restart leaves.
	Snapshot []byte
	// Export, if set, is called before any event is removed, while the stream
	// cannot change. The stream has the events from first to last.
	Export func(ctx context.Context, first, last int64) error
	// Lease is the lease duration, by default [lease.DefaultDuration]. Timeout is
	// how long the lease is renewed, by default [lease.Timeout].
	Lease, Timeout time.Duration
}

// Closed is the result of a close: the stream has the events from First to Last.
type Closed struct {
	Stream      string
	Mode        Mode
	First, Last int64
}

// Behind is a reaction that still needs events of a stream.
type Behind struct {
	Reaction string `json:"reaction"`
	// Why is lagging, held, blocked or registering.
	Why string `json:"why"`
}

// headRow is the head row of a stream.
type headRow struct {
	first, head int64
	state       string
	closed      Mode // the mode of a closed stream
	holder      string
	epoch       int64
	until       time.Time
	live        bool // its closer's lease has not expired
}

type listBehindReactionsArgs struct {
	stream    string   `arg:"stream"`
	Reactions []string `arg:"reactions"`
	below     int64    `arg:"below"`
}

type behindResult struct {
	revision int64
	all      []Behind
}

type takeArgs struct {
	stream string        `arg:"stream"`
	holder string        `arg:"holder"`
	lease  time.Duration `arg:"lease"`
}

type renewArgs struct {
	stream string        `arg:"stream"`
	epoch  int64         `arg:"epoch"`
	lease  time.Duration `arg:"lease"`
}

type endArgs struct {
	stream string `arg:"stream"`
	epoch  *int64 `arg:"epoch"` // nil: the stream is open
}

type replaceArgs struct {
	endArgs
	mode Mode   `arg:"mode"`
	name string `arg:"name"`
	data []byte `arg:"data"`
}

type reopenArgs struct {
	stream string `arg:"stream"`
	epoch  int64  `arg:"epoch"`
	swept  bool   `arg:"sweep"` // only if the lease has expired
}

type replaced struct {
	applied bool
	head    int64
}

// Only the verb that writes an event carries an id, so only its outcome can be
// looked up. The others run in a transaction, are repeatable, or expire.
var (
	lockVerb = store.NewVerb(store.Decl{Name: "streams.lock", Lane: store.Work}, nil, bindText,
		store.Each(func(s *headRow) []any {
			return []any{&s.first, &s.head, &s.state, &s.closed, &s.holder, &s.epoch, &s.until, &s.live}
		}))
	listBehindReactionsVerb = store.VerbOf[listBehindReactionsArgs](store.Decl{Name: "streams.list_behind_reactions", Lane: store.Read}, nil,
		func(r *behindResult, row store.Row) error {
			var b Behind
			err := row.Scan(&r.revision, &b.Reaction, &b.Why)
			if b.Reaction != "" {
				r.all = append(r.all, b)
			}
			return err
		})
	takeVerb = store.VerbOf[takeArgs](store.Decl{Name: "streams.close_take", Lane: store.Work}, nil,
		store.Each(func(h *lease.Lease) []any { return []any{&h.Epoch, &h.Until} }))
	renewVerb   = store.VerbOf[renewArgs](store.Decl{Name: "streams.close_renew", Lane: store.Vital}, nil, store.ScanValues[time.Time])
	reopenVerb  = store.VerbOf[reopenArgs](store.Decl{Name: "streams.reopen", Lane: store.Work}, nil, store.ScanValues[int64])
	archiveVerb = store.VerbOf[endArgs](store.Decl{Name: "streams.close_archive", Lane: store.Work}, nil, store.ScanValues[int64])
	replaceVerb = store.VerbOf[replaceArgs](store.Decl{Name: "streams.close_replace", Events: store.StreamEvents},
		func(a replaceArgs) []string { return []string{"stream/" + a.stream} },
		store.Outcome(func(r *replaced) (*bool, []any) { return &r.applied, []any{&r.head} })).
		RecoverWith(func(_ replaceArgs, m store.CommitProof) replaced { return replaced{true, m.Version} }).
		Emits(func(a replaceArgs) store.Emission {
			return store.Emission{Stream: a.stream, Names: []string{a.name}}
		})
)

func bindText(s string, args *store.Args) { args.Text("stream", s) }

// check validates the arguments and sets the default lease.
func check(a *Args) error {
	if err := checkStream(a.Stream); err != nil {
		return err
	}
	if a.Lease == 0 {
		a.Lease = lease.DefaultDuration
	}
	switch {
	case a.Mode != Archive && a.Mode != Tombstone && a.Mode != Restart:
		return fault.New(fault.Validation, "mode must be archive, tombstone or restart, got %q", a.Mode)
	case a.Mode == Restart && a.Snapshot == nil:
		return fault.New(fault.Validation, "a restart requires a snapshot: add one, or use another mode")
	case a.Mode == Restart && a.ExpectVersion == nil:
		return fault.New(fault.Validation, "a restart requires the version that its snapshot covers: set it to the version of the last event in the snapshot").
			With("pointer", "/expectedVersion")
	case a.ExpectVersion != nil && *a.ExpectVersion < 0:
		return fault.New(fault.Validation, "the version that a close covers must be at least 0, got %d", *a.ExpectVersion).With("pointer", "/expectedVersion")
	case a.Mode != Restart && a.Snapshot != nil:
		return fault.New(fault.Validation, "only a restart accepts a snapshot: remove the snapshot, or use mode restart instead of %s", a.Mode)
	case a.Lease < time.Millisecond || a.Lease > 24*time.Hour:
		return fault.New(fault.Validation, "lease must be between 1ms and 24h, got %s", a.Lease)
	case a.Snapshot != nil:
		return strictjson.Check(a.Snapshot)
	}
	return nil
}

func checkStream(name string) error {
	if err := strictjson.Text("stream", name, events.MaxName); err != nil {
		return err
	}
	if strings.HasPrefix(name, "$") {
		return fault.New(fault.Forbidden, "stream %q is reserved, because names that begin with $ are those of the histories that Holdfast writes: only user streams can be closed or truncated", name)
	}
	return nil
}
