package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/wire"
)

// snooze gives a task back for an hour, twice, and checks the status.
func (d *testAPI) snooze(x wire.Task, status string) {
	d.t.Helper()
	for _, ms := range []wire.Millis{0, -1, 30*24*3600*1000 + 1} {
		d.want(d.ask("POST", "tasks/"+x.ID+"/snooze", wire.SnoozeTask{Epoch: x.Epoch, DelayMs: ms}, nil), 400, fault.Validation)
	}
	for range 2 { // the repetition returns the same
		var ended wire.EndedTask
		d.want(d.ask("POST", "tasks/"+x.ID+"/snooze", wire.SnoozeTask{Epoch: x.Epoch, DelayMs: 3_600_000}, &ended), 200, "")
		if ended.Status != status {
			d.t.Errorf("%s: got %+v, want %s", x.Kind, ended, status)
		}
	}
}

// wantSnoozed checks that a task is not handed out for an hour, and then as if it had not been handed out
// before: with the same attempt. It returns the task.
func (d *testAPI) wantSnoozed(x wire.Task) wire.Task {
	d.t.Helper()
	holdfasttest.Advance(d.t, d.engine, 59*time.Minute)
	if early := d.claim(x.Handler, 0); len(early) > 0 {
		d.t.Errorf("claimed %+v after 59 minutes, want none", early)
	}
	holdfasttest.Advance(d.t, d.engine, 2*time.Minute)
	again := d.one(x.Handler)
	if again.Attempt != x.Attempt || again.Kind != x.Kind || again.IdempotencyKey != x.IdempotencyKey || again.Epoch <= x.Epoch {
		d.t.Errorf("claimed %+v, want %+v under a higher epoch", again, x)
	}
	for _, how := range []string{"snooze", "complete"} { // another holder has it
		d.want(d.ask("POST", "tasks/"+x.ID+"/"+how, exampleOf(how, x.Epoch), nil), 409, fault.LeaseLost)
	}
	return again
}

func exampleOf(how string, epoch int64) any {
	if how == "snooze" {
		return wire.SnoozeTask{Epoch: epoch, DelayMs: 1}
	}
	return wire.CompleteTask{Epoch: epoch}
}

func (d *testAPI) complete(x wire.Task) {
	d.t.Helper()
	d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 200, "")
	d.want(d.ask("POST", "tasks/"+x.ID+"/snooze", wire.SnoozeTask{Epoch: x.Epoch, DelayMs: 1}, nil), 409, fault.LeaseLost)
}

// TestAWorkerSnoozesATask verifies that a worker can give back an event, an item and a step of a run until a
// later time, more often than it may fail, and that this counts neither as an attempt nor as a failure; and
// that a step of a lifecycle cannot be given back this way.
func TestAWorkerSnoozesATask(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Mail", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
		d.want(d.ask("PUT", "handlers/Act", wire.PutHandler{Kind: "worker", Safety: "opaque"}, nil), 201, "")
		failed := func(x wire.Task) wire.Task {
			t.Helper()
			d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no"}, nil), 200, "")
			holdfasttest.Advance(t, d.engine, time.Minute)
			return d.one(x.Handler)
		}
		begin := map[string]func(){
			"snoozed": func() {
				d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"n"}, Handler: "Mail"}, nil), 201, "")
				d.append("s", 2)
			},
			"waiting": func() {
				d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
				d.want(d.ask("POST", "wallets/w/credit", wire.Credit{Points: 7, Reference: "r"}, nil), 200, "")
				d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Mail", Items: newItems(7, "k")}, nil), 201, "")
			},
			"WAITING": func() {
				d.want(d.ask("POST", "workflow-definitions", oneTask("mail", "Mail"), nil), 201, "")
				d.start("mail@1", `{}`)
			},
		}
		for status, begin := range begin {
			begin()
			x := failed(d.one("Mail"))
			for range 4 {
				d.snooze(x, status)
				x = d.wantSnoozed(x)
			}
			d.complete(x)
			if status == "snoozed" {
				d.complete(d.one("Mail")) // the second event
			}
		}
		d.balance(0)

		// An opaque step that is given back has not acted.
		d.want(d.ask("POST", "workflow-definitions", oneTask("act", "Act"), nil), 201, "")
		r := d.start("act@1", `{}`)
		x := d.one("Act")
		d.snooze(x, "WAITING")
		if now := d.run(r.ID); now.Status != "WAITING" {
			t.Errorf("got run %+v, want WAITING", now)
		}
		x = d.wantSnoozed(x)
		d.snooze(x, "WAITING")
		d.want(d.ask("POST", "workflow-runs/"+r.ID+"/cancel", nil, nil), 200, "")
		if now := d.run(r.ID); now.Status != "CANCELLED" {
			t.Errorf("got run %+v, want CANCELLED: nothing may have happened", now)
		}

		d.want(d.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "handlers/May", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "lifecycles/job", mayConfig, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: new("j")}, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "any"}, nil), 202, "")
		x = d.one("May")
		d.want(d.ask("POST", "tasks/"+x.ID+"/snooze", wire.SnoozeTask{Epoch: x.Epoch, DelayMs: 1000}, nil), 400, fault.Validation)
		d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 200, "")
	})
}

// TestASnoozeLeavesNoEffectOpen verifies that a step of a run with an effect of unknown outcome cannot be given
// back, and can once the outcome is reported; and that a snooze of a canceled step ends the run.
func TestASnoozeLeavesNoEffectOpen(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil), 201, "")
		r := d.start("pay@1", `{}`)
		x := d.one("Pay")
		d.want(d.ask("POST", "tasks/"+x.ID+"/effects", wire.EffectCall{Epoch: x.Epoch, Name: "charge"}, nil), 200, "")
		d.want(d.ask("POST", "tasks/"+x.ID+"/snooze", wire.SnoozeTask{Epoch: x.Epoch, DelayMs: 1000}, nil), 409, fault.Conflict)
		d.want(d.ask("POST", "tasks/"+x.ID+"/effects", wire.EffectCall{Epoch: x.Epoch, Name: "charge", Result: []byte(`1`)}, nil), 200, "")
		d.snooze(x, "WAITING")
		x = d.wantSnoozed(x)
		var known wire.EffectState
		d.want(d.ask("POST", "tasks/"+x.ID+"/effects", wire.EffectCall{Epoch: x.Epoch, Name: "charge"}, &known), 200, "")
		if known.State != "done" || string(known.Result) != "1" {
			t.Errorf("got effect %+v, want it done", known)
		}
		d.complete(x)
		if now := d.run(r.ID); now.Status != "COMPLETED" {
			t.Errorf("got run %+v, want COMPLETED", now)
		}
		r = d.start("pay@1", `{}`)
		x = d.one("Pay")
		d.want(d.ask("POST", "workflow-runs/"+r.ID+"/cancel", nil, nil), 202, "")
		d.want(d.ask("POST", "tasks/"+x.ID+"/snooze", wire.SnoozeTask{Epoch: x.Epoch, DelayMs: 1000}, nil), 200, "")
		if now := d.run(r.ID); now.Status != "CANCELLED" {
			t.Errorf("got run %+v, want CANCELLED", now)
		}
	})
}

// TestAStreamIsSnoozed verifies that a stream that was claimed manually can be given back until a later time, by
// its holder only, that a repetition returns the same, and that this does not count as a failure.
func TestAStreamIsSnoozed(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
		d.append("s", 3)
		l := d.wantShown("r", "s", 0, 2)
		in := wire.SnoozeLease{Stream: "s", Epoch: l.Epoch, Token: l.Token, DelayMs: 3_600_000}
		for i, change := range []func(*wire.SnoozeLease){func(x *wire.SnoozeLease) { x.Token = "" }, func(x *wire.SnoozeLease) { x.DelayMs = 0 }, func(x *wire.SnoozeLease) { x.Epoch = 0 }} {
			bad := in
			change(&bad)
			if resp := d.ask("POST", "reactions/r/snooze", bad, nil); resp.StatusCode != 400 {
				t.Errorf("bad request %d: got status %d, want 400", i, resp.StatusCode)
			}
		}
		var first, again wire.SnoozedLease
		d.want(d.ask("POST", "reactions/r/snooze", in, &first), 200, "")
		d.want(d.ask("POST", "reactions/r/snooze", in, &again), 200, "")
		if first.NotBefore == nil || fmt.Sprint(first.NotBefore) != fmt.Sprint(again.NotBefore) {
			t.Errorf("got %v, and %v again, want the same time", first.NotBefore, again.NotBefore)
		}
		if early := d.lease("r", 1); len(early) > 0 {
			t.Errorf("claimed %+v at once, want none", early)
		}
		holdfasttest.Advance(t, d.engine, time.Hour)
		next := d.wantShown("r", "s", 0, 2)
		if at := d.position("r", "s"); at.Retry != 0 || next.Attempt != 1 {
			t.Errorf("got attempt %d at %+v, want the first, without a failure", next.Attempt, at)
		}
		d.want(d.ask("POST", "reactions/r/snooze", in, nil), 409, fault.LeaseLost)
		wantResults(t, "the next holder", d.acks("r", wire.Ack{Stream: "s", Epoch: next.Epoch, Token: next.Token, Version: 2}), "s acked")
		in.Epoch, in.Token = next.Epoch, next.Token
		d.want(d.ask("POST", "reactions/r/snooze", in, nil), 409, fault.LeaseLost)
	})
}
