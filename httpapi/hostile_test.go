package httpapi_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/wire"
)

// TestOtherOriginsChangeNothing verifies that a server without keys accepts only loopback host
// names, so that a web page cannot reach it by a name of its own, and that no page of another
// origin changes anything, with or without keys.
func TestOtherOriginsChangeNothing(t *testing.T) {
	t.Parallel()
	e := holdfasttest.Open(t)
	open, keyed := newTestAPI(t, e, httpapi.Options{NoKeys: true}), newTestAPI(t, e, httpapi.Options{})
	for _, c := range []struct {
		api          *testAPI
		method, path string
		headers      string // "Host: …"
		want         int
	}{
		{open, "GET", "/api/v1/workspaces", "Host: rebound.example", 403},
		{open, "GET", "/metrics", "Host: rebound.example:7070", 403},
		{open, "GET", "/api/v1/workspaces", "Host: 127.0.0.1.example", 403},
		{open, "GET", "/api/v1/workspaces", "Host: 10.0.0.7:7070", 403},
		{open, "GET", "/api/v1/workspaces", "Host: localhost.example", 403},
		{open, "GET", "/api/v1/workspaces", "Host: localhost:7070", 200},
		{open, "GET", "/api/v1/workspaces", "Host: LOCALHOST", 200},
		{open, "GET", "/api/v1/workspaces", "Host: [::1]:7070", 200},
		{open, "GET", "/api/v1/workspaces", "Host: 127.9.9.9", 200},
		{open, "POST", "/api/v1/runs/r/cancel", "Origin: https://evil.example", 403},
		{open, "POST", "/api/v1/runs/r/cancel", "Sec-Fetch-Site: cross-site", 403},
		{open, "POST", "/api/v1/runs/r/cancel", "Sec-Fetch-Site: same-site", 403},
		{open, "POST", "/api/v1/runs/r/cancel", "Origin: null", 403},
		{open, "POST", "/api/v1/runs/r/cancel", "Sec-Fetch-Site: same-origin", 404},
		{open, "POST", "/api/v1/runs/r/cancel", "", 404},
		{open, "GET", "/api/v1/workspaces", "Origin: https://evil.example", 200}, // the browser does not give the response to the page
		{keyed, "POST", "/api/v1/runs/r/cancel", "Sec-Fetch-Site: cross-site", 403},
		{keyed, "POST", "/api/v1/runs/r/cancel", "Host: holdfast.example", 401},
		{keyed, "GET", "/healthz", "Host: 10.0.0.7:7070", 200},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, c.api.url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		name, value, _ := strings.Cut(c.headers, ": ")
		switch name {
		case "Host":
			r.Host = value
		case "":
		default:
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if text := textOf(resp); resp.StatusCode != c.want {
			t.Errorf("%s %s with headers %q: got status %d %s, want %d", c.method, c.path, c.headers, resp.StatusCode, text, c.want)
		}
		_ = resp.Body.Close()
	}
}

// TestAnOrdinalTooLargeIsRefused verifies that an effect ordinal that exceeds the database's range
// is refused everywhere.
func TestAnOrdinalTooLargeIsRefused(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		var made wire.Claimed
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], &made), 201, "")
		for _, ordinal := range []int{-1, 1 << 31, 1 << 62} {
			d.want(d.ask("POST", "claims/"+made.Claim.Token+"/effects", wire.EffectCall{Name: "x", Ordinal: ordinal}, nil), 400, fault.Validation)
			d.want(d.ask("POST", "tasks/tsk_/effects", wire.EffectCall{Name: "x", Ordinal: ordinal}, nil), 400, fault.Validation)
			d.want(d.ask("POST", "operations/"+made.Entity.Claim.Operation+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "x", Ordinal: ordinal, Happened: new(false)}}}, nil), 400, fault.Validation)
		}
		d.want(d.ask("POST", "claims/"+made.Claim.Token+"/effects", wire.EffectCall{Name: "x", Ordinal: 1<<31 - 1}, nil), 200, "")
	}, invoices(nil))
}

// TestDocumentsAreReadAsWhatTheyAreSaidToBe verifies that a body declared as JSON is not parsed as
// YAML, and that a short text that expands to many values is refused in both formats.
func TestDocumentsAreReadAsWhatTheyAreSaidToBe(t *testing.T) {
	t.Parallel()
	d := newTestAPI(t, holdfasttest.Open(t), elsewhere)
	bomb := strings.Repeat("[[]],", 1<<20/5-20)
	for _, path := range []string{"PUT lifecycles/invoice", "POST workflow-definitions"} {
		method, path, _ := strings.Cut(path, " ")
		for text, kinds := range map[string][]string{
			"name: x\nversion: '1'\n":               {"application/json"},
			"[1]":                                   {"application/json"},
			`{"name":"x","steps":[` + bomb + `[]]}`: {"application/json", "application/yaml"},
			"steps: [" + bomb + "[]]":               {"application/yaml"},
		} {
			for _, kind := range kinds {
				resp := d.ask(method, path, text, nil, "Content-Type", kind)
				if told := textOf(resp); resp.StatusCode != 400 && resp.StatusCode != 422 || strings.HasPrefix(text, "steps") && !strings.Contains(told, "more than 50000") {
					t.Errorf("%s of %.30q as %s: got status %d %s", path, text, kind, resp.StatusCode, told)
				}
			}
		}
	}
}

// elsewhereWithKeys is [elsewhere] on a server with keys.
var elsewhereWithKeys = httpapi.Options{SecretKeys: sealing, AllowPrivate: elsewhere.AllowPrivate}

// TestARevokedKeyIsGivenNothingMore verifies that a revoked key gets nothing more on open
// connections: no event on a stream, and no task in a long poll.
func TestARevokedKeyIsGivenNothingMore(t *testing.T) {
	t.Parallel()
	eachTestAPI(t, elsewhereWithKeys, func(t *testing.T, d *testAPI) {
		d.running()
		_, admin := d.newKey("default", keys.Admin, 0)
		gone, text := d.newKey("default", keys.Worker, 0)
		us, them := d.as(admin), d.as(text)
		us.want(us.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		us.want(us.ask("PUT", "lifecycles/job", jobConfig, nil), 201, "")
		us.want(us.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: new("j")}, nil), 201, "")
		l := d.listen("events", "Authorization", "Bearer "+text)
		us.append("s", 1)
		l.next()
		polled := make(chan *http.Response, 1)
		go func() {
			polled <- them.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Do"}, WaitMs: new(wire.Millis(30_000))}, nil)
		}()
		us.want(us.ask("DELETE", "keys/"+gone.ID, nil, nil), 200, "")
		testkit.Eventually(t, "the server, which caches a key for two seconds, refuses it", func() bool {
			return them.ask("GET", "events", nil, nil).StatusCode == http.StatusUnauthorized
		})
		them.want(<-polled, 401, fault.Auth) // the poll checks the key again each second, before it looks for work
		us.append("s", 1)
		us.want(us.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		if line, err := l.in.ReadString('\n'); err == nil && !strings.HasPrefix(line, ":") {
			t.Errorf("the event stream sent %q, want only comments", line)
		}
		var got wire.Tasks
		us.want(us.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w2", Handlers: []string{"Do"}, WaitMs: new(wire.Millis)}, &got), 200, "")
		if len(got.Tasks) != 1 {
			t.Errorf("second worker claimed %v, want one task", got.Tasks)
		}
	})
}

// TestAnIdempotencyKeyIsOfItsRouteAndItsCaller verifies that the response stored under an
// Idempotency-Key is only for the API key that made the request, even if another key may make the
// same request; that nothing is done for the other; and that a key used on one route is free on
// another.
func TestAnIdempotencyKeyIsOfItsRouteAndItsCaller(t *testing.T) {
	eachTestAPI(t, httpapi.Options{}, func(t *testing.T, d *testAPI) {
		_, one := d.newKey("default", keys.Operate, 0)
		_, two := d.newKey("default", keys.Admin, 0)
		us, them := d.as(one), d.as(two)
		append := func(d *testAPI) *http.Response {
			return d.ask("POST", "streams/s/events", exampleBodies["appendEvents"], nil, "Idempotency-Key", "order-7")
		}
		us.want(append(us), 201, "")
		them.want(append(them), 409, fault.Conflict)
		again := append(us)
		us.want(again, 201, "")
		if again.Header.Get("Idempotency-Replayed") != "true" {
			t.Error("the repeated request is not a replay")
		}
		us.want(us.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil, "Idempotency-Key", "order-7"), 201, "")
		us.want(us.ask("POST", "lifecycles/invoice/entities/i/steps/close", exampleBodies["fireStep"], nil, "Idempotency-Key", "order-7"), 200, "")
		them.want(them.ask("POST", "lifecycles/invoice/entities/i/steps/close", exampleBodies["fireStep"], nil, "Idempotency-Key", "order-7"), 409, fault.Conflict)
		var got wire.List[wire.Event]
		us.want(us.ask("GET", "streams/s/events", nil, &got), 200, "")
		if len(got.Items) != 1 {
			t.Errorf("stream has %d events, want 1", len(got.Items))
		}
		long := strings.Repeat("k", 255)
		for range 2 {
			us.want(us.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("j")}, nil, "Idempotency-Key", long), 201, "")
		}
	}, invoices(nil))
}

// TestAKeyPassesOnWhatItHas verifies that a key cannot create or rotate a key with requesters that
// it may not act for itself.
func TestAKeyPassesOnWhatItHas(t *testing.T) {
	eachTestAPI(t, httpapi.Options{}, func(t *testing.T, d *testAPI) {
		make := func(by *testAPI, requesters ...string) *http.Response {
			return by.ask("POST", "keys", wire.NewKey{Role: "admin", Requesters: requesters}, nil)
		}
		all, text := d.newKey("default", keys.Admin, 0)
		root := d.as(text)
		var some, none wire.CreatedKey
		root.want(root.ask("POST", "keys", wire.NewKey{Role: "admin", Requesters: []string{"a", "b"}}, &some), 201, "")
		root.want(root.ask("POST", "keys", wire.NewKey{Role: "admin"}, &none), 201, "")
		mute, few := d.as(none.Secret), d.as(some.Secret)
		for by, bad := range map[*testAPI][][]string{mute: {{"*"}, {"a"}}, few: {{"*"}, {"a", "c"}}} {
			for _, requesters := range bad {
				by.want(make(by, requesters...), 403, fault.Forbidden)
			}
			by.want(by.ask("POST", "keys/"+all.ID+"/rotate", nil, nil), 403, fault.Forbidden)
		}
		mute.want(mute.ask("POST", "keys/"+some.ID+"/rotate", nil, nil), 403, fault.Forbidden)
		few.want(make(few, "a"), 201, "")
		mute.want(make(mute), 201, "")
		few.want(few.ask("POST", "keys/"+some.ID+"/rotate", nil, nil), 201, "")
	})
}

// TestWhatWasNotHandedOutIsEndedByNobody verifies that no caller can end work that the server sends
// to URLs, however well id and epoch are guessed, and that it ends with the URL's response.
func TestWhatWasNotHandedOutIsEndedByNobody(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		called, answer := make(chan struct{}, 3), make(chan struct{})
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			called <- struct{}{}
			<-answer
			_, _ = w.Write([]byte(`{"output":"the URL's own"}`))
		}))
		t.Cleanup(far.Close)
		let := sync.OnceFunc(func() { close(answer) })
		d.want(d.ask("PUT", "handlers/Far", wire.PutHandler{Kind: "http", URL: far.URL, Safety: "idempotent"}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"n"}, Handler: "Far"}, nil), 201, "")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil), 200, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("w", "Far"), nil), 201, "")
		testkit.Run(t, d.engine)
		t.Cleanup(let) // before the engine closes, which waits for the calls
		d.append("s", 1)
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Far", Items: newItems(5, "x")}, nil), 201, "")
		r := d.start("w@1", `{}`)
		for range 3 {
			<-called
		}
		guessed := map[string][]int64{lease.ID("bit_", "b", "x", "Far", "0"): {1, 2}, lease.ID("stp_", r.ID, "do", "1"): {1, 2}, lease.ID("rct_", "mail", "s", "0", "0"): nil}
		for place := range int64(16) { // a stream's epochs begin with its partition
			guessed[lease.ID("rct_", "mail", "s", "0", "0")] = append(guessed[lease.ID("rct_", "mail", "s", "0", "0")], place<<32+1)
		}
		for id, epochs := range guessed {
			for _, e := range epochs {
				d.want(d.ask("POST", "tasks/"+id+"/complete", wire.CompleteTask{Epoch: e, Output: []byte(`"forged"`)}, nil), 404, fault.NotFound)
				d.want(d.ask("POST", "tasks/"+id+"/fail", wire.FailTask{Epoch: e, Message: "forged"}, nil), 404, fault.NotFound)
				signed := id + ".RmFy.AAAAAAAAAAAAAAAAAAAAAA"
				d.want(d.ask("POST", "tasks/"+signed+"/complete", wire.CompleteTask{Epoch: e, Output: []byte(`"forged"`)}, nil), 409, fault.LeaseLost)
				d.want(d.ask("POST", "tasks/"+signed+"/fail", wire.FailTask{Epoch: e, Message: "forged"}, nil), 409, fault.LeaseLost)
				d.want(d.ask("POST", "tasks/"+signed+"/renew", wire.Renew{Epoch: e}, nil), 409, fault.LeaseLost)
				d.want(d.ask("POST", "tasks/"+signed+"/effects", wire.EffectCall{Epoch: e, Name: "forged"}, nil), 409, fault.LeaseLost)
			}
		}
		let()
		if ended := d.runEnds(r.ID, "COMPLETED"); !strings.Contains(string(ended.Output), "the URL's own") {
			t.Errorf("got output %s, want the URL handler's own", ended.Output)
		}
		d.awaitBatch("b")
		var items wire.List[wire.BatchItem]
		d.want(d.ask("GET", "batches/b/items", nil, &items), 200, "")
		if string(items.Items[0].Output) != `"the URL's own"` {
			t.Errorf("got output %s, want the URL handler's own", items.Items[0].Output)
		}
	})
}

// TestWhatAWorkersKeyMayDo verifies that a task belongs to one workspace; that a key restricted to
// handlers claims and ends only their tasks and claims nothing by hand; and that a worker's key
// cannot append events when it settles.
func TestWhatAWorkersKeyMayDo(t *testing.T) {
	eachTestAPI(t, elsewhereWithKeys, func(t *testing.T, d *testAPI) {
		_, admin := d.newKey("default", keys.Admin, 0)
		d = d.as(admin)
		make := func(in wire.NewKey) *testAPI {
			var made wire.CreatedKey
			in.Role = "worker"
			d.want(d.ask("POST", "keys", in, &made), 201, "")
			if len(in.Handlers) != len(made.Handlers) {
				t.Errorf("created %+v for %+v", made.Key, in)
			}
			var again wire.CreatedKey
			d.want(d.ask("POST", "keys/"+made.ID+"/rotate", wire.RotateKey{}, &again), 201, "")
			if len(in.Handlers) != len(again.Handlers) {
				t.Errorf("rotated to %+v", again.Key)
			}
			return d.as(again.Secret)
		}
		limited := make(wire.NewKey{Requesters: []string{"admin"}, Handlers: []string{"Mail"}})
		mails, packs, all := make(wire.NewKey{Handlers: []string{"Mail"}}), make(wire.NewKey{Handlers: []string{"Pack", "Other"}}), make(wire.NewKey{Requesters: []string{"admin"}})
		for _, bad := range []wire.NewKey{{Role: "worker", Handlers: []string{"A", "A"}}, {Role: "worker", Handlers: []string{"*"}}, {Role: "worker", Handlers: []string{""}},
			{Role: "admin", Handlers: []string{"A"}}, {Role: "operate", Handlers: []string{"A"}}, {Role: "read", Handlers: []string{"A"}}} {
			if p := d.want(d.ask("POST", "keys", bad, nil), 400, fault.Validation); p.Fields["pointer"] != "/handlers" {
				t.Errorf("%+v: got problem pointer %v, want /handlers", bad, p.Fields["pointer"])
			}
		}
		for _, name := range []string{"Mail", "Pack"} {
			d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
		}
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"n"}, Handler: "Mail"}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/hand", wire.PutReaction{Events: []string{"n"}}, nil), 201, "")
		d.append("s", 1)
		ask := wire.ClaimTasks{Worker: "w", Handlers: []string{"Mail", "Pack"}, WaitMs: new(wire.Millis)}
		mails.want(mails.ask("POST", "tasks/claim", ask, nil), 403, fault.Forbidden)
		ask.Handlers = []string{"Mail"}
		packs.want(packs.ask("POST", "tasks/claim", ask, nil), 403, fault.Forbidden)
		var got wire.Tasks
		mails.want(mails.ask("POST", "tasks/claim", ask, &got), 200, "")
		if len(got.Tasks) != 1 {
			t.Fatalf("claimed %+v, want one task", got)
		}
		task := got.Tasks[0]
		done := wire.CompleteTask{Epoch: task.Epoch}
		packs.want(packs.ask("POST", "tasks/"+task.ID+"/complete", done, nil), 403, fault.Forbidden)
		d.want(d.ask("POST", "tasks/"+task.ID+"/complete", done, nil, "X-Holdfast-Workspace", "other"), 403, fault.Forbidden)
		_, text := d.newKey("other", keys.Admin, 0)
		other := d.as(text)
		other.want(other.ask("POST", "tasks/"+task.ID+"/complete", done, nil), 409, fault.LeaseLost)
		parts := strings.Split(task.ID, ".") // task, handler and signature
		forged := parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte("Pack")) + "." + parts[2]
		packs.want(packs.ask("POST", "tasks/"+forged+"/complete", done, nil), 409, fault.LeaseLost)
		for how, body := range map[string]any{"claim": wire.ClaimLeases{By: "w"}, "ack": exampleBodies["ackLeases"], "fail": exampleBodies["failLease"], "snooze": exampleBodies["snoozeLease"], "renew": exampleBodies["renewLease"]} {
			mails.want(mails.ask("POST", "reactions/hand/"+how, body, nil), 403, fault.Forbidden)
		}
		mails.want(mails.ask("POST", "tasks/"+task.ID+"/complete", done, nil), 200, "")

		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "")
		mails.want(mails.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], nil), 403, fault.Forbidden)
		var made wire.Claimed
		all.want(all.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], &made), 201, "")
		for _, end := range []string{"settle", "renew", "release"} {
			limited.want(limited.ask("POST", "claims/"+made.Claim.Token+"/"+end, map[string]string{"settle": `{"outcome":"success"}`}[end], nil), 403, fault.Forbidden)
		}
		settle := `{"outcome":"success","events":[{"stream":"s","name":"forged"}]}`
		p := all.want(all.ask("POST", "claims/"+made.Claim.Token+"/settle", settle, nil), 403, fault.Forbidden)
		if p.Fields["pointer"] != "/events" {
			t.Errorf("got problem pointer %v, want /events", p.Fields["pointer"])
		}
		all.want(all.ask("POST", "claims/"+made.Claim.Token+"/settle", `{"outcome":"success"}`, nil), 200, "")
	}, invoices(nil))
}
