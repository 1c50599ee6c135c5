package observe

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/holdfast-go/holdfast/internal/idempotency"
)

// Metrics are the metrics of one API. They have their own registry, so that two APIs in one process
// do not add up and metrics of the program are not exposed by accident.
type Metrics struct {
	Registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	InFlight  prometheus.Gauge
	refusals  *prometheus.CounterVec
	replays   prometheus.Counter
	Tokens    *prometheus.CounterVec // refused tokens
	Addresses *prometheus.CounterVec // refused addresses of clients
	own       []prometheus.Collector // metrics of Holdfast, without those of the Go runtime
}

// buckets range from a read of SQLite to a step that waits for a minute.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// NewMetrics creates the metrics of an API, with additional collectors. Labels have few values: the
// pattern of a route and never a path, and only known HTTP methods.
func NewMetrics(more ...prometheus.Collector) *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "holdfast_http_requests_total",
			Help: "Served requests."}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "holdfast_http_request_seconds",
			Help: "Duration of requests, excluding event streams.", Buckets: buckets}, []string{"route", "method"}),
		InFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "holdfast_http_in_flight",
			Help: "Requests in flight, including event streams and long polls."}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "holdfast_http_refusals_total",
			Help: "Refused requests, by problem code."}, []string{"code"}),
		replays: prometheus.NewCounter(prometheus.CounterOpts{Name: "holdfast_http_replays_total",
			Help: "Requests answered with the stored response to an earlier request with the same Idempotency-Key."}),
		Tokens: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "holdfast_http_token_refusals_total",
			Help: "Requests with a token of the OIDC issuer that was not accepted, by reason."}, []string{"reason"}),
		Addresses: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "holdfast_http_address_refusals_total",
			Help: "Requests from an address that the server or the API key does not allow."}, []string{"list"}),
	}
	m.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.own = append([]prometheus.Collector{m.requests, m.seconds, m.InFlight, m.refusals, m.replays, m.Tokens, m.Addresses}, more...)
	m.Registry.MustRegister(m.own...)
	return m
}

// Also registers the metrics with the program's registerer. A program with two APIs wraps its
// registerer to distinguish them by a label.
func (m *Metrics) Also(r prometheus.Registerer, log *slog.Logger) {
	if r == nil {
		return
	}
	for _, c := range m.own {
		if err := r.Register(c); err != nil {
			log.Warn("failed to register a metric with Options.Metrics", "error", err)
		}
	}
}

// Observe counts a request that has ended.
func (m *Metrics) Observe(w *Watch, seen *Recorder, took time.Duration) {
	m.requests.WithLabelValues(w.pattern, w.method, codeLabel(w, seen)).Inc()
	h := seen.Header()
	if !seen.Streamed() {
		m.seconds.WithLabelValues(w.pattern, w.method).Observe(took.Seconds())
	}
	if w.Code != "" {
		m.refusals.WithLabelValues(string(w.Code)).Inc()
	}
	if h.Get(idempotency.ReplayedHeader) == "true" {
		m.replays.Inc()
	}
}

// Streamed reports whether the response is an event stream.
func (r *Recorder) Streamed() bool { return r.Header().Get("Content-Type") == eventStream }

// codeLabel returns the status, or cut for a truncated response.
func codeLabel(w *Watch, seen *Recorder) string {
	if w.Cut {
		return "cut"
	}
	return strconv.Itoa(seen.Status)
}

const eventStream = "text/event-stream"
