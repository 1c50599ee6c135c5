package httpapi_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

// Verifies that an operator can release a claim whose effects have not begun: the entity returns to its status and is free,
// and the late holder can neither begin an effect, renew nor settle. A claim with a begun effect is refused, whether or not its
// outcome is known, and keeps its holder. The release is in the audit, and the ended operation can be read.
func TestReleaseOfAnEntitysOperation(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "")
		var was wire.Entity
		d.want(d.ask("GET", "lifecycles/invoice/entities/i", nil, &was), 200, "")
		var first, second wire.Claimed
		d.want(d.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], &first), 201, "")
		id := first.Entity.Claim.Operation
		var o wire.Operation
		d.want(d.ask("GET", "operations/"+id, nil, &o), 200, "")
		if o.State != "held" || o.Subject != "invoice/i" {
			t.Errorf("the operation before: %+v", o)
		}
		var done wire.Resolved
		d.want(d.ask("POST", "operations/"+id+"/release", wire.ReleaseOperation{Epoch: new(o.Epoch + 1)}, nil), 409, fault.Concurrency)
		d.want(d.ask("POST", "operations/"+id+"/release", wire.ReleaseOperation{Reason: "hangs", Epoch: &o.Epoch}, &done), 200, "")
		var now wire.Entity
		d.want(d.ask("GET", "lifecycles/invoice/entities/i", nil, &now), 200, "")
		if now.Status != was.Status || done.Operation != nil {
			t.Errorf("after the release: %+v, operation %v, want status %s", now, done.Operation, was.Status)
		}
		token := "claims/" + first.Claim.Token
		d.want(d.ask("POST", token+"/effects", wire.EffectCall{Name: "charge"}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", token+"/renew", wire.Renew{}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", token+"/settle", wire.Settle{Outcome: "success"}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "operations/"+id+"/release", wire.ReleaseOperation{}, nil), 404, fault.NotFound)
		d.want(d.ask("GET", "operations/"+id, nil, &o), 200, "")
		if o.State != "ended" || o.Ended == nil || o.Ended.Name != "released" || o.Epoch != first.Claim.Epoch+1 {
			t.Errorf("after the release: %+v", o)
		}

		d.want(d.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], &second), 201, "")
		id, token = second.Entity.Claim.Operation, "claims/"+second.Claim.Token
		d.want(d.ask("POST", token+"/effects", wire.EffectCall{Name: "charge"}, nil), 200, "")
		d.want(d.ask("POST", "operations/"+id+"/release", wire.ReleaseOperation{}, nil), 409, fault.EffectUnresolved)
		at, err := engine.Of(d.engine).Partition(t.Context(), store.Write)
		if err != nil {
			t.Fatal(err)
		}
		// The statement decides by the row too: an effect may begin after the operation was read.
		late := entities.WithdrawArgs{Ticket: entities.Ticket{Lifecycle: "invoice", ID: "i", Operation: id, Epoch: second.Claim.Epoch}, Outcome: "released", Release: true}
		if _, done, err := entities.Withdraw(t.Context(), engine.Of(d.engine), at, late); done || err != nil {
			t.Errorf("the statement released an operation with a begun effect: %v, %v", done, err)
		}
		d.want(d.ask("POST", token+"/effects", wire.EffectCall{Name: "charge", Result: json.RawMessage("1")}, nil), 200, "")
		d.want(d.ask("POST", "operations/"+id+"/release", wire.ReleaseOperation{}, nil), 409, fault.EffectUnresolved)
		d.want(d.ask("POST", token+"/settle", wire.Settle{Outcome: "success"}, nil), 200, "") // its holder has not lost it
		d.want(d.ask("GET", "operations/"+id, nil, &o), 200, "")
		if o.State != "ended" || len(o.Effects) != 1 {
			t.Errorf("the ended operation: %+v", o)
		}
		if all := d.audited("action=operation.release"); len(all) != 1 || all[0].Actor != "dev" || all[0].Subject != "operation/"+first.Entity.Claim.Operation {
			t.Errorf("the audit has %+v", all)
		}
	}, invoices(nil))
}

// Verifies the same of the step of a run: after a release it is due, and the late holder can write nothing. A step with an effect
// whose outcome is unknown is refused.
func TestReleaseOfAStep(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", json.RawMessage(`{"name":"work","version":"1","steps":[{"name":"t","type":"task","handler":"h"}]}`), nil), 201, "")
		var started wire.StartedRun
		d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "work@1"}, &started), 201, "")
		claim := func() wire.Task {
			t.Helper()
			var l wire.Tasks
			d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"h"}}, &l), 200, "")
			if len(l.Tasks) != 1 {
				t.Fatalf("claimed %d tasks, want 1", len(l.Tasks))
			}
			return l.Tasks[0]
		}
		first := claim()
		step := runengine.ClaimedStep{Run: runengine.Run{ID: started.Run.ID}, Step: runengine.Step{Name: "t", Visit: 1}}
		release := "operations/" + step.OperationID() + "/release"
		var done wire.Resolved
		d.want(d.ask("POST", release, wire.ReleaseOperation{Epoch: new(int64(0))}, nil), 400, fault.Validation)
		d.want(d.ask("POST", release, nil, &done), 200, "")
		if done.Operation == nil || done.Operation.State != "due" {
			t.Errorf("after the release: %+v", done.Operation)
		}
		d.want(d.ask("POST", release, nil, nil), 409, fault.Conflict) // it is not leased
		d.want(d.ask("POST", "tasks/"+first.ID+"/complete", wire.CompleteTask{Epoch: first.Epoch}, nil), 409, fault.LeaseLost)
		second := claim()
		if second.Epoch <= first.Epoch {
			t.Errorf("the epoch went from %d to %d", first.Epoch, second.Epoch)
		}
		d.want(d.ask("POST", release, wire.ReleaseOperation{Epoch: &first.Epoch}, nil), 409, fault.Concurrency) // a request for the first holder
		d.want(d.ask("POST", "tasks/"+second.ID+"/effects", wire.EffectCall{Epoch: second.Epoch, Name: "charge"}, nil), 200, "")
		d.want(d.ask("POST", release, nil, nil), 409, fault.EffectUnresolved)
	})
}

// Verifies that a release returns a row of a user's table too, that a late holder can set none of its columns, that
// neither another workspace nor a server without the table can release it, and that a deleted row does not prevent it.
func TestReleaseOfAUsersRow(t *testing.T) {
	onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, at string) {
		d := newTestAPI(t, e, withOrders())
		d.orders("o1", "o2")
		var c wire.Claimed
		d.want(d.ask("POST", "lifecycles/order/entities/o1/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, &c), 201, "")
		id := c.Entity.Claim.Operation
		d.want(d.ask("POST", "operations/"+id+"/release", nil, nil, "X-Holdfast-Workspace", "w2"), 404, fault.NotFound)
		d.want(d.ask("GET", "operations/"+id, nil, nil, "X-Holdfast-Workspace", "w2"), 404, fault.NotFound)
		without := newTestAPI(t, holdfasttest.OpenOn(t, holdfasttest.At(at)), httpapi.Options{NoKeys: true})
		without.want(without.ask("POST", "operations/"+id+"/release", nil, nil), 503, fault.Unavailable)
		wantRow(t, e, "o1", "paying 1 5 - -")
		d.want(d.ask("POST", "operations/"+id+"/release", nil, nil), 200, "")
		wantRow(t, e, "o1", "new 2 5 - -")
		var c2 wire.Claimed
		d.want(d.ask("POST", "lifecycles/order/entities/o1/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, &c2), 201, "")
		d.want(d.ask("POST", "claims/"+c.Claim.Token+"/settle", wire.Settle{Outcome: "success", Data: json.RawMessage(`{"cents":99}`)}, nil), 409, fault.LeaseLost)
		d.want(d.ask("POST", "claims/"+c.Claim.Token+"/release", nil, nil), 409, fault.LeaseLost)
		wantRow(t, e, "o1", "paying 3 5 - -")
		d.want(d.ask("POST", "claims/"+c2.Claim.Token+"/settle", wire.Settle{Outcome: "success"}, nil), 200, "")
		d.want(d.ask("POST", "lifecycles/order/entities/o2/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, &c), 201, "")
		sqlOn(t, e, "DELETE FROM orders WHERE nr = 'o2'")
		d.want(d.ask("POST", "operations/"+c.Entity.Claim.Operation+"/release", nil, nil), 200, "")
		if all := d.audited("action=operation.release"); len(all) != 2 {
			t.Errorf("the audit has %+v, want two releases", all)
		}
	})
}
