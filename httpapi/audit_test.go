package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/wire"
)

// Verifies that the events of commands name the API key, with and without an idempotency key.
func TestRequestsRecordTheirKey(t *testing.T) {
	eachTestAPI(t, httpapi.Options{}, func(t *testing.T, d *testAPI) {
		made, secret := d.newKey("default", keys.Admin, 0)
		d, key := d.as(secret), "key:"+made.ID
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", json.RawMessage(`{"name":"work","version":"1","steps":[{"name":"t","type":"task","handler":"h"}]}`), nil), 201, "")
		var started wire.StartedRun
		d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "work@1"}, &started), 201, "")
		one := "workflow-runs/" + started.Run.ID
		d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"h"}}, nil), 200, "") // it runs
		d.want(d.ask("POST", one+"/pause", wire.Command{}, nil), 200, "")
		d.want(d.ask("POST", one+"/resume", wire.Command{}, nil, "Idempotency-Key", "k1"), 200, "")
		d.want(d.ask("POST", one+"/signals", wire.Signal{Type: "x"}, nil), 202, "")
		var got wire.List[wire.Event]
		d.want(d.ask("GET", one+"/events", nil, &got), 200, "")
		actors := make(map[string]string)
		for _, e := range got.Items {
			actors[e.Name] = e.Actor
		}
		for name, want := range map[string]string{"paused": key, "resumed": key, "signalled": key, "stepStarted": ""} {
			if actors[name] != want {
				t.Errorf("event %s has the actor %q, want %q; all: %v", name, actors[name], want, actors)
			}
		}
	})
}

// audited returns the audit of the caller's workspace, oldest first, as "action subject".
func (d *testAPI) audited(query string) (all []wire.AuditEntry) {
	d.t.Helper()
	var l wire.List[wire.AuditEntry]
	d.want(d.ask("GET", "audit?limit=500&"+query, nil, &l), 200, "")
	slices.Reverse(l.Items)
	return l.Items
}

// Verifies that each administrative action has one entry, with the API key, the request, and the object before and after
// without its secrets; that a repeated or refused request has none; that entries are seen by admins of the workspace only;
// and that an export has all of them.
func TestTheAudit(t *testing.T) {
	eachTestAPI(t, elsewhereWithKeys, func(t *testing.T, d *testAPI) {
		made, secret := d.newKey("default", keys.Admin, 0)
		_, operator := d.newKey("default", keys.Operate, 0)
		_, elsewhere := d.newKey("other", keys.Admin, 0)
		anonymous, d := d, d.as(secret)
		before := len(d.audited(""))

		var key wire.CreatedKey
		d.want(d.ask("POST", "keys", wire.NewKey{Role: "read"}, &key, "Idempotency-Key", "k1", "X-Request-Id", "request-1"), 201, "")
		d.want(d.ask("POST", "keys", wire.NewKey{Role: "read"}, nil, "Idempotency-Key", "k1"), 201, "")
		d.want(d.ask("POST", "keys", wire.NewKey{Role: "nothing"}, nil), 400, "VALIDATION_ERROR")
		var next wire.CreatedKey
		d.want(d.ask("POST", "keys/"+key.ID+"/rotate", wire.RotateKey{}, &next), 201, "")
		d.want(d.ask("DELETE", "keys/"+next.ID, nil, nil), 200, "")
		d.want(d.ask("DELETE", "keys/"+next.ID, nil, nil), 200, "")
		var hook wire.CreatedWebhook
		d.want(d.ask("POST", "webhooks", wire.NewWebhook{Name: "w", URL: "http://127.0.0.1:1/x"}, &hook), 201, "")
		d.want(d.ask("POST", "webhooks/"+hook.ID+"/rotate", wire.RotateWebhook{}, nil), 200, "")
		d.want(d.ask("DELETE", "webhooks/"+hook.ID, nil, nil), 204, "")
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker", TimeoutMs: 5000}, nil), 200, "")
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker", TimeoutMs: 5000}, nil), 200, "")
		d.want(d.ask("DELETE", "handlers/h", nil, nil), 204, "")
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"x"}}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"x"}}, nil), 200, "")
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"x", "y"}}, nil), 200, "")
		d.want(d.ask("POST", "streams/s/events", exampleBodies["appendEvents"], nil), 201, "")
		d.want(d.ask("DELETE", "reactions/r", nil, nil), 204, "")

		all := d.audited("")[before:]
		var got []string
		for _, e := range all {
			got = append(got, e.Action)
			if e.Actor != "key:"+made.ID || e.RequestID == "" || e.At == nil {
				t.Errorf("%s %s: actor %q, request %q, at %v", e.Action, e.Subject, e.Actor, e.RequestID, e.At)
			}
			for _, text := range []string{key.Secret, next.Secret, hook.Secret} {
				if _, alone, _ := strings.Cut(text, "_"); text == "" || strings.Contains(string(e.Before)+string(e.After), text) || strings.Contains(string(e.Before)+string(e.After), alone) {
					t.Errorf("%s shows a secret, or there is none: %s %s", e.Action, e.Before, e.After)
				}
			}
		}
		want := []string{"key.create", "key.rotate", "key.revoke", "webhook.create", "webhook.rotate", "webhook.delete",
			"handler.put", "handler.put", "handler.delete", "reaction.put", "reaction.put", "reaction.delete"}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
		if e := all[0]; e.Subject != "key/"+key.ID || e.RequestID != "request-1" || e.Before != nil || !strings.Contains(string(e.After), `"role":"read"`) {
			t.Errorf("the creation of a key: %+v", e)
		}
		if e := all[7]; !strings.Contains(string(e.Before), `"timeoutMs":`) || !strings.Contains(string(e.After), `"timeoutMs":5000`) {
			t.Errorf("the change of a handler: before %s, after %s", e.Before, e.After)
		}
		if e := all[len(all)-1]; e.Subject != "reaction/r" || e.After != nil || !strings.Contains(string(e.Before), `"y"`) {
			t.Errorf("the deletion of a reaction: %+v", e)
		}

		for query, n := range map[string]int{"action=handler.put": 2, "subject=handler/h": 3, "actor=key:" + made.ID: len(want), "since=2000-01-01T00:00:00Z": before + len(want), "until=2000-01-01T00:00:00Z": 0} {
			if l := d.audited(query); len(l) != n {
				t.Errorf("%s selects %d entries, want %d", query, len(l), n)
			}
		}
		d.want(d.ask("GET", "audit?since=yesterday", nil, nil), 400, "VALIDATION_ERROR")
		anonymous.as(operator).want(anonymous.as(operator).ask("GET", "audit", nil, nil), 403, "FORBIDDEN")
		for _, e := range anonymous.as(elsewhere).audited("") {
			if e.Actor == "key:"+made.ID {
				t.Errorf("another workspace sees %+v", e)
			}
		}
		resp := d.ask("GET", "audit?format=ndjson", nil, nil)
		lines := strings.Split(strings.TrimSuffix(textOf(resp), "\n"), "\n")
		if len(lines) != before+len(want) || resp.Header.Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("the export has %d lines, want %d: %s", len(lines), before+len(want), resp.Header)
		}
		for _, line := range lines {
			if !json.Valid([]byte(line)) {
				t.Errorf("not a line of JSON: %s", line)
			}
		}
	})
}

// Verifies that an entry is committed with its action or not at all.
func TestTheAuditSharesATransaction(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, db string) {
		e := engine.Of(holdfasttest.OpenOn(t, holdfasttest.At(db)))
		no := errors.New("no")
		err := e.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if _, _, err := keys.Create(ctx, tx, keys.CreateArgs{Name: "n", Role: keys.Read, By: "ann"}); err != nil {
				return err
			}
			if l, err := audit.List(ctx, tx, audit.Filter{}, "", 10); err != nil || len(l) != 1 || l[0].Actor != "ann" {
				t.Errorf("in the transaction: %v, %v", l, err)
			}
			return no
		})
		if !errors.Is(err, no) {
			t.Fatal(err)
		}
		if l, err := audit.List(t.Context(), e, audit.Filter{}, "", 10); err != nil || len(l) != 0 {
			t.Errorf("after a rollback: %v, %v", l, err)
		}
	})
}

// TestALifecycleInYAMLIsAudited verifies that a lifecycle can be published in YAML, and that the audit has its text.
func TestALifecycleInYAMLIsAudited(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const config = "workflow: bill\nowning_module: shop\ninitial_status: open\nstatus_types: [open, closed]\nsteps:\n  - {step_id: 1, step_key: close, status: open, successful_state: {admin: closed}}\n"
		d.want(d.ask("PUT", "lifecycles/bill", config, nil, "Content-Type", "application/yaml"), 201, "")
		d.want(d.ask("PUT", "lifecycles/bill", config+"  - {step_id: 2, step_key: reopen, status: closed, successful_state: {admin: open}}\n", nil, "Content-Type", "application/yaml"), 200, "")
		all := d.audited("action=lifecycle.put")
		if len(all) != 2 || !strings.Contains(string(all[1].Before), "workflow: bill") || !strings.Contains(string(all[1].After), "reopen") {
			t.Errorf("the audit has %+v, want both configs as text", all)
		}
	})
}
