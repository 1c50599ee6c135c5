package httpapi_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// updates is a database that counts the transactions of its own that it opens.
type updates struct {
	store.Database
	store.Store
	n atomic.Int64
}

func (u *updates) Open(ctx context.Context, o store.Options) (_ store.Store, err error) {
	u.Store, err = u.Database.Open(ctx, o)
	return u, err
}

func (u *updates) Base() store.Store { return u.Store }

func (u *updates) Update(ctx context.Context, f func(context.Context, store.Conn) error) error {
	u.n.Add(1)
	return u.Store.Update(ctx, f)
}

// TestRoutesInOneCommand verifies that a new request on a route that is declared to be one command
// opens no transaction of its own, and that its repetition gets the same response.
func TestRoutesInOneCommand(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, url string) {
		db := &updates{Database: store.DatabaseOf(holdfasttest.At(url))}
		e := holdfasttest.OpenOn(t, store.HandleDatabase(db), invoices(nil), stream.Feed(stream.FeedOptions{}))
		d := newTestAPI(t, e, httpapi.Options{NoKeys: true})
		d.want(d.ask("POST", "workflow-definitions", exampleBodies["putDefinition"], nil), 201, "")
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", json.RawMessage(`{"name":"work","version":"1","steps":[{"name":"t","type":"task","handler":"h"}]}`), nil), 201, "")
		var started wire.StartedRun
		d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "work@1"}, &started), 201, "")
		one := "workflow-runs/" + started.Run.ID
		d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"h"}}, nil), 200, "") // it runs

		calls := []struct {
			id, method, path string
			body             any
		}{
			{"appendEvents", "POST", "streams/s/events", exampleBodies["appendEvents"]},
			{"createEntity", "POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}},
			{"startRun", "POST", "workflow-runs", wire.StartRun{DefinitionID: "nap@1"}},
			{"pauseRun", "POST", one + "/pause", wire.Command{}},
			{"resumeRun", "POST", one + "/resume", wire.Command{}},
			{"cancelRun", "POST", one + "/cancel", wire.Command{}},
		}
		untested := map[string]bool{"retryRun": true} // as pauseRun
		declared := make(map[string]bool)
		for _, r := range d.api.Routes() {
			if r.InCommand && !untested[r.ID] {
				declared[r.ID] = true
			}
		}
		for _, c := range calls {
			before := db.n.Load()
			first := d.ask(c.method, c.path, c.body, nil, keyHeader, "k")
			if first.StatusCode >= 300 || db.n.Load() != before || !declared[c.id] {
				t.Errorf("%s: got status %d %s with %d transactions, want none", c.id, first.StatusCode, textOf(first), db.n.Load()-before)
			}
			again := d.ask(c.method, c.path, c.body, nil, keyHeader, "k")
			if again.StatusCode != first.StatusCode || core(textOf(again)) != core(textOf(first)) || again.Header.Get("Location") != first.Header.Get("Location") || again.Header.Get(replayedHeader) != "true" {
				t.Errorf("%s: first call returned %s, second %s", c.id, textOf(first), textOf(again))
			}
			delete(declared, c.id)
		}
		if len(declared) > 0 {
			t.Errorf("not tested: %v", slices.Sorted(maps.Keys(declared)))
		}
	})
}
