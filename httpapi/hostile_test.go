package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/wire"
)

// Verifies that without keys only the names of this machine are answered, so that a web page cannot reach the
// server by a name of its own, and that no page of another origin changes anything, with keys or without.
func TestOtherOriginsChangeNothing(t *testing.T) {
	t.Parallel()
	e := holdfasttest.Open(t)
	open, keyed := newDoor(t, e, httpapi.Options{NoKeys: true}), newDoor(t, e, httpapi.Options{})
	for _, c := range []struct {
		door         *door
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
		{open, "GET", "/api/v1/workspaces", "Origin: https://evil.example", 200}, // the browser gives the page no answer
		{keyed, "POST", "/api/v1/runs/r/cancel", "Sec-Fetch-Site: cross-site", 403},
		{keyed, "POST", "/api/v1/runs/r/cancel", "Host: holdfast.example", 401},
		{keyed, "GET", "/healthz", "Host: 10.0.0.7:7070", 200},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, c.door.url+c.path, nil)
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
			t.Errorf("%s %s with %q: %d %s, want %d", c.method, c.path, c.headers, resp.StatusCode, text, c.want)
		}
		_ = resp.Body.Close()
	}
}

// Verifies that an effect's ordinal which the database cannot hold is refused wherever it is named.
func TestAnOrdinalTooLargeIsRefused(t *testing.T) {
	eachDoor(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *door) {
		var made wire.Claimed
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: "i"}, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], &made), 201, "")
		for _, ordinal := range []int{-1, 1 << 31, 1 << 62} {
			d.want(d.ask("POST", "claims/"+made.Claim.Token+"/effects", wire.EffectCall{Name: "x", Ordinal: ordinal}, nil), 400, fault.Validation)
			d.want(d.ask("POST", "tasks/tsk_/effects", wire.EffectCall{Name: "x", Ordinal: ordinal}, nil), 400, fault.Validation)
			d.want(d.ask("POST", "operations/"+made.Entity.Claim.Operation+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "x", Ordinal: ordinal}}}, nil), 400, fault.Validation)
		}
		d.want(d.ask("POST", "claims/"+made.Claim.Token+"/effects", wire.EffectCall{Name: "x", Ordinal: 1<<31 - 1}, nil), 200, "")
	}, invoices(nil))
}

// Verifies that what is said to be JSON is not read as YAML, and that a short text which would be a great many values is refused, in either.
func TestDocumentsAreReadAsWhatTheyAreSaidToBe(t *testing.T) {
	t.Parallel()
	d := newDoor(t, holdfasttest.Open(t, httpapi.Handlers(elsewhere)), elsewhere)
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
					t.Errorf("%s of %.30q as %s: %d %s", path, text, kind, resp.StatusCode, told)
				}
			}
		}
	}
}

// elsewhereWithKeys is [elsewhere], for who shows a key.
var elsewhereWithKeys = httpapi.Options{SecretKeys: sealing, AllowPrivate: elsewhere.AllowPrivate}

// Verifies that a key which was revoked is given nothing more on what it had open: no event on a stream, and no task to a long poll.
func TestARevokedKeyIsGivenNothingMore(t *testing.T) {
	t.Parallel()
	eachDoor(t, elsewhereWithKeys, func(t *testing.T, d *door) {
		d.running()
		_, admin := d.newKey("default", keys.Admin, 0)
		gone, text := d.newKey("default", keys.Worker, 0)
		us, them := d.as(admin), d.as(text)
		us.want(us.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		us.want(us.ask("PUT", "lifecycles/job", jobConfig, nil), 201, "")
		us.want(us.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: "j"}, nil), 201, "")
		l := d.listen("events", "Authorization", "Bearer "+text)
		us.append("s", 1)
		l.next()
		polled := make(chan *http.Response, 1)
		go func() {
			polled <- them.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Do"}, WaitMs: new(wire.Millis(30_000))}, nil)
		}()
		us.want(us.ask("DELETE", "keys/"+gone.ID, nil, nil), 200, "")
		for them.ask("GET", "events", nil, nil).StatusCode != http.StatusUnauthorized { // the server remembers a key for two seconds
		}
		us.append("s", 1)
		us.want(us.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		if line, err := l.in.ReadString('\n'); err == nil && !strings.HasPrefix(line, ":") {
			t.Errorf("the stream told %q", line)
		}
		them.want(<-polled, 401, fault.Auth)
		var got wire.Tasks
		us.want(us.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w2", Handlers: []string{"Do"}, WaitMs: new(wire.Millis)}, &got), 200, "")
		if len(got.Tasks) != 1 {
			t.Errorf("another worker was given %v", got.Tasks)
		}
	}, httpapi.Handlers(elsewhereWithKeys))
}

// Verifies that the answer kept under an Idempotency-Key is given to who asked and to nobody else, not even to one who may ask the
// same, that nothing is done for the other, and that a key taken on one route is free on another.
func TestAnIdempotencyKeyIsOfItsRouteAndItsCaller(t *testing.T) {
	eachDoor(t, httpapi.Options{}, func(t *testing.T, d *door) {
		_, one := d.newKey("default", keys.Operate, 0)
		_, two := d.newKey("default", keys.Admin, 0)
		us, them := d.as(one), d.as(two)
		append := func(d *door) *http.Response {
			return d.ask("POST", "streams/s/events", exampleBodies["appendEvents"], nil, "Idempotency-Key", "order-7")
		}
		us.want(append(us), 201, "")
		them.want(append(them), 409, fault.Conflict)
		again := append(us)
		us.want(again, 201, "")
		if again.Header.Get("Idempotency-Replayed") != "true" {
			t.Error("the same request again is not a replay")
		}
		us.want(us.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: "i"}, nil, "Idempotency-Key", "order-7"), 201, "")
		us.want(us.ask("POST", "lifecycles/invoice/entities/i/steps/close", exampleBodies["fireStep"], nil, "Idempotency-Key", "order-7"), 200, "")
		them.want(them.ask("POST", "lifecycles/invoice/entities/i/steps/close", exampleBodies["fireStep"], nil, "Idempotency-Key", "order-7"), 409, fault.Conflict)
		var got wire.List[wire.Event]
		us.want(us.ask("GET", "streams/s/events", nil, &got), 200, "")
		if len(got.Items) != 1 {
			t.Errorf("the stream has %d events", len(got.Items))
		}
		long := strings.Repeat("k", 255)
		for range 2 {
			us.want(us.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: "j"}, nil, "Idempotency-Key", long), 201, "")
		}
	}, invoices(nil))
}

// Verifies that nobody gets, by a key that he makes or rotates, requesters for whom his own key does not speak.
func TestAKeyPassesOnWhatItHas(t *testing.T) {
	eachDoor(t, httpapi.Options{}, func(t *testing.T, d *door) {
		make := func(by *door, requesters ...string) *http.Response {
			return by.ask("POST", "keys", wire.NewKey{Role: "admin", Requesters: requesters}, nil)
		}
		all, text := d.newKey("default", keys.Admin, 0)
		root := d.as(text)
		var some, none wire.CreatedKey
		root.want(root.ask("POST", "keys", wire.NewKey{Role: "admin", Requesters: []string{"a", "b"}}, &some), 201, "")
		root.want(root.ask("POST", "keys", wire.NewKey{Role: "admin"}, &none), 201, "")
		mute, few := d.as(none.Secret), d.as(some.Secret)
		for by, bad := range map[*door][][]string{mute: {{"*"}, {"a"}}, few: {{"*"}, {"a", "c"}}} {
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
