package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/inbox"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

const (
	alertRules = "../deploy/prometheus/alerts.yaml"
	dashboard  = "../deploy/grafana/holdfast.json"
	monitoring = "../docs/monitoring.md"
)

// metricsPage scrapes the metrics, with a new measurement of the backlog.
func (d *testAPI) metricsPage() string {
	d.t.Helper()
	d.api.MeasureAgain()
	resp, err := http.Get(d.url + "/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	return textOf(resp)
}

// evaluate verifies with promtool that alerts fire, or do not, on the metrics of this server, if they stay like this for two hours: a
// gauge has its present value, and a counter rises each minute as it has risen since an earlier scrape. At level test it does so
// once for each alert that fires, if promtool is installed: that takes a tenth of a second.
func (d *testAPI) evaluate(before string, fire bool, alerts ...string) {
	d.t.Helper()
	promtool, err := exec.LookPath("promtool")
	if testlevel.Current() < testlevel.Check {
		alerts = slices.DeleteFunc(slices.Clone(alerts), func(alert string) bool {
			if !fire {
				return true
			}
			_, known := evaluated.LoadOrStore(alert, true)
			return known
		})
		if len(alerts) == 0 {
			return
		}
	} else if err != nil {
		promtool, err = pgtest.Command(d.t.Context(), "promtool", "prometheus")
	}
	if err != nil {
		if t, ok := d.t.(*testing.T); ok {
			t.Attr(testlevel.NoteAttr, "promtool is not installed, so the alerts were not evaluated")
		}
		return
	}
	rules, err := filepath.Abs(alertRules)
	if err != nil {
		d.t.Fatal(err)
	}
	want := 0
	if fire {
		want = 1
	}
	text := fmt.Sprintf("rule_files: [%q]\nevaluation_interval: 5m\ntests:\n  - interval: 1m\n    input_series:\n%s    promql_expr_test:\n", rules, series(d.t, before, d.metricsPage()))
	for _, alert := range alerts {
		text += fmt.Sprintf("      - expr: count(ALERTS{alertname=%q,alertstate=\"firing\"} > 0 or vector(0) > 0) > bool 0 or vector(0)\n        eval_time: 110m\n        exp_samples: [{labels: '{}', value: %d}]\n", alert, want)
	}
	file := filepath.Join(d.t.(*testing.T).TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "test", "rules", file).CombinedOutput(); err != nil {
		d.t.Errorf("alerts %v, want firing %t: %v\n%s", alerts, fire, err, out)
	}
}

// evaluated has the alerts that were evaluated at level test.
var evaluated sync.Map

// sample matches a line of a page of metrics.
var sample = regexp.MustCompile(`(?m)^(holdfast_\w+)(?:\{(.*)\})? (\S+)$`)

// series returns the samples of a page as series for promtool.
func series(t testing.TB, before, page string) (text string) {
	t.Helper()
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	was := make(map[string]float64)
	for _, m := range sample.FindAllStringSubmatch(before, -1) {
		was[m[1]+m[2]] = number(m[3])
	}
	for _, m := range sample.FindAllStringSubmatch(page, -1) {
		v := number(m[3])
		values := strconv.FormatFloat(v, 'f', -1, 64) + "+0x120"
		if first, known := was[m[1]+m[2]]; known && (strings.HasSuffix(m[1], "_total") || strings.HasSuffix(m[1], "_bucket")) {
			values = strconv.FormatFloat(first, 'f', -1, 64) + "+" + strconv.FormatFloat(v-first, 'f', -1, 64) + "x120"
		}
		labels := `instance="a"`
		if m[2] != "" {
			labels += "," + m[2]
		}
		text += fmt.Sprintf("      - {series: '%s{%s}', values: '%s'}\n", m[1], labels, values)
	}
	return text
}

// TestAlertsOfADatabaseThatIsAway verifies that the alerts about a node that cannot reach its database fire.
func TestAlertsOfADatabaseThatIsAway(t *testing.T) {
	testlevel.Long(t)
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		alerts := []string{"HoldfastNotReady", "HoldfastBacklogUnknown", "HoldfastServerErrors"}
		d.ask("GET", "overview", nil, nil)
		before := d.metricsPage()
		d.evaluate(before, false, alerts...)
		if err := d.engine.Close(); err != nil {
			t.Fatal(err)
		}
		d.ask("GET", "overview", nil, nil)
		before = d.metricsPage() // it has the counter of these errors
		for range 5 {
			if resp := d.ask("GET", "overview", nil, nil); resp.StatusCode < 500 {
				t.Fatalf("got status %d, want an error of the server", resp.StatusCode)
			}
		}
		d.evaluate(before, true, alerts...)
	})
}

// TestAlertsOfANode verifies that a node that disappears fires an alert, and one that stops does not.
func TestAlertsOfANode(t *testing.T) {
	testlevel.Long(t)
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		r := engine.Of(d.engine).Reporter()
		r.Start()
		r.Now(t.Context())
		d.evaluate("", false, "HoldfastNodeGone")
		d.advance(2 * time.Minute)
		d.evaluate("", true, "HoldfastNodeGone")
		r.Stop(t.Context())
		d.evaluate("", false, "HoldfastNodeGone")
	})
}

// TestAlertsOfWork verifies that work that waits, leases that expire, late holders and retries fire alerts.
func TestAlertsOfWork(t *testing.T) {
	testlevel.Long(t)
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		late := []string{"HoldfastWorkOverdue", "HoldfastFeedLag"}
		d.worker("Pay", "idempotent")
		d.define(oneTask("pay", "Pay"))
		before := d.metricsPage()
		d.start("pay@1", `{}`)
		d.want(d.ask("POST", "streams/o1/events", `{"events":[{"name":"paid"}]}`, nil), 201, "")
		d.evaluate(before, false, append(late, "HoldfastQueueWait")...)
		d.advance(10 * time.Minute)
		d.evaluate(before, true, late...)
		d.one("Pay")
		d.evaluate(before, true, "HoldfastQueueWait")

		alerts := []string{"HoldfastLeasesExpire", "HoldfastLateHolders", "HoldfastRetries"}
		d.worker("Print", "idempotent")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil), 200, "")
		const items = 10
		var keys []string
		for i := range items {
			keys = append(keys, "k"+strconv.Itoa(i))
		}
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Print", Parallel: items, Items: newItems(1, keys...)}, nil), 201, "")
		round := func() { // each item is claimed, its lease expires, and its worker is late
			all := d.claimItems("Print", items)
			if len(all) != items {
				t.Fatalf("claimed %d items, want %d", len(all), items)
			}
			d.advance(10 * time.Minute)
			d.want(d.ask("POST", "maintenance", nil, nil), 200, "")
			d.advance(10 * time.Minute)
			for _, x := range all {
				d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 409, fault.LeaseLost)
			}
		}
		round()
		before = d.metricsPage()
		d.evaluate(before, false, alerts...)
		round()
		for _, x := range d.claimItems("Print", items) {
			d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no paper"}, nil), 200, "")
		}
		d.advance(10 * time.Minute)
		if again := d.claimItems("Print", items); len(again) != items || again[0].Attempt != 2 {
			t.Fatalf("claimed %+v, want the second attempts", again)
		}
		d.evaluate(before, true, alerts...)
	})
}

// TestAlertsOfQuotas verifies that many requests over a quota fire an alert.
func TestAlertsOfQuotas(t *testing.T) {
	testlevel.Long(t)
	eachTestAPI(t, httpapi.Options{NoKeys: true, Quotas: map[string]httpapi.Quota{"*": {Definitions: 1}}}, func(t *testing.T, d *testAPI) {
		d.worker("Pay", "idempotent")
		before := d.metricsPage()
		refuse := func(n int) {
			for range n {
				d.want(d.ask("PUT", "handlers/Print", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 429, fault.QuotaExceeded)
			}
		}
		refuse(5)
		d.evaluate(before, false, "HoldfastQuotaReached")
		refuse(10)
		d.evaluate(before, true, "HoldfastQuotaReached")
	})
}

// TestAlertsOfThePool verifies that calls that wait long for a connection fire an alert.
func TestAlertsOfThePool(t *testing.T) {
	testlevel.Long(t)
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		wait := func() { // a call waits for a second, because others hold all connections
			var holders sync.WaitGroup
			free := make(chan struct{})
			for range engine.Of(d.engine).Report().Pool.Size + 1 {
				holding := make(chan struct{})
				holders.Go(func() {
					_ = d.engine.Update(context.WithoutCancel(t.Context()), func(context.Context, holdfast.Tx) error { close(holding); <-free; return nil })
				})
				select {
				case <-holding:
					continue
				case <-time.After(time.Second):
				}
				break
			}
			close(free)
			holders.Wait()
		}
		wait() // this also opens the connections, which counts as waiting
		before := d.metricsPage()
		d.evaluate(before, false, "HoldfastPoolWait")
		wait()
		d.evaluate(before, true, "HoldfastPoolWait")
	})
}

// documented are the metrics that docs/monitoring.md describes.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(monitoring)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `(holdfast_\\w+)` \\|").FindAllStringSubmatch(string(text), -1) {
		all[m[1]] = true
	}
	return all
}

// TestMetricsAreDocumented verifies that docs/monitoring.md describes all metrics, and no others.
func TestMetricsAreDocumented(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), elsewhere)
	there, described := d.api.MetricNames(), documented(t)
	if len(there) < 20 {
		t.Fatalf("only %d metrics were found", len(there))
	}
	for _, name := range there {
		if !described[name] {
			t.Errorf("%s does not describe %s", monitoring, name)
		}
		delete(described, name)
	}
	for name := range described {
		t.Errorf("%s describes %s, which does not exist", monitoring, name)
	}
}

// TestRulesAndDashboardUseMetrics verifies that every metric in the alert rules and in the dashboard exists, that a test fires each
// alert, and that each panel has an expression.
func TestRulesAndDashboardUseMetrics(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), elsewhere)
	there := d.api.MetricNames()
	used := regexp.MustCompile(`holdfast_\w+`)
	check := func(where, expr string) {
		t.Helper()
		found := used.FindAllString(expr, -1)
		if len(found) == 0 {
			t.Errorf("%s uses no metric: %q", where, expr)
		}
		for _, name := range found {
			base := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if s := strings.TrimSuffix(name, suffix); slices.Contains(there, s) {
					base = s
				}
			}
			if !slices.Contains(there, base) {
				t.Errorf("%s uses %s, which does not exist", where, name)
			}
		}
	}
	rules, err := os.ReadFile(alertRules)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^ +expr: (.*)$`).FindAllStringSubmatch(string(rules), -1) {
		check(alertRules, m[1])
	}
	fired, err := os.ReadFile("alerts_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range inbox.Kinds {
		fired = fmt.Appendf(fired, "%q", alertOf(k))
	}
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (.*)$`).FindAllStringSubmatch(string(rules), -1) {
		if !strings.Contains(string(fired), strconv.Quote(m[1])) {
			t.Errorf("no test fires %s", m[1])
		}
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile(dashboard)
	if err == nil {
		err = json.Unmarshal(text, &board)
	}
	if err != nil || len(board.Panels) < 10 {
		t.Fatalf("%s has %d panels: %v", dashboard, len(board.Panels), err)
	}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %q has no expression", p.Title)
		}
		for _, x := range p.Targets {
			check("panel "+p.Title, x.Expr)
		}
	}
}

// TestTheBacklogIsMeasuredOnce verifies that scrapes share a measurement.
func TestTheBacklogIsMeasuredOnce(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.define(`{"name":"ask","version":"1","steps":[{"name":"ok","type":"approval","prompt":"?"}]}`)
		d.measured("pendingApproval", 0)
		d.start("ask@1", `{}`)
		d.wantMetrics(`holdfast_inbox_entries{kind="pendingApproval"} 0`)
		d.measured("pendingApproval", 1)
	})
}

// TestWorkIsMetered verifies that waits, durations, retries and expired leases are counted by kind, and refusals by kind and code.
func TestWorkIsMetered(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.worker("Pay", "idempotent")
		d.define(oneTask("pay", "Pay"))
		d.start("pay@1", `{}`)
		d.advance(10 * time.Minute)
		x := d.one("Pay")
		d.wantMetrics(`holdfast_queue_wait_seconds_bucket{kind="step",le="300"} 0`, `holdfast_queue_wait_seconds_bucket{kind="step",le="1800"} 1`)
		d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no"}, nil), 200, "")
		d.advance(10 * time.Minute)
		x = d.one("Pay")
		d.advance(time.Hour)
		d.want(d.ask("POST", "maintenance", nil, nil), 200, "")
		d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 409, fault.LeaseLost)
		d.wantMetrics(`holdfast_retries_total{kind="step"} 1`, `holdfast_lease_expiries_total{kind="step"} 1`, `holdfast_refusals_total{code="LEASE_LOST",kind="run"} 1`)

		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		d.advance(10 * time.Minute)
		d.one("Do")
		d.wantMetrics(`holdfast_queue_wait_seconds_bucket{kind="operation",le="300"} 0`, `holdfast_queue_wait_seconds_bucket{kind="operation",le="1800"} 1`)

		d.running()
		testkit.Eventually(t, "the janitor has run", func() bool { return strings.Contains(d.metricsPage(), `holdfast_sweep_failed{sweep="reactions"} 0`) })
	})
}
