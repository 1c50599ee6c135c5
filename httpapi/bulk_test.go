package httpapi_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/wire"
)

// bulk starts a bulk.
func (d *testAPI) bulk(in wire.NewBulk, headers ...string) wire.Bulk {
	d.t.Helper()
	var got wire.StartedBulk
	d.want(d.ask("POST", "bulk", in, &got, headers...), 202, "")
	if got.Bulk == nil || got.Preview != nil {
		d.t.Fatalf("got %+v, want a bulk", got)
	}
	return *got.Bulk
}

// preview makes a dry run, which must write nothing.
func (d *testAPI) preview(in wire.NewBulk) wire.BulkPreview {
	d.t.Helper()
	var before, after wire.List[wire.Bulk]
	d.want(d.ask("GET", "bulk", nil, &before), 200, "")
	audited := len(d.audited(""))
	in.DryRun = true
	var got wire.StartedBulk
	d.want(d.ask("POST", "bulk", in, &got), 200, "")
	d.want(d.ask("GET", "bulk", nil, &after), 200, "")
	if got.Preview == nil || got.Bulk != nil || len(before.Items) != len(after.Items) || len(d.audited("")) != audited {
		d.t.Fatalf("got %+v, want a preview and nothing written: %+v", got, after)
	}
	return *got.Preview
}

// awaitBulk waits for the end of a bulk, and checks its counts.
func (d *testAPI) awaitBulk(id string, done, refused int64) wire.Bulk {
	d.t.Helper()
	var b wire.Bulk
	for begun := clock.Now(); b.Status != "COMPLETED" && clock.Since(begun) < time.Minute; _ = clock.Wait(d.t.Context(), 10*time.Millisecond) {
		d.want(d.ask("GET", "bulk/"+id, nil, &b), 200, "")
	}
	if b.Status != "COMPLETED" || b.Done != done || b.Refused != refused || b.Total != done+refused {
		d.t.Errorf("got bulk %+v, want %d done and %d refused: %+v", b, done, refused, d.refusedMembers(id))
	}
	return b
}

// refusedMembers returns the refused members of a bulk.
func (d *testAPI) refusedMembers(id string) []wire.BulkMember {
	d.t.Helper()
	var l wire.List[wire.BulkMember]
	d.want(d.ask("GET", "bulk/"+id+"/members?status=refused", nil, &l), 200, "")
	return l.Items
}

// Verifies a bulk on runs with two servers on one database: a dry run writes nothing, a repeated request starts one bulk, the
// other server shows it, each run is retried once by the key, and those that do not permit it are listed. Another workspace
// sees nothing, and a reader may not start one.
func TestABulkOnRuns(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, db string) {
		d := newTestAPI(t, holdfasttest.OpenOn(t, holdfasttest.At(db)), httpapi.Options{})
		other := newTestAPI(t, holdfasttest.OpenOn(t, holdfasttest.At(db)), httpapi.Options{})
		made, secret := d.newKey("default", keys.Admin, 0)
		_, reader := d.newKey("default", keys.Read, 0)
		_, foreign := d.newKey("other", keys.Admin, 0)
		anonymous, d := d, d.as(secret)
		d.worker("Pay", "idempotent")
		d.define(oneTask("pay", "Pay"))
		var ids []string
		no := false
		for range 3 {
			ids = append(ids, d.start("pay@1", `{}`).ID)
			x := d.one("Pay")
			d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no", Retryable: &no}, nil), 200, "")
		}
		ids = append(ids, d.start("pay@1", `{}`).ID) // it waits for a worker

		all := wire.NewBulk{Action: "run.retry", Filter: &wire.BulkFilter{DefinitionID: "pay@1"}}
		if p := d.preview(all); p.Total != 3 || len(p.Members) != 3 || p.Members[0].State != "FAILED" || p.RefusedTotal != 0 {
			t.Errorf("a dry run: %+v", p)
		}
		if p := d.preview(wire.NewBulk{Action: "run.retry", IDs: ids}); p.Total != 3 || p.RefusedTotal != 1 || p.Refused[0].Code != "INVALID_TRANSITION" {
			t.Errorf("a dry run by id: %+v", p)
		}
		b := d.bulk(all, "Idempotency-Key", "k", "X-Request-Id", "request-1")
		if again := d.bulk(all, "Idempotency-Key", "k"); again.ID != b.ID || b.Total != 3 || b.Actor != "key:"+made.ID || b.RequestID != "request-1" || b.Filter.DefinitionID != "pay@1" {
			t.Errorf("repeated: %+v, first %+v", again, b)
		}
		d.running()
		other.running()
		other.as(secret).awaitBulk(b.ID, 3, 0)
		for _, id := range ids[:3] {
			var l wire.List[wire.Event]
			d.want(d.ask("GET", "workflow-runs/"+id+"/events", nil, &l), 200, "")
			n := 0
			for _, e := range l.Items {
				if e.Name == "retried" {
					if n++; e.Actor != "key:"+made.ID {
						t.Errorf("retried by %q", e.Actor)
					}
				}
			}
			if n != 1 {
				t.Errorf("run %s was retried %d times", id, n)
			}
		}
		b = d.bulk(wire.NewBulk{Action: "run.retry", IDs: ids[:1]})
		d.awaitBulk(b.ID, 0, 1)
		if l := d.refusedMembers(b.ID); len(l) != 1 || l[0].ID != ids[0] || l[0].Code != "INVALID_TRANSITION" || l[0].Message == "" || l[0].Status != "refused" {
			t.Errorf("refused: %+v", l)
		}
		d.want(d.ask("POST", "bulk/"+b.ID+"/cancel", nil, nil), 409, fault.InvalidTransition)
		if l := d.audited("action=bulk.start"); len(l) != 2 || l[0].RequestID != "request-1" || l[0].Actor != "key:"+made.ID {
			t.Errorf("the audit: %+v", l)
		}
		anonymous.as(foreign).want(anonymous.as(foreign).ask("GET", "bulk/"+b.ID, nil, nil), 404, fault.NotFound)
		anonymous.as(foreign).want(anonymous.as(foreign).ask("GET", "bulk/"+b.ID+"/members", nil, nil), 404, fault.NotFound)
		anonymous.as(foreign).want(anonymous.as(foreign).ask("POST", "bulk/"+b.ID+"/cancel", nil, nil), 404, fault.NotFound)
		anonymous.as(reader).want(anonymous.as(reader).ask("POST", "bulk", all, nil), 403, fault.Forbidden)
		d.want(d.ask("GET", "bulk/"+b.ID+"/members?status=lost", nil, nil), 400, fault.Validation)
		d.want(d.ask("POST", "bulk", wire.NewBulk{Action: "run.retry"}, nil), 400, fault.Validation)
		d.want(d.ask("POST", "bulk", wire.NewBulk{Action: "run.retry", IDs: ids, Filter: &wire.BulkFilter{}}, nil), 400, fault.Validation)
		d.want(d.ask("PUT", "handlers/$bulk", wire.PutHandler{Kind: "worker"}, nil), 400, fault.Validation)
	})
}

// Verifies a bulk on positions: blocked streams are unblocked and skipped, the audit has the actor and the bulk of each, and
// a position that now fails at another event is refused.
func TestABulkOnPositions(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.worker("Mail", "idempotent")
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"paid"}, Handler: "Mail"}, nil), 201, "")
		for _, name := range []string{"o1", "o2"} {
			d.want(d.ask("POST", "streams/"+name+"/events", `{"events":[{"name":"paid"},{"name":"paid"}]}`, nil), 201, "")
		}
		no := false
		for _, x := range d.claim("Mail", 20_000) {
			d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no", Retryable: &no}, nil), 200, "")
		}
		if p := d.preview(wire.NewBulk{Action: "reaction.unblock", Filter: &wire.BulkFilter{Stream: "1$"}}); p.Total != 1 || p.Members[0].ID != "mail/o1" || p.Members[0].State != "blocked" {
			t.Errorf("a dry run: %+v", p)
		}
		skip := d.bulk(wire.NewBulk{Action: "reaction.skip", IDs: []string{"mail/o1", "mail/o2", "mail/o3", "mail"}})
		d.want(d.ask("POST", "reactions/mail/skip", wire.Repair{Streams: []string{"o2"}}, nil), 200, "") // another operator is faster
		x := d.one("Mail")                                                                               // the next event of o2
		d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no", Retryable: &no}, nil), 200, "")
		d.running()
		d.awaitBulk(skip.ID, 1, 3)
		codes := make(map[string]string)
		for _, m := range d.refusedMembers(skip.ID) {
			codes[m.ID] = m.Code
		}
		if codes["mail/o2"] != "CONCURRENCY_ERROR" || codes["mail/o3"] != "NOT_FOUND" || codes["mail"] != "NOT_FOUND" {
			t.Errorf("refused: %v", codes)
		}
		if p := d.position("mail", "o1"); p.Watermark != 0 || p.Blocked {
			t.Errorf("o1 is at %+v", p)
		}
		if p := d.position("mail", "o2"); p.Watermark != 0 || !p.Blocked {
			t.Errorf("o2 is at %+v", p)
		}
		x = d.one("Mail")                                                                                             // the next event of o1
		d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "not yet"}, nil), 200, "") // it is tried again
		for filter, want := range map[wire.BulkFilter]string{{Blocked: new(false)}: "mail/o1 failing", {Blocked: new(true)}: "mail/o2 blocked", {}: "mail/o2 blocked", {Reaction: "mail", Blocked: new(false)}: "mail/o1 failing"} {
			if p := d.preview(wire.NewBulk{Action: "reaction.skip", Filter: &filter}); p.Total != 1 || p.Members[0].ID+" "+p.Members[0].State != want {
				t.Errorf("a dry run with %+v: %+v, want %s", filter, p, want)
			}
		}
		unblock := d.bulk(wire.NewBulk{Action: "reaction.unblock", Filter: &wire.BulkFilter{Reaction: "mail"}})
		d.awaitBulk(unblock.ID, 1, 0)
		if p := d.position("mail", "o2"); p.Watermark != 0 || p.Blocked {
			t.Errorf("o2 is at %+v after it was unblocked", p)
		}
		if l := d.audited("action=reaction.unblock"); len(l) != 1 || l[0].Actor != "dev" || l[0].RequestID != "bulk:"+unblock.ID || l[0].Subject != "reaction/mail/o2" {
			t.Errorf("the audit: %+v", l)
		}
	})
}

// Verifies bulks on operations of an entity and of a step: one answer resolves both, what is due again is withdrawn or
// refused by its kind, and a held operation is released for the epoch that was seen.
func TestABulkOnOperations(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "opaque"})
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		d.worker("Pay", "opaque")
		d.define(oneTask("pay", "Pay"))
		failed := d.start("pay@1", `{}`).ID
		for _, handler := range []string{"Do", "Pay"} {
			d.one(handler)
		}
		d.advance(time.Hour)
		d.want(d.ask("POST", "maintenance", nil, nil), 200, "")
		d.allUncertain(2)
		d.running()
		not := false
		answer := wire.NewBulk{Action: "operation.resolve", Filter: &wire.BulkFilter{}, Happened: &not, Outcome: "failure"}
		if p := d.preview(answer); p.Total != 2 || p.Members[0].State != "uncertain" {
			t.Errorf("a dry run: %+v", p)
		}
		d.awaitBulk(d.bulk(answer).ID, 2, 0)
		d.allUncertain(0)

		if r := d.run(failed); r.Status != "FAILED" {
			t.Errorf("after the resolution: %+v", r)
		}

		var fired wire.Fired
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, &fired), 202, "")
		step := runengine.ClaimedStep{Run: runengine.Run{ID: d.start("pay@1", `{}`).ID}, Step: runengine.Step{Name: "do", Visit: 1}}
		withdraw := d.bulk(wire.NewBulk{Action: "operation.withdraw", IDs: []string{fired.Operation, step.OperationID()}, Reason: "no such worker"})
		d.awaitBulk(withdraw.ID, 1, 1)
		if l := d.refusedMembers(withdraw.ID); len(l) != 1 || l[0].Code != "CONFLICT" {
			t.Errorf("refused: %+v", l)
		}
		var now wire.Entity
		d.want(d.ask("GET", "lifecycles/job/entities/j", nil, &now), 200, "")
		if now.Status != "new" || now.Claim != nil {
			t.Errorf("after the withdrawal: %+v", now)
		}
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], nil), 201, "")
		release := d.bulk(wire.NewBulk{Action: "operation.release", Filter: &wire.BulkFilter{Lifecycle: "invoice"}, Reason: "hangs"})
		d.awaitBulk(release.ID, 1, 0)
		d.want(d.ask("GET", "lifecycles/invoice/entities/i", nil, &now), 200, "")
		if now.Status != "open" || now.Claim != nil {
			t.Errorf("after the release: %+v", now)
		}
		for action, id := range map[string]string{"operation.release": release.ID, "operation.withdraw": withdraw.ID} {
			if l := d.audited("action=" + action); len(l) != 1 || l[0].RequestID != "bulk:"+id || l[0].Actor != "dev" {
				t.Errorf("the audit of %s: %+v", action, l)
			}
		}
	}, invoices(nil))
}

// TestABulkIsNoBatch verifies that the routes of batches and wallets do not reach a bulk.
func TestABulkIsNoBatch(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("w", "h"), nil), 201, "")
		id := d.start("w@1", `{}`).ID
		b := d.bulk(wire.NewBulk{Action: "run.cancel", IDs: []string{id}})
		path := "batches/$bulk%2F" + b.ID
		for _, x := range [][2]string{{"GET", path}, {"GET", path + "/items"}, {"GET", path + "/events"}, {"POST", path + "/cancel"}, {"POST", path + "/seal"}} {
			d.want(d.ask(x[0], x[1], nil, nil), 404, fault.NotFound)
		}
		d.want(d.ask("PUT", "wallets/$bulk", wire.PutWallet{}, nil), 400, fault.Validation)
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("x"), Wallet: "$bulk", Handler: "h", Items: newItems(0, "x")}, nil), 400, fault.Validation)
	})
}
