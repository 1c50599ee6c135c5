package httpapi_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/wire"
)

// tellConfig has a step with an after-effect that runs elsewhere.
const tellConfig = `{
  "workflow": "note", "owning_module": "work", "initial_status": "new", "status_types": ["new", "sent"],
  "steps": [{"step_id": 1, "step_key": "send", "status": "new", "successful_state": "sent", "success_after_effect": "Tell"}]
}`

func (d *testAPI) claim(handler string, wait int) []wire.Task {
	d.t.Helper()
	var got wire.Tasks
	ms := wire.Millis(wait)
	d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w1", Handlers: []string{handler}, LeaseMs: 60_000, WaitMs: &ms}, &got), 200, "")
	return got.Tasks
}

func (d *testAPI) one(handler string) wire.Task {
	d.t.Helper()
	got := d.claim(handler, 20_000)
	if len(got) != 1 {
		d.t.Fatalf("claimed %+v, want one task", got)
	}
	return got[0]
}

// TestAWorkerHandlesEvents verifies that a worker gets the events of a reaction, one at a time and
// in order; that completing acknowledges, also when it is repeated; that a failure is counted once;
// and that a holder with an expired lease is refused.
func TestAWorkerHandlesEvents(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"paid"}, Handler: "Mail"}, nil), 400, fault.Validation)
		d.want(d.ask("PUT", "handlers/Mail", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
		retries := 1
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"paid"}, Handler: "Mail", MaxRetries: &retries,
			Backoff: &wire.Backoff{Kind: "fixed", BaseMs: 1, MaxMs: 1}}, nil), 201, "")
		d.want(d.ask("POST", "streams/o%2F1/events", `{"events":[{"name":"made"},{"name":"paid","data":{"n":9007199254740993}},{"name":"paid"},{"name":"paid"}]}`, nil), 201, "")

		first := d.one("Mail")
		if first.Kind != "reaction" || first.Context.Event.Version != 1 || string(first.Input) != `{"n":9007199254740993}` || first.Attempt != 1 ||
			first.Context.Reaction != "mail" || first.IdempotencyKey != "mail/o/1/1/0" {
			t.Errorf("claimed %+v with event %+v", first, first.Context.Event)
		}
		if more := d.claim("Mail", 0); len(more) != 0 { // a stream has one holder
			t.Errorf("claimed %+v as well, want nothing: a stream has one holder", more)
		}
		d.want(d.ask("POST", "tasks/"+first.ID+"/renew", wire.Renew{Epoch: first.Epoch, LeaseMs: 120_000}, nil), 200, "")
		d.want(d.ask("POST", "tasks/"+first.ID+"/complete", wire.CompleteTask{Epoch: first.Epoch + 1}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "tasks/"+first.ID+"/complete", wire.CompleteTask{Epoch: first.Epoch, State: []byte(`{}`)}, nil), 400, fault.Validation)
		d.want(d.ask("POST", "tasks/"+first.ID+"/effects", wire.EffectCall{Epoch: first.Epoch, Name: "x"}, nil), 400, fault.Validation)
		for range 2 {
			var ended wire.EndedTask
			d.want(d.ask("POST", "tasks/"+first.ID+"/complete", wire.CompleteTask{Epoch: first.Epoch, Output: []byte(`1`)}, &ended), 200, "")
			if ended.Status != "acked" || ended.Version != 1 {
				t.Errorf("got %+v, want version 1 acked", ended)
			}
		}

		second := d.one("Mail")
		if second.Context.Event.Version != 2 {
			t.Errorf("claimed %+v, want version 2", second.Context.Event)
		}
		d.want(d.ask("POST", "tasks/"+first.ID+"/complete", wire.CompleteTask{Epoch: first.Epoch}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "tasks/"+second.ID+"/fail", wire.FailTask{Epoch: second.Epoch}, nil), 400, fault.Validation)
		for range 2 {
			var ended wire.EndedTask
			d.want(d.ask("POST", "tasks/"+second.ID+"/fail", wire.FailTask{Epoch: second.Epoch, Message: "no mail today"}, &ended), 200, "")
			if ended.Status != "failed" || ended.Version != 2 || ended.NotBefore == nil {
				t.Errorf("got %+v, want version 2 failed with notBefore", ended)
			}
		}
		again := d.one("Mail")
		if again.Epoch <= second.Epoch || again.Attempt != 2 || again.IdempotencyKey != second.IdempotencyKey {
			t.Errorf("claimed %+v after %+v, want attempt 2 under a higher epoch", again, second)
		}
		holdfasttest.Advance(t, d.engine, 2*time.Minute)
		d.want(d.ask("POST", "tasks/"+again.ID+"/complete", wire.CompleteTask{Epoch: again.Epoch}, nil), 409, fault.LeaseLost)
		engine.Of(d.engine).Round(t.Context()) // the janitor releases it

		last := d.one("Mail")
		for range 2 {
			var ended wire.EndedTask
			d.want(d.ask("POST", "tasks/"+last.ID+"/fail", wire.FailTask{Epoch: last.Epoch, Message: "never again"}, &ended), 200, "")
			if ended.Status != "blocked" {
				t.Errorf("got %+v, want blocked", ended)
			}
		}
		if more := d.claim("Mail", 0); len(more) != 0 {
			t.Errorf("claimed %+v from a blocked stream", more)
		}
		d.want(d.ask("POST", "reactions/mail/skip", `{}`, nil), 200, "")
		if third := d.one("Mail"); third.Context.Event.Version != 3 {
			t.Errorf("claimed %+v, want version 3", third.Context.Event)
		}
		d.want(d.ask("POST", "reactions/mail/claim", wire.ClaimLeases{By: "hand"}, nil), 409, fault.Conflict)
	})
}

// TestAWorkerDoesAfterEffects verifies that a worker gets each after-effect once, and none of
// another workspace or of a URL.
func TestAWorkerDoesAfterEffects(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.running()
		far := &remote{status: 200, heard: make(chan struct{}, 100)}
		srv := httptest.NewServer(far)
		t.Cleanup(srv.Close)
		d.want(d.ask("PUT", "handlers/Tell", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "lifecycles/note", tellConfig, nil), 201, "")
		var made wire.Handler
		d.want(d.ask("PUT", "handlers/Tell", wire.PutHandler{Kind: "http", URL: srv.URL}, &made, "X-Holdfast-Workspace", "other"), 201, "")
		far.secret = made.Secret
		d.want(d.ask("PUT", "lifecycles/note", tellConfig, nil, "X-Holdfast-Workspace", "other"), 201, "")
		for i := range 3 {
			for _, where := range []string{"default", "other"} {
				id := fmt.Sprint("n", i)
				d.want(d.ask("POST", "lifecycles/note/entities", wire.NewEntity{ID: new(id)}, nil, "X-Holdfast-Workspace", where), 201, "")
				d.want(d.ask("POST", "lifecycles/note/entities/"+id+"/steps/send", wire.Fire{Requester: "admin", Input: []byte(`{"to":7}`)}, nil, "X-Holdfast-Workspace", where), 200, "")
			}
		}
		done := make(map[string]string)
		for len(done) < 3 {
			for _, x := range d.claim("Tell", 20_000) {
				if x.Kind != "afterEffect" || x.Context.StepKey != "send" || string(x.Input) != `{"to":7}` || x.Context.Entity.Status != "sent" || done[x.Context.Entity.ID] != "" {
					t.Fatalf("claimed %+v", x)
				}
				done[x.Context.Entity.ID] = x.IdempotencyKey
				d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 200, "")
			}
		}
		if done["n0"] == done["n1"] {
			t.Errorf("two entities have the same idempotency key %q", done["n0"])
		}
		if more := d.claim("Tell", 0); len(more) != 0 {
			t.Errorf("claimed %+v as well, want nothing", more)
		}
		for range 3 {
			far.next(t)
		}
		far.mu.Lock()
		defer far.mu.Unlock()
		for _, c := range far.calls {
			if far.wrong != nil || c.Kind != "afterEffect" || c.Entity == nil || c.Entity.Status != "sent" {
				t.Errorf("got call %+v, %v, want an afterEffect", c, far.wrong)
			}
		}
	})
}

// TestAURLHandlesEvents verifies that a URL is called for the events of a reaction in the
// workspaces that declare it; that a missing response is a failure; and that a handler can be
// declared again as a worker handler.
func TestAURLHandlesEvents(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.running()
		far := &remote{status: 200, heard: make(chan struct{}, 100)}
		srv := httptest.NewServer(far)
		t.Cleanup(srv.Close)
		var made wire.Handler
		d.want(d.ask("PUT", "handlers/Mail", wire.PutHandler{Kind: "http", URL: srv.URL}, &made), 201, "")
		far.secret = made.Secret
		retries := 1
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"paid"}, Handler: "Mail", MaxRetries: &retries,
			Backoff: &wire.Backoff{Kind: "fixed", BaseMs: 1, MaxMs: 1}}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"paid"}}, nil, "X-Holdfast-Workspace", "other"), 201, "") // claimed by hand there
		for _, where := range []string{"default", "other"} {
			d.want(d.ask("POST", "streams/s/events", `{"events":[{"name":"made"},{"name":"paid","data":{"n":1}}]}`, nil, "X-Holdfast-Workspace", where), 201, "")
		}
		if c := far.next(t); c.Kind != "reaction" || c.Reaction != "mail" || c.Event == nil || c.Event.Version != 1 || string(c.Input) != `{"n":1}` || c.Entity != nil {
			t.Errorf("got call %+v", c)
		}
		far.say(500, "")
		d.want(d.ask("POST", "streams/s/events", `{"events":[{"name":"paid"}]}`, nil), 201, "")
		far.next(t)
		if c := far.next(t); c.Attempt != 2 {
			t.Errorf("got call %+v, want attempt 2", c)
		}
		if p := d.awaitPosition(wire.CreatedWebhook{Webhook: wire.Webhook{Reaction: "mail"}}, "s", "is blocked", func(p wire.Position) bool { return p.Blocked }); p.Watermark != 1 || p.Error == "" {
			t.Errorf("got position %+v", p)
		}
		d.want(d.ask("PUT", "handlers/Mail", wire.PutHandler{Kind: "worker"}, nil), 200, "")
		d.want(d.ask("POST", "reactions/mail/unblock", `{}`, nil), 200, "")
		if x := d.one("Mail"); x.Context.Event.Version != 2 {
			t.Errorf("claimed %+v, want version 2", x.Context.Event)
		}
		var leases wire.Leases
		d.want(d.ask("POST", "reactions/mail/claim", wire.ClaimLeases{By: "hand"}, &leases, "X-Holdfast-Workspace", "other"), 200, "")
		if len(leases.Leases) != 1 {
			t.Errorf("claimed %+v, want one lease", leases)
		}
	})
}

// TestAURLIsAsked verifies that a URL that acts without a journal and supports probes is probed
// after a missing response.
func TestAURLIsAsked(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.running()
		far := &remote{heard: make(chan struct{}, 100)}
		srv := httptest.NewServer(far)
		t.Cleanup(srv.Close)
		far.secret = d.jobs(wire.PutHandler{Kind: "http", URL: srv.URL, Safety: "opaque", OnUnknown: "probe"}).Secret
		var fired wire.Fired
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, &fired), 202, "")
		if c := far.next(t); c.Kind != "action" || fired.Outcome != "pending" {
			t.Errorf("got call %+v, fired %+v, want an action and pending", c, fired)
		}
		far.say(200, `{}`) // without an answer
		d.awaitEntity("j", "due", func(e wire.Entity) bool { return e.Claim.Holder == "" })
		holdfasttest.Advance(t, d.engine, time.Minute)
		if c := far.next(t); c.Kind != "probe" {
			t.Errorf("got call %+v, want a probe", c)
		}
		d.awaitEntity("j", "due again", func(e wire.Entity) bool { return e.Claim.Holder == "" })
		far.say(200, `{"happened":true,"state":{"ref":7}}`)
		holdfasttest.Advance(t, d.engine, 10*time.Minute)
		if c := far.next(t); c.Kind != "probe" || c.IdempotencyKey != fired.Operation {
			t.Errorf("got call %+v, want a probe of %s", c, fired.Operation)
		}
		e := d.awaitEntity("j", "done", func(e wire.Entity) bool { return e.Status == "done" })
		if len(far.calls) != 3 || !strings.Contains(string(e.Data), `"ref"`) {
			t.Errorf("got data %s after %d calls, want a ref after 3", e.Data, len(far.calls))
		}
	})
}

// awaitEntity waits until an entity satisfies so.
func (d *testAPI) awaitEntity(id, what string, so func(wire.Entity) bool) (e wire.Entity) {
	d.t.Helper()
	for begun := clock.Now(); clock.Since(begun) < time.Minute; _ = clock.Wait(d.t.Context(), 10*time.Millisecond) {
		e = wire.Entity{}
		d.want(d.ask("GET", "lifecycles/job/entities/"+id, nil, &e), 200, "")
		if so(e) {
			return e
		}
	}
	d.t.Fatalf("entity did not become %s: %+v", what, e)
	return e
}
