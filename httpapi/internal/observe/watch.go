// Package observe tells the log, the metrics and the trace of requests that are answered.
package observe

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/fault"
)

// Watch is what is known of a request while it is answered. The log, the metrics and
// the span are made from it; none of them sees a path, a header or a body, but for the
// log, which has the path without what is secret in it.
type Watch struct {
	method  string // one that HTTP knows, or otherMethod
	pattern string // "/api/v1/claims/{token}/settle", or unmatched
	Path    string // for the log
	Span    trace.Span

	Code      fault.Code // of the refusal, "" for none
	workspace string     // "" until it is known who asks
	Cut       bool       // the connection was broken instead of answered
}

const (
	// unmatched is the route of a request that matches none.
	unmatched = "unmatched"
	// otherMethod is the method of a request that HTTP does not know, as
	// OpenTelemetry writes it.
	otherMethod = "_OTHER"
	tracerName  = "github.com/holdfast-go/holdfast/httpapi"
)

// Begin begins to watch a request that matches a pattern, and begins its span.
func Begin(tracer trace.Tracer, r *http.Request, pattern string) (*Watch, context.Context) {
	w := &Watch{method: knownMethod(r.Method), pattern: cmp.Or(pattern, unmatched), Path: withoutSecrets(r.URL.EscapedPath())}
	ctx := r.Context()
	if r.Header.Get("Traceparent") != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	ctx, w.Span = tracer.Start(ctx, w.name(), trace.WithSpanKind(trace.SpanKindServer))
	return w, ctx
}

func (w *Watch) name() string {
	if w.pattern == unmatched {
		return w.method
	}
	return w.method + " " + w.pattern
}

// Refused notes why a request is refused.
func (w *Watch) Refused(err error) { w.Code = fault.CodeOf(err) }

// InWorkspace notes where a request is. Where no keys are asked for the caller says
// it, and an exporter takes nothing that is not UTF-8.
func (w *Watch) InWorkspace(name string) {
	if len(name) <= maxWorkspaceShown && utf8.ValidString(name) {
		w.workspace = name
	}
}

const maxWorkspaceShown = 256

// End ends the span, and tells in it what was answered. As OpenTelemetry has it, a
// refusal is the caller's and no error of the server.
func (w *Watch) End(id string, seen *Recorder) {
	defer w.Span.End()
	if !w.Span.IsRecording() {
		return
	}
	w.Span.SetAttributes(attribute.String("http.request.method", w.method), attribute.Int("http.response.status_code", seen.Status),
		attribute.String("holdfast.request_id", id))
	for name, value := range map[string]string{"http.route": w.route(), "holdfast.workspace": w.workspace, "holdfast.code": string(w.Code)} {
		if value != "" {
			w.Span.SetAttributes(attribute.String(name, value))
		}
	}
	if seen.Status >= http.StatusInternalServerError || w.Cut {
		w.Span.SetAttributes(attribute.String("error.type", w.errorType(seen)))
		w.Span.SetStatus(codes.Error, "")
	}
}

func (w *Watch) route() string {
	if w.pattern == unmatched {
		return ""
	}
	return w.pattern
}

func (w *Watch) errorType(seen *Recorder) string {
	switch {
	case w.Cut:
		return "aborted"
	case w.Code != "":
		return string(w.Code)
	}
	return http.StatusText(seen.Status)
}

// Log is the line of a request.
func (w *Watch) Log(id string, seen *Recorder, took time.Duration) []slog.Attr {
	attrs := []slog.Attr{slog.String("method", w.method), slog.String("path", w.Path), slog.Int("status", seen.Status),
		slog.Int64("bytes", seen.bytes), slog.Duration("took", took), slog.String("requestId", id)}
	if w.Code != "" {
		attrs = append(attrs, slog.String("code", string(w.Code)))
	}
	if w.Cut {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	if s := w.Span.SpanContext(); s.HasTraceID() {
		attrs = append(attrs, slog.String("traceId", s.TraceID().String()))
	}
	return attrs
}

// Safe returns a request that may be told of: it has the path without what is secret.
func (w *Watch) Safe(r *http.Request) *http.Request {
	if w.Path == "" || w.Path == r.URL.Path {
		return r
	}
	shown := *r
	address := *r.URL
	address.Path, address.RawPath = w.Path, ""
	shown.URL = &address
	return &shown
}

// knownMethod keeps what callers make up out of labels.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return m
	}
	return otherMethod
}

// secretPart is what begins as a claim's token, an API key, a secret of a webhook or the id of a task, which is signed.
var secretPart = regexp.MustCompile(`(clm|hf|whsec|tsk|rct|bit|stp)_`)

// hidden stands in the log for what is secret.
const hidden = "***"

// withoutSecrets returns a path as it may be logged: what follows claims/ or tasks/ is a token,
// whatever it looks like, also where the rest of the path is wrong.
func withoutSecrets(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if p != "" && i > 0 && (strings.EqualFold(parts[i-1], "claims") || strings.EqualFold(parts[i-1], "tasks") && p != "claim") {
			parts[i] = hidden
		} else if plain, err := url.PathUnescape(p); err != nil || secretPart.MatchString(plain) {
			parts[i] = hidden
		}
	}
	return strings.Join(parts, "/")
}

// TracerOf returns the tracer of a provider, the program's own for nil. Where that is
// none either, a span is not recorded.
func TracerOf(p trace.TracerProvider, version string) trace.Tracer {
	if p == nil {
		p = otel.GetTracerProvider()
	}
	return p.Tracer(tracerName, trace.WithInstrumentationVersion(version))
}

// Recorder remembers what was answered.
type Recorder struct {
	http.ResponseWriter
	Status int
	bytes  int64
}

func (r *Recorder) WriteHeader(status int) {
	if r.Status == 0 && status >= http.StatusOK { // the 1xx come before the answer
		r.Status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *Recorder) Write(p []byte) (int, error) {
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap is for [http.ResponseController].
func (r *Recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
