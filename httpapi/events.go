package httpapi

import (
	"context"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/sse"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

type readFeedIn struct {
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor" doc:"Position of an event, or the value of next in the previous page."`
}

// readFeed reads the feed, as a page or as an event stream.
func readFeed(c *call, in *readFeedIn) (wire.List[wire.Event], error) {
	var none wire.List[wire.Event]
	p, err := c.page(paged{Limit: in.Limit})
	if err != nil {
		return none, err
	}
	if err := feed.OpenIfEnabled(c.ctx(), c.api.engine); err != nil {
		return none, err
	}
	if c.wantsStream() {
		return none, c.follow(in.Cursor)
	}
	p.after = in.Cursor
	found, next, err := readFeedPage(c, p)
	return wire.List[wire.Event]{Items: found, Next: nonEmpty(next)}, err
}

// readFeedPage reads a page of the feed behind a position.
func readFeedPage(c *call, p page) ([]wire.Event, string, error) {
	return readPage(c, p, func(ctx context.Context, after string, limit int) ([]wire.Event, error) {
		return feedAfter(ctx, c.doer(), after, limit)
	}, func(e wire.Event) string { return *e.Position })
}

// feedAfter returns events of the feed after a cursor.
func feedAfter(ctx context.Context, d store.Doer, after string, limit int) ([]wire.Event, error) {
	position, err := feed.ParseCursor(after)
	if err != nil {
		return nil, err
	}
	page, err := feed.Read(ctx, d, position, limit)
	all := make([]wire.Event, len(page.Items))
	for i, item := range page.Items {
		all[i] = shapes.Event(item.Event)
		all[i].Position = new(feed.Cursor(item.Position))
	}
	return all, err
}

// wantsStream reports whether the caller requests an event stream.
func (c *call) wantsStream() bool {
	return c.r.Method == http.MethodGet && c.accepts("text/event-stream") // a HEAD request has no body to stream
}

// pageOrStream returns the requested page, or the start of the requested stream: a cursor, or
// Last-Event-ID after a broken connection.
func (c *call) pageOrStream(limit *int, cursor string) (p page, live bool, err error) {
	live = c.wantsStream()
	if last := c.r.Header.Get("Last-Event-ID"); live && last != "" {
		cursor = last
	}
	p, err = c.page(paged{limit, cursor})
	return p, live, err
}

// accepts reports whether the Accept header names a content type.
func (c *call) accepts(want string) bool {
	for _, one := range strings.Split(c.r.Header.Get("Accept"), ",") {
		if kind, _, err := mime.ParseMediaType(strings.TrimSpace(one)); err == nil && kind == want {
			return true
		}
	}
	return false
}

// heartbeat is the interval of heartbeats on an event stream, so that neither side nor a proxy considers
// the connection dead.
const heartbeat = 15 * time.Second

// recheckEvery is how often an event stream checks its key: often enough to end within 5 seconds of a revocation.
const recheckEvery = 2 * time.Second

// follow streams the feed from a cursor, or from Last-Event-ID after a broken connection.
func (c *call) follow(after string) error {
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		after = last
	}
	if _, err := feedAfter(c.ctx(), c.doer(), after, 1); err != nil {
		return err
	}
	return c.send(func(ctx context.Context, emit func(message) error) error {
		for e, err := range stream.FollowFeed(ctx, c.api.hf, stream.Cursor(after)) {
			if err != nil {
				return err
			}
			at := string(e.Cursor)
			if err := emit(message{at, e.Name, eventOf(e.Event, &at)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// message is a server-sent event.
type message struct {
	id, event string
	doc       any
}

// send streams the messages of a source until the caller disconnects or the server stops.
func (c *call) send(source func(context.Context, func(message) error) error) error {
	out := sse.NewWriter(c.w, 2*heartbeat)
	if out == nil {
		return fault.New(fault.UnsupportedMediaType, "this connection does not support server-sent events")
	}
	c.done = true
	ctx, stop := context.WithCancel(c.ctx())
	defer stop()
	c.r = c.r.WithContext(store.Gated(c.ctx(), nil)) // key checks must not wait for the read gate, nor take from the share of the message being sent
	messages, sent := make(chan message), make(chan struct{}, 1)
	var failed error // set before ended is closed
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failed = source(ctx, func(m message) error {
			select {
			case messages <- m:
			case <-ctx.Done():
				return ctx.Err()
			}
			select { // wait until it is sent: the source's next read releases the share that the message uses (see [gate])
			case <-sent:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	defer func() { stop(); <-ended }()
	ticks := time.NewTicker(heartbeat)
	defer ticks.Stop()
	rechecks := time.NewTicker(recheckEvery)
	defer rechecks.Stop()
	for {
		var err error
		select {
		case m := <-messages:
			if err = c.recheckKey(); err == nil {
				c.share.Active()
				err = out.Send(m.id, m.event, m.doc)
				c.share.StopWatching()
			}
			sent <- struct{}{}
		case <-ticks.C:
			err = out.Comment("still here")
		case <-rechecks.C:
			err = c.recheckKey()
		case <-ended:
			if failed == nil { // the source has ended
				return nil
			}
			c.api.log.Warn("SSE response aborted", "path", watchOf(c.ctx()).Path, "workspace", c.key.Workspace, "request", requestID(c.ctx()), "error", failed)
			return nil
		case <-c.api.closing:
			return nil
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return nil // the caller has disconnected, or its key is no longer valid
		}
	}
}

// gate bounds the memory of messages that event streams have read and not yet sent, over all
// streams; see [room]. It also bounds how many of them read at once, so that many streams leave
// database connections to other requests.
type gate struct {
	*room.Share
	reading lease.Slots
}

// Pass implements [store.Gate]: it drops a read whose rows do not fit, waits for room, and reads again.
func (g gate) Pass(ctx context.Context, read func() (int, error), drop func()) error {
	for g.Shrink(0); ; {
		bytes, fits, err := g.once(ctx, read, drop)
		if fits || err != nil {
			return err
		}
		if err := g.Wait(ctx, room.AnswerWeight*bytes); err != nil {
			return err
		}
	}
}

func (g gate) once(ctx context.Context, read func() (int, error), drop func()) (bytes int, fits bool, err error) {
	if err := g.reading.One(ctx); err != nil {
		return 0, false, err
	}
	defer g.reading.Free(1)
	bytes, err = read()
	fits = bytes <= room.SmallMessage || g.Try(room.AnswerWeight*bytes)
	if !fits {
		drop()
	}
	return bytes, fits, err
}
