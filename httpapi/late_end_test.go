package httpapi_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/wire"
)

// TestALateEndIsNotThePersons verifies that a holder that ends a claim, a task or a step of a run
// after it was resolved manually gets an error, because its data was not written.
func TestALateEndIsNotThePersons(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: new("hand")}, nil), 201, "")
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
			engine.Of(d.engine).Round(t.Context())
		}
		for _, handler := range []string{"Do", "Pay"} { // the next attempt parks the operation
			x := d.one(handler)
			d.want(d.ask("POST", "tasks/"+x.ID+"/effects", wire.EffectCall{Epoch: x.Epoch, Name: "card"}, nil), 409, fault.Conflict)
			late = append(late, x)
		}
		for _, o := range d.allUncertain(3) {
			d.want(d.ask("POST", "operations/"+o.ID+"/resolve",
				wire.Resolve{Effects: []wire.KnownEffect{{Name: "card", Happened: new(true), Result: []byte(`"ch_1"`)}}, Outcome: "success"}, nil), 200, "")
		}
		d.want(d.ask("POST", "claims/"+hand.Claim.Token+"/settle", wire.Settle{Outcome: "success", Data: []byte(`{"late":true}`),
			Events: []wire.SettleEvent{{Stream: "late", Name: "settled"}}}, nil), 409, fault.LeaseLost)
		for _, x := range late {
			d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch, State: []byte(`{"late":true}`)}, nil), 409, fault.LeaseLost)
		}
	})
}

// TestALateBodyIsListed verifies that an opaque body that finished late, after it was resolved as
// not happened and another attempt has run it, is listed, even if both results are equal. A body
// that was resolved as happened is the same body.
func TestALateBodyIsListed(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "opaque", OnUnknown: "probe"})
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "opaque", OnUnknown: "probe"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: new("seen")}, nil), 201, "")
		var runs []string
		for _, happened := range []string{"false", "true"} {
			id := map[string]string{"false": "j", "true": "seen"}[happened]
			d.want(d.ask("POST", "lifecycles/job/entities/"+id+"/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
			runs = append(runs, d.start("pay@1", `{}`).ID)
			late := []wire.Task{d.one("Do"), d.one("Pay")}
			for range 2 {
				holdfasttest.Advance(t, d.engine, 10*time.Minute)
				engine.Of(d.engine).Round(t.Context())
			}
			for _, x := range late {
				probe := d.one(x.Handler)
				if probe.Kind != "probe" {
					t.Fatalf("claimed %+v, want a probe", probe)
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
	})
}

// TestALateClaimIsListed verifies that a late result of a claim by hand is listed, also if the
// entity has moved on since.
func TestALateClaimIsListed(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "opaque"})
		var late wire.Claimed
		claim := func(into *wire.Claimed) {
			t.Helper()
			d.want(d.ask("POST", "lifecycles/job/entities/j/claims", wire.NewClaim{StepKey: "do", Requester: "admin"}, into), 201, "")
		}
		claim(&late)
		d.want(d.ask("POST", "claims/"+late.Claim.Token+"/effects", wire.EffectCall{Name: "card"}, nil), 200, "")
		holdfasttest.Advance(t, d.engine, time.Hour)
		engine.Of(d.engine).Round(t.Context())
		o := d.allUncertain(1)[0]
		d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "card", Happened: new(false)}, {Name: "$body", Happened: new(false)}}, Outcome: "failure"}, nil), 200, "")
		var next wire.Claimed
		claim(&next)
		d.want(d.ask("POST", "claims/"+late.Claim.Token+"/effects", wire.EffectCall{Name: "card", Result: []byte(`"ch_1"`)}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "claims/"+late.Claim.Token+"/settle", wire.Settle{Outcome: "success"}, nil), 409, fault.LeaseLost)
		found := d.contradicted("&state=contradicted", "job/j ended card done")
		if c := found[0].Contradictions; len(c) != 2 || c[1].Name != "$body" || string(c[0].Result) != `"ch_1"` {
			t.Errorf("got contradictions %+v", c)
		}
	})
}
