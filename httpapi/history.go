package httpapi

import (
	"context"
	"strconv"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/wire"
)

// Limits of one read of an event stream. The limits are small, because there may be many streams.
const (
	watchPage  = 500
	watchBytes = store.PageBytes / 256
)

// This file serves the history of an object that ends: a run or a batch.

type historyRequestIn struct {
	ID     string `path:"id"`
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor" doc:"The value of next in the previous page, or the id of the last server-sent event received."`
}

// isOver reports whether the object has ended, or returns an error if it does not exist.
type isOver func(context.Context, store.Doer) (bool, error)

// history returns a page of a history or, as an event stream, the rest of it. The topic is woken
// when there are new events.
func (c *call) history(in *historyRequestIn, stream, topic string, over isOver) (wire.List[wire.Event], error) {
	var none wire.List[wire.Event]
	p, live, err := c.pageOrStream(in.Limit, in.Cursor)
	if err != nil {
		return none, err
	}
	from, err := afterVersion(p.after)
	if err != nil {
		return none, err
	}
	if _, err := over(c.ctx(), c.doer()); err != nil {
		return none, err
	}
	if live {
		return none, c.send(func(ctx context.Context, emit func(message) error) error {
			return c.streamHistory(ctx, stream, topic, over, from, emit)
		})
	}
	found, next, err := readPage(c, p, func(ctx context.Context, after string, limit int) ([]events.Event, error) {
		from, err := afterVersion(after)
		if err != nil {
			return nil, err
		}
		return events.Read(ctx, c.doer(), events.ReadArgs{Stream: stream, From: from, Limit: limit})
	}, func(e events.Event) string { return strconv.FormatInt(e.Version, 10) })
	all := make([]wire.Event, len(found))
	for i, e := range found {
		all[i] = shapes.Event(e)
	}
	return listed(c, all, next), err
}

// afterVersion returns the version after that of a cursor, 0 for none.
func afterVersion(after string) (int64, error) {
	if after == "" {
		return 0, nil
	}
	n, err := versionOf(after)
	return n + 1, err
}

// ends are the final events of a run or batch. A failed run may still be retried.
var ends = map[string]bool{"completed": true, "failed": true, "cancelled": true}

// streamHistory streams a history until the run or batch has ended and all of its events are sent.
func (c *call) streamHistory(ctx context.Context, stream, topic string, over isOver, from int64, emit func(message) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	read := store.NewBudget(watchBytes)
	p := wake.Poller{Hub: c.api.engine.Hub(), Topics: []string{topic}, Log: c.api.log, Poll: func(ctx context.Context) (bool, error) {
		done, err := over(ctx, c.api.engine)
		if err != nil {
			return false, err
		}
		read.Refill()
		limit, bound := read.Rows(watchPage), read.In(ctx)
		found, err := events.Read(bound, c.api.engine, events.ReadArgs{Stream: stream, From: from, Limit: limit})
		ended := len(found) == 0 // a reconnecting caller already has the final event
		for _, e := range found {
			from, ended = e.Version+1, ends[e.Name]
			if err := emit(message{c.cursor(strconv.FormatInt(e.Version, 10)), e.Name, shapes.Event(e)}); err != nil {
				stop(err)
				return true, nil
			}
		}
		if err == nil && ended && len(found) < limit && !store.Cut(bound) && done {
			stop(errOver)
		}
		return len(found) > 0, err
	}}
	p.Run(ctx)
	if err := context.Cause(ctx); err != errOver { //nolint:errorlint // it is our own error, never wrapped
		return err
	}
	return nil
}

// errOver ends the event stream of a run or batch that has ended.
var errOver = fault.New(fault.NotFound, "the run or batch has ended")
