package httpapi_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/keys"
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
