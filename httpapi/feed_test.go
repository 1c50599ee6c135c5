package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// running runs the engine until the test ends.
func (d *testAPI) running() { testkit.Run(d.t, d.engine) }

// sse is one server-sent event.
type sse struct {
	id, event string
	data      wire.Event
	text      string // the data as received
}

// listener reads server-sent events.
type listener struct {
	t    testing.TB
	resp *http.Response
	in   *bufio.Reader
	stop func()
}

// follow requests the feed as an event stream.
func (d *testAPI) follow(headers ...string) *listener {
	d.t.Helper()
	return d.listen("events", headers...)
}

// watch requests the workspace feed, from now on or after a message.
func (d *testAPI) watch(after string) *listener {
	d.t.Helper()
	return d.listen("feed", "Last-Event-ID", after)
}

func (d *testAPI) listen(path string, headers ...string) *listener {
	d.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	d.t.Cleanup(stop)
	r, err := http.NewRequestWithContext(ctx, "GET", d.url+"/api/v1/"+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { stop(); resp.Body.Close() })
	return &listener{d.t, resp, bufio.NewReader(resp.Body), stop}
}

// next reads one event; its lines come in the order id, event, data.
func (l *listener) next() sse {
	l.t.Helper()
	var e sse
	for _, name := range []string{"id", "event", "data", ""} {
		line, err := l.in.ReadString('\n')
		for err == nil && strings.HasPrefix(line, ":") { // heartbeat
			_, _ = l.in.ReadString('\n')
			line, err = l.in.ReadString('\n')
		}
		if err != nil {
			l.t.Fatalf("the stream has ended: %v", err)
		}
		text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), name+": ")
		switch {
		case name == "" && line == "\n":
		case !ok:
			l.t.Fatalf("read %q, want %s", line, name)
		case name == "id":
			e.id = text
		case name == "event":
			e.event = text
		default:
			e.text = text
			if err := json.Unmarshal([]byte(text), &e.data); err != nil {
				l.t.Fatal(err)
			}
		}
	}
	return e
}

func (d *testAPI) append(name string, n int) {
	d.t.Helper()
	events := make([]wire.NewEvent, n)
	for i := range events {
		events[i] = wire.NewEvent{Name: "n"}
	}
	d.want(d.ask("POST", "streams/"+name+"/events", wire.Append{Events: events}, nil), 201, "")
}

// TestTheFeedIsFollowed verifies that the feed is followed as it grows, and that a caller that
// reconnects continues and gets each event once.
func TestTheFeedIsFollowed(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.running()
		d.append("a", 3)
		l := d.follow()
		if l.resp.StatusCode != 200 || l.resp.Header.Get("Content-Type") != "text/event-stream" || l.resp.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("got status %d, headers %v", l.resp.StatusCode, l.resp.Header)
		}
		var seen []string
		var last sse
		take := func(l *listener, n int) {
			t.Helper()
			for range n {
				last = l.next()
				if last.event != last.data.Name || last.data.Position == nil || *last.data.Position != last.id {
					t.Errorf("got %+v, want event and position to match its id", last)
				}
				seen = append(seen, fmt.Sprint(last.data.Stream, last.data.Version))
			}
		}
		take(l, 3)
		d.append("b", 2)
		take(l, 1)
		l.stop()
		d.append("a", 2)
		l = d.follow("Last-Event-ID", last.id)
		take(l, 3)
		d.append("c", 1)
		take(l, 1)
		slices.Sort(seen)
		if got := strings.Join(seen, " "); got != "a0 a1 a2 a3 a4 b0 b1 c0" {
			t.Errorf("got events %s", got)
		}
		// The pages have the same events in the same order.
		var page wire.List[wire.Event]
		d.want(d.ask("GET", "events?limit=1000", nil, &page), 200, "")
		if len(page.Items) != 8 || page.Next != nil || *page.Items[7].Position != last.id {
			t.Errorf("got page %+v", page)
		}
		d.want(d.ask("GET", "events?cursor="+*page.Items[5].Position, nil, &page), 200, "")
		if len(page.Items) != 2 {
			t.Errorf("got %d events after the sixth, want 2", len(page.Items))
		}
		l.stop()
	})
}

func TestABadLastEventIDIsRefused(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		for _, bad := range []string{"x", "p", "p0", "p01", "p-1", "p9", "pzzzzzzzzzzzzzzz", "1", " p1 x", "\xff", strings.Repeat("p", 5000)} {
			l := d.follow("Last-Event-ID", bad)
			text, _ := io.ReadAll(l.in)
			l.resp.Body = io.NopCloser(strings.NewReader(string(text)))
			d.refused(fmt.Sprintf("%.20q", bad), l.resp)
		}
		resp := d.ask("HEAD", "events", nil, nil, "Accept", "text/event-stream")
		if resp.StatusCode != 200 {
			t.Errorf("HEAD returned status %d", resp.StatusCode)
		}
		d.want(d.ask("GET", "events?limit=0", nil, nil, "Accept", "text/event-stream"), 400, fault.Validation)
	})
}

// TestStopEndsTheStreams verifies that Stop ends event streams, so that a stopping server does not
// wait for them.
func TestStopEndsTheStreams(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.running()
		d.append("a", 1)
		l := d.follow()
		l.next()
		d.api.Stop()
		if rest, err := io.ReadAll(l.in); err != nil || len(rest) > 0 {
			t.Errorf("stream ended with %q, %v, want a clean end", rest, err)
		}
	})
}

// TestASlowReaderHoldsUpNobody verifies that a caller that does not read delays neither appends nor
// other readers.
func TestASlowReaderHoldsUpNobody(t *testing.T) {
	e := holdfasttest.Open(t, stream.Feed(stream.FeedOptions{}))
	d := newTestAPI(t, e, httpapi.Options{NoKeys: true})
	d.running()
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
	l := d.follow()
	data, _ := json.Marshal(strings.Repeat("x", 500_000))
	for i := range 24 {
		d.want(d.ask("POST", "streams/s/events", wire.Append{Events: []wire.NewEvent{{Name: "n", Data: data}}}, nil), 201, "")
		if got := l.next(); got.data.Version != int64(i) {
			t.Fatalf("got version %d, want %d", got.data.Version, i)
		}
	}
	l.stop()
}

// TestAStreamOutlivesItsServersTimeouts verifies that an event stream outlives the server's read
// and write timeouts.
func TestAStreamOutlivesItsServersTimeouts(t *testing.T) {
	const within = 300 * time.Millisecond
	e := holdfasttest.Open(t, stream.Feed(stream.FeedOptions{}))
	d := newTestAPI(t, e, httpapi.Options{NoKeys: true})
	srv := httptest.NewUnstartedServer(d.api)
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = within, within
	srv.Start()
	t.Cleanup(srv.Close)
	t.Cleanup(d.api.Stop)
	d.running()
	brief := *d // appends use the server with long timeouts
	brief.url = srv.URL
	l := brief.follow()
	begun, n := time.Now(), 0
	for time.Since(begun) < 4*within {
		d.append("s", 1)
		if got := l.next(); got.data.Version != int64(n) {
			t.Fatalf("got version %d, want %d", got.data.Version, n)
		}
		n++
	}
	l.stop()
}

// lease claims the streams of a reaction.
func (d *testAPI) lease(reaction string, limit int) []wire.Lease {
	d.t.Helper()
	var got wire.Leases
	d.want(d.ask("POST", "reactions/"+reaction+"/claim", wire.ClaimLeases{By: "me", Limit: limit, LeaseMs: 60000}, &got), 200, "")
	return got.Leases
}

func (d *testAPI) position(reaction, name string) wire.Position {
	d.t.Helper()
	var all wire.List[wire.Position]
	d.want(d.ask("GET", "reactions/"+reaction+"/streams", nil, &all), 200, "")
	i := slices.IndexFunc(all.Items, func(p wire.Position) bool { return p.Stream == name })
	if i < 0 {
		d.t.Fatalf("%s does not follow %s", reaction, name)
	}
	return all.Items[i]
}

func (d *testAPI) ack(reaction string, l wire.Lease, version int64) string {
	d.t.Helper()
	var done wire.Acked
	d.want(d.ask("POST", "reactions/"+reaction+"/ack", wire.Acks{Acks: []wire.Ack{{Stream: l.Stream, Epoch: l.Epoch, Token: l.Token, Version: version}}}, &done), 200, "")
	return done.Results[0].Status
}

// TestAReactionByHand verifies a reaction claimed by hand: each event is shown until it is
// acknowledged under the current epoch, and an old epoch changes nothing.
func TestAReactionByHand(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"n"}}, nil), 201, "")
		d.append("s", 3)
		d.want(d.ask("POST", "streams/s/events", wire.Append{Events: []wire.NewEvent{{Name: "unwanted"}}}, nil), 201, "")
		got := d.lease("r", 10)
		if len(got) != 1 || len(got[0].Events) != 3 || got[0].Attempt != 1 || got[0].Until == nil {
			t.Fatalf("claimed %+v, want 3 events in the first attempt", got)
		}
		first := got[0]
		if more := d.lease("r", 10); len(more) != 0 {
			t.Fatalf("claimed twice: %+v", more)
		}
		var renewed wire.Renewed
		d.want(d.ask("POST", "reactions/r/renew", wire.RenewLease{Stream: "s", Epoch: first.Epoch, Token: first.Token, LeaseMs: 120000}, &renewed), 200, "")
		if renewed.Until == nil || !renewed.Until.After(got[0].Until.Time) {
			t.Errorf("renewed until %v, want later than before", renewed.Until)
		}
		// The first holder is late: another holder has the stream, and the late one changes
		// nothing.
		holdfasttest.Advance(t, d.engine, 3*time.Minute)
		engine.Of(d.engine).Round(context.Background())
		second := d.lease("r", 1)
		if len(second) != 1 || second[0].Epoch <= first.Epoch || second[0].Attempt != 2 {
			t.Fatalf("claimed %+v, want attempt 2 under a higher epoch", second)
		}
		before := d.position("r", "s")
		if status := d.ack("r", first, 2); status != "LEASE_LOST" {
			t.Errorf("ack under an old epoch returned %s, want LEASE_LOST", status)
		}
		d.want(d.ask("POST", "reactions/r/renew", wire.RenewLease{Stream: "s", Epoch: first.Epoch, Token: first.Token}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "reactions/r/fail", wire.FailLease{Stream: "s", Epoch: first.Epoch, Token: first.Token, Message: "no"}, nil), 409, fault.LeaseLost)
		no := false
		d.want(d.ask("POST", "reactions/r/fail", wire.FailLease{Stream: "s", Epoch: first.Epoch, Token: first.Token, Message: "no", Retryable: &no}, nil), 409, fault.LeaseLost)
		for _, epoch := range []int64{0, -1} {
			d.want(d.ask("POST", "reactions/r/ack", wire.Acks{Acks: []wire.Ack{{Stream: "s", Epoch: epoch, Version: 2}}}, nil), 400, fault.Validation)
		}
		for _, epoch := range []int64{second[0].Epoch + 1, 1 << 62} {
			if status := d.ack("r", wire.Lease{Stream: "s", Epoch: epoch, Token: second[0].Token}, 2); status != "LEASE_LOST" {
				t.Errorf("ack under epoch %d returned %s, want LEASE_LOST", epoch, status)
			}
		}
		if after := d.position("r", "s"); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("position changed from %+v to %+v", before, after)
		}
		for range 2 { // the repetition returns the same
			if status := d.ack("r", second[0], 1); status != "acked" {
				t.Errorf("ack returned %s, want acked", status)
			}
		}
		third := d.lease("r", 1)
		if len(third) != 1 || len(third[0].Events) != 1 || third[0].Events[0].Version != 2 {
			t.Fatalf("claimed %+v, want the unacknowledged event 2", third)
		}
		if status := d.ack("r", third[0], 2); status != "acked" {
			t.Errorf("ack returned %s, want acked", status)
		}
		if left := d.lease("r", 1); len(left) != 0 {
			t.Errorf("claimed %+v, want none left", left)
		}
		d.want(d.ask("POST", "reactions/r/ack", wire.Acks{Acks: []wire.Ack{{Stream: "nobodys", Epoch: 1, Token: third[0].Token}}}, nil), 200, "")
		d.want(d.ask("POST", "reactions/nobodys/ack", exampleBodies["ackLeases"], nil), 404, fault.NotFound)
	})
}

// TestALeaseHasEvents verifies that a stream without events for a reaction is not handed out,
// because it could not be acknowledged.
func TestALeaseHasEvents(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		for i := range 5 {
			d.append(fmt.Sprint("s", i), 2)
		}
		d.want(d.ask("POST", "streams/s3/events", wire.Append{Events: []wire.NewEvent{{Name: "wanted"}}}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"wanted"}}, nil), 201, "")
		got := d.lease("r", 1)
		if len(got) != 1 || got[0].Stream != "s3" || len(got[0].Events) != 1 || got[0].Events[0].Version != 2 {
			t.Fatalf("claimed %+v, want event 2 of s3", got)
		}
		if more := d.lease("r", 10); len(more) != 0 {
			t.Errorf("claimed %+v, want nothing", more)
		}
		d.want(d.ask("POST", "streams/s1/events", wire.Append{Events: []wire.NewEvent{{Name: "wanted"}}}, nil), 201, "")
		if got = d.lease("r", 1); len(got) != 1 || got[0].Stream != "s1" {
			t.Errorf("claimed %+v, want s1", got)
		}
	})
}

// TestALongStreamIsShownInParts verifies that a lease on a long stream shows a part of it, and that
// an ack of that part leaves the rest.
func TestALongStreamIsShownInParts(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{NoKeys: true})
	d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
	d.append("s", 250)
	seen := int64(0)
	for seen < 250 {
		l := d.lease("r", 1)
		if len(l) != 1 || len(l[0].Events) == 0 {
			t.Fatalf("after version %d: claimed %+v", seen, l)
		}
		for _, e := range l[0].Events {
			if e.Version != seen {
				t.Fatalf("got version %d, want %d", e.Version, seen)
			}
			seen++
		}
		d.ack("r", l[0], seen-1)
	}
}

// TestAClaimKeepsItsLimit verifies that a claim never returns more than its limit, also after a
// crash.
func TestAClaimKeepsItsLimit(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
		d.append("dead", 1)
		if got := d.lease("r", 1); len(got) != 1 {
			t.Fatalf("claimed %+v, want one lease", got)
		}
		holdfasttest.Advance(t, d.engine, 5*time.Minute)
		engine.Of(d.engine).Round(context.Background())
		for i := range 4 {
			d.append(fmt.Sprint("s", i), 1)
		}
		all := make(map[string]bool)
		for _, limit := range []int{1, 2, 10} {
			got := d.lease("r", limit)
			if len(got) > limit {
				t.Errorf("limit was %d, got %d", limit, len(got))
			}
			for _, l := range got {
				all[l.Stream] = true
			}
		}
		if len(all) != 5 {
			t.Errorf("claimed streams %v, want 5", all)
		}
	})
}

// TestFailuresAndRepairsByHand verifies that failures are counted, delay the stream and finally
// block it, and that repairs let it continue.
func TestFailuresAndRepairsByHand(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		one := 1
		for _, name := range []string{"r", "q"} {
			d.want(d.ask("PUT", "reactions/"+name, wire.PutReaction{Events: []string{"*"}, MaxRetries: &one,
				Backoff: &wire.Backoff{Kind: "fixed", BaseMs: 1000, MaxMs: 1000}}, nil), 201, "")
		}
		for _, name := range []string{"a", "b", "c"} {
			d.append(name, 2)
		}
		fail := func(reaction string, l wire.Lease, retryable bool) (out wire.FailedLease) {
			t.Helper()
			d.want(d.ask("POST", "reactions/"+reaction+"/fail", wire.FailLease{Stream: l.Stream, Epoch: l.Epoch, Token: l.Token, Message: "no", Retryable: &retryable}, &out), 200, "")
			return out
		}
		for _, l := range d.lease("r", 10) {
			if f := fail("r", l, true); f.Blocked || f.Retry != 1 || f.NotBefore == nil {
				t.Errorf("got %+v, want an unblocked first retry", f)
			}
		}
		if got := d.lease("r", 10); len(got) != 0 {
			t.Errorf("claimed before notBefore: %+v", got)
		}
		holdfasttest.Advance(t, d.engine, time.Minute)
		for _, l := range d.lease("r", 10) {
			if f := fail("r", l, true); !f.Blocked || f.Retry != 2 || l.Attempt != 2 {
				t.Errorf("second failure returned %+v for %+v, want it blocked", f, l)
			}
		}
		for _, l := range d.lease("q", 10) {
			if f := fail("q", l, false); !f.Blocked {
				t.Errorf("permanent failure returned %+v, want it blocked", f)
			}
		}
		if p := d.position("r", "a"); !p.Blocked || p.Error != "no" || p.Watermark != -1 || p.Due != 1 || p.Failing == nil || *p.Failing != 0 {
			t.Errorf("got position %+v, want it blocked with watermark -1", p)
		}
		repair := func(path string, body any, want ...string) {
			t.Helper()
			var got wire.Repaired
			d.want(d.ask("POST", "reactions/"+path, body, &got), 200, "")
			slices.Sort(got.Streams)
			if !slices.Equal(got.Streams, want) || got.Held == nil || len(got.Held) > 0 {
				t.Errorf("%s %v changed %q, held %q, want %q", path, body, got.Streams, got.Held, want)
			}
		}
		yes, no := true, false
		d.want(d.ask("POST", "reactions/r/unblock", wire.Repair{Filter: &wire.RepairFilter{Blocked: &no}}, nil), 400, fault.Validation)
		repair("r/unblock", wire.Repair{Streams: []string{"a", "nobodys"}}, "a")
		repair("r/unblock", wire.Repair{Filter: &wire.RepairFilter{Stream: "^[ab]$"}}, "b")
		repair("r/unblock", wire.Repair{Filter: &wire.RepairFilter{Source: "history"}})
		repair("r/skip", wire.Repair{Filter: &wire.RepairFilter{Blocked: &yes}}, "c")
		if p := d.position("r", "c"); p.Blocked || p.Watermark != 0 {
			t.Errorf("got position %+v after skip, want watermark 0", p)
		}
		repair("r/unblock", wire.Repair{})
		repair("*/unblock", `{}`, "a", "b", "c") // of q
		repair("*/reset", wire.Repair{Streams: []string{"c"}}, "c", "c")
		if p := d.position("r", "c"); p.Watermark != -1 {
			t.Errorf("got position %+v after reset, want watermark -1", p)
		}
		d.want(d.ask("POST", "reactions/nobodys/reset", wire.Repair{}, nil), 404, fault.NotFound)
		// A reset waits for the holder; the other repairs skip a leased stream.
		held := d.lease("r", 10)
		if len(held) != 3 {
			t.Fatalf("claimed %+v, want 3 leases", held)
		}
		var got wire.Repaired
		d.want(d.ask("POST", "reactions/r/reset", wire.Repair{}, &got), 200, "")
		if len(got.Streams)+len(got.Held) != 0 || len(got.Pending) != 3 {
			t.Errorf("got %+v, want 3 pending", got)
		}
	})
}

// TestAClaimWaits verifies that a waiting claim returns when work arrives, and when the server
// stops.
func TestAClaimWaits(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
		wait := func() <-chan wire.Leases {
			done := make(chan wire.Leases, 1)
			go func() {
				var got wire.Leases
				d.ask("POST", "reactions/r/claim", wire.ClaimLeases{By: "me", WaitMs: 50000, LeaseMs: 60000}, &got)
				done <- got
			}()
			return done
		}
		late := time.After(40 * time.Second)
		waiting := wait()
		d.append("s", 1)
		select {
		case got := <-waiting:
			if len(got.Leases) != 1 || len(got.Leases[0].Events) != 1 {
				t.Errorf("claimed %+v, want one lease with one event", got)
			}
		case <-late:
			t.Fatal("the request waited until its deadline")
		}
		waiting = wait()
		d.api.Stop()
		select {
		case got := <-waiting:
			if got.Leases == nil || len(got.Leases) != 0 {
				t.Errorf("claimed %+v, want an empty list", got)
			}
		case <-late:
			t.Fatal("the request still waits after the stop")
		}
	})
}
