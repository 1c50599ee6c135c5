package httpapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/wire"
)

// searched returns all pages of a search, as "stream version".
func searched(d *testAPI, query string, limit int) (all []string, pages int) {
	d.t.Helper()
	for cursor := ""; ; {
		var l wire.List[wire.Event]
		path := fmt.Sprintf("events/search?limit=%d&%s", limit, query)
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		d.want(d.ask("GET", path, nil, &l), 200, "")
		for _, e := range l.Items {
			all = append(all, fmt.Sprint(e.Stream, " ", e.Version))
			if strings.Contains(query, "stream=") != (e.Position == nil) {
				d.t.Errorf("%s: position is %v", query, e.Position)
			}
		}
		if pages++; l.Next == nil {
			return all, pages
		}
		cursor = url.QueryEscape(*l.Next)
	}
}

// TestSearchOverHTTP verifies searches of a stream, of a history and of all streams, with each filter, forward and backward, in pages of any size;
// that an empty page goes on; and that bad filters are refused.
func TestSearchOverHTTP(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		for i := range 6 {
			d.want(d.ask("POST", "streams/s"+fmt.Sprint(i%2)+"/events", fmt.Sprintf(`{"events":[{"name":"a","actor":"ann","correlation":"c%d"},{"name":"b"}]}`, i), nil), 201, "")
		}
		d.want(d.ask("PATCH", "scopes/user/u", `{"a":1}`, nil), 200, "")
		d.numbered(12)
		for query, want := range map[string]string{
			"name=a":                                                    "s0 0,s1 0,s0 2,s1 2,s0 4,s1 4",
			"name=a&stream=s1":                                          "s1 0,s1 2,s1 4",
			"name=a,b&stream=s1&actor=ann":                              "s1 0,s1 2,s1 4",
			"actor=ann&backward=true&name=a":                            "s1 4,s0 4,s1 2,s0 2,s1 0,s0 0",
			"correlation=c3":                                            "s1 2",
			"correlation=none&stream=s0":                                "",
			"stream=s0&since=2001-01-01T00:00:00Z&name=b":               "s0 1,s0 3,s0 5",
			"stream=s0&until=2001-01-01T00:00:00Z":                      "",
			"stream=s0&backward=true&since=2001-01-01T00:00:00%2B02:00": "s0 5,s0 4,s0 3,s0 2,s0 1,s0 0",
			"stream=none":                                               "",
			"stream=$scope/user/u":                                      "$scope/user/u 0",
		} {
			for _, limit := range []int{1, 2, 1000} {
				got, _ := searched(d, query, limit)
				if !strings.Contains(query, "stream=") { // the order between streams is that of the feed
					got, want = inOrder(got), strings.Join(inOrder(strings.Split(want, ",")), ",")
				}
				if strings.Join(got, ",") != want {
					t.Errorf("%s: got %s, want %s", query, got, want)
				}
			}
		}
		many := make([]string, 900)
		for i := range many {
			many[i] = `{"name":"x"}`
		}
		for range 25 {
			d.want(d.ask("POST", "streams/long/events", `{"events":[`+strings.Join(many, ",")+`]}`, nil), 201, "")
		}
		d.want(d.ask("POST", "streams/long/events", `{"events":[{"name":"rare"}]}`, nil), 201, "")
		d.numbered(12 + 25*900 + 1)
		if got, pages := searched(d, "name=rare", 10); strings.Join(got, ",") != "long 22500" || pages != 6 {
			t.Errorf("rare events: %s in %d pages, want one in 6 pages, because a request reads 4,000 events of the feed", got, pages)
		}
		if got, pages := searched(d, "name=rare&stream=long", 10); strings.Join(got, ",") != "long 22500" || pages != 2 {
			t.Errorf("rare events: %s in %d pages, want one in 2 pages, because a request reads 20,000 events of a stream", got, pages)
		}
		for _, bad := range []string{"since=yesterday", "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "name=a,", "cursor=x", "limit=0", "actor=" + strings.Repeat("x", 300)} {
			d.want(d.ask("GET", "events/search?"+bad, nil, nil), 400, fault.Validation)
		}
		for _, from := range []string{"", "stream=s0", "stream=long"} { // a cursor is for the next page of the same search
			var l wire.List[wire.Event]
			d.want(d.ask("GET", "events/search?limit=1&"+from, nil, &l), 200, "")
			for _, to := range []string{"", "stream=s0", "stream=long"} {
				if resp := d.ask("GET", "events/search?cursor="+*l.Next+"&"+to, nil, nil); from == to {
					d.want(resp, 200, "")
				} else {
					d.want(resp, 400, fault.Validation)
				}
			}
		}
	})
}

func inOrder(all []string) []string {
	streams := make(map[string][]string)
	for _, x := range all {
		name, _, _ := strings.Cut(x, " ")
		streams[name] = append(streams[name], x)
	}
	return append(streams["s0"], streams["s1"]...)
}

// TestStreamsAreListed verifies the list of streams, their statistics, and a truncation: that it can be repeated, keeps the last event,
// and is refused for a history.
func TestStreamsAreListed(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		for _, name := range []string{"o-1", "o-2", "p"} {
			d.want(d.ask("POST", "streams/"+name+"/events", `{"events":[{"name":"a"},{"name":"a"},{"name":"b"}]}`, nil), 201, "")
		}
		var l wire.List[wire.Stream]
		d.want(d.ask("GET", "streams?prefix=o-&limit=1", nil, &l), 200, "")
		if len(l.Items) != 1 || l.Items[0].Name != "o-1" || l.Next == nil {
			t.Fatalf("first page: %+v", l)
		}
		d.want(d.ask("GET", "streams?prefix=o-&limit=1&cursor="+url.QueryEscape(*l.Next), nil, &l), 200, "")
		if len(l.Items) != 1 || l.Items[0].Name != "o-2" || l.Items[0].LastVersion != 2 || l.Items[0].Events != 3 || l.Items[0].State != "open" || l.Items[0].LastAt == nil {
			t.Errorf("second page: %+v", l)
		}
		d.numbered(9)
		for range 2 {
			var s wire.Stream
			d.want(d.ask("POST", "streams/o-1/truncate", `{"before":1,"snapshot":{"n":1}}`, &s), 200, "")
			if s.FirstVersion != 1 || s.Events != 2 {
				t.Errorf("truncated to %+v", s)
			}
		}
		var s wire.StreamStatistics
		d.want(d.ask("GET", "streams/o-1", nil, &s), 200, "")
		if s.Counted != 2 || s.Names["a"] != 1 || s.Names["b"] != 1 || s.LastName != "b" || time.Since(s.FirstAt.Time) > time.Hour {
			t.Errorf("statistics: %+v", s)
		}
		for _, body := range []string{`{"before":3}`, `{}`, `{"before":0}`, `{"before":-1}`, `{"snapshot":{"n":1}}`} {
			d.want(d.ask("POST", "streams/o-1/truncate", body, nil), 400, fault.Validation)
		}
		d.want(d.ask("POST", "streams/none/truncate", `{"before":1}`, nil), 404, fault.NotFound)
		d.want(d.ask("POST", "streams/$key%2Fx/truncate", `{"before":1}`, nil), 403, fault.Forbidden)
		d.want(d.ask("GET", "streams/none", nil, nil), 404, fault.NotFound)
	})
}

// TestScopesAreReplacedAndListed verifies the replacement of a scope at a version, its earlier versions, and the lists of kinds and
// scopes.
func TestScopesAreReplacedAndListed(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const at = "scopes/cart/c1"
		d.want(d.ask("PUT", at, `{"a":1,"b":{"c":2}}`, nil, "If-None-Match", "*"), 200, "")
		d.want(d.ask("PUT", at, `{}`, nil, "If-None-Match", "*"), 412, fault.PreconditionFailed)
		d.want(d.ask("PUT", at, `{}`, nil, "If-Match", `"7"`), 412, fault.PreconditionFailed)
		d.change("PUT", at, `{"b":3}`, 1, true, `{"b":3}`)
		d.change("PUT", at, `{"b":3}`, 1, false, `{"b":3}`)
		for range 2 {
			d.want(d.ask("PUT", at, `{"d":null}`, nil, "If-Match", `"1"`, "Idempotency-Key", "k"), 200, "")
		}
		d.want(d.ask("PUT", at, `[1]`, nil), 400, fault.Validation)
		for version, want := range []string{`{"a":1,"b":{"c":2}}`, `{"b":3}`, `{"d":null}`} {
			d.scopeIs(fmt.Sprintf("%s?at=%d", at, version), int64(version), want)
		}
		d.want(d.ask("GET", at+"?at=3", nil, nil), 404, fault.NotFound)
		d.want(d.ask("GET", at+"?at=1", nil, nil, "If-Match", `"1"`), 400, fault.Validation)
		d.change("PATCH", "scopes/user/u", `{"a":1}`, 0, true, `{"a":1}`)
		d.change("PATCH", "scopes/cart/d1", `{"a":1}`, 0, true, `{"a":1}`)
		d.want(d.ask("DELETE", "scopes/cart/c1", nil, nil), 200, "")
		var kinds wire.List[wire.ScopeKind]
		d.want(d.ask("GET", "scopes", nil, &kinds), 200, "")
		if fmt.Sprint(kinds.Items) != "[{cart} {user}]" {
			t.Errorf("kinds: %+v", kinds)
		}
		var l wire.List[wire.ScopeInfo]
		d.want(d.ask("GET", "scopes/cart", nil, &l), 200, "")
		if len(l.Items) != 1 || l.Items[0].ID != "d1" || l.Items[0].Kind != "cart" || l.Items[0].ExpiresAt != nil || l.Next != nil {
			t.Errorf("scopes: %+v", l)
		}
		d.want(d.ask("GET", "scopes/cart?limit=1", nil, &l), 200, "")
		if len(l.Items) != 0 || l.Next == nil {
			t.Errorf("a page with a deleted scope: %+v", l)
		}
	})
}

// numbered gives n events their positions in the feed.
func (d *testAPI) numbered(n int64) {
	d.t.Helper()
	e := engine.Of(d.engine)
	if err := feed.Open(d.t.Context(), e); err != nil {
		d.t.Fatal(err)
	}
	for some := true; some; {
		var err error
		if some, err = feed.Step(d.t.Context(), e, 0, feed.DefaultBatch); err != nil {
			d.t.Fatal(err)
		}
	}
	if head, err := feed.Head(d.t.Context(), e); err != nil || head != n {
		d.t.Fatalf("the feed has %d events, %v, want %d", head, err, n)
	}
}
