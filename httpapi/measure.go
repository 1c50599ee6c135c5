package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/inbox"
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/nodes"
)

// measureEvery is how often a node measures the backlog at most, however often it is scraped.
const measureEvery = 5 * time.Second

// desc describes a metric of the engine. No label has a value that a user chooses: the sweeps are those of the program, and
// kinds, codes and states are fixed.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("holdfast_"+name, help, labels, nil)
}

// Metrics of the database: every node has the same ones.
var (
	measuredDesc = desc("backlog_measured", "1 if the metrics of the database could be measured: without them, nothing is known about the backlog.")
	entriesDesc  = desc("inbox_entries", "Entries of the inbox in all workspaces, up to 5,000 of each kind and shard.", "kind")
	oldestDesc   = desc("oldest_due_seconds", "Age of the oldest work, in all workspaces, that is due and has no holder; 0 if nothing is due.", "kind")
	nodesDesc    = desc("nodes", "Nodes that are running, and nodes that disappeared within the last hour: they did not stop, and have not reported for 30 seconds.", "state")
	snapshotDesc = desc("database_snapshot_seconds", "Age of the oldest transaction of the database that holds a snapshot, as reported by the nodes; 0 for none.")
)

// Metrics of this node.
var (
	expiredDesc   = desc("lease_expiries_total", "Leases that this node ended because their holder crashed or did not respond.", "kind")
	retriesDesc   = desc("retries_total", "Attempts that were not the first and were taken through this node.", "kind")
	waitDesc      = desc("queue_wait_seconds", "How long work that was taken through this node had been due.", "kind")
	tookDesc      = desc("work_seconds", "How long the handlers took that this node ran or called.", "kind")
	refusedDesc   = desc("refusals_total", "Writes that this node refused because another came first, by kind of object and code.", "kind", "code")
	poolBusyDesc  = desc("pool_busy", "Database connections in use.")
	poolSizeDesc  = desc("pool_size", "Maximum number of database connections.")
	poolWaitsDesc = desc("pool_waits_total", "Calls that waited for a free database connection.")
	poolTimeDesc  = desc("pool_wait_seconds_total", "Time that calls waited for a free database connection.")
	janitorDesc   = desc("janitor_age_seconds", "Time since the last round of the janitor without an error; 0 if this node runs none.")
	stalledDesc   = desc("janitor_stalled", "1 if the janitor of this node has stalled: it releases no leases.")
	sweepAgeDesc  = desc("sweep_age_seconds", "Time since the last run of a sweep of the janitor.", "sweep")
	sweepBadDesc  = desc("sweep_failed", "1 if the last run of a sweep failed.", "sweep")
	queuedDesc    = desc("reactions_queued", "Streams that wait until this node has capacity to run a reaction on them.")
)

// workCollector collects what the engine has counted on this node.
type workCollector struct{ api *API }

// Describe implements [prometheus.Collector].
func (*workCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{expiredDesc, retriesDesc, waitDesc, tookDesc, refusedDesc, poolBusyDesc, poolSizeDesc, poolWaitsDesc, poolTimeDesc, janitorDesc, stalledDesc, sweepAgeDesc, sweepBadDesc, queuedDesc} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *workCollector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	histogram := func(d *prometheus.Desc, h *meter.Histogram, labels ...string) {
		n, sum, buckets := h.Read()
		to <- prometheus.MustNewConstHistogram(d, n, sum, buckets, labels...)
	}
	e := c.api.engine
	for _, kind := range meter.Kinds {
		w := meter.Of(e).Kind(kind)
		counter(expiredDesc, float64(w.Expired.Load()), kind)
		counter(retriesDesc, float64(w.Retries.Load()), kind)
		histogram(tookDesc, &w.Took, kind)
		if kind != meter.Item { // an item has no time at which it was due
			histogram(waitDesc, &w.Wait, kind)
		}
	}
	for x, n := range e.Refusals().Counts() {
		counter(refusedDesc, float64(n), x.Kind, string(x.Code))
	}
	r := e.Report()
	gauge(poolBusyDesc, float64(r.Pool.Busy))
	gauge(poolSizeDesc, float64(r.Pool.Size))
	waits, waited := e.PoolWaits()
	counter(poolWaitsDesc, float64(waits))
	counter(poolTimeDesc, waited.Seconds())
	gauge(janitorDesc, float64(r.JanitorMs)/1000)
	gauge(stalledDesc, bit(r.Stalled))
	for _, s := range r.Sweeps {
		gauge(sweepAgeDesc, float64(s.AgoMs)/1000, s.Name)
		gauge(sweepBadDesc, bit(s.Error != ""), s.Name)
	}
	gauge(queuedDesc, float64(r.Queued))
}

func bit(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// backlogCollector collects what is left to do in the database. Scrapes within [measureEvery] share one measurement.
type backlogCollector struct {
	api *API

	mu       sync.Mutex
	at       time.Time // of the last measurement; zero for none
	last     []prometheus.Metric
	complain bool // the last measurement failed, which is logged once
}

// Describe implements [prometheus.Collector].
func (*backlogCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{measuredDesc, entriesDesc, oldestDesc, nodesDesc, snapshotDesc} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *backlogCollector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := clock.OfMachine(); c.at.IsZero() || now.Sub(c.at) >= measureEvery {
		ctx, cancel := context.WithTimeout(context.Background(), measureWithin)
		defer cancel()
		var err error
		c.last, err = c.measure(ctx)
		if err != nil && !c.complain {
			c.api.log.Warn("failed to measure the backlog for the metrics", "error", err)
		}
		c.complain, c.at = err != nil, clock.OfMachine()
	}
	for _, m := range c.last {
		to <- m
	}
}

// goneFor is how long a node that has disappeared is counted as gone.
const goneFor = time.Hour

// measureWithin limits a measurement. Prometheus waits for 10 seconds by default.
const measureWithin = 5 * time.Second

// measure reads the backlog. If that fails, it returns only that it is unknown: old values would hide the failure.
func (c *backlogCollector) measure(ctx context.Context) (all []prometheus.Metric, err error) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
	}
	var b inbox.Backlog
	var known []nodes.Node
	shards, err := c.api.engine.Shards(ctx)
	if err == nil {
		known, err = nodes.All(ctx, c.api.engine)
	}
	if err == nil {
		b, err = inbox.Measure(ctx, c.api.engine, shards, known)
	}
	if err != nil {
		gauge(measuredDesc, 0)
		return all, err
	}
	gauge(measuredDesc, 1)
	for kind, n := range b.Entries {
		gauge(entriesDesc, float64(n), string(kind))
	}
	for kind, age := range b.Oldest {
		gauge(oldestDesc, age.Seconds(), kind)
	}
	running, gone, snapshot := 0, 0, time.Duration(0)
	for _, n := range known {
		if n.Gone {
			if n.Now.Sub(n.Seen) < goneFor { // its row is kept for a week, for people
				gone++
			}
			continue
		}
		running++
		if n.SnapshotAt != nil {
			snapshot = max(snapshot, n.Now.Sub(*n.SnapshotAt))
		}
	}
	gauge(nodesDesc, float64(running), "running")
	gauge(nodesDesc, float64(gone), "gone")
	gauge(snapshotDesc, snapshot.Seconds())
	return all, nil
}
