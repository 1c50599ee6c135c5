package httpapi_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/wire"
)

// contradicted lists operations, and checks which of them have contradictions.
func (d *testAPI) contradicted(query string, want ...string) (found []wire.Operation) {
	d.t.Helper()
	cursor := ""
	for {
		var l wire.List[wire.Operation]
		d.want(d.ask("GET", "operations?limit=1"+cursor+query, nil, &l), 200, "")
		for _, x := range l.Items {
			if len(x.Contradictions) > 0 {
				found = append(found, x)
			}
		}
		if l.Next == nil {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(*l.Next)
	}
	var got []string
	for _, x := range found {
		got = append(got, x.Subject+" "+x.State+" "+x.Contradictions[0].Name+" "+x.Contradictions[0].State)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		d.t.Fatalf("got contradicted operations %q, want %q", got, want)
	}
	return found
}

// TestWhatALateWorkerDidIsListed verifies that reports of workers that lost their lease are
// refused, stored, and listed with their operation, in flight or ended, until they are
// acknowledged.
func TestWhatALateWorkerDidIsListed(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "opaque"})
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		action := d.one("Do")
		r := d.start("pay@1", `{}`)
		step := d.one("Pay")
		d.want(d.ask("POST", "tasks/"+step.ID+"/effects", wire.EffectCall{Epoch: step.Epoch, Name: "card"}, nil), 200, "")
		for range 2 {
			holdfasttest.Advance(t, d.engine, 10*time.Minute)
			engine.Of(d.engine).Round(t.Context())
		}
		next := d.one("Pay")
		d.want(d.ask("POST", "tasks/"+next.ID+"/effects", wire.EffectCall{Epoch: next.Epoch, Name: "card"}, nil), 409, fault.Conflict)
		d.contradicted("")

		// An operator resolves them as not happened, then the workers come back.
		for _, o := range d.allUncertain(2) {
			effect := o.Effects[0].Name
			d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: effect, Happened: new(false)}}, Outcome: "failure"}, nil), 200, "")
		}
		for range 2 {
			d.want(d.ask("POST", "tasks/"+step.ID+"/effects", wire.EffectCall{Epoch: step.Epoch, Name: "card", Result: []byte(`"ch_1"`)}, nil), 409, fault.LeaseLost)
			d.want(d.ask("POST", "tasks/"+action.ID+"/complete", wire.CompleteTask{Epoch: action.Epoch}, nil), 409, fault.LeaseLost)
		}
		d.want(d.ask("POST", "tasks/"+step.ID+"/effects", wire.EffectCall{Epoch: step.Epoch, Name: "other", Result: []byte(`1`)}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "tasks/"+step.ID+"/complete", wire.CompleteTask{Epoch: step.Epoch}, nil), 409, fault.LeaseLost)
		want := []string{"job/j ended $body done", "run " + r.ID + " step do ended card done"}
		d.contradicted("", want...)
		d.contradicted("&state=uncertain")
		all := d.contradicted("&state=contradicted", want...)
		for _, x := range all {
			c := x.Contradictions[0]
			if len(x.Contradictions) != 1 || c.Epoch == 0 || c.At == nil || c.Name == "card" && (string(c.Result) != `"ch_1"` || c.Key != r.ID+"/do/1/card/0") ||
				len(x.Effects) != 1 || x.Effects[0].State != "notDone" {
				t.Errorf("got operation %+v", x)
			}
			path := "operations/" + x.ID + "/acknowledge"
			d.want(d.ask("POST", path, wire.Acknowledge{}, nil), 400, fault.Validation)
			d.want(d.ask("POST", path, wire.Acknowledge{Contradictions: []string{c.ID, "no"}}, nil), 404, fault.NotFound)
			d.want(d.ask("POST", path, wire.Acknowledge{Contradictions: []string{c.ID}}, nil, "X-Holdfast-Workspace", "other"), 404, fault.NotFound)
		}
		for _, x := range all {
			var left wire.Acknowledged
			for range 2 {
				d.want(d.ask("POST", "operations/"+x.ID+"/acknowledge", wire.Acknowledge{Contradictions: []string{x.Contradictions[0].ID}}, &left), 200, "")
			}
			if len(left.Contradictions) != 0 {
				t.Errorf("got %+v after the repair, want no contradictions", left)
			}
		}
		d.contradicted("")
		d.contradicted("&state=contradicted")
	})
}

// allUncertain returns the uncertain operations.
func (d *testAPI) allUncertain(n int) []wire.Operation {
	d.t.Helper()
	var l wire.List[wire.Operation]
	d.want(d.ask("GET", "operations?state=uncertain", nil, &l), 200, "")
	if len(l.Items) != n {
		d.t.Fatalf("listed uncertain operations %+v, want %d", l.Items, n)
	}
	return l.Items
}

// TestAWorkersDeclinedRepetition verifies that a worker that reports a repeated call as not done
// says nothing about the earlier one: the operation is parked. The same holds for a step of a run.
func TestAWorkersDeclinedRepetition(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled", OnUnknown: "retry"})
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled", OnUnknown: "retry"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		d.start("pay@1", `{}`)
		for _, handler := range []string{"Do", "Pay"} {
			x := d.one(handler)
			effect := func(b wire.EffectCall, status int, code fault.Code) {
				t.Helper()
				b.Name, b.Epoch = "card", x.Epoch
				d.want(d.ask("POST", "tasks/"+x.ID+"/effects", b, nil), status, code)
			}
			for range 2 { // this one belongs to the same attempt, and has not been called
				effect(wire.EffectCall{}, 200, "")
				effect(wire.EffectCall{NotDone: true}, 200, "")
			}
			effect(wire.EffectCall{}, 200, "")
			for range 2 {
				holdfasttest.Advance(t, d.engine, 10*time.Minute)
				engine.Of(d.engine).Round(t.Context())
			}
			x = d.one(handler)
			effect(wire.EffectCall{}, 200, "")
			effect(wire.EffectCall{NotDone: true}, 409, fault.Conflict)
		}
		for _, o := range d.allUncertain(2) {
			if len(o.Effects) != 1 || o.Effects[0].State != "begun" {
				t.Errorf("got operation %+v, want one begun effect", o)
			}
		}
	})
}

// contradictions checks the number of contradictions.
func (d *testAPI) contradictions(want int) {
	d.t.Helper()
	var l wire.List[wire.Operation]
	d.want(d.ask("GET", "operations?state=contradicted", nil, &l), 200, "")
	n := 0
	for _, x := range l.Items {
		n += len(x.Contradictions)
	}
	if n != want {
		d.t.Errorf("got %d contradictions, want %d: %+v", n, want, l.Items)
	}
}

// TestALateHandClaimIsReported verifies that the result of a claim by hand is reported even if the
// entity was claimed again.
func TestALateHandClaimIsReported(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		var c wire.Claimed
		d.want(d.ask("POST", "lifecycles/job/entities/j/claims", wire.NewClaim{StepKey: "do", Requester: "admin"}, &c), 201, "")
		d.want(d.ask("POST", "claims/"+c.Claim.Token+"/effects", wire.EffectCall{Name: "card"}, nil), 200, "")
		for range 2 {
			holdfasttest.Advance(t, d.engine, 10*time.Minute)
			engine.Of(d.engine).Round(t.Context())
		}
		for _, o := range d.allUncertain(1) {
			d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "card", Happened: new(false)}}, Outcome: "failure"}, nil), 200, "")
		}
		d.want(d.ask("POST", "lifecycles/job/entities/j/claims", wire.NewClaim{StepKey: "do", Requester: "admin"}, nil), 201, "")
		d.want(d.ask("POST", "claims/"+c.Claim.Token+"/effects", wire.EffectCall{Name: "card", Result: []byte(`"ch_1"`)}, nil), 409, fault.LeaseLost)
		d.contradictions(1)
	})
}

// TestARepeatedResultIsNoContradiction verifies that a repeated result is no contradiction, and
// that forged epochs do not fill the list.
func TestARepeatedResultIsNoContradiction(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		x := d.one("Do")
		p := "tasks/" + x.ID + "/effects"
		d.want(d.ask("POST", p, wire.EffectCall{Epoch: x.Epoch, Name: "card"}, nil), 200, "")
		body := `{"epoch":` + fmt.Sprint(x.Epoch) + `,"name":"card","result":{"b":1,"url":"https://x/?a=1&b=2"}}`
		d.want(d.ask("POST", p, body, nil), 200, "")
		d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 200, "")
		d.want(d.ask("POST", p, body, nil), 409, fault.LeaseLost) // the same bytes: the response was lost
		d.contradictions(0)
		for i := 100; i < 103; i++ {
			d.want(d.ask("POST", p, wire.EffectCall{Epoch: int64(i), Name: "card", Result: []byte(`"junk"`)}, nil), 409, fault.LeaseLost)
		}
		d.contradictions(0)
	})
}

// TestAContradictedStepIsListed verifies that a step with a contradiction is listed while another
// holder has it.
func TestAContradictedStepIsListed(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		d.start("pay@1", `{}`)
		step := d.one("Pay")
		d.want(d.ask("POST", "tasks/"+step.ID+"/effects", wire.EffectCall{Epoch: step.Epoch, Name: "card"}, nil), 200, "")
		for range 2 {
			holdfasttest.Advance(t, d.engine, 10*time.Minute)
			engine.Of(d.engine).Round(t.Context())
		}
		d.one("Pay") // leased by another holder now
		d.want(d.ask("POST", "tasks/"+step.ID+"/effects", wire.EffectCall{Epoch: step.Epoch, Name: "card", Result: []byte(`"ch_1"`)}, nil), 409, fault.LeaseLost)
		d.contradictions(1)
		var l wire.List[wire.Operation]
		d.want(d.ask("GET", "operations", nil, &l), 200, "")
		if len(l.Items) != 1 {
			t.Errorf("listed operations %+v, want one", l.Items)
		}
	})
}

// TestALateWorkerIsReportedWhereAPersonDidItsWork verifies that a worker that is late, after an
// operator did its work and resolved the operation as a success, is reported.
func TestALateWorkerIsReportedWhereAPersonDidItsWork(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "opaque"})
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "opaque"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		action := d.one("Do")
		d.start("pay@1", `{}`)
		step := d.one("Pay")
		for range 2 {
			holdfasttest.Advance(t, d.engine, 10*time.Minute)
			engine.Of(d.engine).Round(t.Context())
		}
		for _, o := range d.allUncertain(2) {
			d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "$body", Happened: new(false)}}, Outcome: "success"}, nil), 200, "")
		}
		for _, x := range []wire.Task{action, step} {
			d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil) // whatever the response is
		}
		d.contradictions(2)
	})
}

// TestAProbeCountsWhateverThePolicyWas verifies that the result of a probe counts, even if the
// effect was begun under another policy.
func TestAProbeCountsWhateverThePolicyWas(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "opaque", OnUnknown: "retry"})
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		d.one("Do")
		d.want(d.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "worker", Safety: "opaque", OnUnknown: "probe"}, nil), 200, "")
		for range 2 {
			holdfasttest.Advance(t, d.engine, 10*time.Minute)
			engine.Of(d.engine).Round(t.Context())
		}
		x := d.one("Do")
		d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch, Output: []byte(`{"happened":false}`)}, nil), 200, "")
	})
}
