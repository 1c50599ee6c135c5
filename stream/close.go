package stream

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/streamclose"
)

// CloseMode is the mode in which a stream is closed.
type CloseMode string

const (
	// Archive ends a stream. The stream accepts no more events, but its events can still be read.
	Archive CloseMode = "archive"
	// Tombstone ends a stream and removes its events, except a last one named "$tombstone".
	Tombstone CloseMode = "tombstone"
	// Restart replaces the events of a stream with one event named "$snapshot". The stream and its
	// version numbers continue after that event.
	Restart CloseMode = "restart"
)

// CloseOption is an option of [Close].
type CloseOption interface{ close(*closeOptions) }

type closeOption func(*closeOptions)

func (f closeOption) close(o *closeOptions) { f(o) }

type closeOptions struct {
	streamclose.Args
	export func(context.Context, []Event) error
	bad    error
}

// SnapshotOption is the option [Snapshot] of [Close] and [Truncate].
type SnapshotOption struct{ state json.RawMessage }

// Snapshot sets the state, as JSON, that replaces the removed events, and from which aggregates are loaded. A restart requires
// it: its "$snapshot" event has this data. For [Truncate], the state must include exactly the events below the version;
// [Aggregate.Truncate] computes it. An empty state is [holdfast.ErrValidation].
func Snapshot(state json.RawMessage) SnapshotOption { return SnapshotOption{state} }

func (s SnapshotOption) close(o *closeOptions) {
	if o.Snapshot = s.state; len(s.state) == 0 {
		o.bad = fault.New(fault.Validation, "Snapshot has no state: pass one, or omit Snapshot")
	}
}

func (s SnapshotOption) truncate(o *truncateOptions) { o.snapshot, o.given = s.state, true }

// ExpectVersion sets the version that the close covers: the version of the last event that the caller has read. If the
// stream is at another version, the error is [holdfast.ErrConcurrency] with lastVersion: read the new events, make the
// snapshot again and retry the close. A restart requires this option, because it would otherwise remove events that
// were appended after its snapshot was made. Without the option, the other modes accept any version. [Any], [None] and other
// negative versions are [holdfast.ErrValidation].
func ExpectVersion(version Version) CloseOption {
	return closeOption(func(o *closeOptions) { o.Args.ExpectVersion = (*int64)(&version) })
}

// Export passes the events to f page by page, in order, before anything is removed. While f runs, the stream accepts no
// events. f may be called again for the same events if the close fails and is retried. The context passed to f ends
// after the [Timeout]. A nil f is [holdfast.ErrValidation].
func Export(f func(context.Context, []Event) error) CloseOption {
	return closeOption(func(o *closeOptions) {
		if o.export = f; f == nil {
			o.bad = fault.New(fault.Validation, "Export has no function: pass one, or omit Export")
		}
	})
}

// Lease sets how long the stream stays locked if this process crashes during an [Export]; the default is 30 seconds. The
// lock is renewed while the export runs. Without an Export, the error is [holdfast.ErrValidation].
func Lease(d time.Duration) CloseOption {
	return closeOption(func(o *closeOptions) { o.Args.Lease = d })
}

// Timeout limits the total duration of an [Export]; the default is 15 minutes. Without an Export, the error is
// [holdfast.ErrValidation].
func Timeout(d time.Duration) CloseOption {
	return closeOption(func(o *closeOptions) { o.Args.Timeout = d })
}

// Closed describes a closed stream. The events from First to Last remain.
type Closed struct {
	Stream      string
	Mode        CloseMode
	First, Last Version
}

// Close closes a stream. Every append that was acknowledged before the close is part of the archived or exported
// stream. Every later append returns [ErrClosed], except that a stream accepts events again after a [Restart].
//
// Every reaction that follows the stream must have handled all events that it selects, and must hold no lease on the
// stream. Otherwise the error is [holdfast.ErrConflict], whose field "reactions" lists the reactions that need the
// stream, and the stream stays open. It also stays open if an [Export] fails.
//
// Repeating the same close changes nothing and returns the same result, even after a crash. A restart (with the same
// ExpectVersion and Snapshot) can also be repeated after events were appended after its snapshot, but not if the
// stream has since been closed again or truncated beyond the snapshot.
func Close(ctx context.Context, e *holdfast.Engine, stream string, mode CloseMode, o ...CloseOption) (Closed, error) {
	a := closeOptions{Args: streamclose.Args{Stream: stream, Mode: streamclose.Mode(mode)}}
	for _, option := range o {
		option.close(&a)
	}
	if a.bad != nil {
		return Closed{}, a.bad
	}
	if a.export == nil && (a.Args.Lease != 0 || a.Args.Timeout != 0) {
		return Closed{}, fault.New(fault.Validation, "Lease and Timeout apply to an export: add Export, or leave them out")
	}
	if a.Args.Lease < 0 || a.Args.Timeout < 0 {
		return Closed{}, fault.New(fault.Validation, "Lease (%s) and Timeout (%s) must not be negative", a.Args.Lease, a.Args.Timeout)
	}
	if a.export != nil {
		a.Export = func(ctx context.Context, first, last int64) error {
			return export(ctx, e, stream, Version(first), Version(last), a.export)
		}
	}
	c, err := streamclose.Close(ctx, engine.Of(e), a.Args)
	return Closed{Stream: c.Stream, Mode: CloseMode(c.Mode), First: Version(c.First), Last: Version(c.Last)}, err
}

// export passes the events between two versions to f. It stops when ctx ends, because the stream
// is no longer leased then.
func export(ctx context.Context, e *holdfast.Engine, stream string, from, to Version, f func(context.Context, []Event) error) error {
	for from <= to {
		page, err := pages(ctx, e)(events.ReadArgs{Stream: stream, From: int64(from), Limit: events.MaxRead})
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

// TruncateOption is an option of [Truncate]: [Snapshot].
type TruncateOption interface{ truncate(*truncateOptions) }

type truncateOptions struct {
	snapshot json.RawMessage
	given    bool
}

// Truncate permanently removes the events of a stream below a version. The last event is never removed. If a reaction
// still has to handle one of the events to be removed, the error is [holdfast.ErrConflict], whose field "reactions"
// lists the reactions. A reaction that is reset afterwards starts at the first remaining event.
//
// The stream stays open, and events can be appended meanwhile. If you want to keep the removed events elsewhere, read them
// before: events below a version never change. Repeating Truncate changes nothing. Without a [Snapshot], and without a stored
// snapshot that is recent enough, an aggregate of the stream can no longer be loaded.
func Truncate(ctx context.Context, e *holdfast.Engine, stream string, before Version, o ...TruncateOption) error {
	var with truncateOptions
	for _, option := range o {
		option.truncate(&with)
	}
	if with.given && len(with.snapshot) == 0 {
		return fault.New(fault.Validation, "the snapshot is empty: pass the state as JSON, or omit the option")
	}
	return streamclose.Truncate(ctx, engine.Of(e), stream, int64(before), with.snapshot)
}
