package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

// FollowFeed yields every event of the feed after a position ("" is the beginning), and then each new
// event, until the loop breaks, ctx ends, or the server refuses the request. In the last two cases,
// the last pair contains the error.
//
//	for e, err := range c.FollowFeed(ctx, position) {
//		if err != nil { return err }
//		position = *e.Position
//	}
//
// Each event is yielded once, in order. If a connection breaks or is silent for 45 seconds, FollowFeed opens another
// one and continues after the last event. If the server cannot be reached at the start, FollowFeed fails after
// [Options.MaxAttempts]; if it becomes unreachable later, FollowFeed keeps reconnecting.
func (c *Client) FollowFeed(ctx context.Context, after string) iter.Seq2[wire.Event, error] {
	return following[wire.Event]{c: c, path: []string{"events"}, after: after}.all(ctx)
}

// FollowActivity yields the histories and events of a workspace from now on. If FollowActivity ends with an error, the
// last pair contains it. Events from shortly before a broken connection may be repeated. FollowActivity is for
// observers; to handle every event, use a reaction.
func (c *Client) FollowActivity(ctx context.Context) iter.Seq2[wire.Event, error] {
	return following[wire.Event]{c: c, path: []string{"feed"}}.all(ctx)
}

// FollowBatch yields the events of a batch up to its end: "completed" or "cancelled" is the last
// event. FollowBatch reconnects if the connection breaks.
func (c *Client) FollowBatch(ctx context.Context, id string) iter.Seq2[wire.Event, error] {
	return following[wire.Event]{c: c, path: []string{"batches", id, "events"}, last: ended}.all(ctx)
}

// ended reports whether no event follows e.
func ended(e wire.Event) bool { return e.Name == "completed" || e.Name == "cancelled" }

// FollowRun yields the events of a run up to its end: "completed", "cancelled" or "failed" is the
// last event. If the run was retried, there are earlier "failed" events. FollowRun reconnects if
// the connection breaks.
func (c *Client) FollowRun(ctx context.Context, id string) iter.Seq2[wire.Event, error] {
	f := following[wire.Event]{c: c, path: []string{"workflow-runs", id, "events"}, last: ended}
	f.over = func(ctx context.Context, last wire.Event) bool {
		if last.Name != "failed" {
			return false
		}
		r, err := c.GetRun(ctx, id)
		return err == nil && r.Status == "FAILED"
	}
	return f.all(ctx)
}

// WatchScope yields the current state of a scope, and then its state after every change, until the loop breaks, ctx
// ends, or the server refuses the request. In the last two cases, the last pair contains the error. A scope that does
// not exist has version -1. A slow caller gets the latest state and may miss intermediate states. If the connection
// breaks, WatchScope reconnects without repeating the last state.
func (c *Client) WatchScope(ctx context.Context, kind, id string) iter.Seq2[wire.Scope, error] {
	return following[wire.Scope]{c: c, path: []string{"scopes", kind, id}}.all(ctx)
}

// FollowLive yields what changes in topics, such as "inbox", "lifecycle:invoice" or "run:01J…", until the loop breaks, ctx ends, or the server
// refuses the request. In the last two cases, the last pair contains the error. The server lists the topics if one is
// unknown. There are at most four messages a second.
//
//	for m, err := range c.FollowLive(ctx, cursor, "inbox", "lifecycle:invoice") {
//		if err != nil { return err }
//		cursor = m.Cursor
//	}
//
// FollowLive begins after a cursor or, if it is "", now: the first message then has no changes, and later messages have every
// change after it. A change is sent once, in [wire.Live.Changes] or, if there are many, as a subject in [wire.Live.Folded]; the topics must be the same
// if you continue after a cursor. If a connection breaks, FollowLive opens another one and continues.
func (c *Client) FollowLive(ctx context.Context, after string, topics ...string) iter.Seq2[wire.Live, error] {
	return following[wire.Live]{c: c, path: []string{"live"}, query: url.Values{"watch": {Topics(topics...)}}, after: after}.all(ctx)
}

// Topics joins topics for [Client.GetLive]. It escapes commas in names.
func Topics(topics ...string) string {
	escape := strings.NewReplacer("%", "%25", ",", "%2C")
	all := make([]string, len(topics))
	for i, topic := range topics {
		all[i] = escape.Replace(topic)
	}
	return strings.Join(all, ",")
}

// following is one call of FollowFeed or of a similar method.
type following[T any] struct {
	c     *Client
	path  []string
	query url.Values
	after string // id of the last yielded event; in the feed, its position
	// last reports whether an event is the last one; nil means never.
	last func(T) bool
	// over reports, after a connection has ended, whether the last event was final; nil means
	// never.
	over func(ctx context.Context, given T) bool

	yield     func(T, error) bool
	given     T // the last yielded event
	b         *backoff
	connected bool // the server has responded at least once
}

// all yields the events. Each loop over it starts at f.after.
func (f following[T]) all(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		f := f
		f.yield, f.b = yield, f.c.backoff()
		if err := f.run(ctx); err != nil {
			var none T
			yield(none, err)
		}
	}
}

// errEnough marks that the caller stopped the iteration.
var errEnough = errors.New("enough")

func (f *following[T]) run(ctx context.Context) error {
	for attempts := 1; ; attempts++ {
		failed := f.connect(ctx)
		switch {
		case errors.Is(failed.fault, errEnough):
			return nil
		case ctx.Err() != nil:
			return failed.publicError(ctx)
		case f.over != nil && f.connected && f.over(ctx, f.given):
			return nil
		case !failed.temporary, !f.connected && attempts >= f.c.o.MaxAttempts:
			return failed.fault
		case !f.b.wait(ctx, failed.after):
			return failed.publicError(ctx)
		}
	}
}

// connect follows over one connection until that ends.
func (f *following[T]) connect(ctx context.Context) *failure {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	r := newRequest(http.MethodGet, nil, f.path...)
	r.query = f.query
	r.header.Set("Accept", "text/event-stream, "+wire.ProblemType)
	if f.after != "" {
		r.header.Set("Last-Event-ID", f.after)
	}
	at, err := r.url(f.c.base)
	if err != nil {
		return brokenOff(fault.Unavailable, err)
	}
	resp, failed := f.c.send(ctx, r, at, nil)
	if failed != nil {
		return failed
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !isJSON(resp.Header, "text/event-stream") {
		body, err := read(resp.Body)
		if err != nil {
			return brokenOff(fault.Unavailable, err)
		}
		return refusal(fault.Unavailable, resp, body)
	}
	f.connected = true
	silent := time.AfterFunc(f.c.silence, cut)
	defer silent.Stop()
	return f.read(resp.Body, silent)
}

// read reads the events of a stream. An event without the empty line after it is incomplete: the
// connection broke in it. While the caller processes an event, the silence timer is stopped.
func (f *following[T]) read(from io.Reader, silent *time.Timer) *failure {
	s := bufio.NewScanner(from)
	s.Buffer(nil, maxAnswer)
	var id, data string
	for s.Scan() {
		silent.Stop()
		line := s.Text()
		if line == "" {
			if err := f.deliver(id, data); err != nil {
				return err
			}
			id, data = "", ""
		}
		silent.Reset(f.c.silence)
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			id = value
		case "data":
			data += value + "\n"
		}
	}
	err := s.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return &failure{fault: fault.New(fault.PayloadTooLarge, "an event exceeds %d MiB", maxAnswer>>20)}
	}
	if err == nil {
		err = io.ErrUnexpectedEOF // an event stream has no regular end
	}
	return brokenOff(fault.Unavailable, err)
}

// deliver yields an event, unless it was yielded before.
func (f *following[T]) deliver(id, data string) *failure {
	if data == "" || id == f.after && id != "" {
		return nil
	}
	var e T
	if err := json.Unmarshal([]byte(data), &e); err != nil || id == "" {
		return &failure{fault: notHoldfast(fault.Unavailable, "an event that cannot be decoded", err)}
	}
	f.after, f.given, f.b = id, e, f.c.backoff()
	if !f.yield(e, nil) || f.last != nil && f.last(e) {
		return &failure{fault: fault.New(fault.Unavailable, "the caller left the loop").Wrap(errEnough)}
	}
	return nil
}
