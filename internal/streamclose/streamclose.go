// Package streamclose closes the books of a stream: it ends the stream and keeps its
// events, or removes them, or goes on from a snapshot, and loses nothing that
// was acknowledged or that a reaction still needs.
//
// # The protocol
//
// The head row of the stream, which judges every append, also says whether its
// books are being closed.
//
//  1. The guard. In one transaction the row is locked, the reactions are looked
//     at and, where none needs anything of the stream any more, the stream is
//     held: its state is closing, its closer has an epoch and a time. From that
//     commit on an append is refused, and whatever was acknowledged before it is
//     in the stream.
//  2. The export, if one was asked for. It reads a stream that stands still,
//     while the hold is renewed.
//  3. The end. In one transaction, under that epoch and before that time, the
//     reactions are looked at again and the stream is closed, or goes on from
//     its snapshot.
//
// Where there is nothing to export, the guard and the end are one transaction. A
// closer that fails opens the stream again. One that dies leaves a hold that runs
// out: the next append, another closer or a sweep opens the stream, and by its
// epoch and time the dead one can write nothing more.
//
// # What a close covers
//
// A close may name the version that it covers: that of the last event its caller
// has read. A stream that is at another version is refused and stays as it is. A
// restart must name it: what was appended after its snapshot was made would be
// removed, and is in no snapshot. An archive keeps every event, and a tombstone is
// asked to remove whatever there is, so that they may leave it out.
//
// # A close that is repeated
//
// A close whose answer was lost, or whose caller died, is repeated: that changes
// nothing and has the same answer. A closed stream shows its mode and the version
// that was covered. A restart at version n leaves its snapshot at n+1, as the first
// event of the stream: while it is there, with the same data, a restart at n is the
// same close, whatever was appended since. Once a later restart or a truncate has
// removed it, n is below the head, and the repeated close is refused as every
// outdated one is. So there is nothing else to store.
//
// The row of the stream orders everything, and it is locked before anything is
// decided:
//
//   - An append that commits before the lock: the head is beyond n, refused.
//   - An append that waits for the lock: it comes behind the snapshot, at n+2.
//   - Two restarts at n, at once: the second waits, and finds the snapshot of the
//     first. With the same data it has the same answer, otherwise it is refused.
//   - A crash, or a lost answer, before the commit: nothing has happened. After it:
//     the repeated close finds the snapshot.
//   - A crash between the guard and the end: the stream stays held for the time of
//     the hold, and a repeated close is told so. Then it closes the stream if it is
//     still at n, and is refused if an append was first.
//
// # Why the reactions can be looked at without locking them
//
// Where a reaction stands on a stream is in its own row, which those who work
// for it lock, and not the stream's. The statement that looks at these rows
// begins after the stream's row was locked, and what it may miss is only what is
// committed after it began:
//
//   - A mark of an append is not among that, for the append locks the stream.
//   - Somebody takes only what is lagging, and lagging is refused as held is. An
//     ack, a failure and a repair of what is blocked change only what was refused.
//     A mark that is being gathered moves in one transaction, and one statement
//     sees it in one of the two places.
//   - A reset, and the registration of a reaction, come after the close then: a
//     reset starts at the first event kept, and a reaction that is registered
//     waits for the transactions under way, this one included, before it looks
//     for what there is.
//
// Rejected: locking the rows of the reactions too. A body that appends to the
// stream in the transaction of its ack locks the two in the other order.
//
// Rejected: a guard event on the stream. Whoever appends would have to look for
// it, and a closer that died would leave it there.
//
// # Removal
//
// Events go by one number: what is below the first version of the stream is not
// there any more for anybody. The rows are deleted later, page by page, by
// [Prune]. Those of a young event are kept for a while, because an append whose
// answer was lost is asked for by its events.
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

// Mode is what becomes of a stream.
type Mode string

// The ways to close a stream.
const (
	Archive   Mode = "archive"   // takes no more events, and keeps those it has
	Tombstone Mode = "tombstone" // takes no more events, and keeps none but a last one that says so
	Restart   Mode = "restart"   // goes on, with a snapshot in the place of its events
)

// Names of the events that are written when a stream is closed.
const (
	TombstoneEvent = "$tombstone"
	SnapshotEvent  = "$snapshot"
)

// Engine is what the books are closed on: it runs verbs, and transactions.
type Engine interface {
	store.Doer
	Update(context.Context, func(context.Context, *store.Tx) error) error
}

// Args says which stream to close, and how.
type Args struct {
	Stream string
	Mode   Mode
	// ExpectVersion is the version that the close covers, which the stream must be at.
	// A restart needs one; otherwise nil takes any.
	ExpectVersion *int64
	// Snapshot is the data of the one event that a restart leaves.
	Snapshot []byte
	// Export, if set, is called while the stream stands still, before
	// anything is removed: its events are those from first to last.
	Export func(ctx context.Context, first, last int64) error
	// Lease is how long the hold lasts without a renewal, [lease.DefaultDuration] if not
	// set, and Timeout how long it is renewed, [lease.Timeout] if not set.
	Lease, Timeout time.Duration
}

// Closed is a stream whose books were closed: it has the events from First to
// Last.
type Closed struct {
	Stream      string
	Mode        Mode
	First, Last int64
}

// Behind is a reaction that still needs something of a stream.
type Behind struct {
	Reaction string `json:"reaction"`
	// Why is lagging, held, blocked or registering.
	Why string `json:"why"`
}

// standing is the head row of a stream.
type standing struct {
	first, head int64
	state       string
	closed      Mode // how it was closed
	holder      string
	epoch       int64
	until       time.Time
	live        bool // its closer's hold has not run out
}

type behindArgs struct {
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
	epoch  *int64 `arg:"epoch"` // nil: as it is open
}

type replaceArgs struct {
	endArgs
	mode Mode   `arg:"mode"`
	name string `arg:"name"`
	data []byte `arg:"data"`
}

type openArgs struct {
	stream string `arg:"stream"`
	epoch  int64  `arg:"epoch"`
	swept  bool   `arg:"sweep"`
}

type replaced struct {
	applied bool
	head    int64
}

// Those that run in a transaction, or again, or run out, carry no id: only the
// one that writes an event can be asked for.
var (
	lockVerb = store.NewVerb(store.Decl{Name: "books.lock", Lane: store.Work}, nil, bindText,
		store.Each(func(s *standing) []any {
			return []any{&s.first, &s.head, &s.state, &s.closed, &s.holder, &s.epoch, &s.until, &s.live}
		}))
	behindVerb = store.VerbOf[behindArgs](store.Decl{Name: "books.behind", Lane: store.Read}, nil,
		func(r *behindResult, row store.Row) error {
			var b Behind
			err := row.Scan(&r.revision, &b.Reaction, &b.Why)
			if b.Reaction != "" {
				r.all = append(r.all, b)
			}
			return err
		})
	takeVerb = store.VerbOf[takeArgs](store.Decl{Name: "books.take", Lane: store.Work}, nil,
		store.Each(func(h *lease.Lease) []any { return []any{&h.Epoch, &h.Until} }))
	renewVerb   = store.VerbOf[renewArgs](store.Decl{Name: "books.renew", Lane: store.Vital}, nil, store.ScanValues[time.Time])
	openVerb    = store.VerbOf[openArgs](store.Decl{Name: "books.open", Lane: store.Work}, nil, store.ScanValues[int64])
	archiveVerb = store.VerbOf[endArgs](store.Decl{Name: "books.archive", Lane: store.Work}, nil, store.ScanValues[int64])
	replaceVerb = store.VerbOf[replaceArgs](store.Decl{Name: "books.replace", Events: store.StreamEvents},
		func(a replaceArgs) []string { return []string{"stream/" + a.stream} },
		store.Outcome(func(r *replaced) (*bool, []any) { return &r.applied, []any{&r.head} })).
		RecoverWith(func(_ replaceArgs, m store.CommitProof) replaced { return replaced{true, m.Version} }).
		Emits(func(a replaceArgs) store.Emission {
			return store.Emission{Stream: a.stream, Names: []string{a.name}}
		})
)

func bindText(s string, args *store.Args) { args.Text("stream", s) }

// check refuses what cannot be closed as it is asked for.
func check(a *Args) error {
	if err := checkStream(a.Stream); err != nil {
		return err
	}
	if a.Lease == 0 {
		a.Lease = lease.DefaultDuration
	}
	switch {
	case a.Mode != Archive && a.Mode != Tombstone && a.Mode != Restart:
		return fault.New(fault.Validation, "a stream is closed by archive, tombstone or restart, not by %q", a.Mode)
	case a.Mode == Restart && a.Snapshot == nil:
		return fault.New(fault.Validation, "a restart needs the snapshot that the stream goes on from")
	case a.Mode == Restart && a.ExpectVersion == nil:
		return fault.New(fault.Validation, "a restart needs the version that its snapshot covers: expect the version of the last event that was read to make it").
			With("pointer", "/expectedVersion")
	case a.ExpectVersion != nil && *a.ExpectVersion < 0:
		return fault.New(fault.Validation, "a close covers a version from 0 on, not %d", *a.ExpectVersion).With("pointer", "/expectedVersion")
	case a.Mode != Restart && a.Snapshot != nil:
		return fault.New(fault.Validation, "only a restart takes a snapshot, not a close by %s", a.Mode)
	case a.Lease < time.Millisecond || a.Lease > 24*time.Hour:
		return fault.New(fault.Validation, "a lease is a millisecond to a day, not %s", a.Lease)
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
		return fault.New(fault.Forbidden, "the stream %q is Holdfast's own history: its books are not closed", name)
	}
	return nil
}
