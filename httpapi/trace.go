package httpapi

import (
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
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
)

// watch is what is known of a request while it is answered. The log, the metrics and
// the span are made from it; none of them sees a path, a header or a body, but for the
// log, which has the path without what is secret in it.
type watch struct {
	method  string // one that HTTP knows, or otherMethod
	pattern string // "/api/v1/claims/{token}/settle", or unmatched
	path    string // for the log
	span    trace.Span

	// What the table of routes says: exactly one of target and nothing is set for a
	// path below base.
	target  *route
	values  map[string]string
	nothing error

	code      fault.Code // of the refusal, "" for none
	workspace string     // "" until it is known who asks
	cut       bool       // the connection was broken instead of answered
}

const (
	// unmatched is the route of a request that matches none.
	unmatched = "unmatched"
	// otherMethod is the method of a request that HTTP does not know, as
	// OpenTelemetry writes it.
	otherMethod = "_OTHER"
	tracerName  = "github.com/holdfast-go/holdfast/httpapi"
)

type watchKey struct{}

// watchOf returns the watch of a request, an unused one if there is none.
func watchOf(ctx context.Context) *watch {
	if w, ok := ctx.Value(watchKey{}).(*watch); ok {
		return w
	}
	return new(watch)
}

// watch begins to watch a request: it finds its route, and begins its span.
func (a *API) watch(r *http.Request) (*watch, *http.Request) {
	w := &watch{method: knownMethod(r.Method), pattern: unmatched, path: withoutSecrets(r.URL.EscapedPath())}
	if _, plain := a.routes[r.URL.Path]; plain {
		w.pattern = r.URL.Path
	} else if strings.HasPrefix(r.URL.Path, table.Base) {
		if w.target, w.values, w.nothing = a.table.Find(r); w.target != nil {
			w.pattern = table.Base + w.target.Path
		}
	}
	ctx := context.WithValue(r.Context(), watchKey{}, w)
	if r.Header.Get("Traceparent") != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	ctx, w.span = a.tracer.Start(ctx, w.name(), trace.WithSpanKind(trace.SpanKindServer))
	return w, r.WithContext(ctx)
}

func (w *watch) name() string {
	if w.pattern == unmatched {
		return w.method
	}
	return w.method + " " + w.pattern
}

// refused notes why a request is refused.
func (w *watch) refused(err error) { w.code = fault.CodeOf(err) }

// inWorkspace notes where a request is. Where no keys are asked for the caller says
// it, and an exporter takes nothing that is not UTF-8.
func (w *watch) inWorkspace(name string) {
	if len(name) <= maxWorkspaceShown && utf8.ValidString(name) {
		w.workspace = name
	}
}

const maxWorkspaceShown = 256

// end ends the span, and tells in it what was answered. As OpenTelemetry has it, a
// refusal is the caller's and no error of the server.
func (w *watch) end(id string, seen *recorder) {
	defer w.span.End()
	if !w.span.IsRecording() {
		return
	}
	w.span.SetAttributes(attribute.String("http.request.method", w.method), attribute.Int("http.response.status_code", seen.status),
		attribute.String("holdfast.request_id", id))
	for name, value := range map[string]string{"http.route": w.route(), "holdfast.workspace": w.workspace, "holdfast.code": string(w.code)} {
		if value != "" {
			w.span.SetAttributes(attribute.String(name, value))
		}
	}
	if seen.status >= http.StatusInternalServerError || w.cut {
		w.span.SetAttributes(attribute.String("error.type", w.errorType(seen)))
		w.span.SetStatus(codes.Error, "")
	}
}

func (w *watch) route() string {
	if w.pattern == unmatched {
		return ""
	}
	return w.pattern
}

func (w *watch) errorType(seen *recorder) string {
	switch {
	case w.cut:
		return "aborted"
	case w.code != "":
		return string(w.code)
	}
	return http.StatusText(seen.status)
}

// log is the line of a request.
func (w *watch) log(id string, seen *recorder, took time.Duration) []slog.Attr {
	attrs := []slog.Attr{slog.String("method", w.method), slog.String("path", w.path), slog.Int("status", seen.status),
		slog.Int64("bytes", seen.bytes), slog.Duration("took", took), slog.String("requestId", id)}
	if w.code != "" {
		attrs = append(attrs, slog.String("code", string(w.code)))
	}
	if w.cut {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	if s := w.span.SpanContext(); s.HasTraceID() {
		attrs = append(attrs, slog.String("traceId", s.TraceID().String()))
	}
	return attrs
}

// safe returns a request that may be told of: it has the path without what is secret.
func (w *watch) safe(r *http.Request) *http.Request {
	if w.path == "" || w.path == r.URL.Path {
		return r
	}
	shown := *r
	address := *r.URL
	address.Path, address.RawPath = w.path, ""
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

// tracerOf returns the tracer of a provider, the program's own for nil. Where that is
// none either, a span is not recorded.
func tracerOf(p trace.TracerProvider, version string) trace.Tracer {
	if p == nil {
		p = otel.GetTracerProvider()
	}
	return p.Tracer(tracerName, trace.WithInstrumentationVersion(version))
}
