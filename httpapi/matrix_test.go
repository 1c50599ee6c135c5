package httpapi_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/internal/tlsfiles"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/wire"
)

var allRoles = []keys.Role{keys.Read, keys.Operate, keys.Worker, keys.Admin}

// exampleBodies has a valid body for each route that takes one. The tests of every route fail for a
// route that is missing here.
var exampleBodies = map[string]any{
	"createBatch":               wire.NewBatch{Wallet: "w", Handler: "h"},
	"addItems":                  wire.AddItems{},
	"sealBatch":                 json.RawMessage("{}"),
	"cancelBatch":               json.RawMessage("{}"),
	"acceptItems":               wire.AcceptItems{},
	"putWallet":                 wire.PutWallet{},
	"creditWallet":              wire.Credit{Points: 1, Reference: "r"},
	"putScope":                  json.RawMessage(`{"a":1}`),
	"patchScope":                json.RawMessage(`{"a":1}`),
	"incScope":                  wire.IncScope{Field: "n"},
	"pushScope":                 wire.PushScope{Field: "list", Value: []byte("null")},
	"setScopeRecord":            json.RawMessage("null"),
	"createWorkspace":           wire.NewWorkspace{Name: "default"},
	"appendEvents":              wire.Append{Events: []wire.NewEvent{{Name: "n"}}},
	"truncateStream":            wire.TruncateStream{Before: 1},
	"closeStream":               wire.CloseStream{Mode: "archive"},
	"putReaction":               wire.PutReaction{Events: []string{"*"}},
	"claimLeases":               wire.ClaimLeases{By: "me"},
	"ackLeases":                 wire.Acks{Acks: []wire.Ack{{Stream: "s", Epoch: 1, Token: "lse_"}}},
	"failLease":                 wire.FailLease{Stream: "s", Epoch: 1, Token: "lse_", Message: "no"},
	"snoozeLease":               wire.SnoozeLease{Stream: "s", Epoch: 1, Token: "lse_", DelayMs: 1},
	"renewLease":                wire.RenewLease{Stream: "s", Epoch: 1, Token: "lse_"},
	"unblockReactions":          wire.Repair{},
	"resetReactions":            wire.Repair{},
	"skipReactions":             wire.Repair{},
	"createEntity":              wire.NewEntity{},
	"fireStep":                  wire.Fire{Requester: "admin"},
	"claimStep":                 wire.NewClaim{StepKey: "close", Requester: "admin"},
	"renewClaim":                wire.Renew{},
	"settleClaim":               wire.Settle{Outcome: "success"},
	"releaseClaim":              wire.Release{},
	"journalEffect":             wire.EffectCall{Name: "x"},
	"resolveOperation":          wire.Resolve{Outcome: "failure"},
	"withdrawOperation":         wire.Withdraw{},
	"releaseOperation":          wire.ReleaseOperation{Reason: "the worker hangs"},
	"acknowledgeContradictions": wire.Acknowledge{Contradictions: []string{"c"}},
	"createKey":                 wire.NewKey{Role: "read"},
	"createSession":             json.RawMessage("{}"),
	"rotateKey":                 wire.RotateKey{},
	"createWebhook":             wire.NewWebhook{URL: "https://example.com/"},
	"rotateWebhook":             wire.RotateWebhook{},
	"runMaintenance":            struct{}{},
	"startBulk":                 wire.NewBulk{Action: "run.retry", Filter: &wire.BulkFilter{}},
	"cancelBulk":                struct{}{},

	"putDefinition":  json.RawMessage(`{"name":"nap","version":"1","steps":[{"name":"sleep","type":"wait","durationMs":3600000}]}`),
	"startRun":       wire.StartRun{DefinitionID: "nobodys@1"},
	"cancelRun":      wire.Command{},
	"pauseRun":       wire.Command{},
	"resumeRun":      wire.Command{},
	"retryRun":       wire.Command{},
	"signalRun":      wire.Signal{Type: "t"},
	"decideApproval": wire.Decide{Decision: "approved"},

	"putSecret":         wire.PutSecret{Value: "a-secret-value"},
	"putHandler":        wire.PutHandler{Kind: "worker"},
	"putLifecycle":      json.RawMessage(jobConfig),
	"claimTasks":        wire.ClaimTasks{Worker: "w1", Handlers: []string{"nobodys"}, WaitMs: new(wire.Millis)},
	"completeTask":      wire.CompleteTask{Epoch: 1},
	"failTask":          wire.FailTask{Epoch: 1, Message: "no"},
	"snoozeTask":        wire.SnoozeTask{Epoch: 1, DelayMs: 1},
	"renewTask":         wire.Renew{Epoch: 1},
	"journalTaskEffect": wire.EffectCall{Epoch: 1, Name: "x"},
}

// sealing is a key that encrypts secrets.
var sealing = [][]byte{bytes.Repeat([]byte("k"), 32)}

// pathOf fills in the path parameters of a route.
func pathOf(r httpapi.Route, values func(name string) string) string {
	parts := strings.Split(r.Path, "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, "{"); ok {
			parts[i] = values(strings.TrimSuffix(name, "}"))
		}
	}
	return strings.Join(parts, "/")
}

// example requests a route with valid input.
func (d *testAPI) example(r httpapi.Route, values func(string) string, headers ...string) *http.Response {
	d.t.Helper()
	return d.ask(r.Method, pathOf(r, values), exampleBodies[r.ID], nil, headers...)
}

// unknownIDs returns well-formed ids that do not exist.
func unknownIDs(r httpapi.Route) func(string) string {
	return func(name string) string {
		switch {
		case name == "name" && strings.HasPrefix(r.Path, "lifecycles"):
			return "invoice"
		case name == "id" && strings.HasPrefix(r.Path, "keys"):
			return strings.Repeat("0", 26)
		case name == "id" && strings.HasPrefix(r.Path, "operations"):
			return "019a0000-0000-7000-8000-000000000000"
		case name == "id" && strings.HasPrefix(r.Path, "webhooks"):
			return "019a0000-0000-7000-8000-000000000001"
		case name == "id" && strings.HasPrefix(r.Path, "workflow-definitions"):
			return "nobodys@1"
		case name == "token":
			return "clm_AAAAAAAAAAAAAAAAAAAAAA"
		case name == "stepKey":
			return "close"
		}
		return "nobodys"
	}
}

// newKey creates a key directly in the engine.
func (d *testAPI) newKey(space string, role keys.Role, lifetime time.Duration) (keys.Key, string) {
	d.t.Helper()
	k, text, err := keys.Create(holdfast.InWorkspace(context.Background(), space), engine.Of(d.engine),
		keys.CreateArgs{Name: string(role), Role: role, Requesters: []string{"*"}, By: "test", Lifetime: lifetime})
	if err != nil {
		d.t.Fatal(err)
	}
	return k, text
}

func TestEveryRouteHasAPolicyAndAnExample(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{})
	seen := make(map[string]bool)
	for _, r := range d.api.Routes() {
		if !r.Policy {
			t.Errorf("%s %s has no access policy", r.Method, r.Path)
		}
		if !r.May(keys.Admin) {
			t.Errorf("role admin has no access to %s", r.ID)
		}
		if r.May("") || r.May("nonsense") {
			t.Errorf("an unknown role has access to %s", r.ID)
		}
		if body := exampleBodies[r.ID]; (r.Method == "POST" || r.Method == "PUT" || r.Method == "PATCH") && body == nil {
			t.Errorf("%s %s has no example body", r.Method, r.Path)
		}
		if r.Keyed != (r.Method != "GET" && r.Path != "session") {
			t.Errorf("%s %s: got Keyed %v, want it for every method except GET, and not for sessions", r.Method, r.Path, r.Keyed)
		}
		if seen[r.ID] {
			t.Errorf("%s is listed twice", r.ID)
		}
		seen[r.ID] = true
		if r.Method != "GET" && r.Path != "session" && r.May(keys.Read) {
			t.Errorf("role read has access to %s", r.ID)
		}
	}
}

// issuerOf returns the options for the tokens of an issuer: the claim tenant has the workspace, and role the role.
func issuerOf(i *testkit.Issuer) *httpapi.OIDC {
	o := &httpapi.OIDC{Issuer: i.URL, Audience: testkit.Audience}
	for _, role := range allRoles {
		o.Grants = append(o.Grants, httpapi.OIDCGrant{Name: string(role), Claim: "role", Value: string(role), WorkspaceClaim: "tenant", Role: string(role), Requesters: []string{"*"}})
	}
	return o
}

// credential returns an API key or a token.
func (d *testAPI) credential(i *testkit.Issuer, kind, space string, role keys.Role) string {
	if kind == "token" {
		return i.Token("ann", map[string]any{"tenant": space, "role": role})
	}
	_, text := d.newKey(space, role, 0)
	return text
}

// withTLS returns the same API over mutual TLS.
func (d *testAPI) withTLS() *testAPI {
	d.t.Helper()
	ca, dir := testkit.NewAuthority(d.t), d.t.TempDir()
	cert, key := ca.Issue(dir, "server")
	config, err := tlsfiles.Server(tlsfiles.Files{Cert: cert, Key: key, CA: ca.Write(dir)}, slog.New(slog.DiscardHandler))
	if err != nil {
		d.t.Fatal(err)
	}
	own, roots := d.t.TempDir(), ca.Write(dir)
	srv := httptest.NewUnstartedServer(d.api)
	srv.TLS = config
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	srv.StartTLS()
	d.t.Cleanup(srv.Close)
	other := *d
	f := tlsfiles.Files{CA: roots}
	f.Cert, f.Key = ca.Issue(own, "client")
	if config, err = tlsfiles.Client(f); err != nil {
		d.t.Fatal(err)
	}
	other.url, other.client = srv.URL, &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	d.t.Cleanup(other.client.CloseIdleConnections)
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: config.RootCAs}}}
	if resp, err := stranger.Get(srv.URL + "/healthz"); err == nil {
		d.t.Errorf("a client without a certificate got status %d", resp.StatusCode)
	}
	return &other
}

// TestEveryRouteByRole verifies that each route is permitted for its roles in the caller's workspace, for no other role, and in no other
// workspace: with API keys and with tokens, over plain HTTP and over mutual TLS.
func TestEveryRouteByRole(t *testing.T) {
	i := testkit.NewIssuer(t)
	eachTestAPI(t, httpapi.Options{SecretKeys: sealing, OIDC: issuerOf(i)}, func(t *testing.T, d *testAPI) {
		d.running() // a close waits for the feed
		_, _ = d.newKey("theirs", keys.Read, 0)
		for _, server := range []*testAPI{d, d.withTLS()} {
			for _, kind := range []string{"API key", "token"} {
				if (server == d) != (kind == "token") && testlevel.Current() == testlevel.Test {
					continue
				}
				for _, role := range allRoles {
					one := server.as(d.credential(i, kind, "default", role))
					for _, r := range d.api.Routes() {
						one.want(one.example(r, unknownIDs(r), "X-Holdfast-Workspace", "theirs"), 403, fault.Forbidden)
						resp := one.example(r, unknownIDs(r))
						if r.ID == "createSession" && kind == "token" || !r.May(role) {
							one.want(resp, 403, fault.Forbidden)
							continue
						}
						if resp.StatusCode == 401 || resp.StatusCode == 403 || resp.StatusCode >= 500 {
							t.Errorf("%s with role %s has access to %s, but got status %d %s", kind, role, r.ID, resp.StatusCode, textOf(resp))
						}
					}
				}
			}
		}
	}, invoices(nil))
}

// TestWhoMayWhat verifies the roles of all routes against a second list, so that they are not
// changed by accident.
func TestWhoMayWhat(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{})
	work := map[string]bool{"claimLeases": true, "ackLeases": true, "failLease": true, "renewLease": true, "claimStep": true, "renewClaim": true,
		"settleClaim": true, "releaseClaim": true, "journalEffect": true, "claimTasks": true, "completeTask": true, "failTask": true, "snoozeTask": true, "snoozeLease": true, "renewTask": true, "journalTaskEffect": true}
	manage := map[string]bool{"createKey": true, "listKeys": true, "getKey": true, "rotateKey": true, "revokeKey": true, "putReaction": true, "deleteReaction": true,
		"createWebhook": true, "rotateWebhook": true, "deleteWebhook": true, "putHandler": true, "deleteHandler": true, "putSecret": true, "deleteSecret": true, "createWorkspace": true, "putLifecycle": true, "putDefinition": true, "listAudit": true, "listRequests": true, "getRequest": true}
	for _, r := range d.api.Routes() {
		want := map[keys.Role]bool{keys.Admin: true}
		switch {
		case manage[r.ID]:
		case work[r.ID]:
			want[keys.Worker], want[keys.Operate] = true, true
		case r.Method == "GET", r.Path == "session":
			want[keys.Read], want[keys.Worker], want[keys.Operate] = true, true, true
		default:
			want[keys.Operate] = true
		}
		for _, role := range allRoles {
			if r.May(role) != want[role] {
				t.Errorf("access of role %s to %s: got %v, want %v", role, r.ID, r.May(role), want[role])
			}
		}
	}
}

var requestIDs = regexp.MustCompile(`"requestId":"[^"]*"|"lastUsedAt":("[^"]*"|null)`)

// varies matches the parts in which two equivalent responses differ.
var varies = regexp.MustCompile(`"requestId":"[^"]*"|"id":"[^"]*"|"secret":"[^"]*"|"(actor|at|createdAt|updatedAt|until|since|firstAt|lastAt|now|expiresAt)":"[^"]*"`)

// TestAnotherWorkspacesIDsAreUnknown verifies that an id of another workspace is answered like one
// that does not exist: with the same status and the same text, and without a trace in any list.
func TestAnotherWorkspacesIDsAreUnknown(t *testing.T) {
	i := testkit.NewIssuer(t)
	eachTestAPI(t, httpapi.Options{SecretKeys: sealing, OIDC: issuerOf(i)}, func(t *testing.T, d *testAPI) {
		ours, text := d.newKey("ours", keys.Admin, 0)
		us, them := d.as(text), d.as(d.credential(i, "API key", "theirs", keys.Admin))
		byToken := d.as(d.credential(i, "token", "others", keys.Admin))
		var made wire.Claimed
		us.want(us.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("oursent")}, nil), 201, "")
		us.want(us.ask("POST", "lifecycles/invoice/entities/oursent/claims", exampleBodies["claimStep"], &made), 201, "")
		us.want(us.ask("PUT", "reactions/oursrea", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
		us.want(us.ask("POST", "streams/oursstr/events", exampleBodies["appendEvents"], nil), 201, "")
		var hook wire.CreatedWebhook
		us.want(us.ask("POST", "webhooks", exampleBodies["createWebhook"], &hook), 201, "")
		us.putSecret("ourssec", "a-secret-value", 201)
		us.want(us.ask("POST", "workflow-definitions", `{"name":"oursdef","version":"1","steps":[{"name":"may","type":"approval","prompt":"?"}]}`, nil), 201, "")
		us.want(us.ask("PATCH", "scopes/ourskind/oursscp", `{"ours":1}`, nil), 200, "")
		ran := us.start("oursdef@1", `{"ours":1}`)
		var asked wire.List[wire.Approval]
		us.want(us.ask("GET", "approvals", nil, &asked), 200, "")
		before := us.everything("oursent", "oursstr", "oursrea")
		for _, r := range d.api.Routes() {
			nobodys := unknownIDs(r)
			theirs := func(name string) string {
				switch {
				case name == "name" && strings.HasPrefix(r.Path, "reactions"):
					return "oursrea"
				case name == "name" && strings.HasPrefix(r.Path, "secrets"):
					return "ourssec"
				case name == "id" && strings.HasPrefix(r.Path, "lifecycles"):
					return "oursent"
				case name == "id" && strings.HasPrefix(r.Path, "keys"):
					return ours.ID
				case name == "id" && strings.HasPrefix(r.Path, "webhooks"):
					return hook.ID
				case name == "id" && strings.HasPrefix(r.Path, "workflow-runs"):
					return ran.ID
				case name == "id" && strings.HasPrefix(r.Path, "workflow-definitions"):
					return "oursdef@1"
				case name == "kind":
					return "ourskind"
				case name == "id" && strings.HasPrefix(r.Path, "scopes"):
					return "oursscp"
				case name == "id" && strings.HasPrefix(r.Path, "approvals"):
					return asked.Items[0].ID
				case name == "id":
					return made.Entity.Claim.Operation
				case name == "token":
					return made.Claim.Token
				case name == "stream":
					return "oursstr"
				}
				return nobodys(name)
			}
			if r.ID == "putReaction" || r.ID == "createKey" || r.ID == "createEntity" || r.ID == "createWebhook" || r.ID == "putHandler" || r.ID == "putSecret" || r.ID == "putDefinition" {
				continue // they create one
			}
			said := func(who *testAPI, values func(string) string) string {
				resp := who.example(r, values)
				text := varies.ReplaceAllString(textOf(resp), "")
				for _, p := range strings.Split(r.Path, "/") {
					if name, ok := strings.CutPrefix(p, "{"); ok {
						text = strings.ReplaceAll(text, values(strings.TrimSuffix(name, "}")), "X")
					}
				}
				return fmt.Sprint(resp.StatusCode, resp.Header.Get("Retry-After"), text)
			}
			for kind, who := range map[string]*testAPI{"API key": them, "token": byToken} {
				if a, b := said(who, theirs), said(who, nobodys); a != b {
					t.Errorf("%s with %s: name of another workspace returned %s\nunknown name returned %s", r.ID, kind, a, b)
				}
			}
		}
		for _, path := range []string{"lifecycles/invoice/entities", "reactions", "claims", "operations", "reactions/*/streams", "keys", "events", "webhooks", "secrets", "workflow-runs", "workflow-definitions", "approvals"} {
			if text := textOf(them.ask("GET", path, nil, nil)); strings.Contains(text, "ours") || strings.Contains(text, ours.ID) || strings.Contains(text, hook.ID) || strings.Contains(text, ran.ID) {
				t.Errorf("%s reveals another workspace: %s", path, text)
			}
		}
		if after := us.everything("oursent", "oursstr", "oursrea"); after != before {
			t.Errorf("stored data changed from\n%s\nto\n%s", before, after)
		}
		us.want(us.ask("POST", "claims/"+made.Claim.Token+"/settle", exampleBodies["settleClaim"], nil), 200, "")
	}, invoices(nil))
}

// everything returns what a workspace shows of some resources.
func (d *testAPI) everything(entity, stream, reaction string) string {
	d.t.Helper()
	var all strings.Builder
	for _, path := range []string{"lifecycles/invoice/entities", "lifecycles/invoice/entities/" + entity + "/history", "streams/" + stream + "/events",
		"reactions", "reactions/" + reaction, "reactions/*/streams", "keys", "claims", "operations", "webhooks", "workflow-runs", "workflow-definitions", "approvals",
		"scopes/ourskind/oursscp"} {
		all.WriteString(requestIDs.ReplaceAllString(textOf(d.ask("GET", path, nil, nil)), ""))
	}
	return all.String()
}

// TestATokenIsOfItsRequester verifies that a claim's token works only with a key that may act for
// its requester.
func TestATokenIsOfItsRequester(t *testing.T) {
	eachTestAPI(t, httpapi.Options{}, func(t *testing.T, d *testAPI) {
		_, text := d.newKey("default", keys.Operate, 0)
		us := d.as(text)
		_, quiet, err := keys.Create(context.Background(), engine.Of(d.engine), keys.CreateArgs{Name: "q", Role: keys.Operate, Requesters: []string{"system"}, By: "test"})
		if err != nil {
			t.Fatal(err)
		}
		them := d.as(quiet)
		us.want(us.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "")
		them.want(them.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], nil), 403, fault.Forbidden)
		them.want(them.ask("POST", "lifecycles/invoice/entities/i/steps/close", exampleBodies["fireStep"], nil), 403, fault.Forbidden)
		var made wire.Claimed
		us.want(us.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], &made, "Idempotency-Key", "k"), 201, "")
		them.want(them.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], nil, "Idempotency-Key", "k"), 403, fault.Forbidden)
		for _, what := range []string{"renew", "settle", "release", "effects"} {
			body := map[string]any{"renew": wire.Renew{}, "settle": wire.Settle{Outcome: "success"}, "release": wire.Release{}, "effects": wire.EffectCall{Name: "x"}}[what]
			theirs := them.ask("POST", "claims/"+made.Claim.Token+"/"+what, body, nil)
			nobodys := them.ask("POST", "claims/clm_AAAAAAAAAAAAAAAAAAAAAA/"+what, body, nil)
			them.want(theirs, 404, fault.NotFound)
			if a, b := varies.ReplaceAllString(textOf(theirs), ""), varies.ReplaceAllString(textOf(nobodys), ""); a != b {
				t.Errorf("%s: name of another workspace returned %s, unknown name %s", what, a, b)
			}
		}
		us.want(us.ask("POST", "claims/"+made.Claim.Token+"/settle", exampleBodies["settleClaim"], nil), 200, "")
	}, invoices(nil))
}

// lockedBuffer collects a log of many goroutines.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// useSecrets uses keys and tokens in every way, and returns the path of the database, the log, and
// the secrets that neither may contain.
func useSecrets(t *testing.T) (path string, log *lockedBuffer, secrets map[string]string) {
	t.Helper()
	path, log, secrets = filepath.Join(t.TempDir(), "a.db"), new(lockedBuffer), make(map[string]string)
	l := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e, err := holdfast.Open(t.Context(), sqlite.File(path), holdfast.Config{Log: l}, invoices(nil))
	if err != nil {
		t.Fatal(err)
	}
	d := newTestAPI(t, e, httpapi.Options{Log: l})
	_, text := d.newKey("default", keys.Admin, 0)
	d.key = text
	secrets["the first key"] = text[len(text)-52:]
	var made wire.CreatedKey
	d.want(d.ask("POST", "keys", wire.NewKey{Role: "admin", Requesters: []string{"*"}}, &made, "Idempotency-Key", "k1"), 201, "")
	secrets["a key made under an idempotency key"] = made.Secret[len(made.Secret)-52:]
	d.want(d.ask("POST", "keys/"+made.ID+"/rotate", wire.RotateKey{OverlapMs: 60000}, &made, "Idempotency-Key", "k2"), 201, "")
	secrets["a key that replaced another"] = made.Secret[len(made.Secret)-52:]
	d.key = made.Secret
	d.ask("GET", "keys/"+made.Secret, nil, nil) // by mistake
	d.ask("GET", "keys?cursor="+made.Secret, nil, nil)
	d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "")
	var claim wire.Claimed
	for _, name := range []string{"a token", "a token told again"} {
		d.want(d.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], &claim, "Idempotency-Key", "k3"), 201, "")
		secrets[name] = strings.TrimPrefix(claim.Claim.Token, "clm_")
	}
	for what, body := range map[string]any{"renew": wire.Renew{}, "effects": wire.EffectCall{Name: "x", NotDone: true}, "settle": wire.Settle{Outcome: "nonsense"}} {
		d.ask("POST", "claims/"+claim.Claim.Token+"/"+what, body, nil, "Idempotency-Key", "k4"+what)
	}
	d.want(d.ask("POST", "claims/"+claim.Claim.Token+"/release", wire.Release{}, nil, "Idempotency-Key", "k5"), 200, "")
	http.DefaultClient.CloseIdleConnections()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	d.ask("POST", "claims/"+claim.Claim.Token+"/release", wire.Release{}, nil) // without a database
	return path, log, secrets
}

func TestNoSecretIsStored(t *testing.T) {
	path, _, secrets := useSecrets(t)
	all := dump(t, path)
	for _, file := range []string{path, path + "-wal"} {
		if raw, err := os.ReadFile(file); err == nil {
			all += string(raw)
		}
	}
	if !strings.Contains(all, "holdfast") {
		t.Fatal("the dump is empty")
	}
	for name, secret := range secrets {
		if strings.Contains(all, secret) {
			t.Errorf("the database contains %s", name)
		}
	}
}

func TestNoSecretIsLogged(t *testing.T) {
	_, log, secrets := useSecrets(t)
	if !strings.Contains(log.String(), "/api/v1/") {
		t.Fatal("the log has no requests")
	}
	for name, secret := range secrets {
		if i := strings.Index(log.String(), secret); i >= 0 {
			t.Errorf("the log contains %s: %s", name, log.String()[max(0, i-160):i+len(secret)])
		}
	}
}

// dump returns all rows of all tables of a SQLite file.
func dump(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all strings.Builder
	for _, name := range query(t, db, `SELECT name FROM sqlite_schema WHERE type = 'table'`) {
		fmt.Fprintln(&all, name, query(t, db, `SELECT * FROM "`+name[0].(string)+`"`))
	}
	return all.String()
}

func query(t *testing.T, db *sql.DB, text string) (all [][]any) {
	t.Helper()
	rows, err := db.Query(text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		row, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		for i, v := range row {
			if raw, ok := v.([]byte); ok {
				row[i] = string(raw)
			}
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestKeysAreShownWithoutTheirSecrets verifies that a response contains the secret of a key only
// when it is created.
func TestKeysAreShownWithoutTheirSecrets(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		var made wire.CreatedKey
		d.want(d.ask("POST", "keys", wire.NewKey{Role: "read"}, &made), 201, "")
		secret := made.Secret[len(made.Secret)-52:]
		for _, path := range []string{"keys", "keys/" + made.ID, "events"} {
			if text := textOf(d.ask("GET", path, nil, nil)); strings.Contains(text, secret) {
				t.Errorf("%s reveals a secret: %s", path, text)
			}
		}
		var k wire.Key
		d.want(d.ask("DELETE", "keys/"+made.ID, nil, &k), 200, "")
		if raw, _ := json.Marshal(k); k.RevokedAt == nil {
			t.Errorf("got key %s, want it revoked", raw)
		}
	})
}
