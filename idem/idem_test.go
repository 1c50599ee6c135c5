package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/idem"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

// call is a request of a test; what is empty has a default.
type call struct {
	method, path, key, body, kind string
	header                        http.Header
}

func (c call) request(ctx context.Context) *http.Request {
	if c.method == "" {
		c.method = http.MethodPost
	}
	if c.path == "" {
		c.path = "/orders"
	}
	r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)).WithContext(ctx)
	for name, values := range c.header {
		r.Header[name] = values
	}
	if c.key != "" {
		r.Header.Set("Idempotency-Key", c.key)
	}
	if c.kind != "" {
		r.Header.Set("Content-Type", c.kind)
	}
	return r
}

func (c call) to(h http.Handler) *httptest.ResponseRecorder {
	return c.in(context.Background(), h)
}

func (c call) in(ctx context.Context, h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, c.request(ctx))
	return w
}

// counted is a handler that makes an order, and counts how often it ran.
type counted struct {
	runs atomic.Int64
	then func(w http.ResponseWriter, r *http.Request, run int64)
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := c.runs.Add(1)
	if c.then != nil {
		c.then(w, r, n)
		return
	}
	w.Header().Set("Location", fmt.Sprintf("/orders/%d", n))
	w.Header().Set("ETag", `"1"`)
	w.Header().Set("Set-Cookie", "a=b")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"order": %d}`, n)
}

func wrapped(hf *holdfast.Engine, c *counted, o idem.Options) http.Handler {
	return idem.Middleware(hf, o)(c)
}

func wantStatus(t *testing.T, w *httptest.ResponseRecorder, want int) {
	t.Helper()
	if w.Code != want {
		t.Fatalf("got status %d %s, want %d", w.Code, w.Body, want)
	}
}

func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code fault.Code) {
	t.Helper()
	wantStatus(t, w, status)
	var p map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Fatalf("response is not a problem document: %s, %v", w.Body, err)
	}
	for name, want := range map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": float64(status), "code": string(code)} {
		if p[name] != want {
			t.Errorf("problem field %s: got %v, want %v", name, p[name], want)
		}
	}
	if p["detail"] == "" {
		t.Error("the problem has no detail")
	}
}

func wantRuns(t *testing.T, c *counted, want int64) {
	t.Helper()
	if n := c.runs.Load(); n != want {
		t.Errorf("the handler ran %d times, want %d", n, want)
	}
}

func wantReplay(t *testing.T, w, of *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code != of.Code || w.Body.String() != of.Body.String() || w.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("replay is %d %q (%v), want %d %q", w.Code, w.Body, w.Header(), of.Code, of.Body)
	}
	for _, name := range []string{"Content-Type", "Location", "ETag"} {
		if w.Header().Get(name) != of.Header().Get(name) {
			t.Errorf("header %s: got %q, want %q", name, w.Header().Get(name), of.Header().Get(name))
		}
	}
}

// TestReplay verifies that the second of two equal requests gets the first one's
// answer, and what is kept of it.
func TestReplay(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		c := &counted{}
		h := wrapped(hf, c, idem.Options{SharedKeys: true})
		first := call{key: "k", body: "{}"}.to(h)
		wantStatus(t, first, http.StatusCreated)
		if first.Header().Get("Idempotency-Replayed") != "" || first.Header().Get("Set-Cookie") == "" {
			t.Errorf("first response has headers %v", first.Header())
		}
		second := call{key: "k", body: "{}"}.to(h)
		wantReplay(t, second, first)
		if second.Header().Get("Set-Cookie") != "" {
			t.Error("a cookie is replayed")
		}
		wantRuns(t, c, 1)
		holdfasttest.Advance(t, hf, 24*time.Hour)
		wantStatus(t, call{key: "k", body: "other"}.to(h), http.StatusCreated)
		wantRuns(t, c, 2)
	})
}

// TestPass verifies what passes untouched: harmless methods, and requests without a
// key.
func TestPass(t *testing.T) {
	hf := holdfasttest.Open(t)
	c := &counted{then: func(w http.ResponseWriter, r *http.Request, _ int64) {
		err := idem.Commit(r.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			_, err := stream.Append(ctx, tx, "orders", stream.Any, stream.Event{Name: "ordered"})
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}}
	h := wrapped(hf, c, idem.Options{SharedKeys: true})
	for _, k := range []call{{}, {method: "GET", key: "k"}, {method: "HEAD", key: "k"}, {method: "OPTIONS", key: "k"}} {
		for range 2 {
			wantStatus(t, k.to(h), http.StatusOK)
		}
	}
	wantRuns(t, c, 8)
	wantEvents(t, hf, 8)
}

// TestRefused verifies what is refused before the handler runs.
func TestRefused(t *testing.T) {
	hf := holdfasttest.Open(t)
	c := &counted{}
	h := wrapped(hf, c, idem.Options{SharedKeys: true, MaxBody: 10, Workspace: func(r *http.Request) string { return r.Header.Get("W") }})
	in := http.Header{"W": {"w"}}
	wantProblem(t, call{header: http.Header{"W": {"w"}, "Idempotency-Key": {"a", "a"}}}.to(h), 400, fault.Validation)
	wantProblem(t, call{header: http.Header{"W": {"w"}, "Idempotency-Key": {""}}}.to(h), 400, fault.Validation)
	wantProblem(t, call{header: in, key: "ä"}.to(h), 400, fault.Validation)
	wantProblem(t, call{header: in, key: strings.Repeat("x", 256)}.to(h), 400, fault.Validation)
	wantProblem(t, call{header: in, key: "k", body: "12345678901"}.to(h), 413, fault.PayloadTooLarge)
	wantProblem(t, call{header: http.Header{"W": {"no workspace"}}, key: "k"}.to(h), 400, fault.Validation)
	wantRuns(t, c, 0)
	wantStatus(t, call{header: in, key: "k", body: "1234567890"}.to(h), http.StatusCreated)
}

// TestMismatch verifies that another method, path, query or body under a key is
// refused, that the order of JSON's members is none, and that documents which readers
// understand differently are told apart.
func TestMismatch(t *testing.T) {
	hf := holdfasttest.Open(t)
	c := &counted{}
	h := wrapped(hf, c, idem.Options{SharedKeys: true})
	const doc = "application/json; charset=utf-8"
	first := call{key: "k", path: "/orders?a=1", kind: doc, body: `{"a": 1, "b": {"d": 1.0, "c": [2]}}`}
	wantStatus(t, first.to(h), http.StatusCreated)
	same := first
	same.body, same.kind = ` { "b" :{"c":[2],"d":1},"a":1e0}`, "application/problem+json"
	wantStatus(t, same.to(h), http.StatusCreated)
	wantRuns(t, c, 1)
	for _, change := range []func(*call){
		func(k *call) { k.method = "PUT" },
		func(k *call) { k.path = "/orders" },
		func(k *call) { k.path = "/orders/?a=1" },
		func(k *call) { k.body = `{"a": 2, "b": {"d": 1.0, "c": [2]}}` },
		func(k *call) { k.body = `{"a": 1, "a": 1, "b": {"d": 1.0, "c": [2]}}` },
		func(k *call) { k.kind = "text/plain" },
	} {
		other := first
		change(&other)
		wantProblem(t, other.to(h), 422, fault.KeyMismatch)
	}
	wantRuns(t, c, 1)
	stripped := http.StripPrefix("/v1", h)
	wantStatus(t, call{key: "s", path: "/v1/orders"}.to(stripped), http.StatusCreated)
	wantProblem(t, call{key: "s", path: "/orders"}.to(h), 422, fault.KeyMismatch)
}

// TestApart verifies that keys of two workspaces and of two scopes never meet.
func TestApart(t *testing.T) {
	hf := holdfasttest.Open(t)
	c := &counted{}
	h := wrapped(hf, c, idem.Options{User: func(r *http.Request) string { return r.Header.Get("User") }})
	n := int64(0)
	for _, w := range []string{"one", "two"} {
		for _, k := range []call{{key: "k", header: http.Header{"User": {"k"}}}, {key: "k", header: http.Header{"User": {"a"}}}, {key: "k", header: http.Header{"User": {"ak"}}}, {key: "kk", header: http.Header{"User": {"a"}}}} {
			n++
			for range 2 {
				got := k.in(holdfast.InWorkspace(context.Background(), w), h)
				if want := fmt.Sprintf(`{"order": %d}`, n); got.Body.String() != want {
					t.Errorf("%s, %v: got %s, want %s", w, k, got.Body, want)
				}
			}
		}
	}
	wantProblem(t, call{key: "k"}.to(h), 401, fault.Auth) // nobody is known whose key it is
	wantRuns(t, c, n)
	wantStatus(t, call{}.to(h), http.StatusCreated)
}

// TestAtOnce verifies that of 20 equal requests at once one runs, and that the others
// are told that it is under way, or its answer.
func TestAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		refused := make(chan struct{})
		c := &counted{then: func(w http.ResponseWriter, _ *http.Request, n int64) {
			<-refused // so that some meet it under way
			fmt.Fprintf(w, "order %d", n)
		}}
		h := wrapped(hf, c, idem.Options{SharedKeys: true})
		var under, replayed, ran atomic.Int64
		_, lost := holdfasttest.Race(t, 20, func(int) error {
			w := call{key: "k"}.to(h)
			switch after, err := strconv.Atoi(w.Header().Get("Retry-After")); {
			case w.Code == 409 && err == nil && after >= 1:
				if under.Add(1) == 5 {
					close(refused)
				}
			case w.Code != 200 || w.Body.String() != "order 1":
				return fmt.Errorf("%d %s", w.Code, w.Body)
			case w.Header().Get("Idempotency-Replayed") == "true":
				replayed.Add(1)
			default:
				ran.Add(1)
			}
			return nil
		})
		if len(lost) > 0 || ran.Load() != 1 || under.Load()+replayed.Load() != 19 {
			t.Errorf("%d requests ran, want 1; %d were in flight, %d replayed; %v", ran.Load(), under.Load(), replayed.Load(), errors.Join(lost...))
		}
		wantRuns(t, c, 1)
		wantProblem(t, call{key: "k", body: "other"}.to(h), 422, fault.KeyMismatch)
	})
}

// TestNotKept verifies that a refusal is not kept and its key free again, for another
// request too, and that the same is true of a panic.
func TestNotKept(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		c := &counted{then: func(w http.ResponseWriter, _ *http.Request, n int64) {
			switch n {
			case 1:
				w.WriteHeader(http.StatusUnprocessableEntity)
			case 2:
				w.WriteHeader(http.StatusInternalServerError)
			case 3:
				panic("by plan")
			}
		}}
		h := wrapped(hf, c, idem.Options{SharedKeys: true})
		wantStatus(t, call{key: "k", body: "1"}.to(h), 422)
		wantStatus(t, call{key: "k", body: "2"}.to(h), 500)
		func() {
			defer func() {
				if p := recover(); p != "by plan" {
					t.Errorf("got panic %v, want by plan", p)
				}
			}()
			call{key: "k", body: "3"}.to(h)
		}()
		wantStatus(t, call{key: "k", body: "4"}.to(h), 200)
		wantRuns(t, c, 4)
		replay := call{key: "k", body: "4"}.to(h)
		wantStatus(t, replay, 200)
		if replay.Header().Get("Idempotency-Replayed") != "true" {
			t.Error("an empty response is not replayed")
		}
	})
}

// TestTooLarge verifies that an answer over the limit reaches the client whole, and
// that its replay says that it was not kept.
func TestTooLarge(t *testing.T) {
	hf := holdfasttest.Open(t)
	c := &counted{then: func(w http.ResponseWriter, r *http.Request, _ int64) {
		w.Header().Set("Location", "/orders/1")
		if r.Header.Get("Bad") != "" {
			w.WriteHeader(400)
		} else {
			w.WriteHeader(201)
		}
		for range 10 {
			fmt.Fprint(w, "12345")
		}
	}}
	h := wrapped(hf, c, idem.Options{SharedKeys: true, MaxResponse: 20})
	bad := call{key: "k", header: http.Header{"Bad": {"1"}}}.to(h)
	wantStatus(t, bad, 400)
	first := call{key: "k"}.to(h)
	wantStatus(t, first, 201)
	if first.Body.String() != strings.Repeat("12345", 10) || first.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("got response %q, %v", first.Body, first.Header())
	}
	second := call{key: "k"}.to(h)
	wantLost(t, second, "too-large")
	if second.Header().Get("Location") != "/orders/1" {
		t.Error("the replay has no Location")
	}
	wantRuns(t, c, 2)
	exact := wrapped(hf, &counted{then: func(w http.ResponseWriter, _ *http.Request, _ int64) { fmt.Fprint(w, strings.Repeat("x", 20)) }}, idem.Options{SharedKeys: true, MaxResponse: 20})
	kept := call{key: "e"}.to(exact)
	wantReplay(t, call{key: "e"}.to(exact), kept)
}

func wantLost(t *testing.T, w *httptest.ResponseRecorder, why string) {
	t.Helper()
	wantStatus(t, w, http.StatusNoContent)
	if w.Header().Get("Idempotency-Answer") != why || w.Header().Get("Idempotency-Replayed") != "true" || w.Body.Len() > 0 || w.Header().Get("Content-Type") != "" {
		t.Errorf("replay is %q, %v", w.Body, w.Header())
	}
}

// both runs a test on both databases, with something that opens engines on the same
// one.
func both(t *testing.T, f func(t *testing.T, open func() *holdfast.Engine)) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, db string) {
		f(t, func() *holdfast.Engine { return holdfasttest.OpenOn(t, holdfasttest.At(db)) })
	})
}

// TestOwnerIsGone verifies that the key of a process that died can be used again when
// its hold has run out, by the same request, and that an owner that comes back
// neither replaces the answer nor tells another.
func TestOwnerIsGone(t *testing.T) {
	both(t, func(t *testing.T, open func() *holdfast.Engine) {
		gone, lives := open(), open()
		begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan *httptest.ResponseRecorder)
		stuck := &counted{then: func(w http.ResponseWriter, _ *http.Request, _ int64) {
			close(begun)
			<-end
			fmt.Fprint(w, "late")
		}}
		go func() { ended <- call{key: "k"}.to(wrapped(gone, stuck, idem.Options{SharedKeys: true})) }()
		<-begun
		c := &counted{}
		h := wrapped(lives, c, idem.Options{SharedKeys: true})
		wantProblem(t, call{key: "k"}.to(h), 409, fault.KeyInFlight)
		if err := gone.Close(); err != nil {
			t.Fatal(err)
		}
		holdfasttest.Advance(t, lives, 31*time.Second)
		wantProblem(t, call{key: "k", body: "other"}.to(h), 422, fault.KeyMismatch)
		first := call{key: "k"}.to(h)
		wantStatus(t, first, 201)
		close(end)
		late := <-ended
		if late.Header().Get("Idempotency-Answer") != "unrecorded" || late.Body.String() != "late" {
			t.Errorf("late response is %q, %v", late.Body, late.Header())
		}
		wantReplay(t, call{key: "k"}.to(h), first)
		wantRuns(t, c, 1)
	})
}

// TestLate verifies that an owner that was late but reaches the database tells the
// answer that is recorded, and its own if there is none.
func TestLate(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for _, another := range []bool{true, false} {
			key := fmt.Sprint("k", another)
			c := &counted{}
			var first *httptest.ResponseRecorder
			var h http.Handler
			c.then = func(w http.ResponseWriter, r *http.Request, n int64) {
				if n == 1 {
					holdfasttest.Advance(t, hf, time.Minute)
				}
				if n == 1 && another {
					first = call{key: key}.to(h)
				}
				fmt.Fprintf(w, "order %d", n)
			}
			h = wrapped(hf, c, idem.Options{SharedKeys: true})
			late := call{key: key}.to(h)
			if another {
				wantReplay(t, late, first)
				wantRuns(t, c, 2)
				continue
			}
			if late.Body.String() != "order 1" || late.Header().Get("Idempotency-Answer") != "unrecorded" {
				t.Errorf("late response is %q, %v", late.Body, late.Header())
			}
			wantStatus(t, call{key: key}.to(h), 200)
			wantRuns(t, c, 2)
		}
	})
}

// TestLost verifies that the context of a handler ends when its hold is lost, and
// that the key is then free for the same request.
func TestLost(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		c := &counted{then: func(w http.ResponseWriter, r *http.Request, n int64) {
			if n == 1 {
				holdfasttest.Advance(t, hf, time.Hour)
				<-r.Context().Done()
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}}
		h := wrapped(hf, c, idem.Options{SharedKeys: true, Lease: 300 * time.Millisecond})
		wantStatus(t, call{key: "k"}.to(h), 503)
		wantStatus(t, call{key: "k"}.to(wrapped(hf, c, idem.Options{SharedKeys: true})), 200)
		wantRuns(t, c, 2)
	})
}

// TestServed verifies the middleware behind a server, with a client.
func TestServed(t *testing.T) {
	c := &counted{then: func(w http.ResponseWriter, r *http.Request, n int64) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "<html>%d %s %v", n, body, err)
	}}
	s := httptest.NewServer(wrapped(holdfasttest.Open(t), c, idem.Options{SharedKeys: true}))
	defer s.Close()
	for _, replayed := range []string{"", "true"} {
		r, err := http.NewRequest(http.MethodPatch, s.URL+"/x", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		w, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(w.Body)
		_ = w.Body.Close()
		if err != nil || string(got) != "<html>1 body <nil>" || w.Header.Get("Content-Type") != "text/html; charset=utf-8" || w.Header.Get("Idempotency-Replayed") != replayed {
			t.Errorf("got response %q, %v, %v", got, w.Header, err)
		}
	}
	wantRuns(t, c, 1)
}
