package nodes_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/nodes"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node returns a reporter of a process that has begun.
func node(e *holdfast.Engine, name string, counts *nodes.Counts) *nodes.Reporter {
	r := &nodes.Reporter{Doer: engine.Of(e), Name: name, Log: slog.New(slog.DiscardHandler), Version: func() string { return "v1" },
		Report: func() nodes.Report { return nodes.Report{Pool: nodes.Pool{Busy: 1, Size: 2}} }, Counts: func() nodes.Counts { return *counts }}
	r.Start()
	return r
}

func list(t *testing.T, e *holdfast.Engine) []nodes.Node {
	t.Helper()
	all, err := nodes.All(t.Context(), engine.Of(e))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestANodeIsListedWhileItRuns verifies that a running engine is listed with what it serves and what its janitor did, and
// is removed when it stops.
func TestANodeIsListedWhileItRuns(t *testing.T) {
	r := stream.React("mail", stream.Select{Events: []string{"paid"}}, func(context.Context, *stream.Delivery) error { return nil }, stream.Options{})
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		var all []nodes.Node
		testkit.Eventually(t, "the node is listed", func() bool { all = list(t, e); return len(all) == 1 })
		engine.Of(e).Round(ctx)
		testkit.Eventually(t, "the node serves a reaction", func() bool {
			engine.Of(e).Reporter().Now(ctx)
			all = list(t, e)
			return len(all[0].Report.Serves) > 0
		})
		n := all[0]
		served := nodes.Served{Kind: "reaction", Name: "mail"}
		if n.Name != engine.Of(e).Node() || n.Gone || n.Report.Stalled || len(n.Report.Serves) != 1 || n.Report.Serves[0] != served || len(n.Report.Sweeps) < 4 || n.Report.Pool.Size == 0 {
			t.Errorf("got node %+v, want one that serves %v", n, served)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if all := list(t, e); len(all) != 0 {
			t.Errorf("got %+v after the engine stopped, want no node", all)
		}
	}, r)
}

// TestANodeThatStopsReporting verifies that a node counts as gone after half a minute, and that its row and its rates are
// deleted after a week, but not those of another node.
func TestANodeThatStopsReporting(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		var counts nodes.Counts
		a, b := node(e, "a", &counts), node(e, "b", &counts)
		a.Now(t.Context())
		b.Now(t.Context())
		if all := list(t, e); len(all) != 2 || all[0].Gone || all[0].Version != "v1" {
			t.Fatalf("got %+v", all)
		}
		holdfasttest.Advance(t, e, nodes.GoneAfter+time.Second)
		b.Now(t.Context())
		if all := list(t, e); len(all) != 2 || !all[0].Gone || all[1].Gone {
			t.Fatalf("after half a minute: got %+v, want a gone and b alive", all)
		}
		holdfasttest.Advance(t, e, nodes.Retention)
		b.Now(t.Context())
		if _, err := nodes.Prune(t.Context(), engine.Of(e)); err != nil {
			t.Fatal(err)
		}
		all := list(t, e)
		minutes, err := nodes.Minutes(t.Context(), engine.Of(e), 2*nodes.Retention, nodes.Minute{}, 100)
		if err != nil || len(all) != 1 || all[0].Name != "b" || len(minutes) != 1 || minutes[0].Node != "b" {
			t.Errorf("after a week: got nodes %+v, minutes %+v, %v, want b and its last minute", all, minutes, err)
		}
	})
}

// TestRatesAddUp verifies that the minutes of a node add up to what it counted, once, and are read in pages.
func TestRatesAddUp(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		counts := nodes.Counts{Commands: 1000}
		r := node(e, "a", &counts) // what was counted before it began is not its own
		want := nodes.Counts{}
		for i := range int64(20) {
			holdfasttest.Advance(t, e, nodes.Every)
			counts.Commands, counts.Refusals, counts.Items = counts.Commands+i, counts.Refusals+1, counts.Items+2*i
			want.Commands, want.Refusals, want.Items = want.Commands+i, want.Refusals+1, want.Items+2*i
			r.Now(t.Context())
		}
		var got nodes.Counts
		pages := 0
		for after := (nodes.Minute{}); ; pages++ {
			some, err := nodes.Minutes(t.Context(), engine.Of(e), time.Hour, after, 1)
			if err != nil {
				t.Fatal(err)
			}
			if len(some) == 0 {
				break
			}
			after = some[0]
			got.Commands, got.Refusals, got.Items = got.Commands+after.Commands, got.Refusals+after.Refusals, got.Items+after.Items
		}
		if got != want || pages < 4 {
			t.Errorf("got %+v in %d minutes, want %+v", got, pages, want)
		}
	})
}

// TestAnOlderProcessUnderTheSameName verifies that a process does not overwrite or remove the row of a newer one under the
// same name, in whatever order they report.
func TestAnOlderProcessUnderTheSameName(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		var counts nodes.Counts
		old := node(e, "a", &counts)
		now := node(e, "a", &counts)
		now.Version = func() string { return "v2" }
		for _, r := range []*nodes.Reporter{old, now, old} {
			r.Now(t.Context())
		}
		if all := list(t, e); len(all) != 1 || all[0].Version != "v2" {
			t.Fatalf("got %+v, want the newer process", all)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		old.Stop(ended)
		if all := list(t, e); len(all) != 1 || all[0].Version != "v2" {
			t.Errorf("after the older process stopped: got %+v, want the newer process", all)
		}
		now.Stop(ended)
		if all := list(t, e); len(all) != 0 {
			t.Errorf("after both stopped: got %+v, want no node", all)
		}
	})
}

// TestTheWorstOfAMinute verifies that a minute has the longest latency and lag that its node reported in it, and none if it reported
// none; and that the lag is asked for once a minute at most.
func TestTheWorstOfAMinute(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		var counts nodes.Counts
		latency, asked := []time.Duration{20 * time.Millisecond, 90 * time.Millisecond, 30 * time.Millisecond}, 0
		a, b := node(e, "a", &counts), node(e, "b", &counts)
		a.Latency = func() (d time.Duration, ok bool) {
			if len(latency) > 0 {
				d, ok, latency = latency[0], true, latency[1:]
			}
			return d, ok
		}
		a.Lag = func(context.Context) (time.Duration, error) { asked++; return 7 * time.Second, nil }
		for range 4 {
			a.Now(t.Context())
		}
		b.Now(t.Context())
		found, err := nodes.Minutes(t.Context(), engine.Of(e), time.Hour, nodes.Minute{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		worst := map[string]nodes.Minute{"a": {Latency: -1, Lag: -1}, "b": {Latency: -1, Lag: -1}}
		for _, m := range found { // the minute may have changed in between
			w := worst[m.Node]
			w.Latency, w.Lag = max(w.Latency, m.Latency), max(w.Lag, m.Lag)
			worst[m.Node] = w
		}
		if w := worst["a"]; w.Latency != 90 || w.Lag != 7000 || asked != 1 {
			t.Errorf("got latency %d and lag %d, asked %d times, want 90 and 7000, asked once", w.Latency, w.Lag, asked)
		}
		if w := worst["b"]; w.Latency != -1 || w.Lag != -1 {
			t.Errorf("got latency %d and lag %d of a node without requests, want none", w.Latency, w.Lag)
		}
	})
}
