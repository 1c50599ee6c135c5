package httpapi_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/wire"
)

// found searches, and returns the matches as "kind id" or, of a kind, only the ids.
func (d *testAPI) found(q, kind string) (all []string, got wire.Matches) {
	d.t.Helper()
	path := "search?q=" + url.QueryEscape(q)
	if kind != "" {
		path += "&kind=" + kind
	}
	d.want(d.ask("GET", path, nil, &got), 200, "")
	for _, m := range got.Matches {
		if kind == "" {
			m.ID = m.Kind + " " + m.ID
		}
		all = append(all, m.ID)
	}
	return all, got
}

// TestFind verifies that objects of every kind are found by the beginning of their ids, keys and names, exact matches first, with
// a route that shows them; that letters differ by case; and that other workspaces, and other roles with stored requests, find nothing.
func TestFind(t *testing.T) {
	o := hooked
	o.NoKeys = false
	eachTestAPI(t, o, func(t *testing.T, d *testAPI) {
		_, secret := d.newKey("default", keys.Admin, 0)
		_, operator := d.newKey("default", keys.Operate, 0)
		_, elsewhere := d.newKey("other", keys.Admin, 0)
		anonymous, d := d, d.as(secret)
		for _, id := range []string{"zz-1", "zz-2", "ZZ-1", "z"} {
			d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new(id)}, nil, "Idempotency-Key", "made-"+id), 201, "")
		}
		d.want(d.ask("PUT", "handlers/zz-h", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "lifecycles/zz-l", `{"workflow": "zz-l", "owning_module": "m", "initial_status": "a", "status_types": ["a", "b"],
			"steps": [{"step_id": 1, "step_key": "go", "status": "a", "successful_state": "b"}]}`, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("zz-d", "zz-h"), nil), 201, "")
		var run wire.StartedRun
		d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "zz-d@1", IdempotencyKey: new("zz-key")}, &run), 201, "")
		d.want(d.ask("PUT", "wallets/zz-w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("zz-b"), Wallet: "zz-w", Handler: "zz-h"}, nil), 201, "")
		d.want(d.ask("POST", "streams/zz-s/events", `{"events":[{"name":"a"}]}`, nil), 201, "")
		d.want(d.ask("PATCH", "scopes/user/zz-u", `{"a":1}`, nil), 200, "")
		d.want(d.ask("PATCH", "scopes/user/zz-gone", `{"a":1}`, nil), 200, "")
		d.want(d.ask("DELETE", "scopes/user/zz-gone", nil, nil), 200, "")
		d.want(d.ask("PUT", "reactions/zz-r", `{"events":["*"]}`, nil), 201, "")
		var hook wire.CreatedWebhook
		d.want(d.ask("POST", "webhooks", `{"url":"http://127.0.0.1:1/","name":"zz-hook"}`, &hook), 201, "")
		var claimed wire.Claimed
		d.want(d.ask("POST", "lifecycles/invoice/entities/zz-1/claims", exampleBodies["claimStep"], &claimed), 201, "")
		operation := claimed.Entity.Claim.Operation

		for _, x := range []struct{ q, kind, want string }{
			{"zz-", "", "entity zz-1,entity zz-2,run " + run.Run.ID + ",batch zz-b,stream zz-s,wallet zz-w,scope zz-u,handler zz-h,reaction zz-r,lifecycle zz-l,definition zz-d@1"},
			{"zz-1", "", "entity zz-1"},
			{"ZZ-", "", "entity ZZ-1"},
			{"invoice/zz-", "", "entity zz-1,entity zz-2"},
			{"user/zz", "", "scope zz-u"},
			{"zz-key", "", "run " + run.Run.ID},
			{run.Run.ID, "", "run " + run.Run.ID},
			{run.Run.ID[:6], "run", run.Run.ID},
			{"run", "run", run.Run.ID},
			{operation, "", "operation " + operation},
			{operation[:10], "operation", operation},
			{hook.ID, "", "webhook " + hook.ID},
			{hook.ID[:9], "webhook", hook.ID},
			{"made-zz-1", "", "request made-zz-1"},
			{"made-zz", "", ""},
			{"zz-", "batch,wallet", "zz-b,zz-w"},
			{"nothing", "", ""},
			{"$$", "", ""},
			{"\U0010ffff\U0010ffff", "", ""},
			{strings.Repeat("x", 600), "", ""},
			{"a/b?c#d%", "", ""},
		} {
			got, all := d.found(x.q, x.kind)
			if strings.Join(got, ",") != x.want || len(all.More) > 0 {
				t.Errorf("search for %q of %q: got %q, more %v, want %q", x.q, x.kind, got, all.More, x.want)
			}
			for _, m := range all.Matches {
				d.want(d.ask("GET", strings.TrimPrefix(m.Route, "/api/v1/"), nil, nil), 200, "")
				if exact := m.ID == x.q || m.Name == x.q; exact != m.Exact {
					t.Errorf("search for %q: got %+v, want exact %v", x.q, m, exact)
				}
			}
			other := anonymous.as(elsewhere)
			if got, _ := other.found(x.q, x.kind); len(got) > 0 {
				t.Errorf("search for %q in another workspace: got %q", x.q, got)
			}
		}
		_, got := d.found("zz-1", "entity")
		want := wire.Match{Kind: "entity", ID: "zz-1", Lifecycle: "invoice", Status: "closing", Exact: true, Route: "/api/v1/lifecycles/invoice/entities/zz-1"}
		if len(got.Matches) != 1 || got.Matches[0] != want {
			t.Errorf("got %+v, want %+v", got.Matches, want)
		}
		caller := anonymous.as(operator)
		if got, _ := caller.found("made-zz-1", ""); len(got) > 0 {
			t.Errorf("an operator found the stored request %q", got)
		}
		d.want(d.ask("POST", "operations/"+operation+"/release", wire.ReleaseOperation{}, nil), 200, "")
		var ended wire.Operation
		d.want(d.ask("GET", "operations/"+operation, nil, &ended), 200, "")
		if ended.State != "ended" || ended.Subject != "invoice/zz-1" || ended.Handler != "Close" || ended.Ended == nil || ended.Ended.Name != "released" || ended.Since == nil {
			t.Errorf("got %+v", ended)
		}
		if got, _ := d.found(operation, "operation"); !slices.Equal(got, []string{operation}) {
			t.Errorf("got %q, want the ended operation", got)
		}
		if got, _ := anonymous.as(elsewhere).found(operation, "operation"); len(got) > 0 {
			t.Errorf("another workspace got %q", got)
		}
		for _, bad := range []string{"search", "search?q=", "search?q=x", "search?q=%C3%A4", "search?q=xx&kind=cat", "search?q=xx&limit=5", "search?q=a%00b"} {
			d.want(d.ask("GET", bad, nil, nil), 400, fault.Validation)
		}
	}, invoices(nil))
}

// TestFindMany verifies that of many matches ten are returned, the exact one first, and that the kind is marked.
func TestFindMany(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		for i := range 12 {
			id := fmt.Sprintf("xx-%d", i)
			d.want(d.ask("PUT", "wallets/"+id, wire.PutWallet{}, nil), 200, "")
			d.want(d.ask("PATCH", "scopes/user/"+id, `{"a":1}`, nil), 200, "")
			d.want(d.ask("POST", "streams/"+id+"/events", `{"events":[{"name":"a"}]}`, nil), 201, "")
			d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: &id}, nil), 201, "")
		}
		got, all := d.found("xx-1", "")
		if len(got) != 3*4 || len(all.More) > 0 || strings.Join(got[:4], ",") != "entity xx-1,stream xx-1,wallet xx-1,scope xx-1" {
			t.Errorf("got %q, more %q, want the exact ones first", got, all.More)
		}
		got, all = d.found("xx-", "")
		if len(got) != 4*10 || !slices.Equal(all.More, []string{"entity", "stream", "wallet", "scope"}) {
			t.Errorf("got %d matches, more %q, want ten of each kind", len(got), all.More)
		}
	}, invoices(nil))
}

// listedIDs returns the ids of all pages of a list.
func listedIDs[T any](d *testAPI, path string, id func(T) string) string {
	d.t.Helper()
	var all []string
	for _, x := range pagesOf[T](d, path) {
		all = append(all, id(x))
	}
	return strings.Join(all, ",")
}

// TestListsAreSearched verifies the filters of lists by what no index has: all pages together have what matches, and a page reads
// a bounded number of rows, so it may be empty and still have a next one.
func TestListsAreSearched(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		const perPage = httpapi.SearchedRows
		for i := range perPage + 10 {
			status := "open"
			if i == perPage+5 {
				status = "void"
			}
			d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new(fmt.Sprintf("e%03d", i)), Status: status}, nil), 201, "")
		}
		const list = "lifecycles/invoice/entities?limit=10"
		var page wire.List[wire.Entity]
		d.want(d.ask("GET", list+"&status=void", nil, &page), 200, "")
		if len(page.Items) > 0 || page.Next == nil {
			t.Errorf("got a page of %d, next %v, want an empty page with a next one", len(page.Items), page.Next)
		}
		entity := func(e wire.Entity) string { return e.ID }
		if got := listedIDs(d, list+"&status=void", entity); got != fmt.Sprintf("e%03d", perPage+5) {
			t.Errorf("entities that are void: %q", got)
		}
		if got := listedIDs(d, list+"&status=open", entity); strings.Count(got, ",") != perPage+8 {
			t.Errorf("entities that are open: %q", got)
		}
		holdfasttest.Advance(t, d.engine, 20*time.Minute)
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("late")}, &page), 201, "")
		var e wire.Entity
		d.want(d.ask("GET", "lifecycles/invoice/entities/late", nil, &e), 200, "")
		recent := url.QueryEscape(e.CreatedAt.Add(-time.Minute).Format(time.RFC3339))
		for query, want := range map[string]string{"&since=" + recent: "late", "&updatedSince=" + recent: "late", "&updatedUntil=" + recent + "&status=void": fmt.Sprintf("e%03d", perPage+5), "&status=gone": ""} {
			if got := listedIDs(d, list+query, entity); got != want {
				t.Errorf("entities with %q: got %q, want %q", query, got, want)
			}
		}
		if got := listedIDs(d, list+"&until="+recent, entity); strings.Contains(got, "late") || strings.Count(got, ",") != perPage+9 {
			t.Errorf("entities created before: %q", got)
		}
		for _, bad := range []string{"since=x", "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "updatedSince=2026-01-02T00:00:00Z&updatedUntil=2026-01-01T00:00:00Z"} {
			for _, path := range []string{"lifecycles/invoice/entities", "workflow-runs", "batches"} {
				d.want(d.ask("GET", path+"?"+bad, nil, nil), 400, fault.Validation)
			}
		}
	}, invoices(nil))
}

// TestRunsAndBatchesAreSearched verifies the filters of runs, batches and operations, and the order of batches.
func TestRunsAndBatchesAreSearched(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		for _, h := range []string{"A", "B"} {
			d.want(d.ask("PUT", "handlers/"+h, wire.PutHandler{Kind: "worker", Safety: "opaque", OnUnknown: "retry"}, nil), 201, "")
			d.want(d.ask("POST", "workflow-definitions", oneTask("on"+h, h), nil), 201, "")
		}
		runs := make(map[string]string) // by key
		for i := range 3 * httpapi.SearchScan {
			h := string("AB"[i%2])
			var s wire.StartedRun
			key := fmt.Sprintf("k%d", i)
			if d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "on" + h + "@1", IdempotencyKey: &key}, &s), 201, ""); i > 5 {
				d.want(d.ask("POST", "workflow-runs/"+s.Run.ID+"/cancel", nil, nil), 200, "")
			}
			runs[s.Run.ID] = key
		}
		run := func(r wire.Run) string { return runs[r.ID] }
		past, future := url.QueryEscape(time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)), url.QueryEscape(time.Now().Add(48*time.Hour).UTC().Format(time.RFC3339))
		for query, want := range map[string]string{
			"":                                     "k8,k7,k6,k5,k4,k3,k2,k1,k0",
			"&handler=A":                           "k8,k6,k4,k2,k0",
			"&status=CANCELLED":                    "k8,k7,k6",
			"&status=CANCELLED&handler=B":          "k7",
			"&status=WAITING&handler=B":            "",
			"&definitionId=onB@1":                  "k7,k5,k3,k1",
			"&step=do&handler=B":                   "k7,k5,k3,k1",
			"&step=other":                          "",
			"&key=k3":                              "k3",
			"&key=k3&handler=A":                    "",
			"&key=k":                               "",
			"&since=" + past + "&until=" + future:  "k8,k7,k6,k5,k4,k3,k2,k1,k0",
			"&until=" + past:                       "",
			"&updatedSince=" + future:              "",
			"&updatedSince=" + past + "&handler=B": "k7,k5,k3,k1",
			"&status=PENDING&since=" + past + "&handler=B": "k5,k3,k1",
		} {
			for _, limit := range []string{"2", "100"} {
				if got := listedIDs(d, "workflow-runs?limit="+limit+query, run); got != want {
					t.Errorf("runs with %q, %s a page: got %q, want %q", query, limit, got, want)
				}
			}
		}
		holdfasttest.Advance(t, d.engine, 30*24*time.Hour) // the database's time differs from that of the ids
		var late wire.StartedRun
		d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "onA@1", IdempotencyKey: new("late")}, &late), 201, "")
		runs[late.Run.ID] = "late"
		if got := listedIDs(d, "workflow-runs?limit=2&since="+future, run); got != "late" {
			t.Errorf("recent runs: got %q", got)
		}

		d.want(d.ask("PUT", "wallets/w1", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("PUT", "wallets/w2", wire.PutWallet{}, nil), 200, "")
		for n := range 3 * httpapi.SearchScan {
			i := 4 * n % (3 * httpapi.SearchScan) // ids are not in the order of time
			holdfasttest.Advance(t, d.engine, time.Second)
			d.want(d.ask("POST", "bulk", wire.NewBulk{Action: "run.cancel", IDs: []string{"r"}}, nil), 202, "") // in no list of batches
			d.want(d.ask("POST", "batches", wire.NewBatch{ID: new(fmt.Sprintf("b%d", i)), Wallet: fmt.Sprintf("w%d", 1+i%2), Handler: string("AB"[i/4%2]), Open: true}, nil), 201, "")
		}
		holdfasttest.Advance(t, d.engine, time.Second)
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("#"), Wallet: "w2", Handler: "A", Open: true}, nil), 201, "") // before the bulks
		d.want(d.ask("POST", "batches/b3/cancel", nil, nil), 200, "")
		batch := func(b wire.Batch) string { return b.ID }
		for query, want := range map[string]string{
			"":                                "#,b0,b1,b2,b3,b4,b5,b6,b7,b8",
			"&backward=true":                  "#,b5,b1,b6,b2,b7,b3,b8,b4,b0",
			"&backward=true&wallet=w2":        "#,b5,b1,b7,b3",
			"&handler=B":                      "b4,b5,b6,b7",
			"&handler=A&wallet=w1":            "b0,b2,b8",
			"&status=CANCELLED":               "b3",
			"&status=CANCELLED&backward=true": "b3",
			"&since=" + future + "&handler=B": "b4,b5,b6,b7",
			"&updatedUntil=" + future:         "",
		} {
			for _, limit := range []string{"1", "2", "100"} {
				if got := listedIDs(d, "batches?limit="+limit+query, batch); got != want {
					t.Errorf("batches with %q, %s a page: got %q, want %q", query, limit, got, want)
				}
			}
		}
		for query, status := range map[string]int{"batches?status=x": 400, "workflow-runs?status=x": 400, "batches?order=desc": 400} {
			d.want(d.ask("GET", query, nil, nil), status, fault.Validation)
		}
	})
}

// TestASearchEndsInTime verifies that a page of a search that takes too long runs no further statement, and that the next page continues.
func TestASearchEndsInTime(t *testing.T) {
	before := httpapi.SearchFor(0)
	t.Cleanup(func() { httpapi.SearchFor(before) })
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		const jobs = 3 * httpapi.SearchScan
		for i := range jobs {
			d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: new(fmt.Sprint("x", i))}, nil), 201, "")
			d.want(d.ask("POST", fmt.Sprintf("lifecycles/job/entities/x%d/steps/do?waitMs=0", i), wire.Fire{Requester: "admin"}, nil), 202, "")
		}
		var many []string
		for range 3000 {
			many = append(many, `{"name":"x"}`)
		}
		for i := range 3 {
			d.want(d.ask("POST", "streams/long/events", `{"events":[`+strings.Join(many[i*1000:(i+1)*1000], ",")+`]}`, nil), 201, "")
		}
		d.numbered(3000)
		for path, statements := range map[string]int{
			"lifecycles/job/entities?status=none": (jobs + 1 + httpapi.SearchScan - 1) / httpapi.SearchScan,
			"operations?handler=none&limit=3":     jobs / 3,
			"events/search?name=none&stream=long": 3,
			"events/search?name=none":             3,
		} {
			pages := 0
			for next := ""; ; pages++ {
				var l wire.List[map[string]any]
				d.want(d.ask("GET", path+next, nil, &l), 200, "")
				if len(l.Items) > 0 {
					t.Errorf("%s: got %+v", path, l.Items)
				}
				if l.Next == nil {
					break
				}
				next = "&cursor=" + *l.Next
			}
			if pages+1 < statements {
				t.Errorf("%s: got %d pages, want one for each of %d statements", path, pages+1, statements)
			}
		}
	})
}

// TestItemsAreSearched verifies the filter of a batch's items by state, in pages of any size, and that a page reads a bounded number of rows.
func TestItemsAreSearched(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.worker("Print", "idempotent")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil), 200, "")
		var keys []string
		for i := range httpapi.SearchedRows + 2 {
			keys = append(keys, fmt.Sprint("k", i))
		}
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Print", Open: true, Parallel: 2, Items: newItems(1, keys...)}, nil), 201, "")
		if got := d.claimItems("Print", 2); len(got) != 2 {
			t.Fatalf("claimed %+v, want two items", got)
		}
		key := func(x wire.BatchItem) string { return x.Key }
		var page wire.List[wire.BatchItem]
		d.want(d.ask("GET", "batches/b/items?state=failed", nil, &page), 200, "")
		if len(page.Items) > 0 || page.Next == nil {
			t.Errorf("got a page of %d, next %v, want an empty page with a next one", len(page.Items), page.Next)
		}
		for _, limit := range []string{"1", "3", "100"} {
			for query, want := range map[string]string{"": strings.Join(keys, ","), "&state=pending": strings.Join(keys[2:], ","), "&state=running": "k0,k1", "&state=failed": ""} {
				if got := listedIDs(d, "batches/b/items?limit="+limit+query, key); got != want {
					t.Errorf("items with %q, %s a page: got %q, want %q", query, limit, got, want)
				}
			}
		}
		d.want(d.ask("GET", "batches/b/items?state=odd", nil, nil), 400, fault.Validation)
	})
}

// TestApprovalsAreSearched verifies the filter of approvals by status, in pages of any size, and that a page reads a bounded number of
// rows: of many decided ones none is expired.
func TestApprovalsAreSearched(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.define(`{"name":"ask","version":"1","steps":[{"name":"ok","type":"approval","prompt":"?","timeoutMs":3600000}]}`)
		const decided = httpapi.SearchedRows + 2
		var want []string
		for range decided {
			d.start("ask@1", `{}`)
		}
		for _, a := range all[wire.Approval](d, "approvals?status=pending") {
			d.want(d.ask("POST", "approvals/"+a.ID+"/decide", wire.Decide{Decision: "approved"}, nil), 200, "")
			want = append(want, a.ID)
		}
		id := func(a wire.Approval) string { return a.ID }
		var page wire.List[wire.Approval]
		d.want(d.ask("GET", "approvals?status=expired", nil, &page), 200, "")
		if len(page.Items) > 0 || page.Next == nil {
			t.Errorf("got a page of %d, next %v, want an empty page with a next one", len(page.Items), page.Next)
		}
		d.start("ask@1", `{}`)
		pending := listedIDs(d, "approvals?status=pending", id)
		late := d.start("ask@1", `{}`).ID
		d.advance(2 * time.Hour) // no node stores that they expired
		for _, limit := range []string{"1", "7", "100"} {
			for query, want := range map[string]string{"&status=approved": strings.Join(want, ","), "&status=rejected": "", "&status=pending": "", "": strings.Join(want, ",")} {
				got := listedIDs(d, "approvals?limit="+limit+query, id)
				if query == "" {
					got = strings.Join(strings.Split(got, ",")[:decided], ",") // the expired ones are the last
				}
				if got != want {
					t.Errorf("approvals with %q, %s a page: got %q, want %q", query, limit, got, want)
				}
			}
			if got := listedIDs(d, "approvals?status=expired&limit="+limit, id); !strings.HasPrefix(got, pending+",") || strings.Count(got, ",") != 1 {
				t.Errorf("expired approvals, %s a page: got %q, want %q and one more", limit, got, pending)
			}
		}
		if got := listedIDs(d, "approvals?status=expired&runId="+late, id); got == "" || strings.Contains(got, ",") {
			t.Errorf("expired approvals of a run: got %q, want one", got)
		}
	})
}

// TestOperationsOfAHandler verifies the filter of operations by handler, in pages of any size.
func TestOperationsOfAHandler(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/A", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "handlers/B", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		for _, h := range []string{"A", "B"} {
			d.want(d.ask("PUT", "lifecycles/on"+h, strings.NewReplacer("{h}", h).Replace(`{"workflow": "on{h}", "owning_module": "m", "initial_status": "open", "status_types": ["open", "busy", "done"], "janitor": {},
				"steps": [{"step_id": 1, "step_key": "go", "status": "open", "successful_claim_state": ["busy", "open"], "successful_state": "done", "action": "{h}"}]}`), nil), 201, "")
			for i := range 4 {
				id := fmt.Sprint(i)
				d.want(d.ask("POST", "lifecycles/on"+h+"/entities", wire.NewEntity{ID: &id}, nil), 201, "")
				d.want(d.ask("POST", "lifecycles/on"+h+"/entities/"+id+"/steps/go?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
			}
		}
		subject := func(o wire.Operation) string { return o.Subject }
		for query, want := range map[string]string{
			"&handler=A":            "onA/0,onA/1,onA/2,onA/3",
			"&handler=B&state=due":  "onB/0,onB/1,onB/2,onB/3",
			"&handler=B&state=held": "",
			"&handler=C":            "",
			"&handler=B&state=lost": "",
		} {
			for _, limit := range []string{"1", "3", "100"} {
				if got := listedIDs(d, "operations?limit="+limit+query, subject); got != want {
					t.Errorf("operations with %q, %s a page: got %q, want %q", query, limit, got, want)
				}
			}
		}
	})
}
