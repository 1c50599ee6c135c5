package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// TestAnAfterEffectOfAWorkerWithoutItsRow verifies that an after-effect of a row that was deleted is not handed out to a worker
// again and again: its stream is blocked, or the event is skipped if the config says so.
func TestAnAfterEffectOfAWorkerWithoutItsRow(t *testing.T) {
	for _, missing := range []string{"block", "skip"} {
		t.Run(missing, func(t *testing.T) {
			onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, _ string) {
				d := newTestAPI(t, e, withOrders())
				d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
				d.want(d.ask("PUT", "handlers/Mail", wire.PutHandler{Kind: "worker"}, nil), 201, "")
				config := strings.Replace(orderConfig, `"action": "Pay"`, `"action": "Pay", "success_after_effect": "Mail"`, 1)
				config = strings.Replace(config, `"steps":`, `"after_effects": {"Mail": {"on_missing": "`+missing+`"}}, "steps":`, 1)
				d.want(d.ask("PUT", "lifecycles/order", config, nil), 201, "")
				sqlOn(t, e, "INSERT INTO orders (nr, state) VALUES ('o1', 'new')")
				var claimed wire.Claimed
				d.want(d.ask("POST", "lifecycles/order/entities/o1/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, &claimed), 201, "")
				d.want(d.ask("POST", "claims/"+claimed.Claim.Token+"/settle", wire.Settle{Outcome: "success"}, nil), 200, "")
				sqlOn(t, e, "DELETE FROM orders")
				for range 3 {
					var got wire.Tasks
					d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Mail"}, WaitMs: new(wire.Millis)}, &got), 200, "")
					holdfasttest.Advance(t, e, time.Minute)
				}
				resp := d.ask("GET", "reactions/*/streams", nil, nil)
				text := textOf(resp)
				if missing == "block" && !strings.Contains(text, `"blocked":true`) {
					t.Errorf("got %s, want it blocked", text)
				}
				if missing == "skip" && !strings.Contains(text, `"watermark":2`) {
					t.Errorf("got %s, want it skipped", text)
				}
			})
		})
	}
}

// TestAPendingStepOfAUsersRow verifies that the response to a step that waits for a worker has the version and the data of the row.
func TestAPendingStepOfAUsersRow(t *testing.T) {
	onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, _ string) {
		d := newTestAPI(t, e, withOrders())
		d.orders("o1")
		var fired wire.Fired
		d.want(d.ask("POST", "lifecycles/order/entities/o1/steps/pay?waitMs=0", wire.Fire{Requester: "admin"}, &fired), 202, "")
		wantRow(t, e, "o1", "paying 1 5 - -")
		if fired.Entity.Version != 1 || !strings.Contains(string(fired.Entity.Data), `"cents":5`) {
			t.Errorf("got version %d and data %s, want version 1 and the row", fired.Entity.Version, fired.Entity.Data)
		}
	})
}

// TestValuesOfAJSONColumn verifies that a value of a JSON column is read as it was set: a string that looks like a number, for
// example, stays a string.
func TestValuesOfAJSONColumn(t *testing.T) {
	for _, declared := range []string{"json", "jsonb"} {
		t.Run(declared, func(t *testing.T) { valuesOfAJSONColumn(t, declared) })
	}
}

func valuesOfAJSONColumn(t *testing.T, declared string) {
	t.Helper()
	onOwnTable(t, strings.Replace(ordersTable, "more json", "more "+declared, 1), func(t *testing.T, e *holdfast.Engine, _ string) {
		d := newTestAPI(t, e, withOrders())
		d.orders()
		for i, value := range []string{`"123"`, `"true"`, `"{\"a\":1}"`, `true`, `"007"`, `"hi"`, `[1]`} {
			id := fmt.Sprint("o", i)
			sqlOn(t, e, "INSERT INTO orders (nr, state) VALUES ('"+id+"', 'new')")
			var claimed wire.Claimed
			d.want(d.ask("POST", "lifecycles/order/entities/"+id+"/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, &claimed), 201, "")
			d.want(d.ask("POST", "claims/"+claimed.Claim.Token+"/settle", `{"outcome":"success","data":{"more":`+value+`}}`, nil), 200, "")
			var got wire.Entity
			d.want(d.ask("GET", "lifecycles/order/entities/"+id, nil, &got), 200, "")
			if !strings.Contains(string(got.Data), `"more":`+value) {
				t.Errorf("set more to %s, got %s", value, got.Data)
			}
		}
	})
}

// TestValuesOfATextColumn verifies that both databases store the same text for a value of a text column: a string, or the JSON of
// any other value.
func TestValuesOfATextColumn(t *testing.T) {
	onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, _ string) {
		d := newTestAPI(t, e, withOrders())
		d.orders()
		for value, want := range map[string]string{`"a<b"`: `"a<b"`, `"1.10"`: `"1.10"`, `true`: `"true"`, `false`: `"false"`, `1.10`: `"1.10"`, `7`: `"7"`, `1E5`: `"1E5"`,
			`12345678901234567890`: `"12345678901234567890"`, `null`: `null`, `{ "a": "<&" }`: `"{\"a\":\"<&\"}"`, `[1.0, 2]`: `"[1.0,2]"`} {
			id := fmt.Sprintf("o%x", value)
			sqlOn(t, e, "INSERT INTO orders (nr, state) VALUES ('"+id+"', 'new')")
			var claimed wire.Claimed
			d.want(d.ask("POST", "lifecycles/order/entities/"+id+"/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, &claimed), 201, "")
			d.want(d.ask("POST", "claims/"+claimed.Claim.Token+"/settle", `{"outcome":"success","data":{"note":`+value+`}}`, nil), 200, "")
			var got wire.Entity
			d.want(d.ask("GET", "lifecycles/order/entities/"+id, nil, &got), 200, "")
			var row map[string]any
			if err := json.Unmarshal(got.Data, &row); err != nil {
				t.Fatal(err)
			}
			var text any
			if err := json.Unmarshal([]byte(want), &text); err != nil {
				t.Fatal(err)
			}
			if row["note"] != text {
				t.Errorf("set note to %s, got %q, want %q", value, row["note"], text)
			}
		}
	})
}

// TestAClaimOfADeletedRow verifies that the holder of a claim whose row was deleted can renew and end it. A success cannot be
// recorded in the row, so the holder gets an error that says so, and the operation ends; if an effect has happened, it waits for a person.
func TestAClaimOfADeletedRow(t *testing.T) {
	onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, _ string) {
		d := newTestAPI(t, e, withOrders())
		d.orders()
		open := func(id string) (open []wire.Operation) {
			var all wire.List[wire.Operation]
			d.want(d.ask("GET", "operations", nil, &all), 200, "")
			for _, o := range all.Items {
				if o.Subject == "order/"+id {
					open = append(open, o)
				}
			}
			return open
		}
		wantEnded := func(id, outcome string) {
			t.Helper()
			if left := open(id); len(left) > 0 {
				t.Errorf("%s: operations %+v have not ended", id, left)
			}
			sqlOn(t, e, "INSERT INTO orders (nr, state) VALUES ('"+id+"', 'new')") // the history of an entity is listed if the row exists
			if text := textOf(d.ask("GET", "lifecycles/order/entities/"+id+"/history", nil, nil)); !strings.Contains(text, `"outcome":"`+outcome+`"`) {
				t.Errorf("%s: the history is %s, want the outcome %s", id, text, outcome)
			}
			d.want(d.ask("POST", "lifecycles/order/entities/"+id+"/steps/void", wire.Fire{Requester: "admin"}, nil), 200, "")
		}
		wantRefused := func(p wire.Problem, outcome string) {
			t.Helper()
			if !strings.Contains(p.Detail, "was deleted") || p.Fields["outcome"] != outcome {
				t.Errorf("got %+v, want that the row was deleted, and the outcome %s", p, outcome)
			}
		}
		for _, how := range []string{"complete", "complete with state", "fail", "invalid", "effect"} {
			id := "task-" + strings.ReplaceAll(how, " ", "-")
			sqlOn(t, e, "INSERT INTO orders (nr, state) VALUES ('"+id+"', 'new')")
			d.want(d.ask("POST", "lifecycles/order/entities/"+id+"/steps/pay?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
			var tasks wire.Tasks
			d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Pay"}}, &tasks), 200, "")
			task := tasks.Tasks[0]
			at := "tasks/" + task.ID + "/"
			sqlOn(t, e, "DELETE FROM orders WHERE nr = '"+id+"'")
			d.want(d.ask("POST", at+"renew", wire.Renew{Epoch: task.Epoch}, nil), 200, "")
			switch how {
			case "complete", "complete with state":
				body := wire.CompleteTask{Epoch: task.Epoch}
				if how != "complete" {
					body.State = json.RawMessage(`{"cents":7}`)
				}
				wantRefused(d.want(d.ask("POST", at+"complete", body, nil), 422, fault.ActionFailed), "released")
				d.want(d.ask("POST", at+"complete", body, nil), 409, fault.LeaseLost)
				wantEnded(id, "failed")
			case "fail", "invalid":
				body := wire.FailTask{Epoch: task.Epoch, Message: "no", Invalid: how == "invalid"}
				d.want(d.ask("POST", at+"fail", body, nil), 200, "")
				d.want(d.ask("POST", at+"fail", body, nil), 200, "")
				wantEnded(id, map[string]string{"fail": "failed", "invalid": "invalid"}[how])
			case "effect":
				d.want(d.ask("POST", at+"effects", wire.EffectCall{Epoch: task.Epoch, Name: "charge"}, nil), 200, "")
				d.want(d.ask("POST", at+"effects", wire.EffectCall{Epoch: task.Epoch, Name: "charge", Result: json.RawMessage(`1`)}, nil), 200, "")
				wantRefused(d.want(d.ask("POST", at+"complete", wire.CompleteTask{Epoch: task.Epoch}, nil), 422, fault.ActionFailed), "uncertain")
				left := open(id)
				if len(left) != 1 || left[0].State != "uncertain" {
					t.Fatalf("operations are %+v, want one that is uncertain", left)
				}
				d.want(d.ask("POST", "operations/"+left[0].ID+"/resolve", wire.Resolve{Outcome: "failure"}, nil), 200, "")
				wantEnded(id, "resolved")
			}
		}
		for _, how := range []string{"success", "data", "failure", "release"} {
			id := "claim-" + how
			sqlOn(t, e, "INSERT INTO orders (nr, state) VALUES ('"+id+"', 'new')")
			var claimed wire.Claimed
			d.want(d.ask("POST", "lifecycles/order/entities/"+id+"/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, &claimed), 201, "")
			at := "claims/" + claimed.Claim.Token + "/"
			sqlOn(t, e, "DELETE FROM orders WHERE nr = '"+id+"'")
			d.want(d.ask("POST", at+"renew", nil, nil), 200, "")
			switch how {
			case "success":
				wantRefused(d.want(d.ask("POST", at+"settle", wire.Settle{Outcome: "success"}, nil), 422, fault.ActionFailed), "released")
			case "data":
				wantRefused(d.want(d.ask("POST", at+"settle", `{"outcome":"success","data":{"cents":7}}`, nil), 422, fault.ActionFailed), "released")
			case "failure":
				d.want(d.ask("POST", at+"settle", wire.Settle{Outcome: "failure"}, nil), 200, "")
			case "release":
				d.want(d.ask("POST", at+"release", nil, nil), 200, "")
			}
			d.want(d.ask("POST", at+"release", nil, nil), 200, "") // it has ended this way
			wantEnded(id, "failed")
		}
	})
}

// TestAnUndoAfterItsLease verifies that the holder of an undo that failed, was snoozed, or whose lease has expired, can neither renew
// nor complete it; and that repeating the same end is no error.
func TestAnUndoAfterItsLease(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.running()
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		for _, how := range []string{"fail", "snooze", "expire"} {
			end := func(path string, epoch int64) {
				for range 2 {
					switch how {
					case "fail":
						d.want(d.ask("POST", path+"/fail", wire.FailTask{Epoch: epoch, Message: "later"}, nil), 200, "")
					case "snooze":
						d.want(d.ask("POST", path+"/snooze", wire.SnoozeTask{Epoch: epoch, DelayMs: 60000}, nil), 200, "")
					default:
						holdfasttest.Advance(t, d.engine, 2*time.Minute)
					}
				}
			}
			no := false
			d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b-" + how), Wallet: "w", Handler: "h", Undo: true, Items: newItems(0, how)}, nil), 201, "")
			task := d.claimItems("h", 1)[0]
			d.want(d.ask("POST", "tasks/"+task.ID+"/fail", wire.FailTask{Epoch: 1, Message: "broken", Retryable: &no}, nil), 200, "")
			undo := d.undoOf(how)
			path := "tasks/" + undo.ID
			end(path, undo.Epoch)
			if resp := d.ask("POST", path+"/renew", wire.Renew{Epoch: undo.Epoch}, nil); resp.StatusCode != 409 {
				t.Errorf("%s: renew returned %d, want LEASE_LOST", how, resp.StatusCode)
			}
			if resp := d.ask("POST", path+"/complete", wire.CompleteTask{Epoch: undo.Epoch}, nil); resp.StatusCode != 409 {
				t.Errorf("%s: complete returned %d, want LEASE_LOST", how, resp.StatusCode)
			}
		}
	})
}

// TestAStrayRowBehindManyClaims verifies that a row that other code put into a claim status is reverted, also if more rows than a
// sweep reads are claimed before it.
func TestAStrayRowBehindManyClaims(t *testing.T) {
	testlevel.Long(t)
	onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, _ string) {
		d := newTestAPI(t, e, withOrders())
		d.orders()
		for i := range 1000 {
			sqlOn(t, e, fmt.Sprintf("INSERT INTO orders (nr, state) VALUES ('a%04d', 'new')", i))
			d.want(d.ask("POST", fmt.Sprintf("lifecycles/order/entities/a%04d/claims", i), wire.NewClaim{StepKey: "pay", Requester: "admin", LeaseMs: 3600_000}, nil), 201, "")
		}
		sqlOn(t, e, "INSERT INTO orders (nr, state) VALUES ('z', 'paying')")
		for range 5 {
			if err := lifecycleengine.Sweep(t.Context(), engine.Of(e)); err != nil {
				t.Fatal(err)
			}
			holdfasttest.Advance(t, e, 6*time.Minute)
		}
		wantRow(t, e, "z", "new 1 5 - -")
	})
}
