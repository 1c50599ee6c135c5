package httpapi

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/streamclose"
	"github.com/holdfast-go/holdfast/wire"
)

type listStreamsIn struct {
	Prefix string `query:"prefix" doc:"List only streams whose names begin with this text."`
	paged
}

func listStreams(c *call, in *listStreamsIn) (wire.List[wire.Stream], error) {
	return list(c, in.paged, func(ctx context.Context, after string, limit int) ([]events.Stream, error) {
		return events.ListStreams(ctx, c.doer(), events.ListStreamsArgs{After: after, Prefix: in.Prefix, Limit: limit})
	}, wireStream, func(s events.Stream) string { return s.Name })
}

func wireStream(s events.Stream) wire.Stream {
	return wire.Stream{Name: s.Name, State: s.State, Mode: s.Closed, FirstVersion: s.First, LastVersion: s.Last, Events: s.Last - s.First + 1,
		FirstAt: timeOrNil(s.FirstAt), LastAt: timeOrNil(s.LastAt), LastName: s.LastName}
}

type streamIn struct {
	Stream string `path:"stream"`
}

// countedEvents is how many events the statistics of a stream count.
const countedEvents = 10_000

func getStream(c *call, in *streamIn) (out wire.StreamStatistics, err error) {
	s, err := events.GetStream(c.ctx(), c.doer(), in.Stream)
	if err != nil {
		return out, err
	}
	counts, err := events.CountNames(c.ctx(), c.doer(), in.Stream, s.First, countedEvents)
	out = wire.StreamStatistics{Stream: wireStream(s), Names: make(map[string]int64, len(counts))}
	for _, n := range counts {
		out.Names[n.Name] = n.Count
		out.Counted += n.Count
	}
	return out, err
}

type truncateIn struct {
	Stream string `path:"stream"`
	Body   wire.TruncateStream
}

func truncateStream(c *call, in *truncateIn) (wire.Stream, error) {
	if in.Body.Before < 1 {
		return wire.Stream{}, fault.New(fault.Validation, "before must be at least 1, got %d: set it to the first version to keep", in.Body.Before).With("pointer", "/before")
	}
	err := c.afterFeed(func() error {
		return streamclose.Truncate(c.ctx(), c.api.engine, in.Stream, in.Body.Before, in.Body.Snapshot)
	})
	if err != nil {
		return wire.Stream{}, err
	}
	s, err := events.GetStream(c.ctx(), c.api.engine, in.Stream)
	return wireStream(s), err
}

type searchEventsIn struct {
	Stream      string `query:"stream" doc:"Search only this stream, which may be a history such as $entity/invoice/17. Without it, the feed of all streams is searched."`
	Name        string `query:"name" doc:"Only events with these names, separated by commas."`
	Correlation string `query:"correlation" doc:"Only events with this correlation."`
	Actor       string `query:"actor" doc:"Only events of this actor."`
	Since       string `query:"since" doc:"Only events from this time on (RFC 3339)."`
	Until       string `query:"until" doc:"Only events before this time (RFC 3339)."`
	Backward    bool   `query:"backward" doc:"Return the newest events first."`
	paged
}

// args returns the search that a request asks for.
func (in *searchEventsIn) args() (events.SearchArgs, error) {
	a := events.SearchArgs{Stream: in.Stream, Backward: in.Backward, Filter: events.Filter{Correlation: in.Correlation, Actor: in.Actor}}
	if in.Name != "" {
		a.Names = strings.Split(in.Name, ",")
	}
	var err error
	if a.Since, err = moment("since", in.Since); err != nil {
		return a, err
	}
	if a.Until, err = moment("until", in.Until); err != nil {
		return a, err
	}
	return a, a.Check()
}

// moment parses a time in a query, which may be missing.
func moment(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	var t wire.Time
	if err := t.UnmarshalText([]byte(text)); err != nil {
		return time.Time{}, fault.New(fault.Validation, "query parameter %s: %q is not a valid RFC 3339 time: use a form such as 2026-01-31T08:30:00Z", name, text)
	}
	return t.Time, nil
}

func searchEvents(c *call, in *searchEventsIn) (wire.List[wire.Event], error) {
	var none wire.List[wire.Event]
	a, err := in.args()
	if err != nil {
		return none, err
	}
	p, err := c.page(in.paged)
	if err != nil {
		return none, err
	}
	search, start := feed.Search, feed.SearchStart
	if in.Stream != "" {
		search, start = events.Search, events.SearchStart
	} else if err := feed.OpenIfEnabled(c.ctx(), c.api.engine); err != nil {
		return none, err
	}
	if p.after != "" { // of a page of the same stream, or of the feed
		at, stream, _ := strings.Cut(p.after, "/")
		if a.From, err = versionOf(at); err == nil && stream != in.Stream {
			err = noCursor()
		}
	} else {
		a.From, err = start(c.ctx(), c.doer(), a)
	}
	if err != nil {
		return none, err
	}
	all, next := []wire.Event{}, ""
	ctx := p.budget.In(c.ctx())
	statements := maxSearches
	if in.Stream == "" {
		statements = maxFeedSearches
	}
	for range statements {
		a.Limit = p.budget.Rows(p.limit - len(all))
		found, err := search(ctx, c.doer(), a)
		if err != nil {
			return none, err
		}
		next = ""
		for _, f := range found {
			if f.Wanted {
				all = append(all, foundEvent(f, in.Stream == ""))
			}
			if next = nextVersion(f.At, a.Backward); f.Ended {
				next = ""
			}
		}
		if err := c.grow(p, len(all), next == ""); err != nil {
			return none, err
		}
		if next == "" || len(all) >= p.limit || p.spent() {
			break
		}
		if a.From, err = strconv.ParseInt(next, 10, 64); err != nil {
			return none, err
		}
	}
	if next != "" {
		next += "/" + in.Stream
	}
	return listed(c, all, next), nil
}

// foundEvent converts an event that a search found, with its position if the feed was searched.
func foundEvent(f events.Found, inFeed bool) wire.Event {
	e := shapes.Event(f.Event)
	if inFeed {
		e.Position = new(feed.Cursor(f.At))
	}
	return e
}
