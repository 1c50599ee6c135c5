package httpapi_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/wire"
)

const hostile, other = "hostile", "other"

// in returns the same API in a workspace.
func (d *testAPI) in(workspace string) *testAPI {
	w := *d
	w.header = http.Header{"X-Holdfast-Workspace": {workspace}}
	return &w
}

// eachTenants runs a test with the quotas of one workspace and two callers: one of that workspace, and one of another workspace.
func eachTenants(t *testing.T, q httpapi.Quota, f func(t *testing.T, bad, good *testAPI), parts ...holdfast.Part) {
	t.Helper()
	eachTestAPI(t, httpapi.Options{NoKeys: true, Quotas: map[string]httpapi.Quota{hostile: q}}, func(t *testing.T, d *testAPI) {
		f(t, d.in(hostile), d.in(other))
	}, parts...)
}

// overQuota fails unless a request was refused because of a quota.
func (d *testAPI) overQuota(resp *http.Response, quota string, limit int) wire.Problem {
	d.t.Helper()
	p := d.want(resp, 429, fault.QuotaExceeded)
	if p.Fields["quota"] != quota || p.Fields["limit"] != float64(limit) || !strings.Contains(p.Detail, hostile) {
		d.t.Errorf("got %s with fields %v, want quota %s, limit %d", p.Detail, p.Fields, quota, limit)
	}
	return p
}

// quota returns a quota of the workspace.
func (d *testAPI) quota(name string) wire.Quota {
	d.t.Helper()
	var all wire.List[wire.Quota]
	d.want(d.ask("GET", "quotas", nil, &all), 200, "")
	for _, q := range all.Items {
		if q.Name == name {
			return q
		}
	}
	d.t.Fatalf("there is no quota %s: %+v", name, all)
	return wire.Quota{}
}

func (d *testAPI) startable() {
	d.t.Helper()
	d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
	d.define(oneTask("w", "h"))
}

// TestTheQuotaOfWork verifies that a workspace with as much open work as it may have can start no more, that what was accepted can be
// repeated and ended, and that room is used again.
func TestTheQuotaOfWork(t *testing.T) {
	eachTenants(t, httpapi.Quota{Work: 5}, func(t *testing.T, bad, good *testAPI) {
		bad.startable()
		good.startable()
		var first wire.StartedRun
		keyed := func(d *testAPI, into any) *http.Response {
			return d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "w@1"}, into, "Idempotency-Key", "one")
		}
		bad.want(keyed(bad, &first), 201, "")
		named := wire.StartRun{DefinitionID: "w@1", IdempotencyKey: new("order-1")}
		bad.want(bad.ask("POST", "workflow-runs", named, nil), 201, "")
		startRuns(bad, hostile, 0, 3)
		for range 3 {
			p := bad.overQuota(bad.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "w@1"}, nil), "work", 5)
			if p.Fields["used"] != float64(5) {
				t.Errorf("got used %v, want 5", p.Fields["used"])
			}
		}
		bad.overQuota(bad.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "w@1"}, nil, "Idempotency-Key", "two"), "work", 5)
		bad.overQuota(bad.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "h", Items: newItems(0, "a")}, nil), "work", 5)
		if q := bad.quota("work"); *q.Used != 5 || *q.Limit != 5 || q.PerNode || q.Refused != 5 {
			t.Errorf("got %+v, want 5 of 5 used and 5 refused", q)
		}

		var again wire.StartedRun
		bad.want(keyed(bad, &again), 201, "")
		if again.Run.ID != first.Run.ID {
			t.Errorf("the repetition started run %s, want %s", again.Run.ID, first.Run.ID)
		}
		bad.want(bad.ask("POST", "workflow-runs", named, &again), 200, "")
		if again.Created {
			t.Error("the repetition under the run key started a run")
		}
		startRuns(good, other, 0, 6)

		bad.want(bad.ask("POST", "workflow-runs/"+first.Run.ID+"/cancel", nil, nil), 200, "")
		startRuns(bad, hostile, 0, 1)
		bad.overQuota(bad.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "w@1"}, nil), "work", 5)
		for _, task := range bad.claimItems("h", 10) {
			bad.want(bad.ask("POST", "tasks/"+task.ID+"/complete", wire.CompleteTask{Epoch: task.Epoch, Output: []byte(`{}`)}, nil), 200, "")
		}
		bad.want(bad.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		bad.overQuota(bad.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "h", Items: newItems(0, "a", "b", "c", "d", "e", "f")}, nil), "work", 5)
		bad.want(bad.ask("GET", "batches/b", nil, nil), 404, fault.NotFound)
		whole := wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "h", Open: true, Items: newItems(0, "a", "b", "c", "d")}
		bad.want(bad.ask("POST", "batches", whole, nil), 201, "")
		bad.overQuota(bad.ask("POST", "batches/b/items", wire.AddItems{Items: newItems(0, "e", "f")}, nil), "work", 5)
		bad.want(bad.ask("POST", "batches/b/items", wire.AddItems{Items: newItems(0, "e")}, nil), 200, "")
		bad.want(bad.ask("POST", "batches", whole, nil), 409, fault.Conflict) // as without a quota
		bad.want(bad.ask("POST", "batches/b/cancel", nil, nil), 200, "")
		startRuns(bad, hostile, 0, 5)
	})
}

// TestStepsAndClaimsAreWork verifies that operations of entities count, and that a fired step that has begun is answered under its key.
func TestStepsAndClaimsAreWork(t *testing.T) {
	eachTenants(t, httpapi.Quota{Work: 1}, func(t *testing.T, bad, _ *testAPI) {
		for _, id := range []string{"i1", "i2"} {
			bad.want(bad.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: &id}, nil), 201, "")
		}
		var claimed wire.Claimed
		claim := func(id string, into any) *http.Response {
			return bad.ask("POST", "lifecycles/invoice/entities/"+id+"/claims", wire.NewClaim{StepKey: "close", Requester: "admin"}, into, "Idempotency-Key", id)
		}
		bad.want(claim("i1", &claimed), 201, "")
		bad.overQuota(claim("i2", nil), "work", 1)
		bad.overQuota(bad.ask("POST", "lifecycles/invoice/entities/i2/steps/close", wire.Fire{Requester: "admin"}, nil), "work", 1)
		var again wire.Claimed
		bad.want(claim("i1", &again), 201, "")
		bad.want(bad.ask("POST", "claims/"+claimed.Claim.Token+"/release", nil, nil), 200, "")
		bad.want(claim("i2", nil), 201, "")
		bad.overQuota(claim("i1", nil), "work", 1) // the key of a released operation begins another one
	}, invoices(nil))
}

// TestFailedRequestsTakeNothing verifies that requests that fail, panic, or whose clients go away take no room for good, and give none that
// there is not.
func TestFailedRequestsTakeNothing(t *testing.T) {
	boom := invoices(func(context.Context, *lifecycle.Act[json.RawMessage]) error { panic("boom") })
	eachTenants(t, httpapi.Quota{Work: 3}, func(t *testing.T, bad, _ *testAPI) {
		bad.startable()
		for i := range 5 {
			id := fmt.Sprint("i", i)
			bad.want(bad.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: &id}, nil), 201, "")
			if resp := bad.ask("POST", "lifecycles/invoice/entities/"+id+"/steps/close", wire.Fire{Requester: "admin"}, nil); resp.StatusCode == 429 {
				t.Fatalf("call %d: %s", i, textOf(resp))
			}
			bad.want(bad.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "none@1"}, nil), 404, fault.NotFound)
		}
		open := *bad.quota("work").Used
		startRuns(bad, hostile, 0, int(3-open))
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			var clients sync.WaitGroup
			gone := make(chan struct{}, 24)
			for range cap(gone) {
				clients.Go(func() {
					r, _ := http.NewRequestWithContext(ctx, "POST", bad.url+"/api/v1/workflow-runs", strings.NewReader(`{"definitionId":"w@1"}`))
					r.Header = http.Header{"X-Holdfast-Workspace": {hostile}, "Content-Type": {"application/json"}}
					if resp, err := bad.client.Do(r); err == nil {
						_ = resp.Body.Close()
					}
					gone <- struct{}{}
				})
			}
			<-gone // the others are at work, or wait for a count
			cancel()
			clients.Wait()
		}
		for range 20 {
			bad.overQuota(bad.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "w@1"}, nil), "work", 3)
		}
	}, boom)
}

// TestBulksAndTheQuotaOfWork verifies that a bulk that ends work is accepted at the limit, and that one that retries runs needs room for them.
func TestBulksAndTheQuotaOfWork(t *testing.T) {
	eachTenants(t, httpapi.Quota{Work: 3}, func(t *testing.T, bad, _ *testAPI) {
		bad.startable()
		no := false
		for range 2 {
			startRuns(bad, hostile, 0, 3)
			for _, task := range bad.claimItems("h", 10) {
				bad.want(bad.ask("POST", "tasks/"+task.ID+"/fail", wire.FailTask{Epoch: task.Epoch, Message: "x", Retryable: &no}, nil), 200, "")
			}
		}
		all := wire.BulkFilter{}
		bad.overQuota(bad.ask("POST", "bulk", wire.NewBulk{Action: "run.retry", Filter: &all}, nil), "work", 3)
		bad.want(bad.ask("POST", "bulk", wire.NewBulk{Action: "run.retry", Filter: &all, DryRun: true}, nil), 200, "")
		startRuns(bad, hostile, 0, 3)
		bad.want(bad.ask("POST", "bulk", wire.NewBulk{Action: "run.cancel", Filter: &all}, nil), 202, "")
	})
}

// TestEmptyBatchesAreWork verifies that a batch without items counts as one.
func TestEmptyBatchesAreWork(t *testing.T) {
	eachTenants(t, httpapi.Quota{Work: 2}, func(t *testing.T, bad, _ *testAPI) {
		bad.startable()
		bad.want(bad.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		batch := func(id string) *http.Response {
			return bad.ask("POST", "batches", wire.NewBatch{ID: &id, Wallet: "w", Handler: "h", Open: true}, nil)
		}
		bad.want(batch("a"), 201, "")
		bad.want(batch("b"), 201, "")
		bad.overQuota(batch("c"), "work", 2)
	})
}

// TestExpiredKeysAreNoDefinitions verifies that only valid API keys count.
func TestExpiredKeysAreNoDefinitions(t *testing.T) {
	eachTestAPI(t, httpapi.Options{Quotas: map[string]httpapi.Quota{hostile: {Definitions: 2}}}, func(t *testing.T, d *testAPI) {
		_, text := d.newKey(hostile, keys.Admin, 0)
		d.newKey(hostile, keys.Read, time.Minute)
		bad := d.as(text)
		bad.overQuota(bad.ask("POST", "keys", wire.NewKey{Role: "read"}, nil), "definitions", 2)
		d.advance(48 * time.Hour)
		for bad.ask("POST", "keys", wire.NewKey{Role: "read"}, nil).StatusCode != 201 { // an expiry is noticed by the next count
		}
	})
}

// TestAKeyOverItsRateLeavesTheOthersTheirs verifies that requests that the rate limit of a key refuses do not use up the quota of the workspace.
func TestAKeyOverItsRateLeavesTheOthersTheirs(t *testing.T) {
	eachTestAPI(t, httpapi.Options{Rate: 1, Quotas: map[string]httpapi.Quota{hostile: {Requests: 5}}}, func(t *testing.T, d *testAPI) {
		_, one := d.newKey(hostile, keys.Read, 0)
		_, two := d.newKey(hostile, keys.Read, 0)
		for range 50 {
			d.as(one).ask("GET", "session", nil, nil)
		}
		d.want(d.as(two).ask("GET", "session", nil, nil), 200, "")
	})
}

// TestManyCallersGetWhatTheQuotaHas verifies that of many concurrent callers exactly as many are accepted as there is room for, in each
// round, and that no room is lost.
func TestManyCallersGetWhatTheQuotaHas(t *testing.T) {
	const room, callers, rounds = 7, 32, 4
	eachTenants(t, httpapi.Quota{Work: room}, func(t *testing.T, bad, _ *testAPI) {
		bad.startable()
		for range rounds {
			var started atomic.Int64
			ids := make(chan string, callers)
			_, _ = holdfasttest.Race(t, callers, func(int) error {
				var s wire.StartedRun
				resp := bad.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "w@1"}, &s)
				if resp.StatusCode == 201 {
					started.Add(1)
					ids <- s.Run.ID
					return nil
				}
				if resp.StatusCode != 429 {
					t.Errorf("got %s", textOf(resp))
				}
				return fault.Of(fault.QuotaExceeded)
			})
			close(ids)
			if started.Load() != room {
				t.Fatalf("%d runs were started, want %d", started.Load(), room)
			}
			for id := range ids {
				bad.want(bad.ask("POST", "workflow-runs/"+id+"/cancel", nil, nil), 200, "")
			}
		}
	})
}

// TestTheQuotaOfDefinitions verifies that a workspace can define only so much, but can change and delete what it has.
func TestTheQuotaOfDefinitions(t *testing.T) {
	eachTenants(t, httpapi.Quota{Definitions: 3}, func(t *testing.T, bad, good *testAPI) {
		bad.startable()
		good.startable()
		bad.want(bad.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"paid"}}, nil), 201, "")
		bad.overQuota(bad.ask("PUT", "handlers/h2", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), "definitions", 3)
		bad.overQuota(bad.ask("PUT", "reactions/r2", wire.PutReaction{Events: []string{"paid"}}, nil), "definitions", 3)
		bad.overQuota(bad.ask("POST", "workflow-definitions", oneTask("w2", "h"), nil), "definitions", 3)
		bad.overQuota(bad.ask("POST", "keys", wire.NewKey{Role: "read"}, nil), "definitions", 3)
		bad.overQuota(bad.ask("PUT", "lifecycles/invoice", invoiceConfig, nil), "definitions", 3)
		bad.want(bad.ask("POST", "workflow-definitions?dryRun=true", oneTask("w2", "h"), nil), 200, "")
		bad.want(bad.ask("POST", "workflow-definitions", oneTask("w", "h"), nil), 200, "")
		bad.want(bad.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker", Safety: "idempotent", TimeoutMs: 1000}, nil), 200, "")
		bad.want(bad.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"paid", "sent"}}, nil), 200, "")
		good.want(good.ask("PUT", "handlers/h2", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
		good.define(oneTask("w2", "h"))
		bad.want(bad.ask("DELETE", "reactions/r", nil, nil), 204, "")
		bad.want(bad.ask("PUT", "handlers/h2", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
		if q := bad.quota("definitions"); *q.Used != 3 {
			t.Errorf("got %+v, want 3 used", q)
		}
	})
}

// TestTheQuotaOfConnections verifies that event streams and waiting requests share the quota, and that a step that was fired is not
// refused because nobody may wait for it.
func TestTheQuotaOfConnections(t *testing.T) {
	eachTenants(t, httpapi.Quota{Connections: 2}, func(t *testing.T, bad, good *testAPI) {
		bad.startable()
		streams := []*listener{bad.listen("live?watch=runs", "X-Holdfast-Workspace", hostile), bad.listen("events", "X-Holdfast-Workspace", hostile)}
		p := bad.ask("GET", "events", nil, nil, "Accept", "text/event-stream")
		bad.overQuota(p, "connections", 2)
		if p.Header.Get("Retry-After") == "" {
			t.Error("there is no Retry-After")
		}
		wait := wire.Millis(20_000)
		waiting := wire.ClaimTasks{Worker: "w", Handlers: []string{"h"}, WaitMs: &wait}
		bad.overQuota(bad.ask("POST", "tasks/claim", waiting, nil), "connections", 2)
		startRuns(bad, hostile, 0, 1)
		bad.want(bad.ask("POST", "tasks/claim", waiting, nil), 200, "") // there is a task, so it does not wait
		if q := bad.quota("connections"); *q.Used != 2 || !q.PerNode || q.Refused != 2 {
			t.Errorf("got %+v, want 2 used and 2 refused", q)
		}
		good.listen("events", "X-Holdfast-Workspace", other).stop()

		streams[0].stop()
		for *bad.quota("connections").Used > 1 { // the server notices soon that the client has gone
		}
		wait = 20
		bad.want(bad.ask("POST", "tasks/claim", waiting, nil), 200, "") // nothing is due, so it waits
		if q := bad.quota("connections"); *q.Used != 1 {
			t.Errorf("got %+v after the claim, want 1 used", q)
		}
	})
}

// TestTheQuotaOfRequests verifies that all callers of a workspace share the quota of requests, whichever keys they have.
func TestTheQuotaOfRequests(t *testing.T) {
	eachTestAPI(t, httpapi.Options{Quotas: map[string]httpapi.Quota{hostile: {Requests: 3}}}, func(t *testing.T, d *testAPI) {
		key := func(in string) string {
			_, text := d.newKey(in, keys.Read, 0)
			return text
		}
		refused, all := 0, make([]*testAPI, 12)
		for i := range all {
			all[i] = d.as(key(hostile))
		}
		for _, bad := range all {
			if resp := bad.ask("GET", "session", nil, nil); resp.StatusCode == 429 {
				bad.overQuota(resp, "requests", 3)
				if resp.Header.Get("Retry-After") == "" {
					t.Error("there is no Retry-After")
				}
				refused++
			}
		}
		if refused == 0 {
			t.Error("no request was refused")
		}
		for resp := all[0].ask("POST", "nothing", nil, nil); resp.StatusCode != 429; resp = all[0].ask("POST", "nothing", nil, nil) {
			all[0].want(resp, 404, fault.NotFound) // requests that fail count, too
		}
		good := d.as(key(other))
		for range 20 {
			good.want(good.ask("GET", "session", nil, nil), 200, "")
		}
	})
}

// TestTheQuotaOfStorage verifies that a workspace that stores too much can store no more until it deletes something.
func TestTheQuotaOfStorage(t *testing.T) {
	const limit = 200_000
	eachTenants(t, httpapi.Quota{Storage: limit}, func(t *testing.T, bad, good *testAPI) {
		event := `{"events":[{"name":"n","data":{"text":"` + noise(20_000) + `"}}]}`
		n := 0
		for ; n < 20; n++ {
			if resp := bad.ask("POST", "streams/s/events", event, nil); resp.StatusCode != 201 {
				bad.overQuota(resp, "storage", limit)
				break
			}
			good.want(good.ask("POST", "streams/s/events", event, nil), 201, "")
		}
		if n < 5 || n > 11 {
			t.Errorf("%d events of 20 kB were accepted, want about 10", n)
		}
		bad.overQuota(bad.ask("PUT", "scopes/cart/c", `{"a":"`+noise(20_000)+`"}`, nil), "storage", limit)
		good.want(good.ask("PUT", "scopes/cart/c", `{"a":1}`, nil), 200, "")
		bad.want(bad.ask("POST", "streams/s/truncate", wire.TruncateStream{Before: int64(n - 1)}, nil), 200, "")
		holdfasttest.Advance(t, bad.engine, time.Hour) // events are deleted some time after their truncation
		bad.want(bad.ask("POST", "maintenance", nil, nil), 200, "")
		deadline := time.Now().Add(time.Minute)
		for bad.ask("POST", "streams/s/events", event, nil).StatusCode != 201 {
			if time.Now().After(deadline) {
				q := bad.quota("storage")
				t.Fatalf("nothing is accepted although events were deleted: %d of %d bytes are used", *q.Used, *q.Limit)
			}
		}
		if q := bad.quota("storage"); q.Used == nil || *q.Used < 20_000 || *q.Used > limit {
			t.Errorf("got %+v, want between 20 kB and the limit", q)
		}
	})
}

// TestQuotasOfAllWorkspaces verifies that a workspace gets its own limits, those for all, and the defaults, in this order.
func TestQuotasOfAllWorkspaces(t *testing.T) {
	quotas := map[string]httpapi.Quota{"*": {Work: 7, Requests: -1}, hostile: {Work: -1, Definitions: 9}}
	eachTestAPI(t, httpapi.Options{NoKeys: true, Quotas: quotas}, func(t *testing.T, d *testAPI) {
		for workspace, want := range map[string]string{hostile: "<nil> 1000 <nil> <nil> 9", other: "<nil> 1000 7 <nil> 10000"} {
			var all wire.List[wire.Quota]
			d.want(d.in(workspace).ask("GET", "quotas", nil, &all), 200, "")
			var got []string
			for _, q := range all.Items {
				text := "<nil>"
				if q.Limit != nil {
					text = fmt.Sprint(*q.Limit)
				}
				got = append(got, text)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: got %v, want %s", workspace, got, want)
			}
		}
		var page wire.List[wire.Quota]
		d.want(d.ask("GET", "quotas?limit=2", nil, &page), 200, "")
		if len(page.Items) != 2 || page.Next == nil {
			t.Fatalf("got %+v, want two and a next page", page)
		}
		d.want(d.ask("GET", "quotas?limit=9&cursor="+*page.Next, nil, &page), 200, "")
		if len(page.Items) != 3 || page.Next != nil {
			t.Errorf("got %+v, want the other three", page)
		}
	})
}

// TestAHostileTenant verifies that a workspace that sends as many requests as it can, over all of its quotas, is refused, while every request of
// another workspace succeeds.
func TestAHostileTenant(t *testing.T) {
	q := httpapi.Quota{Requests: 200, Work: 10, Storage: 100_000, Definitions: 5, Connections: 3}
	eachTenants(t, q, func(t *testing.T, bad, good *testAPI) {
		bad.startable()
		good.startable()
		stop := make(chan struct{})
		var attackers sync.WaitGroup
		var refused atomic.Int64
		for i := range 8 {
			attackers.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					attacks := []func() *http.Response{
						func() *http.Response {
							return bad.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "w@1"}, nil)
						},
						func() *http.Response {
							return bad.ask("POST", fmt.Sprintf("streams/s%d/events", i), `{"events":[{"name":"n","data":{"text":"`+strings.Repeat("x", 10_000)+`"}}]}`, nil)
						},
						func() *http.Response {
							return bad.ask("PUT", fmt.Sprintf("handlers/h%d-%d", i, n), wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil)
						},
					}
					if attacks[n%len(attacks)]().StatusCode == 429 {
						refused.Add(1)
					}
				}
			})
		}
		for n := range 50 {
			startRuns(good, other, 0, 1)
			good.want(good.ask("POST", fmt.Sprintf("streams/s%d/events", n), `{"events":[{"name":"n"}]}`, nil), 201, "")
		}
		close(stop)
		attackers.Wait()
		if refused.Load() == 0 {
			t.Error("no request of the hostile workspace was refused")
		}
		counts := quota.New(t.Context(), store.DoerOf(bad.engine), slog.New(slog.DiscardHandler), nil) // without its quota of requests
		for _, u := range counts.Uses(holdfast.InWorkspace(t.Context(), hostile)) {
			if most := map[quota.Kind]int64{quota.Work: 10, quota.Definitions: 5}[u.Kind]; most > 0 && u.Used > most {
				t.Errorf("the hostile workspace has %d of %d: %s", u.Used, most, u.Kind)
			}
		}
		if q := bad.in(other).quota("work"); *q.Used != 50 || q.Refused != 0 {
			t.Errorf("the other workspace has %+v, want 50 runs and nothing refused", q)
		}
	})
}

// noise returns n characters that a database cannot compress.
func noise(n int) string {
	text := make([]byte, n/2)
	_, _ = rand.NewChaCha8([32]byte{}).Read(text)
	return hex.EncodeToString(text)
}

// TestEveryRouteThatAddsHasAQuota verifies that each route that writes either takes from a quota, or is one of those that must never be refused by
// one, because they end work, make room, or let work that has begun go on.
func TestEveryRouteThatAddsHasAQuota(t *testing.T) {
	exempt := strings.Fields(`decideApproval sealBatch cancelBatch acceptItems cancelBulk renewClaim settleClaim releaseClaim journalEffect resolveOperation releaseOperation withdrawOperation
		acknowledgeContradictions deleteHandler runMaintenance rotateKey revokeKey deleteReaction claimLeases ackLeases failLease snoozeLease renewLease unblockReactions skipReactions resetReactions
		cancelRun pauseRun resumeRun deleteScope deleteScopeRecord deleteSecret createSession deleteSession closeStream truncateStream claimTasks completeTask failTask snoozeTask renewTask
		journalTaskEffect rotateWebhook deleteWebhook createWorkspace`)
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{})
	for _, r := range d.api.Routes() {
		if r.Method == http.MethodGet {
			continue
		}
		i := slices.Index(exempt, r.ID)
		switch {
		case i < 0 && len(r.Adds) == 0:
			t.Errorf("%s %s has no quota: set Adds, or list it here if it ends work or makes room", r.Method, r.Path)
		case i >= 0 && len(r.Adds) > 0:
			t.Errorf("%s %s is listed here, but takes from %v", r.Method, r.Path, r.Adds)
		case i >= 0:
			exempt = slices.Delete(exempt, i, i+1)
		}
	}
	if len(exempt) > 0 {
		t.Errorf("these routes do not exist: %v", exempt)
	}
}
