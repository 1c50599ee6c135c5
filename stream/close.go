package stream

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/streamclose"
)

// Mode is what becomes of a stream whose books are closed.
type Mode string

const (
	// Archive ends a stream: it takes no more events, and those it has can
	// still be read.
	Archive Mode = Mode(streamclose.Archive)
	// Tombstone ends a stream and removes its events, except a last one named
	// "$tombstone".
	Tombstone Mode = Mode(streamclose.Tombstone)
	// Restart replaces the events of a stream by one named "$snapshot", behind
	// which it goes on. Versions go on too.
	Restart Mode = Mode(streamclose.Restart)
)

// CloseOptions says how the books of a stream are closed.
type CloseOptions struct {
	Mode Mode
	// Snapshot is the data of the one event that a restart leaves, as JSON.
	Snapshot []byte
	// ExpectVersion is the version that the close covers: that of the last event that its
	// caller has read. If the stream is at another one, the error is
	// [holdfast.ErrConcurrency] with lastVersion: read on, make the snapshot anew
	// and close again. A restart needs it, because what was appended after its
	// snapshot was made would be removed. An archive keeps every event, and a
	// tombstone removes whatever there is: for them nil takes any version.
	ExpectVersion *Version
	// Archive, if set, is given the events page by page, in order, before
	// anything is removed. Meanwhile the stream takes no events. It may be
	// called again for the same events if closing fails and is repeated. Its
	// context ends when the closing has taken too long.
	Archive func(context.Context, []Event) error
	// Lease is how long the stream stays as it is when this process dies in
	// the middle; the default is 30 seconds. While Archive works it is renewed.
	Lease time.Duration
	// Timeout is how long Archive may take in all; the default is 15 minutes.
	Timeout time.Duration
}

// Closed tells what is left of a stream: the events from First to Last.
type Closed struct {
	Stream      string
	Mode        Mode
	First, Last Version
}

// Close closes the books of a stream. Every append that was acknowledged before
// is in the stream that is archived or exported, and every later one is refused
// as [fault.StreamClosed].
//
// A reaction that follows the stream must have handled all that concerns it, and
// hold nothing; otherwise the error is [holdfast.ErrConflict], whose field
// "reactions" says by whom the stream is needed, and the stream stays open. So it
// does when Archive fails.
//
// The same close again changes nothing and gives the same answer, also after a
// crash; that of a restart (the same Want and Snapshot) also after events were
// appended behind its snapshot. When the stream was closed again since, or
// truncated beyond the snapshot, a repeated restart is refused.
func Close(ctx context.Context, e *holdfast.Engine, stream string, o CloseOptions) (Closed, error) {
	a := streamclose.Args{Stream: stream, Mode: streamclose.Mode(o.Mode), ExpectVersion: (*int64)(o.ExpectVersion), Snapshot: o.Snapshot, Lease: o.Lease, Timeout: o.Timeout}
	if o.Archive != nil {
		a.Export = func(ctx context.Context, first, last int64) error {
			return export(ctx, e, stream, Version(first), Version(last), o.Archive)
		}
	}
	c, err := streamclose.Close(ctx, engine.Of(e), a)
	return Closed{Stream: c.Stream, Mode: Mode(c.Mode), First: Version(c.First), Last: Version(c.Last)}, err
}

// export hands on the events from a version to another. The end of ctx, which
// says that the stream is no longer held, ends it.
func export(ctx context.Context, e *holdfast.Engine, stream string, from, to Version, f func(context.Context, []Event) error) error {
	for from <= to {
		page, err := Read(ctx, e, stream, from, events.MaxRead)
		if err != nil {
			return err
		}
		if len(page) == 0 || page[0].Version != from {
			return fault.New(fault.LeaseLost, "version %d of %s is gone: another caller has closed the stream", from, stream)
		}
		if err := f(ctx, page); err != nil {
			return err
		}
		from = page[len(page)-1].Version + 1
	}
	return ctx.Err()
}

// Truncate drops the events of a stream below a version, for good. Its last event
// always stays. Where a reaction has not handled what is to go, as far as it
// concerns it, the error is [holdfast.ErrConflict], whose field "reactions" says
// which. A reaction that is reset afterwards starts at the first event kept.
func Truncate(ctx context.Context, e *holdfast.Engine, stream string, before Version) error {
	return streamclose.Truncate(ctx, engine.Of(e), stream, int64(before))
}
