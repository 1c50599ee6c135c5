// Package stream stores append-only logs of events. Each log is a stream, whose events have the versions 0, 1, 2 …
// without gaps.
//
//	last, err := stream.Append(ctx, hf, "account-7", 4,
//		stream.Event{Name: "withdrawn", Data: []byte(`{"cents": 1200}`)})
//	if errors.Is(err, holdfast.ErrConcurrency) {
//		// another writer appended first: load the stream again and decide again
//	}
//
// Functions that take a [holdfast.Doer] take an engine or a transaction.
package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/subjectkey"
)

// Version is the version of an event in its stream, counted from 0. As the version that [Append] expects, it may
// also be [Any] or [None].
type Version int64

const (
	// Any accepts any version of the stream, and also a stream that does not exist.
	Any Version = -2
	// None requires that the stream does not exist.
	None Version = -1
)

// ErrClosed is returned by an append to a stream that is being closed or was closed permanently. Compare with
// [errors.Is].
var ErrClosed = fault.Of(fault.StreamClosed)

// Event is one event of a stream. To append one, set its Name, its Data as JSON (nil means {}), and its origin, if
// known. The other fields are set when the event is read.
type Event struct {
	Stream  string
	Version Version
	Name    string
	Data    json.RawMessage
	// Correlation, Causation and Actor describe the origin of the event. They are stored with the event, and are never
	// used to recognize a repeated request.
	Correlation string
	Causation   string
	Actor       string
	// Subject identifies the person that the data is about. Such an event is appended and read through
	// a [Vault], which stores its data encrypted.
	Subject string
	// Forgotten reports that the subject was forgotten: the data is null.
	Forgotten bool
	At        time.Time
}

// Append adds events to a stream, all or none, and returns its last version. If the stream is not
// at the expected version, nothing is written, and the error is [holdfast.ErrConcurrency] with the fields
// expectedVersion and lastVersion. An append has 1 to 1,000 events, with at most 4 MiB of data together; otherwise the
// error is [holdfast.ErrValidation] or [holdfast.ErrPayloadTooLarge].
func Append(ctx context.Context, d holdfast.Doer, stream string, expected Version, all ...Event) (Version, error) {
	a := events.AppendArgs{Stream: stream}
	if expected != Any {
		v := int64(expected)
		a.ExpectVersion = &v
	}
	for i, e := range all {
		if err := subjectkey.CheckEvent(e.Name, e.Subject, e.Data); err != nil {
			return 0, fmt.Errorf("event %d: %w", i, err)
		}
		a.Events = append(a.Events, events.Event{Name: e.Name, Data: e.Data, Subject: e.Subject,
			Meta: events.Meta{Correlation: e.Correlation, Causation: e.Causation, Actor: e.Actor}})
	}
	last, err := events.Append(ctx, store.DoerOf(d), a)
	return Version(last), err
}

// Read iterates over the events of a stream, starting at a version. A stream that does not exist has no events.
// Events are read in pages; outside a transaction, each page is a separate read.
func Read(ctx context.Context, d holdfast.Doer, stream string, from Version) iter.Seq2[Event, error] {
	return iterate(events.ReadArgs{Stream: stream, From: int64(from), Limit: events.MaxRead}, pages(ctx, d))
}

// ReadBackward iterates over the events of a stream backward, newest first, starting at a version. A negative version
// starts at the end of the stream. You can stop the iteration early without reading many events, because the first
// pages are small.
func ReadBackward(ctx context.Context, d holdfast.Doer, stream string, from Version) iter.Seq2[Event, error] {
	return iterate(events.ReadArgs{Stream: stream, From: int64(from), Limit: backwardPage, Backward: true}, pages(ctx, d))
}

// backwardPage is the size of the first page of [ReadBackward]. Most callers need only a few
// events.
const backwardPage = 16

// pages returns a function that reads a page of a stream.
func pages(ctx context.Context, d holdfast.Doer) func(events.ReadArgs) ([]Event, error) {
	return func(a events.ReadArgs) ([]Event, error) {
		found, err := events.Read(ctx, store.DoerOf(d), a)
		all := make([]Event, len(found))
		for i, e := range found {
			all[i] = public(e)
		}
		return all, err
	}
}

// iterate iterates over the events of a stream, page by page.
func iterate(a events.ReadArgs, read func(events.ReadArgs) ([]Event, error)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			page, err := read(a)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if len(page) < a.Limit {
				return
			}
			last := int64(page[len(page)-1].Version)
			if a.From = last + 1; a.Backward {
				a.From = last - 1
			}
			if a.From < 0 {
				return // the page ended with the first event
			}
			a.Limit = min(4*a.Limit, events.MaxRead)
		}
	}
}
