package httpapi_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/wire"
)

// chainConfig has two consecutive steps, each done by a worker; the first has a validation by a
// worker.
const chainConfig = `{
  "workflow": "chain", "owning_module": "work", "initial_status": "a", "status_types": ["a", "a1", "b", "b1", "c"], "janitor": {},
  "steps": [
   {"step_id": 1, "step_key": "one", "status": "a", "successful_claim_state": ["a1", "a"], "successful_state": "b", "action": "Do", "validation": "May"},
   {"step_id": 2, "step_key": "two", "status": "b", "successful_claim_state": ["b1", "b"], "successful_state": "c", "action": "Do"}
  ]
}`

// TestTheEpochThatFinishedIsToldTheSame verifies that ending a task again under the epoch that
// ended it returns the same, also when the entity has moved on since; and that ending it
// differently is refused.
func TestTheEpochThatFinishedIsToldTheSame(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		for _, name := range []string{"Do", "May"} {
			d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "worker", Safety: "transactional"}, nil), 201, "")
		}
		d.want(d.ask("PUT", "lifecycles/chain", chainConfig, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/chain/entities", wire.NewEntity{ID: new("x")}, nil), 201, "")
		fire := func(step string) {
			t.Helper()
			d.want(d.ask("POST", "lifecycles/chain/entities/x/steps/"+step+"?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		}
		end := func(x wire.Task, how string, want int, code fault.Code) (e wire.EndedTask) {
			t.Helper()
			body := any(wire.CompleteTask{Epoch: x.Epoch})
			if how == "fail" {
				body = wire.FailTask{Epoch: x.Epoch, Message: "no"}
			}
			d.want(d.ask("POST", "tasks/"+x.ID+"/"+how, body, &e), want, code)
			return e
		}
		fire("one")
		valid := d.one("May")
		told := end(valid, "complete", 200, "")
		failed := d.one("Do")
		if again := end(valid, "complete", 200, ""); again != told {
			t.Errorf("first call returned %+v, second returned %+v", told, again)
		}
		end(valid, "fail", 409, fault.LeaseLost)
		back := end(failed, "fail", 200, "")
		fire("one")
		valid = d.one("May")
		end(valid, "complete", 200, "")
		if again := end(failed, "fail", 200, ""); again != back {
			t.Errorf("first call returned %+v, second returned %+v", back, again)
		}
		end(failed, "complete", 409, fault.LeaseLost)
		first := d.one("Do")
		done := end(first, "complete", 200, "")
		fire("two")
		second := d.one("Do")
		if again := end(first, "complete", 200, ""); again != done || done.Status != "b" {
			t.Errorf("first call returned %+v, second returned %+v, want the same with status b", done, again)
		}
		end(first, "fail", 409, fault.LeaseLost)
		old := first
		old.Epoch--
		end(old, "complete", 409, fault.LeaseLost)
		end(second, "complete", 200, "")
		d.want(d.ask("POST", "tasks/"+second.ID+"/complete", `{}`, nil), 400, fault.Validation)
		d.want(d.ask("POST", "tasks/"+second.ID+"/renew", `{}`, nil), 400, fault.Validation)
	})
}

// TestAClaimThatIsSettledAgain verifies the same for claims by token; that a settle that leaves an
// effect open can be repeated; that its events go to the entity's stream by default; and that an
// effect has one result.
func TestAClaimThatIsSettledAgain(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		claim := func() string {
			t.Helper()
			var got wire.Claimed
			d.want(d.ask("POST", "lifecycles/job/entities/j/claims", wire.NewClaim{StepKey: "do", Requester: "admin"}, &got), 201, "")
			if !strings.Contains(got.Entity.Claim.Holder, "dev") {
				t.Errorf("got holder %q, want dev", got.Entity.Claim.Holder)
			}
			return "claims/" + got.Claim.Token
		}
		first := claim()
		d.want(d.ask("POST", first+"/settle", `{"outcome":"failure"}`, nil), 200, "")
		second := claim()
		d.want(d.ask("POST", first+"/settle", `{"outcome":"failure"}`, nil), 200, "")
		d.want(d.ask("POST", first+"/settle", `{"outcome":"success"}`, nil), 409, fault.LeaseLost)
		effect := func(path string, e wire.EffectCall, want int, code fault.Code) {
			t.Helper()
			e.Name = "card"
			d.want(d.ask("POST", path+"/effects", e, nil), want, code)
		}
		effect(second, wire.EffectCall{}, 200, "")
		effect(second, wire.EffectCall{Result: []byte(`"A"`)}, 200, "")
		effect(second, wire.EffectCall{Result: []byte(`"A"`)}, 200, "")
		effect(second, wire.EffectCall{Result: []byte(`"B"`)}, 409, fault.Conflict)
		d.want(d.ask("POST", second+"/settle", `{"outcome":"success","data":{"a":1},"events":[{"name":"ev","data":{"x":1}}]}`, nil), 200, "")
		var page wire.List[wire.Event]
		d.want(d.ask("GET", "streams/job%2Fj/events", nil, &page), 200, "")
		if len(page.Items) != 1 || page.Items[0].Name != "ev" {
			t.Errorf("stream has %+v, want only ev", page.Items)
		}

		d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: new("k")}, nil), 201, "")
		var got wire.Claimed
		d.want(d.ask("POST", "lifecycles/job/entities/k/claims", wire.NewClaim{StepKey: "do", Requester: "admin"}, &got), 201, "")
		open := "claims/" + got.Claim.Token
		effect(open, wire.EffectCall{}, 200, "")
		for range 2 {
			var settled wire.Settled
			d.want(d.ask("POST", open+"/settle", `{"outcome":"failure"}`, &settled), 200, "")
			if settled.Entity.Claim == nil || !settled.Entity.Claim.Uncertain {
				t.Errorf("settled %+v, want an uncertain claim", settled.Entity)
			}
		}
		var operations wire.List[wire.Operation]
		d.want(d.ask("GET", "operations?state=uncertain", nil, &operations), 200, "")
		if len(operations.Items) != 1 || operations.Items[0].Handler != "Do" {
			t.Errorf("listed operations %+v, want one of handler Do", operations.Items)
		}
	})
}

// TestATaskThatLeavesSomethingOpen verifies that completing a task with an open effect again
// returns the same.
func TestATaskThatLeavesSomethingOpen(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		x := d.one("Do")
		d.want(d.ask("POST", "tasks/"+x.ID+"/effects", wire.EffectCall{Epoch: x.Epoch, Name: "card"}, nil), 200, "")
		for range 2 {
			d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 422, fault.ActionFailed)
		}
	})
}

// TestWhatCouldNotWorkIsRefused verifies that lifecycles, handlers and reactions that could not
// work are refused.
func TestWhatCouldNotWorkIsRefused(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		far := &remote{status: 200, body: `{"state":{"a":1},"output":{"o":1}}`}
		srv := httptest.NewServer(far)
		t.Cleanup(srv.Close)
		d.want(d.ask("PUT", "lifecycles/job", `{`, nil), 400, fault.Validation)
		far.secret = d.jobs(wire.PutHandler{Kind: "http", URL: srv.URL, Safety: "idempotent"}).Secret
		var fired wire.Fired
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do", wire.Fire{Requester: "admin"}, &fired), 200, "")
		if got := strings.ReplaceAll(string(fired.Output), " ", ""); got != `{"o":1}` {
			t.Errorf("got output %q, want {\"o\":1}", got)
		}
		d.want(d.ask("DELETE", "handlers/Do", nil, nil), 409, fault.Conflict)
		d.want(d.ask("PUT", "handlers/Mail", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Handler: "Mail"}, nil), 400, fault.Validation)
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"*"}, Handler: "Mail"}, nil), 201, "")
		d.want(d.ask("DELETE", "handlers/Mail", nil, nil), 409, fault.Conflict)
		d.want(d.ask("DELETE", "reactions/mail", nil, nil), 204, "")
		d.want(d.ask("DELETE", "handlers/Mail", nil, nil), 204, "")

		d.want(d.ask("PUT", "handlers/Work", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
		bare := strings.NewReplacer(`"job"`, `"bare"`, `"Do"`, `"Work"`, `"successful_claim_state": ["doing", "new"], `, "").Replace(jobConfig)
		resp := d.ask("PUT", "lifecycles/bare", bare, nil)
		d.want(resp, 422, fault.Validation)
		if text := textOf(resp); !strings.Contains(text, `"rule":"worker"`) {
			t.Errorf("got %s, want rule worker", text)
		}
		both := strings.Replace(jobConfig, `"action": "Do"`, `"action": "Do", "validation": "Do"`, 1)
		if p := d.want(d.ask("PUT", "lifecycles/job", both, nil), 422, fault.Validation); !strings.Contains(p.Detail, `handler "Do" is used as "action" and as "validation"`) {
			t.Errorf("one handler in two roles: got %s", p.Detail)
		}
		// one action for all requesters is fine if each requester of the step takes the claim
		claimed := strings.NewReplacer(`"job"`, `"claimed"`, `"Do"`, `"Work"`, `["doing", "new"]`, `{"admin": ["doing", "new"]}`, `"successful_state": "done"`, `"successful_state": {"admin": "done"}`).Replace(jobConfig)
		var first wire.PutLifecycle
		d.want(d.ask("PUT", "lifecycles/claimed", claimed, &first), 201, "")
		if first.Revision != 1 {
			t.Errorf("the first PUT answers revision %d, want 1", first.Revision)
		}
		stranding := strings.NewReplacer(`"new", "doing", "done"`, `"new", "doing", "over"`, `"successful_state": "done"`, `"successful_state": "over"`).Replace(jobConfig)
		resp = d.ask("PUT", "lifecycles/job", stranding, nil)
		d.want(resp, 422, fault.Validation)
		if text := textOf(resp); !strings.Contains(text, `"rule":"strand"`) {
			t.Errorf("got %s, want rule strand", text)
		}
		var put wire.PutLifecycle
		d.want(d.ask("PUT", "lifecycles/job", jobConfig, &put), 200, "")
		var shown wire.Lifecycle
		d.want(d.ask("GET", "lifecycles/job", nil, &shown), 200, "")
		if shown.Revision != put.Revision || put.Revision == 0 {
			t.Errorf("got revision %d, want %d", shown.Revision, put.Revision)
		}
		holdfasttest.Advance(t, d.engine, time.Second)
	})
}
