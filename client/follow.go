package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

// Follow gives every event of the feed after a position ("" is the beginning), and
// then each as it comes, until the loop breaks, ctx ends, or the server refuses; the
// last is the error of the last pair.
//
//	for e, err := range c.Follow(ctx, position) {
//		if err != nil { return err }
//		position = *e.Position
//	}
//
// Each event is given once, in order. A connection that breaks, or over which nothing
// comes for 45 seconds, is made anew, and goes on after the last event that was
// given. A server that cannot be reached at the beginning is an error after
// [Options.Attempts]; one that goes away later is waited for.
func (c *Client) Follow(ctx context.Context, after string) iter.Seq2[wire.Event, error] {
	return following[wire.Event]{c: c, path: []string{"events"}, after: after}.all(ctx)
}

// Watch gives what is told of the workspace from now on, or from where a watcher was:
// what its histories tell, and its events. Each pair has the event, and at its end the
// error. What was told a moment before a connection broke may be told again; it is for
// those who look, and a reaction for those who must handle each event once.
func (c *Client) Watch(ctx context.Context, after string) iter.Seq2[wire.Event, error] {
	return following[wire.Event]{c: c, path: []string{"feed"}, after: after}.all(ctx)
}

// FollowBatch gives what happened to a batch, and what happens, until that is its end:
// "completed" or "cancelled" is the last. A connection that breaks is made anew.
func (c *Client) FollowBatch(ctx context.Context, id string) iter.Seq2[wire.Event, error] {
	return following[wire.Event]{c: c, path: []string{"batches", id, "events"}, last: ended}.all(ctx)
}

// ended says of an event that nothing comes after it.
func ended(e wire.Event) bool { return e.Name == "completed" || e.Name == "cancelled" }

// FollowRun gives what happened to a run, and what happens, until it is over: "completed",
// "cancelled" or "failed" is the last. Of a run that was retried, "failed" comes before
// that, too. A connection that breaks is made anew.
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

// WatchScope gives a scope as it is, and again whenever it has changed, until the loop
// breaks, ctx ends, or the server refuses; the last is the error of the last pair. Where
// there is none, its version is -1. Who is slow is told of the last change, not of each. A
// connection that breaks is made anew, and the same is not told twice.
func (c *Client) WatchScope(ctx context.Context, kind, id string) iter.Seq2[wire.Scope, error] {
	return following[wire.Scope]{c: c, path: []string{"scopes", kind, id}}.all(ctx)
}

// following is one call of Follow, or of another that is told of things as they come.
type following[T any] struct {
	c     *Client
	path  []string
	after string // the id of the last event that was given: of the feed, its position
	// last says of an event that it is the last one; nil is never.
	last func(T) bool
	// over says, where a connection has ended behind an event, whether that was the end of
	// all; nil is never.
	over func(ctx context.Context, given T) bool

	yield func(T, error) bool
	given T // the last one
	b     *backoff
	met   bool // the server has answered once
}

// all gives the events. Each loop over them begins where f does.
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

// errEnough says that the loop was left.
var errEnough = errors.New("enough")

func (f *following[T]) run(ctx context.Context) error {
	for tries := 1; ; tries++ {
		failed := f.connect(ctx)
		switch {
		case errors.Is(failed.fault, errEnough):
			return nil
		case ctx.Err() != nil:
			return failed.publicError(ctx)
		case f.over != nil && f.met && f.over(ctx, f.given):
			return nil
		case !failed.passing, !f.met && tries >= f.c.o.Attempts:
			return failed.fault
		case !f.b.wait(ctx, failed.after):
			return failed.publicError(ctx)
		}
	}
}

// connect follows over one connection, until that ends.
func (f *following[T]) connect(ctx context.Context) *failure {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	r := newRequest(http.MethodGet, nil, f.path...)
	r.header.Set("Accept", "text/event-stream, "+wire.ProblemType)
	if f.after != "" {
		r.header.Set("Last-Event-ID", f.after)
	}
	at, err := r.url(f.c.base)
	if err != nil {
		return brokenOff(err)
	}
	resp, failed := f.c.send(ctx, r, at, nil)
	if failed != nil {
		return failed
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !isJSON(resp.Header, "text/event-stream") {
		body, err := read(resp.Body)
		if err != nil {
			return brokenOff(err)
		}
		return refusal(resp, body)
	}
	f.met = true
	silent := time.AfterFunc(f.c.silence, cut)
	defer silent.Stop()
	return f.read(resp.Body, silent)
}

// read reads the events of a stream. One that is not there whole, with the empty line
// after it, was not sent: the connection broke in it. While an event is in the
// caller's hands, the silence is the caller's.
func (f *following[T]) read(from io.Reader, silent *time.Timer) *failure {
	s := bufio.NewScanner(from)
	s.Buffer(nil, maxAnswer)
	var id, data string
	for s.Scan() {
		silent.Stop()
		line := s.Text()
		if line == "" {
			if err := f.give(id, data); err != nil {
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
		return &failure{fault: fault.New(fault.PayloadTooLarge, "an event is larger than %d MiB", maxAnswer>>20)}
	}
	if err == nil {
		err = io.ErrUnexpectedEOF // a feed has no end
	}
	return brokenOff(err)
}

// give hands on an event, unless it was given before.
func (f *following[T]) give(id, data string) *failure {
	if data == "" || id == f.after && id != "" {
		return nil
	}
	var e T
	if err := json.Unmarshal([]byte(data), &e); err != nil || id == "" {
		return &failure{fault: notOurs("an event that cannot be read", err)}
	}
	f.after, f.given, f.b = id, e, f.c.backoff()
	if !f.yield(e, nil) || f.last != nil && f.last(e) {
		return &failure{fault: fault.New(fault.Unavailable, "the loop was left").Wrap(errEnough)}
	}
	return nil
}
