package telemetry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clean unsets variables that the machine may have set.
func clean(t *testing.T) {
	t.Helper()
	for _, name := range []string{"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_TRACES_SAMPLER", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"} {
		t.Setenv(name, "")
	}
	for _, name := range []string{"ENDPOINT", "PROTOCOL", "HEADERS", "TIMEOUT", "COMPRESSION", "CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
		t.Setenv("OTEL_EXPORTER_OTLP_"+name, "")
		t.Setenv("OTEL_EXPORTER_OTLP_TRACES_"+name, "")
	}
}

func TestNothingIsSentUnlessItIsAskedFor(t *testing.T) {
	for name, value := range map[string]string{"": "", "OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "none"} {
		clean(t)
		if name != "" {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv(name, value)
		}
		traces, err := Start(t.Context(), "v1", slog.Default())
		if err != nil {
			t.Fatal(err)
		}
		if _, span := traces.Provider.Tracer("x").Start(t.Context(), "x"); span.IsRecording() || traces.Endpoint != "" {
			t.Errorf("with %s=%s a span is recorded for %q", name, value, traces.Endpoint)
		}
		if err := traces.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestSpansAreSentAtTheLatestByStop(t *testing.T) {
	clean(t)
	var mu sync.Mutex
	var got []byte
	var path string
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got, path = append(got, body...), r.URL.Path
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_SERVICE_NAME", "the shop")
	traces, err := Start(t.Context(), "v1.2.3", slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	_, span := traces.Provider.Tracer("x").Start(t.Context(), "GET /somewhere")
	span.End()
	for range 2 {
		if err := traces.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"GET /somewhere", "the shop", "v1.2.3"} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("exported data has no %q: %q", want, got)
		}
	}
	if path != "/v1/traces" {
		t.Errorf("exported to path %q", path)
	}
}

// Verifies that an unreachable collector only loses spans and logs a line.
func TestLostSpansAreLogged(t *testing.T) {
	clean(t)
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	defer away.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", away.URL)
	var text bytes.Buffer
	traces, err := Start(t.Context(), "v1", slog.New(slog.NewTextHandler(&text, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, span := traces.Provider.Tracer("x").Start(t.Context(), "x")
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_ = traces.Stop(ctx)
	if !strings.Contains(text.String(), "failed to export spans") {
		t.Errorf("the log is %q", text.String())
	}
}

func TestAProtocolThatIsNotSpokenIsRefused(t *testing.T) {
	clean(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if _, err := Start(t.Context(), "v1", slog.Default()); fault.CodeOf(err) != fault.Validation {
		t.Errorf("got error %v, want a validation error", err)
	}
}
