package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/wire"
)

const chaseJSON = `{"name":"chase","version":"1","steps":[
  {"name":"remind","type":"task","handler":"Mail","retry":{"maxAttempts":2,"backoffMs":1}},
  {"name":"enough","type":"condition","if":"state.n >= 2","then":"end","else":"remind"}]}`

const chaseYAML = `
name: chase
version: 1
steps:
  - {name: remind, type: task, handler: Mail, retry: {maxAttempts: 2, backoffMs: 1}}
  - {name: enough, type: condition, if: state.n >= 2, then: end, else: remind}
`

// oneTask is a definition with one step for a handler.
func oneTask(name, handler string) string {
	return fmt.Sprintf(`{"name":%q,"version":"1","steps":[{"name":"do","type":"task","handler":%q,"retry":{"maxAttempts":3,"backoffMs":1}}]}`, name, handler)
}

func (d *testAPI) run(id string) (r wire.Run) {
	d.t.Helper()
	d.want(d.ask("GET", "workflow-runs/"+id, nil, &r), 200, "")
	return r
}

// start starts a run.
func (d *testAPI) start(definition, input string) wire.Run {
	d.t.Helper()
	var s wire.StartedRun
	d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: definition, Input: json.RawMessage(input)}, &s), 201, "")
	return s.Run
}

func (d *testAPI) steps(id string) []wire.RunStep {
	d.t.Helper()
	var l wire.List[wire.RunStep]
	d.want(d.ask("GET", "workflow-runs/"+id+"/steps", nil, &l), 200, "")
	return l.Items
}

// runIs waits until a run satisfies so.
func (d *testAPI) runIs(id, what string, so func(wire.Run) bool) (r wire.Run) {
	d.t.Helper()
	for begun := clock.Now(); clock.Since(begun) < time.Minute; _ = clock.Wait(d.t.Context(), 10*time.Millisecond) {
		if r = d.run(id); so(r) {
			return r
		}
	}
	d.t.Fatalf("run did not become %s: %+v %+v", what, r, d.steps(id))
	return r
}

func (d *testAPI) runEnds(id, status string) wire.Run {
	d.t.Helper()
	return d.runIs(id, status, func(r wire.Run) bool { return r.Status == status })
}

// TestDefinitionsOfRuns verifies that there is one definition per name and version, however it is
// written; that all violations are reported at once; and that a dry run stores nothing.
func TestDefinitionsOfRuns(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		p := d.want(d.ask("POST", "workflow-definitions", `{"name":"chase","version":"1","steps":[
			{"name":"a","type":"task","handler":"Nobody","next":"gone"},{"name":"b","type":"transition","lifecycle":"none","entity":"x","stepKey":"s","requester":"admin"}]}`, nil), 422, fault.Validation)
		var rules []string
		for _, v := range p.Violations {
			rules = append(rules, v.Rule)
		}
		if !slices.Contains(rules, "D5") || !slices.Contains(rules, "D2") || !slices.Contains(rules, "D8") {
			t.Errorf("got rules %q, want D2, D5 and D8", rules)
		}
		d.want(d.ask("POST", "workflow-definitions", `{"name":`, nil), 400, fault.Validation)
		d.want(d.ask("POST", "workflow-definitions", `name: chase`, nil), 400, fault.Validation) // declared as JSON
		d.want(d.ask("POST", "workflow-definitions", nil, nil), 400, fault.Validation)
		d.want(d.ask("PUT", "handlers/Mail", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
		var made wire.DefinedWorkflow
		d.want(d.ask("POST", "workflow-definitions?dryRun=true", chaseJSON, &made), 200, "")
		if made.ID != "chase@1" || made.CreatedAt != nil || len(made.Steps) != 2 {
			t.Errorf("validated %+v", made)
		}
		d.want(d.ask("GET", "workflow-definitions/chase@1", nil, nil), 404, fault.NotFound)
		resp := d.ask("POST", "workflow-definitions", chaseJSON, &made)
		d.want(resp, 201, "")
		if made.ID != "chase@1" || made.Name != "chase" || made.Version != "1" || made.CreatedAt == nil || made.Warnings == nil || resp.Header.Get("Location") != "/api/v1/workflow-definitions/chase@1" {
			t.Errorf("created %+v, Location %s", made, resp.Header.Get("Location"))
		}
		var again wire.DefinedWorkflow
		d.want(d.ask("POST", "workflow-definitions", chaseJSON, &again), 200, "")
		for _, kind := range []string{"application/yaml", "text/yaml"} {
			r, err := http.NewRequest("POST", d.url+"/api/v1/workflow-definitions", strings.NewReader(chaseYAML))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", kind)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			d.want(resp, 200, "")
		}
		d.want(d.ask("POST", "workflow-definitions", strings.Replace(chaseJSON, ">= 2", ">= 3", 1), nil), 409, fault.Conflict)
		d.want(d.ask("POST", "workflow-definitions", strings.Replace(chaseJSON, `"1"`, `"2"`, 1), nil), 201, "")
		var all wire.List[wire.Definition]
		d.want(d.ask("GET", "workflow-definitions?limit=1", nil, &all), 200, "")
		if len(all.Items) != 1 || all.Next == nil || all.Items[0].ID != "chase@1" {
			t.Fatalf("listed %+v, want chase@1 and a next page", all)
		}
		d.want(d.ask("GET", "workflow-definitions?cursor="+*all.Next, nil, &all), 200, "")
		if len(all.Items) != 1 || all.Items[0].ID != "chase@2" {
			t.Errorf("second page is %+v, want chase@2", all)
		}
		d.want(d.ask("GET", "workflow-definitions/chase@1", nil, nil, "X-Holdfast-Workspace", "other"), 404, fault.NotFound)
	})
}

// TestARunIsDoneByWorkersElsewhere verifies that workers over HTTP run the steps of a run, each
// once; that they get its state; that a repetition gets the same response, and a holder with an
// expired lease is refused; and that a failed run can be retried.
func TestARunIsDoneByWorkersElsewhere(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		testkit.Run(t, d.engine)
		d.want(d.ask("PUT", "handlers/Mail", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", chaseJSON, nil), 201, "")
		key, long := "k", strings.Repeat("x", 256)
		in := wire.StartRun{DefinitionID: "chase@1", Input: json.RawMessage(`{"order":9007199254740993}`), IdempotencyKey: &key}
		for _, bad := range []string{`{"definitionId":"chase@1","input":[]}`, `{"definitionId":"chase@1","input":null}`, `{"definitionId":"chase@1","idempotencyKey":""}`,
			`{"definitionId":"chase@1","idempotencyKey":"` + long + `"}`, `{"definitionId":""}`, `{"definitionId":"chase@1","other":1}`} {
			d.want(d.ask("POST", "workflow-runs", bad, nil), 400, fault.Validation)
		}
		d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "chase@9"}, nil), 404, fault.NotFound)
		var s wire.StartedRun
		resp := d.ask("POST", "workflow-runs", in, &s)
		d.want(resp, 201, "")
		r := s.Run
		if !s.Created || r.ID == "" || r.WorkspaceID != "default" || r.DefinitionID != "chase@1" || *r.IdempotencyKey != "k" || r.CreatedAt == nil || r.FinishedAt != nil ||
			*r.CurrentStepName != "remind" || string(r.Output) != "null" || r.Error != nil || !strings.Contains(string(r.Input), "9007199254740993") ||
			resp.Header.Get("Location") != "/api/v1/workflow-runs/"+r.ID {
			t.Fatalf("started %+v", s)
		}
		d.want(d.ask("POST", "workflow-runs", in, &s), 200, "")
		if s.Created || s.Run.ID != r.ID {
			t.Errorf("second start returned %+v, want the existing run", s)
		}
		other := in
		other.Input = json.RawMessage(`{"order":9007199254740992}`)
		p := d.want(d.ask("POST", "workflow-runs", other, nil), 422, fault.KeyMismatch)
		if text := fmt.Sprint(p.Fields["differs"]); text != "[input]" {
			t.Errorf("got differs %s, want [input]", text)
		}
		d.want(d.ask("POST", "workflow-runs", in, &s, "X-Holdfast-Workspace", "other"), 404, fault.NotFound)

		x := d.one("Mail")
		if x.Kind != "runStep" || x.Attempt != 1 || x.IdempotencyKey != r.ID+"/remind/1" || x.Context.Run != r.ID || x.Context.Step != "remind" || x.Context.Visit != 1 ||
			string(x.Context.State) != "{}" || !strings.Contains(string(x.Context.Input), "9007199254740993") || !strings.Contains(string(x.Input), "9007199254740993") {
			t.Fatalf("claimed %+v", x)
		}
		var renewed wire.Renewed
		d.want(d.ask("POST", "tasks/"+x.ID+"/renew", wire.Renew{Epoch: x.Epoch, LeaseMs: 90_000}, &renewed), 200, "")
		if renewed.CancelRequested || !renewed.Until.After(x.Until.Time) {
			t.Errorf("renewed %+v", renewed)
		}
		d.want(d.ask("POST", "tasks/"+x.ID+"/renew", wire.Renew{Epoch: x.Epoch + 1}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "tasks/"+x.ID+"/complete", `{"epoch":1,"state":[]}`, nil), 400, fault.Validation)
		d.want(d.ask("POST", "tasks/stp_none/complete", wire.CompleteTask{Epoch: 1}, nil), 404, fault.NotFound)
		done := wire.CompleteTask{Epoch: x.Epoch, Output: json.RawMessage(`{"sent":1}`), State: json.RawMessage(`{"n":1}`)}
		var ended wire.EndedTask
		for range 2 {
			d.want(d.ask("POST", "tasks/"+x.ID+"/complete", done, &ended), 200, "")
			if ended != (wire.EndedTask{Status: "COMPLETED"}) {
				t.Errorf("got %+v, want COMPLETED", ended)
			}
		}
		d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch, Output: json.RawMessage(`2`)}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no"}, nil), 409, fault.LeaseLost)

		// The second visit fails twice, and with it the run.
		x = d.one("Mail")
		if x.Context.Visit != 2 || x.IdempotencyKey != r.ID+"/remind/2" || string(x.Context.State) == "{}" {
			t.Fatalf("claimed %+v", x)
		}
		d.want(d.ask("POST", "tasks/"+x.ID+"/fail", `{"epoch":1,"message":""}`, nil), 400, fault.Validation)
		d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no mail"}, &ended), 200, "")
		if ended.Status != "WAITING" {
			t.Errorf("got %+v, want WAITING", ended)
		}
		again := d.one("Mail")
		if again.Epoch != x.Epoch+1 || again.Attempt != 2 || again.IdempotencyKey != x.IdempotencyKey {
			t.Fatalf("claimed %+v", again)
		}
		d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 409, fault.LeaseLost)
		for range 2 {
			d.want(d.ask("POST", "tasks/"+again.ID+"/fail", wire.FailTask{Epoch: again.Epoch, Message: "no mail"}, &ended), 200, "")
			if ended.Status != "FAILED" {
				t.Errorf("got %+v, want FAILED", ended)
			}
		}
		r = d.run(r.ID)
		if r.Status != "FAILED" || !strings.Contains(*r.Error, "no mail") || r.FinishedAt == nil || *r.CurrentStepName != "remind" {
			t.Fatalf("got run %+v, want FAILED with \"no mail\"", r)
		}
		before, _ := d.eventsOf("workflow-runs/"+r.ID, "") // it has ended
		if before[0] != "created" || before[len(before)-1] != "failed" {
			t.Errorf("got events %q, want created to failed", before)
		}
		d.want(d.ask("POST", "workflow-runs/"+r.ID+"/pause", nil, nil), 409, fault.InvalidTransition)
		old := r.Version - 1
		d.want(d.ask("POST", "workflow-runs/"+r.ID+"/retry", wire.Command{ExpectedVersion: &old}, nil), 409, fault.Concurrency)
		d.want(d.ask("POST", "workflow-runs/"+r.ID+"/retry", wire.Command{ExpectedVersion: &r.Version}, &r), 200, "")
		if r.Status != "RUNNING" || r.FinishedAt != nil || r.Error != nil {
			t.Errorf("got run %+v after retry, want RUNNING", r)
		}
		x = d.one("Mail")
		d.want(d.ask("POST", "workflow-runs/"+r.ID+"/pause", nil, &r), 200, "")
		d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch, Output: json.RawMessage(`{"sent":2}`), State: json.RawMessage(`{"n":2}`)}, nil), 200, "")
		if r = d.run(r.ID); r.Status != "PAUSED" {
			t.Errorf("got run %+v after pause, want PAUSED", r)
		}
		d.want(d.ask("POST", "workflow-runs/"+r.ID+"/resume", nil, &r), 200, "")
		r = d.runEnds(r.ID, "COMPLETED")
		if got := strings.ReplaceAll(string(r.Output), " ", ""); got != `{"sent":2}` || r.CurrentStepName != nil {
			t.Errorf("got run %+v with output %s", r, got)
		}
		names, ids := d.eventsOf("workflow-runs/"+r.ID, "")
		if !slices.Equal(names[:len(before)], before) || names[len(names)-1] != "completed" || !slices.Contains(names, "retried") { // it goes on behind "failed"
			t.Errorf("got events %q", names)
		}
		if rest, _ := d.eventsOf("workflow-runs/"+r.ID, ids[len(ids)-3]); !slices.Equal(rest, names[len(names)-2:]) {
			t.Errorf("got events %q after the third-last id, want the last two", rest)
		}
		if rest, _ := d.eventsOf("workflow-runs/"+r.ID, ids[len(ids)-1]); len(rest) != 0 {
			t.Errorf("got events %q after the last id, want none", rest)
		}
		var page wire.List[wire.Event]
		d.want(d.ask("GET", "workflow-runs/"+r.ID+"/events?limit=2", nil, &page), 200, "")
		if len(page.Items) != 2 || page.Next == nil || page.Items[0].Name != "created" || page.Items[0].Stream != "$run/"+r.ID {
			t.Errorf("got page %+v", page)
		}
		all := d.steps(r.ID)
		if len(all) != 4 || all[0].Name != "remind" || all[0].Visit != 1 || all[0].Status != "COMPLETED" || all[0].Attempts != 1 || all[1].Type != "condition" || all[2].Visit != 2 ||
			all[2].Attempts != 3 || all[2].Holder != nil || all[3].FinishedAt == nil {
			t.Errorf("got steps %+v", all)
		}
		var some wire.List[wire.RunStep]
		d.want(d.ask("GET", "workflow-runs/"+r.ID+"/steps?limit=3", nil, &some), 200, "")
		d.want(d.ask("GET", "workflow-runs/"+r.ID+"/steps?cursor="+*some.Next, nil, &some), 200, "")
		if len(some.Items) != 1 || some.Items[0].Name != "enough" {
			t.Errorf("second page is %+v, want step enough", some)
		}
		second := d.start("chase@1", `{}`)
		var list wire.List[wire.Run]
		d.want(d.ask("GET", "workflow-runs?limit=1", nil, &list), 200, "")
		if len(list.Items) != 1 || list.Items[0].ID != second.ID || list.Next == nil {
			t.Fatalf("listed %+v, want run %s and a next page", list, second.ID)
		}
		d.want(d.ask("GET", "workflow-runs?cursor="+*list.Next, nil, &list), 200, "")
		if len(list.Items) != 1 || list.Items[0].ID != r.ID {
			t.Errorf("second page is %+v, want run %s", list, r.ID)
		}
		for query, want := range map[string]int{"status=COMPLETED": 1, "status=FAILED": 0, "definitionId=chase@1": 2, "definitionId=none@1": 0} {
			d.want(d.ask("GET", "workflow-runs?"+query, nil, &list), 200, "")
			if len(list.Items) != want {
				t.Errorf("%s: listed %+v, want %d", query, list, want)
			}
		}
		d.want(d.ask("GET", "workflow-runs?status=odd", nil, nil), 400, fault.Validation)

		// A run that is cancelled while a step is in flight ends with that step.
		x = d.one("Mail")
		d.want(d.ask("POST", "workflow-runs/"+second.ID+"/cancel", nil, &second), 202, "")
		if !second.CancelRequested || second.FinishedAt != nil {
			t.Errorf("got run %+v after cancel, want cancelRequested", second)
		}
		d.want(d.ask("POST", "workflow-runs/"+second.ID+"/cancel", `{}`, nil), 202, "")
		d.want(d.ask("POST", "tasks/"+x.ID+"/renew", wire.Renew{Epoch: x.Epoch}, &renewed), 200, "")
		if !renewed.CancelRequested {
			t.Errorf("renewed %+v, want cancelRequested", renewed)
		}
		d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 200, "")
		if names, _ := d.eventsOf("workflow-runs/"+second.ID, ""); names[len(names)-1] != "cancelled" {
			t.Errorf("got events %q, want cancelled last", names)
		}
		d.want(d.ask("POST", "workflow-runs/"+second.ID+"/signals", wire.Signal{Type: "t"}, nil), 409, fault.InvalidTransition)
		third := d.start("chase@1", `{}`)
		d.want(d.ask("POST", "workflow-runs/"+third.ID+"/cancel", nil, &third), 200, "")
		if third.Status != "CANCELLED" {
			t.Errorf("got run %+v after cancel, want CANCELLED", third)
		}
		if more := d.claim("Mail", 0); len(more) != 0 {
			t.Errorf("claimed %+v, want nothing", more)
		}
	})
}

const askJSON = `{"name":"ask","version":"1","steps":[
  {"name":"paid","type":"event","signal":"payment"},
  {"name":"may","type":"approval","prompt":"=\"Pay \" + string(steps.paid.output.cents) + \"?\"","requesters":["manager"],"timeoutMs":3600000}]}`

// TestSignalsAndApprovals verifies that a signal is stored and counts once; that an approval is
// decided once, by a key that may act for one of its requesters; and that signals cannot decide it.
func TestSignalsAndApprovals(t *testing.T) {
	eachTestAPI(t, httpapi.Options{}, func(t *testing.T, d *testAPI) {
		testkit.Run(t, d.engine)
		key := func(role keys.Role, requesters ...string) (*testAPI, string) {
			k, text, err := keys.Create(context.Background(), engine.Of(d.engine), keys.CreateArgs{Name: "k", Role: role, Requesters: requesters, By: "test"})
			if err != nil {
				t.Fatal(err)
			}
			return d.as(text), "key:" + k.ID
		}
		admin, _ := key(keys.Admin, "*")
		clerk, _ := key(keys.Operate, "clerk")
		boss, name := key(keys.Operate, "manager")
		reader, _ := key(keys.Read, "manager")
		admin.want(admin.ask("POST", "workflow-definitions", askJSON, nil), 201, "")
		clerk.want(clerk.ask("POST", "workflow-definitions", askJSON, nil), 403, fault.Forbidden)
		small, _ := key(keys.Admin, "clerk") // its runs would act for a requester that it may not act for
		small.want(small.ask("POST", "workflow-definitions", `{"name":"f","version":"1","steps":[{"name":"do","type":"transition","lifecycle":"l","entity":"e","stepKey":"s","requester":"manager"}]}`, nil), 403, fault.Forbidden)
		r := clerk.start("ask@1", `{}`)
		at := "workflow-runs/" + r.ID + "/signals"
		one, empty := "s1", ""
		clerk.want(clerk.ask("POST", at, wire.Signal{Type: "payment", ID: &empty}, nil), 400, fault.Validation)
		clerk.want(clerk.ask("POST", at, wire.Signal{}, nil), 400, fault.Validation)
		clerk.want(clerk.ask("POST", "workflow-runs/run_none/signals", wire.Signal{Type: "payment"}, nil), 404, fault.NotFound)
		// A signal that looks like a decision is none.
		for _, forged := range []string{"may", "approval", "approved", "$approval"} {
			var got wire.Signalled
			clerk.want(clerk.ask("POST", at, wire.Signal{Type: forged, Payload: json.RawMessage(`{"decision":"approved","by":"boss"}`)}, &got), 202, "")
			if got.ID == "" || !got.Fresh {
				t.Errorf("got signal %+v, want a fresh one with an id", got)
			}
		}
		paid := wire.Signal{Type: "payment", Payload: json.RawMessage(`{"cents":700}`), ID: &one}
		for _, fresh := range []bool{true, false} {
			var got wire.Signalled
			clerk.want(clerk.ask("POST", at, paid, &got), 202, "")
			if got.ID != "s1" || got.Fresh != fresh {
				t.Errorf("got signal %+v, want s1 with fresh %v", got, fresh)
			}
		}
		paid.Payload = json.RawMessage(`{"cents":7}`)
		clerk.want(clerk.ask("POST", at, paid, nil), 409, fault.Conflict)

		var all wire.List[wire.Approval]
		for begun := clock.Now(); len(all.Items) == 0 && clock.Since(begun) < time.Minute; _ = clock.Wait(t.Context(), 10*time.Millisecond) {
			clerk.want(clerk.ask("GET", "approvals?status=pending&runId="+r.ID, nil, &all), 200, "")
		}
		a := all.Items[0]
		if a.RunID != r.ID || a.Step != "may" || a.Prompt != "Pay 700?" || a.Status != "pending" || a.By != nil || a.DecidedAt != nil || !slices.Equal(a.Requesters, []string{"manager"}) ||
			a.ExpiresAt == nil || a.CreatedAt == nil {
			t.Errorf("got approval %+v", a)
		}
		yes := wire.Decide{Decision: "approved", By: "the boss", Content: json.RawMessage(`{"note":"ok"}`)}
		decide := "approvals/" + a.ID + "/decide"
		clerk.want(clerk.ask("POST", decide, yes, nil), 403, fault.Forbidden)
		reader.want(reader.ask("POST", decide, yes, nil), 403, fault.Forbidden)
		boss.want(boss.ask("POST", decide, wire.Decide{Decision: "maybe"}, nil), 400, fault.Validation)
		boss.want(boss.ask("POST", "approvals/apr_none/decide", yes, nil), 404, fault.NotFound)
		if now := clerk.run(r.ID); now.Status != "WAITING" {
			t.Fatalf("got run %+v, want WAITING", now)
		}
		boss.want(boss.ask("POST", decide, yes, &a), 200, "")
		if a.Status != "approved" || *a.By != name || *a.Label != "the boss" || a.DecidedAt == nil || !strings.Contains(string(a.Content), "note") {
			t.Errorf("got decision %+v", a)
		}
		boss.want(boss.ask("POST", decide, yes, nil), 409, fault.Conflict)
		boss.want(boss.ask("POST", decide, wire.Decide{Decision: "rejected"}, nil), 409, fault.Conflict)
		clerk.runEnds(r.ID, "COMPLETED")
		steps := clerk.steps(r.ID)
		if out := string(steps[len(steps)-1].Output); !strings.Contains(out, name) || !strings.Contains(out, "approved") {
			t.Errorf("got output %s, want an approval by %s", out, name)
		}
		reader.want(reader.ask("GET", "approvals/"+a.ID, nil, &a), 200, "")
		clerk.want(clerk.ask("GET", "approvals?status=odd", nil, nil), 400, fault.Validation)
		clerk.want(clerk.ask("GET", "approvals?status=approved", nil, &all), 200, "")
		if len(all.Items) != 1 {
			t.Errorf("listed approved %+v, want one", all)
		}

		// Of many concurrent decisions one counts.
		r = clerk.start("ask@1", `{}`)
		paid.Payload = json.RawMessage(`{"cents":1}`)
		clerk.want(clerk.ask("POST", "workflow-runs/"+r.ID+"/signals", paid, nil), 202, "")
		for all.Items = nil; len(all.Items) == 0; _ = clock.Wait(t.Context(), 10*time.Millisecond) {
			clerk.want(clerk.ask("GET", "approvals?status=pending", nil, &all), 200, "")
		}
		var mu sync.Mutex
		got := make(map[int]int)
		var racing sync.WaitGroup
		for i := range 8 {
			racing.Go(func() {
				resp := boss.ask("POST", "approvals/"+all.Items[0].ID+"/decide", wire.Decide{Decision: []string{"approved", "rejected"}[i%2]}, nil)
				mu.Lock()
				got[resp.StatusCode]++
				mu.Unlock()
			})
		}
		racing.Wait()
		if got[200] != 1 || got[409] != 7 {
			t.Errorf("got statuses %v, want one 200 and seven 409", got)
		}

		// An expired approval is no longer pending.
		r = clerk.start("ask@1", `{}`)
		clerk.want(clerk.ask("POST", "workflow-runs/"+r.ID+"/signals", paid, nil), 202, "")
		for all.Items = nil; len(all.Items) == 0; _ = clock.Wait(t.Context(), 10*time.Millisecond) {
			clerk.want(clerk.ask("GET", "approvals?status=pending&runId="+r.ID, nil, &all), 200, "")
		}
		late := all.Items[0].ID
		holdfasttest.Advance(t, d.engine, 2*time.Hour)
		boss.want(boss.ask("POST", "approvals/"+late+"/decide", yes, nil), 409, fault.Conflict)
		clerk.want(clerk.ask("GET", "approvals?status=pending", nil, &all), 200, "")
		if len(all.Items) != 0 {
			t.Errorf("listed pending %+v, want none", all)
		}
		clerk.runEnds(r.ID, "FAILED")
	})
}

// TestRunsUnderAKey verifies that every request about runs can be repeated under its key, also when
// handlers are declared on first use; and that on a server without keys the request names the
// decider.
func TestRunsUnderAKey(t *testing.T) {
	o := httpapi.Options{NoKeys: true, Declare: true}
	eachTestAPI(t, o, func(t *testing.T, d *testAPI) {
		testkit.Run(t, d.engine)
		d.want(d.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "lifecycles/job", jobConfig, nil), 201, "")
		twice := func(path string, body any, status int, into any) {
			t.Helper()
			text, _ := json.Marshal([]any{path, body})
			key := strings.Map(func(r rune) rune {
				if r < '0' || r > 'z' {
					return '-'
				}
				return r
			}, string(text))
			first := d.ask("POST", path, body, into, keyHeader, key[:min(len(key), 200)])
			d.want(first, status, "")
			second := d.ask("POST", path, body, nil, keyHeader, key[:min(len(key), 200)])
			d.want(second, status, "")
			if a, b := textOf(first), textOf(second); a != b || second.Header.Get(replayedHeader) != "true" || second.Header.Get("Location") != first.Header.Get("Location") {
				t.Errorf("%s: first call returned %s, second returned %s, want a replay", path, a, b)
			}
		}
		var made wire.DefinedWorkflow
		fires := `{"name":"fires","version":"1","steps":[{"name":"new","type":"task","handler":"fresh"},{"name":"do","type":"transition","lifecycle":"job","entity":"j","stepKey":"do","requester":"admin"}]}`
		twice("workflow-definitions", fires, 201, &made)
		if len(made.Warnings) == 0 || made.Warnings[0].Rule != "undeclared" {
			t.Errorf("got warnings %+v, want undeclared", made.Warnings)
		}
		d.want(d.ask("GET", "handlers/fresh", nil, nil), 200, "")
		d.want(d.ask("POST", "workflow-definitions", strings.Replace(fires, `"lifecycle":"job"`, `"lifecycle":"none"`, 1), nil, keyHeader, "other"), 422, fault.Validation)
		d.want(d.ask("POST", "workflow-definitions?dryRun=true", strings.NewReplacer("fresh", "dry", "fires", "tries").Replace(fires), &made), 200, "")
		if made.Warnings[0].Rule != "undeclared" {
			t.Errorf("got warnings %+v, want undeclared", made.Warnings)
		}
		d.want(d.ask("GET", "handlers/dry", nil, nil), 404, fault.NotFound)
		key := "k"
		var s wire.StartedRun
		twice("workflow-runs", wire.StartRun{DefinitionID: "fires@1", IdempotencyKey: &key}, 201, &s)
		if !s.Created {
			t.Errorf("started %+v, want a new run", s)
		}
		at := "workflow-runs/" + s.Run.ID
		x := d.one("fresh")
		twice(at+"/pause", nil, 200, nil)
		twice(at+"/resume", nil, 200, nil)
		twice(at+"/signals", wire.Signal{Type: "t"}, 202, nil)
		no := false
		twice("tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no", Retryable: &no}, 200, nil)
		twice(at+"/retry", nil, 200, nil)
		twice(at+"/cancel", nil, 200, nil)
		twice("workflow-definitions", askJSON, 201, nil)
		r := d.start("ask@1", `{}`)
		twice("workflow-runs/"+r.ID+"/signals", wire.Signal{Type: "payment", Payload: json.RawMessage(`{"cents":1}`)}, 202, nil)
		d.runIs(r.ID, "asking", func(r wire.Run) bool { return *r.CurrentStepName == "may" })
		var all wire.List[wire.Approval]
		d.want(d.ask("GET", "approvals?runId="+r.ID, nil, &all), 200, "")
		var a wire.Approval
		twice("approvals/"+all.Items[0].ID+"/decide", wire.Decide{Decision: "approved", By: "ann"}, 200, &a)
		if *a.By != "ann" || a.Label != nil {
			t.Errorf("got decision %+v, want it by ann without a label", a)
		}
		d.runEnds(r.ID, "COMPLETED")
	})
}

// uncertain waits for an uncertain operation.
func (d *testAPI) uncertain() wire.Operation {
	d.t.Helper()
	for begun := clock.Now(); clock.Since(begun) < time.Minute; _ = clock.Wait(d.t.Context(), 10*time.Millisecond) {
		var l wire.List[wire.Operation]
		d.want(d.ask("GET", "operations?state=uncertain", nil, &l), 200, "")
		if len(l.Items) > 0 {
			return l.Items[0]
		}
	}
	d.t.Fatal("no operation became uncertain")
	return wire.Operation{}
}

// TestAStepsEffects verifies that a worker journals the effects of a step; that a step that ends
// with an open effect, or finds one of an earlier attempt, is parked; and that a manual resolution
// ends that.
func TestAStepsEffects(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		r := d.start("pay@1", `{}`)
		x := d.one("Pay")
		effect := func(x wire.Task, b wire.EffectCall, status int, code fault.Code) (s wire.EffectState) {
			t.Helper()
			b.Epoch = x.Epoch
			d.want(d.ask("POST", "tasks/"+x.ID+"/effects", b, &s), status, code)
			return s
		}
		if s := effect(x, wire.EffectCall{Name: "card"}, 200, ""); s.State != "begun" || s.Key != r.ID+"/do/1/card/0" {
			t.Errorf("got effect %+v, want begun", s)
		}
		effect(x, wire.EffectCall{Name: "other", Result: json.RawMessage(`1`)}, 404, fault.NotFound)
		effect(x, wire.EffectCall{Name: "$body"}, 400, fault.Validation)
		for range 2 {
			if s := effect(x, wire.EffectCall{Name: "card", Result: json.RawMessage(`"A"`)}, 200, ""); s.State != "done" {
				t.Errorf("got effect %+v, want done", s)
			}
		}
		effect(x, wire.EffectCall{Name: "card", Result: json.RawMessage(`"B"`)}, 409, fault.Conflict)
		effect(x, wire.EffectCall{Name: "card", NotDone: true}, 409, fault.Conflict)
		effect(x, wire.EffectCall{Name: "mail"}, 200, "")
		// The worker crashes, and the next one finds the open effect.
		holdfasttest.Advance(t, d.engine, 10*time.Minute)
		engine.Of(d.engine).Round(t.Context())
		effect(x, wire.EffectCall{Name: "card"}, 409, fault.LeaseLost)
		holdfasttest.Advance(t, d.engine, 10*time.Minute)
		x = d.one("Pay")
		if s := effect(x, wire.EffectCall{Name: "card"}, 200, ""); s.State != "done" || string(s.Result) != `"A"` {
			t.Errorf("got effect %+v, want done with \"A\"", s)
		}
		effect(x, wire.EffectCall{Name: "mail"}, 409, fault.Conflict)
		d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 409, fault.LeaseLost)
		o := d.uncertain()
		if o.Kind != "runStep" || o.Subject != "run "+r.ID+" step do" || o.Handler != "Pay" || o.State != "uncertain" || len(o.Effects) != 2 || o.Since == nil || strings.Contains(o.ID, "/") {
			t.Errorf("got operation %+v", o)
		}
		if s := d.steps(r.ID)[0]; !s.Uncertain || s.Status != "RUNNING" {
			t.Errorf("got step %+v, want RUNNING and uncertain", s)
		}
		var done wire.Resolved
		d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Outcome: "failure"}, nil), 409, fault.Conflict)
		d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{}, &done), 200, "")
		if done.Operation == nil || done.Operation.State != "uncertain" {
			t.Errorf("resolve of nothing returned %+v, want an uncertain operation", done)
		}
		d.want(d.ask("POST", "operations/opr_none/resolve", wire.Resolve{}, nil), 404, fault.NotFound)
		d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{}, nil, "X-Holdfast-Workspace", "other"), 404, fault.NotFound)
		// The operation's id, as workers know it, is one part of the path as well.
		id := url.PathEscape(r.ID + "/do/1")
		d.want(d.ask("POST", "operations/"+id+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "mail", Happened: new(true), Result: json.RawMessage(`2`)}}}, &done), 200, "")
		if done.Operation == nil || done.Operation.State != "due" {
			t.Errorf("resolve returned %+v, want a due operation", done)
		}
		d.want(d.ask("POST", "operations/"+id+"/resolve", wire.Resolve{}, nil), 409, fault.Conflict)
		x = d.one("Pay")
		if s := effect(x, wire.EffectCall{Name: "mail"}, 200, ""); s.State != "done" || string(s.Result) != "2" {
			t.Errorf("got effect %+v, want done with 2", s)
		}
		effect(x, wire.EffectCall{Name: "last"}, 200, "")
		for range 2 { // it cannot complete while an effect is open
			d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 422, fault.ActionFailed)
		}
		o = d.uncertain()
		d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "last", Happened: new(false)}}, Outcome: "success"}, &done), 200, "")
		if done.Operation != nil {
			t.Errorf("resolve returned %+v, want no operation", done)
		}
		d.runEnds(r.ID, "COMPLETED")
	})
}

// TestAnOpaqueStepIsProbed verifies that an opaque step whose worker crashed is probed, if its
// policy allows; that the result counts; and that the failure of a later attempt says nothing about
// an earlier one.
func TestAnOpaqueStepIsProbed(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Act", wire.PutHandler{Kind: "worker", Safety: "opaque", OnUnknown: "probe"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("act", "Act"), nil), 201, "")
		r := d.start("act@1", `{}`)
		dies := func() {
			t.Helper()
			holdfasttest.Advance(t, d.engine, 10*time.Minute)
			engine.Of(d.engine).Round(t.Context())
			holdfasttest.Advance(t, d.engine, 10*time.Minute)
		}
		if x := d.one("Act"); x.Kind != "runStep" {
			t.Fatalf("claimed %+v, want a runStep", x)
		}
		dies()
		x := d.one("Act")
		if x.Kind != "probe" || x.IdempotencyKey != r.ID+"/do/1" {
			t.Fatalf("claimed %+v, want a probe", x)
		}
		end := func(x wire.Task, output string, status int, code fault.Code) (e wire.EndedTask) {
			t.Helper()
			d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch, Output: json.RawMessage(output)}, &e), status, code)
			return e
		}
		end(x, `{}`, 400, fault.Validation)
		d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "cannot say"}, nil), 200, "")
		holdfasttest.Advance(t, d.engine, time.Minute)
		if x = d.one("Act"); x.Kind != "probe" { // a failed probe says nothing
			t.Fatalf("claimed %+v, want a probe", x)
		}
		first := end(x, `{"happened":false}`, 200, "")
		if again := end(x, `{"happened":false}`, 200, ""); again != first {
			t.Errorf("first call returned %+v, second returned %+v", first, again)
		}
		end(x, `{"happened":true}`, 409, fault.LeaseLost)
		if x = d.one("Act"); x.Kind != "runStep" {
			t.Fatalf("claimed %+v, want a runStep", x)
		}
		dies()
		if x = d.one("Act"); x.Kind != "probe" {
			t.Fatalf("claimed %+v, want a probe", x)
		}
		for range 2 {
			if e := end(x, `{"happened":true,"result":{"ref":7}}`, 200, ""); e.Status != "COMPLETED" {
				t.Errorf("got %+v, want COMPLETED", e)
			}
		}
		if r = d.run(r.ID); r.Status != "COMPLETED" || !strings.Contains(string(r.Output), "7") {
			t.Errorf("got run %+v, want COMPLETED with 7", r)
		}

		// Without a probe the step is parked; if the handler honours the key, the result of a later
		// attempt says nothing about the first.
		for policy, want := range map[string]string{"hold": "UNCERTAIN", "retry": "UNCERTAIN"} {
			d.want(d.ask("PUT", "handlers/"+policy, wire.PutHandler{Kind: "worker", Safety: "opaque", OnUnknown: policy}, nil), 201, "")
			d.want(d.ask("POST", "workflow-definitions", oneTask(policy, policy), nil), 201, "")
			r := d.start(policy+"@1", `{}`)
			d.one(policy)
			dies()
			if policy == "retry" {
				x := d.one(policy)
				if x.Kind != "runStep" || x.Attempt != 2 {
					t.Fatalf("claimed %+v, want attempt 2 of a runStep", x)
				}
				no := false
				for range 2 {
					var e wire.EndedTask
					d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no", Retryable: &no}, &e), 200, "")
					if e.Status != want {
						t.Errorf("got %+v, want %s", e, want)
					}
				}
			}
			o := d.uncertain()
			var done wire.Resolved
			d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "$body", Happened: new(true), Result: json.RawMessage(`{"ref":8}`)}}}, &done), 200, "")
			if r = d.run(r.ID); r.Status != "COMPLETED" || done.Operation != nil || !strings.Contains(string(r.Output), "8") {
				t.Errorf("%s: got run %+v, want COMPLETED with 8", policy, r)
			}
		}
	})
}

// TestOperationsOfBothKinds verifies that operations of steps are listed after those of entities,
// page by page, each once.
func TestOperationsOfBothKinds(t *testing.T) {
	b := new(bank)
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Act", wire.PutHandler{Kind: "worker", Safety: "opaque"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("act", "Act"), nil), 201, "")
		var want []string
		for i := range 3 {
			id := fmt.Sprint("p", i)
			var fired wire.Fired
			d.want(d.ask("POST", "lifecycles/payment/entities", wire.NewEntity{ID: new(id)}, nil), 201, "")
			d.want(d.ask("POST", "lifecycles/payment/entities/"+id+"/steps/pay", wire.Fire{Requester: "any", Input: []byte(`"unknown"`)}, &fired), 202, "")
			want = append(want, "payment/"+id)
			d.start("act@1", `{}`)
			d.one("Act")
		}
		holdfasttest.Advance(t, d.engine, 10*time.Minute)
		engine.Of(d.engine).Round(t.Context())
		for limit := 1; limit <= 7; limit++ {
			var seen []string
			kinds := ""
			for next := ""; ; {
				var l wire.List[wire.Operation]
				d.want(d.ask("GET", fmt.Sprintf("operations?state=uncertain&limit=%d%s", limit, next), nil, &l), 200, "")
				for _, o := range l.Items {
					seen, kinds = append(seen, o.Subject), kinds+o.Kind[:1]
				}
				if l.Next == nil {
					break
				}
				next = "&cursor=" + *l.Next
			}
			if len(seen) != 6 || kinds != "aaarrr" || len(slices.Compact(slices.Sorted(slices.Values(seen)))) != 6 {
				t.Errorf("limit %d: got %q", limit, seen)
			}
			for _, subject := range want {
				if !slices.Contains(seen, subject) {
					t.Errorf("%s is not among %q", subject, seen)
				}
			}
		}
		var l wire.List[wire.Operation]
		d.want(d.ask("GET", "operations?state=held", nil, &l), 200, "")
		if len(l.Items) != 0 {
			t.Errorf("listed held operations %+v, want none", l)
		}
		var claims wire.List[wire.HeldClaim]
		d.want(d.ask("GET", "claims", nil, &claims), 200, "")
		if len(claims.Items) != 3 {
			t.Errorf("listed claims %+v, want 3", claims)
		}
	}, b.payments())
}

// TestARunIsDoneByAURL verifies the results of a URL's responses for steps of runs, in each
// workspace as it is declared there.
func TestARunIsDoneByAURL(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		testkit.Run(t, d.engine)
		far := &remote{status: 200, body: `{"output":{"ref":1},"state":{"n":1}}`, heard: make(chan struct{}, 100)}
		srv := httptest.NewServer(far)
		t.Cleanup(srv.Close)
		var made wire.Handler
		d.want(d.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "http", URL: srv.URL, Safety: "idempotent"}, &made), 201, "")
		far.secret = made.Secret
		d.want(d.ask("POST", "workflow-definitions", oneTask("w", "Do"), nil), 201, "")
		r := d.start("w@1", `{"a":9007199254740993}`)
		c := far.next(t)
		if c.Kind != "runStep" || c.Run != r.ID || c.Step != "do" || c.Visit != 1 || c.IdempotencyKey != r.ID+"/do/1" || c.Attempt != 1 || !strings.Contains(string(c.Input), "9007199254740993") || c.Task != "" {
			t.Errorf("got call %+v", c)
		}
		r = d.runEnds(r.ID, "COMPLETED")
		if !strings.Contains(string(r.Output), `"ref"`) || !strings.Contains(string(r.State), `"n"`) {
			t.Errorf("got run %+v", r)
		}
		far.say(422, `{"message":"not this one"}`)
		r = d.start("w@1", `{}`)
		far.next(t)
		if r = d.runEnds(r.ID, "FAILED"); !strings.Contains(*r.Error, "not this one") {
			t.Errorf("got run %+v, want error \"not this one\"", r)
		}
		far.say(503, ``)
		far.then(200, `{}`)
		r = d.start("w@1", `{}`)
		far.next(t)
		if c := far.next(t); c.Attempt != 2 {
			t.Errorf("got call %+v, want attempt 2", c)
		}
		d.runEnds(r.ID, "COMPLETED")

		// In another workspace it is opaque: a missing response leaves the outcome unknown there.
		there := *d
		there.header = http.Header{"X-Holdfast-Workspace": {"other"}}
		there.want(there.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "http", URL: srv.URL, Safety: "opaque", Secret: made.Secret}, nil), 201, "")
		there.want(there.ask("POST", "workflow-definitions", oneTask("w", "Do"), nil), 201, "")
		far.say(0, "")
		r = there.start("w@1", `{}`)
		far.next(t)
		o := there.uncertain()
		there.want(there.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "$body", Happened: new(false)}}}, nil), 200, "")
		far.next(t)
		o = there.uncertain() // broken off again
		far.say(200, `{"state":[]}`)
		there.want(there.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "$body", Happened: new(false)}}}, nil), 200, "")
		far.next(t)
		o = there.uncertain() // it has acted, whatever the response is
		far.say(400, `{"message":"no"}`)
		there.want(there.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "$body", Happened: new(false)}}}, nil), 200, "")
		far.next(t)
		there.runEnds(r.ID, "FAILED") // a refusal is an answer

		// With the policy probe, it is probed.
		there.want(there.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "http", URL: srv.URL, Safety: "opaque", OnUnknown: "probe", Secret: made.Secret}, nil), 200, "")
		far.say(0, "")
		far.then(200, `{"happened":true,"output":{"ref":9}}`)
		r = there.start("w@1", `{}`)
		if c := far.next(t); c.Kind != "runStep" {
			t.Errorf("got call %+v, want a runStep", c)
		}
		if c := far.next(t); c.Kind != "probe" || c.IdempotencyKey != r.ID+"/do/1" {
			t.Errorf("got call %+v, want a probe", c)
		}
		if r = there.runEnds(r.ID, "COMPLETED"); !strings.Contains(string(r.Output), "9") {
			t.Errorf("got run %+v, want output 9", r)
		}

		// With the policy retry, it is called again; the result says nothing about the earlier
		// call.
		there.want(there.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "http", URL: srv.URL, Safety: "opaque", OnUnknown: "retry", Secret: made.Secret}, nil), 200, "")
		far.say(0, "")
		far.then(400, `{"message":"no"}`)
		r = there.start("w@1", `{}`)
		far.next(t)
		if c := far.next(t); c.Kind != "runStep" || c.Attempt != 2 {
			t.Errorf("got call %+v, want attempt 2 of a runStep", c)
		}
		there.uncertain()
		if r = there.run(r.ID); r.Status != "RUNNING" {
			t.Errorf("got run %+v, want RUNNING", r)
		}
		far.mu.Lock()
		defer far.mu.Unlock()
		if far.wrong != nil {
			t.Error(far.wrong)
		}
	})
}

// TestAJournaledURL verifies that a journaling URL gets the id of its journal, and cannot complete
// while an effect is open.
func TestAJournaledURL(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		testkit.Run(t, d.engine)
		var journal sync.Map
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			var c wire.HandlerCall
			_ = json.NewDecoder(q.Body).Decode(&c)
			d.ask("POST", "tasks/"+c.Task+"/effects", wire.EffectCall{Epoch: c.Epoch, Name: "card"}, nil)
			if _, closed := journal.LoadOrStore("closed", true); closed {
				d.ask("POST", "tasks/"+c.Task+"/effects", wire.EffectCall{Epoch: c.Epoch, Name: "card", Result: json.RawMessage("1")}, nil)
			}
			fmt.Fprint(w, `{"output":1}`)
		}))
		t.Cleanup(srv.Close)
		d.want(d.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "http", URL: srv.URL, Safety: "journaled"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("w", "Do"), nil), 201, "")
		r := d.start("w@1", `{}`)
		o := d.uncertain()
		if len(o.Effects) != 1 || o.Effects[0].Name != "card" || o.Effects[0].State != "begun" {
			t.Errorf("got operation %+v, want effect card begun", o)
		}
		d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "card", Happened: new(false)}}}, nil), 200, "")
		d.runEnds(r.ID, "COMPLETED")
	})
}

// TestStepsThatCall verifies that a node runs http steps, and calls no forbidden address.
func TestStepsThatCall(t *testing.T) {
	def := `{"name":"call","version":"1","steps":[{"name":"get","type":"http","url":"=input.url"}]}`
	for name, o := range map[string]httpapi.Options{"allowed": elsewhere, "refused": {NoKeys: true}} {
		t.Run(name, func(t *testing.T) {
			eachTestAPI(t, o, func(t *testing.T, d *testAPI) {
				called := make(chan string, 100)
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
					called <- q.Method + " " + q.URL.Path + " " + q.Header.Get("Idempotency-Key")
					fmt.Fprint(w, `{"ok":true}`)
				}))
				t.Cleanup(srv.Close)
				testkit.Run(t, d.engine)
				d.want(d.ask("POST", "workflow-definitions", def, nil), 201, "")
				r := d.start("call@1", `{"url":"`+srv.URL+`/x"}`)
				if name == "refused" {
					if r = d.runEnds(r.ID, "FAILED"); !strings.Contains(*r.Error, "not public") || len(called) > 0 || d.steps(r.ID)[0].Attempts != 1 {
						t.Errorf("got run %+v after %d calls, want \"not public\" after none", r, len(called))
					}
					return
				}
				r = d.runEnds(r.ID, "COMPLETED")
				if got := <-called; got != "GET /x "+r.ID+"/get/1" || !strings.Contains(string(r.Output), "ok") {
					t.Errorf("got call %s, run %+v", got, r)
				}
			})
		})
	}
}

// TestFiftyStartsUnderOneKey verifies that of fifty concurrent starts with one key one gets 201 and
// created, and all others 200, not created, and the same run; and that another workspace gets
// another run.
func TestFiftyStartsUnderOneKey(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		one := `{"name":"one","version":"1","steps":[{"name":"nap","type":"wait","durationMs":3600000}]}`
		d.want(d.ask("POST", "workflow-definitions", one, nil), 201, "")
		key := "k"
		const starters = 50
		statuses, answers := make([]int, starters), make([]wire.StartedRun, starters)
		holdfasttest.Race(t, starters, func(i int) error {
			statuses[i] = d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "one@1", IdempotencyKey: &key}, &answers[i]).StatusCode
			return nil
		})
		made := 0
		for i, a := range answers {
			if a.Created {
				made++
			}
			if a.Created != (statuses[i] == http.StatusCreated) || !a.Created && statuses[i] != http.StatusOK || a.Run.ID != answers[0].Run.ID {
				t.Errorf("start %d returned status %d: %+v", i, statuses[i], a)
			}
		}
		if made != 1 {
			t.Errorf("%d runs were created, want 1", made)
		}
		var other wire.StartedRun
		d.want(d.ask("POST", "workflow-definitions", one, nil, "X-Holdfast-Workspace", "other"), 201, "")
		d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "one@1", IdempotencyKey: &key}, &other, "X-Holdfast-Workspace", "other"), 201, "")
		if !other.Created || other.Run.ID == answers[0].Run.ID {
			t.Errorf("start in another workspace returned %+v, want a new run", other)
		}
	})
}

// TestTheExamplesOfStevora verifies that the request of docs/from-stevora.md starts a run once, with the id of a definition
// that has a version, and that the response has the members of the page's second example.
func TestTheExamplesOfStevora(t *testing.T) {
	page, err := os.ReadFile("../docs/from-stevora.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) != 2 {
		t.Fatalf("the page has %d examples, want 2", len(examples))
	}
	request := examples[0][1]
	var response map[string]any
	if err := json.Unmarshal([]byte(examples[1][1]), &response); err != nil {
		t.Fatal(err)
	}
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("POST", "workflow-definitions", `{"name":"def_abc123","version":"1","steps":[{"name":"nap","type":"wait","durationMs":3600000}]}`, nil), 201, "")
		if p := d.want(d.ask("POST", "workflow-runs", request, nil), 404, fault.NotFound); !strings.Contains(p.Detail, "such as def_abc123@1") {
			t.Errorf("got %q, want the form of an id", p.Detail)
		}
		request := strings.Replace(request, "def_abc123", "def_abc123@1", 1)
		for _, status := range []int{201, 200} {
			var got map[string]any
			d.want(d.ask("POST", "workflow-runs", request, &got), status, "")
			if got["created"] != (status == 201) || len(got) != len(response) {
				t.Errorf("got %v, want the members of %v", got, response)
			}
			for name := range response["run"].(map[string]any) {
				if _, ok := got["run"].(map[string]any)[name]; !ok && name != "..." {
					t.Errorf("the run has no %s: %v", name, got["run"])
				}
			}
		}
	})
}
