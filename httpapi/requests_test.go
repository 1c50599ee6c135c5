package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/wire"
)

// Verifies that an admin sees what the caller of a keyed request was told, on each route that used the key; that refused requests
// and those of other workspaces are not found; that other roles may not ask; and that a secret and the proof of a lease are
// not shown.
func TestStoredRequests(t *testing.T) {
	eachTestAPI(t, elsewhereWithKeys, func(t *testing.T, d *testAPI) {
		_, secret := d.newKey("default", keys.Admin, 0)
		_, operator := d.newKey("default", keys.Operate, 0)
		_, elsewhere := d.newKey("other", keys.Admin, 0)
		anonymous, d := d, d.as(secret)
		const key = "pay-7"
		var made wire.CreatedKey
		d.want(d.ask("POST", "keys", wire.NewKey{Role: "read"}, &made, "Idempotency-Key", key), 201, "")
		d.want(d.ask("POST", "streams/s/events", exampleBodies["appendEvents"], nil, "Idempotency-Key", key), 201, "")
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", json.RawMessage(`{"name":"work","version":"1","steps":[{"name":"t","type":"task","handler":"h"}]}`), nil), 201, "")
		d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "work@1"}, nil), 201, "")
		var tasks wire.Tasks
		d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"h"}}, &tasks, "Idempotency-Key", "claim-1"), 200, "")
		if len(tasks.Tasks) != 1 {
			t.Fatalf("claimed %d tasks, want 1", len(tasks.Tasks))
		}

		var got wire.StoredRequests
		d.want(d.ask("GET", "requests/"+key, nil, &got), 200, "")
		routes := make(map[string]wire.StoredRequest)
		for _, r := range got.Requests {
			routes[r.Route] = r
			if r.State != "answered" || r.Status != 201 || r.At == nil || r.Withheld {
				t.Errorf("%s: %+v", r.Route, r)
			}
		}
		if len(routes) != 2 || !strings.Contains(string(routes["createKey"].Response), made.ID) || strings.Contains(string(routes["createKey"].Response), made.Secret) || routes["appendEvents"].Response == nil {
			t.Errorf("got %+v", routes)
		}
		got = wire.StoredRequests{}
		d.want(d.ask("GET", "requests/claim-1", nil, &got), 200, "")
		if r := got.Requests[0]; r.Route != "claimTasks" || !r.Withheld || r.Response != nil {
			t.Errorf("the claim: %+v", r)
		}
		d.want(d.ask("POST", "keys", wire.NewKey{Role: "nothing"}, nil, "Idempotency-Key", "bad"), 400, fault.Validation)
		d.want(d.ask("GET", "requests/bad", nil, nil), 404, fault.NotFound)
		caller := anonymous.as(operator)
		caller.want(caller.ask("GET", "requests/"+key, nil, nil), 403, fault.Forbidden)
		caller.want(caller.ask("GET", "requests?operation=x", nil, nil), 403, fault.Forbidden)
		other := anonymous.as(elsewhere)
		other.want(other.ask("GET", "requests/"+key, nil, nil), 404, fault.NotFound)
		d.want(d.ask("GET", "requests", nil, nil), 400, fault.Validation)
	}, invoices(nil))
}

// Verifies that the request that fired a step is found by its operation, in its workspace only.
func TestRequestsOfAnOperation(t *testing.T) {
	eachTestAPI(t, elsewhereWithKeys, func(t *testing.T, d *testAPI) {
		_, secret := d.newKey("default", keys.Admin, 0)
		_, elsewhere := d.newKey("other", keys.Admin, 0)
		anonymous, d := d, d.as(secret)
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "")
		d.ask("POST", "lifecycles/invoice/entities/i/steps/close", exampleBodies["fireStep"], nil, "Idempotency-Key", "fire-1")
		var got wire.StoredRequests
		d.want(d.ask("GET", "requests/fire-1", nil, &got), 200, "")
		if len(got.Requests) != 1 || got.Requests[0].Operation == "" || got.Requests[0].Subject != "invoice/i" {
			t.Fatalf("the request lacks its operation or subject: %+v", got)
		}
		var l wire.List[wire.StoredRequest]
		d.want(d.ask("GET", "requests?operation="+got.Requests[0].Operation, nil, &l), 200, "")
		if len(l.Items) != 1 || l.Items[0].ID != got.Requests[0].ID {
			t.Errorf("by operation: %+v, want %+v", l.Items, got.Requests)
		}
		other := anonymous.as(elsewhere)
		other.want(other.ask("GET", "requests?operation="+got.Requests[0].Operation, nil, &l), 200, "")
		if len(l.Items) != 0 {
			t.Errorf("another workspace sees %+v", l.Items)
		}
	}, invoices(nil))
}

// Verifies that a timeline has the answers of keyed requests right after the event that ended their operation, once however often
// they are repeated, with and without a claim.
func TestAnswersInTheTimeline(t *testing.T) {
	eachTestAPI(t, elsewhereWithKeys, func(t *testing.T, d *testAPI) {
		_, secret := d.newKey("default", keys.Admin, 0)
		d = d.as(secret)
		for _, step := range []string{"close", "void"} {
			path := "lifecycles/invoice/entities/" + step
			d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: &step}, nil), 201, "")
			for range 2 {
				d.want(d.ask("POST", path+"/steps/"+step, wire.Fire{Requester: "admin", Input: []byte(`{}`)}, nil, "Idempotency-Key", "fire-"+step), 200, "")
			}
			d.ask("POST", path+"/steps/"+step, wire.Fire{Requester: "admin", Input: []byte(`{}`)}, nil, "Idempotency-Key", "late-"+step)
			var stored wire.StoredRequests
			d.want(d.ask("GET", "requests/fire-"+step, nil, &stored), 200, "")
			for _, limit := range []string{"1", "50"} {
				found := all[wire.TimelineEntry](d, path+"/timeline?limit="+limit)
				var order []string
				for _, e := range found {
					switch {
					case e.Answer != nil:
						order = append(order, "answer")
						if a := e.Answer; a.ID != stored.Requests[0].ID || a.State != "operation" || a.Operation != stored.Requests[0].Operation {
							t.Errorf("%s: got answer %+v, want %+v", step, a, stored.Requests[0])
						}
					case e.Event != nil:
						order = append(order, e.Event.Name)
					case e.Refusal != nil:
						order = append(order, "refusal")
					}
				}
				want := "refusal answer settled/" + step + " claimed created"
				if step == "void" {
					want = "refusal answer settled/void created"
				}
				if got := strings.Join(order, " "); got != want {
					t.Errorf("%s: got %q, want %q", step, got, want)
				}
			}
		}
	}, invoices(nil))
}
