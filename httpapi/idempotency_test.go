package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/wire"
)

const paymentConfig = `{
  "workflow": "payment", "owning_module": "billing", "initial_status": "open", "status_types": ["open", "paying", "paid"],
  "steps": [{"step_id": 1, "step_key": "pay", "status": "open", "successful_claim_state": ["paying", "open"], "successful_state": "paid", "action": "Pay"}]
}`

// bank is an external system whose behaviour is controlled by the input of the step.
type bank struct {
	calls atomic.Int64
	apis  atomic.Int64 // APIs that call it
}

var errLine = errors.New("the line broke")

// payments is a lifecycle whose action charges ("fine"), has an unknown outcome ("unknown"), fails
// before it charges ("fails"), or is refused ("refused").
func (b *bank) payments() holdfast.Part {
	act := func(ctx context.Context, a *lifecycle.Act[json.RawMessage]) error {
		var how string
		if err := a.Decode(&how); err != nil {
			return err
		}
		switch how {
		case "fails":
			b.calls.Add(1)
			return errLine
		case "refused":
			b.calls.Add(1)
			return holdfast.Invalid("not today")
		}
		_, err := holdfast.Effect(ctx, "charge", func(context.Context, string) (int, error) {
			b.calls.Add(1)
			if how == "unknown" {
				return 0, errLine
			}
			return 1, nil
		})
		return err
	}
	return lifecycle.MustParse[json.RawMessage]([]byte(paymentConfig)).RecoveredBy().Action("Pay", act, lifecycle.Journaled())
}

const keyHeader, replayedHeader = "Idempotency-Key", "Idempotency-Replayed"

// TestManyAtOnceUnderOneKey verifies invariant I25 over HTTP: of concurrent requests with one key
// one is carried out; each other one gets its response, or KEY_IN_FLIGHT and then the response.
func TestManyAtOnceUnderOneKey(t *testing.T) {
	b := new(bank)
	cases := []struct {
		name, method, path string
		body               any
		status             int
		count              string // a list that has one item afterwards
	}{
		{"append", "POST", "streams/s/events", exampleBodies["appendEvents"], 201, "streams/s/events"},
		{"create", "POST", "lifecycles/invoice/entities", wire.NewEntity{}, 201, "lifecycles/invoice/entities"},
		{"fire", "POST", "lifecycles/payment/entities/p/steps/pay", wire.Fire{Requester: "any", Input: []byte(`"fine"`)}, 200, ""},
		{"create a key", "POST", "keys", wire.NewKey{Role: "read"}, 201, "keys"},
		{"put a reaction", "PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, 201, "reactions"},
		{"claim", "POST", "lifecycles/payment/entities/q/claims", wire.NewClaim{StepKey: "pay", Requester: "any"}, 201, "claims"},
	}
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		b.apis.Add(1)
		d.want(d.ask("POST", "lifecycles/payment/entities", wire.NewEntity{ID: new("p")}, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/payment/entities", wire.NewEntity{ID: new("q")}, nil), 201, "")
		for _, c := range cases {
			var mu sync.Mutex
			firsts, answers := 0, make(map[string]int)
			holdfasttest.Race(t, 20, func(int) error {
				resp := d.ask(c.method, c.path, c.body, nil, keyHeader, "k "+c.name)
				for resp.StatusCode == 409 {
					if p := d.problem(resp); p.Code != fault.KeyInFlight || resp.Header.Get("Retry-After") == "" {
						t.Errorf("%s: got %s, Retry-After %q, want KEY_IN_FLIGHT with Retry-After", c.name, textOf(resp), resp.Header.Get("Retry-After"))
						return nil
					}
					resp = d.ask(c.method, c.path, c.body, nil, keyHeader, "k "+c.name)
				}
				mu.Lock()
				defer mu.Unlock()
				if resp.Header.Get(replayedHeader) != "true" {
					firsts++
				}
				answers[fmt.Sprint(resp.StatusCode)+" "+resp.Header.Get("Location")+" "+core(textOf(resp))]++
				return nil
			})
			if firsts != 1 || len(answers) != 1 {
				t.Errorf("%s: %d responses were not replays, want 1; got responses %v", c.name, firsts, answers)
			}
			for text := range answers {
				if !strings.HasPrefix(text, fmt.Sprint(c.status)) {
					t.Errorf("%s: got %s, want status %d", c.name, text, c.status)
				}
			}
			if c.count == "" {
				continue
			}
			var list wire.List[json.RawMessage]
			d.want(d.ask("GET", c.count, nil, &list), 200, "")
			if len(list.Items) != 1 {
				t.Errorf("%s: got %d, want 1", c.name, len(list.Items))
			}
		}
	}, invoices(nil), b.payments())
	t.Cleanup(func() {
		if n := b.calls.Load(); n != b.apis.Load() {
			t.Errorf("the bank was called %d times, want %d", n, b.apis.Load())
		}
	})
}

func (d *testAPI) problem(resp *http.Response) (p wire.Problem) {
	_ = json.Unmarshal([]byte(textOf(resp)), &p)
	return p
}

// core returns the part that all responses to one request have in common: a secret is returned
// once, a token is new each time, and an operation is only in some responses.
func core(text string) string {
	var doc map[string]any
	if json.Unmarshal([]byte(text), &doc) != nil {
		return text
	}
	delete(doc, "secret")
	delete(doc, "operation")
	if claim, ok := doc["claim"].(map[string]any); ok {
		delete(claim, "token")
	}
	out, _ := json.Marshal(doc)
	return string(out)
}

func TestAKeyIsOfOneRequest(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		first := d.ask("POST", "streams/s/events", `{"events":[{"name":"n","data":{"a":1,"b":[2,3]}}],"expectedVersion":-1}`, nil, keyHeader, "k")
		d.want(first, 201, "")
		same := d.ask("POST", "streams/s/events", ` { "expectedVersion" : -1, "events":[{"data":{"b":[2,30e-1],"a":1.0},"name":"n"}]} `, nil, keyHeader, "k")
		d.want(same, 201, "")
		if textOf(first) != textOf(same) || same.Header.Get("Location") != first.Header.Get("Location") || same.Header.Get(replayedHeader) != "true" {
			t.Errorf("first call returned %s, second returned %s, want a replay", textOf(first), textOf(same))
		}
		for name, c := range map[string][3]string{
			"other body":   {"POST", "streams/s/events", `{"events":[{"name":"n","data":{"a":1,"b":[3,2]}}],"expectedVersion":-1}`},
			"other number": {"POST", "streams/s/events", `{"events":[{"name":"n","data":{"a":1.1,"b":[2,3]}}],"expectedVersion":-1}`},
			"other stream": {"POST", "streams/t/events", `{"events":[{"name":"n","data":{"a":1,"b":[2,3]}}],"expectedVersion":-1}`},
		} {
			resp := d.ask(c[0], c[1], c[2], nil, keyHeader, "k")
			if p := d.problem(resp); resp.StatusCode != 422 || p.Code != fault.KeyMismatch {
				t.Errorf("%s: got status %d %s, want 422 KEY_MISMATCH", name, resp.StatusCode, textOf(resp))
			}
		}
		// The key of a run compares the input by the same rule.
		d.want(d.ask("POST", "workflow-definitions", `{"name":"w","version":"1","steps":[{"name":"a","type":"event","signal":"go"}]}`, nil), 201, "")
		start := func(number, key string, headers ...string) *http.Response {
			return d.ask("POST", "workflow-runs", `{"definitionId":"w@1","idempotencyKey":"`+key+`","input":{"n":`+number+`}}`, nil, headers...)
		}
		d.want(start("1", "r"), 201, "")
		d.want(start("1.0", "r"), 200, "")
		d.want(start("1.1", "r"), 422, fault.KeyMismatch)
		d.want(start("1", "h", keyHeader, "h"), 201, "")
		d.want(start("1.0", "h", keyHeader, "h"), 201, "")
		d.want(start("1.1", "h", keyHeader, "h"), 422, fault.KeyMismatch)
		// Another workspace has its own keys.
		d.want(d.ask("POST", "streams/t/events", exampleBodies["appendEvents"], nil, keyHeader, "k", "X-Holdfast-Workspace", "other"), 201, "")
		d.want(d.ask("GET", "streams/t/events", nil, nil), 200, "")
	}, invoices(nil))
}

// TestARefusalIsNotKept verifies that a refused request changed nothing, and can be repeated under
// its key.
func TestARefusalIsNotKept(t *testing.T) {
	b := new(bank)
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		at := int64(0)
		body := wire.Append{ExpectedVersion: &at, Events: []wire.NewEvent{{Name: "n"}}}
		d.want(d.ask("POST", "streams/s/events", body, nil, keyHeader, "k1"), 409, fault.Concurrency)
		d.want(d.ask("POST", "streams/s/events", exampleBodies["appendEvents"], nil), 201, "")
		resp := d.ask("POST", "streams/s/events", body, nil, keyHeader, "k1")
		d.want(resp, 201, "")
		if resp.Header.Get(replayedHeader) != "" {
			t.Error("got a replay of a request that was not executed")
		}
		fire := wire.Fire{Requester: "any", Input: []byte(`"fine"`)}
		d.want(d.ask("POST", "lifecycles/payment/entities/p/steps/pay", fire, nil, keyHeader, "k2"), 404, fault.NotFound)
		d.want(d.ask("POST", "lifecycles/payment/entities", wire.NewEntity{ID: new("p")}, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/payment/entities/p/steps/pay", fire, nil, keyHeader, "k2"), 200, "")
		d.want(d.ask("POST", "reactions/r/claim", wire.ClaimLeases{By: "me"}, nil, keyHeader, "k3"), 404, fault.NotFound)
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
		d.want(d.ask("POST", "reactions/r/claim", wire.ClaimLeases{By: "me"}, nil, keyHeader, "k3"), 200, "")
		d.want(d.ask("POST", "lifecycles/payment/entities", wire.NewEntity{ID: new("p")}, nil, keyHeader, "k4"), 409, fault.Conflict)
		d.want(d.ask("POST", "lifecycles/payment/entities", wire.NewEntity{ID: new("p4")}, nil, keyHeader, "k4"), 201, "")
	}, invoices(nil), b.payments())
}

// TestAFireWithoutEffectFreesItsKey verifies that a step that was released without effect frees its
// key, so it can be fired again.
func TestAFireWithoutEffectFreesItsKey(t *testing.T) {
	for how, code := range map[string]fault.Code{"fails": fault.ActionFailed, "refused": fault.ActionInvalid} {
		t.Run(how, func(t *testing.T) {
			b := new(bank)
			d := newTestAPI(t, holdfasttest.Open(t, b.payments()), httpapi.Options{NoKeys: true})
			d.want(d.ask("POST", "lifecycles/payment/entities", wire.NewEntity{ID: new("p")}, nil), 201, "")
			fire := wire.Fire{Requester: "any", Input: []byte(`"` + how + `"`)}
			for i := range 3 {
				d.want(d.ask("POST", "lifecycles/payment/entities/p/steps/pay", fire, nil, keyHeader, "k"), 422, code)
				if n := b.calls.Load(); n != int64(i+1) {
					t.Errorf("the action ran %d times, want %d", n, i+1)
				}
			}
			fire.Input = []byte(`"fine"`)
			d.want(d.ask("POST", "lifecycles/payment/entities/p/steps/pay", fire, nil, keyHeader, "k"), 422, fault.KeyMismatch)
			d.want(d.ask("POST", "lifecycles/payment/entities/p/steps/pay", fire, nil, keyHeader, "other"), 200, "")
		})
	}
}

// TestAnUncertainFireIsReplayedAsItStands verifies that a step with an unknown effect returns 202,
// and that a repetition returns its current outcome.
func TestAnUncertainFireIsReplayedAsItStands(t *testing.T) {
	b := new(bank)
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		b.apis.Add(1)
		for _, id := range []string{"p", "q"} {
			d.want(d.ask("POST", "lifecycles/payment/entities", wire.NewEntity{ID: new(id)}, nil), 201, "")
			fire := wire.Fire{Requester: "any", Input: []byte(`"unknown"`)}
			path := "lifecycles/payment/entities/" + id + "/steps/pay"
			var operation string
			for i := range 3 {
				var fired wire.Fired
				resp := d.ask("POST", path, fire, &fired, keyHeader, "k"+id)
				d.want(resp, 202, "")
				if fired.Outcome != "uncertain" || fired.Operation == "" || operation != "" && fired.Operation != operation || (resp.Header.Get(replayedHeader) == "true") != (i > 0) {
					t.Fatalf("request %d: got %+v, headers %v, want uncertain", i, fired, resp.Header)
				}
				operation = fired.Operation
			}
			d.want(d.ask("POST", path, fire, nil, keyHeader, "another"+id), 409, fault.ClaimFailed)
			d.refused("an outcome", d.ask("POST", "operations/"+operation+"/resolve", wire.Resolve{Outcome: "maybe"}, nil))
			d.refused("an effect", d.ask("POST", "operations/"+operation+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "nonsense", Happened: new(true)}}}, nil))
			known := wire.Resolve{Effects: []wire.KnownEffect{{Name: "charge", Happened: new(true), Result: []byte("1")}}, Outcome: "success"}
			var done wire.Resolved
			d.want(d.ask("POST", "operations/"+operation+"/resolve", known, &done, keyHeader, "r"+id), 200, "")
			again := d.ask("POST", "operations/"+operation+"/resolve", known, &done, keyHeader, "r"+id)
			d.want(again, 200, "")
			if again.Header.Get(replayedHeader) != "true" || done.Operation != nil {
				t.Errorf("resolve returned %+v, want a replay without an operation", done)
			}
			var fired wire.Fired
			d.want(d.ask("POST", path, fire, &fired, keyHeader, "k"+id), 200, "")
			if fired.Outcome != "success" || fired.Entity.Status != "paid" {
				t.Errorf("got %+v, want success and status paid", fired)
			}
		}
	}, b.payments())
	t.Cleanup(func() {
		if n := b.calls.Load(); n != 2*b.apis.Load() { // for two entities
			t.Errorf("the bank was called %d times, want %d", n, 2*b.apis.Load())
		}
	})
}

func TestAKeyIsReplayedWithoutItsSecret(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		var made, again wire.CreatedKey
		d.want(d.ask("POST", "keys", wire.NewKey{Role: "read"}, &made, keyHeader, "k"), 201, "")
		d.want(d.ask("POST", "keys", wire.NewKey{Role: "read"}, &again, keyHeader, "k"), 201, "")
		if made.Secret == "" || again.Secret != "" || again.ID != made.ID {
			t.Errorf("first call created %+v, second returned %+v, want the same id without the secret", made, again)
		}
		var next, then wire.CreatedKey
		d.want(d.ask("POST", "keys/"+made.ID+"/rotate", wire.RotateKey{}, &next, keyHeader, "k2"), 201, "")
		d.want(d.ask("POST", "keys/"+made.ID+"/rotate", wire.RotateKey{}, &then, keyHeader, "k2"), 201, "")
		if next.Secret == "" || then.Secret != "" || then.ID != next.ID {
			t.Errorf("first call rotated to %+v, second returned %+v, want the same id without the secret", next, then)
		}
	})
}

// TestAClaimIsReplayedWithATokenThatWorks verifies that a claim repeated under its key is the same
// claim, with a token that works.
func TestAClaimIsReplayedWithATokenThatWorks(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "")
		var first, second wire.Claimed
		ask := func(into *wire.Claimed) *http.Response {
			return d.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], into, keyHeader, "k")
		}
		d.want(ask(&first), 201, "")
		resp := ask(&second)
		d.want(resp, 201, "")
		if resp.Header.Get(replayedHeader) != "true" || second.Claim.Epoch != first.Claim.Epoch || second.Entity.Claim.Operation != first.Entity.Claim.Operation {
			t.Errorf("first call claimed %+v, second returned %+v, want a replay", first, second)
		}
		d.want(d.ask("POST", "claims/"+first.Claim.Token+"/renew", nil, nil), 200, "")
		d.want(d.ask("POST", "claims/"+second.Claim.Token+"/settle", wire.Settle{Outcome: "success"}, nil), 200, "")
		d.want(d.ask("POST", "claims/"+first.Claim.Token+"/settle", wire.Settle{Outcome: "success"}, nil), 200, "")
		d.want(ask(nil), 409, fault.Conflict)
	}, invoices(nil))
}

// holdKey takes the key of a request for a holder that crashes, on a server without API keys.
func (d *testAPI) holdKey(route, key, method, path, body string) {
	d.t.Helper()
	asked := idempotency.Incoming{Owner: "dev", Method: method, Target: "/api/v1/" + path + "?", Body: []byte(body), JSON: true}
	_, mine, err := idempotency.Take(context.Background(), engine.Of(d.engine),
		idempotency.TakeArgs{Key: idempotency.Stored(route, "", key), Fingerprint: asked.Fingerprint(), Holder: "dead " + key, Lease: time.Minute})
	if err != nil || !mine {
		d.t.Fatal(mine, err)
	}
}

// TestADeadOwnersKeyIsUsableAfterItsHold verifies that the key of a crashed holder is in flight
// until its lease expires, and then usable; a different request never gets it.
func TestADeadOwnersKeyIsUsableAfterItsHold(t *testing.T) {
	cases := map[string][5]string{
		"in a transaction": {"POST", "streams/s/events", `{"events":[{"name":"n"}]}`, "appendEvents", `{"events":[{"name":"other"}]}`},
		"under a hold":     {"PUT", "reactions/r", `{"events":["*"]}`, "putReaction", `{"events":["other"]}`},
		"an operation":     {"POST", "lifecycles/invoice/entities/i/steps/close", `{"requester":"admin"}`, "fireStep", `{"requester":"admin","input":1}`},
	}
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "")
		for name, c := range cases {
			d.holdKey(c[3], name, c[0], c[1], c[2])
		}
		for name, c := range cases {
			resp := d.ask(c[0], c[1], c[2], nil, keyHeader, name)
			d.want(resp, 409, fault.KeyInFlight)
			if resp.Header.Get("Retry-After") == "" {
				t.Errorf("%s: no Retry-After", name)
			}
			d.want(d.ask(c[0], c[1], c[4], nil, keyHeader, name), 422, fault.KeyMismatch)
		}
		holdfasttest.Advance(t, d.engine, 2*time.Minute)
		for name, c := range cases {
			d.want(d.ask(c[0], c[1], c[4], nil, keyHeader, name), 422, fault.KeyMismatch)
			for i := range 2 {
				resp := d.ask(c[0], c[1], c[2], nil, keyHeader, name)
				if resp.StatusCode > 201 || (resp.Header.Get(replayedHeader) == "true") != (i == 1) {
					t.Errorf("%s, request %d: got status %d %s", name, i, resp.StatusCode, textOf(resp))
				}
			}
		}
	}, invoices(nil))
}

// TestAnUnclaimedFireIsDoneOnce verifies that a step that acts without a claim runs once under its
// key, however many requests come at once: the others are told that it is in progress, and later
// get its outcome.
func TestAnUnclaimedFireIsDoneOnce(t *testing.T) {
	doneOnceUnderAKey(t, `{"workflow": "note", "owning_module": "notes", "initial_status": "new", "status_types": ["new", "sent"],
	  "steps": [{"step_id": 1, "step_key": "send", "status": "new", "successful_state": "sent", "action": "Send"}]}`, nil)
}

// TestASerializedFireIsDoneOnce verifies the same for a step that acts under a lease, which other
// claims see.
func TestASerializedFireIsDoneOnce(t *testing.T) {
	doneOnceUnderAKey(t, `{"workflow": "note", "owning_module": "notes", "initial_status": "new", "status_types": ["new", "sending", "sent"], "janitor": {},
	  "steps": [{"step_id": 1, "step_key": "send", "status": "new", "successful_state": {"any": "sent", "boss": "sent"}, "action": "Send",
	             "successful_claim_state": {"boss": ["sending", "new"]}, "serialized": ["any"]}]}`, func(d *testAPI) {
		var now wire.Entity
		d.want(d.ask("GET", "lifecycles/note/entities/n", nil, &now), 200, "")
		if now.Status != "new" || now.Claim == nil || now.Claim.Requester != "any" {
			d.t.Errorf("got entity %+v, want status new, claimed by any", now)
		}
		d.want(d.ask("POST", "lifecycles/note/entities/n/steps/send", wire.Fire{Requester: "boss"}, nil), 409, fault.ClaimFailed)
		d.want(d.ask("POST", "lifecycles/note/entities/n/claims", wire.NewClaim{StepKey: "send", Requester: "boss"}, nil), 409, fault.ClaimFailed)
	})
}

// doneOnceUnderAKey fires a step many times at once; meanwhile is called while its body runs.
func doneOnceUnderAKey(t *testing.T, config string, meanwhile func(*testAPI)) {
	test := func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		var calls atomic.Int64
		begun, goOn := make(chan struct{}, 100), make(chan struct{})
		var refuses atomic.Bool
		send := func(ctx context.Context, _ *lifecycle.Act[json.RawMessage]) error {
			calls.Add(1)
			begun <- struct{}{}
			<-goOn
			if refuses.Load() {
				return holdfast.Invalid("not today")
			}
			return nil
		}
		e := open(lifecycle.MustParse[json.RawMessage]([]byte(config)).Action("Send", send))
		d := newTestAPI(t, e, httpapi.Options{NoKeys: true})
		d.want(d.ask("POST", "lifecycles/note/entities", wire.NewEntity{ID: new("n")}, nil), 201, "")
		fire := func() *http.Response {
			return d.ask("POST", "lifecycles/note/entities/n/steps/send", wire.Fire{Requester: "any"}, nil, keyHeader, "k")
		}
		before := calls.Load()
		var all sync.WaitGroup
		var done, waits atomic.Int64
		for range 20 {
			all.Go(func() {
				switch resp := fire(); resp.StatusCode {
				case 200:
					done.Add(1)
				case 409:
					waits.Add(1)
				default:
					t.Errorf("got status %d", resp.StatusCode)
				}
			})
		}
		<-begun
		resp := fire()
		d.want(resp, 409, fault.KeyInFlight)
		if resp.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if meanwhile != nil {
			meanwhile(d)
		}
		goOn <- struct{}{}
		all.Wait()
		resp = fire()
		d.want(resp, 200, "")
		if resp.Header.Get(replayedHeader) != "true" || calls.Load() != before+1 || done.Load() < 1 || done.Load()+waits.Load() != 20 {
			t.Errorf("the action ran %d times, want 1; %d requests completed, %d got a conflict", calls.Load()-before, done.Load(), waits.Load())
		}

		d.want(d.ask("POST", "lifecycles/note/entities", wire.NewEntity{ID: new("m")}, nil), 201, "")
		refuses.Store(true) // a refused request can be repeated under its key
		defer refuses.Store(false)
		for range 2 {
			all.Go(func() { <-begun; goOn <- struct{}{} })
			d.want(d.ask("POST", "lifecycles/note/entities/m/steps/send", wire.Fire{Requester: "any"}, nil, keyHeader, "k2"), 422, fault.ActionInvalid)
			all.Wait()
		}
	}
	storetest.OnEach(t, func(t *testing.T, db string) {
		test(t, func(p ...holdfast.Part) *holdfast.Engine { return holdfasttest.OpenOn(t, holdfasttest.At(db), p...) })
	})
}
