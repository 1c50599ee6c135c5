package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/web"
	"github.com/holdfast-go/holdfast/wire"
)

const invoiceConfig = `{
  "workflow": "invoice", "owning_module": "billing", "initial_status": "open", "status_types": ["open", "closing", "closed", "void"],
  "steps": [
    {"step_id": 1, "step_key": "close", "status": "open", "successful_claim_state": {"admin": ["closing", "open"]}, "successful_state": {"admin": "closed"}, "action": {"admin": "Close"}},
    {"step_id": 2, "step_key": "void", "status": "open", "successful_state": {"admin": "void", "system": "void"}, "serialized": ["admin", "system"]}
  ]
}`

// testAPI is an API on a fresh database, over a real connection.
type testAPI struct {
	t      testing.TB
	api    *httpapi.API
	engine *holdfast.Engine
	url    string
	key    string
	client *http.Client
	header http.Header
	page   *browser.Page // on which entries of the inbox are looked for, nil for none
}

// invoices is a lifecycle whose action is controlled by its input.
func invoices(act func(context.Context, *lifecycle.Act[json.RawMessage]) error) holdfast.Part {
	if act == nil {
		act = func(context.Context, *lifecycle.Act[json.RawMessage]) error { return nil }
	}
	return lifecycle.MustParse[json.RawMessage]([]byte(invoiceConfig)).RecoveredBy().Action("Close", act, lifecycle.Transactional())
}

// eachTestAPI runs a test on both databases, or on one of them if they alternate.
func eachTestAPI(t *testing.T, o httpapi.Options, f func(t *testing.T, d *testAPI), parts ...holdfast.Part) {
	t.Helper()
	parts = append(parts, stream.Feed(stream.FeedOptions{}))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) { f(t, newTestAPI(t, e, o)) }, parts...)
}

// newTestAPI serves an API on an engine.
func newTestAPI(t testing.TB, e *holdfast.Engine, o httpapi.Options) *testAPI {
	o.Dashboard = web.Handler()
	api := httpapi.On(e, o)
	srv := httptest.NewServer(api)
	t.Cleanup(srv.Close)
	t.Cleanup(api.Stop)
	return &testAPI{t: t, api: api, engine: e, url: srv.URL, client: http.DefaultClient, header: http.Header{}}
}

// as returns the same API with another key.
func (d *testAPI) as(key string) *testAPI {
	other := *d
	other.key = key
	return &other
}

// textOf reads a response body, and leaves it readable.
func textOf(resp *http.Response) string {
	text, _ := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return string(text)
}

// ask sends a request, and decodes the response.
func (d *testAPI) ask(method, path string, body, into any, headers ...string) *http.Response {
	d.t.Helper()
	var in io.Reader
	if body != nil {
		raw, ok := body.(string)
		if !ok {
			text, err := json.Marshal(body)
			if err != nil {
				d.t.Fatal(err)
			}
			raw = string(text)
		}
		in = bytes.NewReader([]byte(raw))
	}
	r, err := http.NewRequest(method, d.url+"/api/v1/"+path, in)
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header = d.header.Clone()
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if d.key != "" {
		r.Header.Set("Authorization", "Bearer "+d.key)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Content-Type" {
			r.Header.Del(headers[i])
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := d.client.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	if into != nil && resp.StatusCode < 300 {
		if err := json.Unmarshal(text, into); err != nil {
			d.t.Fatalf("%s %s returned status %d %s: %v", method, path, resp.StatusCode, text, err)
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp
}

// want fails unless the response has the status and, for an error, the code.
func (d *testAPI) want(resp *http.Response, status int, code fault.Code) wire.Problem {
	d.t.Helper()
	text, _ := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(text))
	var p wire.Problem
	if resp.StatusCode >= 300 {
		if err := json.Unmarshal(text, &p); err != nil || resp.Header.Get("Content-Type") != wire.ProblemType {
			d.t.Errorf("response is not a problem document: %s %q: %v", resp.Header.Get("Content-Type"), text, err)
		}
	}
	if resp.StatusCode != status || p.Code != code {
		d.t.Fatalf("%s %s returned status %d %s, want %d %s: %s", resp.Request.Method, resp.Request.URL, resp.StatusCode, p.Code, status, code, text)
	}
	return p
}

func TestAnEntityGoesThroughItsLifecycle(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		var e wire.Entity
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i1"), Data: []byte(`{"cents":9007199254740993}`)}, &e), 201, "")
		if e.ID != "i1" || e.Status != "open" || string(e.Data) != `{"cents":9007199254740993}` || e.Claim != nil {
			t.Fatalf("created %+v", e)
		}
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i1")}, nil), 409, fault.Conflict)
		d.want(d.ask("POST", "lifecycles/invoice/entities/i1/steps/close", wire.Fire{Requester: "system"}, nil), 403, fault.Forbidden)
		var fired wire.Fired
		d.want(d.ask("POST", "lifecycles/invoice/entities/i1/steps/close", wire.Fire{Requester: "admin"}, &fired), 200, "")
		if fired.Outcome != "success" || fired.Entity.Status != "closed" {
			t.Errorf("fired %+v, want success and status closed", fired)
		}
		p := d.want(d.ask("POST", "lifecycles/invoice/entities/i1/steps/close", wire.Fire{Requester: "admin"}, nil), 409, fault.InvalidTransition)
		if p.Fields["entityStatus"] != "closed" {
			t.Errorf("got problem fields %v, want entityStatus closed", p.Fields)
		}
		var h wire.List[wire.Event]
		d.want(d.ask("GET", "lifecycles/invoice/entities/i1/history?limit=2", nil, &h), 200, "")
		if len(h.Items) != 2 || h.Next == nil {
			t.Fatalf("got history %+v, want 2 events and a next page", h)
		}
		d.want(d.ask("GET", "lifecycles/invoice/entities/i1/history?cursor="+*h.Next, nil, &h), 200, "")
		if len(h.Items) != 1 || h.Items[0].Name != "settled/close" || h.Next != nil {
			t.Errorf("got second page %+v, want only settled/close", h)
		}
		var all wire.List[wire.Entity]
		d.want(d.ask("GET", "lifecycles/invoice/entities?status=closed", nil, &all), 200, "")
		if len(all.Items) != 1 {
			t.Errorf("listed %+v, want one", all)
		}
	}, invoices(nil))
}

func TestAClaimIsTakenByTokenAndSettledOnce(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i1"), Data: []byte(`{"a":1,"b":2}`)}, nil), 201, "")
		var got wire.Claimed
		d.want(d.ask("POST", "lifecycles/invoice/entities/i1/claims", wire.NewClaim{StepKey: "close", Requester: "admin"}, &got), 201, "")
		if got.Claim.Token == "" || got.Entity.Status != "closing" || got.Entity.Claim == nil {
			t.Fatalf("claimed %+v", got)
		}
		p := d.want(d.ask("POST", "lifecycles/invoice/entities/i1/claims", wire.NewClaim{StepKey: "close", Requester: "admin"}, nil), 409, fault.ClaimFailed)
		if p.Fields["holder"] == nil || p.Fields["until"] == nil {
			t.Errorf("got problem fields %v, want holder and until", p.Fields)
		}
		path := "claims/" + got.Claim.Token
		d.want(d.ask("POST", path+"/renew", wire.Renew{LeaseMs: 60000}, nil), 200, "")
		var x wire.EffectState
		d.want(d.ask("POST", path+"/effects", wire.EffectCall{Name: "charge"}, &x), 200, "")
		if x.State != "begun" || x.Key == "" {
			t.Errorf("got effect %+v, want it begun with a key", x)
		}
		d.want(d.ask("POST", path+"/effects", wire.EffectCall{Name: "charge", Result: []byte(`"ch_1"`)}, &x), 200, "")
		settle := wire.Settle{Outcome: "success", Data: []byte(`{"a":null,"c":3}`), Events: []wire.SettleEvent{{Stream: "credits", Name: "credit"}}}
		var done, again wire.Settled
		d.want(d.ask("POST", path+"/settle", settle, &done), 200, "")
		if done.Entity.Status != "closed" || string(done.Entity.Data) != `{"b":2,"c":3}` && string(done.Entity.Data) != `{"b": 2, "c": 3}` {
			t.Errorf("got data %s after settle", done.Entity.Data)
		}
		d.want(d.ask("POST", path+"/settle", settle, &again), 200, "")
		if again.Entity.Version != done.Entity.Version {
			t.Errorf("second settle returned version %d, want %d", again.Entity.Version, done.Entity.Version)
		}
		d.want(d.ask("POST", path+"/settle", wire.Settle{Outcome: "failure"}, nil), 409, fault.LeaseLost)
		var events wire.List[wire.Event]
		d.want(d.ask("GET", "streams/credits/events", nil, &events), 200, "")
		if len(events.Items) != 1 {
			t.Errorf("got %d credits, want 1", len(events.Items))
		}
		d.want(d.ask("POST", "claims/clm_AAAAAAAAAAAAAAAAAAAAAA/settle", settle, nil), 404, fault.NotFound)
	}, invoices(nil))
}

func TestAStreamIsAppendedToAndRead(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		none := int64(-1)
		var done wire.Appended
		d.want(d.ask("POST", "streams/a%2Fb/events", wire.Append{ExpectedVersion: &none, Events: []wire.NewEvent{{Name: "one"}, {Name: "two"}}}, &done), 201, "")
		if done.Stream != "a/b" || done.LastVersion != 1 || len(done.Events) != 2 || done.Events[1].Name != "two" {
			t.Fatalf("appended %+v", done)
		}
		p := d.want(d.ask("POST", "streams/a%2Fb/events", wire.Append{ExpectedVersion: &none, Events: []wire.NewEvent{{Name: "x"}}}, nil), 409, fault.Concurrency)
		if p.Fields["lastVersion"] != 1.0 || p.Fields["expectedVersion"] != -1.0 {
			t.Errorf("got problem fields %v, want lastVersion 1 and expectedVersion -1", p.Fields)
		}
		var back wire.List[wire.Event]
		d.want(d.ask("GET", "streams/a%2Fb/events?backward=true&limit=1", nil, &back), 200, "")
		if len(back.Items) != 1 || back.Items[0].Name != "two" || back.Next == nil {
			t.Fatalf("read %+v", back)
		}
		d.want(d.ask("GET", "streams/a%2Fb/events?backward=true&limit=1&cursor="+*back.Next, nil, &back), 200, "")
		if len(back.Items) != 1 || back.Items[0].Name != "one" {
			t.Errorf("got next page %+v, want event one", back)
		}
		d.want(d.ask("POST", "streams/$entity%2Finvoice%2Fi1/events", wire.Append{Events: []wire.NewEvent{{Name: "x"}}}, nil), 403, fault.Forbidden)
	}, invoices(nil))
}

func TestARepeatedRequestIsDoneOnce(t *testing.T) {
	// The lifecycle serves both databases at once: each has its own entity and count.
	calls := map[string]*atomic.Int64{"sqlite": new(atomic.Int64), "postgres": new(atomic.Int64)}
	act := func(_ context.Context, a *lifecycle.Act[json.RawMessage]) error {
		calls[a.Entity.ID].Add(1)
		return nil
	}
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		id := path.Base(t.Name())
		body := wire.Append{Events: []wire.NewEvent{{Name: "one"}}}
		first := d.ask("POST", "streams/s/events", body, nil, "Idempotency-Key", "k1")
		d.want(first, 201, "")
		second := d.ask("POST", "streams/s/events", body, nil, "Idempotency-Key", "k1")
		d.want(second, 201, "")
		a, _ := io.ReadAll(first.Body)
		b, _ := io.ReadAll(second.Body)
		if second.Header.Get("Idempotency-Replayed") != "true" || !bytes.Equal(a, b) {
			t.Errorf("first call returned %s, second returned %s, want a replay", a, b)
		}
		d.want(d.ask("POST", "streams/s/events", wire.Append{Events: []wire.NewEvent{{Name: "two"}}}, nil, "Idempotency-Key", "k1"), 422, fault.KeyMismatch)
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new(id)}, nil), 201, "")
		for i := range 2 {
			var fired wire.Fired
			resp := d.ask("POST", "lifecycles/invoice/entities/"+id+"/steps/close", wire.Fire{Requester: "admin"}, &fired, "Idempotency-Key", "k2")
			d.want(resp, 200, "")
			if fired.Outcome != "success" || (resp.Header.Get("Idempotency-Replayed") == "true") != (i == 1) {
				t.Errorf("request %d: got %+v, headers %v", i, fired, resp.Header)
			}
		}
		if n := calls[id].Load(); n != 1 {
			t.Errorf("the action ran %d times, want 1", n)
		}
		d.want(d.ask("POST", "lifecycles/invoice/entities/"+id+"/steps/close", wire.Fire{Requester: "admin"}, nil, "Idempotency-Key", "k3"), 409, fault.InvalidTransition)
	}, invoices(act))
}
