// Package telemetry sends the spans of a server to a collector over OTLP.
//
// It is configured by OpenTelemetry's standard variables: OTEL_EXPORTER_OTLP_ENDPOINT sets the collector, and
// without it nothing is sent. OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
// OTEL_TRACES_SAMPLER and others have their standard meaning. A program that embeds Holdfast does not use this
// package: it passes its own provider to the HTTP API.
package telemetry

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast/fault"
)

// Traces is the destination of a server's spans.
type Traces struct {
	// Provider is for the HTTP API; it is never nil.
	Provider trace.TracerProvider
	// Endpoint is the address that spans are sent to, or "".
	Endpoint string

	stop func(context.Context) error
}

// Start sets up the export of spans if the environment requests it. It sends nothing yet, so it fails only for
// invalid settings. Later errors are logged: lost spans must not stop the server.
func Start(ctx context.Context, version string, log *slog.Logger) (*Traces, error) {
	none := &Traces{Provider: noop.NewTracerProvider(), stop: func(context.Context) error { return nil }}
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return none, nil
	}
	to, err := readSettings()
	if err != nil {
		return nil, err
	}
	if to == nil {
		return none, nil
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "holdfast"), attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fault.New(fault.Validation, "OTEL_RESOURCE_ATTRIBUTES is invalid: use key=value pairs separated by commas").Wrap(err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("failed to export spans", "error", err) }))
	exporter := newExporter(*to)
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	stop := func(ctx context.Context) error {
		exporter.end()
		return provider.Shutdown(ctx)
	}
	return &Traces{Provider: provider, Endpoint: to.endpoint.Redacted(), stop: stop}, nil
}

// Stop sends the remaining spans, until ctx ends, and stops the export. It is called after the last request;
// calling it twice is harmless.
func (t *Traces) Stop(ctx context.Context) error { return t.stop(ctx) }
