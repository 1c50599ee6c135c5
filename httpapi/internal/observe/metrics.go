package observe

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/holdfast-go/holdfast/internal/idempotency"
)

// Metrics are the numbers of one API. They are in a registry of its own, so that two
// in one process do not add up, and nothing of the program's own is told by accident.
type Metrics struct {
	Registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	InFlight prometheus.Gauge
	refusals *prometheus.CounterVec
	replays  prometheus.Counter
	own      []prometheus.Collector // Holdfast's
}

// buckets go from a read of SQLite to a step that waits for a minute.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// NewMetrics makes the metrics of an API, with more of its own. Labels have few values: the pattern of a
// route and never a path, and a method that HTTP knows.
func NewMetrics(more ...prometheus.Collector) *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "holdfast_http_requests_total",
			Help: "Requests that were answered."}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "holdfast_http_request_seconds",
			Help: "How long requests took, but for streams of events.", Buckets: buckets}, []string{"route", "method"}),
		InFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "holdfast_http_in_flight",
			Help: "Requests that are being answered, streams of events and long polls among them."}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "holdfast_http_refusals_total",
			Help: "Requests that were refused, by the code of the problem."}, []string{"code"}),
		replays: prometheus.NewCounter(prometheus.CounterOpts{Name: "holdfast_http_replays_total",
			Help: "Requests that were answered as an earlier one with the same Idempotency-Key."}),
	}
	m.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.own = append([]prometheus.Collector{m.requests, m.seconds, m.InFlight, m.refusals, m.replays}, more...)
	m.Registry.MustRegister(m.own...)
	return m
}

// Also registers the metrics with the program's own, too. A program that has two APIs
// wraps its registerer, so that a label tells them apart.
func (m *Metrics) Also(r prometheus.Registerer, log *slog.Logger) {
	if r == nil {
		return
	}
	for _, c := range m.own {
		if err := r.Register(c); err != nil {
			log.Warn("a metric could not be registered with the program's own", "error", err)
		}
	}
}

// Observe counts a request that has ended.
func (m *Metrics) Observe(w *Watch, seen *Recorder, took time.Duration) {
	m.requests.WithLabelValues(w.pattern, w.method, codeLabel(w, seen)).Inc()
	h := seen.Header()
	if h.Get("Content-Type") != eventStream {
		m.seconds.WithLabelValues(w.pattern, w.method).Observe(took.Seconds())
	}
	if w.Code != "" {
		m.refusals.WithLabelValues(string(w.Code)).Inc()
	}
	if h.Get(idempotency.ReplayedHeader) == "true" {
		m.replays.Inc()
	}
}

// codeLabel is the status, or cut for half an answer.
func codeLabel(w *Watch, seen *Recorder) string {
	if w.Cut {
		return "cut"
	}
	return strconv.Itoa(seen.Status)
}

const eventStream = "text/event-stream"
