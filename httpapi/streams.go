package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/streamclose"
	"github.com/holdfast-go/holdfast/internal/subjectkey"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) streamRoutes() {
	add(a, route{Method: http.MethodGet, Path: "streams", ID: "listStreams", Tag: "streams", Summary: "List the workspace's streams, without the histories.",
		Roles: readers, Filter: "StreamFilter"}, listStreams)
	add(a, route{Method: http.MethodGet, Path: "streams/{stream}", ID: "getStream", Tag: "streams", Summary: "Show a stream and counts of its events.",
		Roles: readers}, getStream)
	add(a, route{Method: http.MethodPost, Path: "streams/{stream}/events", ID: "appendEvents", Tag: "streams", Summary: "Append events to a stream, all or none, at an expected version.",
		Roles: operators, Status: http.StatusCreated, Idempotency: table.InCommand, Adds: []quota.Kind{quota.Storage}}, appendEvents)
	add(a, route{Method: http.MethodGet, Path: "streams/{stream}/events", ID: "readStream", Tag: "streams", Summary: "Read a stream, forward or backward.",
		Roles: readers, Filter: "StreamRange"}, readStream)
	add(a, route{Method: http.MethodPost, Path: "streams/{stream}/close", ID: "closeStream", Tag: "streams", Summary: "Close a stream at an expected version.",
		Roles: operators, Idempotency: table.UnderLease,
		More: "Repeating the same close returns the same result."}, closeStream)
	add(a, route{Method: http.MethodPost, Path: "streams/{stream}/truncate", ID: "truncateStream", Tag: "streams", Summary: "Delete the events of a stream below a version.",
		Roles: operators, Idempotency: table.UnderLease,
		More: "Repeating it changes nothing."}, truncateStream)
	add(a, route{Method: http.MethodGet, Path: "events/search", ID: "searchEvents", Tag: "streams", Summary: "Search a stream, or the feed of all streams but histories, for events.",
		Roles: readers, Filter: "EventFilter",
		More: "A page can be short or empty and still have a next page."}, searchEvents)
	add(a, route{Method: http.MethodGet, Path: "events", ID: "readFeed", Tag: "streams", Summary: "Read the feed of all streams but histories, or follow it (text/event-stream).",
		Roles: readers, Stream: true,
		More: "A cursor can also be an event's position."}, readFeed)
	add(a, route{Method: http.MethodGet, Path: "feed", ID: "readActivity", Tag: "streams", Summary: "Read all activity of the workspace, which is its feed and its histories, or watch it (text/event-stream).",
		Roles: readers, Stream: true,
		More: "Despite the path, this is not the feed, which is at events. A page lists events of histories, except those of API keys, before events of the feed, each oldest first."}, readActivity)
}

type appendIn struct {
	Stream string `path:"stream"`
	Body   wire.Append
}

func appendEvents(c *call, in *appendIn) (wire.Appended, error) {
	if len(in.Body.Events) == 0 {
		return wire.Appended{}, fault.New(fault.Validation, "events must not be empty: append at least one event").With("pointer", "/events")
	}
	if v := in.Body.ExpectedVersion; v != nil && *v < -1 {
		return wire.Appended{}, fault.New(fault.Validation, "expectedVersion must be -1 or more, got %d", *v).With("pointer", "/expectedVersion")
	}
	a := events.AppendArgs{Stream: in.Stream, ExpectVersion: in.Body.ExpectedVersion, Events: make([]events.Event, len(in.Body.Events))}
	for i, e := range in.Body.Events {
		data := orEmpty(e.Data)
		if err := subjectkey.CheckEvent(e.Name, "", data); err != nil {
			return wire.Appended{}, fmt.Errorf("event %d: %w", i, err)
		}
		a.Events[i] = events.Event{Name: e.Name, Data: data, Meta: events.Meta{Correlation: e.Correlation, Causation: e.Causation, Actor: cmp.Or(e.Actor, c.actor())}}
	}
	last, at, err := events.AppendAt(c.ctx(), c.doer(), a)
	if err != nil {
		return wire.Appended{}, err
	}
	// The response is built from the request: event data is stored byte for byte, so the events need not be read back.
	all := make([]wire.Event, len(a.Events))
	for i, e := range a.Events {
		e.Stream, e.Version, e.At = a.Stream, last-int64(len(all))+1+int64(i), at
		all[i] = shapes.Event(e)
	}
	c.w.Header().Set("Location", table.Base+"streams/"+url.PathEscape(in.Stream)+"/events")
	return wire.Appended{Stream: in.Stream, LastVersion: last, Events: all}, nil
}

func orEmpty(data json.RawMessage) []byte {
	if len(data) == 0 {
		return []byte("{}")
	}
	return data
}

func eventOf(e stream.Event, position *string) wire.Event {
	return wire.Event{Stream: e.Stream, Version: int64(e.Version), Position: position, Name: e.Name, Data: e.Data, Correlation: e.Correlation,
		Causation: e.Causation, Actor: e.Actor, At: shapes.At(e.At)}
}

type readStreamIn struct {
	Stream   string `path:"stream"`
	From     *int64 `query:"from" doc:"First version to read; defaults to the stream's first version, or to its last version when reading backward."`
	Backward bool   `query:"backward" doc:"Read from the newest event to the oldest."`
	paged
}

func readStream(c *call, in *readStreamIn) (wire.List[wire.Event], error) {
	var none wire.List[wire.Event]
	p, err := c.page(in.paged)
	if err != nil {
		return none, err
	}
	if in.From != nil && *in.From < 0 {
		return none, fault.New(fault.Validation, "from must be 0 or more, got %d", *in.From)
	}
	found, next, err := readPage(c, p, func(ctx context.Context, after string, limit int) (_ []events.Event, err error) {
		a := events.ReadArgs{Stream: in.Stream, Limit: limit, Backward: in.Backward}
		switch {
		case after != "":
			if a.From, err = versionOf(after); err != nil {
				return nil, err
			}
		case in.From != nil:
			a.From = *in.From
		case in.Backward:
			a.From = -1
		}
		return events.Read(ctx, c.doer(), a)
	}, func(e events.Event) string { return nextVersion(e.Version, in.Backward) })
	if err != nil {
		return none, err
	}
	all, err := withPositions(c, in.Stream, found)
	if err != nil {
		return none, err
	}
	return listed(c, all, next), nil
}

// mayRead refuses a caller that must not read a stream: histories of API keys are for those who may read the keys.
func (c *call) mayRead(stream string) error {
	if strings.HasPrefix(stream, keys.Stream("")) && c.key.Role != keys.Admin {
		return fault.New(fault.Forbidden, "reading the histories of API keys requires the role admin")
	}
	return nil
}

// withPositions converts the events of one stream, with their positions in the feed.
func withPositions(c *call, name string, found []events.Event) ([]wire.Event, error) {
	if len(found) == 0 {
		return nil, nil
	}
	first, last := found[0].Version, found[len(found)-1].Version
	places, err := feed.PositionsOf(c.ctx(), c.doer(), name, min(first, last), max(first, last))
	if err != nil {
		return nil, err
	}
	all := make([]wire.Event, len(found))
	for i, e := range found {
		all[i] = shapes.Event(e)
		if at, ok := places[e.Version]; ok {
			all[i].Position = new(feed.Cursor(at))
		}
	}
	return all, nil
}

// nextVersion returns where a read continues after a version, "" at the end.
func nextVersion(version int64, backward bool) string {
	if !backward {
		return strconv.FormatInt(version+1, 10)
	}
	if version == 0 {
		return ""
	}
	return strconv.FormatInt(version-1, 10)
}

type closeIn struct {
	Stream string `path:"stream"`
	Body   wire.CloseStream
}

// feedWait is how long a close or truncation waits for the feed.
const feedWait = 5 * time.Second

// onlyFeed reports whether err refuses a close or truncation for one reason only: the feed, which is filled by the reaction
// [feed.Reaction], is behind.
func onlyFeed(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.Conflict {
		return false
	}
	behind, _ := f.Fields["reactions"].([]streamclose.Behind)
	return len(behind) > 0 && !slices.ContainsFunc(behind, func(b streamclose.Behind) bool { return b.Reaction != feed.Reaction })
}

// afterFeed runs f. The feed lags behind recent appends by a moment, so f runs again if it is refused only because of that.
func (c *call) afterFeed(f func() error) error {
	var lagging error // the refusal, if the feed is behind
	err := c.await(feedWait, nil, func() (over bool, err error) {
		if lagging = f(); onlyFeed(lagging) {
			return false, nil
		}
		err, lagging = lagging, nil
		return true, err
	})
	if err == nil {
		err = lagging
	}
	return err
}

func closeStream(c *call, in *closeIn) (wire.ClosedStream, error) {
	var done streamclose.Closed
	err := c.afterFeed(func() (err error) {
		done, err = streamclose.Close(c.ctx(), c.api.engine,
			streamclose.Args{Stream: in.Stream, Mode: streamclose.Mode(in.Body.Mode), ExpectVersion: in.Body.ExpectedVersion, Snapshot: in.Body.Snapshot})
		return err
	})
	if err != nil {
		return wire.ClosedStream{}, err
	}
	return wire.ClosedStream{Stream: done.Stream, Mode: string(done.Mode), LastVersion: done.Last}, nil
}
