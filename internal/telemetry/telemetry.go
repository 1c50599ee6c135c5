// Package telemetry sends the spans of a server to a collector, over OTLP.
//
// It is set up by the variables that OpenTelemetry names: OTEL_EXPORTER_OTLP_ENDPOINT
// says where to, and without it nothing is sent. OTEL_EXPORTER_OTLP_HEADERS,
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and their like mean
// what they mean everywhere. A library has no business here: a program that embeds
// Holdfast hands its own provider to the door.
package telemetry

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast/fault"
)

// Traces is where a server's spans go.
type Traces struct {
	// Provider is for the door; it is never nil.
	Provider trace.TracerProvider
	// Endpoint is where spans are sent to; "" for nowhere.
	Endpoint string

	stop func(context.Context) error
}

// Start sets up the sending of spans, where the environment asks for it. It sends
// nothing yet, so it fails only for settings that cannot be used. The errors of later
// go to the log: that spans are lost stops nobody.
func Start(ctx context.Context, version string, log *slog.Logger) (*Traces, error) {
	none := &Traces{Provider: noop.NewTracerProvider(), stop: func(context.Context) error { return nil }}
	endpoint := firstOf("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return none, nil
	}
	if p := firstOf("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); p != "" && p != "http/protobuf" {
		return nil, fault.New(fault.Validation, "spans are sent as http/protobuf, and OTEL_EXPORTER_OTLP_PROTOCOL says %q: unset it, and name the collector's HTTP port (4318)", p)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "holdfast"), attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fault.New(fault.Validation, "OTEL_RESOURCE_ATTRIBUTES cannot be read").Wrap(err)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fault.New(fault.Validation, "the exporter of spans cannot be set up: look at OTEL_EXPORTER_OTLP_ENDPOINT").Wrap(err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("spans were lost", "error", err) }))
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	return &Traces{Provider: provider, Endpoint: endpoint, stop: provider.Shutdown}, nil
}

// Stop sends what is left, for as long as ctx lasts, and ends the sending. It is called
// after the last request; calling it twice is harmless.
func (t *Traces) Stop(ctx context.Context) error { return t.stop(ctx) }

// firstOf returns the first of the variables that is set.
func firstOf(names ...string) string {
	for _, name := range names {
		if value := strings.TrimSpace(os.Getenv(name)); value != "" {
			return value
		}
	}
	return ""
}
