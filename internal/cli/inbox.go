package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type inboxCommand struct {
	pageFlags
	Kind   []string `setting:"-" placeholder:"KIND,…" help:"Only these kinds, such as failedRun. Default: all kinds."`
	Counts bool     `setting:"-" help:"Print the number of entries of each kind instead."`
}

func (c *inboxCommand) Run(ctx context.Context, d *connection) error {
	kinds := strings.Join(c.Kind, ",")
	if c.Counts {
		n, err := d.CountInbox(ctx, client.InboxFilter{Kind: kinds}, d.raw())
		t := &table{heads: []string{"KIND", "ENTRIES"}}
		for _, x := range n.Counts {
			t.add(x.Kind, capped(int64(x.Count), x.Capped))
		}
		return d.show(t, err)
	}
	l, err := d.ListInboxPage(ctx, client.InboxFilter{Kind: kinds}, c.page(), d.raw())
	t := &table{heads: []string{"SINCE", "KIND", "SUBJECT", "OWNER", "DEADLINE", "REASON", "ACTION"}}
	for _, x := range l.Items {
		action := x.Action.Label
		if x.Action.Method != "" {
			action += ": " + x.Action.Method + " " + x.Action.Route + " " + string(x.Action.Body)
		}
		t.add(at(x.Since), x.Kind, x.Subject, x.Owner, at(x.Deadline), x.Reason, action)
	}
	return d.showList(t, l.Next, err)
}

// capped prints a count that is exact up to a limit.
func capped(n int64, more bool) string {
	if more {
		return "more than " + number64(n)
	}
	return number64(n)
}

type overviewCommand struct{ targetFlags }

// counted prints a count by state. If there are more, only the first were counted.
func counted(t *table, counts map[string]int64, more bool, before ...string) {
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		n := number64(counts[state])
		if more {
			n += " of the first 10001"
		}
		t.add(append(slices.Clone(before), state, n)...)
	}
}

func (c *overviewCommand) Run(ctx context.Context, d *connection) error {
	o, err := d.GetOverview(ctx, d.raw())
	t := &table{heads: []string{"WHAT", "STATE", "COUNT"}}
	add := func(what string, counts map[string]int64, more bool) { counted(t, counts, more, what) }
	tally := func(what string, x wire.Tally) { add(what, x.Counts, x.Capped) }
	add("operations", o.Operations, false)
	tally("entities", o.Entities)
	add("live runs", o.LiveRuns, false)
	tally("ended runs", o.EndedRuns)
	add("approvals", map[string]int64{"pending": o.Approvals}, false)
	add("live batches", o.LiveBatches, false)
	tally("ended batches", o.EndedBatches)
	add("streams of reactions", map[string]int64{"blocked": o.BlockedStreams}, false)
	tally("streams", o.Streams)
	tally("scopes", o.Scopes)
	return d.show(t, err)
}

type maintenanceCommand struct{ targetFlags }

func (c *maintenanceCommand) Run(ctx context.Context, d *connection) error {
	m, err := d.RunMaintenance(ctx, d.raw())
	t := &table{heads: []string{"NODE"}}
	t.add(m.Node)
	return d.show(t, err)
}

type nodesCommand struct {
	pageFlags
}

func (c *nodesCommand) Run(ctx context.Context, d *connection) error {
	l, err := d.ListNodesPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"NAME", "VERSION", "STARTED", "SEEN", "STATE", "POOL", "SERVES"}}
	for _, n := range l.Items {
		state := "running"
		switch {
		case n.Gone:
			state = "gone"
		case n.Stalled:
			state = "janitor stalled"
		}
		var serves []string
		for _, s := range n.Serves {
			serves = append(serves, strings.TrimSpace(s.Kind+" "+s.Name))
		}
		t.add(n.Name, n.Version, at(n.StartedAt), at(n.SeenAt), state, number64(int64(n.Pool.Busy))+"/"+number64(int64(n.Pool.Size)), strings.Join(serves, ", "))
	}
	return d.showList(t, l.Next, err)
}

type ratesCommand struct {
	pageFlags
	Minutes int64 `setting:"-" default:"60" help:"How many minutes to go back, at most 10080, a week."`
}

func (c *ratesCommand) Run(ctx context.Context, d *connection) error {
	l, err := d.ListRatesPage(ctx, client.RateFilter{Minutes: &c.Minutes}, c.page(), d.raw())
	t := &table{heads: []string{"MINUTE", "NODE", "COMMANDS", "REFUSED", "REQUESTS", "RUNS", "STEPS", "ITEMS", "REACTIONS", "LATENCY MS", "LAG MS"}}
	measured := func(ms *int64) string {
		if ms == nil {
			return ""
		}
		return number64(*ms)
	}
	for _, r := range l.Items {
		t.add(at(r.Minute), r.Node, number64(r.Commands), number64(r.Refusals), number64(r.Requests), number64(r.Runs), number64(r.Steps), number64(r.Items), number64(r.Reactions),
			measured(r.LatencyMs), measured(r.LagMs))
	}
	return d.showList(t, l.Next, err)
}
