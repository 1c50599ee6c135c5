package httpapi

import (
	"context"
	"strconv"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/wire"
)

// The history of one thing that comes to an end: a run, a batch.

type storyIn struct {
	ID     string `path:"id"`
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor" doc:"next of a page, or the id of a message."`
}

// isOver says whether a thing is at its end, or that there is no such thing.
type isOver func(context.Context, store.Doer) (bool, error)

// story is a page of a history or, as a stream of events, all of it from there on, to its end.
// The topic is what is woken when there is more.
func (c *call) story(in *storyIn, stream, topic string, over isOver) (wire.List[wire.Event], error) {
	var none wire.List[wire.Event]
	p, live, err := c.pageOrStream(in.Limit, in.Cursor)
	if err != nil {
		return none, err
	}
	from := int64(0)
	if p.after != "" {
		if from, err = versionOf(p.after); err != nil {
			return none, err
		}
		from++
	}
	if _, err := over(c.ctx(), c.doer()); err != nil {
		return none, err
	}
	if live {
		return none, c.send(func(ctx context.Context, give func(message) error) error {
			return c.tell(ctx, stream, topic, over, from, give)
		})
	}
	return c.toldPage(stream, from, p.limit)
}

// toldPage is a page of a history.
func (c *call) toldPage(stream string, from int64, limit int) (wire.List[wire.Event], error) {
	found, err := events.Read(c.ctx(), c.doer(), events.ReadArgs{Stream: stream, From: from, Limit: limit})
	all := make([]wire.Event, len(found))
	next := ""
	for i, e := range found {
		all[i] = toldEvent(e)
		if len(found) == limit {
			next = strconv.FormatInt(e.Version, 10)
		}
	}
	return listed(c, all, next), err
}

// ends are the events that something may end with. A run that has failed may go on.
var ends = map[string]bool{"completed": true, "failed": true, "cancelled": true}

// tell gives what happens, until it is over, and all of it is told.
func (c *call) tell(ctx context.Context, stream, topic string, over isOver, from int64, give func(message) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p := wake.Poller{Hub: c.api.engine.Hub(), Topics: []string{topic}, Log: c.api.log, Look: func(ctx context.Context) (bool, error) {
		done, err := over(ctx, c.api.engine)
		if err != nil {
			return false, err
		}
		found, err := events.Read(ctx, c.api.engine, events.ReadArgs{Stream: stream, From: from, Limit: watchPage})
		ended := len(found) == 0 // who comes back has been told of its end
		for _, e := range found {
			from, ended = e.Version+1, ends[e.Name]
			if err := give(message{cursorOf(c.route.id, strconv.FormatInt(e.Version, 10)), e.Name, toldEvent(e)}); err != nil {
				stop(err)
				return true, nil
			}
		}
		if err == nil && ended && len(found) < watchPage && done {
			stop(errOver)
		}
		return len(found) > 0, err
	}}
	p.Run(ctx)
	if err := context.Cause(ctx); err != errOver { //nolint:errorlint // it is our own, as it is
		return err
	}
	return nil
}

// errOver says that nothing more will happen.
var errOver = fault.New(fault.NotFound, "it is over")
