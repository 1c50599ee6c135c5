package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
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
			switch called[c.Kind]++; {
			case called[c.Kind] > 1:
			case c.Kind == "batchItem":
				w.WriteHeader(http.StatusTooManyRequests) // it is tried again, after a pause
			case c.Kind == "": // the webhook: after no response, it is paused by its node
				panic(http.ErrAbortHandler)
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
		// The handler of a worker is a URL in another workspace, and the reverse.
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("e"), Wallet: "w", Handler: "Elsewhere", Items: newItems(0, "x")}, nil), 201, "")
		other := []string{"X-Holdfast-Workspace", "other"}
		d.want(d.ask("PUT", "handlers/Elsewhere", wire.PutHandler{Kind: "http", URL: srv.URL, Safety: "idempotent"}, nil, other...), 201, "")
		d.want(d.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "worker"}, nil, other...), 201, "")
		waiting, err := holdfasttest.Settle(t.Context(), d.engine)
		var unserved []string
		for _, w := range waiting {
			unserved = append(unserved, w.Kind+" "+w.Reason)
		}
		if err != nil || len(unserved) != 2 || !strings.Contains(unserved[0], "Items of batches") || !strings.Contains(unserved[1], "Steps of runs") {
			t.Errorf("settle returned %q, %v, want the unserved batch and step of a worker", unserved, err)
		}
		mu.Lock()
		defer mu.Unlock()
		want := map[string]int{"afterEffect": 1, "reaction": 1, "runStep": 1, "batchItem": 2, "": 2} // "" is the webhook
		if !maps.Equal(called, want) {
			t.Errorf("got calls %v, want %v", called, want)
		}
	})
}

// TestSettleNamesAnUndoOfAWorker verifies that an item which a worker has to undo is returned by Settle.
func TestSettleNamesAnUndoOfAWorker(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Do", Undo: true, Items: newItems(0, "x")}, nil), 201, "")
		task := d.claimItems("Do", 1)[0]
		d.want(d.ask("POST", "tasks/"+task.ID+"/fail", wire.FailTask{Epoch: task.Epoch, Message: "no", Retryable: new(false)}, nil), 200, "")
		waiting, err := holdfasttest.Settle(t.Context(), d.engine)
		if err != nil || len(waiting) != 1 || waiting[0].Kind != "unservedWork" || !strings.Contains(waiting[0].Reason, "undone") {
			t.Errorf("settle returned %v, %v, want the undo that waits for a worker", waiting, err)
		}
	})
}
