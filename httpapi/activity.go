package httpapi

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/live"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/wire"
)

// The activity of a workspace (the route "feed") is for observers: it merges the histories with the feed. Histories
// have no position. Pages are read in the order of their ids, which is nearly that of time. An event stream is read by the reader
// that all clients of the workspace share ([live.Follower]), and its cursors also say which events were sent, so none is repeated or missing. A
// stream that continues after a page goes back by lookBack, because a transaction may commit late, and repeats these events. A consumer that
// must handle each event exactly once registers a reaction.

// lookBack is how late a transaction may commit and still be seen after a page.
const lookBack = 30 * time.Second

// activityCursor is the place of an observer in the activity.
type activityCursor struct {
	position string      // in the feed
	id       string      // in the histories
	n        int64       // of the event among those with that id; in an event stream, of the message
	place    *live.Place // of an event stream; nil for a page
}

func (s activityCursor) String() string {
	text := s.position + "\n" + s.id + "\n" + strconv.FormatInt(s.n, 10)
	if s.place != nil {
		text += "\n" + s.place.Text()
	}
	return text
}

// parseActivityCursor parses a cursor of the activity.
func (c *call) parseActivityCursor(after string) (activityCursor, error) {
	parts := strings.Split(after, "\n")
	if len(parts) < 3 || len(parts) > 4 || len(parts[1]) != len(retention.First) || strings.Trim(parts[1], "0123456789abcdef") != "" {
		return activityCursor{}, noCursor()
	}
	n, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || n < 0 {
		return activityCursor{}, noCursor()
	}
	s := activityCursor{position: parts[0], id: parts[1], n: n}
	if len(parts) == 4 {
		place, ok := live.Parse(parts[3])
		if !ok {
			return s, noCursor()
		}
		s.place = &place
	}
	return s, nil
}

type readActivityIn struct {
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor" doc:"The value of next in the previous page, or the id of the last server-sent event received."`
}

// readActivity reads the activity, as a page from the oldest event, or as an event stream from
// now.
func readActivity(c *call, in *readActivityIn) (wire.List[wire.Event], error) {
	var none wire.List[wire.Event]
	p, stream, err := c.pageOrStream(in.Limit, in.Cursor)
	if err != nil {
		return none, err
	}
	if err := feed.OpenIfEnabled(c.ctx(), c.api.engine); err != nil {
		return none, err
	}
	from := activityCursor{id: retention.First}
	if p.after != "" {
		if from, err = c.parseActivityCursor(p.after); err != nil {
			return none, err
		}
	}
	if stream {
		return none, c.followActivity(from, p.after == "")
	}
	from.place = nil
	got, last, err := c.activityPage(from, p)
	if err != nil || len(got) == 0 {
		return wire.List[wire.Event]{Items: got}, err
	}
	return listed(c, got, last.String()), nil
}

// activityPage returns a page behind a cursor, and the cursor behind that page.
func (c *call) activityPage(from activityCursor, p page) ([]wire.Event, activityCursor, error) {
	all := []wire.Event{}
	old, more, err := readPage(c, p, func(ctx context.Context, _ string, limit int) ([]retention.HistoryEvent, error) {
		some, err := retention.Tail(ctx, c.api.engine, from.id, from.n, limit)
		for _, t := range some {
			from.id, from.n = t.ID, t.N
		}
		return some, err
	}, func(t retention.HistoryEvent) string { return t.ID })
	for _, t := range old {
		all = append(all, shapes.Event(t.Event))
	}
	if err != nil || more != "" {
		return all, from, err
	}
	p.limit, p.after = p.limit-len(all), from.position
	numbered, _, err := readFeedPage(c, p)
	for _, e := range numbered {
		from.position = *e.Position
	}
	return append(all, numbered...), from, err
}

// followActivity streams the activity after a cursor, or from now on.
func (c *call) followActivity(from activityCursor, now bool) error {
	switch {
	case now:
		from.id = retention.Now()
	case from.place == nil:
		position, err := feed.ParseCursor(from.position)
		if err != nil {
			return err
		}
		from.place = new(live.Since(position, retention.Back(from.id, lookBack)))
	}
	f, err := c.api.live.Follow(c.ctx(), c.key.Workspace, from.place)
	if err != nil {
		return err
	}
	defer f.Close()
	return c.send(func(ctx context.Context, emit func(message) error) error {
		for {
			c.share.Shrink(0) // the message before is sent, and the next may come late
			i, err := f.Next(ctx)
			if err != nil {
				return err
			}
			e, ok, err := c.wholeEvent(ctx, i)
			for fault.CodeOf(err) == fault.Unavailable && clock.Wait(ctx, unavailablePause) == nil { // a client that reconnects would only read it again
				e, ok, err = c.wholeEvent(ctx, i)
			}
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			place := f.Place()
			from = activityCursor{feed.Cursor(place.Position), max(from.id, i.ID), from.n + 1, &place} // a number, so that ids of messages are unique
			if err := emit(message{c.cursor(from.String()), e.Name, e}); err != nil {
				return err
			}
		}
	})
}

// unavailablePause is the pause before an event that could not be read is read again.
const unavailablePause = time.Second

// wholeEvent returns an event with its data, which the shared reader leaves out if it is long. It reports whether the event still exists.
func (c *call) wholeEvent(ctx context.Context, i *live.Item) (e wire.Event, ok bool, err error) {
	e, ok = shapes.Event(i.Event), true
	if i.Position > 0 {
		e.Position = new(feed.Cursor(i.Position))
	}
	switch {
	case len(i.Data) > 0:
	case i.Position > 0:
		page, err := feed.Read(ctx, c.api.engine, i.Position-1, 1)
		if ok = err == nil && len(page.Items) == 1 && page.Items[0].Position == i.Position; ok {
			e.Data = page.Items[0].Data
		}
		return e, ok, err
	default:
		found, err := retention.Tail(ctx, c.api.engine, i.ID, i.N-1, 1)
		if ok = err == nil && len(found) == 1 && found[0].ID == i.ID && found[0].N == i.N; ok {
			e.Data = found[0].Data
		}
		return e, ok, err
	}
	return e, ok, nil
}
