package httpapi_test

import (
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/wire"
)

// TestTheOverview verifies that each capability is counted by state, what has ended apart from what has not, and that another
// workspace is not counted.
func TestTheOverview(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		for _, space := range []string{"default", "other"} {
			d.header.Set("X-Holdfast-Workspace", space)
			d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
			d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
			d.define(`{"name":"ask","version":"1","steps":[{"name":"ok","type":"approval","prompt":"?"}]}`)
			r := d.start("ask@1", `{}`)
			d.start("ask@1", `{}`)
			d.want(d.ask("POST", "workflow-runs/"+r.ID+"/cancel", nil, nil), 200, "")
			d.worker("Print", "idempotent")
			d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
			d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Print", Open: true}, nil), 201, "")
			d.want(d.ask("POST", "streams/s/events", `{"events":[{"name":"paid"}]}`, nil), 201, "")
			d.want(d.ask("PATCH", "scopes/cart/c", `{"n":1}`, nil), 200, "")
		}
		var o wire.Overview
		d.want(d.ask("GET", "overview", nil, &o), 200, "")
		want := wire.Overview{Operations: map[string]int64{"due": 1}, LiveRuns: map[string]int64{"WAITING": 1}, LiveBatches: map[string]int64{"PENDING": 1}, Approvals: 1}
		if !maps.Equal(o.Operations, want.Operations) || !maps.Equal(o.LiveRuns, want.LiveRuns) || !maps.Equal(o.LiveBatches, want.LiveBatches) || o.Approvals != 1 || o.BlockedStreams != 0 ||
			fmt.Sprint(o.Entities, o.EndedRuns, o.EndedBatches, o.Streams, o.Scopes) != "{map[job:1] false} {map[CANCELLED:1] false} {map[] false} {map[open:1] false} {map[cart:1] false}" {
			t.Errorf("got %+v", o)
		}
		var n wire.Tally
		d.want(d.ask("GET", "lifecycles/job/counts", nil, &n), 200, "")
		if fmt.Sprint(n) != "{map[doing:1] false}" {
			t.Errorf("got counts %+v, want one entity in doing", n)
		}
		d.want(d.ask("GET", "lifecycles/nothing/counts", nil, nil), 404, fault.NotFound)
	})
}

// TestNodesAndRates verifies that a node is listed with what it and its workers serve, and its rates by the minute, in pages.
func TestNodesAndRates(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.running()
		d.worker("Mail", "idempotent")
		d.claimItems("Mail", 1)
		var l wire.List[wire.Node]
		serves := func(want wire.NodeServes) bool {
			engine.Of(d.engine).Reporter().Now(t.Context())
			d.want(d.ask("GET", "nodes", nil, &l), 200, "")
			for _, n := range l.Items {
				for _, s := range n.Serves {
					if s == want {
						return true
					}
				}
			}
			return false
		}
		testkit.Eventually(t, "the worker is listed", func() bool { return serves(wire.NodeServes{Kind: "step", Name: "Mail", Remote: true}) })
		testkit.Eventually(t, "the feed is listed", func() bool { return serves(wire.NodeServes{Kind: "reaction", Name: "$feed"}) })
		if n := l.Items[0]; len(l.Items) != 1 || n.Gone || n.Stalled || n.SeenAt == nil || n.StartedAt == nil || n.Name != engine.Of(d.engine).Node() {
			t.Errorf("got %+v, want one node", l.Items)
		}
		d.header.Set("X-Holdfast-Workspace", "other")
		if serves(wire.NodeServes{Kind: "step", Name: "Mail", Remote: true}) {
			t.Error("another workspace sees the worker")
		}
		for i := range 3 {
			d.want(d.ask("POST", "streams/s"+strconv.Itoa(i)+"/events", `{"events":[{"name":"paid"}]}`, nil), 201, "")
			d.want(d.ask("POST", "streams/s"+strconv.Itoa(i)+"/events", `{"expectedVersion":-1,"events":[{"name":"paid"}]}`, nil), 409, fault.Concurrency)
			engine.Of(d.engine).Reporter().Now(t.Context())
			d.advance(time.Minute)
		}
		d.want(d.ask("POST", "tasks/claim", `{"worker":"w2","handlers":["Idle"],"waitMs":800}`, nil), 200, "")
		engine.Of(d.engine).Reporter().Now(t.Context())
		var commands, refusals, requests int64
		latency, lag := int64(-1), int64(-1)
		pages := 0
		for cursor := ""; ; pages++ {
			var r wire.List[wire.Rate]
			d.want(d.ask("GET", "rates?limit=1&minutes=10"+cursor, nil, &r), 200, "")
			for _, x := range r.Items {
				commands, refusals, requests = commands+x.Commands, refusals+x.Refusals, requests+x.Requests
				if x.LatencyMs != nil {
					latency = *x.LatencyMs
				}
				if x.LagMs != nil {
					lag = max(lag, *x.LagMs)
				}
			}
			if r.Next == nil {
				break
			}
			cursor = "&cursor=" + *r.Next
		}
		if commands < 6 || refusals != 3 || requests < 6 || pages < 3 {
			t.Errorf("got %d commands, %d refusals and %d requests in %d pages, want at least 6, exactly 3, at least 6 and 3 pages", commands, refusals, requests, pages)
		}
		if latency < 0 || latency >= 800 || lag < 0 {
			t.Errorf("got a latency of %d ms and a lag of %d ms, want both, and the wait of a caller not in the latency", latency, lag)
		}
		d.want(d.ask("GET", "rates?minutes=0", nil, nil), 400, fault.Validation)
	})
}
