package httpapi_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// claims are additional claims of a token.
type claims = map[string]any

// TestTokensAndKeys verifies that a key works on a server with an issuer, where a token is accepted, and what the refusal of a token tells:
// that it has expired, and nothing else.
func TestTokensAndKeys(t *testing.T) {
	i := testkit.NewIssuer(t)
	var log lockedBuffer
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{OIDC: issuerOf(i), Log: slog.New(slog.NewTextHandler(&log, nil))})
	_, key := d.newKey("default", keys.Read, 0)
	good := claims{"tenant": "default", "role": "read"}
	token := i.Token("ann", good)
	with := func(name string, v any) claims { return claims{"tenant": "default", "role": "read", name: v} }
	d.want(d.as(key).ask("GET", "session", nil, nil), 200, "")
	d.want(d.as(token).ask("GET", "session", nil, nil), 200, "")
	d.want(d.ask("GET", "session", nil, nil, "X-Api-Key", token), 200, "")
	d.want(d.ask("GET", "session", nil, nil, "X-Api-Key", key, "Authorization", "Bearer "+token), 401, fault.Auth)
	d.want(d.ask("GET", "session", nil, nil, "Authorization", "Basic "+token), 401, fault.Auth)
	other := testkit.NewIssuer(t)
	refusals := map[string]string{
		"unknown_key": i.Signed(i.NewKey("other", "ES256"), nil, i.Claims("ann", good)),
		"signature":   i.Signed(testkit.SigningKey{ID: "first", Alg: "ES256", Private: i.NewKey("first", "ES256").Private}, nil, i.Claims("ann", good)),
		"issuer":      i.Token("ann", with("iss", other.URL)),
		"audience":    i.Token("ann", with("aud", "other")),
		"early":       i.Token("ann", with("nbf", time.Now().Add(time.Hour).Unix())),
		"malformed":   "a.b.c",
		"algorithm":   i.Signed(testkit.SigningKey{ID: "first", Alg: "EdDSA", Private: i.NewKey("first", "EdDSA").Private}, nil, i.Claims("ann", good)),
	}
	details := make(map[string]bool)
	for reason, text := range refusals {
		p := d.want(d.as(text).ask("GET", "session", nil, nil), 401, fault.Auth)
		details[p.Detail] = true
		d.want(d.as(text).ask("GET", "no/such/path", nil, nil), 401, fault.Auth)
		if n := strings.Count(log.String(), "reason="+reason); n != 2 {
			t.Errorf("%s: %d lines in the log:\n%s", reason, n, log.String())
		}
	}
	if len(details) != 1 {
		t.Errorf("refusals differ: %v", details)
	}
	p := d.want(d.as(i.Token("ann", with("exp", time.Now().Add(-time.Hour).Unix()))).ask("GET", "session", nil, nil), 401, fault.Auth)
	if !strings.Contains(p.Detail, "expired") {
		t.Errorf("got %q", p.Detail)
	}
	d.want(d.as(i.Token("ann", nil)).ask("GET", "session", nil, nil), 403, fault.Forbidden)
	resp, err := d.client.Do(d.request("GET", "/metrics", token))
	if err != nil {
		t.Fatal(err)
	}
	page := textOf(resp)
	_ = resp.Body.Close()
	for _, reason := range []string{"unknown_key", "signature", "issuer", "audience", "early", "malformed", "algorithm", "expired", "ungranted"} {
		if !strings.Contains(page, fmt.Sprintf(`holdfast_http_token_refusals_total{reason=%q}`, reason)) {
			t.Errorf("the metrics do not count %s", reason)
		}
	}
	for _, text := range append([]string{token}, refusals["early"], refusals["audience"]) {
		for _, part := range strings.Split(text, ".")[1:] {
			if strings.Contains(log.String(), part) {
				t.Errorf("the log has a part of a token: %s", part)
			}
		}
	}
}

// request returns a request for a path outside of the API.
func (d *testAPI) request(method, path, key string) *http.Request {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	return r
}

// TestTokenOfSeveralWorkspaces verifies that a token with rights in several workspaces selects one, and has there the rights of the grants
// whose role permits the request.
func TestTokenOfSeveralWorkspaces(t *testing.T) {
	i := testkit.NewIssuer(t)
	eachTestAPI(t, httpapi.Options{OIDC: &httpapi.OIDC{Issuer: i.URL, Audience: testkit.Audience, Grants: []httpapi.OIDCGrant{
		{Name: "read", Claim: "groups", Value: "readers", WorkspaceClaim: "tenant", Role: "read", Requesters: []string{"admin"}},
		{Name: "operate", Claim: "groups", Value: "operators", Workspace: "one", Role: "operate", Requesters: []string{"system"}},
	}}}, func(t *testing.T, d *testAPI) {
		one := d.as(i.Token("ann", claims{"tenant": []string{"one", "two"}, "groups": []string{"readers", "operators"}}))
		p := one.want(one.ask("GET", "session", nil, nil), 400, fault.Validation)
		if got := fmt.Sprint(p.Fields["workspaces"]); got != "[one two]" {
			t.Errorf("got workspaces %s", got)
		}
		if p := one.want(one.ask("GET", "session", nil, nil, "X-Holdfast-Workspace", "three"), 403, fault.Forbidden); !strings.Contains(p.Detail, "no rights in the workspace") {
			t.Errorf("got %q", p.Detail)
		}
		var got wire.Session
		one.want(one.ask("GET", "session", nil, &got, "X-Holdfast-Workspace", "one"), 200, "")
		if got.Workspace != "one" || got.Role != "operate" || !slices.Equal(got.Requesters, []string{"system"}) || got.Actor != "oidc:ann" || got.Key != nil || got.ExpiresAt == nil || !got.Login {
			t.Errorf("got %+v", got)
		}
		one.want(one.ask("GET", "session", nil, &got, "X-Holdfast-Workspace", "two"), 200, "")
		if got.Workspace != "two" || got.Role != "read" {
			t.Errorf("got %+v", got)
		}
		in := []string{"X-Holdfast-Workspace", "one"}
		one.want(one.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil, in...), 201, "")
		one.want(one.ask("POST", "lifecycles/invoice/entities/i/steps/void", wire.Fire{Requester: "admin"}, nil, in...), 403, fault.Forbidden) // that grant's role may not fire
		one.want(one.ask("POST", "lifecycles/invoice/entities/i/steps/void", wire.Fire{Requester: "system"}, nil, in...), 200, "")
		one.want(one.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{}, nil, "X-Holdfast-Workspace", "two"), 403, fault.Forbidden)
		one.want(one.ask("GET", "lifecycles/invoice/entities/i", nil, nil, "X-Holdfast-Workspace", "two"), 404, fault.NotFound)
		alone := d.as(i.Token("bob", claims{"groups": "operators"}))
		var list wire.List[wire.Workspace]
		alone.want(alone.ask("GET", "workspaces", nil, &list), 200, "")
		if len(list.Items) != 1 || list.Items[0].Name != "one" {
			t.Errorf("got %+v", list)
		}
		var history wire.List[wire.Event]
		alone.want(alone.ask("GET", "lifecycles/invoice/entities/i/history", nil, &history), 200, "")
		if len(history.Items) == 0 || history.Items[0].Actor != "oidc:ann" {
			t.Errorf("got history %+v", history.Items)
		}
	}, invoices(nil))
}

// TestASubjectIsOneCaller verifies that the tokens of a subject share idempotency keys, a rate limit and an actor, and that others do not.
func TestASubjectIsOneCaller(t *testing.T) {
	i := testkit.NewIssuer(t)
	eachTestAPI(t, httpapi.Options{OIDC: issuerOf(i), Rate: 2, SecretKeys: sealing}, func(t *testing.T, d *testAPI) {
		c := claims{"tenant": "default", "role": "admin"}
		limited := 0
		for n := range 20 {
			resp := d.as(i.Token("limited", claims{"tenant": "default", "role": "read", "jti": fmt.Sprint(n)})).ask("GET", "session", nil, nil)
			if resp.StatusCode == 429 {
				limited++
			}
		}
		if limited < 10 {
			t.Errorf("%d of 20 requests were refused", limited)
		}
		ann, again, bob := d.as(i.Token("ann", c)), d.as(i.Token("ann", claims{"tenant": "default", "role": "admin", "jti": "2"})), d.as(i.Token("bob", c))
		var first, second wire.Appended
		body := wire.Append{Events: []wire.NewEvent{{Name: "one"}}}
		ann.want(ann.ask("POST", "streams/s/events", body, &first, "Idempotency-Key", "k"), 201, "")
		again.want(again.ask("POST", "streams/s/events", body, &second, "Idempotency-Key", "k"), 201, "")
		if first.LastVersion != second.LastVersion {
			t.Errorf("the request was repeated: %+v", second)
		}
		bob.want(bob.ask("POST", "streams/s/events", body, nil, "Idempotency-Key", "k"), 409, fault.Conflict)
		_, key := d.newKey("default", keys.Admin, 0)
		d.want(d.as(key).ask("POST", "streams/s/events", body, nil, "Idempotency-Key", "k"), 409, fault.Conflict)
		ann.want(ann.ask("POST", "webhooks", exampleBodies["createWebhook"], nil), 201, "")
		var audit wire.List[wire.AuditEntry]
		d.want(d.as(key).ask("GET", "audit?actor=oidc:ann", nil, &audit), 200, "")
		if len(audit.Items) != 1 || audit.Items[0].Action != "webhook.create" {
			t.Errorf("got audit %+v", audit.Items)
		}
	})
}

// TestATokenGrantsNoMoreThanItHas verifies that the key that a token creates has no other requesters.
func TestATokenGrantsNoMoreThanItHas(t *testing.T) {
	i := testkit.NewIssuer(t)
	o := issuerOf(i)
	for n := range o.Grants {
		o.Grants[n].Requesters = []string{"system"}
	}
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{OIDC: o})
	boss := d.as(i.Token("ann", claims{"tenant": "default", "role": "admin"}))
	boss.want(boss.ask("POST", "keys", wire.NewKey{Role: "operate", Requesters: []string{"admin"}}, nil), 403, fault.Forbidden)
	var made wire.CreatedKey
	boss.want(boss.ask("POST", "keys", wire.NewKey{Role: "operate", Requesters: []string{"system"}}, &made), 201, "")
	if made.CreatedBy != "oidc:ann" {
		t.Errorf("the key was created by %q", made.CreatedBy)
	}
}

// TestAStreamEndsWithItsToken verifies that event streams end when their token expires by the time of the database, also
// while the issuer cannot be reached.
func TestAStreamEndsWithItsToken(t *testing.T) {
	testlevel.Long(t)
	i := testkit.NewIssuer(t)
	eachTestAPI(t, httpapi.Options{OIDC: issuerOf(i)}, func(t *testing.T, d *testAPI) {
		d.running()
		token := i.Token("ann", claims{"tenant": "default", "role": "operate"})
		open := make(map[string]*http.Response)
		for _, path := range []string{"live?watch=runs", "feed"} {
			r := d.request("GET", "/api/v1/"+path, token)
			r.Header.Set("Accept", "text/event-stream")
			resp, err := d.client.Do(r)
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("%s: got %v, error %v", path, resp, err)
			}
			open[path] = resp
		}
		i.Serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
		clock.Skew(2 * time.Hour) // the keys of the issuer are too old
		t.Cleanup(func() { clock.Skew(0) })
		d.want(d.as(token).ask("GET", "session", nil, nil), 503, fault.Unavailable)
		holdfasttest.Advance(t, d.engine, 61*time.Minute)
		d.api.ForgetTime()
		for _, resp := range open {
			_ = textOf(resp) // until the end
			_ = resp.Body.Close()
		}
	})
}

// TestAnUnreachableIssuer verifies that an outage of the issuer looks like one, and that keys work during it.
func TestAnUnreachableIssuer(t *testing.T) {
	i := testkit.NewIssuer(t)
	i.Serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{OIDC: issuerOf(i)})
	_, key := d.newKey("default", keys.Read, 0)
	d.want(d.as(key).ask("GET", "session", nil, nil), 200, "")
	d.want(d.as(i.Token("ann", nil)).ask("GET", "session", nil, nil), 503, fault.Unavailable)
	resp, err := d.client.Do(d.request("GET", "/metrics", key))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text := textOf(resp); !strings.Contains(text, `holdfast_http_token_refusals_total{reason="unavailable"} 1`) {
		t.Error("the outage is not counted")
	}
}

// TestBadIssuers verifies that an API with options that cannot work is not registered.
func TestBadIssuers(t *testing.T) {
	i := testkit.NewIssuer(t)
	hf := holdfasttest.Open(t)
	for what, o := range map[string]httpapi.Options{
		"no keys":        {NoKeys: true, OIDC: issuerOf(i)},
		"no grant":       {OIDC: &httpapi.OIDC{Issuer: i.URL, Audience: "a"}},
		"no audience":    {OIDC: &httpapi.OIDC{Issuer: i.URL, Grants: issuerOf(i).Grants}},
		"a plain issuer": {OIDC: &httpapi.OIDC{Issuer: "http://login.example.com", Audience: "a", Grants: issuerOf(i).Grants}},
		"an empty grant": {OIDC: &httpapi.OIDC{Issuer: i.URL, Audience: "a", Grants: []httpapi.OIDCGrant{{}}}},
	} {
		if err := httpapi.New(o).Register(t.Context(), hf); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%s: got error %v", what, err)
		}
	}
}
