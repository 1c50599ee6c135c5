package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast/wire"
)

// AppendEvents appends events to a stream, all or none, at an expected version.
func (c *Client) AppendEvents(ctx context.Context, stream string, in wire.Append, o ...Option) (wire.Appended, error) {
	return do[wire.Appended](ctx, c, newRequest(http.MethodPost, in, "streams", stream, "events"), o)
}

// StreamRange is which events of a stream to read, and in which order.
type StreamRange struct {
	// From is the version of the first; the default is the stream's first, or, for
	// Backward, its last.
	From     *int64
	Backward bool
}

// ReadStream reads the events of a stream.
func (c *Client) ReadStream(ctx context.Context, stream string, in StreamRange) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.ReadStreamPage(ctx, stream, in, p) })
}

// ReadStreamPage reads a page of the events of a stream.
func (c *Client) ReadStreamPage(ctx context.Context, stream string, in StreamRange, p Page, o ...Option) (wire.List[wire.Event], error) {
	r := list(p, "streams", stream, "events")
	if in.From != nil {
		r.set("from", strconv.FormatInt(*in.From, 10))
	}
	if in.Backward {
		r.set("backward", "true")
	}
	return listed[wire.Event](ctx, c, r, o)
}

// CloseStream closes the books of a stream. The same close again has the same answer.
func (c *Client) CloseStream(ctx context.Context, stream string, in wire.CloseStream, o ...Option) (wire.ClosedStream, error) {
	return do[wire.ClosedStream](ctx, c, newRequest(http.MethodPost, in, "streams", stream, "close"), o)
}

// ReadEvents reads the feed over all streams up to where it is now, after a position
// ("" is the beginning). [Client.Follow] goes on as it grows.
func (c *Client) ReadEvents(ctx context.Context, after string) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) {
		if p.Cursor == "" {
			p.Cursor = after
		}
		return c.ReadEventsPage(ctx, p)
	})
}

// ReadFeed reads what is told of the workspace, from the oldest on, as far as it goes.
func (c *Client) ReadFeed(ctx context.Context) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.ReadFeedPage(ctx, p) })
}

// ReadFeedPage reads a page of what is told of the workspace: histories, and events.
func (c *Client) ReadFeedPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Event], error) {
	return listed[wire.Event](ctx, c, list(p, "feed"), o)
}

// ReadEventsPage reads a page of the feed. A cursor may also be the position of an
// event.
func (c *Client) ReadEventsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Event], error) {
	return listed[wire.Event](ctx, c, list(p, "events"), o)
}
