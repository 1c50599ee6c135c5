package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// contest is a lifecycle on two nodes of one database.
type contest struct {
	nodes [2]*testAPI
	l     [2]*lifecycle.Lifecycle[json.RawMessage]
}

func onTwoNodes(t *testing.T, f func(t *testing.T, c *contest)) {
	storetest.OnEach(t, func(t *testing.T, where string) {
		c := new(contest)
		for i := range c.nodes {
			c.l[i] = lifecycle.MustParse[json.RawMessage]([]byte(invoiceConfig)).RecoveredBy().
				Action("Close", func(ctx context.Context, a *lifecycle.Act[json.RawMessage]) error {
					_, err := holdfast.Effect(ctx, "charge", func(context.Context, string) (int, error) { return 1, nil })
					return err
				})
			c.nodes[i] = newTestAPI(t, holdfasttest.OpenOn(t, holdfasttest.At(where), c.l[i]), httpapi.Options{NoKeys: true})
		}
		f(t, c)
	})
}

func all[T any](d *testAPI, path string) (items []T) {
	d.t.Helper()
	for next := ""; ; {
		var page wire.List[T]
		d.want(d.ask("GET", path+next, nil, &page), http.StatusOK, "")
		items = append(items, page.Items...)
		if page.Next == nil {
			return items
		}
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		next = sep + "cursor=" + *page.Next
	}
}

// TestRacesAreWhatTheCallersCounted verifies, for callers that race on two nodes, that races and timelines show one
// winner and every loser, with its request, its code and its order, as the callers counted them.
func TestRacesAreWhatTheCallersCounted(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, c *contest) {
		const callers = 8
		rounds := testlevel.Pick(8, 20, 50)
		type told struct {
			won   string
			codes map[string]fault.Code // by request id
		}
		counted := make(map[string]told)
		for round := range rounds {
			id := fmt.Sprint("i-", round)
			c.nodes[0].want(c.nodes[0].ask("POST", "lifecycles/invoice/entities", map[string]any{"id": id}, nil), http.StatusCreated, "")
			var mu sync.Mutex
			var wg sync.WaitGroup
			now := told{codes: make(map[string]fault.Code)}
			for n := range callers {
				wg.Go(func() {
					request := fmt.Sprintf("%s-%d", id, n)
					resp := c.nodes[n%2].ask("POST", "lifecycles/invoice/entities/"+id+"/steps/close", map[string]any{"requester": "admin"}, nil, "X-Request-Id", request)
					var p wire.Problem
					_ = json.Unmarshal([]byte(textOf(resp)), &p)
					mu.Lock()
					defer mu.Unlock()
					if resp.StatusCode == http.StatusOK {
						now.won += request
					} else {
						now.codes[request] = p.Code
					}
				})
			}
			wg.Wait()
			if now.won == "" || len(now.codes) != callers-1 {
				t.Fatalf("the callers of %s counted %+v, want one winner", id, now)
			}
			counted["$entity/invoice/"+id] = now
		}
		for _, n := range c.nodes { // each node has recorded its own
			n.ask("GET", "races", nil, nil)
		}
		codes := make(map[string]map[string]fault.Code)
		for _, race := range all[wire.Race](c.nodes[0], "races?limit=20") {
			if race.Winner == nil || race.Operation == "" {
				t.Errorf("a race on %s has no winner: %+v", race.Stream, race)
			}
			for _, r := range race.Refusals {
				if codes[race.Stream] == nil {
					codes[race.Stream] = make(map[string]fault.Code)
				}
				codes[race.Stream][r.RequestID] = r.Code
				if r.Actor != "dev" || r.Node == "" || r.Action != "close" || r.Requester != "admin" || r.StandsFor != 1 {
					t.Errorf("a refusal lacks something: %+v", r)
				}
			}
		}
		for name, want := range counted {
			if !maps.Equal(codes[name], want.codes) {
				t.Errorf("races on %s: got %v, want %v", name, codes[name], want.codes)
			}
			checkOrder(t, all[wire.TimelineEntry](c.nodes[1], "timeline?limit=3&stream="+name), want.codes)
		}
	})
}

// checkOrder checks a timeline of created, claimed, an effect, close, and refusals among them.
func checkOrder(t *testing.T, all []wire.TimelineEntry, want map[string]fault.Code) {
	t.Helper()
	codes := make(map[string]fault.Code)
	order, version := "", int64(-1)
	for i := len(all) - 1; i >= 0; i-- { // oldest first
		switch e := all[i]; {
		case e.Event != nil:
			version = e.Event.Version
			order += e.Event.Name + " "
		case e.Effect != nil:
			order += e.Effect.Name + "=" + e.Effect.State + " "
		default:
			codes[e.Refusal.RequestID] = e.Refusal.Code
			if e.Refusal.Version != version {
				t.Errorf("a refusal that found version %d comes after version %d", e.Refusal.Version, version)
			}
			if claimed := e.Refusal.Code == fault.ClaimFailed; claimed != (version == 1) {
				t.Errorf("a refusal with %s comes after version %d", e.Refusal.Code, version)
			}
		}
	}
	if order != "created claimed charge=done settled/close " {
		t.Errorf("got the order %q", order)
	}
	if !maps.Equal(codes, want) {
		t.Errorf("the timeline has refusals %v, want %v", codes, want)
	}
}

// TestALateHolderIsInTheTimeline verifies that a holder that lost its lease is shown between the events that it came
// between, with its operation and epoch, and that the list of refusals has it too.
func TestALateHolderIsInTheTimeline(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, c *contest) {
		ctx, hf := t.Context(), c.nodes[0].engine
		if _, err := c.l[0].Create(ctx, hf, "i", json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
		late, err := c.l[0].Claim(ctx, hf, "i", "close", "admin", lifecycle.By("ann"), lifecycle.Lease(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		holdfasttest.Advance(t, hf, 2*time.Minute)
		next, err := c.l[1].Claim(ctx, c.nodes[1].engine, "i", "close", "admin", lifecycle.By("bob"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = late.Settle(ctx, nil, nil)
		testkit.WantCode(t, err, fault.LeaseLost, "lease")
		if _, err := next.Settle(ctx, nil, nil); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, e := range all[wire.TimelineEntry](c.nodes[0], "lifecycles/invoice/entities/i/timeline?limit=2") {
			switch {
			case e.Event != nil:
				order = append(order, e.Event.Name+" "+e.Event.Actor)
			case e.Refusal != nil:
				order = append(order, fmt.Sprint(e.Refusal.Action, " ", e.Refusal.Code, " ", e.Refusal.Epoch, " ", e.Refusal.Operation == late.Operation()))
			default:
				order = append(order, e.Effect.Name)
			}
		}
		const want = "settled/close bob, settle LEASE_LOST 1 true, claimed bob, recovered , claimed ann, created "
		if got := strings.Join(order, ", "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		refused := all[wire.Attempt](c.nodes[1], "lifecycles/invoice/entities/i/attempts?limit=1")
		if len(refused) != 1 || refused[0].StepKey != "settle" || refused[0].Code != fault.LeaseLost || refused[0].Version != 3 {
			t.Errorf("got the refusals %+v", refused)
		}
	})
}

// TestEndedOperations verifies that operations that have ended are found with their entity, their handler and the event
// that ended them, with and without a claim, and that others are not found.
func TestEndedOperations(t *testing.T) {
	onTwoNodes(t, func(t *testing.T, c *contest) {
		d := c.nodes[0]
		for _, x := range []struct{ step, handler, first, last string }{{"close", "Close", "claimed", "settled/close"}, {"void", "", "settled/void", "settled/void"}} {
			entity := "lifecycles/invoice/entities/" + url.PathEscape("to/"+x.step)
			d.want(d.ask("POST", "lifecycles/invoice/entities", map[string]any{"id": "to/" + x.step}, nil), http.StatusCreated, "")
			d.want(c.nodes[1].ask("POST", entity+"/steps/"+x.step, map[string]any{"requester": "admin"}, nil), http.StatusOK, "")
			history := all[wire.Event](d, entity+"/history")
			var operation string
			for _, e := range history {
				var data struct {
					Operation string
					Note      struct{ Operation string }
				}
				if e.Name != x.last {
					continue
				}
				if err := json.Unmarshal(e.Data, &data); err != nil {
					t.Fatal(err)
				}
				operation = data.Operation + data.Note.Operation
			}
			var o wire.Operation
			d.want(d.ask("GET", "operations/"+operation, nil, &o), http.StatusOK, "")
			first := history[slices.IndexFunc(history, func(e wire.Event) bool { return e.Name == x.first })]
			if o.State != "ended" || o.Subject != "invoice/to/"+x.step || o.Handler != x.handler || o.Ended == nil || o.Ended.Name != x.last || !o.Since.Equal(first.At.Time) {
				t.Errorf("%s: got %+v", x.step, o)
			}
			d.want(d.ask("GET", "operations/"+strings.ToUpper(operation), nil, nil), http.StatusNotFound, fault.NotFound)
			d.want(d.ask("GET", "operations/"+operation, nil, nil, "X-Holdfast-Workspace", "other"), http.StatusNotFound, fault.NotFound)
		}
		for _, id := range []string{"x", "00000000-0000-0000-0000-000000000000", store.NewID().String()} {
			d.want(d.ask("GET", "operations/"+id, nil, nil), http.StatusNotFound, fault.NotFound)
		}
	})
}

// TestRefusalsOfEveryKind verifies that each capability records the writes that lost.
func TestRefusalsOfEveryKind(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.ask("POST", "streams/s/events", `{"events":[{"name":"a"}]}`, nil)
		d.want(d.ask("POST", "streams/s/events", `{"expectedVersion":-1,"events":[{"name":"b"}]}`, nil), http.StatusConflict, fault.Concurrency)
		d.want(d.ask("PATCH", "scopes/k/x", `{"a":1}`, nil), http.StatusOK, "")
		d.want(d.ask("PATCH", "scopes/k/x", `{"a":2}`, nil, "If-Match", `"7"`), http.StatusPreconditionFailed, fault.PreconditionFailed)
		d.ask("PUT", "wallets/w", `{}`, nil)
		d.ask("PUT", "handlers/h", `{"kind":"worker"}`, nil)
		d.ask("POST", "batches", `{"id":"b","wallet":"w","handler":"h"}`, nil)
		d.want(d.ask("POST", "batches", `{"id":"b","wallet":"w","handler":"h"}`, nil), http.StatusConflict, fault.Conflict)
		d.want(d.ask("POST", "workflow-definitions", `{"name":"f","version":"1","steps":[{"name":"sleep","type":"wait","durationMs":3600000}]}`, nil), http.StatusCreated, "")
		var started wire.StartedRun
		d.want(d.ask("POST", "workflow-runs", `{"definitionId":"f@1","idempotencyKey":"k","input":{}}`, &started), http.StatusCreated, "")
		d.want(d.ask("POST", "workflow-runs", `{"definitionId":"f@1","idempotencyKey":"k","input":{"other":1}}`, nil), http.StatusUnprocessableEntity, fault.KeyMismatch)
		d.want(d.ask("POST", "workflow-runs/"+started.Run.ID+"/resume", `{}`, nil), http.StatusConflict, fault.InvalidTransition)
		var got []string
		for _, race := range all[wire.Race](d, "races") {
			for _, r := range race.Refusals {
				got = append(got, strings.ReplaceAll(r.Stream, started.Run.ID, "run")+" "+r.Action+" "+string(r.Code))
			}
		}
		const want = "$run/run resume INVALID_TRANSITION, $run/run start KEY_MISMATCH, $batch/b create CONFLICT, $scope/k/x patch CONCURRENCY_ERROR, s append CONCURRENCY_ERROR"
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	})
}

// TestLostChangesAreRecorded verifies that these are recorded too: changes of a scope that are refused before they are written,
// repeated decisions and cancels, and late holders of each kind of task.
func TestLostChangesAreRecorded(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "scopes/k/x", `{"a":1}`, nil), 200, "")
		d.want(d.ask("PUT", "scopes/k/x", `{"a":2}`, nil, "If-Match", `"7"`), 412, fault.PreconditionFailed)
		d.want(d.ask("PUT", "scopes/k/x", `{"a":2}`, nil, "If-None-Match", "*"), 412, fault.PreconditionFailed)
		d.want(d.ask("DELETE", "scopes/k/x", nil, nil, "If-Match", `"7"`), 412, fault.PreconditionFailed)
		d.want(d.ask("DELETE", "scopes/k/none", nil, nil, "If-Match", `"7"`), 412, fault.PreconditionFailed)
		d.define(`{"name":"ask","version":"1","steps":[{"name":"ok","type":"approval","prompt":"?"}]}`)
		asked := d.start("ask@1", `{}`).ID
		approval := "approvals/" + all[wire.Approval](d, "approvals")[0].ID + "/decide"
		d.want(d.ask("POST", approval, wire.Decide{Decision: "approved"}, nil), 200, "")
		d.want(d.ask("POST", approval, wire.Decide{Decision: "rejected"}, nil), 409, fault.Conflict)

		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		d.worker("Pay", "idempotent")
		d.define(oneTask("pay", "Pay"))
		paid := d.start("pay@1", `{}`).ID
		d.worker("Print", "idempotent")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Print", Items: newItems(10, "a")}, nil), 201, "")
		d.worker("Mail", "idempotent")
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"paid"}, Handler: "Mail"}, nil), 201, "")
		d.want(d.ask("POST", "streams/o1/events", `{"events":[{"name":"paid"}]}`, nil), 201, "")
		var late []wire.Task
		for _, handler := range []string{"Do", "Pay", "Print", "Mail"} {
			late = append(late, d.one(handler))
		}
		d.advance(10 * time.Minute)
		d.want(d.ask("POST", "maintenance", nil, nil), 200, "")
		for _, x := range late {
			d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 409, fault.LeaseLost)
		}
		d.want(d.ask("GET", "races", nil, nil), 200, "") // those of late holders get their versions when they are written
		d.want(d.ask("POST", "workflow-runs/"+paid+"/cancel", nil, nil), 200, "")
		d.want(d.ask("POST", "workflow-runs/"+paid+"/retry", nil, nil), 409, fault.InvalidTransition)

		var got []string
		for _, race := range all[wire.Race](d, "races") {
			for _, r := range race.Refusals {
				stream := strings.NewReplacer(asked, "asked", paid, "paid").Replace(r.Stream)
				got = append(got, strings.TrimSpace(fmt.Sprint(stream, " ", r.Action, " ", r.Code, " ", r.Version)))
				if r.Actor == "" || r.Node == "" || r.RequestID == "" || r.At == nil || (r.Code == fault.LeaseLost) != (r.Epoch > 0) {
					t.Errorf("a refusal lacks something: %+v", r)
				}
			}
		}
		slices.Sort(got)
		const want = "$batch/b settle LEASE_LOST 2, $entity/job/j settle LEASE_LOST 3, $reaction/mail/o1 acknowledge LEASE_LOST -1, $run/asked decide CONFLICT 3, " +
			"$run/paid retry INVALID_TRANSITION 4, $run/paid settle LEASE_LOST 2, $scope/k/none delete CONCURRENCY_ERROR -1, $scope/k/x delete CONCURRENCY_ERROR 0, " +
			"$scope/k/x put CONCURRENCY_ERROR 0, $scope/k/x put CONCURRENCY_ERROR 0"
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	})
}

// TestALongListOfRefusalsIsWhole verifies that races and a timeline leave nothing out if a page ends by its size.
func TestALongListOfRefusalsIsWhole(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const tries = 900
		d.ask("POST", "streams/s/events", `{"events":[{"name":"a"}]}`, nil)
		for i := range tries {
			if i == tries/2 {
				d.ask("POST", "streams/s/events", `{"events":[{"name":"b"}]}`, nil)
			}
			_, err := stream.Append(t.Context(), d.engine, "s", stream.None, stream.Event{Name: "c", Actor: strings.Repeat("x", 200)})
			testkit.WantCode(t, err, fault.Concurrency, "exists")
		}
		refused := int64(0)
		for _, r := range all[wire.Race](d, "races?limit=1000") {
			refused += r.Refused
		}
		if refused != tries {
			t.Errorf("races have %d refusals, want %d", refused, tries)
		}
		events, listed := 0, 0
		for _, e := range all[wire.TimelineEntry](d, "timeline?limit=1000&stream=s") {
			if e.Event != nil {
				events++
			} else {
				listed++
			}
		}
		if events != 2 || listed != tries {
			t.Errorf("the timeline has %d events and %d refusals, want 2 and %d", events, listed, tries)
		}
	})
}

// TestTheOriginOfAnEntitysEvents verifies that the history of an entity has the correlation and the actor of its events.
func TestTheOriginOfAnEntitysEvents(t *testing.T) {
	jobs := lifecycle.MustParse[struct{}]([]byte(`{"workflow": "job", "owning_module": "m", "status_types": ["a", "b"], "initial_status": "a",
		"steps": [{"step_id": 1, "step_key": "go", "status": "a", "successful_state": "b"}]}`))
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		if _, err := jobs.Create(t.Context(), d.engine, "j", struct{}{}); err != nil {
			t.Fatal(err)
		}
		if _, err := jobs.Fire(t.Context(), d.engine, "j", "go", "admin", lifecycle.Correlation("c-1"), lifecycle.By("ann")); err != nil {
			t.Fatal(err)
		}
		var l wire.List[wire.Event]
		d.want(d.ask("GET", "lifecycles/job/entities/j/history", nil, &l), 200, "")
		if e := l.Items[len(l.Items)-1]; e.Correlation != "c-1" || e.Actor != "ann" || e.Stream != "$entity/job/j" {
			t.Errorf("got %+v, want correlation c-1 and actor ann", e)
		}
	}, jobs)
}
