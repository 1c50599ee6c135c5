package httpapi

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/wire"
)

// The activity of a workspace (the route "feed") is for observers: it merges the histories with the feed. Histories
// have no position. They are read in the order of their ids,
// which is nearly that of time, and each read goes back by lookBack, because a transaction may
// commit late. So an event may be repeated after a reconnect. Ids are ordered by the clocks of the
// nodes: events of a node whose clock lags by more than lookBack may be missed. A consumer that
// must handle each event exactly once registers a reaction.

// lookBack is how late a transaction may commit and still be seen.
const lookBack = 30 * time.Second

// activityCursor is the place of an observer in the activity.
type activityCursor struct {
	position string // in the feed
	id       string // in the histories
	n        int64  // of the event among those with that id; in an event stream, of the message
}

func (s activityCursor) String() string {
	return s.position + "\n" + s.id + "\n" + strconv.FormatInt(s.n, 10)
}

// parseActivityCursor parses a cursor of the activity.
func (c *call) parseActivityCursor(after string) (activityCursor, error) {
	parts := strings.Split(after, "\n")
	if len(parts) != 3 || len(parts[1]) != len(retention.First) || strings.Trim(parts[1], "0123456789abcdef") != "" {
		return activityCursor{}, noCursor()
	}
	n, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || n < 0 {
		return activityCursor{}, noCursor()
	}
	return activityCursor{parts[0], parts[1], n}, nil
}

type readActivityIn struct {
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor" doc:"The value of next in the previous page, or the id of the last server-sent event received."`
}

// readActivity reads the activity, as a page from the oldest event, or as an event stream from
// now.
func readActivity(c *call, in *readActivityIn) (wire.List[wire.Event], error) {
	var none wire.List[wire.Event]
	p, live, err := c.pageOrStream(in.Limit, in.Cursor)
	if err != nil {
		return none, err
	}
	if err := feed.OpenIfEnabled(c.ctx(), c.api.engine); err != nil {
		return none, err
	}
	from := activityCursor{id: retention.First}
	switch {
	case p.after != "":
		if from, err = c.parseActivityCursor(p.after); err != nil {
			return none, err
		}
	case live:
		head, err := feed.Head(c.ctx(), c.doer())
		if err != nil {
			return none, err
		}
		from = activityCursor{position: feed.Cursor(head), id: retention.Now()}
	}
	if !live {
		got, last, err := c.activityPage(from, p)
		if err != nil || len(got) == 0 {
			return wire.List[wire.Event]{Items: got}, err
		}
		return listed(c, got, last.String()), nil
	}
	if _, _, err := c.activityPage(from, page{limit: 1, budget: p.budget}); err != nil { // checks the cursor before the response starts
		return none, err
	}
	w := &watcher{call: c, from: from, seen: make(map[seenID]bool), read: store.NewBudget(watchBytes)}
	if p.after == "" { // what exists before the response starts is not new
		if err := w.histories(c.ctx(), func(retention.HistoryEvent) bool { return true }); err != nil {
			return none, err
		}
	}
	return none, c.send(w.watch)
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

// Limits of one read by an observer. The limits are small, because there may be many observers.
const (
	watchPage  = 500
	watchBytes = store.PageBytes / 256
)

// watcher streams the activity to one observer.
type watcher struct {
	*call
	from activityCursor
	seen map[seenID]bool // within lookBack
	read *store.Budget
	upTo string // everything before this id was read
}

type seenID struct {
	id string
	n  int64
}

// histories calls f for new events of the histories, until f returns false.
func (w *watcher) histories(ctx context.Context, f func(retention.HistoryEvent) bool) error {
	begun := retention.Now()
	since := retention.Back(max(w.from.id, w.upTo), lookBack)
	for at, n, full := since, int64(0), true; full; {
		w.forget(retention.Back(at, lookBack))
		w.read.Refill()
		limit, bound := w.read.Rows(watchPage), w.read.In(ctx)
		some, err := retention.Tail(bound, w.api.engine, at, n, limit)
		if err != nil {
			return err
		}
		for _, t := range some {
			at, n = t.ID, t.N
			key := seenID{t.ID, t.N}
			if w.seen[key] {
				continue
			}
			w.seen[key], w.from.id = true, max(w.from.id, t.ID)
			if !f(t) {
				return nil
			}
		}
		full = len(some) == limit || store.Cut(bound)
	}
	w.upTo = begun
	return nil
}

// forget drops seen ids that are too old to be read again.
func (w *watcher) forget(before string) {
	for key := range w.seen {
		if key.id < before {
			delete(w.seen, key)
		}
	}
}

// watch streams the activity. A reconnecting observer gets the last events again.
func (w *watcher) watch(ctx context.Context, emit func(message) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p := wake.Poller{Hub: w.api.engine.Hub(), Topics: []string{feed.Topic(w.key.Workspace)}, Log: w.api.log, Poll: func(ctx context.Context) (found bool, err error) {
		send := func(e wire.Event) bool {
			found = true
			w.from.n++ // so that message ids are unique
			if err := emit(message{cursorOf(w.route.ID, w.from.String()), e.Name, e}); err != nil {
				stop(err)
			}
			return ctx.Err() == nil
		}
		if err := feed.OpenIfEnabled(ctx, w.api.engine); err != nil { // the workspace may have been created since
			return false, err
		}
		if err := w.histories(ctx, func(t retention.HistoryEvent) bool { return send(shapes.Event(t.Event)) }); err != nil {
			return found, err
		}
		w.read.Refill()
		page, err := feedAfter(w.read.In(ctx), w.api.engine, w.from.position, w.read.Rows(watchPage))
		for _, e := range page {
			w.from.position = *e.Position
			if !send(e) {
				break
			}
		}
		return found, err
	}}
	p.Run(ctx)
	return context.Cause(ctx)
}
