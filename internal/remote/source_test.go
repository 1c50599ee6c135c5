package remote_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/internal/workflow"
	"github.com/holdfast-go/holdfast/run"
)

// remoteHandlers accepts lifecycles whose handlers are workers.
type remoteHandlers struct{}

func (remoteHandlers) Register(ctx context.Context, e *holdfast.Engine) error {
	return lifecycleengine.ServePublished(ctx, engine.Of(e), func(context.Context, lifecycleengine.RemoteCall) (lifecycleengine.RemoteAnswer, error) {
		panic("no handler has a URL")
	}, nil)
}

const job = `{
  "workflow": "job", "owning_module": "work", "initial_status": "new", "status_types": ["new", "doing", "done"], "janitor": {"stuck_after": "5m"},
  "steps": [{"step_id": 1, "step_key": "do", "status": "new", "successful_claim_state": ["doing", "new"], "successful_state": "done", "action": "Do"}]
}`

const task = `{"name": "one", "version": "1", "steps": [{"name": "do", "type": "task", "handler": "Do", "retry": {"maxAttempts": 3, "backoffMs": 1}}]}`

// work creates three pieces of work of each kind for the handler Do, which is a worker.
func work(t *testing.T, ctx context.Context, hf *holdfast.Engine) {
	t.Helper()
	e := engine.Of(hf)
	err := e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := remotehandler.Put(ctx, tx, remotehandler.Handler{Name: "Do", Kind: "worker", Safety: "idempotent", OnUnknown: "retry"})
		return err
	})
	ok := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(what, err)
		}
	}
	ok("the handler", err)
	o := reactions.DefaultOptions()
	o.Handler = "Do"
	_, err = reactions.Register(ctx, e, reactions.Definition{Name: "mail", Options: o})
	ok("the reaction", err)
	_, err = lifecycleengine.PutConfig(ctx, e, "job", []byte(job), false)
	ok("the lifecycle", err)
	l, err := lifecycleengine.Named(ctx, e, "job")
	ok("the lifecycle", err)
	def, bad := workflow.Parse([]byte(task))
	if def == nil {
		t.Fatal(bad)
	}
	_, err = runengine.Define(ctx, e, def)
	ok("the definition", err)
	var items []batchengine.Work
	for _, id := range []string{"a", "b", "c"} {
		_, err = events.Append(ctx, e, events.AppendArgs{Stream: id, Events: []events.Event{{Name: "paid", Data: []byte(`{}`)}}})
		ok("the event", err)
		_, err = l.CreateAt(ctx, e, id, "", []byte(`{}`), "me")
		ok("the entity", err)
		if _, err = l.Fire(ctx, e, id, "do", "admin", lifecycleengine.FireOptions{}); fault.CodeOf(err) != fault.ActionFailed { // it waits for a worker
			t.Fatal("fired", err)
		}
		_, _, err = runengine.LocalOf(e).Executor.Start(ctx, e, runengine.Start{Definition: def.ID()})
		ok("the run", err)
		items = append(items, batchengine.Work{Key: id, Input: []byte(`{}`)})
	}
	_, err = batch.PutWallet(ctx, hf, "w")
	ok("the wallet", err)
	_, err = batchengine.Create(ctx, e, batchengine.New{ID: "b", Wallet: "w", Handler: "Do", MaxConcurrency: 3, Items: items})
	ok("the batch", err)
}

func sources(e *engine.Engine) []remote.Source {
	return []remote.Source{
		lifecycleengine.Remote{Engine: e},
		&reactions.Remote{Engine: e, Log: e.Log(), After: lifecycleengine.After{Engine: e}},
		&batchengine.Remote{Engine: e},
		&runengine.Remote{Engine: e, Executor: runengine.LocalOf(e).Executor, Node: e.Node(), Log: e.Log()},
	}
}

// TestEverySourceKeepsTheContract verifies that every source keeps the contract of
// [remote.Source]: one source owns an id, a task ends, and its lease is renewed, only under the epoch of the lease and before it
// expires, a repeated end returns the same result, a failed task is given out again, and other
// workspaces get nothing.
func TestEverySourceKeepsTheContract(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		e, ctx := engine.Of(hf), holdfast.InWorkspace(t.Context(), "acme")
		work(t, ctx, hf)
		all := sources(e)
		for i, s := range all {
			one := func(claim remote.Claim) remote.Task {
				t.Helper()
				o, err := s.Offer(ctx, claim)
				if err != nil {
					t.Fatal(err)
				}
				if len(o.Topics) == 0 || len(o.Due) == 0 || o.Leased == "" {
					t.Fatalf("got offer %+v", o)
				}
				taken, err := o.Take(ctx, e, 1)
				if err != nil || len(taken) != 1 {
					t.Fatalf("source %d returned %d tasks, error %v, want 1", i, len(taken), err)
				}
				return taken[0]
			}
			claim := remote.Claim{Workspace: "acme", Revision: 1, Worker: "w", Handlers: []string{"Do"}, Lease: time.Minute}
			first := one(claim)
			for j, other := range all {
				if other.Owns(first.ID) != (i == j) {
					t.Errorf("%s: Owns of source %d returned %v", first.Kind, j, other.Owns(first.ID))
				}
			}
			h, done := remote.Lease{ID: first.ID, Epoch: first.Epoch}, remote.Result{Output: json.RawMessage(`{"ok":true}`)}
			late := h
			late.Epoch++
			lost := func(what string, h remote.Lease) {
				t.Helper()
				_, completed := s.Complete(ctx, h, done)
				_, failed := s.Fail(ctx, h, remote.Failure{Message: "no paper"})
				_, renewed := s.Renew(ctx, h, 2*time.Minute)
				for i, err := range []error{completed, failed, renewed} {
					if fault.CodeOf(err) != fault.LeaseLost {
						t.Errorf("%s: %s under %s returned %v, want LEASE_LOST", first.Kind, []string{"Complete", "Fail", "Renew"}[i], what, err)
					}
				}
			}
			lost("a wrong epoch", late)
			if r, err := s.Renew(ctx, h, 2*time.Minute); err != nil || !r.Until.After(first.Until) {
				t.Errorf("%s: renewed until %v, error %v", first.Kind, r.Until, err)
			}
			ended, err := s.Complete(ctx, h, done)
			again, twice := s.Complete(ctx, h, done)
			if err != nil || twice != nil || ended != again || ended.Status == "" {
				t.Errorf("%s: Complete returned %+v %v, and the second time %+v %v", first.Kind, ended, err, again, twice)
			}
			if _, err := s.Renew(ctx, h, time.Minute); fault.CodeOf(err) != fault.LeaseLost {
				t.Errorf("%s: Renew after the end returned %v, want LEASE_LOST", first.Kind, err)
			}
			second := one(claim)
			if second.ID == first.ID {
				t.Errorf("%s: task was handed out again after its end", first.Kind)
			}
			h = remote.Lease{ID: second.ID, Epoch: second.Epoch}
			failed, err := s.Fail(ctx, h, remote.Failure{Message: "no paper", Final: true})
			same, twice := s.Fail(ctx, h, remote.Failure{Message: "no paper", Final: true})
			if err != nil || twice != nil || failed.Status != same.Status {
				t.Errorf("%s: Fail returned %+v %v, and the second time %+v %v", first.Kind, failed, err, same, twice)
			}
			third := one(claim)
			holdfasttest.Advance(t, hf, 2*time.Minute)
			lost("a lease that has expired", remote.Lease{ID: third.ID, Epoch: third.Epoch})
			o, err := s.Offer(holdfast.InWorkspace(ctx, "other"), remote.Claim{Workspace: "other", Worker: "w", Handlers: []string{"Do"}, Lease: time.Minute})
			if err == nil {
				var taken []remote.Task
				if taken, err = o.Take(holdfast.InWorkspace(ctx, "other"), e, 1); len(taken) > 0 {
					t.Errorf("%s: another workspace took %+v", first.Kind, taken)
				}
			}
			if err != nil {
				t.Error(err)
			}
		}
	}, remoteHandlers{}, run.Maintenance(), batch.Maintenance())
}

// fake gives out a number of tasks of one kind and size.
type fake struct {
	remote.Source
	kind string
	left *int
	size int
	err  error
}

func (f fake) Offer(context.Context, remote.Claim) (remote.Offer, error) {
	return remote.Offer{Leased: "held/" + f.kind, Due: []wake.WorkKind{{Kind: f.kind}}, Take: func(_ context.Context, _ store.Doer, limit int) (all []remote.Task, err error) {
		for ; *f.left > 0 && len(all) < limit; *f.left-- {
			all = append(all, remote.Task{Kind: f.kind, Input: make([]byte, f.size)})
		}
		return all, f.err
	}}, nil
}

// TestOffersAreTakenInTurn verifies that each source gets its turn to be first, that a
// transaction takes from one source only, that leased tasks are returned although a
// later source fails, and that the documents of a claim are bounded.
func TestOffersAreTakenInTurn(t *testing.T) {
	take := func(d store.Doer, limit int, all ...fake) (kinds []string, err error) {
		var list []remote.Source
		due := make(map[wake.WorkKind]bool)
		for _, f := range all {
			list = append(list, f)
			due[wake.WorkKind{Kind: f.kind}] = true
		}
		s := remote.NewSources(list...)
		for range all {
			if _, err := s.Offers(t.Context(), remote.Claim{}); err != nil { // like a caller that needs only the topics: no turn
				return nil, err
			}
			o, err := s.Offers(t.Context(), remote.Claim{})
			if err != nil {
				return nil, err
			}
			taken, failed := o.Take(t.Context(), d, due, limit)
			if failed != nil {
				err = failed
			}
			for _, x := range taken {
				kinds = append(kinds, x.Kind)
			}
			kinds = append(kinds, "|")
			if err != nil {
				return kinds, err
			}
		}
		return kinds, nil
	}
	n := func(n int) *int { return &n }
	if got, err := take(nil, 1, fake{kind: "a", left: n(9)}, fake{kind: "b", left: n(9)}, fake{kind: "c", left: n(9)}, fake{kind: "d", left: n(9)}); err != nil ||
		!slices.Equal(got, []string{"b", "|", "c", "|", "d", "|", "a", "|"}) {
		t.Errorf("one at a time: got %v, error %v", got, err)
	}
	if got, err := take(new(store.Tx), 9, fake{kind: "a", left: n(1)}, fake{kind: "b", left: n(1)}); err != nil || !slices.Equal(got, []string{"b", "|", "a", "|"}) {
		t.Errorf("in a transaction: got %v, error %v", got, err)
	}
	broken := fault.New(fault.Unavailable, "no database")
	if got, err := take(nil, 9, fake{kind: "a", left: n(0), err: broken}, fake{kind: "b", left: n(2)}); fault.CodeOf(err) != fault.Unavailable || !slices.Equal(got, []string{"b", "b", "|", "|"}) {
		t.Errorf("want the taken tasks and then the failure: got %v, error %v", got, err)
	}
	if got, _ := take(nil, 1000, fake{kind: "a", left: n(1000), size: store.PageBytes / 20}); len(got) > 20+remote.AtOnce+1 || len(got) < 20 {
		t.Errorf("got a page of %d tasks", len(got))
	}
}
