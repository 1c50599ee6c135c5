package httpapi_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/wire"
)

// state returns everything in a workspace that these tests try to change.
func (d *testAPI) state() string {
	d.t.Helper()
	var all strings.Builder
	for _, path := range []string{"lifecycles/invoice/entities", "streams/s/events", "reactions", "keys", "claims", "reactions/*/streams"} {
		resp := d.ask("GET", path, nil, nil)
		d.want(resp, 200, "")
		all.WriteString(textOf(resp))
	}
	return all.String()
}

// refused checks that a response is a client error in the standard shape.
func (d *testAPI) refused(name string, resp *http.Response) wire.Problem {
	d.t.Helper()
	var p wire.Problem
	text := textOf(resp)
	if err := json.Unmarshal([]byte(text), &p); err != nil || resp.Header.Get("Content-Type") != wire.ProblemType {
		d.t.Errorf("%s: got status %d %s %.300q, want a problem document: %v", name, resp.StatusCode, resp.Header.Get("Content-Type"), text, err)
		return p
	}
	if resp.StatusCode < 400 || resp.StatusCode > 499 || p.Code == "" || p.Detail == "" || p.Status != resp.StatusCode || p.RequestID == "" {
		d.t.Errorf("%s: got status %d %.300s, want a complete 4xx problem", name, resp.StatusCode, text)
	}
	if len(text) > 8192 {
		d.t.Errorf("%s: the problem has %d bytes, want at most 8192", name, len(text))
	}
	return p
}

// TestBadDocuments verifies that an invalid document is refused with a pointer, and that nothing is
// done.
func TestBadDocuments(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	event := func(data string) string { return `{"events":[{"name":"n","data":` + data + `}]}` }
	cases := []struct {
		name, path, body string
		status           int
		pointer          string // "-": any
	}{
		{"empty", "streams/s/events", "", 400, ""},
		{"blank", "streams/s/events", " \n", 400, ""},
		{"truncated", "streams/s/events", `{"events":[{"name":"n"`, 400, "-"},
		{"two documents", "streams/s/events", event("1") + event("2"), 400, ""},
		{"null", "lifecycles/invoice/entities", "null", 400, ""},
		{"null that repairs all", "reactions/r/reset", " null ", 400, ""},
		{"a list", "streams/s/events", `[]`, 400, ""},
		{"a number", "keys", `7`, 400, ""},
		{"a byte order mark", "keys", "\ufeff" + `{"role":"admin"}`, 400, ""},
		{"a member twice", "keys", `{"role":"read","role":"admin"}`, 400, "/role"},
		{"twice, once escaped", "keys", `{"role":"read","\u0072ole":"admin"}`, 400, "/role"},
		{"twice within data", "streams/s/events", event(`{"a":1,"a":2}`), 400, "/events/0/data/a"},
		{"unknown", "keys", `{"role":"read","rolle":"admin"}`, 400, "/rolle"},
		{"unknown within", "streams/s/events", `{"events":[{"name":"n","nam":1}]}`, 400, "/events/0/nam"},
		{"case twin", "keys", `{"role":"read","ROLE":"admin"}`, 400, "/ROLE"},
		{"case", "keys", `{"Role":"admin"}`, 400, "/Role"},
		{"depth 65", "streams/s/events", event(deep(62)), 400, "-"},
		{"a megabyte of [", "streams/s/events", strings.Repeat("[", 1<<20), 400, "-"},
		{"a megabyte of [ in data", "streams/s/events", event(strings.Repeat("[", 1<<19)), 400, "-"},
		{"a byte too many", "streams/s/events", event(`"` + strings.Repeat("x", 1<<20+1-len(event(`""`))) + `"`), 413, "none"},
		{"invalid UTF-8", "streams/s/events", event("\"\xff\""), 400, "/events/0/data"},
		{"overlong UTF-8", "streams/s/events", event("\"\xc0\x80\""), 400, "/events/0/data"},
		{"lone surrogate", "streams/s/events", event(`"\ud800"`), 400, "/events/0/data"},
		{"NUL", "streams/s/events", event(`"\u0000"`), 400, "/events/0/data"},
		{"NUL in a name", "streams/s/events", `{"events":[{"name":"a\u0000"}]}`, 400, "/events/0/name"},
		{"raw control", "streams/s/events", event("\"\x01\""), 400, "/events/0/data"},
		{"1e400 where a version is wanted", "streams/s/events", `{"expectedVersion":1e400,"events":[{"name":"n"}]}`, 400, "/expectedVersion"},
		{"1e401 in data", "streams/s/events", event("1e401"), 400, "/events/0/data"},
		{"half a version", "streams/s/events", `{"expectedVersion":1.5,"events":[{"name":"n"}]}`, 400, "/expectedVersion"},
		{"2^63", "streams/s/events", `{"expectedVersion":9223372036854775808,"events":[{"name":"n"}]}`, 400, "/expectedVersion"},
		{"-2", "streams/s/events", `{"expectedVersion":-2,"events":[{"name":"n"}]}`, 400, "/expectedVersion"},
		{"wrong type", "streams/s/events", `{"events":{}}`, 400, "/events"},
		{"wrong type within", "streams/s/events", `{"events":[{"name":7}]}`, 400, "/events/0/name"},
		{"no events", "streams/s/events", `{"events":[]}`, 400, "/events"},
		{"a role that there is not", "keys", `{"role":"root"}`, 400, "/role"},
		{"no role", "keys", `{}`, 400, "/role"},
		{"a rate below 0", "keys", `{"role":"read","rate":-1}`, 400, "/rate"},
		{"a life that wraps around", "keys", `{"role":"read","lifetimeMs":9223372036854775807}`, 400, "/lifetimeMs"},
		{"a life that wraps around to little", "keys", `{"role":"read","lifetimeMs":18446744073710}`, 400, "/lifetimeMs"},
		{"a status that there is not", "lifecycles/invoice/entities", `{"status":"nonsense"}`, 400, "/status"},
		{"an empty id", "lifecycles/invoice/entities", `{"id":""}`, 400, "/id"},
		{"a batch with an empty id", "batches", `{"id":"","wallet":"w","handler":"h"}`, 400, "/id"},
		{"an effect of which nothing is said", "operations/x/resolve", `{"effects":[{"name":"charge"}]}`, 400, "/effects/0/happened"},
		{"a result of what did not happen", "operations/x/resolve", `{"effects":[{"name":"charge","happened":false,"result":1}]}`, 400, "/effects/0/result"},
		{"a claim's status", "lifecycles/invoice/entities", `{"status":"closing"}`, 400, "/status"},
		{"data that is no object", "lifecycles/invoice/entities", `{"data":[1]}`, 400, "/data"},
		{"nobody claims", "reactions/r/claim", `{}`, 400, "/by"},
		{"a limit", "reactions/r/claim", `{"by":"me","limit":1001}`, 400, "/limit"},
		{"a limit below 0", "reactions/r/claim", `{"by":"me","limit":-1}`, 400, "/limit"},
		{"a lease", "reactions/r/claim", `{"by":"me","leaseMs":-1}`, 400, "/leaseMs"},
		{"a lease that wraps around", "reactions/r/claim", `{"by":"me","leaseMs":18446744073710}`, 400, "/leaseMs"},
		{"a lease that wraps around, renewed", "reactions/r/renew", `{"stream":"s","epoch":1,"leaseMs":18446744073710}`, 400, "/leaseMs"},
		{"a claim's lease that wraps around", "lifecycles/invoice/entities/held/claims", `{"stepKey":"close","requester":"admin","leaseMs":18446744073710}`, 400, "-"},
		{"no acks", "reactions/r/ack", `{"acks":[]}`, 400, "/acks"},
		{"an ack below", "reactions/r/ack", `{"acks":[{"stream":"s","epoch":1,"version":-7}]}`, 400, "/acks/0/version"},
		{"a failure without a message", "reactions/r/fail", `{"stream":"s","epoch":1,"message":""}`, 400, "/message"},
		{"a filter that is no pattern", "reactions/r/reset", `{"filter":{"stream":"("}}`, 400, "-"},
		{"a filter's source", "reactions/r/reset", `{"filter":{"source":"x"}}`, 400, "/filter/source"},
		{"names and a filter", "reactions/r/reset", `{"streams":["s"],"filter":{}}`, 400, "-"},
		{"a list that names nobody", "reactions/r/reset", `{"streams":[]}`, 400, "/streams"},
		{"a mode", "streams/s/close", `{"mode":"burn"}`, 400, "-"},
		{"a restart of any version", "streams/s/close", `{"mode":"restart","snapshot":{}}`, 400, "/expectedVersion"},
		{"a restart of none", "streams/s/close", `{"mode":"restart","expectedVersion":-1,"snapshot":{}}`, 400, "/expectedVersion"},
	}
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
		d.want(d.ask("POST", "streams/s/events", exampleBodies["appendEvents"], nil), 201, "")
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("held")}, nil), 201, "")
		before := d.state()
		for _, c := range cases {
			for _, key := range []string{"", "k-" + strings.ReplaceAll(c.name, "^", "")} {
				headers := []string{"Idempotency-Key", key}
				if key == "" {
					headers = nil
				}
				resp := d.ask("POST", c.path, c.body, nil, headers...)
				p := d.refused(c.name, resp)
				if resp.StatusCode != c.status {
					t.Errorf("%s: got status %d %s, want %d", c.name, resp.StatusCode, textOf(resp), c.status)
				}
				at, told := p.Fields["pointer"]
				if c.pointer == "none" || c.pointer == "-" {
					continue
				}
				if !told || at != c.pointer {
					t.Errorf("%s: got pointer %v, want %q: %s", c.name, at, c.pointer, textOf(resp))
				}
			}
		}
		if after := d.state(); after != before {
			t.Errorf("stored data changed from\n%s\nto\n%s", before, after)
		}
	}, invoices(nil))
}

// TestGoodDocumentsAtTheEdge verifies that valid documents at the limits are accepted.
func TestGoodDocumentsAtTheEdge(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		event := func(data string) string { return `{"events":[{"name":"n","data":` + data + `}]}` }
		for name, body := range map[string]string{
			"depth 64":   event(strings.Repeat("[", 61) + strings.Repeat("]", 61)),
			"a megabyte": event(`"` + strings.Repeat("x", 1<<20-len(event(`""`))) + `"`),
			"a pair":     event(`"\ud83d\ude00"`),
			"null":       event("null"),
			"false":      event("false"),
		} {
			if resp := d.ask("POST", "streams/s/events", body, nil); resp.StatusCode != 201 {
				t.Errorf("%s: got status %d %.300s, want 201", name, resp.StatusCode, textOf(resp))
			}
		}
		for _, kind := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"} {
			d.want(d.send("POST", "streams/s/events", kind, strings.NewReader(event("1"))), 201, "")
		}
		var got wire.Leases
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
		d.want(d.ask("POST", "reactions/r/claim", wire.ClaimLeases{By: "me", Limit: 1000}, &got), 200, "")
	}, invoices(nil))
}

// send sends a body with a content type.
func (d *testAPI) send(method, path, kind string, body io.Reader, headers ...string) *http.Response {
	d.t.Helper()
	r, err := http.NewRequest(method, d.url+"/api/v1/"+path, body)
	if err != nil {
		d.t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header[http.CanonicalHeaderKey(headers[i])] = append(r.Header[http.CanonicalHeaderKey(headers[i])], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp
}

// unsized hides the length of a body, so that it is sent in chunks.
type unsized struct{ io.Reader }

func TestBadHeaders(t *testing.T) {
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	_, _ = zip.Write(make([]byte, 16<<20))
	_ = zip.Close()
	const good = `{"events":[{"name":"n"}]}`
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		before := d.state()
		post := func(kind string, body io.Reader, headers ...string) *http.Response {
			return d.send("POST", "streams/s/events", kind, body, headers...)
		}
		for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=latin1",
			"application/json; charset=utf-16", "application/yaml", "application/merge-patch+json", "json", "application/json, text/plain", ";", "application/json; charset"} {
			d.want(post(kind, strings.NewReader(good)), 415, fault.UnsupportedMediaType)
		}
		for _, encoding := range []string{"gzip", "br", "identity", "gzip, gzip"} {
			d.want(post("application/json", bytes.NewReader(bomb.Bytes()), "Content-Encoding", encoding), 415, fault.UnsupportedMediaType)
		}
		d.want(post("application/json", unsized{strings.NewReader(strings.Repeat(" ", 1<<20) + good)}), 413, fault.PayloadTooLarge)
		d.want(post("application/json", strings.NewReader(strings.Repeat(" ", 1<<20)+good)), 413, fault.PayloadTooLarge)
		for name, key := range map[string]string{"256": strings.Repeat("k", 256), "empty": "", "inner tab": "a\tb", "umlaut": "ü", "latin1": "\xfc"} {
			resp := post("application/json", strings.NewReader(good), "Idempotency-Key", key)
			d.refused("a key: "+name, resp)
			d.want(resp, 400, fault.Validation)
		}
		d.want(post("application/json", strings.NewReader(good), "Idempotency-Key", "a", "Idempotency-Key", "a"), 400, fault.Validation)
		if after := d.state(); after != before {
			t.Errorf("stored data changed from\n%s\nto\n%s", before, after)
		}
		d.want(post("application/json", strings.NewReader(good), "Idempotency-Key", strings.Repeat("k", 255)), 201, "")
	}, invoices(nil))
}

// TestRawRequests verifies requests with headers that Go's client would not send.
func TestRawRequests(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		before := d.state()
		const good = `{"events":[{"name":"n"}]}`
		for name, key := range map[string]string{"NUL": "a\x00b", "BEL": "a\x07b", "DEL": "a\x7fb"} {
			resp := d.raw(fmt.Sprintf("POST /api/v1/streams/s/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s", key, len(good), good))
			if resp.StatusCode != 400 {
				t.Errorf("%s in a key: got status %d, want 400", name, resp.StatusCode)
			}
		}
		resp := d.raw("POST /api/v1/streams/s/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
		d.refused("a bad chunk", resp)
		long := strings.Repeat("x", 10000)
		for path, want := range map[string]int{
			"streams/a%00b/events":                    400,
			"streams/%00/events":                      400,
			"streams/a%0ab/events":                    400,
			"streams/a%7fb/events":                    400,
			"streams/%ff/events":                      400,
			"streams/%ef%bf%bd/events":                400,
			"streams/" + long + "/events":             400,
			"lifecycles/" + long:                      400,
			"lifecycles/invoice/entities/" + long:     400,
			"reactions/" + long:                       400,
			"keys/" + long:                            400,
			"streams/../events":                       404,
			"streams/./events":                        404,
			"../../healthz":                           404,
			"streams//events":                         404,
			"/events":                                 404,
			"events/":                                 404,
			"streams/s/events/":                       404,
			"":                                        404,
			"streams%2fs%2fevents":                    404,
			"lifecycles/invoice%2fentities":           404,
			"lifecycles/invoice/entities/a%2fb":       404,
			"lifecycles/invoice/entities/..%2f..":     404,
			"lifecycles/invoice/entities/%2e%2e":      404,
			"keys/%2e%2e%2fevents":                    404,
			"events?limit=0":                          400,
			"events?limit=-1":                         400,
			"events?limit=1000000000":                 400,
			"events?limit=abc":                        400,
			"events?limit=":                           400,
			"events?limit=1.0":                        400,
			"events?limit=99999999999999999999":       400,
			"events?limit=1&limit=2":                  400,
			"events?limit=1&limit=1":                  400,
			"events?Limit=1":                          400,
			"events?nonsense=1":                       400,
			"events?nonsense":                         400,
			"events?limit=1;cursor=p1":                400,
			"events?%zz=1":                            400,
			"events?cursor=%00":                       400,
			"events?cursor=%ff":                       400,
			"events?cursor=" + long:                   400,
			"streams/s/events?from=-1":                400,
			"streams/s/events?from=x":                 400,
			"streams/s/events?backward=yes":           400,
			"streams/s/events?backward=True":          400,
			"reactions/*/streams?stream=(":            400,
			"reactions/*/streams?blocked=1":           400,
			"claims?state=nonsense":                   400,
			"operations?state=":                       400,
			"lifecycles/invoice/entities?status=%00x": 400,
		} {
			resp := d.raw("GET /api/v1/" + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			d.refused(path, resp)
			if resp.StatusCode != want {
				t.Errorf("%.80s: got status %d %.300s, want %d", path, resp.StatusCode, textOf(resp), want)
			}
		}
		for _, space := range []string{"\x80", strings.Repeat("w", 5000), "a\tb"} {
			d.refused("a workspace", d.raw("GET /api/v1/streams/s/events HTTP/1.1\r\nHost: localhost\r\nX-Holdfast-Workspace: "+space+"\r\nConnection: close\r\n\r\n"))
		}
		if after := d.state(); after != before {
			t.Errorf("stored data changed from\n%s\nto\n%s", before, after)
		}
	}, invoices(nil))
}

// raw sends bytes and reads one response.
func (d *testAPI) raw(text string) *http.Response {
	d.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		d.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		d.t.Fatalf("%.200q: %v", text, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp
}

// TestBadCursors verifies that a forged, truncated or foreign cursor is refused; a cursor forged
// with a valid checksum is refused too, or reads only what the API key may read.
func TestBadCursors(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("POST", "streams/s/events", wire.Append{Events: []wire.NewEvent{{Name: "a"}, {Name: "b"}}}, nil), 201, "")
		for i := range 2 {
			d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new(fmt.Sprint(i))}, nil), 201, "")
		}
		var page wire.List[wire.Event]
		d.want(d.ask("GET", "streams/s/events?limit=1", nil, &page), 200, "")
		good := *page.Next
		d.want(d.ask("GET", "streams/s/events?cursor="+good, nil, nil), 200, "")
		for _, r := range d.api.Routes() {
			if r.Method != "GET" {
				continue
			}
			values := func(name string) string {
				switch {
				case name == "name" && strings.HasPrefix(r.Path, "reactions"):
					return "*"
				case name == "id":
					return "0"
				case name == "stream":
					return "s"
				}
				return "invoice"
			}
			path := pathOf(r, values)
			if resp := d.ask("GET", path+"?cursor=x", nil, nil); resp.StatusCode == 404 || strings.Contains(textOf(resp), "means nothing here") {
				continue // not a list
			}
			for _, bad := range []string{"x", "!!", good[:len(good)-1], good + "A", "=" + good, strings.ToUpper(good), "p", "p0", "p01", "p-1", "pzzzzzzzzzzzzz", "p9999"} {
				d.want(d.ask("GET", path+"?cursor="+bad, nil, nil), 400, fault.Validation)
			}
			if r.ID != "readStream" {
				d.want(d.ask("GET", path+"?cursor="+good, nil, nil), 400, fault.Validation)
			}
			for _, after := range []string{"x", "-7", "1.5", `"a"`, "null", "{}", "99999999999999999999", "\x00", "\xff", "a\x00b", "\x00\x00", strings.Repeat("y", 1500)} {
				resp := d.ask("GET", path+"?cursor="+httpapi.CursorOf(r.ID, after), nil, nil)
				if resp.StatusCode >= 500 {
					t.Errorf("%s with cursor %.20q returned status %d %s", r.ID, after, resp.StatusCode, textOf(resp))
				}
			}
		}
	}, invoices(nil))
}

// TestWrongMethodsOfEveryRoute verifies that every path answers a wrong method with those that it
// supports.
func TestWrongMethodsOfEveryRoute(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t, invoices(nil)), httpapi.Options{NoKeys: true})
	takes := make(map[string][]string)
	for _, r := range d.api.Routes() {
		takes[r.Path] = append(takes[r.Path], r.Method)
		if r.Method == "GET" {
			takes[r.Path] = append(takes[r.Path], "HEAD")
		}
	}
	for _, r := range d.api.Routes() {
		path := pathOf(r, unknownIDs(r))
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			if slices.Contains(takes[r.Path], method) {
				continue
			}
			resp := d.ask(method, path, nil, nil)
			d.want(resp, 405, fault.MethodNotAllowed)
			allow := strings.Split(resp.Header.Get("Allow"), ", ")
			slices.Sort(allow)
			want := slices.Sorted(slices.Values(takes[r.Path]))
			if !slices.Equal(allow, want) {
				t.Errorf("%s %s: got Allow %q, want %q", method, r.Path, allow, want)
			}
		}
		if r.Method == "GET" {
			get, head := d.ask("GET", path, nil, nil), d.ask("HEAD", path, nil, nil)
			if head.StatusCode != get.StatusCode || textOf(head) != "" {
				t.Errorf("%s: HEAD returned status %d %q, GET %d", r.Path, head.StatusCode, textOf(head), get.StatusCode)
			}
			d.refused("a body on "+r.Path, d.send("GET", path, "application/json", strings.NewReader(`{}`)))
		}
	}
}

// TestSlowHeaders verifies that a client that sends an incomplete header line and then nothing is
// disconnected.
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	api := httpapi.On(holdfasttest.Open(t), httpapi.Options{NoKeys: true})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- api.Serve(ctx, ln, time.Minute) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slo"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is still open")
	}
}

// TestBigNumbersSurvive verifies that numbers that a float64 cannot represent are returned as
// written, everywhere.
func TestBigNumbersSurvive(t *testing.T) {
	const big = "9007199254740993"
	inputs := make(chan string, 2)
	act := func(_ context.Context, a *lifecycle.Act[json.RawMessage]) error {
		inputs <- string(a.Input)
		return a.Set(json.RawMessage(`{"set":` + big + `}`))
	}
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		has := func(name string, resp *http.Response) {
			t.Helper()
			if text := textOf(resp); resp.StatusCode > 201 || !strings.Contains(text, big) {
				t.Errorf("%s: got status %d %s, want %s in the response", name, resp.StatusCode, text, big)
			}
		}
		doc := json.RawMessage(`{"n":` + big + `,"deep":[{"m":-` + big + `}]}`)
		has("create", d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("a"), Data: doc}, nil, "Idempotency-Key", "k1"))
		has("create again", d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("a"), Data: doc}, nil, "Idempotency-Key", "k1"))
		has("get", d.ask("GET", "lifecycles/invoice/entities/a", nil, nil))
		has("list", d.ask("GET", "lifecycles/invoice/entities", nil, nil))
		has("fire", d.ask("POST", "lifecycles/invoice/entities/a/steps/close", wire.Fire{Requester: "admin", Input: doc}, nil))
		if got := <-inputs; !strings.Contains(got, big) {
			t.Errorf("the action got input %s", got)
		}
		has("append", d.ask("POST", "streams/s/events", wire.Append{Events: []wire.NewEvent{{Name: "n", Data: doc}}}, nil, "Idempotency-Key", "k2"))
		has("append again", d.ask("POST", "streams/s/events", wire.Append{Events: []wire.NewEvent{{Name: "n", Data: doc}}}, nil, "Idempotency-Key", "k2"))
		has("read", d.ask("GET", "streams/s/events", nil, nil))
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
		has("lease", d.ask("POST", "reactions/r/claim", wire.ClaimLeases{By: "me"}, nil))
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("b"), Data: doc}, nil), 201, "")
		var claim wire.Claimed
		d.want(d.ask("POST", "lifecycles/invoice/entities/b/claims", wire.NewClaim{StepKey: "close", Requester: "admin", Input: doc}, &claim), 201, "")
		path := "claims/" + claim.Claim.Token
		d.want(d.ask("POST", path+"/effects", wire.EffectCall{Name: "x"}, nil), 200, "")
		has("effect", d.ask("POST", path+"/effects", wire.EffectCall{Name: "x", Result: doc}, nil))
		has("effect again", d.ask("POST", path+"/effects", wire.EffectCall{Name: "x"}, nil))
		has("operations", d.ask("GET", "operations", nil, nil))
		has("settle", d.ask("POST", path+"/settle", wire.Settle{Outcome: "success", Data: json.RawMessage(`{"k":1}`),
			Events: []wire.SettleEvent{{Stream: "t", Name: "n", Data: doc}}}, nil))
		has("the event of the settle", d.ask("GET", "streams/t/events", nil, nil))
		has("history", d.ask("GET", "lifecycles/invoice/entities/a/history", nil, nil))
	}, invoices(act))
}
