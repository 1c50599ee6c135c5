package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/wire"
)

func newItems(cost int64, keys ...string) (all []wire.NewItem) {
	for _, k := range keys {
		all = append(all, wire.NewItem{Key: k, Cost: &cost, Input: json.RawMessage(`{"of":"` + k + `"}`)})
	}
	return all
}

// claimItems claims tasks of a handler, without waiting.
func (d *testAPI) claimItems(handler string, limit int) []wire.Task {
	d.t.Helper()
	none := wire.Millis(0)
	var got wire.Tasks
	d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w1", Handlers: []string{handler}, Limit: limit, WaitMs: &none}, &got), 200, "")
	return got.Tasks
}

func (d *testAPI) batch(id string) (b wire.Batch) {
	d.t.Helper()
	d.want(d.ask("GET", "batches/"+id, nil, &b), 200, "")
	return b
}

func (d *testAPI) balance(want int64) {
	d.t.Helper()
	var w wire.Wallet
	d.want(d.ask("GET", "wallets/w", nil, &w), 200, "")
	if w.Balance != want {
		d.t.Errorf("got balance %d, want %d", w.Balance, want)
	}
}

func TestABatchIsDoneByWorkersElsewhere(t *testing.T) {
	files, err := batch.FileStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("POST", "wallets/w/credit", wire.Credit{Points: 100, Reference: "$x"}, nil), 400, fault.Validation)
		d.want(d.ask("POST", "wallets/w/credit", wire.Credit{Points: 100, Reference: "first"}, nil), 200, "")
		in := wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "h", Parallel: 2, Items: newItems(10, "x", "y"), Open: true}
		d.want(d.ask("POST", "batches", in, nil), 404, fault.NotFound) // undeclared handler
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "handlers/acts", wire.PutHandler{Kind: "worker", Safety: "opaque"}, nil), 201, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{Wallet: "w", Handler: "acts"}, nil), 400, fault.Validation)
		in.Wallet = "none"
		d.want(d.ask("POST", "batches", in, nil), 404, fault.NotFound)
		in.Wallet = "w"
		for path, body := range map[string]string{"batches": `{"wallet":"w","handler":"h","items":[{"key":"a","cost":0},{"key":"b"}]}`, "batches/b/items": `{"items":[{"key":"a","cost":0},{"key":"b","cost":null}]}`} {
			resp := d.ask("POST", path, body, nil)
			d.want(resp, 400, fault.Validation)
			if text := textOf(resp); !strings.Contains(text, "/items/1/cost") {
				t.Errorf("%s: got %s, want the pointer of the missing cost", path, text)
			}
		}
		var b wire.Batch
		d.want(d.ask("POST", "batches", in, &b), 201, "")
		if b.Status != "PENDING" || b.Counts.Pending != 2 || !b.Open || b.CancelRequested {
			t.Fatalf("created %+v, want an open PENDING batch with 2 items", b)
		}
		d.want(d.ask("POST", "batches", in, nil), 409, fault.Conflict)
		keyed := wire.NewBatch{Wallet: "w", Handler: "h"}
		var once, again wire.Batch
		d.want(d.ask("POST", "batches", keyed, &once, keyHeader, "make"), 201, "")
		d.want(d.ask("POST", "batches", keyed, &again, keyHeader, "make"), 201, "")
		if once.ID == "" || again.ID != once.ID {
			t.Errorf("first call created %q, second returned %q, want the same", once.ID, again.ID)
		}
		var more wire.AddedItems
		for _, want := range []int64{1, 0} {
			d.want(d.ask("POST", "batches/b/items", wire.AddItems{Items: newItems(10, "z")}, &more), 200, "")
			if more.Added != want {
				t.Errorf("added %d, want %d", more.Added, want)
			}
		}
		d.want(d.ask("POST", "batches/b/items", wire.AddItems{Items: newItems(11, "z")}, nil), 409, fault.Conflict)
		d.want(d.ask("POST", "batches/b/seal", nil, &b), 200, "")
		d.want(d.ask("POST", "batches/b/seal", json.RawMessage(" { } "), &b), 200, "")
		d.want(d.ask("POST", "batches/b/items", wire.AddItems{Items: newItems(10, "q")}, nil), 409, fault.InvalidTransition)

		tasks := d.claimItems("h", 10)
		if len(tasks) != 2 || tasks[0].Kind != "batchItem" || string(tasks[0].Input) == "" || tasks[0].Context.Item != "x" || tasks[0].Context.Batch != "b" ||
			!strings.HasSuffix(tasks[0].Context.ArtifactPrefix, "/b/x/") || tasks[0].IdempotencyKey == "" || tasks[0].Attempt != 1 {
			t.Fatalf("claimed %+v", tasks)
		}
		d.balance(80)
		var r wire.Renewed
		d.want(d.ask("POST", "tasks/"+tasks[0].ID+"/renew", wire.Renew{Epoch: 1, LeaseMs: 60000}, &r), 200, "")
		if r.CancelRequested || r.Until == nil {
			t.Errorf("renewed %+v", r)
		}
		var ended wire.EndedTask
		done := wire.CompleteTask{Epoch: 1, Output: json.RawMessage(`{"ok":true}`)}
		for range 2 { // the repetition returns the same
			d.want(d.ask("POST", "tasks/"+tasks[0].ID+"/complete", done, &ended), 200, "")
			if ended.Status != "succeeded" {
				t.Errorf("got %+v, want succeeded", ended)
			}
		}
		d.want(d.ask("POST", "tasks/"+tasks[0].ID+"/complete", wire.CompleteTask{Epoch: 1, Output: json.RawMessage(`2`)}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "tasks/"+tasks[0].ID+"/complete", wire.CompleteTask{Epoch: 2}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "tasks/bit_nonsense/complete", done, nil), 404, fault.NotFound)
		d.want(d.ask("POST", "tasks/"+tasks[0].ID+"/effects", wire.EffectCall{Epoch: 1, Name: "n"}, nil), 400, fault.Validation)
		no := false
		d.want(d.ask("POST", "tasks/"+tasks[1].ID+"/fail", wire.FailTask{Epoch: 1, Message: "no", Retryable: &no}, &ended), 200, "")
		if ended.Status != "failed" {
			t.Errorf("got %+v, want failed", ended)
		}
		d.balance(90)
		var items wire.List[wire.BatchItem]
		d.want(d.ask("GET", "batches/b/items?limit=2", nil, &items), 200, "")
		if len(items.Items) != 2 || items.Next == nil || items.Items[0].State != "succeeded" || items.Items[0].Decision != nil || items.Items[1].Error != "no" ||
			items.Items[1].Attempts != 1 || items.Items[0].Artifacts != tasks[0].Context.ArtifactPrefix {
			t.Errorf("got items %+v", items)
		}
		d.want(d.ask("GET", "batches/b/items?state=pending", nil, &items), 200, "")
		if len(items.Items) != 1 || items.Items[0].Key != "z" || items.Items[0].Artifacts != "" {
			t.Errorf("got pending items %+v, want only z", items)
		}
		d.want(d.ask("GET", "batches/b/items?state=odd", nil, nil), 400, fault.Validation)
		var f wire.Accepted
		d.want(d.ask("POST", "batches/b/finalize", wire.AcceptItems{Items: &[]string{"x", "z"}}, &f), 200, "")
		if f.Accepted != 1 {
			t.Errorf("got %+v, want 1 accepted", f)
		}
		d.want(d.ask("POST", "batches/b/finalize", wire.AcceptItems{Items: &[]string{"nobody"}}, nil), 404, fault.NotFound)
		d.want(d.ask("POST", "batches/b/finalize", wire.AcceptItems{Items: &[]string{}}, &f), 200, "")
		d.want(d.ask("POST", "batches/b/finalize", nil, &f), 200, "")
		tasks = d.claimItems("h", 10)
		if len(tasks) != 1 {
			t.Fatalf("claimed %+v, want one task", tasks)
		}
		var c wire.CancelledBatch
		d.want(d.ask("POST", "batches/b/cancel", nil, &c), 202, "")
		if c.Result != "ACCEPTED" || !c.Batch.CancelRequested {
			t.Errorf("cancel returned %+v, want ACCEPTED and cancelRequested", c)
		}
		d.want(d.ask("POST", "tasks/"+tasks[0].ID+"/renew", wire.Renew{Epoch: 1}, &r), 200, "")
		if !r.CancelRequested {
			t.Errorf("renewed %+v, want cancelRequested", r)
		}
		holdfasttest.Advance(t, d.engine, time.Hour)
		stop := testkit.Run(t, d.engine)
		b = d.awaitBatch("b")
		stop()
		if b.Status != "CANCELLED" || b.Counts != (wire.BatchCounts{Succeeded: 1, Accepted: 1, Failed: 1, Cancelled: 1}) || b.Charged != 30 || b.Refunded != 20 {
			t.Errorf("got batch %+v, want CANCELLED with 30 charged and 20 refunded", b)
		}
		d.balance(90)
		d.want(d.ask("POST", "batches/b/cancel", nil, &c), 200, "")
		d.want(d.ask("POST", "tasks/"+tasks[0].ID+"/complete", done, nil), 409, fault.LeaseLost)
		var all wire.List[wire.Batch]
		d.want(d.ask("GET", "batches?status=CANCELLED", nil, &all), 200, "")
		if len(all.Items) != 1 {
			t.Errorf("got cancelled items %+v, want one", all)
		}
		d.want(d.ask("GET", "batches?status=odd", nil, nil), 400, fault.Validation)
		d.want(d.ask("GET", "batches/none", nil, nil), 404, fault.NotFound)
		// The events are streamed to the end, and again from a cursor.
		names, ids := d.eventsOf("batches/"+"b", "")
		if names[0] != "created" || names[len(names)-1] != "cancelled" || !slices.Contains(names, "itemSucceeded") || !slices.Contains(names, "itemsCancelled") {
			t.Errorf("got events %q", names)
		}
		if after, _ := d.eventsOf("batches/"+"b", ids[len(ids)-1]); len(after) > 0 {
			t.Errorf("got events %q after the last id, want none", after)
		}
		if again, _ := d.eventsOf("batches/"+"b", ids[1]); !slices.Equal(again, names[2:]) {
			t.Errorf("resumed after the second id with events %q", again)
		}
	}, batch.Maintenance(), batch.Artifacts(files))
}

// eventsOf follows a batch or a run to its end.
func (d *testAPI) eventsOf(path, last string) (names, ids []string) {
	d.t.Helper()
	ctx, stop := context.WithTimeout(d.t.Context(), time.Minute)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/api/v1/"+path+"/events", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		if name, ok := strings.CutPrefix(s.Text(), "event: "); ok {
			names = append(names, name)
		}
		if id, ok := strings.CutPrefix(s.Text(), "id: "); ok {
			ids = append(ids, id)
		}
	}
	return names, ids
}

// awaitBatch waits for the end of a batch.
func (d *testAPI) awaitBatch(id string) wire.Batch {
	d.t.Helper()
	d.eventsOf("batches/"+id, "")
	return d.batch(id)
}

func TestABatchIsDoneByAURL(t *testing.T) {
	var mu sync.Mutex
	calls := make(map[string]int)
	handler := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call wire.HandlerCall
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil || call.Kind != "batchItem" || r.Header.Get("Idempotency-Key") == "" {
			t.Errorf("got call %+v, %v, want a batchItem with an idempotency key", call, err)
		}
		mu.Lock()
		calls[call.Item]++
		n := calls[call.Item]
		mu.Unlock()
		switch {
		case call.Item == "bad":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"message":"not this one"}`))
		case call.Item == "shy" && n <= 2: // once for each database
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_, _ = w.Write([]byte(`{"output":"did ` + call.Item + `"}`))
		}
	}))
	t.Cleanup(handler.Close)
	o := httpapi.Options{NoKeys: true, SecretKeys: [][]byte{make([]byte, 32)}, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	eachTestAPI(t, o, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil), 200, "")
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: handler.URL}, nil), 201, "")
		testkit.Run(t, d.engine)
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "h", Parallel: 3, Items: newItems(5, "x", "bad", "shy", "y")}, nil), 201, "")
		b := d.awaitBatch("b")
		if b.Status != "COMPLETED" || b.Counts != (wire.BatchCounts{Succeeded: 3, Failed: 1, Accepted: 3}) {
			t.Errorf("got batch %+v, want COMPLETED with 3 accepted and 1 failed", b)
		}
		d.balance(-15)
		var items wire.List[wire.BatchItem]
		d.want(d.ask("GET", "batches/b/items", nil, &items), 200, "")
		if string(items.Items[0].Output) != `"did x"` || !strings.Contains(items.Items[1].Error, "not this one") || *items.Items[0].Decision != "accepted" {
			t.Errorf("got items %+v", items.Items)
		}
	})
}

// TestBatchesUnderAKey verifies that every request about batches can be repeated under its key,
// also when handlers are declared on first use.
func TestBatchesUnderAKey(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true, Declare: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil, keyHeader, "w"), 200, "")
		for _, x := range []struct {
			path   string
			body   any
			status int
		}{
			{"wallets/w/credit", wire.Credit{Points: 10, Reference: "r"}, 200},
			{"batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "fresh", Open: true}, 201},
			{"batches/b/items", wire.AddItems{Items: newItems(1, "x", "y")}, 200},
			{"batches/b/seal", nil, 200},
			{"batches/b/finalize", nil, 200},
			{"batches/b/cancel", nil, 200},
		} {
			first := d.ask("POST", x.path, x.body, nil, keyHeader, x.path)
			d.want(first, x.status, "")
			second := d.ask("POST", x.path, x.body, nil, keyHeader, x.path)
			d.want(second, x.status, "")
			if a, b := textOf(first), textOf(second); a != b || second.Header.Get(replayedHeader) != "true" {
				t.Errorf("%s: first call returned %s, second returned %s, want a replay", x.path, a, b)
			}
		}
	}, batch.Maintenance())
}

// TestABatchOfAProgramsKind verifies that a batch of a kind that the program defines can be created
// over HTTP, is processed by the program, and has the defaults of its kind.
func TestABatchOfAProgramsKind(t *testing.T) {
	kind := batch.Define("own", func(_ context.Context, i *batch.Item[int]) (int, error) { return 2 * i.Input, nil }, batch.Options{MaxConcurrency: 3})
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		testkit.Run(t, d.engine)
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "own", Items: []wire.NewItem{{Key: "k", Cost: new(int64(0)), Input: json.RawMessage("21")}}}, nil), 201, "")
		for begun := clock.Now(); d.batch("b").Status != "COMPLETED"; _ = clock.Wait(t.Context(), 10*time.Millisecond) {
			if clock.Since(begun) > time.Minute {
				t.Fatalf("batch did not end: %+v", d.batch("b"))
			}
		}
		b, err := batchengine.Get(t.Context(), engine.Of(d.engine), "b")
		if err != nil || b.MaxConcurrency != 3 {
			t.Errorf("got batch %+v, %v, want maxConcurrency 3", b, err)
		}
		var l wire.List[wire.BatchItem]
		if d.want(d.ask("GET", "batches/b/items", nil, &l), 200, ""); string(l.Items[0].Output) != "42" {
			t.Errorf("got items %+v, want output 42", l.Items)
		}
	}, kind)
}
