package httpapi

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/reactions"
)

// ownMetrics returns the collectors of the engine's metrics.
func (a *API) ownMetrics() []prometheus.Collector {
	a.backlog = &backlogCollector{api: a}
	return []prometheus.Collector{a.backlog, &workCollector{a}, &statusCollector{api: a}, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "holdfast_claims_refused_total",
		Help: "Attempts to run a step that this node refused because another attempt was in progress or came first."},
		func() float64 { return float64(lifecycleengine.Refused(a.engine)) })}
}

// metricsPage serves the metrics to keys of any role.
func (a *API) metricsPage() http.HandlerFunc {
	page := promhttp.HandlerFor(a.metrics.Registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError})
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := a.identify(r)
		if err == nil && (!id.key.Restrictions.MayUse(visible) || len(id.key.Restrictions.Lifecycles) > 0) {
			err = fault.New(fault.Forbidden, "the API key is restricted and may not read the metrics: use a key without route groups or with the group %s, and without lifecycles", visible)
		}
		if err != nil {
			a.refuseHere(w, r, err)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		if r.Method == http.MethodHead { // promhttp would try to write a body and log the error
			w.WriteHeader(http.StatusOK)
			return
		}
		page.ServeHTTP(w, r)
	}
}

// statusCollector collects the status of the engine at scrape time.
type statusCollector struct{ api *API }

var (
	readyDesc   = prometheus.NewDesc("holdfast_ready", "1 if /readyz reports ready: the database responds, the janitor runs, and the node is not stopping.", nil, nil)
	schemaDesc  = prometheus.NewDesc("holdfast_schema", "Number of the newest migration applied to the database.", nil, nil)
	streamsDesc = prometheus.NewDesc("holdfast_reaction_streams_total", "Streams of reactions, after-effects and webhooks that were claimed, acked, failed, deferred, lost, blocked, unblocked, skipped or reset on this node.", []string{"kind", "what"}, nil)
	quotaDesc   = prometheus.NewDesc("holdfast_quota_refusals_total", "Requests that this node refused because their workspace had reached a quota.", []string{"quota"}, nil)
	buildDesc   = prometheus.NewDesc("holdfast_build_info", "Version of the program and name of its database.", []string{"version", "database"}, nil)
)

// Describe implements [prometheus.Collector].
func (*statusCollector) Describe(to chan<- *prometheus.Desc) {
	to <- readyDesc
	to <- schemaDesc
	to <- buildDesc
	to <- streamsDesc
	to <- quotaDesc
}

// Collect implements [prometheus.Collector].
func (c *statusCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for x, n := range reactions.TalliesOf(c.api.engine).All() {
		to <- prometheus.MustNewConstMetric(streamsDesc, prometheus.CounterValue, float64(n), x.Kind, x.What)
	}
	for _, k := range quota.Kinds() {
		to <- prometheus.MustNewConstMetric(quotaDesc, prometheus.CounterValue, float64(c.api.quotas.Refused(k)), k.String())
	}
	s, err := c.api.ready(ctx)
	to <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, bit(err == nil && !c.api.stopping.Load()))
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
