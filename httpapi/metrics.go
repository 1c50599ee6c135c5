package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/requests"
)

// metrics are the numbers of one API. They are in a registry of its own, so that two
// in one process do not add up, and nothing of the program's own is told by accident.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
	refusals *prometheus.CounterVec
	replays  prometheus.Counter
}

// buckets go from a read of SQLite to a step that waits for a minute.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// newMetrics makes the metrics of an API. Labels have few values: the pattern of a
// route and never a path, and a method that HTTP knows.
func newMetrics(a *API) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "holdfast_http_requests_total",
			Help: "Requests that were answered."}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "holdfast_http_request_seconds",
			Help: "How long requests took, but for streams of events.", Buckets: buckets}, []string{"route", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "holdfast_http_in_flight",
			Help: "Requests that are being answered, streams of events and long polls among them."}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "holdfast_http_refusals_total",
			Help: "Requests that were refused, by the code of the problem."}, []string{"code"}),
		replays: prometheus.NewCounter(prometheus.CounterOpts{Name: "holdfast_http_replays_total",
			Help: "Requests that were answered as an earlier one with the same Idempotency-Key."}),
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry.MustRegister(m.own(a)...)
	return m
}

// own are the collectors that are Holdfast's.
func (m *metrics) own(a *API) []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.seconds, m.inFlight, m.refusals, m.replays,
		&condition{api: a}, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "holdfast_claims_refused_total",
			Help: "Tries of steps that this node refused, because another was in progress or had come first."},
			func() float64 { return float64(lifecycleengine.Refused(a.engine)) })}
}

// also registers the metrics with the program's own, too. A program that has two APIs
// wraps its registerer, so that a label tells them apart.
func (m *metrics) also(a *API, r prometheus.Registerer, log *slog.Logger) {
	if r == nil {
		return
	}
	for _, c := range m.own(a) {
		if err := r.Register(c); err != nil {
			log.Warn("a metric could not be registered with the program's own", "error", err)
		}
	}
}

// observe counts a request that has ended.
func (m *metrics) observe(w *watch, seen *recorder, took time.Duration) {
	m.requests.WithLabelValues(w.pattern, w.method, codeLabel(w, seen)).Inc()
	h := seen.Header()
	if h.Get("Content-Type") != eventStream {
		m.seconds.WithLabelValues(w.pattern, w.method).Observe(took.Seconds())
	}
	if w.code != "" {
		m.refusals.WithLabelValues(string(w.code)).Inc()
	}
	if h.Get(requests.ReplayedHeader) == "true" {
		m.replays.Inc()
	}
}

// codeLabel is the status, or cut for half an answer.
func codeLabel(w *watch, seen *recorder) string {
	if w.cut {
		return "cut"
	}
	return strconv.Itoa(seen.status)
}

const eventStream = "text/event-stream"

// metricsPage gives the metrics, to whom has a key of any role.
func (a *API) metricsPage() http.HandlerFunc {
	page := promhttp.HandlerFor(a.metrics.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError})
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := a.whoIs(r); err != nil {
			a.refuseHere(w, r, err)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		if r.Method == http.MethodHead { // the page would write to it, and log that it may not
			w.WriteHeader(http.StatusOK)
			return
		}
		page.ServeHTTP(w, r)
	}
}

// condition is how the engine does, asked when somebody looks.
type condition struct{ api *API }

var (
	readyDesc   = prometheus.NewDesc("holdfast_ready", "1 where /readyz says ready: the database answers, the janitor comes round, and the node is not stopping.", nil, nil)
	schemaDesc  = prometheus.NewDesc("holdfast_schema", "The number of the newest migration that the database has.", nil, nil)
	streamsDesc = prometheus.NewDesc("holdfast_reaction_streams_total", "Streams that were blocked for a reaction, an after-effect or a webhook on this node, and those that were released.", []string{"kind", "what"}, nil)
	buildDesc   = prometheus.NewDesc("holdfast_build_info", "The program and its database.", []string{"version", "database"}, nil)
)

// Describe tells what there is.
func (*condition) Describe(to chan<- *prometheus.Desc) {
	to <- readyDesc
	to <- schemaDesc
	to <- buildDesc
	to <- streamsDesc
}

// Collect asks the engine.
func (c *condition) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for x, n := range c.api.engine.Reactions().Tallies() {
		to <- prometheus.MustNewConstMetric(streamsDesc, prometheus.CounterValue, float64(n), x.Kind, x.What)
	}
	s, err := c.api.ready(ctx)
	ready := 0.0
	if err == nil && !c.api.stopping.Load() {
		ready = 1
	}
	to <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, ready)
	to <- prometheus.MustNewConstMetric(buildDesc, prometheus.GaugeValue, 1, c.api.version, databaseName(s, err))
	if err == nil {
		to <- prometheus.MustNewConstMetric(schemaDesc, prometheus.GaugeValue, float64(s.Schema))
	}
}

func databaseName(s holdfast.Status, err error) string {
	if err != nil {
		return ""
	}
	return s.Database
}
