// Package observe reports served requests to the log, the metrics and the trace.
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

// Watch collects what is known about a request while it is served. The log, the metrics and the
// span are made from it. None of them contains a path, a header or a body, except the log, which
// has the path without secrets.
type Watch struct {
	method  string // a known HTTP method, or otherMethod
	pattern string // "/api/v1/claims/{token}/settle", or unmatched
	Path    string // for the log
	Span    trace.Span

	Code      fault.Code    // of the refusal, "" for none
	workspace string        // "" until the request is authenticated
	Cut       bool          // the connection was aborted without a complete response
	Waited    time.Duration // for work, as the caller asked
}

const (
	// unmatched is the route of a request that matches no pattern.
	unmatched = "unmatched"
	// otherMethod replaces an unknown method, as OpenTelemetry specifies.
	otherMethod = "_OTHER"
	tracerName  = "github.com/holdfast-go/holdfast/httpapi"
)

// Begin starts to watch a request that matches a pattern, and starts its span.
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

// Refused records the error of a refused request.
func (w *Watch) Refused(err error) { w.Code = fault.CodeOf(err) }

// InWorkspace records the workspace of a request. On a server without keys the caller chooses it,
// and exporters accept only UTF-8.
func (w *Watch) InWorkspace(name string) {
	if len(name) <= maxWorkspaceShown && utf8.ValidString(name) {
		w.workspace = name
	}
}

const maxWorkspaceShown = 256

// End ends the span and records the response in it. As OpenTelemetry specifies, a refused request
// is not an error of the server.
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

// Log returns the attributes of the log line of a request.
func (w *Watch) Log(id string, seen *Recorder, took time.Duration) []slog.Attr {
	attrs := []slog.Attr{slog.String("method", w.method), slog.String("path", w.Path), slog.Int("status", seen.Status),
		slog.Int64("bytes", seen.bytes), slog.Duration("took", took), slog.String("request", id)}
	if w.Code != "" {
		attrs = append(attrs, slog.String("code", string(w.Code)))
	}
	if w.Cut {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	if s := w.Span.SpanContext(); s.HasTraceID() {
		attrs = append(attrs, slog.String("trace", s.TraceID().String()))
	}
	return attrs
}

// Safe returns a copy of the request that may be logged: its path has no secrets.
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

// knownMethod keeps arbitrary methods out of labels.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return m
	}
	return otherMethod
}

// secretPart matches claim tokens, API keys, webhook secrets and task ids, which are signed.
var secretPart = regexp.MustCompile(`(clm|hf|whsec|tsk|rct|bit|stp)_`)

// hidden replaces a secret in the log.
const hidden = "***"

// withoutSecrets returns a path for the log. A part that follows claims/ or tasks/ is a token,
// whatever it looks like, even if the rest of the path is wrong.
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

// TracerOf returns the tracer of a provider, or of the global one for nil. Without any provider,
// spans are not recorded.
func TracerOf(p trace.TracerProvider, version string) trace.Tracer {
	if p == nil {
		p = otel.GetTracerProvider()
	}
	return p.Tracer(tracerName, trace.WithInstrumentationVersion(version))
}

// Recorder records the status and size of a response.
type Recorder struct {
	http.ResponseWriter
	Status int
	bytes  int64
}

// WriteHeader implements [http.ResponseWriter].
func (r *Recorder) WriteHeader(status int) {
	if r.Status == 0 && status >= http.StatusOK { // 1xx responses precede the final one
		r.Status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (r *Recorder) Write(p []byte) (int, error) {
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap supports [http.ResponseController].
func (r *Recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
