package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/webhook"
	"github.com/holdfast-go/holdfast/wire"
)

// jobConfig has a step that runs elsewhere.
const jobConfig = `{
  "workflow": "job", "owning_module": "work", "initial_status": "new", "status_types": ["new", "doing", "done"], "janitor": {"stuck_after": "5m"},
  "steps": [{"step_id": 1, "step_key": "do", "status": "new", "successful_claim_state": ["doing", "new"], "successful_state": "done", "action": "Do"}]
}`

var elsewhere = httpapi.Options{NoKeys: true, SecretKeys: sealing, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// jobs declares a handler, puts the lifecycle, and creates an entity.
func (d *testAPI) jobs(h wire.PutHandler) wire.Handler {
	d.t.Helper()
	d.want(d.ask("PUT", "lifecycles/job", jobConfig, nil), 422, fault.Validation)
	var made wire.Handler
	d.want(d.ask("PUT", "handlers/Do", h, &made), 201, "")
	d.want(d.ask("PUT", "lifecycles/job?dryRun=true", jobConfig, nil), 200, "")
	d.want(d.ask("GET", "lifecycles/job", nil, nil), 404, fault.NotFound)
	d.want(d.ask("PUT", "lifecycles/job", jobConfig, nil), 201, "")
	d.want(d.ask("PUT", "lifecycles/job", jobConfig, nil), 200, "")
	d.want(d.ask("GET", "lifecycles/job", nil, nil), 200, "")
	d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: new("j"), Data: []byte(`{"n":9007199254740993}`)}, nil, "Idempotency-Key", "made"), 201, "")
	return made
}

// TestAWorkerOverHTTP verifies that a worker over HTTP runs a fired step, that the caller waits for
// it, and that a lost response can be requested again.
func TestAWorkerOverHTTP(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		var fired wire.Fired
		var status int
		var waiting sync.WaitGroup
		waiting.Go(func() {
			resp := d.ask("POST", "lifecycles/job/entities/j/steps/do", wire.Fire{Requester: "admin", Input: []byte(`{"big":9007199254740993}`)}, &fired, "Idempotency-Key", "k")
			status = resp.StatusCode
		})
		var got wire.Tasks
		d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w1", Handlers: []string{"Do"}}, &got), 200, "")
		if len(got.Tasks) != 1 {
			t.Fatalf("claimed %+v, want one task", got)
		}
		task := got.Tasks[0]
		if task.Kind != "action" || string(task.Input) != `{"big":9007199254740993}` && string(task.Input) != `{"big": 9007199254740993}` || task.IdempotencyKey == "" || task.Context.Entity.Status != "doing" {
			t.Errorf("got task %+v", task)
		}
		path := "tasks/" + task.ID
		var x wire.EffectState
		d.want(d.ask("POST", path+"/effects", wire.EffectCall{Epoch: task.Epoch, Name: "charge"}, &x), 200, "")
		d.want(d.ask("POST", path+"/effects", wire.EffectCall{Epoch: task.Epoch, Name: "charge", Result: []byte(`1`)}, &x), 200, "")
		d.want(d.ask("POST", path+"/renew", wire.Renew{Epoch: task.Epoch}, nil), 200, "")
		d.want(d.ask("POST", path+"/complete", wire.CompleteTask{Epoch: task.Epoch - 1}, nil), 409, fault.LeaseLost)
		done := wire.CompleteTask{Epoch: task.Epoch, Output: []byte(`{"label":"L"}`), State: []byte(`{"done":true}`)}
		for range 2 {
			var ended wire.EndedTask
			d.want(d.ask("POST", path+"/complete", done, &ended), 200, "")
			if ended.Status != "done" {
				t.Errorf("complete returned %+v, want done", ended)
			}
		}
		waiting.Wait()
		if status != 200 || fired.Outcome != "success" || !strings.Contains(string(fired.Output), "L") || fired.Entity.Status != "done" {
			t.Errorf("fire returned status %d %+v, want success", status, fired)
		}
		resp := d.ask("POST", "lifecycles/job/entities/j/steps/do", wire.Fire{Requester: "admin", Input: []byte(`{"big":9007199254740993}`)}, &fired, "Idempotency-Key", "k")
		d.want(resp, 200, "")
		if resp.Header.Get("Idempotency-Replayed") != "true" || fired.Outcome != "success" {
			t.Errorf("repeated fire returned %+v, want a replay of success", fired)
		}
	})
}

// TestAFireThatGoesOn verifies that a fire without a worker in time returns pending, and later,
// under the same key, the outcome; and that a worker with an expired lease is refused.
func TestAFireThatGoesOn(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "transactional"})
		fire := func() (wire.Fired, *http.Response) {
			var fired wire.Fired
			return fired, d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, &fired, "Idempotency-Key", "k")
		}
		for range 2 {
			if _, resp := fire(); resp.StatusCode != 202 {
				t.Fatalf("got status %d, want 202", resp.StatusCode)
			}
		}
		take := func() wire.Task {
			t.Helper()
			var got wire.Tasks
			d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w1", Handlers: []string{"Do"}, LeaseMs: 60_000}, &got), 200, "")
			if len(got.Tasks) != 1 {
				t.Fatalf("claimed %+v, want one task", got)
			}
			return got.Tasks[0]
		}
		old := take()
		if _, resp := fire(); resp.StatusCode != 202 { // also while a worker has it
			t.Fatalf("got status %d, want 202", resp.StatusCode)
		}
		d.want(d.ask("DELETE", "handlers/Do", nil, nil), 409, fault.Conflict)
		d.want(d.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "http", URL: "https://example.com/"}, nil), 409, fault.Conflict)
		holdfasttest.Advance(t, d.engine, 2*time.Minute)
		d.want(d.ask("POST", "tasks/"+old.ID+"/complete", wire.CompleteTask{Epoch: old.Epoch}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "tasks/nothing/complete", wire.CompleteTask{Epoch: 1}, nil), 404, fault.NotFound)
	})
}

// remote is a handler over HTTP with scripted responses.
type remote struct {
	mu     sync.Mutex
	secret string
	calls  []wire.HandlerCall
	status int
	body   string
	later  []scripted // responses to the calls after the next
	wrong  error
	heard  chan struct{} // receives for each call, if not nil
	seen   int           // number of calls returned by next
}

type scripted struct {
	status int
	body   string
}

// next waits for a call, and returns it.
func (r *remote) next(t *testing.T) wire.HandlerCall {
	t.Helper()
	select {
	case <-r.heard:
	case <-time.After(time.Minute):
		t.Fatal("no call arrived")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wrong != nil {
		t.Fatal(r.wrong)
	}
	r.seen++
	return r.calls[r.seen-1]
}

func (r *remote) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, _ := io.ReadAll(q.Body)
	v, err := webhook.NewVerifier(r.secret)
	if err == nil {
		err = v.Verify(q.Header, body)
	}
	var c wire.HandlerCall
	if err == nil {
		err = json.Unmarshal(body, &c)
	}
	if err != nil {
		r.wrong = err
	}
	r.calls = append(r.calls, c)
	if r.heard != nil {
		r.heard <- struct{}{}
	}
	answer := scripted{r.status, r.body}
	if len(r.later) > 0 {
		r.status, r.body, r.later = r.later[0].status, r.later[0].body, r.later[1:]
	}
	if answer.status == 0 { // breaks the connection
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(answer.status)
	fmt.Fprint(w, answer.body)
}

func (r *remote) say(status int, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.body, r.later = status, body, nil
}

// then sets the response to the call after the last scripted one. It must be set before that call:
// a call may be repeated immediately.
func (r *remote) then(status int, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.later = append(r.later, scripted{status, body})
}

// TestAHandlerOverHTTP verifies the results of the responses of an http handler. Its calls are
// signed; a refusal is an answer; a missing response of an opaque handler parks the operation.
func TestAHandlerOverHTTP(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		far := new(remote)
		srv := httptest.NewServer(far)
		t.Cleanup(srv.Close)
		made := d.jobs(wire.PutHandler{Kind: "http", URL: srv.URL + "/do", Safety: "opaque"})
		if made.Secret == "" {
			t.Fatal("the created handler has no secret")
		}
		far.secret = made.Secret
		var seen wire.Handler
		d.want(d.ask("GET", "handlers/Do", nil, &seen), 200, "")
		if seen.Secret != "" {
			t.Error("the secret is shown again")
		}
		path := "lifecycles/job/entities/j/steps/do"
		far.say(422, `{"message":"not today"}`)
		d.want(d.ask("POST", path, wire.Fire{Requester: "admin"}, nil), 422, fault.ActionInvalid)
		far.say(400, `{"message":"no"}`)
		d.want(d.ask("POST", path, wire.Fire{Requester: "admin"}, nil), 422, fault.ActionFailed)
		far.say(200, `{"state":{"label":"L"}}`)
		var fired wire.Fired
		d.want(d.ask("POST", path, wire.Fire{Requester: "admin"}, &fired), 200, "")
		if fired.Outcome != "success" || !strings.Contains(string(fired.Entity.Data), `9007199254740993`) || !strings.Contains(string(fired.Entity.Data), `"L"`) {
			t.Errorf("fire returned %+v %s", fired, fired.Entity.Data)
		}
		d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: new("k")}, nil), 201, "")
		far.say(0, "")
		d.want(d.ask("POST", "lifecycles/job/entities/k/steps/do", wire.Fire{Requester: "admin"}, &fired), 202, "")
		if fired.Outcome != "uncertain" {
			t.Errorf("fire returned %+v after a broken connection, want uncertain", fired)
		}
		far.mu.Lock()
		defer far.mu.Unlock()
		if far.wrong != nil || len(far.calls) != 4 || far.calls[0].IdempotencyKey == far.calls[1].IdempotencyKey || far.calls[0].Kind != "action" {
			t.Errorf("got calls %+v: %v", far.calls, far.wrong)
		}
	})
}

func TestBadHandlers(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		for _, h := range []wire.PutHandler{{Kind: "x"}, {Kind: "http"}, {Kind: "http", URL: "http://10.0.0.1/"}, {Kind: "http", URL: "https://169.254.169.254/"},
			{Kind: "worker", URL: "https://example.com/"}, {Kind: "worker", Secret: webhook.NewSecret()}, {Kind: "worker", Safety: "sure"}, {Kind: "worker", OnUnknown: "guess"},
			{Kind: "worker", TimeoutMs: -1}, {Kind: "http", URL: "https://example.com/", Secret: "short"}} {
			d.want(d.ask("PUT", "handlers/h", h, nil), 400, fault.Validation)
		}
		d.want(d.ask("GET", "handlers/h", nil, nil), 404, fault.NotFound)
		d.want(d.ask("DELETE", "handlers/h", nil, nil), 404, fault.NotFound)
		d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Handlers: []string{"x"}, WaitMs: new(wire.Millis)}, nil), 400, fault.Validation)
		d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", WaitMs: new(wire.Millis)}, nil), 400, fault.Validation)
	})
}

// TestKindsOfTasksHaveTheirTurns verifies that no kind of task starves behind another, for a worker
// that claims one task at a time.
func TestKindsOfTasksHaveTheirTurns(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Pay", Parallel: 8, Items: newItems(0, "1", "2", "3", "4", "5", "6", "7", "8")}, nil), 201, "")
		for range 4 {
			d.start("pay@1", `{}`)
		}
		kinds := make(map[string]int)
		for range 8 {
			for _, x := range d.claimItems("Pay", 1) {
				kinds[x.Kind]++
			}
		}
		if kinds["runStep"] < 2 || kinds["batchItem"] < 2 || kinds["runStep"]+kinds["batchItem"] != 8 {
			t.Errorf("8 claims of one task each returned %v, want at least 2 of each kind", kinds)
		}
	})
}
