package httpapi_test

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/wire"
)

// contradicted lists operations, and checks that those with contradictions are the wanted ones.
func (d *door) contradicted(query string, want ...string) (found []wire.Operation) {
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
		d.t.Fatalf("contradicted are %q, want %q", got, want)
	}
	return found
}

// Verifies that what workers report after they lost their lease is refused, kept, and listed with its
// operation, whether that goes on or is at its end, until somebody acknowledges it.
func TestWhatALateWorkerDidIsListed(t *testing.T) {
	eachDoor(t, elsewhere, func(t *testing.T, d *door) {
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
			d.engine.Round(t.Context())
		}
		next := d.one("Pay")
		d.want(d.ask("POST", "tasks/"+next.ID+"/effects", wire.EffectCall{Epoch: next.Epoch, Name: "card"}, nil), 409, fault.Conflict)
		d.contradicted("")

		// A person says that nothing happened, then the workers come back.
		for _, o := range d.allUncertain(2) {
			effect := o.Effects[0].Name
			d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: effect}}, Outcome: "failure"}, nil), 200, "")
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
				t.Errorf("it is %+v", x)
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
				t.Errorf("left are %+v", left)
			}
		}
		d.contradicted("")
		d.contradicted("&state=contradicted")
	}, httpapi.Handlers(elsewhere))
}

// allUncertain returns the operations that wait for a person.
func (d *door) allUncertain(n int) []wire.Operation {
	d.t.Helper()
	var l wire.List[wire.Operation]
	d.want(d.ask("GET", "operations?state=uncertain", nil, &l), 200, "")
	if len(l.Items) != n {
		d.t.Fatalf("uncertain are %+v, want %d", l.Items, n)
	}
	return l.Items
}

// Verifies that a worker which says of a repeated call that it did not happen says nothing of the
// earlier one: the operation waits for a person. That of a run's step does, too.
func TestAWorkersDeclinedRepetition(t *testing.T) {
	eachDoor(t, elsewhere, func(t *testing.T, d *door) {
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
			for range 2 { // this one is of the same attempt, and has not been called
				effect(wire.EffectCall{}, 200, "")
				effect(wire.EffectCall{NotDone: true}, 200, "")
			}
			effect(wire.EffectCall{}, 200, "")
			for range 2 {
				holdfasttest.Advance(t, d.engine, 10*time.Minute)
				d.engine.Round(t.Context())
			}
			x = d.one(handler)
			effect(wire.EffectCall{}, 200, "")
			effect(wire.EffectCall{NotDone: true}, 409, fault.Conflict)
		}
		for _, o := range d.allUncertain(2) {
			if len(o.Effects) != 1 || o.Effects[0].State != "begun" {
				t.Errorf("it is %+v", o)
			}
		}
	}, httpapi.Handlers(elsewhere))
}

// Verifies that who ends a claim, a task or a step of a run too late, as a person has ended it by then, is told so:
// what it brings along was not written.
func TestALateEndIsNotThePersons(t *testing.T) {
	eachDoor(t, elsewhere, func(t *testing.T, d *door) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: "hand"}, nil), 201, "")
		var hand wire.Claimed
		d.want(d.ask("POST", "lifecycles/job/entities/hand/claims", wire.NewClaim{StepKey: "do", Requester: "admin"}, &hand), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		d.start("pay@1", `{}`)
		d.want(d.ask("POST", "claims/"+hand.Claim.Token+"/effects", wire.EffectCall{Name: "card"}, nil), 200, "")
		late := []wire.Task{d.one("Do"), d.one("Pay")}
		for _, x := range late {
			d.want(d.ask("POST", "tasks/"+x.ID+"/effects", wire.EffectCall{Epoch: x.Epoch, Name: "card"}, nil), 200, "")
		}
		for range 2 {
			holdfasttest.Advance(t, d.engine, 10*time.Minute)
			d.engine.Round(t.Context())
		}
		for _, handler := range []string{"Do", "Pay"} { // the next attempt asks a person
			x := d.one(handler)
			d.want(d.ask("POST", "tasks/"+x.ID+"/effects", wire.EffectCall{Epoch: x.Epoch, Name: "card"}, nil), 409, fault.Conflict)
			late = append(late, x)
		}
		for _, o := range d.allUncertain(3) {
			d.want(d.ask("POST", "operations/"+o.ID+"/resolve",
				wire.Resolve{Effects: []wire.KnownEffect{{Name: "card", Happened: true, Result: []byte(`"ch_1"`)}}, Outcome: "success"}, nil), 200, "")
		}
		d.want(d.ask("POST", "claims/"+hand.Claim.Token+"/settle", wire.Settle{Outcome: "success", Data: []byte(`{"late":true}`),
			Events: []wire.SettleEvent{{Stream: "late", Name: "settled"}}}, nil), 409, fault.LeaseLost)
		for _, x := range late {
			d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch, State: []byte(`{"late":true}`)}, nil), 409, fault.LeaseLost)
		}
	}, httpapi.Handlers(elsewhere))
}

// Verifies that an opaque body which was done late, after it was found not to have happened and another attempt has
// done it, is listed, also where both say the same. One that was found to have happened is the same body.
func TestALateBodyIsListed(t *testing.T) {
	eachDoor(t, elsewhere, func(t *testing.T, d *door) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "opaque", OnUnknown: "probe"})
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "opaque", OnUnknown: "probe"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: "seen"}, nil), 201, "")
		var runs []string
		for _, happened := range []string{"false", "true"} {
			id := map[string]string{"false": "j", "true": "seen"}[happened]
			d.want(d.ask("POST", "lifecycles/job/entities/"+id+"/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
			runs = append(runs, d.start("pay@1", `{}`).ID)
			late := []wire.Task{d.one("Do"), d.one("Pay")}
			for range 2 {
				holdfasttest.Advance(t, d.engine, 10*time.Minute)
				d.engine.Round(t.Context())
			}
			for _, x := range late {
				probe := d.one(x.Handler)
				if probe.Kind != "probe" {
					t.Fatalf("took %+v", probe)
				}
				d.want(d.ask("POST", "tasks/"+probe.ID+"/complete", wire.CompleteTask{Epoch: probe.Epoch, Output: []byte(`{"happened":` + happened + `}`)}, nil), 200, "")
				if happened == "false" {
					next := d.one(x.Handler)
					d.want(d.ask("POST", "tasks/"+next.ID+"/complete", wire.CompleteTask{Epoch: next.Epoch}, nil), 200, "")
				}
				d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 409, fault.LeaseLost)
			}
		}
		d.contradicted("&state=contradicted", "job/j ended $body done", "run "+runs[0]+" step do ended $body done")
	}, httpapi.Handlers(elsewhere))
}

// Verifies that what who had a claim by hand did late is listed, also where the entity has gone on since then.
func TestALateClaimIsListed(t *testing.T) {
	eachDoor(t, elsewhere, func(t *testing.T, d *door) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "opaque"})
		var late wire.Claimed
		claim := func(into *wire.Claimed) {
			t.Helper()
			d.want(d.ask("POST", "lifecycles/job/entities/j/claims", wire.NewClaim{StepKey: "do", Requester: "admin"}, into), 201, "")
		}
		claim(&late)
		d.want(d.ask("POST", "claims/"+late.Claim.Token+"/effects", wire.EffectCall{Name: "card"}, nil), 200, "")
		holdfasttest.Advance(t, d.engine, time.Hour)
		d.engine.Round(t.Context())
		o := d.allUncertain(1)[0]
		d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "card"}, {Name: "$body"}}, Outcome: "failure"}, nil), 200, "")
		var next wire.Claimed
		claim(&next)
		d.want(d.ask("POST", "claims/"+late.Claim.Token+"/effects", wire.EffectCall{Name: "card", Result: []byte(`"ch_1"`)}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "claims/"+late.Claim.Token+"/settle", wire.Settle{Outcome: "success"}, nil), 409, fault.LeaseLost)
		found := d.contradicted("&state=contradicted", "job/j ended card done")
		if c := found[0].Contradictions; len(c) != 2 || c[1].Name != "$body" || string(c[0].Result) != `"ch_1"` {
			t.Errorf("contradictions are %+v", c)
		}
	}, httpapi.Handlers(elsewhere))
}
