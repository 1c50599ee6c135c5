package stream

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/store"
)

// EventFilter selects events for [Search]. The zero EventFilter selects all events of the feed.
type EventFilter struct {
	// Stream is the stream to search, which may be a history; "" searches the feed. If the workspace has no
	// feed ([Feed]), the error is [holdfast.ErrNotFound].
	Stream string
	// Names are the names of the events; none means any.
	Names []string
	// Correlation and Actor are the origin of the events; "" means any.
	Correlation, Actor string
	// Since and Until limit the time of the events: from Since on, and before Until. The zero time means no limit. Times
	// are compared in milliseconds.
	Since, Until time.Time
	// Backward returns the newest events first.
	Backward bool
}

// Search iterates over the events that a filter selects, in the order of the stream or of the feed. To find them, the
// database reads the whole feed or, of a stream, the events between Since and Until, in pages: appends maintain no index
// for searches.
//
// If the database's clock was set back by more than an hour, a search of a stream with Since or Until may miss events that
// were written around that time.
func Search(ctx context.Context, d holdfast.Doer, f EventFilter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := search(ctx, store.DoerOf(d), f, func(e Event) bool { return yield(e, nil) }); err != nil {
			yield(Event{}, err)
		}
	}
}

func search(ctx context.Context, d store.Doer, f EventFilter, yield func(Event) bool) error {
	a := events.SearchArgs{Stream: f.Stream, Backward: f.Backward, Limit: events.MaxRead,
		Filter: events.Filter{Names: f.Names, Correlation: f.Correlation, Actor: f.Actor, Since: f.Since, Until: f.Until}}
	start, read := feed.SearchStart, feed.Search
	if f.Stream != "" {
		start, read = events.SearchStart, events.Search
	}
	err := a.Check()
	if err == nil {
		a.From, err = start(ctx, d, a)
	}
	for some := false; err == nil; {
		var all []events.Found
		all, err = read(ctx, d, a)
		for _, found := range all {
			some = true
			// The last event of a page may not match the filter. It is there so that the next page starts after it.
			if found.Wanted && !yield(public(found.Event)) {
				return nil
			}
			a.From = found.At + 1
			if f.Backward {
				a.From = found.At - 1
			}
		}
		if len(all) == 0 || all[len(all)-1].Ended || a.From < 0 {
			if err == nil && f.Stream == "" && !some {
				err = feed.Exists(ctx, d)
			}
			return err
		}
	}
	return err
}

// Status is the status of a stream.
type Status string

// The statuses of streams.
const (
	StreamOpen    Status = "open"
	StreamClosing Status = "closing" // a close is in progress
	StreamClosed  Status = "closed"
)

// Info describes a stream. Its events are those from First to Last.
type Info struct {
	Name        string
	First, Last Version
	Status      Status
	Mode        CloseMode // of a closed stream
	// FirstAt and LastAt are the times of the first and the last event, and LastName is the name of the last one.
	FirstAt, LastAt time.Time
	LastName        string
}

// Filter selects streams. The zero Filter selects all.
type Filter struct {
	// Prefix is the beginning of the names.
	Prefix string
}

// List iterates over the streams of a workspace, in the order of their names, without the histories.
func List(ctx context.Context, d holdfast.Doer, f Filter) iter.Seq2[Info, error] {
	return store.Seq(func(last events.Stream, limit int) ([]events.Stream, error) {
		return events.ListStreams(ctx, store.DoerOf(d), events.ListStreamsArgs{After: last.Name, Prefix: f.Prefix, Limit: limit})
	}, info)
}

// Get returns a stream. If it does not exist, the error is [holdfast.ErrNotFound].
func Get(ctx context.Context, d holdfast.Doer, name string) (Info, error) {
	s, err := events.GetStream(ctx, store.DoerOf(d), name)
	return info(s), err
}

func info(s events.Stream) Info {
	return Info{Name: s.Name, First: Version(s.First), Last: Version(s.Last), Status: Status(s.State), Mode: CloseMode(s.Closed),
		FirstAt: s.FirstAt, LastAt: s.LastAt, LastName: s.LastName}
}
