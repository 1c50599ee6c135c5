package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/browser"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(browser.Main(holdfasttest.Main(m))) }

// logBuffer collects the log of concurrent requests.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// newAPI opens an engine on a fresh SQLite file, with an API that logs everything.
func newAPI(t *testing.T) (*API, *holdfast.Engine, *logBuffer) {
	t.Helper()
	log := new(logBuffer)
	l := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	engine, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{Log: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	return On(engine, Options{Log: l, Version: "v1.2.3", NoKeys: true}), engine, log
}

func ask(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1"+path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func body(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatalf("body %q is not JSON: %v", w.Body, err)
	}
	return doc
}

// wantProblem checks the shape of an error response.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code fault.Code) map[string]any {
	t.Helper()
	p := body(t, w)
	want := map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": float64(status),
		"code": string(code), "detail": p["detail"], "requestId": w.Header().Get("X-Request-Id"),
	}
	if w.Code != status || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("got status %d %s, want %d application/problem+json", w.Code, w.Header().Get("Content-Type"), status)
	}
	for name, value := range want {
		if p[name] != value {
			t.Errorf("%s is %v, want %v", name, p[name], value)
		}
	}
	if p["detail"] == "" || p["detail"] == nil {
		t.Error("the problem has no detail")
	}
	return p
}

func TestHealthz(t *testing.T) {
	api, engine, _ := newAPI(t)
	for range 2 { // the second time without a database
		w := ask(api, "GET", "/healthz")
		if w.Code != 200 || w.Body.String() != "{\"status\":\"ok\"}\n" || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("got status %d %s %q", w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		if err := engine.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadyz(t *testing.T) {
	api, _, _ := newAPI(t)
	w := ask(api, "GET", "/readyz")
	r := body(t, w)
	if w.Code != 200 || r["status"] != "ready" || r["version"] != "v1.2.3" {
		t.Fatalf("got status %d %v", w.Code, r)
	}
	if name, _ := r["database"].(string); !strings.HasPrefix(name, "SQLite 3.") {
		t.Errorf("got database %v, want SQLite 3", r["database"])
	}
	if schema, _ := r["schema"].(float64); schema < 1 {
		t.Errorf("got schema %v, want at least 1", r["schema"])
	}
	at, _ := r["databaseTime"].(string)
	if _, err := time.Parse("2006-01-02T15:04:05.000Z", at); err != nil {
		t.Errorf("got databaseTime %q, want RFC 3339, UTC, milliseconds", at)
	}
}

// TestReadyzWithoutDatabase verifies that an unreachable database is a 503 with a code and without
// internals.
func TestReadyzWithoutDatabase(t *testing.T) {
	api, engine, log := newAPI(t)
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	w := ask(api, "GET", "/readyz")
	p := body(t, w)
	code, _ := p["code"].(string)
	wantProblem(t, w, 503, fault.Code(code))
	if code == "" || strings.Contains(w.Body.String(), "sql:") {
		t.Errorf("response has no code or reveals a driver error: %s", w.Body)
	}
	if !strings.Contains(log.String(), "request failed") || !strings.Contains(log.String(), w.Header().Get("X-Request-Id")) {
		t.Errorf("the log lacks the failure under the request id:\n%s", log)
	}
}

func TestReadyzWhileStopping(t *testing.T) {
	api, _, _ := newAPI(t)
	api.Stop()
	api.Stop()
	wantProblem(t, ask(api, "GET", "/readyz"), 503, fault.Unavailable)
	if w := ask(api, "GET", "/healthz"); w.Code != 200 {
		t.Errorf("/healthz returned status %d, want 200", w.Code)
	}
}

// TestNotReadyHasACode verifies that an ended context has its own code, because it is not an
// internal error.
func TestNotReadyHasACode(t *testing.T) {
	api, engine, _ := newAPI(t)
	ctx, cancel := testContext(t)
	cancel()
	_, err := engine.Status(ctx)
	if err == nil {
		t.Fatal("got a response with a canceled context")
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://127.0.0.1/readyz", nil))
	wantProblem(t, w, 503, fault.Unavailable)
}

func TestHead(t *testing.T) {
	api, _, _ := newAPI(t)
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/nothing": 404} {
		w := ask(api, "HEAD", path)
		if w.Code != status || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" {
			t.Errorf("%s returned status %d, %d bytes, Content-Length %q", path, w.Code, w.Body.Len(), w.Header().Get("Content-Length"))
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	api, _, _ := newAPI(t)
	for _, path := range []string{"/", "/nothing", "/healthz/", "//healthz", "/api/v1/nothing", "/a/../healthz"} {
		wantProblem(t, ask(api, "GET", path), 404, fault.NotFound)
		wantProblem(t, ask(api, "POST", path), 404, fault.NotFound)
	}
}

func TestWrongMethods(t *testing.T) {
	api, _, _ := newAPI(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "BREW"} {
		w := ask(api, method, "/readyz")
		wantProblem(t, w, 405, fault.MethodNotAllowed)
		if w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: got Allow %q, want GET, HEAD", method, w.Header().Get("Allow"))
		}
	}
}

func TestRequestID(t *testing.T) {
	api, _, log := newAPI(t)
	for _, good := range []string{"a", "0198-abc", "trace/7:b+c=", strings.Repeat("x", 128)} {
		if got := ask(api, "GET", "/healthz", "X-Request-Id", good).Header().Get("X-Request-Id"); got != good {
			t.Errorf("sent %q, got back %q", good, got)
		}
		if !strings.Contains(log.String(), good) {
			t.Errorf("the log lacks request id %q", good)
		}
	}
	for _, bad := range []string{"", "two words", "a\nb", `"quoted"`, "ümlaut", strings.Repeat("x", 129)} {
		got := ask(api, "GET", "/healthz", "X-Request-Id", bad).Header().Get("X-Request-Id")
		if id, err := uuid.Parse(got); err != nil || id.Version() != 7 {
			t.Errorf("sent %q, got back %q, want a new id", bad, got)
		}
	}
}

func TestAccessLog(t *testing.T) {
	api, _, log := newAPI(t)
	ask(api, "GET", "/nothing?secret=1", "X-Request-Id", "mine")
	for _, want := range []string{"level=DEBUG", "method=GET", "path=/nothing ", "status=404", "request=mine"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log contains the query:\n%s", log)
	}
}

func TestPanic(t *testing.T) {
	api, _, log := newAPI(t)
	h := api.guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("the inside") }))
	w := ask(h, "GET", "/x")
	wantProblem(t, w, 500, fault.Internal)
	if strings.Contains(w.Body.String(), "the inside") {
		t.Errorf("response reveals the panic value: %s", w.Body)
	}
	for _, want := range []string{"the inside", "httpapi_test.go", w.Header().Get("X-Request-Id")} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}

// TestPanicAfterTheAnswerBegan verifies that a panic after the response has started breaks the
// connection, so that a truncated response does not look complete.
func TestPanicAfterTheAnswerBegan(t *testing.T) {
	api, _, _ := newAPI(t)
	srv := httptest.NewServer(api.guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		panic("the inside")
	})))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("read %q without an error, want a truncated body", got)
	}
}
