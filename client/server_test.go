package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pgtest.CloseIdle()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const invoiceConfig = `{
  "workflow": "invoice", "owning_module": "billing", "initial_status": "open", "status_types": ["open", "closing", "closed"],
  "steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_claim_state": {"admin": ["closing", "open"]},
    "successful_state": {"admin": "closed"}, "action": {"admin": "Close"}}]
}`

// server is a real API on a SQLite file, behind a listener that can lose responses.
type server struct {
	engine   *holdfast.Engine
	beside   *httpapi.API // the same engine without keys
	url      string
	line     *lossyListener
	requests atomic.Int64 // requests that reached the API
	closed   atomic.Int64 // runs of the action
}

func serve(t *testing.T, o httpapi.Options) *server {
	t.Helper()
	s := &server{}
	act := func(context.Context, *lifecycle.Act[json.RawMessage]) error { s.closed.Add(1); return nil }
	invoices := lifecycle.MustParse[json.RawMessage]([]byte(invoiceConfig)).RecoveredBy().Action("Close", act, lifecycle.Transactional())
	api := httpapi.New(o)
	o.NoKeys = true
	s.beside = httpapi.New(o)
	s.engine = holdfasttest.Open(t, invoices, stream.Feed(stream.FeedOptions{}), api, s.beside)
	testkit.Run(t, s.engine)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		api.ServeHTTP(w, r)
	}))
	s.line = &lossyListener{Listener: srv.Listener}
	srv.Listener = s.line
	srv.Start()
	t.Cleanup(srv.Close)
	t.Cleanup(api.Stop)
	s.url = srv.URL
	return s
}

// lossyListener loses responses: the server has worked, but the caller gets no response.
type lossyListener struct {
	net.Listener
	lose atomic.Int64 // number of responses to lose from now on
	half atomic.Bool  // a part of each lost response gets through
}

func (l *lossyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &lossy{c, l}, err
}

type lossy struct {
	net.Conn
	line *lossyListener
}

func (c *lossy) Write(p []byte) (int, error) {
	if c.line.lose.Add(-1) >= 0 {
		if c.line.half.Load() {
			_, _ = c.Conn.Write(p[:len(p)/2])
		}
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

func (l *lossyListener) loses(n int64, half bool) {
	l.half.Store(half)
	l.lose.Store(n)
}

// dial returns a client with short retry delays.
func dial(t *testing.T, url string, o Options) *Client {
	t.Helper()
	c, err := New(url, o)
	if err != nil {
		t.Fatal(err)
	}
	c.pause = 1e6 // a millisecond
	t.Cleanup(c.Close)
	return c
}

// count counts the events of a stream.
func count(t *testing.T, c *Client, name string) (n int) {
	t.Helper()
	for _, err := range c.ReadStream(t.Context(), name, StreamRange{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// serveBeside serves the same engine without keys.
func serveBeside(t *testing.T, s *server) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(s.beside)
	t.Cleanup(srv.Close)
	t.Cleanup(s.beside.Stop)
	return srv
}
