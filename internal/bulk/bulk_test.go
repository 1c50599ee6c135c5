package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/bulk"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

// failing is a workflow that always fails, so that a run that is retried twice shows it.
var failing = run.Define("failing", "1", run.Task("t", func(context.Context, any) (any, error) {
	return nil, fault.NonRetryable(errors.New("no"))
}))

// part makes an engine serve bulks, as the HTTP API does.
type part struct{}

func (part) Register(ctx context.Context, hf *holdfast.Engine) error {
	bulk.Register(engine.Of(hf))
	return batch.Maintenance().Register(ctx, hf)
}

func parts() []holdfast.Part { return []holdfast.Part{part{}, failing} }

// fixture is an engine, and the runs that have failed on it.
type fixture struct {
	ctx context.Context
	hf  *holdfast.Engine
}

func (x fixture) e() *engine.Engine { return engine.Of(x.hf) }

// fail starts runs, which fail, and returns their ids.
func (x fixture) fail(n int) (ids []string, err error) {
	for i := range n {
		r, _, err := failing.Start(x.ctx, x.hf, nil, run.Key(fmt.Sprint("run", i)))
		if err != nil {
			return nil, err
		}
		ids = append(ids, r.ID)
	}
	return ids, x.settle()
}

func (x fixture) settle() error {
	_, err := holdfasttest.Settle(x.ctx, x.hf)
	return err
}

// retried returns how many times a run was retried, and by whom last.
func (x fixture) retried(id string) (n int, actor string, err error) {
	for ev, err := range stream.Read(x.ctx, x.hf, runengine.Stream(id), 0) {
		if err != nil {
			return 0, "", err
		}
		if ev.Name == "retried" {
			n, actor = n+1, ev.Actor
		}
	}
	return n, actor, nil
}

func (x fixture) mustSettle(t *testing.T) {
	t.Helper()
	if err := x.settle(); err != nil {
		t.Fatal(err)
	}
}

func (x fixture) wantRetried(t *testing.T, ids []string, times int) {
	t.Helper()
	for _, id := range ids {
		if n, _, err := x.retried(id); n != times || err != nil {
			t.Errorf("run %s was retried %d times, want %d: %v", id, n, times, err)
		}
	}
}

func each(t *testing.T, f func(*testing.T, fixture)) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, db string) {
		f(t, fixture{t.Context(), holdfasttest.OpenOn(t, holdfasttest.At(db), parts()...)})
	})
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var retryAll = bulk.Order{Action: "run.retry", Filter: &bulk.Filter{}, Actor: "ann", Request: "request-1"}

// Verifies that a bulk acts once on each member that its filter selected, in the name of its actor, and that ids whose
// objects do not permit the action are listed with the code and message of the single action. The audit has one entry.
// Neither the batch nor the wallet behind it is in the lists of batches and wallets.
func TestABulkActsOnEachMember(t *testing.T) {
	each(t, func(t *testing.T, x fixture) {
		ids := must[[]string](t)(x.fail(3))
		members, refused, err := bulk.Preview(x.ctx, x.e(), retryAll)
		if err != nil || len(members) != 3 || len(refused) != 0 {
			t.Fatalf("a preview: %v, %v, %v", members, refused, err)
		}
		b := must[bulk.Bulk](t)(bulk.Create(x.ctx, x.e(), retryAll))
		if b.Status != "PENDING" || b.Total != 3 || b.Pending != 3 || b.Actor != "ann" || b.Request != "request-1" || b.Filter == nil {
			t.Errorf("created: %+v", b)
		}
		x.mustSettle(t)
		if b = must[bulk.Bulk](t)(bulk.Get(x.ctx, x.e(), b.ID)); b.Status != "COMPLETED" || b.Done != 3 || b.Refused+b.Cancelled+b.Pending+b.Running != 0 {
			t.Errorf("ended: %+v", b)
		}
		x.wantRetried(t, ids, 1)

		again := bulk.Order{Action: "run.resume", IDs: []string{ids[0], "nobody"}, Actor: "ann"}
		if members, refused, err := bulk.Preview(x.ctx, x.e(), again); err != nil || len(members) != 0 || len(refused) != 2 {
			t.Errorf("a preview by id: %v, %v, %v", members, refused, err)
		}
		b = must[bulk.Bulk](t)(bulk.Create(x.ctx, x.e(), again))
		x.mustSettle(t)
		got := must[[]bulk.Result](t)(bulk.Members(x.ctx, x.e(), b.ID, 0, "refused", 10))
		if len(got) != 2 || got[0].ID != ids[0] || got[0].Code != fault.InvalidTransition || got[0].Message == "" || got[1].Code != fault.NotFound {
			t.Errorf("the refused: %+v", got)
		}
		if done := must[[]bulk.Result](t)(bulk.Members(x.ctx, x.e(), b.ID, 0, "done", 10)); len(done) != 0 {
			t.Errorf("done: %+v", done)
		}
		if l := must[[]bulk.Bulk](t)(bulk.List(x.ctx, x.e(), "", 10)); len(l) != 2 || l[0].ID != b.ID || l[0].Refused != 2 {
			t.Errorf("the bulks: %+v", l)
		}
		if l := must[[]audit.Entry](t)(audit.List(x.ctx, x.e(), audit.Filter{Action: "bulk.start"}, "", 10)); len(l) != 2 || l[0].Subject != "bulk/"+b.ID || l[0].Actor != "ann" {
			t.Errorf("the audit: %+v", l)
		}
		if l := must[[]batch.Batch](t)(holdfast.Collect(batch.List(x.ctx, x.hf, batch.Filter{}))); len(l) != 0 {
			t.Errorf("the batches: %+v", l)
		}
		if l := must[[]batch.Wallet](t)(holdfast.Collect(batch.ListWallets(x.ctx, x.hf))); len(l) != 0 {
			t.Errorf("the wallets: %+v", l)
		}
	})
}

// Verifies that a bulk without members ends at once, and that a preview writes nothing.
func TestABulkOfNothing(t *testing.T) {
	each(t, func(t *testing.T, x fixture) {
		must[[]string](t)(x.fail(1))
		before := x.rows(t)
		if members, _, err := bulk.Preview(x.ctx, x.e(), retryAll); err != nil || len(members) != 1 {
			t.Errorf("a preview: %v, %v", members, err)
		}
		if after := x.rows(t); after != before {
			t.Errorf("a preview wrote: %s, before %s", after, before)
		}
		none := bulk.Order{Action: "run.retry", Filter: &bulk.Filter{DefinitionID: "other@1"}}
		if b, err := bulk.Create(x.ctx, x.e(), none); err != nil || b.Status != "COMPLETED" || b.Total != 0 {
			t.Errorf("created: %+v, %v", b, err)
		}
	})
}

// rows counts the rows that a bulk writes.
func (x fixture) rows(t *testing.T) string {
	t.Helper()
	bulks := must[[]bulk.Bulk](t)(bulk.List(x.ctx, x.e(), "", 10))
	entries := must[[]audit.Entry](t)(audit.List(x.ctx, x.e(), audit.Filter{}, "", 10))
	_, err := batch.GetWallet(x.ctx, x.hf, batchengine.Bulk)
	return fmt.Sprint(len(bulks), len(entries), err)
}

// Verifies that a member that changed after it was selected is refused, and that the others are done.
func TestAMemberThatChanged(t *testing.T) {
	each(t, func(t *testing.T, x fixture) {
		ids := must[[]string](t)(x.fail(2))
		b := must[bulk.Bulk](t)(bulk.Create(x.ctx, x.e(), retryAll))
		must[run.Run](t)(run.Retry(x.ctx, x.hf, ids[0], run.By("bob")))
		early := must[bulk.Bulk](t)(bulk.Create(x.ctx, x.e(), bulk.Order{Action: "run.retry", IDs: ids[:1]})) // it has not failed again yet
		x.mustSettle(t)
		for _, id := range []string{b.ID, early.ID} {
			got := must[[]bulk.Result](t)(bulk.Members(x.ctx, x.e(), id, 0, "refused", 10))
			if len(got) != 1 || got[0].ID != ids[0] || got[0].Code != fault.Concurrency && id == b.ID {
				t.Errorf("the refused: %+v", got)
			}
		}
		x.wantRetried(t, ids, 1)
	})
}

// Verifies that a cancel half-way leaves what is done as done, that nothing is done to the other members, and that a member that
// was taken before the cancel and is acted on after it is not changed.
func TestCancelHalfWay(t *testing.T) {
	each(t, func(t *testing.T, x fixture) {
		ids := must[[]string](t)(x.fail(3))
		b := must[bulk.Bulk](t)(bulk.Create(x.ctx, x.e(), retryAll))
		at := must[store.Partition](t)(x.e().Partition(x.ctx, store.Read))
		if found, err := x.e().StepOf(wake.WorkKind{Kind: wake.Batch, Name: batchengine.Bulk})(x.ctx, at); !found || err != nil {
			t.Fatalf("no member was taken: %v", err)
		}
		late := must[[]batchengine.Taken](t)(batchengine.Take(x.ctx, x.e(), batchengine.Ask{Handlers: []string{batchengine.Bulk}, Holder: "me", Limit: 1, Lease: time.Minute}))
		for range 2 { // a second cancel changes nothing
			if b, err := bulk.Cancel(x.ctx, x.e(), b.ID, "bob"); err != nil || b.Status == "CANCELLED" || !b.CancelRequested {
				t.Errorf("cancelled: %+v, %v", b, err)
			}
		}
		if err := bulk.Serve(x.ctx, x.e(), late[0]); fault.CodeOf(err) != fault.LeaseLost {
			t.Errorf("a member was acted on after the cancel: %v", err)
		}
		x.mustSettle(t)
		if b = must[bulk.Bulk](t)(bulk.Get(x.ctx, x.e(), b.ID)); b.Status != "CANCELLED" || b.Done != 1 || b.Cancelled != 2 {
			t.Errorf("ended: %+v", b)
		}
		done := must[[]bulk.Result](t)(bulk.Members(x.ctx, x.e(), b.ID, 0, "done", 10))
		total := 0
		for _, id := range ids {
			n, _, err := x.retried(id)
			if total += n; err != nil || n != 0 && id != done[0].ID {
				t.Errorf("run %s was retried %d times, done is %+v: %v", id, n, done, err)
			}
		}
		if total != 1 {
			t.Errorf("%d runs were retried, want 1", total)
		}
		if l := must[[]audit.Entry](t)(audit.List(x.ctx, x.e(), audit.Filter{Action: "bulk.cancel"}, "", 10)); len(l) != 1 || l[0].Actor != "bob" {
			t.Errorf("the audit: %+v", l)
		}
	})
}

// Verifies that two nodes that run, and callers that retry the same runs one by one, share the retries: each run was retried as
// often as callers were told, and the bulk counts a member as done only if the bulk has retried it.
func TestABulkAndSingleCallers(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, db string) {
		x := fixture{t.Context(), holdfasttest.OpenOn(t, holdfasttest.At(db), parts()...)}
		other := holdfasttest.OpenOn(t, holdfasttest.At(db), parts()...)
		ids := must[[]string](t)(x.fail(12))
		b := must[bulk.Bulk](t)(bulk.Create(x.ctx, x.e(), retryAll))
		ctx, stop := context.WithCancel(x.ctx)
		var loops, callers sync.WaitGroup
		for _, hf := range []*holdfast.Engine{x.hf, other} {
			loops.Go(func() { _ = hf.Run(ctx) })
		}
		single := make([]int, len(ids))
		for i, id := range ids {
			callers.Go(func() {
				if _, err := run.Retry(x.ctx, x.hf, id, run.By("bob")); err == nil {
					single[i]++
				}
			})
		}
		callers.Wait()
		for b.Status != "COMPLETED" {
			here, end := x.e().Hub().Wait(batchengine.ProgressTopic(batchengine.BulkPrefix + b.ID))
			there, endThere := engine.Of(other).Hub().Wait(batchengine.ProgressTopic(batchengine.BulkPrefix + b.ID))
			if b = must[bulk.Bulk](t)(bulk.Get(x.ctx, x.e(), b.ID)); b.Status != "COMPLETED" {
				select {
				case <-here:
				case <-there:
				case <-x.ctx.Done():
				}
			}
			end()
			endThere()
		}
		stop()
		loops.Wait()
		done := make(map[string]int)
		for _, m := range must[[]bulk.Result](t)(bulk.Members(x.ctx, x.e(), b.ID, 0, "done", 100)) {
			done[m.ID] = 1
		}
		for i, id := range ids {
			if n, _, err := x.retried(id); err != nil || n != single[i]+done[id] {
				t.Errorf("run %s was retried %d times, by callers %d and the bulk %d: %v", id, n, single[i], done[id], err)
			}
		}
		if int(b.Done) != len(done) || b.Done+b.Refused != b.Total {
			t.Errorf("the bulk: %+v, done %d", b, len(done))
		}
	})
}

// Verifies that a holder that acts on a member twice changes it once, although the member permits it again and the bulk has
// ended.
func TestAHolderThatActsTwice(t *testing.T) {
	each(t, func(t *testing.T, x fixture) {
		ids := must[[]string](t)(x.fail(1))
		must[bulk.Bulk](t)(bulk.Create(x.ctx, x.e(), retryAll))
		taken := must[[]batchengine.Taken](t)(batchengine.Take(x.ctx, x.e(), batchengine.Ask{Handlers: []string{batchengine.Bulk}, Holder: "me", Limit: 1, Lease: time.Minute}))[0]
		taken.Input = []byte(`{"id":"` + ids[0] + `"}`) // not bound to the version
		for _, want := range []fault.Code{"", fault.LeaseLost} {
			if err := bulk.Serve(x.ctx, x.e(), taken); fault.CodeOf(err) != want {
				t.Errorf("got %v, want %q", err, want)
			}
			x.mustSettle(t) // the run fails again
		}
		x.wantRetried(t, ids, 1)
	})
}

// Verifies that orders that mean nothing, or more than a bulk can do, are refused.
func TestOrders(t *testing.T) {
	each(t, func(t *testing.T, x fixture) {
		all := &bulk.Filter{}
		for name, o := range map[string]bulk.Order{
			"action":         {Action: "run.delete", Filter: all},
			"twice":          {Action: "run.retry", IDs: []string{"a", "a"}},
			"empty id":       {Action: "run.retry", IDs: []string{""}},
			"many":           {Action: "run.retry", IDs: make([]string, bulk.MaxIDs+1)},
			"status":         {Action: "run.retry", Filter: &bulk.Filter{Status: "COMPLETED"}},
			"field":          {Action: "run.retry", Filter: &bulk.Filter{Stream: "x"}},
			"source":         {Action: "reaction.skip", Filter: &bulk.Filter{Source: "x"}},
			"pattern":        {Action: "reaction.skip", Filter: &bulk.Filter{Stream: "("}},
			"not blocked":    {Action: "reaction.unblock", Filter: &bulk.Filter{Blocked: new(false)}},
			"no answer":      {Action: "operation.resolve", Filter: all},
			"outcome":        {Action: "operation.resolve", Filter: all, Outcome: "maybe"},
			"needless":       {Action: "operation.release", Filter: all, Outcome: "success"},
			"needless cause": {Action: "run.retry", Filter: all, Reason: "why"},
		} {
			if _, err := bulk.Create(x.ctx, x.e(), o); fault.CodeOf(err) != fault.Validation {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := bulk.Create(x.ctx, x.e(), bulk.Order{Action: "reaction.skip", Filter: &bulk.Filter{Reaction: "nobody"}}); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("an unknown reaction: %v", err)
		}
		if _, err := bulk.Get(x.ctx, x.e(), "nobody"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("an unknown bulk: %v", err)
		}
		if _, err := bulk.Cancel(x.ctx, x.e(), "a/b", ""); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("an impossible id: %v", err)
		}
		for _, n := range []batchengine.New{{ID: "b", Wallet: "w", Handler: batchengine.Bulk}, {ID: batchengine.BulkPrefix + "b", Wallet: "w", Handler: "h"}} {
			if _, err := batchengine.Create(x.ctx, x.e(), n); fault.CodeOf(err) != fault.Validation {
				t.Errorf("a batch that passes for a bulk: %v", err)
			}
		}
	})
}

// Verifies that, whatever crashes at whatever point, each member is acted on once, although a run that was retried fails
// again and would permit another retry, and that the bulk ends and counts it once.
func TestCrashOfABulk(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Parts: parts,
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			x := fixture{ctx, hf}
			all, err := bulk.List(ctx, x.e(), "", 10)
			if err == nil && len(all) == 0 {
				if _, err = x.fail(2); err == nil {
					_, err = bulk.Create(ctx, x.e(), retryAll)
				}
			}
			if err == nil {
				err = x.settle()
			}
			return err
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			x := fixture{ctx, hf}
			all, err := bulk.List(ctx, x.e(), "", 10)
			if err != nil || len(all) != 1 || all[0].Status != "COMPLETED" || all[0].Done != 2 || all[0].Total != 2 {
				return fmt.Errorf("the bulks: %+v, %w", all, err)
			}
			members, err := bulk.Members(ctx, x.e(), all[0].ID, 0, "done", 10)
			if err != nil || len(members) != 2 {
				return fmt.Errorf("the members: %+v, %w", members, err)
			}
			for _, m := range members {
				if n, actor, err := x.retried(m.ID); n != 1 || actor != "ann" || err != nil {
					return fmt.Errorf("run %s was retried %d times by %q: %v", m.ID, n, actor, err)
				}
			}
			return nil
		},
	})
}

// TestOldBulksGo verifies that a bulk and its members are deleted after the retention of batches.
func TestOldBulksGo(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, db string) {
		x := fixture{t.Context(), holdfasttest.OpenOn(t, holdfasttest.At(db), append(parts(), batch.Retention(time.Hour))...)}
		must[[]string](t)(x.fail(3))
		b := must[bulk.Bulk](t)(bulk.Create(x.ctx, x.e(), retryAll))
		x.mustSettle(t)
		holdfasttest.Advance(t, x.hf, time.Hour-time.Minute)
		x.e().Round(x.ctx)
		if got := must[[]bulk.Result](t)(bulk.Members(x.ctx, x.e(), b.ID, 0, "", 10)); len(got) != 3 {
			t.Errorf("%d members before the retention has passed, want 3", len(got))
		}
		holdfasttest.Advance(t, x.hf, 2*time.Minute)
		x.e().Round(x.ctx)
		if _, err := bulk.Get(x.ctx, x.e(), b.ID); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("error %v, want NOT_FOUND", err)
		}
		if all := must[[]bulk.Bulk](t)(bulk.List(x.ctx, x.e(), "", 10)); len(all) != 0 {
			t.Errorf("the bulks: %+v", all)
		}
		if report, err := x.hf.Check(x.ctx); err != nil || !report.Clean() {
			t.Errorf("check: %v, error %v", report.Violations, err)
		}
	})
}
