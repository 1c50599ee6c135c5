package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/wire"
)

// TestSettleCallsURLs verifies that Settle calls the handlers at URLs of every capability, and webhooks, without a running
// engine; that it returns work of workers; and that it knows what was declared before the engine was opened.
func TestSettleCallsURLs(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		var mu sync.Mutex
		called := make(map[string]int)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var c wire.HandlerCall
			if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if called[c.Kind]++; c.Kind == "batchItem" && called[c.Kind] == 1 {
				w.WriteHeader(http.StatusTooManyRequests) // it is tried again, after a pause
			}
		}))
		t.Cleanup(srv.Close)
		for _, name := range []string{"Do", "Tell"} {
			d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "http", URL: srv.URL, Safety: "idempotent"}, nil), 201, "")
		}
		d.want(d.ask("PUT", "handlers/Elsewhere", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "lifecycles/note", tellConfig, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/note/entities", wire.NewEntity{ID: new("n")}, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/note/entities/n/steps/send", wire.Fire{Requester: "admin", Input: []byte(`{}`)}, nil), 200, "")
		d.want(d.ask("PUT", "reactions/r", `{"events": ["*"], "streams": "^s$", "handler": "Do"}`, nil), 201, "")
		d.want(d.ask("POST", "webhooks", wire.NewWebhook{URL: srv.URL, Events: []string{"*"}, Streams: "^s$"}, nil), 201, "")
		d.append("s", 1)
		d.want(d.ask("POST", "workflow-definitions", oneTask("w", "Do"), nil), 201, "")
		d.start("w@1", `{}`)
		d.want(d.ask("POST", "workflow-definitions", oneTask("v", "Elsewhere"), nil), 201, "")
		d.start("v@1", `{}`)
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Do", Items: newItems(0, "x")}, nil), 201, "")
		waiting, err := holdfasttest.Settle(t.Context(), d.engine)
		if err != nil || len(waiting) != 1 || waiting[0].Kind != "unservedWork" {
			t.Errorf("settle returned %v, %v, want the step of a worker", waiting, err)
		}
		mu.Lock()
		defer mu.Unlock()
		want := map[string]int{"afterEffect": 1, "reaction": 1, "runStep": 1, "batchItem": 2, "": 1} // "" is the webhook
		if !maps.Equal(called, want) {
			t.Errorf("got calls %v, want %v", called, want)
		}
	})
}
