package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/inbox"
	"github.com/holdfast-go/holdfast/internal/nodes"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) overviewRoutes() {
	add(a, route{Method: http.MethodGet, Path: "overview", ID: "getOverview", Tag: "visibility", Summary: "Count what the workspace has, by capability and state.", Roles: readers,
		More: "Counts of what has not ended are exact, others up to 5,000."}, getOverview)
	add(a, route{Method: http.MethodGet, Path: "lifecycles/{name}/counts", ID: "countEntities", Tag: "visibility", Summary: "Count the entities of a lifecycle by status.", Roles: readers,
		More: "Counts are exact up to 5,000. Rows of your own tables are not counted."}, countEntities)
	add(a, route{Method: http.MethodGet, Path: "nodes", ID: "listNodes", Tag: "visibility", Summary: "List the nodes that run on the database.", Roles: readers}, listNodes)
	add(a, route{Method: http.MethodGet, Path: "rates", ID: "listRates", Tag: "visibility", Summary: "List the activity of each node per minute, oldest first.", Roles: readers, Filter: "RateFilter"}, listRates)
}

func tallyOf(t inbox.Tally) wire.Tally { return wire.Tally{Counts: t.Counts, Capped: t.Capped} }

func getOverview(c *call, _ *struct{}) (wire.Overview, error) {
	o, err := inbox.Overall(c.ctx(), c.doer())
	return wire.Overview{Operations: o.Operations, Entities: tallyOf(o.Entities), LiveRuns: o.Runs, EndedRuns: tallyOf(o.EndedRuns), Approvals: o.Approvals,
		LiveBatches: o.Batches, EndedBatches: tallyOf(o.EndedBatches), BlockedStreams: o.Blocked, Streams: tallyOf(o.Streams), Scopes: tallyOf(o.Scopes)}, err
}

type countEntitiesIn struct {
	Name string `path:"name"`
}

func countEntities(c *call, in *countEntitiesIn) (wire.Tally, error) {
	if _, err := c.lifecycle(in.Name); err != nil {
		return wire.Tally{}, err
	}
	t, err := inbox.Statuses(c.ctx(), c.doer(), in.Name)
	return tallyOf(t), err
}

func listNodes(c *call, in *paged) (wire.List[wire.Node], error) {
	return list(c, *in, func(ctx context.Context, after string, limit int) ([]nodes.Node, error) {
		return nodes.List(ctx, c.doer(), after, limit)
	}, c.nodeOf, func(n nodes.Node) string { return n.Name })
}

// nodeOf converts a node. What workers of other workspaces poll for is left out.
func (c *call) nodeOf(n nodes.Node) wire.Node {
	w := wire.Node{Name: n.Name, Version: n.Version, StartedAt: shapes.At(n.StartedAt), SeenAt: shapes.At(n.Seen), Gone: n.Gone, Serves: []wire.NodeServes{}, Sweeps: []wire.NodeSweep{},
		Stalled: n.Report.Stalled, Pool: wire.NodePool(n.Report.Pool), Queued: n.Report.Queued, Waiting: n.Report.Waiting}
	for _, s := range n.Report.Serves {
		if s.Workspace == "" || s.Workspace == c.key.Workspace {
			w.Serves = append(w.Serves, wire.NodeServes{Kind: s.Kind, Name: servedName(s, c.key.Workspace), Remote: s.Workspace != ""})
		}
	}
	for _, s := range n.Report.Sweeps {
		w.Sweeps = append(w.Sweeps, wire.NodeSweep{Name: s.Name, At: shapes.At(n.Seen.Add(-time.Duration(s.AgoMs) * time.Millisecond)), Error: s.Error})
	}
	if n.SnapshotAt != nil {
		w.Snapshot = &wire.Snapshot{Since: shapes.At(*n.SnapshotAt), By: n.SnapshotBy}
	}
	return w
}

// servedName returns the name of a lifecycle or a handler instead of that of its queue.
func servedName(s nodes.Served, workspace string) string {
	if name, ok := strings.CutPrefix(s.Name, "l:"); ok && s.Kind == "operation" {
		return name
	}
	return strings.TrimPrefix(s.Name, "h:"+workspace+":")
}

type listRatesIn struct {
	paged
	Minutes *int `query:"minutes" doc:"How far back, at most 10080 (a week); the default is 60."`
}

func listRates(c *call, in *listRatesIn) (wire.List[wire.Rate], error) {
	minutes := 60
	if in.Minutes != nil {
		minutes = *in.Minutes
	}
	if minutes < 1 || minutes > 7*24*60 {
		return wire.List[wire.Rate]{}, fault.New(fault.Validation, "minutes must be between 1 and 10080, got %d", minutes).With("field", "minutes")
	}
	return list(c, in.paged, func(ctx context.Context, after string, limit int) ([]nodes.Minute, error) {
		from, err := minuteOf(after)
		if err != nil {
			return nil, err
		}
		return nodes.Minutes(ctx, c.doer(), time.Duration(minutes)*time.Minute, from, limit)
	}, func(m nodes.Minute) wire.Rate {
		return wire.Rate{Minute: shapes.At(m.At), Node: m.Node, Commands: m.Commands, Refusals: m.Refusals, Requests: m.Requests, Runs: m.Runs, Steps: m.Steps, Items: m.Items, Reactions: m.Reactions, LatencyMs: known(m.Latency), LagMs: known(m.Lag)}
	}, func(m nodes.Minute) string { return strconv.FormatInt(m.At.UnixMilli(), 10) + " " + m.Node })
}

// known returns nil for an unknown number.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// minuteOf parses the content of a cursor of the rates.
func minuteOf(after string) (m nodes.Minute, err error) {
	if after == "" {
		return m, nil
	}
	at, node, ok := strings.Cut(after, " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !ok || ms < 0 {
		return m, noCursor()
	}
	return nodes.Minute{At: time.UnixMilli(ms), Node: node}, nil
}
