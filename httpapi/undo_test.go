package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/wire"
)

// TestWorkersUndoItems verifies that a worker over HTTP undoes an item that it started and that then failed: once no
// worker can still be working on it, under a lease, until the undo succeeds. The batch ends after that, and the item's
// artifacts are deleted.
func TestWorkersUndoItems(t *testing.T) {
	files, err := batch.FileStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.running()
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("POST", "wallets/w/credit", wire.Credit{Points: 100, Reference: "first"}, nil), 200, "")
		for _, name := range []string{"h", "other"} {
			d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "worker"}, nil), 201, "")
		}
		id := "b-" + t.Name()[len(t.Name())-6:]
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new(id), Wallet: "w", Handler: "h", Parallel: 2, Undo: true, Items: newItems(10, "x", "y")}, nil), 201, "")
		tasks := d.claimItems("h", 10)
		if len(tasks) != 2 {
			t.Fatalf("claimed %+v, want two items", tasks)
		}
		if err := files.Put(t.Context(), tasks[0].Context.ArtifactPrefix+"label", strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		no := false
		d.want(d.ask("POST", "tasks/"+tasks[0].ID+"/fail", wire.FailTask{Epoch: 1, Message: "broken", Retryable: &no}, nil), 200, "")
		d.want(d.ask("POST", "tasks/"+tasks[1].ID+"/complete", wire.CompleteTask{Epoch: 1, Output: json.RawMessage(`{"label":7}`)}, nil), 200, "")
		if got := d.claimItems("other", 10); len(got) != 0 {
			t.Fatalf("another handler claimed %+v", got)
		}
		undo := d.undoOf("x")
		if undo.Context.ItemStatus != "failed" || undo.Context.Batch != id || undo.IdempotencyKey != tasks[0].IdempotencyKey+"/undo" || string(undo.Input) == "" {
			t.Errorf("got undo %+v", undo)
		}
		if got := d.claimItems("h", 10); len(got) != 0 {
			t.Errorf("a second worker claimed %+v", got)
		}
		path := "tasks/" + undo.ID
		var r wire.Renewed
		d.want(d.ask("POST", path+"/renew", wire.Renew{Epoch: undo.Epoch, LeaseMs: 60000}, &r), 200, "")
		d.want(d.ask("POST", path+"/complete", wire.CompleteTask{Epoch: undo.Epoch + 1}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", path+"/effects", wire.EffectCall{Epoch: undo.Epoch, Name: "n"}, nil), 400, fault.Validation)
		d.want(d.ask("POST", path+"/fail", wire.FailTask{Epoch: undo.Epoch, Message: "later"}, nil), 200, "")
		d.want(d.ask("POST", path+"/renew", wire.Renew{Epoch: undo.Epoch + 1}, nil), 409, fault.LeaseLost)
		var b wire.Batch
		d.want(d.ask("GET", "batches/"+id, nil, &b), 200, "")
		if b.Status == "COMPLETED" || b.Error == "" {
			t.Errorf("batch is %s with error %q, want it open with the reason of the failure", b.Status, b.Error)
		}
		holdfasttest.Advance(t, d.engine, time.Minute)
		undo = d.undoOf("x")
		d.want(d.ask("POST", "tasks/"+undo.ID+"/snooze", wire.SnoozeTask{Epoch: undo.Epoch, DelayMs: 1000}, nil), 200, "")
		holdfasttest.Advance(t, d.engine, time.Minute)
		first := d.undoOf("x")
		holdfasttest.Advance(t, d.engine, time.Hour) // the worker has crashed
		undo = d.undoOf("x")
		d.want(d.ask("POST", "tasks/"+first.ID+"/complete", wire.CompleteTask{Epoch: first.Epoch}, nil), 409, fault.LeaseLost)
		for range 2 {
			d.want(d.ask("POST", "tasks/"+undo.ID+"/complete", wire.CompleteTask{Epoch: undo.Epoch}, nil), 200, "")
			// A renewal that comes late does not move the last cleanup, which waits for the handler's timeout.
			d.want(d.ask("POST", "tasks/"+undo.ID+"/renew", wire.Renew{Epoch: undo.Epoch}, nil), 409, fault.LeaseLost)
		}
		d.wantStatus(id, "COMPLETED")
		if left, err := files.List(t.Context(), tasks[0].Context.ArtifactPrefix); err != nil || len(left) != 0 {
			t.Errorf("artifacts %v are left, error %v", left, err)
		}
		if got := d.claimItems("h", 10); len(got) != 0 {
			t.Errorf("claimed %+v after the end", got)
		}
		// What was done and then cancelled is undone with its output.
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new(id + "2"), Wallet: "w", Handler: "h", Undo: true, Items: newItems(10, "z"), Open: true}, nil), 201, "")
		z := d.claimItems("h", 1)[0]
		d.want(d.ask("POST", "tasks/"+z.ID+"/complete", wire.CompleteTask{Epoch: z.Epoch, Output: json.RawMessage(`{"label":7}`)}, nil), 200, "")
		d.want(d.ask("POST", "batches/"+id+"2/cancel", nil, nil), 202, "")
		undo = d.undoOf("z")
		if undo.Context.ItemStatus != "cancelled" || len(undo.Context.Output) == 0 {
			t.Errorf("got undo %+v, want status cancelled and the output", undo)
		}
		d.want(d.ask("POST", "tasks/"+undo.ID+"/complete", wire.CompleteTask{Epoch: undo.Epoch}, nil), 200, "")
		d.wantStatus(id+"2", "CANCELLED")
		// While a worker may still be working on a cancelled item, it is not undone.
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new(id + "3"), Wallet: "w", Handler: "h", Undo: true, Items: newItems(10, "v")}, nil), 201, "")
		d.claimItems("h", 1)
		d.want(d.ask("POST", "batches/"+id+"3/cancel", nil, nil), 202, "")
		for b.Counts.Cancelled == 0 || b.ID != id+"3" {
			d.want(d.ask("GET", "batches/"+id+"3", nil, &b), 200, "")
		}
		if got := d.claimItems("h", 10); len(got) != 0 {
			t.Errorf("claimed %+v while a worker has the item", got)
		}
		holdfasttest.Advance(t, d.engine, time.Hour)
		undo = d.undoOf("v")
		d.want(d.ask("POST", "tasks/"+undo.ID+"/complete", wire.CompleteTask{Epoch: undo.Epoch}, nil), 200, "")
		d.wantStatus(id+"3", "CANCELLED")
	}, batch.Artifacts(files))
}

// undoOf claims until it gets the undo of an item.
func (d *testAPI) undoOf(item string) wire.Task {
	d.t.Helper()
	for range 100 {
		if all := d.claimItems("h", 10); len(all) > 0 {
			if all[0].Kind != "undoItem" || all[0].Context.Item != item {
				d.t.Fatalf("claimed %+v, want the undo of %s", all[0], item)
			}
			return all[0]
		}
	}
	d.t.Fatalf("the undo of %s was not offered", item)
	return wire.Task{}
}

// wantStatus waits until a batch has a status.
func (d *testAPI) wantStatus(id, status string) {
	d.t.Helper()
	testkit.Eventually(d.t, "batch "+id+" is "+status, func() bool {
		var b wire.Batch
		d.want(d.ask("GET", "batches/"+id, nil, &b), 200, "")
		return b.Status == status
	})
}

// TestAURLUndoesItems verifies that a handler that is a URL is called to undo an item.
func TestAURLUndoesItems(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		var mu sync.Mutex
		var calls []wire.HandlerCall
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var x wire.HandlerCall
			if err := json.NewDecoder(r.Body).Decode(&x); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if calls = append(calls, x); x.Kind == "batchItem" {
				w.WriteHeader(http.StatusUnprocessableEntity)
			}
		}))
		t.Cleanup(srv.Close)
		d.running()
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: srv.URL}, nil), 201, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "h", Undo: true, Items: newItems(0, "x")}, nil), 201, "")
		d.wantStatus("b", "COMPLETED")
		mu.Lock()
		defer mu.Unlock()
		if len(calls) != 2 || calls[0].Kind != "batchItem" || calls[1].Kind != "undoItem" || calls[1].ItemStatus != "failed" || calls[1].IdempotencyKey != calls[0].IdempotencyKey+"/undo" {
			t.Errorf("got calls %+v, want the item and its undo", calls)
		}
	})
}
