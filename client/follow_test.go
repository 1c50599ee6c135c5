package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/wire"
)

// TestFollowOverBrokenLines verifies that Follow yields each event once and in order over
// connections that break repeatedly, also in the middle of an event.
func TestFollowOverBrokenLines(t *testing.T) {
	s := serve(t, httpapi.Options{NoKeys: true})
	c := dial(t, s.url, Options{})
	const all = 60
	appended := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := c.AppendEvents(t.Context(), "s", wire.Append{Events: []wire.NewEvent{{Name: fmt.Sprint(i)}}}, Key(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		}
	}
	appended(0, 20)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	next := int64(0)
	var last string
	for e, err := range c.FollowFeed(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Version != next || e.Name != fmt.Sprint(next) || e.Position == nil || *e.Position == last {
			t.Fatalf("followed %+v, want version %d", e, next)
		}
		last = *e.Position
		if next++; next%5 == 0 {
			s.line.loses(1, next%10 == 0)
		}
		if next == 20 {
			appended(20, all)
		}
		if next == all {
			break
		}
	}
	if next != all {
		t.Errorf("followed %d events, want all", next)
	}
	p, err := c.ReadFeedPage(t.Context(), Page{Cursor: last})
	if err != nil || len(p.Items) != 0 {
		t.Errorf("got %+v, %v after the last event, want none", p, err)
	}
	for _, err := range c.FollowFeed(ctx, "nonsense") {
		if fault.CodeOf(err) != fault.Validation {
			t.Errorf("malformed cursor: got %v, want a validation error", err)
		}
	}
	cancel()
	for _, err := range c.FollowFeed(ctx, last) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v, want context.Canceled", err)
		}
	}
}

// TestLiveOverBrokenLines verifies that Live yields each change once over connections that break, and that it continues
// after a cursor; and that topics are escaped.
func TestLiveOverBrokenLines(t *testing.T) {
	s := serve(t, httpapi.Options{NoKeys: true})
	c := dial(t, s.url, Options{})
	appended := func(i int) {
		if _, err := c.AppendEvents(t.Context(), "50%,a", wire.Append{Events: []wire.NewEvent{{Name: fmt.Sprint(i)}}}, Key(fmt.Sprint(i))); err != nil {
			t.Error(err)
		}
	}
	next, cursor := 0, ""
	for _, until := range []int{3, 6} {
		for m, err := range c.FollowLive(t.Context(), cursor, "stream:50%,a", "stream:other") {
			if err != nil {
				t.Fatal(err)
			}
			if m.Cursor == cursor || m.Cursor == "" {
				t.Fatalf("got the cursor %q twice", m.Cursor)
			}
			cursor = m.Cursor
			for _, x := range m.Changes {
				if x.Name != fmt.Sprint(next-1) || x.Version != int64(next-1) {
					t.Fatalf("got %+v, want change %d", x, next-1)
				}
			}
			if len(m.Changes) == 0 && next > 0 {
				continue
			}
			if next == until {
				break
			}
			s.line.loses(1, next%2 == 0)
			appended(next)
			next++
		}
		appended(next)
		next++
	}
	for _, err := range c.FollowLive(t.Context(), "", "nothing") {
		if fault.CodeOf(err) != fault.Validation {
			t.Errorf("unknown topic: got %v, want a validation error", err)
		}
	}
}

// TestFollowReads verifies how Follow parses the data of connections, byte by byte, and which
// requests it sends.
func TestFollowReads(t *testing.T) {
	event := func(id string) string {
		return "id: " + id + "\nevent: x\ndata: {\"position\":\"" + id + "\",\ndata: \"name\":\"x\"}\n\n"
	}
	lines := []func() (*http.Response, error){
		func() (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
		func() (*http.Response, error) {
			return feed(": hello\n\n" + event("1") + event("2") + "id: 3\ndata: {}\n"), nil
		}, // 3 is incomplete
		func() (*http.Response, error) { return problem(fault.Unavailable, "Retry-After", "1"), nil },
		func() (*http.Response, error) {
			return feed(event("2") + strings.ReplaceAll(event("3"), "\n", "\r\n")), nil
		}, // 2 is repeated
		func() (*http.Response, error) { return answer(502, "text/html", "<h1>"), nil },
		func() (*http.Response, error) { return silentFeed(), nil },
		func() (*http.Response, error) { return feed(event("4")), nil },
		func() (*http.Response, error) { return problem(fault.Auth), nil },
	}
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		c := dial(t, "http://holdfast.invalid", Options{HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.Header.Get("Last-Event-ID"))
			resp, err := lines[len(asked)-1]()
			if resp != nil {
				resp.Request = r
				if s, ok := resp.Body.(*silent); ok {
					s.ctx = r.Context()
				}
			}
			return resp, err
		})}})
		var got []string
		var ended error
		for e, err := range c.FollowFeed(t.Context(), "0") {
			if ended = err; err == nil {
				got = append(got, *e.Position)
			}
		}
		if strings.Join(got, " ") != "1 2 3 4" || fault.CodeOf(ended) != fault.Auth {
			t.Errorf("got events %q and %v", got, ended)
		}
		if want := "0 0 2 2 3 3 3 4"; strings.Join(asked, " ") != want {
			t.Errorf("requested events after %q, want %s", asked, want)
		}
	})
}

// TestFollowGivesUp verifies that a server that was never reachable is an error after some
// attempts, and that Follow waits for one that was.
func TestFollowGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := dial(t, "http://holdfast.invalid", Options{MaxAttempts: 4, HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			n++
			return nil, io.ErrUnexpectedEOF
		})}})
		for _, err := range c.FollowFeed(t.Context(), "") {
			if fault.CodeOf(err) != fault.Unavailable || n != 4 {
				t.Errorf("after %d attempts: got %v, want UNAVAILABLE after 4", n, err)
			}
		}
		c = dial(t, "http://holdfast.invalid", Options{MaxAttempts: 4, HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			if n++; n == 5 {
				return feed(""), nil
			}
			return nil, io.ErrUnexpectedEOF
		})}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, err := range c.FollowFeed(ctx, "") {
			if !errors.Is(err, context.DeadlineExceeded) || n < 100 {
				t.Errorf("after %d attempts: got %v, want context.DeadlineExceeded", n, err)
			}
		}
	})
}

func feed(text string) *http.Response { return answer(200, "text/event-stream", text) }

// silentFeed returns a connection that sends nothing any more.
func silentFeed() *http.Response {
	r := feed("")
	r.Body = &silent{}
	return r
}

type silent struct{ ctx context.Context }

func (s *silent) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }
func (s *silent) Close() error             { return nil }
