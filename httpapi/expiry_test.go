package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/wire"
)

// TestAClaimEndsExpiredLeasesFirst verifies that the work of a crashed worker, of each kind, is
// handed to the next claim although no janitor runs; that the crash is counted; and that it is not
// handed out before the lease has expired.
func TestAClaimEndsExpiredLeasesFirst(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		d.want(d.ask("PUT", "reactions/hand", wire.PutReaction{Events: []string{"n"}}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/served", wire.PutReaction{Events: []string{"n"}, Handler: "Do"}, nil), 201, "")
		d.append("s", 1)
		d.want(d.ask("PUT", "handlers/Item", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Item", Parallel: 1, Items: newItems(0, "x")}, nil), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("one", "Do"), nil), 201, "")
		d.start("one@1", `{}`)
		none := wire.Millis(0)
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		claim := func() (kinds []string) {
			t.Helper()
			var got wire.Tasks
			d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Do", "Item"}, WaitMs: &none}, &got), 200, "")
			for _, x := range got.Tasks {
				d.want(d.ask("POST", "tasks/"+x.ID+"/renew", wire.Renew{Epoch: x.Epoch}, nil), 200, "") // the worker was heard of
				if x.Kind == "action" {                                                                 // without an effect the entity goes back, so there is no task any more
					d.want(d.ask("POST", "tasks/"+x.ID+"/effects", wire.EffectCall{Epoch: x.Epoch, Name: "e"}, nil), 200, "")
					d.want(d.ask("POST", "tasks/"+x.ID+"/effects", wire.EffectCall{Epoch: x.Epoch, Name: "e", Result: []byte(`1`)}, nil), 200, "")
				}
				kinds = append(kinds, fmt.Sprint(x.Kind, " ", x.Attempt))
			}
			slices.Sort(kinds)
			return kinds
		}
		hand := d.lease("hand", 1)[0]
		d.want(d.ask("POST", "reactions/hand/renew", wire.RenewLease{Stream: "s", Epoch: hand.Epoch, Token: hand.Token, LeaseMs: 60_000}, nil), 200, "")
		wantResults(t, "the first claim", claim(), "action 1", "batchItem 1", "reaction 1", "runStep 1")
		wantResults(t, "before the leases have expired", claim())
		if more := d.lease("hand", 1); len(more) != 0 {
			t.Errorf("claimed before the lease expired: %+v", more)
		}
		holdfasttest.Advance(t, d.engine, 2*time.Minute)
		if l := d.lease("hand", 1); len(l) != 1 || l[0].Attempt != 2 {
			t.Errorf("claimed %+v after the lease expired, want attempt 2", l)
		}
		again := claim()
		holdfasttest.Advance(t, d.engine, 2*time.Second) // a step and an item pause after a crash
		again = append(again, claim()...)
		slices.Sort(again)
		wantResults(t, "after the leases have expired", again, "action 2", "batchItem 2", "reaction 2", "runStep 2")
	})
}

// TestTheJanitorOfALifecycleThatWasPut verifies that the janitor period of a published lifecycle
// counts: a sweep ignores an expired lease until the period is over, but a claim does not wait for
// it.
func TestTheJanitorOfALifecycleThatWasPut(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		put := func(every string) {
			t.Helper()
			config := strings.Replace(jobConfig, `"janitor": {`, `"janitor": {"every": "`+every+`", `, 1)
			if resp := d.ask("PUT", "lifecycles/job", config, nil); resp.StatusCode >= 300 {
				t.Fatal(textOf(resp))
			}
		}
		put("1h")
		for _, id := range []string{"a", "b", "c"} {
			d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: new(id)}, nil), 201, "")
		}
		lapse := func(id string) {
			t.Helper()
			d.want(d.ask("POST", "lifecycles/job/entities/"+id+"/claims", wire.NewClaim{StepKey: "do", Requester: "admin"}, nil), 201, "")
			holdfasttest.Advance(t, d.engine, time.Hour)
		}
		is := func(id, status string) {
			t.Helper()
			engine.Of(d.engine).Round(t.Context())
			var e wire.Entity
			d.want(d.ask("GET", "lifecycles/job/entities/"+id, nil, &e), 200, "")
			if e.Status != status {
				t.Errorf("%s has status %s, want %s", id, e.Status, status)
			}
		}
		lapse("a")
		is("a", "new") // the first sweep
		lapse("b")
		is("b", "doing")
		d.want(d.ask("POST", "lifecycles/job/entities/b/claims", wire.NewClaim{StepKey: "do", Requester: "admin"}, nil), 201, "")
		put("1ms")
		lapse("c")
		is("c", "new")
	})
}

// TestAResetOfABusyStream verifies that the first request to reset a stream that workers lease all
// the time is accepted, by hand and as a task: the reset is pending, renew reports it and does not
// extend the lease, and the end of the lease resets the stream.
func TestAResetOfABusyStream(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Do", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/hand", wire.PutReaction{Events: []string{"n"}}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/task", wire.PutReaction{Events: []string{"n"}, Handler: "Do"}, nil), 201, "")
		d.append("s", 2)
		none := wire.Millis(0)
		next := func() wire.Task {
			t.Helper()
			var got wire.Tasks
			d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Do"}, WaitMs: &none}, &got), 200, "")
			if len(got.Tasks) != 1 {
				t.Fatalf("claimed %+v, want one task", got.Tasks)
			}
			return got.Tasks[0]
		}
		l, x := d.lease("hand", 1)[0], next()
		for _, reaction := range []string{"hand", "task"} {
			for range 2 {
				var done wire.Repaired
				d.want(d.ask("POST", "reactions/"+reaction+"/reset", wire.Repair{Streams: []string{"s"}}, &done), 200, "")
				if !slices.Equal(done.Pending, []string{"s"}) || len(done.Streams)+len(done.Held) != 0 {
					t.Fatalf("reset of %s returned %+v, want s pending", reaction, done)
				}
			}
			if p := d.position(reaction, "s"); !p.ResetRequested || p.LeasedBy == "" {
				t.Errorf("%s is at %+v, want it leased with a reset requested", reaction, p)
			}
		}
		var r wire.Renewed
		d.want(d.ask("POST", "reactions/hand/renew", wire.RenewLease{Stream: "s", Epoch: l.Epoch, Token: l.Token, LeaseMs: 3_600_000}, &r), 200, "")
		if !r.CancelRequested || !r.Until.Equal(l.Until.Time) {
			t.Errorf("renewed the lease: %+v, want cancelRequested and until %v", r, l.Until)
		}
		d.want(d.ask("POST", "tasks/"+x.ID+"/renew", wire.Renew{Epoch: x.Epoch, LeaseMs: 3_600_000}, &r), 200, "")
		if !r.CancelRequested || !r.Until.Equal(x.Until.Time) {
			t.Errorf("renewed the task: %+v, want cancelRequested and until %v", r, x.Until)
		}
		wantResults(t, "the end of the lease", d.acks("hand", wire.Ack{Stream: "s", Epoch: l.Epoch, Token: l.Token, Version: 1}), "s acked")
		d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 200, "")
		d.wantShown("hand", "s", 0, 1)
		if again := next(); again.Context.Event.Version != 0 || again.IdempotencyKey == x.IdempotencyKey {
			t.Errorf("claimed %+v after the reset, want version 0 under a new idempotency key", again)
		}
	})
}
