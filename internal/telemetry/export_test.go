package telemetry

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/fault"
)

func text(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
}

func array(values ...*common.AnyValue) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: values}}}
}

// everyAttribute has an attribute of each type, and what the schema has for it.
var (
	everyAttribute = []attribute.KeyValue{
		attribute.String("text", "ünïcödé"), attribute.String("empty", ""), attribute.Bool("yes", true), attribute.Bool("no", false),
		attribute.Int64("less", -7), attribute.Int64("none", 0), attribute.Float64("half", 0.5), attribute.StringSlice("texts", []string{"a", ""}),
		attribute.BoolSlice("bools", []bool{false, true}), attribute.Int64Slice("numbers", []int64{0, -1}), attribute.Float64Slice("floats", []float64{0, 1.5}),
	}
	everyValue = []*common.KeyValue{
		{Key: "text", Value: text("ünïcödé")},
		{Key: "empty", Value: text("")},
		{Key: "yes", Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}}},
		{Key: "no", Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{}}},
		{Key: "less", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: -7}}},
		{Key: "none", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{}}},
		{Key: "half", Value: &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: 0.5}}},
		{Key: "texts", Value: array(text("a"), text(""))},
		{Key: "bools", Value: array(&common.AnyValue{Value: &common.AnyValue_BoolValue{}}, &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}})},
		{Key: "numbers", Value: array(&common.AnyValue{Value: &common.AnyValue_IntValue{}}, &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: -1}})},
		{Key: "floats", Value: array(&common.AnyValue{Value: &common.AnyValue_DoubleValue{}}, &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: 1.5}})},
	}
)

// Verifies the encoding against the published schema: every field that a span can have.
func TestSpansHaveThePublishedSchema(t *testing.T) {
	state, err := trace.ParseTraceState("vendor=x")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1700000000, 123456789)
	traceID, spanID, parentID := trace.TraceID{1, 2, 3, 15: 9}, trace.SpanID{4, 5, 7: 8}, trace.SpanID{6}
	context := trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled, TraceState: state})
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: parentID, Remote: true})
	shop := resource.NewWithAttributes("https://schema/1", attribute.String("service.name", "the shop"))
	other := resource.NewSchemaless(attribute.String("service.name", "another"))
	scope := instrumentation.Scope{Name: "api", Version: "v1", SchemaURL: "https://schema/2", Attributes: attribute.NewSet(attribute.Bool("yes", true))}
	spans := tracetest.SpanStubs{
		{
			Name: "GET /somewhere", SpanContext: context, Parent: parent, SpanKind: trace.SpanKindServer, StartTime: at, EndTime: at.Add(time.Second),
			Attributes: everyAttribute, DroppedAttributes: 1, DroppedEvents: 2, DroppedLinks: 3,
			Events:   []sdk.Event{{Name: "e", Time: at, Attributes: everyAttribute[:1], DroppedAttributeCount: 4}},
			Links:    []sdk.Link{{SpanContext: parent, Attributes: everyAttribute[:1], DroppedAttributeCount: 5}},
			Status:   sdk.Status{Code: codes.Error, Description: "failed"},
			Resource: shop, InstrumentationScope: scope,
		},
		{Name: "elsewhere", SpanContext: context, StartTime: at, EndTime: at, Status: sdk.Status{Code: codes.Ok}, Resource: other, InstrumentationScope: scope},
		{Name: "in another scope", SpanContext: context, StartTime: at, EndTime: at, SpanKind: trace.SpanKindConsumer, Resource: shop},
		{Name: "in the first scope", SpanContext: context, StartTime: at, EndTime: at, SpanKind: trace.SpanKindInternal, Resource: shop, InstrumentationScope: scope},
	}.Snapshots()
	nano := uint64(at.UnixNano())
	plain := func(name string, kind traces.Span_SpanKind, code traces.Status_StatusCode) *traces.Span {
		return &traces.Span{TraceId: traceID[:], SpanId: spanID[:], TraceState: "vendor=x", Name: name, Kind: kind, StartTimeUnixNano: nano, EndTimeUnixNano: nano, Status: &traces.Status{Code: code}, Flags: 0x101}
	}
	encodedScope := &common.InstrumentationScope{Name: "api", Version: "v1", Attributes: everyValue[2:3]}
	want := &traces.TracesData{ResourceSpans: []*traces.ResourceSpans{
		{
			Resource: &resources.Resource{Attributes: []*common.KeyValue{{Key: "service.name", Value: text("the shop")}}}, SchemaUrl: "https://schema/1",
			ScopeSpans: []*traces.ScopeSpans{
				{Scope: encodedScope, SchemaUrl: "https://schema/2", Spans: []*traces.Span{
					{
						TraceId: traceID[:], SpanId: spanID[:], ParentSpanId: parentID[:], TraceState: "vendor=x", Flags: 0x301,
						Name: "GET /somewhere", Kind: traces.Span_SPAN_KIND_SERVER, StartTimeUnixNano: nano, EndTimeUnixNano: nano + 1e9,
						Attributes: everyValue, DroppedAttributesCount: 1, DroppedEventsCount: 2, DroppedLinksCount: 3,
						Events: []*traces.Span_Event{{Name: "e", TimeUnixNano: nano, Attributes: everyValue[:1], DroppedAttributesCount: 4}},
						Links:  []*traces.Span_Link{{TraceId: traceID[:], SpanId: parentID[:], Attributes: everyValue[:1], DroppedAttributesCount: 5, Flags: 0x300}},
						Status: &traces.Status{Code: traces.Status_STATUS_CODE_ERROR, Message: "failed"},
					},
					plain("in the first scope", traces.Span_SPAN_KIND_INTERNAL, traces.Status_STATUS_CODE_UNSET),
				}},
				{Scope: &common.InstrumentationScope{}, Spans: []*traces.Span{plain("in another scope", traces.Span_SPAN_KIND_CONSUMER, traces.Status_STATUS_CODE_UNSET)}},
			},
		},
		{
			Resource:   &resources.Resource{Attributes: []*common.KeyValue{{Key: "service.name", Value: text("another")}}},
			ScopeSpans: []*traces.ScopeSpans{{Scope: encodedScope, SchemaUrl: "https://schema/2", Spans: []*traces.Span{plain("elsewhere", 0, traces.Status_STATUS_CODE_OK)}}},
		},
	}}
	got := new(traces.TracesData)
	if err := proto.Unmarshal(encode(spans), got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// collector is a collector that records requests and answers with the next of the given functions; the last one repeats.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	answers []http.HandlerFunc
	bodies  []string
	last    http.Header
	path    string
}

func collect(t *testing.T, answers ...http.HandlerFunc) *collector {
	t.Helper()
	c := &collector{answers: answers}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies, c.last, c.path = append(c.bodies, string(body)), r.Header, r.URL.Path
	if len(c.answers) > 0 {
		c.answers[0](w, r)
		if len(c.answers) > 1 {
			c.answers = c.answers[1:]
		}
	}
}

func (c *collector) seen() (bodies []string, last http.Header, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bodies, c.last, c.path
}

func answer(status int, header, value, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(header, value)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// opened returns an exporter with the settings of the environment.
func opened(t *testing.T) *exporter {
	t.Helper()
	s, err := readSettings()
	if err != nil || s == nil {
		t.Fatal(err)
	}
	e := newExporter(*s)
	t.Cleanup(func() { _ = e.Shutdown(context.Background()) })
	return e
}

var oneSpan = tracetest.SpanStubs{{Name: "GET /somewhere"}}.Snapshots()

func TestHeadersAndCompression(t *testing.T) {
	clean(t)
	c := collect(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.URL+"/own/path")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x%3D%2C, x-team = shop ")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	if err := opened(t).ExportSpans(t.Context(), oneSpan); err != nil {
		t.Fatal(err)
	}
	bodies, last, path := c.seen()
	if path != "/own/path" || last.Get("Authorization") != "Bearer x=," || last.Get("X-Team") != "shop" || last.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("got a request to %s with %v", path, last)
	}
	r, err := gzip.NewReader(strings.NewReader(bodies[0]))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(r); err != nil || string(body) != string(encode(oneSpan)) {
		t.Errorf("got %q, %v", body, err)
	}
}

// A collector that is busy gets the same batch again; any other refusal loses it.
func TestABusyCollectorIsAskedAgain(t *testing.T) {
	retryFirst = time.Millisecond
	defer func() { retryFirst = time.Second }()
	for status, attempts := range map[int]int{429: 3, 502: 3, 503: 3, 504: 3, 500: 1, 400: 1, 401: 1, 307: 1} {
		clean(t)
		c := collect(t, answer(status, "Retry-After", "0", "no"), answer(status, "Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", "no"), answer(200, "X", "", ""))
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/")
		err := opened(t).ExportSpans(t.Context(), oneSpan)
		bodies, _, path := c.seen()
		if len(bodies) != attempts || bodies[0] != bodies[len(bodies)-1] || path != "/v1/traces" || (err == nil) != (attempts == 3) {
			t.Errorf("%d: %d attempts at %s: %v", status, len(bodies), path, err)
		}
	}
}

// Shutdown, and the end of the context, interrupt a pause.
func TestAPauseIsInterrupted(t *testing.T) {
	clean(t)
	asked := make(chan struct{}, 1)
	c := collect(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusServiceUnavailable)
		asked <- struct{}{}
	})
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	for name, interrupt := range map[string]func(*exporter, context.CancelFunc){
		"shutdown": func(e *exporter, _ context.CancelFunc) { _ = e.Shutdown(context.Background()) },
		"the end":  func(e *exporter, _ context.CancelFunc) { e.end() },
		"context":  func(_ *exporter, cancel context.CancelFunc) { cancel() },
	} {
		e := opened(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-asked
			interrupt(e, cancel)
		}()
		if err := e.ExportSpans(ctx, oneSpan); err == nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

// A pause that ends after the export would is not begun.
func TestAPauseThatIsTooLong(t *testing.T) {
	clean(t)
	c := collect(t, answer(503, "Retry-After", "3600", "no"))
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	begun := time.Now()
	err := opened(t).ExportSpans(t.Context(), oneSpan)
	if took := time.Since(begun); err == nil || took > 30*time.Second {
		t.Errorf("returned after %s: %v", took, err)
	}
}

// An attempt that takes too long is repeated.
func TestATimeoutIsRepeated(t *testing.T) {
	retryFirst = time.Millisecond
	defer func() { retryFirst = time.Second }()
	clean(t)
	release := make(chan struct{})
	var requests atomic.Int64
	c := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if requests.Add(1) == 1 {
			<-release
		}
	}))
	defer c.Close()
	defer close(release)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "500")
	if err := opened(t).ExportSpans(t.Context(), oneSpan); err != nil {
		t.Error(err)
	}
}

// A redirect is an error: the headers may contain a secret, and spans would be lost.
func TestRedirectsOfACollector(t *testing.T) {
	for _, status := range []int{301, 302, 307} {
		clean(t)
		c := collect(t, answer(status, "Location", "/elsewhere", ""), answer(200, "X", "", ""))
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
		err := opened(t).ExportSpans(t.Context(), oneSpan)
		if bodies, _, path := c.seen(); err == nil || len(bodies) != 1 || path != "/v1/traces" {
			t.Errorf("%d: %d requests, the last to %s: %v", status, len(bodies), path, err)
		}
	}
}

// Certificates with a collector that is called without TLS, and headers that HTTP cannot have, are refused.
func TestSettingsThatContradict(t *testing.T) {
	for name, value := range map[string]string{"CERTIFICATE": "ca.pem", "HEADERS": "a%28b=x", "TRACES_HEADERS": "a=%00x"} {
		clean(t)
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
		t.Setenv("OTEL_EXPORTER_OTLP_"+name, value)
		if _, err := readSettings(); fault.CodeOf(err) != fault.Validation || name == "CERTIFICATE" && !strings.Contains(err.Error(), "https://") {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

// Spans that the collector rejects although it accepts the request are reported.
func TestRejectedSpansAreReported(t *testing.T) {
	for body, want := range map[string]string{
		"":                                     "",
		"\x0a\x00":                             "",
		"\x0a\x0a\x08\x02\x12\x06no way":       "rejected 2 spans: no way",
		"\x0a\x08\x12\x06no way":               "rejected 0 spans: no way",
		"\x15\x01\x02\x03\x04\x0a\x02\x08\x03": "rejected 3 spans",
		"\x0a\xff":                             "",
		"\xff\xff\xff":                         "",
	} {
		clean(t)
		c := collect(t, answer(200, "Content-Type", "application/x-protobuf", body))
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
		err := opened(t).ExportSpans(t.Context(), oneSpan)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", body, err, want)
		}
	}
}

// The collector's certificate is checked with the certificates of the settings.
func TestTheCertificateOfTheCollector(t *testing.T) {
	clean(t)
	c := &collector{}
	c.Server = httptest.NewTLSServer(c)
	defer c.Close()
	c.Config.ErrorLog = nil
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	if err := opened(t).ExportSpans(t.Context(), oneSpan); err == nil {
		t.Error("an unknown certificate was accepted")
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", file)
	if err := opened(t).ExportSpans(t.Context(), oneSpan); err != nil {
		t.Error(err)
	}
}

// Settings that cannot be used are refused by name, and their values are not quoted.
func TestInvalidSettings(t *testing.T) {
	for name, value := range map[string]string{
		"ENDPOINT": "127.0.0.1:4318", "TRACES_ENDPOINT": "ftp://hunter2", "HEADERS": "hunter2", "TRACES_HEADERS": "a=%zz", "TIMEOUT": "10s",
		"COMPRESSION": "zstd", "CERTIFICATE": "missing.pem", "CLIENT_CERTIFICATE": "missing.pem", "PROTOCOL": "grpc", "TRACES_PROTOCOL": "http/json",
	} {
		clean(t)
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
		t.Setenv("OTEL_EXPORTER_OTLP_"+name, value)
		_, err := Start(t.Context(), "v1", nil)
		if fault.CodeOf(err) != fault.Validation || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}
