package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// exporter sends spans to a collector over OTLP (HTTP, protobuf). The SDK calls ExportSpans for one batch at a time, and
// limits its time.
type exporter struct {
	settings settings
	client   *http.Client
	// stopped ends when the exporter is shut down, which interrupts a pause between attempts.
	stopped context.Context
	stop    context.CancelFunc
	// ending ends when the server stops: an export pauses no more, so that the remaining spans are sent.
	ending context.Context
	end    context.CancelFunc
}

var _ sdk.SpanExporter = (*exporter)(nil)

// maxRetry is how long a batch is retried at most. The SDK ends an export before, after 30 s by default.
const maxRetry = time.Minute

// retryFirst is the pause after the first failed attempt; it doubles. Tests shorten it.
var retryFirst = time.Second

const (
	retryLongest = 30 * time.Second
	maxResponse  = 4 << 20
)

func newExporter(s settings) *exporter {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = s.tls
	e := &exporter{settings: s, client: &http.Client{
		Transport: transport, Timeout: s.timeout,
		// A redirect would turn the request into a GET without spans, or send the headers elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	e.stopped, e.stop = context.WithCancel(context.Background())
	e.ending, e.end = context.WithCancel(context.Background())
	return e
}

// ExportSpans sends a batch of spans, and retries while the collector is busy.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	body := encode(spans)
	if e.settings.gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(body)
		if err := errors.Join(err, w.Close()); err != nil {
			return err
		}
		body = b.Bytes()
	}
	ctx, cancel := context.WithTimeout(ctx, maxRetry)
	defer cancel()
	defer context.AfterFunc(e.stopped, cancel)()
	pausing, wake := context.WithCancel(ctx)
	defer wake()
	defer context.AfterFunc(e.ending, wake)()
	for n := int64(1); ; n++ {
		pause, err := e.send(ctx, body)
		if err == nil || pause < 0 || ctx.Err() != nil {
			return err
		}
		pause = max(pause, clock.Backoff(retryFirst, 2, retryLongest, n))
		if end, ok := ctx.Deadline(); ok && end.Sub(clock.OfMachine()) < pause {
			return err // the next attempt would be too late
		}
		if clock.Wait(pausing, pause) != nil {
			return err
		}
	}
}

// never is the pause after a failure that another attempt would not resolve.
const never = -1

// send sends a request once. If it fails, send returns the shortest pause before another attempt, or never.
func (e *exporter) send(ctx context.Context, body []byte) (pause time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.settings.endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return never, err
	}
	r.Header.Set("User-Agent", "holdfast")
	for name, value := range e.settings.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if e.settings.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	got, err := e.client.Do(r)
	if err != nil {
		return pauseAfter(err), err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(io.LimitReader(got.Body, maxResponse))
	if err != nil {
		return pauseAfter(err), err
	}
	switch got.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryAfter(got.Header), refused(got, text)
	}
	if got.StatusCode/100 != 2 {
		return never, refused(got, text)
	}
	if got.Header.Get("Content-Type") == "application/x-protobuf" {
		if n, reason := rejection(text); n != 0 || reason != "" {
			return never, fmt.Errorf("the collector rejected %d spans: %s", n, reason)
		}
	}
	return 0, nil
}

// pauseAfter returns the pause after an error of the network: none after a timeout or another temporary one. A collector that
// is down is not asked again.
func pauseAfter(err error) time.Duration {
	var of interface{ Timeout() bool }
	if errors.As(err, &of) && of.Timeout() {
		return 0
	}
	if of, ok := errors.AsType[*url.Error](err); ok && of.Temporary() {
		return 0
	}
	return never
}

// refused returns the error of a response, with the beginning of what the collector says.
func refused(r *http.Response, body []byte) error {
	const most = 500
	text := strings.ToValidUTF8(string(body[:min(len(body), most)]), "?")
	return fmt.Errorf("the collector answered %s: %q", r.Status, text)
}

// retryAfter returns the pause that the collector asks for.
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if s, err := strconv.ParseInt(value, 10, 32); err == nil && s >= 0 {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(clock.Now()), 0)
	}
	return 0
}

// Shutdown ends an export that is under way. Calling it twice is harmless.
func (e *exporter) Shutdown(context.Context) error {
	e.end()
	e.stop()
	e.client.CloseIdleConnections()
	return nil
}
