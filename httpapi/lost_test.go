package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/wire"
)

// fourKinds creates one task of each kind: an action, a step of a run, an item of a batch, an event
// of a reaction.
func (d *testAPI) fourKinds() (run string) {
	d.t.Helper()
	d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
	d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
	for _, name := range []string{"Pack", "Mail"} {
		d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "worker"}, nil), 201, "")
	}
	d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
	d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
	d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
	d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Pack", Items: newItems(0, "x")}, nil), 201, "")
	d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"*"}, Streams: "^orders$", Handler: "Mail"}, nil), 201, "")
	d.append("orders", 1)
	return d.start("pay@1", `{}`).ID
}

// claimFour claims the due tasks of the four kinds, checks their number, and returns them by kind.
func (d *testAPI) claimFour(want int) map[string]wire.Task {
	d.t.Helper()
	none := wire.Millis(0)
	all := make(map[string]wire.Task)
	for range 5 { // due notices of events are collected first
		var got wire.Tasks
		d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w1", Handlers: []string{"Do", "Pay", "Pack", "Mail"}, Limit: 10, WaitMs: &none}, &got), 200, "")
		for _, task := range got.Tasks {
			all[task.Kind] = task
		}
	}
	if len(all) != want {
		d.t.Fatalf("claimed %d, want %d: %+v", len(all), want, all)
	}
	return all
}

// lapse expires all leases, ends them, and advances the time by the longest pause.
func (d *testAPI) lapse() {
	d.t.Helper()
	holdfasttest.Advance(d.t, d.engine, time.Minute)
	engine.Of(d.engine).Round(d.t.Context())
	holdfasttest.Advance(d.t, d.engine, 5*time.Minute)
}

// lostHandOuts returns the counts in the list of lost hand-outs, by kind.
func (d *testAPI) lostHandOuts() map[string]int64 {
	d.t.Helper()
	all, cursor := make(map[string]int64), ""
	for {
		var l wire.List[wire.Operation]
		d.want(d.ask("GET", "operations?state=lost&limit=1"+cursor, nil, &l), 200, "")
		for _, x := range l.Items {
			all[x.Kind] = x.LostHandOuts
		}
		if l.Next == nil {
			return all
		}
		cursor = "&cursor=" + *l.Next
	}
}

// TestALostHandOutIsNoDeath verifies for each kind of task that lost hand-outs are not crashes:
// they are counted separately, listed, handed out again after an increasing pause, and never fail
// the task, which is finally done.
func TestALostHandOutIsNoDeath(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		run := d.fourKinds()
		kinds := []string{"action", "batchItem", "reaction", "runStep"}
		first := d.claimFour(4)
		holdfasttest.Advance(t, d.engine, time.Minute)
		engine.Of(d.engine).Round(t.Context())
		d.claimFour(4) // the first pause is zero
		const times = lease.MaxCrashes + 2
		for range times - 1 {
			d.lapse()
			d.claimFour(4)
		}
		lost := d.lostHandOuts()
		for _, kind := range kinds {
			if lost[kind] != times {
				t.Errorf("lost deliveries of %s: got %d, want %d", kind, lost[kind], times)
			}
		}
		s := d.steps(run)[0]
		var items wire.List[wire.BatchItem]
		d.want(d.ask("GET", "batches/b/items", nil, &items), 200, "")
		p := d.position("mail", "orders")
		if s.Deaths != 0 || s.LostHandOuts != times || items.Items[0].LostHandOuts != times || p.Deaths != 0 || p.LostHandOuts != times || p.Blocked {
			t.Errorf("got step %+v, item %+v, position %+v", s, items.Items[0], p)
		}
		holdfasttest.Advance(t, d.engine, time.Minute)
		engine.Of(d.engine).Round(t.Context())
		d.claimFour(0) // the eighth pause is more than two minutes
		holdfasttest.Advance(t, d.engine, 3*time.Minute)
		last := d.claimFour(4)
		for _, kind := range kinds {
			if last[kind].IdempotencyKey != first[kind].IdempotencyKey || last[kind].Epoch <= first[kind].Epoch {
				t.Errorf("first claimed %+v, last claimed %+v, want the same idempotency key under a higher epoch", first[kind], last[kind])
			}
			d.want(d.ask("POST", "tasks/"+first[kind].ID+"/complete", wire.CompleteTask{Epoch: first[kind].Epoch}, nil), 409, fault.LeaseLost)
			d.want(d.ask("POST", "tasks/"+last[kind].ID+"/complete", wire.CompleteTask{Epoch: last[kind].Epoch}, nil), 200, "")
		}
		if lost := d.lostHandOuts(); len(lost) != 0 {
			t.Errorf("got lost deliveries %v, want none", lost)
		}
		var r wire.Run
		d.want(d.ask("GET", "workflow-runs/"+run, nil, &r), 200, "")
		if r.Status != "COMPLETED" {
			t.Errorf("got run %+v, want COMPLETED", r)
		}
	})
}

// TestAWorkerThatWasHeardOfDies verifies that a worker that was heard of, by a renewal or by
// beginning an effect, and then disappears counts as a crash, so that work that crashes workers is
// detected; and that being heard of resets the count of lost hand-outs.
func TestAWorkerThatWasHeardOfDies(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		run := d.fourKinds()
		d.claimFour(4)
		d.lapse()
		for n := range lease.MaxCrashes {
			want := 4
			if n > 0 { // the action went back, because its worker had begun nothing
				want = 3
			}
			for _, task := range d.claimFour(want) {
				d.want(d.ask("POST", "tasks/"+task.ID+"/renew", wire.Renew{Epoch: task.Epoch}, nil), 200, "")
			}
			if lost := d.lostHandOuts(); len(lost) != 0 {
				t.Fatalf("got lost deliveries %v, want none", lost)
			}
			d.lapse()
		}
		var r wire.Run
		d.want(d.ask("GET", "workflow-runs/"+run, nil, &r), 200, "")
		var items wire.List[wire.BatchItem]
		d.want(d.ask("GET", "batches/b/items", nil, &items), 200, "")
		p := d.position("mail", "orders")
		if r.Status != "FAILED" || items.Items[0].State != "failed" || !p.Blocked {
			t.Errorf("got run %+v, item %+v, position %+v, want them failed and blocked", r, items.Items[0], p)
		}
		again := d.start("pay@1", `{}`).ID
		task := d.one("Pay")
		d.want(d.ask("POST", "tasks/"+task.ID+"/effects", wire.EffectCall{Epoch: task.Epoch, Name: "card"}, nil), 200, "")
		d.lapse()
		if s := d.steps(again)[0]; s.Deaths != 1 || s.LostHandOuts != 0 {
			t.Errorf("got step %+v that began an effect, want 1 death and no lost deliveries", s)
		}
	})
}

// TestALostClaimOfAStreamIsNoDeath verifies that a lost claim by hand of a reaction's streams
// blocks nothing.
func TestALostClaimOfAStreamIsNoDeath(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}, Streams: "^orders$"}, nil), 201, "")
		d.append("orders", 1)
		for range lease.MaxCrashes + 1 {
			if got := d.lease("r", 1); len(got) != 1 {
				t.Fatalf("claimed %+v, want one lease", got)
			}
			d.lapse()
		}
		p := d.position("r", "orders")
		if p.Blocked || p.Deaths != 0 || p.LostHandOuts != lease.MaxCrashes+1 {
			t.Errorf("got position %+v, want only lost deliveries", p)
		}
		got := d.lease("r", 1)
		if told := d.ack("r", got[0], 0); told != "acked" {
			t.Errorf("ack returned %q, want acked", told)
		}
		if p := d.position("r", "orders"); p.LostHandOuts != 0 || p.Watermark != 0 {
			t.Errorf("got position %+v, want watermark 0 and no lost deliveries", p)
		}
	})
}

// TestAWithdrawnOperationHasNoLostHandOuts verifies that a withdrawn operation leaves no lost
// hand-outs to the next one of its entity.
func TestAWithdrawnOperationHasNoLostHandOuts(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.fourKinds()
		task := d.claimFour(4)["action"]
		d.lapse()
		if n := d.lostHandOuts()["action"]; n != 1 {
			t.Fatalf("got %d lost deliveries, want 1", n)
		}
		d.want(d.ask("POST", "operations/"+task.IdempotencyKey+"/withdraw", wire.Withdraw{}, nil), 200, "")
		d.want(d.ask("POST", "lifecycles/job/entities/j/claims", wire.NewClaim{StepKey: "do", Requester: "admin"}, nil), 201, "")
		if n := d.lostHandOuts()["action"]; n != 0 {
			t.Errorf("the next operation has %d lost deliveries, want 0", n)
		}
	})
}

// keyed claims with a key, without waiting.
func (d *testAPI) keyed(key string) (all []wire.Task, again bool) {
	d.t.Helper()
	none := wire.Millis(0)
	var got wire.Tasks
	resp := d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w1", Handlers: []string{"Do", "Pay", "Pack", "Mail"}, Limit: 10, WaitMs: &none}, &got, keyHeader, key)
	d.want(resp, 200, "")
	return got.Tasks, resp.Header.Get("Idempotency-Replayed") == "true"
}

func names(all []wire.Task) (ids []string) {
	for _, task := range all {
		ids = append(ids, fmt.Sprintf("%s %s %d", task.Kind, task.ID, task.Epoch))
	}
	slices.Sort(ids)
	return ids
}

// TestAClaimIsRepeatedUnderItsKey verifies for each kind of task that a claim repeated under its
// key gets the same tasks under the same epochs while their leases last, and new ones afterwards;
// that an empty claim does not bind its key; and that a different claim under the key is refused.
func TestAClaimIsRepeatedUnderItsKey(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		if all, again := d.keyed("first"); len(all) != 0 || again {
			t.Fatalf("claimed %v, want nothing", names(all))
		}
		d.fourKinds()
		kinds := make(map[string][]wire.Task)
		for i, key := range []string{"first", "second", "third", "fourth"} {
			all, again := d.keyed(key)
			if len(all) != 1 || again || kinds[all[0].Kind] != nil {
				t.Fatalf("claim %d returned %v, replayed %v, after %v", i, names(all), again, kinds)
			}
			kinds[all[0].Kind] = all
			for range 2 {
				if same, again := d.keyed(key); !again || !slices.Equal(names(same), names(all)) {
					t.Errorf("first call claimed %v, second returned %v, replayed %v", names(all), names(same), again)
				}
			}
		}
		d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w2", Handlers: []string{"Do"}}, nil, keyHeader, "first"), 422, fault.KeyMismatch)
		if all, _ := d.keyed("fifth"); len(all) != 0 {
			t.Errorf("claimed %v, want none left", names(all))
		}
		holdfasttest.Advance(t, d.engine, time.Minute) // no janitor runs: the claims end the leases
		again := make(map[string]bool)
		for _, key := range []string{"first", "second", "third", "fourth"} {
			all, replayed := d.keyed(key)
			if len(all) != 1 || replayed || all[0].Epoch <= kinds[all[0].Kind][0].Epoch || again[all[0].Kind] {
				t.Fatalf("claimed %v after the leases expired, replayed %v", names(all), replayed)
			}
			again[all[0].Kind] = true
			d.want(d.ask("POST", "tasks/"+all[0].ID+"/complete", wire.CompleteTask{Epoch: all[0].Epoch}, nil), 200, "")
		}
	})
}

// TestTheKeyOfAClaimEndsWithItsLeases verifies for each kind of task whose lease is limited by its
// handler's timeout that the key of a claim is not stored longer than the lease: a later repetition
// would work on tasks of another holder.
func TestTheKeyOfAClaimEndsWithItsLeases(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		short := wire.Ms(5 * time.Second)
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled", TimeoutMs: short})
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled", TimeoutMs: short}, nil), 201, "")
		d.want(d.ask("PUT", "handlers/Pack", wire.PutHandler{Kind: "worker", TimeoutMs: short}, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		d.start("pay@1", `{}`)
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Pack", Items: newItems(0, "x")}, nil), 201, "")
		first := make(map[string]int64)
		for _, key := range []string{"first", "second", "third"} {
			for _, task := range d.keyedOne(key) {
				first[task.Kind] = task.Epoch
			}
		}
		if len(first) != 3 {
			t.Fatalf("claimed %v, want 3", first)
		}
		holdfasttest.Advance(t, d.engine, 12*time.Second) // the lease of the step is the timeout plus its grace period
		for _, key := range []string{"first", "second", "third"} {
			for _, task := range d.keyedOne(key) {
				if task.Epoch <= first[task.Kind] {
					t.Errorf("claimed under an expired epoch: %+v", task)
				}
			}
		}
	})
}

// keyedOne claims one task with a key.
func (d *testAPI) keyedOne(key string) []wire.Task {
	d.t.Helper()
	all, _ := d.keyed(key)
	if len(all) != 1 {
		d.t.Fatalf("claimed %v under key %s, want one task", names(all), key)
	}
	return all
}

// TestTwinClaimsGetTheSameTasks verifies that concurrent claims with one key all get the same
// tasks, and that nothing else is handed out.
func TestTwinClaimsGetTheSameTasks(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		for range 12 {
			d.start("pay@1", `{}`)
		}
		none := wire.Millis(0)
		got := make([]wire.Tasks, 8)
		holdfasttest.Race(t, len(got), func(i int) error {
			d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w1", Handlers: []string{"Pay"}, Limit: 5, WaitMs: &none}, &got[i], keyHeader, "k"), 200, "")
			return nil
		})
		for i := range got {
			if len(got[i].Tasks) != 5 || !slices.Equal(names(got[i].Tasks), names(got[0].Tasks)) {
				t.Errorf("first call claimed %v, second returned %v, want the same 5", names(got[0].Tasks), names(got[i].Tasks))
			}
		}
		if rest := d.claimItems("Pay", 100); len(rest) != 7 {
			t.Errorf("got %d tasks left, want 7", len(rest))
		}
	})
}

// TestAClaimOfStreamsIsRepeatedUnderItsKey verifies that a claim of streams by hand is idempotent
// under its key.
func TestAClaimOfStreamsIsRepeatedUnderItsKey(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}, Streams: "^orders"}, nil), 201, "")
		d.append("orders1", 2)
		d.append("orders2", 1)
		var got [2]wire.Leases
		for i := range got {
			d.want(d.ask("POST", "reactions/r/claim", wire.ClaimLeases{By: "me", Limit: 1, LeaseMs: 60000, WaitMs: 20_000}, &got[i], keyHeader, "k"), 200, "")
		}
		if len(got[0].Leases) != 1 || len(got[1].Leases) != 1 || got[0].Leases[0].Stream != got[1].Leases[0].Stream || got[0].Leases[0].Epoch != got[1].Leases[0].Epoch {
			t.Errorf("first call claimed %+v, second returned %+v, want the same lease", got[0], got[1])
		}
	})
}

// TestARenewalTellsOfACancel verifies that a renewal reports that the batch of an item is
// cancelled, even after the item was taken away, and that this differs from an expired lease.
func TestARenewalTellsOfACancel(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Pack", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Pack", Items: newItems(0, "x", "y"), Parallel: 2}, nil), 201, "")
		held := d.claimItems("Pack", 2)
		if len(held) != 2 {
			t.Fatalf("claimed %+v, want 2 tasks", held)
		}
		d.want(d.ask("POST", "tasks/"+held[1].ID+"/fail", wire.FailTask{Epoch: held[1].Epoch, Message: "no"}, nil), 200, "")
		d.want(d.ask("POST", "batches/b/cancel", nil, nil), 202, "")
		told := func() {
			t.Helper()
			var r wire.Renewed
			d.want(d.ask("POST", "tasks/"+held[0].ID+"/renew", wire.Renew{Epoch: held[0].Epoch}, &r), 200, "")
			if !r.CancelRequested {
				t.Errorf("renewed %+v, want cancelRequested", r)
			}
			d.want(d.ask("POST", "tasks/"+held[1].ID+"/renew", wire.Renew{Epoch: held[1].Epoch}, nil), 409, fault.LeaseLost)
		}
		told()
		at, err := engine.Of(d.engine).Partition(t.Context(), store.Read)
		if err == nil {
			_, err = batchengine.Advance(t.Context(), engine.Of(d.engine), at) // the batch is torn down
		}
		if err != nil {
			t.Fatal(err)
		}
		told()
		told()
		d.want(d.ask("POST", "tasks/"+held[0].ID+"/complete", wire.CompleteTask{Epoch: held[0].Epoch}, nil), 409, fault.LeaseLost)
	})
}

// V, at every point and for every fault, that a claim under a key that is repeated until it gets a
// response hands out exactly what the response contains.
func TestCrashOfAKeyedClaim(t *testing.T) {
	// A further repetition returns the same. Settle would end the leases that are compared.
	holdfasttest.Crash(t, holdfasttest.Scenario{Do: claimUnderAKey, Check: claimUnderAKey, Recover: func(context.Context, *holdfast.Engine) error { return nil }})
}

// claimUnderAKey starts three runs, claims the steps of two with a key, and checks which are
// leased.
func claimUnderAKey(ctx context.Context, hf *holdfast.Engine) error {
	a := httpapi.On(hf, httpapi.Options{NoKeys: true, Log: slog.New(slog.DiscardHandler)})
	defer a.Stop()
	send := func(method, path, body, key string, into any) error {
		r := httptest.NewRequest(method, "http://127.0.0.1/api/v1/"+path, strings.NewReader(body)).WithContext(ctx)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Holdfast-Workspace", store.WorkspaceOf(ctx))
		if key != "" {
			r.Header.Set(keyHeader, key)
		}
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		if w.Code > http.StatusCreated {
			return fmt.Errorf("%s %s returned status %d %s", method, path, w.Code, w.Body)
		}
		return json.Unmarshal(w.Body.Bytes(), into)
	}
	var told map[string]any
	err := errors.Join(send("PUT", "handlers/Pay", `{"kind":"worker","safety":"idempotent"}`, "", &told),
		send("POST", "workflow-definitions", `{"name":"pay","version":"1","steps":[{"name":"do","type":"task","handler":"Pay"}]}`, "", &told))
	held := make(map[string]bool)
	var runs []string
	for i := range 3 {
		var s wire.StartedRun
		err = errors.Join(err, send("POST", "workflow-runs", fmt.Sprintf(`{"definitionId":"pay@1","input":{},"idempotencyKey":"run-%d"}`, i), "", &s))
		runs = append(runs, s.Run.ID)
	}
	if err != nil {
		return err
	}
	var got wire.Tasks
	if err := send("POST", "tasks/claim", `{"worker":"w","handlers":["Pay"],"limit":2,"waitMs":0,"leaseMs":3600000}`, "claim", &got); err != nil {
		return err
	}
	for _, task := range got.Tasks {
		if held[task.Context.Run] = true; task.Epoch != 1 {
			return fmt.Errorf("delivered twice: %+v", task)
		}
	}
	for _, id := range runs {
		var steps wire.List[wire.RunStep]
		if err := send("GET", "workflow-runs/"+id+"/steps", "", "", &steps); err != nil {
			return err
		}
		if s := steps.Items[0]; len(got.Tasks) != 2 || (s.Holder != nil) != held[id] || s.Epoch > 1 {
			return fmt.Errorf("claim returned %v, but the step is %+v", names(got.Tasks), s)
		}
	}
	return nil
}

// TestAClaimUnderAKeyPassesOverWhatIsLocked verifies on PostgreSQL that a claim under a key gets
// other items and steps while the wallet of a batch, or a run, is locked for long.
func TestAClaimUnderAKeyPassesOverWhatIsLocked(t *testing.T) {
	t.Parallel()
	url := holdfasttest.PostgreSQL(t)
	hasty := url + map[bool]string{true: "&", false: "?"}[strings.Contains(url, "?")] + "lock_timeout=100ms"
	d := newTestAPI(t, holdfasttest.OpenOn(t, postgres.URL(hasty)), elsewhere)
	for _, name := range []string{"Pack", "Pay"} {
		d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
	}
	for _, id := range []string{"first", "second"} {
		d.want(d.ask("PUT", "wallets/"+id, wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new(id), Wallet: id, Handler: "Pack", Items: newItems(0, "x")}, nil), 201, "")
	}
	storetest.Queue(t, url, `SELECT 1 FROM holdfast.wallet WHERE id = 'first' FOR UPDATE`, nil, func() {
		if task := d.keyedOne("items")[0]; task.Context.Batch != "second" {
			t.Errorf("claimed %+v, want batch second", task)
		}
	})
	d.want(d.ask("POST", "batches/first/cancel", nil, nil), 200, "")
	d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
	locked, other := d.start("pay@1", `{}`).ID, d.start("pay@1", `{}`).ID
	storetest.Queue(t, url, `SELECT 1 FROM holdfast.run WHERE id = $1 FOR UPDATE`, []any{locked}, func() {
		if task := d.keyedOne("steps")[0]; task.Context.Run != other {
			t.Errorf("claimed %+v, want run %s", task, other)
		}
	})
}

// TestWhatWasLostTogetherComesBackApart verifies for each kind of task that tasks that were lost
// together several times are handed out one after the other: otherwise a task that crashes its
// worker before that is heard of would take the others with it each time.
func TestWhatWasLostTogetherComesBackApart(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.fourKinds()
		const of = 9
		more := make([]string, of-1)
		for i := range more {
			more[i] = fmt.Sprint("more", i)
			d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: new(more[i])}, nil), 201, "")
			d.want(d.ask("POST", "lifecycles/job/entities/"+more[i]+"/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
			d.start("pay@1", `{}`)
		}
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("all"), Wallet: "w", Handler: "Pack", Items: newItems(0, more...), Parallel: of}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"*"}, Streams: "^(orders|more.*)$", Handler: "Mail"}, nil), 200, "")
		for _, name := range more {
			d.append(name, 1)
		}
		handlers := []string{"Do", "Pay", "Pack", "Mail"}
		for n := range 4 {
			for _, name := range handlers {
				got := 0
				for range 3 { // due notices are collected first
					got += len(d.claimItems(name, 100))
				}
				if got != of {
					t.Fatalf("claim %d of %s returned %d tasks, want %d", n, name, got, of)
				}
			}
			holdfasttest.Advance(t, d.engine, time.Minute)
			engine.Of(d.engine).Round(t.Context())
			if n < 3 {
				holdfasttest.Advance(t, d.engine, time.Minute)
			}
		}
		came, times := make(map[string]int), make(map[string]int)
		for range 20 { // of the pause, which is up to 7 s
			holdfasttest.Advance(t, d.engine, 350*time.Millisecond)
			for _, name := range handlers {
				if n := len(d.claimItems(name, 100)); n > 0 {
					came[name], times[name] = came[name]+n, times[name]+1
				}
			}
		}
		for _, name := range handlers {
			if came[name] != of || times[name] < 2 {
				t.Errorf("got %d tasks of %s at %d distinct times, want them spread", came[name], name, times[name])
			}
		}
	})
}
