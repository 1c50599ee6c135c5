package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/wire"
)

const mayConfig = `{
  "workflow": "job", "owning_module": "work", "initial_status": "new", "status_types": ["new", "doing", "done"], "janitor": {"stuck_after": "5m"},
  "steps": [{"step_id": 1, "step_key": "do", "status": "new", "successful_claim_state": ["doing", "new"], "successful_state": "done", "action": "Do", "validation": "May"}]
}`

// TestAnEarlierAttemptIsNotForgotten verifies that the result of a later attempt says nothing about
// an earlier one without a response: the entity does not go back, whatever the later one returns,
// and the step does not run again under its key.
func TestAnEarlierAttemptIsNotForgotten(t *testing.T) {
	for _, policy := range []string{"retry", "probe"} {
		t.Run(policy, func(t *testing.T) {
			eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
				d.running()
				var acted atomic.Int32
				var answer atomic.Value
				answer.Store("lost")
				heard := make(chan string, 100)
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
					body, _ := io.ReadAll(q.Body)
					var c wire.HandlerCall
					_ = json.Unmarshal(body, &c)
					defer func() { heard <- c.Kind }()
					now := answer.Load().(string)
					if c.Kind == "validation" {
						if now != "lost" { // it would refuse now
							w.WriteHeader(http.StatusUnprocessableEntity)
						}
						return
					}
					if c.Kind == "action" && now == "lost" {
						acted.Add(1)
						panic(http.ErrAbortHandler)
					}
					switch {
					case now == "busy":
						w.WriteHeader(http.StatusTooManyRequests)
					case c.Kind == "probe":
						fmt.Fprint(w, `{"happened":true}`)
					default: // it honours the key
						fmt.Fprint(w, `{}`)
					}
				}))
				t.Cleanup(srv.Close)
				d.want(d.ask("PUT", "handlers/May", wire.PutHandler{Kind: "http", URL: srv.URL, Safety: "idempotent"}, nil), 201, "")
				d.want(d.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "http", URL: srv.URL, Safety: "opaque", OnUnknown: policy}, nil), 201, "")
				d.want(d.ask("PUT", "lifecycles/job", mayConfig, nil), 201, "")
				d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: new("j")}, nil), 201, "")
				fire := func(want int) {
					t.Helper()
					d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil, keyHeader, "k"), want, "")
				}
				fire(202)
				<-heard
				<-heard
				for range 2 {
					answer.Store("busy")
					d.awaitEntity("j", "due", func(e wire.Entity) bool { return e.Claim != nil && e.Claim.Holder == "" })
					holdfasttest.Advance(t, d.engine, 10*time.Minute)
					<-heard
				}
				d.awaitEntity("j", "due", func(e wire.Entity) bool { return e.Claim != nil && e.Claim.Holder == "" })
				fire(202)
				answer.Store("fine")
				holdfasttest.Advance(t, d.engine, 10*time.Minute)
				d.awaitEntity("j", "done", func(e wire.Entity) bool { return e.Status == "done" })
				fire(200)
				if n := acted.Load(); n != 1 {
					t.Errorf("the handler acted %d times, want 1", n)
				}
			})
		})
	}
}

// TestARedirectAfterTheActionIsNoFailure verifies that a handler which responds to its call with a redirect that is not followed
// may have acted: the entity does not go back, and the operation is uncertain. Redirects change the method, or lead to an
// address that may not be called.
func TestARedirectAfterTheActionIsNoFailure(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		for status, to := range map[int]string{http.StatusSeeOther: "/done", http.StatusTemporaryRedirect: "http://10.0.0.1/"} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, to, status) }))
			t.Cleanup(srv.Close)
			id := fmt.Sprint(status)
			d.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "http", URL: srv.URL, Safety: "opaque"}, nil)
			d.ask("PUT", "lifecycles/job", strings.Replace(mayConfig, `, "validation": "May"`, "", 1), nil)
			d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: &id}, nil), 201, "")
			d.ask("POST", "lifecycles/job/entities/"+id+"/steps/do", wire.Fire{Requester: "admin"}, nil)
			var e wire.Entity
			d.want(d.ask("GET", "lifecycles/job/entities/"+id, nil, &e), 200, "")
			if e.Status != "doing" || e.Claim == nil || !e.Claim.Uncertain {
				t.Errorf("after a redirect with %d: got %+v, claim %+v, want an uncertain operation", status, e, e.Claim)
			}
		}
	})
}

// TestAWorkersEarlierAttemptIsNotForgotten verifies that a worker that fails a task that was handed
// out before, and may have acted then, does not undo that; and that a journaling worker is not
// asked forever either.
func TestAWorkersEarlierAttemptIsNotForgotten(t *testing.T) {
	for _, policy := range []string{"retry", "probe"} {
		t.Run(policy, func(t *testing.T) {
			eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
				d.jobs(wire.PutHandler{Kind: "worker", Safety: "opaque", OnUnknown: policy})
				d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
				x := d.one("Do")
				for _, result := range []json.RawMessage{nil, []byte(`1`)} {
					d.want(d.ask("POST", "tasks/"+x.ID+"/effects", wire.EffectCall{Epoch: x.Epoch, Name: "card", Result: result}, nil), 200, "")
				}
				again := func(want string) wire.Task {
					t.Helper()
					holdfasttest.Advance(t, d.engine, 10*time.Minute)
					engine.Of(d.engine).Round(t.Context())
					x := d.one("Do")
					if x.Kind != want {
						t.Fatalf("claimed %+v, want kind %s", x, want)
					}
					return x
				}
				x = again(map[string]string{"retry": "action", "probe": "probe"}[policy])
				d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "not now"}, nil), 200, "")
				d.awaitEntity("j", "due", func(e wire.Entity) bool { return e.Claim != nil && !e.Claim.Uncertain })
				if policy == "retry" {
					return
				}
				x = again("probe")
				for range 2 {
					d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch, Output: []byte(`{"happened":false}`)}, nil), 200, "")
				}
				old := x
				if x = d.one("Do"); x.Kind != "action" {
					t.Fatalf("claimed %+v, want an action", x)
				}
				d.want(d.ask("POST", "tasks/"+old.ID+"/complete", wire.CompleteTask{Epoch: old.Epoch, Output: []byte(`{"happened":false}`)}, nil), 200, "") // it did end it
				d.want(d.ask("POST", "tasks/"+old.ID+"/complete", wire.CompleteTask{Epoch: old.Epoch - 1, Output: []byte(`{"happened":false}`)}, nil), 409, fault.LeaseLost)
				d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 200, "")
			})
		})
	}
}

const mixedConfig = `{
  "workflow": "mix", "owning_module": "work", "initial_status": "draft", "status_types": ["draft", "paid", "refunding", "void"], "janitor": {},
  "steps": [
   {"step_id": 1, "step_key": "cancel", "status": "draft", "successful_state": "void", "validation": "May"},
   {"step_id": 2, "step_key": "cancel", "status": "paid", "successful_claim_state": ["refunding", "paid"], "successful_state": "void", "action": "Refund"},
   {"step_id": 3, "step_key": "pay", "status": "draft", "successful_state": "paid"}
  ]
}`

// TestAStepThatIsClaimedInOneStatusOnly verifies that a step that is claimed in one status, and
// acts without a claim in another, is idempotent under its key in both, and that a failure frees
// the key.
func TestAStepThatIsClaimedInOneStatusOnly(t *testing.T) {
	var fails atomic.Bool
	part := lifecycle.MustParse[json.RawMessage]([]byte(mixedConfig)).RecoveredBy().
		Action("Refund", func(context.Context, *lifecycle.Act[json.RawMessage]) error {
			if fails.Load() {
				return errors.New("no")
			}
			return nil
		}, lifecycle.Transactional()).
		Validation("May", func(context.Context, *lifecycle.Act[json.RawMessage]) error { return nil })
	d := newTestAPI(t, holdfasttest.Open(t, part), httpapi.Options{NoKeys: true})
	for id, status := range map[string]string{"a": "paid", "b": "draft"} {
		d.want(d.ask("POST", "lifecycles/mix/entities", wire.NewEntity{ID: new(id), Status: status}, nil), 201, "")
	}
	fire := func(id string) *http.Response {
		return d.ask("POST", "lifecycles/mix/entities/"+id+"/steps/cancel", wire.Fire{Requester: "admin"}, nil, keyHeader, "k"+id)
	}
	fails.Store(true)
	for range 2 {
		d.want(fire("a"), 422, fault.ActionFailed)
	}
	fails.Store(false)
	for i, id := range []string{"a", "a", "b", "b"} {
		resp := fire(id)
		d.want(resp, 200, "")
		if (resp.Header.Get(replayedHeader) == "true") != (i%2 == 1) {
			t.Errorf("request %d: got headers %v, want a replay every second time", i, resp.Header)
		}
	}
}

// TestAWorkersEventEnds verifies that the lease of an event at a worker ends with the timeout of
// its handler, and that repeating a failure that was skipped returns the same.
func TestAWorkersEventEnds(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		no, none := false, 0
		d.want(d.ask("PUT", "handlers/Mail", wire.PutHandler{Kind: "worker", TimeoutMs: 100_000}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"paid"}, Handler: "Mail", MaxRetries: &none, BlockOnError: &no}, nil), 201, "")
		d.want(d.ask("POST", "streams/s/events", `{"events":[{"name":"paid"},{"name":"paid"}]}`, nil), 201, "")
		x := d.one("Mail")
		for range 3 {
			d.want(d.ask("POST", "tasks/"+x.ID+"/renew", wire.Renew{Epoch: x.Epoch, LeaseMs: 60_000}, nil), 200, "")
			holdfasttest.Advance(t, d.engine, 30*time.Second)
		}
		holdfasttest.Advance(t, d.engine, 15*time.Second)
		d.want(d.ask("POST", "tasks/"+x.ID+"/renew", wire.Renew{Epoch: x.Epoch, LeaseMs: 60_000}, nil), 409, fault.LeaseLost)
		engine.Of(d.engine).Round(t.Context())
		x = d.one("Mail")
		for range 2 {
			var ended wire.EndedTask
			d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no"}, &ended), 200, "")
			if ended.Status != "skipped" {
				t.Errorf("got %+v, want skipped", ended)
			}
		}
		if x = d.one("Mail"); x.Context.Event.Version != 1 {
			t.Errorf("claimed %+v, want version 1", x.Context.Event)
		}
	})
}

// TestTheFeedTellsNothingOfKeys verifies that histories of API keys are visible only to keys that
// may manage them.
func TestTheFeedTellsNothingOfKeys(t *testing.T) {
	eachTestAPI(t, httpapi.Options{}, func(t *testing.T, d *testAPI) {
		made, admin := d.newKey("acme", keys.Admin, 0)
		_, read := d.newKey("acme", keys.Read, 0)
		for _, key := range []string{admin, read} {
			resp := d.as(key).ask("GET", "feed", nil, nil)
			d.want(resp, 200, "")
			if text := textOf(resp); strings.Contains(text, "$key/") || strings.Contains(text, made.ID) {
				t.Errorf("response contains a key or an id: %s", text)
			}
		}
		_, operate := d.newKey("acme", keys.Operate, 0)
		name, tested := "%24key%2F"+made.ID, 0
		for _, r := range d.api.Routes() {
			path := strings.Replace(strings.TrimPrefix(r.Path, "/api/v1/"), "{stream}", name, 1)
			if r.ID == "searchEvents" || r.ID == "readTimeline" {
				path += "?name=created&stream=" + name
			}
			if !strings.Contains(path, name) || strings.Contains(path, "{") {
				continue
			}
			tested++
			if r.Method != "GET" {
				d.want(d.as(operate).ask(r.Method, path, exampleBodies[r.ID], nil), 403, fault.Forbidden)
				continue
			}
			path = strings.Replace(path, "timeline?name=created&", "timeline?", 1)
			if resp := d.as(admin).ask("GET", path, nil, nil); resp.StatusCode == 403 {
				t.Errorf("%s: an admin got status 403", path)
			}
			d.want(d.as(read).ask("GET", path, nil, nil), 403, fault.Forbidden)
			d.want(d.as(operate).ask("GET", path, nil, nil), 403, fault.Forbidden)
		}
		if tested < 7 {
			t.Errorf("tested %d routes", tested)
		}
	}, holdfast.Part(invoices(nil)))
}
