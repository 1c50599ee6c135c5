package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func testContext(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

// serving runs an API on a free port. The returned functions stop it and wait for its end.
func serving(t *testing.T, api *API, drain time.Duration) (address string, stop func(), wait func() error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := testContext(t)
	served := make(chan error, 1)
	go func() { served <- api.Serve(ctx, ln, drain) }()
	return ln.Addr().String(), cancel, func() error { return <-served }
}

// slowRequest starts a request without its body, so that it is in flight until finish sends it. It
// returns once the request has reached its handler.
func slowRequest(t *testing.T, address string, arrived <-chan struct{}) (conn net.Conn, finish func() string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n")
	<-arrived
	return conn, func() string {
		io.WriteString(conn, "body")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
}

// slow replaces the handler of an API with one that signals the arrival of a request and echoes its
// body, or ends when the server aborts the request.
func slow(api *API) <-chan struct{} {
	arrived := make(chan struct{}, 1)
	api.handler = api.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		if got, err := io.ReadAll(r.Body); err == nil {
			_, _ = w.Write(got)
		}
	}))
	return arrived
}

func TestServe(t *testing.T) {
	api, _, _ := newAPI(t)
	address, stop, wait := serving(t, api, time.Minute)
	resp, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("got status %d, want 200", resp.StatusCode)
	}
	stop()
	if err := wait(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("the listener is still open")
	}
	if w := ask(api, "GET", "/readyz"); w.Code != 503 {
		t.Errorf("/readyz returned status %d after the end, want 503", w.Code)
	}
}

// TestServeDrains verifies that a request in flight is answered before Serve returns.
func TestServeDrains(t *testing.T) {
	api, _, _ := newAPI(t)
	arrived := slow(api)
	address, stop, wait := serving(t, api, time.Minute)
	_, finish := slowRequest(t, address, arrived)
	stop()
	if got := finish(); got != "body" {
		t.Errorf("got %q, want body", got)
	}
	if err := wait(); err != nil {
		t.Error(err)
	}
}

// TestServeCutsOff verifies that a request that takes longer than the drain is aborted, with a log
// line.
func TestServeCutsOff(t *testing.T) {
	api, _, log := newAPI(t)
	arrived := slow(api)
	address, stop, wait := serving(t, api, time.Millisecond)
	conn, _ := slowRequest(t, address, arrived)
	stop()
	if err := wait(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "aborted requests") {
		t.Errorf("the log lacks the aborted requests:\n%s", log)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
}

// TestServeFails verifies that Serve returns an error if its listener fails.
func TestServeFails(t *testing.T) {
	api, _, _ := newAPI(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := api.Serve(t.Context(), ln, time.Second); err == nil {
		t.Error("Serve succeeded on a closed listener")
	}
}

func TestServeRefusesHugeHeaders(t *testing.T) {
	api, _, _ := newAPI(t)
	address, stop, wait := serving(t, api, time.Minute)
	r, err := http.NewRequest("GET", "http://"+address+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Large", strings.Repeat("x", maxHeaderBytes+(8<<10)))
	resp, err := http.DefaultClient.Do(r)
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("got status %d, want 431", resp.StatusCode)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := wait(); err != nil {
		t.Error(err)
	}
}
