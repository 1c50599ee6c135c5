package idem_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/idem"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

func user(r *http.Request) string { return r.Header.Get("User") }

// TestWiring verifies that a mistake in the options fails at start-up, with a sentence
// that says what to do: above all, that nobody shares keys among users without saying so.
func TestWiring(t *testing.T) {
	hf := holdfasttest.Open(t)
	for want, o := range map[string]idem.Options{
		"User is nil": {},
		"both set":    {User: user, SharedKeys: true},
		"got 1ms":     {User: user, TTL: time.Millisecond},
		"TTL must be between 1 second and 1 year, got -1h0m0s": {User: user, TTL: -time.Hour},
		"must not be negative, got -1 and 0":                   {User: user, MaxBody: -1},
		"got 17520h0m0s":                                       {User: user, TTL: 2 * 365 * 24 * time.Hour},
		"Lease must be between 1ms and 24h, got 25h0m0s":       {User: user, Lease: 25 * time.Hour},
	} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), want) {
					t.Errorf("%+v: got panic %v, want %q", o, p, want)
				}
			}()
			idem.Middleware(hf, o)
		}()
	}
}

// TestAnotherUser verifies that another user who sends the same key and body is not told
// the first one's answer, and that SharedKeys says that all are.
func TestAnotherUser(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		a, b := call{key: "k", header: http.Header{"User": {"a"}}}, call{key: "k", header: http.Header{"User": {"b"}}}
		c := &counted{}
		h := wrapped(hf, c, idem.Options{User: user})
		first := a.to(h)
		if second := b.to(h); second.Body.String() == first.Body.String() || second.Header().Get("Idempotency-Replayed") != "" {
			t.Errorf("second caller got body %q, headers %v, want its own response", second.Body, second.Header())
		}
		wantReplay(t, a.to(h), first)
		wantRuns(t, c, 2)
		shared := wrapped(hf, c, idem.Options{SharedKeys: true})
		first = a.to(shared)
		wantReplay(t, b.to(shared), first)
		wantRuns(t, c, 3)
	})
}

// TestTTL verifies that a request is known for as long as the options say, whether its
// answer was stored with a commit or without, and that it then goes from the database.
func TestTTL(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for name, then := range map[string]func(http.ResponseWriter, *http.Request, int64){
			"plain": func(w http.ResponseWriter, _ *http.Request, _ int64) {},
			"committed": func(w http.ResponseWriter, r *http.Request, _ int64) {
				if err := idem.Commit(r.Context(), func(context.Context, holdfast.Tx) error { return nil }); err != nil {
					t.Error(err)
				}
			},
		} {
			for _, ttl := range []time.Duration{time.Minute, 0, 72 * time.Hour} {
				c := &counted{then: then}
				h := wrapped(hf, c, idem.Options{SharedKeys: true, TTL: ttl})
				if ttl == 0 {
					ttl = 24 * time.Hour
				}
				key := fmt.Sprint(name, ttl)
				call{key: key}.to(h)
				holdfasttest.Advance(t, hf, ttl-10*time.Second)
				engine.Of(hf).Round(context.Background())
				call{key: key}.to(h)
				wantRuns(t, c, 1)
				holdfasttest.Advance(t, hf, 20*time.Second)
				engine.Of(hf).Round(context.Background())
				if n, err := idempotency.PruneAll(context.Background(), engine.Of(hf)); err != nil || n != 0 {
					t.Errorf("the janitor left %d expired requests; %v", n, err)
				}
				wantStatus(t, call{key: key, body: "other"}.to(h), 200)
				wantRuns(t, c, 2)
			}
		}
	})
}

// TestHeaders verifies which headers a replay has: those that the handler set, all their
// values, but no cookie, nothing of the connection or of the moment, and not those that
// were there before the handler.
func TestHeaders(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		c := &counted{then: func(w http.ResponseWriter, _ *http.Request, _ int64) {
			h := w.Header()
			h["Link"] = []string{"</a>; rel=next", "</b>; rel=last"}
			h["x-lower"] = []string{"1"}
			h["set-cookie"] = []string{"lower=1"}
			h["Content-Type"] = nil // do not look
			for name, v := range map[string]string{
				"Vary": "Accept", "X-Order": "7", "Outer-Changed": "by the handler", "Set-Cookie": "session=secret", "Date": "yesterday", "Content-Length": "5",
				"Connection": "close, X-Hop", "X-Hop": "1", "Keep-Alive": "timeout=5", "Transfer-Encoding": "identity", "Trailer": "X-Late", "Upgrade": "h2c",
				"Idempotency-Replayed": "by hand", http.TrailerPrefix + "X-Late": "1",
			} {
				h.Set(name, v)
			}
			fmt.Fprint(w, "<htm>")
			h.Set("X-Late", "too late")
		}}
		h := wrapped(hf, c, idem.Options{SharedKeys: true})
		outer := 0
		around := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			outer++
			w.Header().Set("Request-Id", fmt.Sprint("r", outer))
			w.Header().Set("Outer-Changed", "no")
			h.ServeHTTP(w, r)
		})
		first := call{key: "k"}.to(around)
		if first.Header().Get("Set-Cookie") == "" || first.Header().Get("Request-Id") != "r1" {
			t.Errorf("first response has headers %v", first.Header())
		}
		want := http.Header{
			"Link": {"</a>; rel=next", "</b>; rel=last"}, "x-lower": {"1"}, "Content-Type": nil, "Vary": {"Accept"}, "X-Order": {"7"}, "Outer-Changed": {"by the handler"},
			"Request-Id": {"r2"}, "Idempotency-Replayed": {"true"},
		}
		if got := (call{key: "k"}).to(around).Header(); !reflect.DeepEqual(got, want) {
			t.Errorf("replay has headers\n%v, want\n%v", got, want)
		}
		wantRuns(t, c, 1)
	})
}

// TestFlush verifies that a handler may flush, by the interface and by the controller: an
// answer that is held back is whole, and its replay too; one over the limit is flushed
// from there.
func TestFlush(t *testing.T) {
	hf := holdfasttest.Open(t)
	seen := make(chan struct{})
	c := &counted{then: func(w http.ResponseWriter, r *http.Request, _ int64) {
		w.(http.Flusher).Flush()
		w.WriteHeader(http.StatusTeapot) // too late: the header is flushed
		fmt.Fprint(w, "one ")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/long" {
			fmt.Fprintln(w, strings.Repeat("x", 20))
			w.(http.Flusher).Flush()
			<-seen // by the client, before the handler has returned
		}
		fmt.Fprint(w, "two")
	}}
	s := httptest.NewServer(wrapped(hf, c, idem.Options{SharedKeys: true, MaxResponse: 20}))
	defer s.Close()
	post := func(path string) *http.Response {
		r, err := http.NewRequest(http.MethodPost, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", path)
		w, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Body.Close() })
		return w
	}
	for range 2 {
		w := post("/short")
		if line, _ := bufio.NewReader(w.Body).ReadString('\n'); w.StatusCode != 200 || line != "one two" {
			t.Errorf("got response %d %q, want 200 \"one two\"", w.StatusCode, line)
		}
	}
	wantRuns(t, c, 1)
	w := post("/long")
	body := bufio.NewReader(w.Body)
	if line, err := body.ReadString('\n'); err != nil || line != "one "+strings.Repeat("x", 20)+"\n" {
		t.Errorf("got first line %q, %v", line, err)
	}
	close(seen)
	if rest, _ := body.ReadString('\n'); rest != "two" {
		t.Errorf("got rest %q, want two", rest)
	}
}
