package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

type readEventsIn struct {
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor" doc:"The position of an event, or next of a page."`
}

// readEvents reads the feed, page by page or as it grows.
func readEvents(c *call, in *readEventsIn) (wire.List[wire.Event], error) {
	var none wire.List[wire.Event]
	p, err := c.page(paged{Limit: in.Limit})
	if err != nil {
		return none, err
	}
	if err := stream.OpenFeed(c.ctx(), c.api.hf); err != nil {
		return none, err
	}
	if c.wantsStream() {
		return none, c.follow(in.Cursor)
	}
	p.after = in.Cursor
	found, next, err := readFeedPage(c, p)
	return wire.List[wire.Event]{Items: found, Next: filled(next)}, err
}

// readFeedPage reads a page of the feed behind a position.
func readFeedPage(c *call, p page) ([]wire.Event, string, error) {
	found, next, err := readPage(c, p, func(ctx context.Context, after string, limit int) ([]stream.FeedEvent, error) {
		got, err := stream.ReadFeed(ctx, c.doer(), stream.Cursor(after), limit)
		return got.Events, err
	}, func(e stream.FeedEvent) string { return string(e.Position) })
	all := make([]wire.Event, len(found))
	for i, e := range found {
		at := string(e.Position)
		all[i] = eventOf(e.Event, &at)
	}
	return all, next, err
}

// wantsStream says that the caller asks for a stream of events.
func (c *call) wantsStream() bool {
	return c.r.Method == http.MethodGet && c.takes("text/event-stream") // a HEAD has nothing to wait for
}

// pageOrStream is the page that the caller asks for, or from where on it wants a stream: from
// a cursor, or from where it was when its connection broke (Last-Event-ID).
func (c *call) pageOrStream(limit *int, cursor string) (p page, live bool, err error) {
	live = c.wantsStream()
	if last := c.r.Header.Get("Last-Event-ID"); live && last != "" {
		cursor = last
	}
	p, err = c.page(paged{limit, cursor})
	return p, live, err
}

// takes says that the caller names a kind of answer that it takes.
func (c *call) takes(want string) bool {
	for _, one := range strings.Split(c.r.Header.Get("Accept"), ",") {
		if kind, _, err := mime.ParseMediaType(strings.TrimSpace(one)); err == nil && kind == want {
			return true
		}
	}
	return false
}

// beat is how often a stream says that it lives, so that neither side nor what is
// between them takes the line for dead.
const beat = 15 * time.Second

// follow sends the feed as it grows, from a cursor or from where the caller was when
// its connection broke (Last-Event-ID).
func (c *call) follow(after string) error {
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		after = last
	}
	if _, err := stream.ReadFeed(c.ctx(), c.doer(), stream.Cursor(after), 1); err != nil {
		return err
	}
	return c.send(func(ctx context.Context, give func(message) error) error {
		return stream.Follow(ctx, c.api.hf, stream.Cursor(after), func(e stream.FeedEvent) error {
			at := string(e.Position)
			return give(message{at, e.Name, eventOf(e.Event, &at)})
		})
	})
}

// message is a server-sent event.
type message struct {
	id, event string
	doc       any
}

// send sends what a source gives, until the caller goes away or the server stops.
func (c *call) send(source func(context.Context, func(message) error) error) error {
	out := newLine(c.w)
	if out == nil {
		return fault.New(fault.UnsupportedMediaType, "this connection cannot carry a stream of events")
	}
	c.done = true
	ctx, stop := context.WithCancel(c.ctx())
	defer stop()
	c.r = c.r.WithContext(store.Gated(c.ctx(), nil)) // whether the key is good is asked at once, and takes nothing from what is being sent
	beats, sent := make(chan message), make(chan struct{}, 1)
	var failed error // set before ended is closed
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failed = source(ctx, func(m message) error {
			select {
			case beats <- m:
			case <-ctx.Done():
				return ctx.Err()
			}
			select { // until then, what was read is in use
			case <-sent:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	defer func() { stop(); <-ended }()
	ticks := time.NewTicker(beat)
	defer ticks.Stop()
	for {
		var err error
		select {
		case m := <-beats:
			if err = c.still(); err == nil {
				c.share.Client()
				err = out.send(m.id, m.event, m.doc)
				c.share.NoClient()
			}
			sent <- struct{}{}
		case <-ticks.C:
			if err = c.still(); err == nil {
				err = out.comment("still here")
			}
		case <-ended:
			if failed == nil { // it was its end
				return nil
			}
			c.api.log.Warn("a stream of events has ended before its time", "error", failed)
			return nil
		case <-c.api.closing:
			return nil
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return nil // the caller went away, or may ask no more
		}
	}
}

// line is a connection that carries server-sent events.
type line struct {
	w   http.ResponseWriter
	out *http.ResponseController
}

// newLine begins the answer, or returns nil where the connection cannot be flushed.
func newLine(w http.ResponseWriter) *line {
	l := &line{w, http.NewResponseController(w)}
	if l.out.SetWriteDeadline(clock.OfMachine().Add(2*beat)) != nil {
		return nil
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if l.out.Flush() != nil {
		return nil
	}
	return l
}

func (l *line) send(id, event string, doc any) error {
	if err := l.write("id: " + id + "\nevent: " + oneLine(event) + "\ndata: "); err != nil {
		return err
	}
	if err := json.NewEncoder(l.w).Encode(doc); err != nil { // one line
		return err
	}
	return l.end()
}

func (l *line) comment(text string) error {
	if err := l.write(": " + text + "\n"); err != nil {
		return err
	}
	return l.end()
}

// write begins a message.
func (l *line) write(text string) error {
	if err := l.out.SetWriteDeadline(clock.OfMachine().Add(2 * beat)); err != nil {
		return err
	}
	_, err := io.WriteString(l.w, text)
	return err
}

// end ends a message with an empty line.
func (l *line) end() error {
	if _, err := io.WriteString(l.w, "\n"); err != nil {
		return err
	}
	return l.out.Flush()
}

// gate bounds what streams of events have read and not yet sent, over all of them. See [room].
// Few of them read at once, so that they leave connections to the database to others, however many they are.
type gate struct {
	*room.Share
	reading lease.Slots
}

func (g gate) Pass(ctx context.Context, read func() (int, error), drop func()) error {
	for g.Keep(0); ; {
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

// oneLine keeps the name of an event from being read as more than that.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, s)
}
