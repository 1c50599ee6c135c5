// Package stream stores append-only logs: streams of events with versions 0, 1, 2 … without a
// gap.
//
//	last, err := stream.Append(ctx, hf, "account-7", 4,
//		stream.Event{Name: "withdrawn", Data: []byte(`{"cents": 1200}`)})
//	if errors.Is(err, holdfast.ErrConcurrency) {
//		// another writer was faster: load the stream again and decide anew
//	}
//
// Functions that take a [holdfast.Doer] take an engine or a transaction.
package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Version is the version that an append expects a stream to be at.
type Version int64

const (
	// Any accepts the stream at any version, and also if it does not exist.
	Any Version = -2
	// None requires that the stream does not exist.
	None Version = -1
)

// Event is one event of a stream. To append one, set its Name, its Data as JSON (nil means {}),
// and what is known of its origin. The other fields are set when it is read.
type Event struct {
	Stream  string
	Version Version
	Name    string
	Data    []byte
	// Correlation, Causation and Actor describe the origin of the event. They are passed on, and
	// never used to recognise a repeated request.
	Correlation string
	Causation   string
	Actor       string
	// Subject names the person that the data is about. Such an event is appended and read through
	// a [Vault], which stores its data encrypted.
	Subject string
	// Forgotten reports that the subject was forgotten: the data is null.
	Forgotten bool
	At        time.Time
}

// Append adds events to a stream, all or none, and returns its last version. If the stream is not
// at version want, nothing is written, and the error is [holdfast.ErrConcurrency] with the fields
// expectedVersion and lastVersion.
func Append(ctx context.Context, d holdfast.Doer, stream string, want Version, all ...Event) (Version, error) {
	a := events.AppendArgs{Stream: stream}
	if want != Any {
		v := int64(want)
		a.ExpectVersion = &v
	}
	for i, e := range all {
		if err := checkSealed(e); err != nil {
			return 0, fmt.Errorf("event %d: %w", i, err)
		}
		a.Events = append(a.Events, events.Event{Name: e.Name, Data: e.Data, Subject: e.Subject,
			Meta: events.Meta{Correlation: e.Correlation, Causation: e.Causation, Actor: e.Actor}})
	}
	last, err := events.Append(ctx, store.DoerOf(d), a)
	return Version(last), err
}

// Read returns up to limit events of a stream, starting at a version. The maximum is 1,000
// events, which is also the meaning of limit 0. A stream that does not exist has no events.
func Read(ctx context.Context, d holdfast.Doer, stream string, from Version, limit int) ([]Event, error) {
	return read(ctx, d, events.ReadArgs{Stream: stream, From: int64(from), Limit: limit})
}

// ReadBackward returns up to limit events of a stream from a version backward, newest first. A
// negative version starts at the end of the stream.
func ReadBackward(ctx context.Context, d holdfast.Doer, stream string, from Version, limit int) ([]Event, error) {
	return read(ctx, d, events.ReadArgs{Stream: stream, From: int64(from), Limit: limit, Backward: true})
}

func read(ctx context.Context, d holdfast.Doer, a events.ReadArgs) ([]Event, error) {
	found, err := events.Read(ctx, store.DoerOf(d), a)
	if err != nil {
		return nil, err
	}
	all := make([]Event, len(found))
	for i, e := range found {
		all[i] = public(e)
	}
	return all, nil
}
