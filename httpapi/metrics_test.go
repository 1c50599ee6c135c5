package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// observedAPI is an API whose log and spans are recorded.
type observedAPI struct {
	*API
	t      *testing.T
	engine *holdfast.Engine
	log    *logBuffer
	spans  *tracetest.SpanRecorder
}

const parcelConfig = `{"workflow": "parcel", "owning_module": "post", "initial_status": "open", "status_types": ["open", "closing", "closed"],
  "steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_claim_state": {"admin": ["closing", "open"]}, "successful_state": {"admin": "closed"}, "action": {"admin": "Close"}}]}`

func newObservedAPI(t *testing.T, o Options) *observedAPI {
	t.Helper()
	d := &observedAPI{t: t, log: new(logBuffer), spans: tracetest.NewSpanRecorder()}
	o.Log = slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(d.spans))
	o.Traces = provider
	parcels := lifecycle.MustParse[json.RawMessage]([]byte(parcelConfig)).RecoveredBy().
		Action("Close", func(context.Context, *lifecycle.Act[json.RawMessage]) error { return nil }, lifecycle.Transactional())
	engine, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{Log: o.Log}, parcels, stream.Feed(stream.FeedOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	t.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(t.Context())) })
	d.engine, d.API = engine, On(engine, o)
	return d
}

// do sends a request and checks the status.
func (d *observedAPI) do(status int, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	d.t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if w.Code != status {
		d.t.Fatalf("%s %s returned status %d %s, want %d", method, path, w.Code, w.Body, status)
	}
	return w
}

// page reads /metrics.
func (d *observedAPI) page(headers ...string) string {
	d.t.Helper()
	return d.do(200, "GET", "/metrics", "", headers...).Body.String()
}

func (d *observedAPI) wantLines(page string, lines ...string) {
	d.t.Helper()
	for _, want := range lines {
		if !strings.Contains(page, want+"\n") {
			d.t.Errorf("/metrics lacks %q:\n%s", want, holdfastLines(page))
		}
	}
}

func holdfastLines(page string) (own string) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "holdfast_") && !strings.Contains(line, "_bucket") {
			own += line
		}
	}
	return own
}

func (d *observedAPI) claim() string {
	d.t.Helper()
	d.do(201, "POST", "/api/v1/lifecycles/parcel/entities", `{"id":"p1"}`)
	var got wire.Claimed
	w := d.do(201, "POST", "/api/v1/lifecycles/parcel/entities/p1/claims", `{"stepKey":"close","requester":"admin"}`)
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		d.t.Fatal(err)
	}
	return got.Claim.Token
}

func TestRequestsAreCounted(t *testing.T) {
	d := newObservedAPI(t, Options{NoKeys: true, Version: "v1.2.3"})
	token := d.claim()
	d.do(409, "POST", "/api/v1/lifecycles/parcel/entities/p1/claims", `{"stepKey":"close","requester":"admin"}`)
	d.do(404, "POST", "/api/v1/claims/clm_nobody/settle", `{"outcome":"success"}`)
	d.do(200, "POST", "/api/v1/claims/"+token+"/settle", `{"outcome":"success"}`)
	for range 2 {
		d.do(201, "POST", "/api/v1/streams/s/events", `{"events":[{"name":"one"}]}`, "Idempotency-Key", "k")
	}
	for _, path := range []string{"/one", "/two", "/api/v1/three", "/api/v1/claims/" + token} {
		d.do(404, "GET", path, "")
	}
	d.do(405, "BREW", "/api/v1/claims", "")
	page := d.page()
	d.wantLines(page,
		`holdfast_http_requests_total{code="201",method="POST",route="/api/v1/lifecycles/{name}/entities"} 1`,
		`holdfast_http_requests_total{code="409",method="POST",route="/api/v1/lifecycles/{name}/entities/{id}/claims"} 1`,
		`holdfast_http_requests_total{code="200",method="POST",route="/api/v1/claims/{token}/settle"} 1`,
		`holdfast_http_requests_total{code="404",method="POST",route="/api/v1/claims/{token}/settle"} 1`,
		`holdfast_http_requests_total{code="404",method="GET",route="unmatched"} 4`,
		`holdfast_http_requests_total{code="405",method="_OTHER",route="unmatched"} 1`,
		`holdfast_http_request_seconds_count{method="POST",route="/api/v1/claims/{token}/settle"} 2`,
		`holdfast_http_refusals_total{code="CLAIM_FAILED"} 1`, `holdfast_http_refusals_total{code="NOT_FOUND"} 5`,
		`holdfast_http_replays_total 1`, `holdfast_claims_refused_total 1`, `holdfast_http_in_flight 1`, `holdfast_ready 1`)
	for _, want := range []string{"go_goroutines ", `holdfast_build_info{database="SQLite 3.`, `version="v1.2.3"`, "holdfast_schema "} {
		if !strings.Contains(page, want) {
			t.Errorf("/metrics lacks %q", want)
		}
	}
	if strings.Contains(page, token) || strings.Contains(page, "p1") {
		t.Errorf("/metrics reveals names from requests:\n%s", holdfastLines(page))
	}
	d.Stop()
	d.wantLines(d.page(), `holdfast_ready 0`)
}

// TestMetricsWithoutDatabase verifies that /metrics works without a database, and reports it.
func TestMetricsWithoutDatabase(t *testing.T) {
	d := newObservedAPI(t, Options{NoKeys: true})
	if err := d.engine.Close(); err != nil {
		t.Fatal(err)
	}
	d.wantLines(d.page(), `holdfast_ready 0`)
	if w := d.do(200, "HEAD", "/metrics", ""); w.Body.Len() != 0 {
		t.Errorf("HEAD returned body %s", w.Body)
	}
}

func TestMetricsAskForAKey(t *testing.T) {
	d := newObservedAPI(t, Options{Rate: 1})
	d.do(401, "GET", "/metrics", "")
	for _, role := range []keys.Role{keys.Read, keys.Worker, keys.Operate, keys.Admin} {
		_, secret, err := keys.Create(t.Context(), engine.Of(d.engine), keys.CreateArgs{Name: "k", Role: role, By: "test"})
		if err != nil {
			t.Fatal(err)
		}
		page := d.page("Authorization", "Bearer "+secret)
		if role == keys.Read {
			d.wantLines(page, `holdfast_http_requests_total{code="401",method="GET",route="/metrics"} 1`, `holdfast_http_refusals_total{code="AUTH_ERROR"} 1`)
		}
	}
	k, secret, err := keys.Create(t.Context(), engine.Of(d.engine), keys.CreateArgs{Name: "fast", Role: keys.Read, By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for status := 0; status != http.StatusTooManyRequests; {
		d.limits.Take("key:"+k.ID, k.Rate)
		status = ask(d.API, "GET", "/api/v1/lifecycles", "X-Api-Key", secret).Code
	}
	d.wantLines(d.page("X-Api-Key", secret), `holdfast_http_refusals_total{code="RATE_LIMITED"} 1`)
	d.do(401, "GET", "/api/v1/lifecycles", "", "X-Api-Key", "hf_wrong_key")
	if strings.Contains(d.log.String(), secret) {
		t.Error("the log contains a key")
	}
}

// TestMetricsOfAProgram verifies that a program can register the metrics with its own, and that two
// APIs do not conflict.
func TestMetricsOfAProgram(t *testing.T) {
	own := prometheus.NewRegistry()
	d := newObservedAPI(t, Options{NoKeys: true, Metrics: own})
	d.do(200, "GET", "/healthz", "")
	if n, err := testutil.GatherAndCount(own, "holdfast_http_requests_total", "holdfast_ready", "go_goroutines"); err != nil || n != 2 {
		t.Errorf("got %d metrics in the program's registry, want 2: %v", n, err)
	}
	On(d.engine, Options{NoKeys: true, Metrics: own, Log: d.API.log})
	if !strings.Contains(d.log.String(), "failed to register a metric") {
		t.Error("the failed registration of the second API's metrics is not logged")
	}
	if problems, err := testutil.GatherAndLint(d.metrics.Registry); err != nil || len(problems) > 0 {
		t.Errorf("invalid metrics: %v %v", problems, err)
	}
}

// TestAStreamIsCountedAndNotTimed verifies that event streams are counted, but not in the
// durations.
func TestAStreamIsCountedAndNotTimed(t *testing.T) {
	d := newObservedAPI(t, Options{NoKeys: true})
	srv := httptest.NewServer(d)
	defer srv.Close()
	r, _ := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/api/v1/events", nil)
	r.Header.Set("Accept", "text/event-stream")
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	d.wantLines(d.page(), `holdfast_http_in_flight 2`)
	d.Stop()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	srv.Close() // waits for the handler
	page := d.page()
	d.wantLines(page, `holdfast_http_requests_total{code="200",method="GET",route="/api/v1/events"} 1`, `holdfast_http_in_flight 1`)
	if strings.Contains(page, `holdfast_http_request_seconds_count{method="GET",route="/api/v1/events"}`) {
		t.Error("the event stream is in the request duration")
	}
}

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestARequestIsASpan(t *testing.T) {
	d := newObservedAPI(t, Options{NoKeys: true})
	w := d.do(404, "GET", "/api/v1/lifecycles/parcel/entities/p9", "", "Traceparent", traceparent, "X-Holdfast-Workspace", "east", "X-Request-Id", "mine")
	s := d.span()
	want := map[string]string{"http.request.method": "GET", "http.route": "/api/v1/lifecycles/{name}/entities/{id}", "http.response.status_code": "404",
		"holdfast.code": "NOT_FOUND", "holdfast.workspace": "east", "holdfast.request_id": "mine"}
	got := attributes(s)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got span attributes %v, want %v", got, want)
	}
	if s.Name() != "GET /api/v1/lifecycles/{name}/entities/{id}" || s.Parent().SpanID().String() != "b7ad6b7169203331" || s.Status().Code != codes.Unset {
		t.Errorf("got span %s with parent %s, %v", s.Name(), s.Parent().SpanID(), s.Status())
	}
	if !strings.Contains(d.log.String(), "trace=0af7651916cd43dd8448eb211c80319c") {
		t.Errorf("the log lacks the trace id:\n%s", d.log)
	}
	if w.Header().Get("Traceparent") != "" {
		t.Error("the response has a traceparent header")
	}
	d.do(404, "GET", "/somewhere/else", "", "Traceparent", "00-nonsense")
	if s := d.span(); s.Name() != "GET" || s.Parent().IsValid() {
		t.Errorf("got span %q with parent %v", s.Name(), s.Parent())
	}
	ask(d, "GET", "/api/v1/lifecycles", "X-Holdfast-Workspace", "\xff")
	if _, there := attributes(d.span())["holdfast.workspace"]; there {
		t.Error("the span has a workspace that is not UTF-8 and could not be exported")
	}
	if err := d.engine.Close(); err != nil {
		t.Fatal(err)
	}
	d.do(503, "GET", "/api/v1/keys", "")
	if s := d.span(); s.Status().Code != codes.Error || attributes(s)["error.type"] == "" {
		t.Errorf("got status %v, attributes %v for a failed request", s.Status(), attributes(s))
	}
}

// span returns the last ended span.
func (d *observedAPI) span() sdk.ReadOnlySpan {
	d.t.Helper()
	all := d.spans.Ended()
	if len(all) == 0 {
		d.t.Fatal("no span was recorded")
	}
	return all[len(all)-1]
}

func attributes(s sdk.ReadOnlySpan) map[string]string {
	all := make(map[string]string)
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// TestTokensAreNotTold verifies that tokens, which permit to settle a claim, are not logged or
// traced.
func TestTokensAreNotTold(t *testing.T) {
	d := newObservedAPI(t, Options{NoKeys: true})
	token := d.claim()
	d.do(200, "POST", "/api/v1/claims/"+token+"/renew", `{"leaseMs":60000}`)
	d.do(404, "POST", "/api/v1/claims/"+token+"/setle", "")                   // no such path
	d.do(405, "GET", "/api/v1/claims/"+token+"/renew", "")                    // no such method
	d.do(404, "POST", "/claims/"+token+"/renew", "")                          // not below the base
	d.do(404, "POST", "/api/v1/claims/"+token[len("clm_"):]+"/renew", "")     // truncated
	d.do(404, "POST", "/api/v1/Claims/%63lm_"+token[len("clm_"):]+"/bye", "") // escaped
	d.do(404, "GET", "/api/v1/keys/hf_1_"+token[len("clm_"):], "")
	d.do(400, "POST", "/api/v1/claims/"+token+"/settle", `{"secret":"in the body"}`)
	h := d.guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("the inside") }))
	ask(h, "POST", "/api/v1/claims/"+token+"/settle")
	if err := d.engine.Close(); err != nil {
		t.Fatal(err)
	}
	d.do(503, "POST", "/api/v1/claims/"+token+"/renew", `{"leaseMs":60000}`)
	secret := token[len("clm_"):]
	log := d.log.String()
	for _, want := range []string{"request failed", `msg="request handler panicked"`, "path=/api/v1/claims/***/renew", "path=/api/v1/keys/***"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, secret) || strings.Contains(log, "in the body") {
		t.Errorf("the log contains a secret:\n%s", log)
	}
	for _, s := range d.spans.Ended() {
		for name, value := range attributes(s) {
			if strings.Contains(s.Name()+value, secret) {
				t.Errorf("span %s has a secret in attribute %s", s.Name(), name)
			}
		}
	}
	if page := d.page(); strings.Contains(page, secret) {
		t.Errorf("the metrics contain a secret:\n%s", holdfastLines(page))
	}
}

// TestABrokenAnswerIsCounted verifies that a truncated response is counted as such, and that no
// request stays in flight.
func TestABrokenAnswerIsCounted(t *testing.T) {
	d := newObservedAPI(t, Options{NoKeys: true})
	h := d.guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic("the inside")
	}))
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler {
				t.Errorf("recovered %v, want http.ErrAbortHandler", p)
			}
		}()
		ask(h, "GET", "/healthz")
	}()
	d.wantLines(d.page(), `holdfast_http_requests_total{code="cut",method="GET",route="/healthz"} 1`, `holdfast_http_in_flight 1`)
	if s := d.spans.Ended()[0]; s.Status().Code != codes.Error || attributes(s)["error.type"] != "aborted" {
		t.Errorf("got span attributes %v, want error.type aborted", attributes(s))
	}
}

// TestNoProvider verifies that no span is recorded without a provider, and that the caller's trace
// id is still logged.
func TestNoProvider(t *testing.T) {
	api, _, log := newAPI(t)
	w, _ := api.watch(httptest.NewRequest("GET", "/healthz", nil))
	if w.Span.IsRecording() || w.Span.SpanContext().IsValid() {
		t.Error("a span is recorded without a tracer")
	}
	ask(api, "GET", "/healthz", "Traceparent", traceparent)
	if !strings.Contains(log.String(), "trace=0af7651916cd43dd8448eb211c80319c") {
		t.Errorf("the log lacks the trace id:\n%s", log)
	}
}
