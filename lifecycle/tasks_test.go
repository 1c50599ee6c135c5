package lifecycle_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// jobs has one step whose action is a worker's, and one whose validation is too.
const jobs = `{
  "workflow": "job", "owning_module": "work", "initial_status": "new", "status_types": ["new", "doing", "checking", "done"], "janitor": {"stuck_after": "5m"},
  "steps": [
    {"step_id": 1, "step_key": "do", "status": "new", "successful_claim_state": ["doing", "new"], "successful_state": "done", "action": "Do"},
    {"step_id": 2, "step_key": "check", "status": "new", "successful_claim_state": ["checking", "new"], "successful_state": "done", "action": "Do", "validation": "May"}
  ]
}`

type yard struct {
	t   *testing.T
	ctx context.Context
	e   *holdfast.Engine
	l   *lifecycleengine.Lifecycle
}

// eachYard runs a test with workers of a safety, on both databases.
func eachYard(t *testing.T, safety, unknown string, f func(*yard)) {
	t.Helper()
	onEach(t, func(t *testing.T, db string) {
		e := holdfasttest.OpenOn(t, databaseAt(db), lifecycle.Published(newRemoteHandlers().call))
		ctx := holdfast.InWorkspace(t.Context(), "acme")
		y := &yard{t: t, ctx: ctx, e: e}
		y.declare(unknown, safety, "Do")
		y.declare(unknown, "transactional", "May")
		if _, err := lifecycleengine.PutConfig(ctx, engine.Of(e), "job", []byte(jobs), false); err != nil {
			t.Fatal(err)
		}
		l, err := lifecycleengine.Named(ctx, engine.Of(e), "job")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.CreateAt(ctx, engine.Of(e), "j", "", []byte(`{"a":1,"b":2}`), "me"); err != nil {
			t.Fatal(err)
		}
		y.l = l
		f(y)
	})
}

// workers declares handlers of workers, which wait for a person where an outcome is unknown.
func (y *yard) workers(safety string, names ...string) {
	y.t.Helper()
	y.declare("hold", safety, names...)
}

func (y *yard) declare(unknown, safety string, names ...string) {
	y.t.Helper()
	if err := declareWorkers(y.ctx, y.e, unknown, safety, names...); err != nil {
		y.t.Fatal(err)
	}
}

func declareWorkers(ctx context.Context, e *holdfast.Engine, unknown, safety string, names ...string) error {
	return e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) (err error) {
		for _, name := range names {
			_, failed := remotehandler.Put(ctx, store.TxOf(tx), remotehandler.Handler{Name: name, Kind: "worker", Safety: safety, OnUnknown: unknown})
			err = errors.Join(err, failed)
		}
		return err
	})
}

// fire fires a step, which then waits for a worker, and returns its operation.
func (y *yard) fire(step string) string {
	y.t.Helper()
	_, err := y.l.Fire(y.ctx, engine.Of(y.e), "j", step, "admin", lifecycleengine.FireOptions{Input: []byte("7")})
	var f *fault.Error
	if !errors.As(err, &f) || f.Fields["outcome"] != "pending" {
		y.t.Fatalf("fired: %v", err)
	}
	return f.Fields["operation"].(string)
}

// workers gives out the steps of an engine's lifecycles.
func workers(e *holdfast.Engine) lifecycleengine.Remote {
	return lifecycleengine.Remote{Engine: engine.Of(e)}
}

// takeTasks takes tasks for a worker.
func takeTasks(ctx context.Context, e *holdfast.Engine, c remote.Claim, limit int) ([]remote.Task, error) {
	o, err := workers(e).Offer(ctx, c)
	if err != nil {
		return nil, err
	}
	return o.Take(ctx, engine.Of(e), limit)
}

// leaseOf is the lease that a task was given out under.
func leaseOf(t remote.Task) remote.Lease { return remote.Lease{ID: t.ID, Epoch: t.Epoch} }

func (y *yard) take(handlers ...string) []remote.Task {
	y.t.Helper()
	all, err := takeTasks(y.ctx, y.e, remote.Claim{Worker: "w1", Handlers: handlers, Lease: time.Minute}, 10)
	if err != nil {
		y.t.Fatal(err)
	}
	return all
}

// one takes the one task there is.
func (y *yard) one(handler string) remote.Task {
	y.t.Helper()
	all := y.take(handler)
	if len(all) != 1 {
		y.t.Fatalf("got %d tasks for %s, want 1", len(all), handler)
	}
	return all[0]
}

func (y *yard) is(status string) {
	y.t.Helper()
	e, err := y.l.Get(y.ctx, engine.Of(y.e), "j")
	if err != nil {
		y.t.Fatal(err)
	}
	got := e.Status
	if e.Claimed != nil {
		got += " " + e.Claimed.Phase
	}
	if got != status {
		y.t.Fatalf("got status %s, want %s", got, status)
	}
}

// wantOutcome checks the outcome in the last event of the entity.
func (y *yard) wantOutcome(outcome string) {
	y.t.Helper()
	all, err := y.l.History(y.ctx, engine.Of(y.e), "j", 0, 1000)
	if err != nil || len(all) == 0 {
		y.t.Fatal(len(all), err)
	}
	if data := strings.ReplaceAll(string(all[len(all)-1].Data), " ", ""); !strings.Contains(data, `"outcome":"`+outcome+`"`) {
		y.t.Errorf("got event %s, want outcome %q", data, outcome)
	}
}

// Verifies that a worker claims a fired step once, completes it with data and an output, and gets the same
// result when it completes it again; and that no caller of another workspace or with another epoch can
// complete it.
func TestAWorkerCompletesAnAction(t *testing.T) {
	eachYard(t, "transactional", "hold", func(y *yard) {
		op := y.fire("do")
		y.is("doing due")
		if other, err := takeTasks(t.Context(), y.e, remote.Claim{Worker: "w2", Handlers: []string{"Do"}, Lease: time.Minute}, 10); err != nil || len(other) > 0 {
			t.Errorf("another workspace claimed %v, %v, want nothing", other, err)
		}
		if got := y.take("May"); len(got) > 0 {
			t.Errorf("another handler claimed %v, want nothing", got)
		}
		task := y.one("Do")
		if task.Kind != "action" || task.Operation != op || task.Attempt != 1 || string(task.Input) != "7" || task.StepKey != "do" || task.Entity.Status != "doing" {
			t.Errorf("got task %+v", task)
		}
		if again := y.take("Do"); len(again) > 0 {
			t.Errorf("claimed twice: %+v", again)
		}
		_, err := y.l.Fire(y.ctx, engine.Of(y.e), "j", "do", "admin", lifecycleengine.FireOptions{})
		testkit.WantCode(t, err, fault.ClaimFailed)
		_, err = workers(y.e).Complete(y.ctx, remote.Lease{ID: task.ID, Epoch: task.Epoch - 1}, remote.Result{})
		testkit.WantCode(t, err, fault.LeaseLost)
		if _, err := workers(y.e).Renew(y.ctx, leaseOf(task), time.Minute); err != nil {
			t.Error(err)
		}
		for range 2 {
			e, err := workers(y.e).Complete(y.ctx, leaseOf(task), remote.Result{Output: []byte(`{"label":"L"}`), State: []byte(`{"a":null,"c":3}`)})
			if err != nil || e.Status != "done" {
				t.Fatalf("complete returned %+v, %v, want status done", e, err)
			}
			var data map[string]int
			now, err := y.l.Get(y.ctx, engine.Of(y.e), "j")
			if err != nil || json.Unmarshal(now.Data, &data) != nil || len(data) != 2 || data["c"] != 3 {
				t.Errorf("got data %s, %v", now.Data, err)
			}
		}
		f, err := y.l.OutcomeOf(y.ctx, engine.Of(y.e), "j", op)
		if err != nil || f.Outcome != "success" || string(f.Output) != `{"label":"L"}` && string(f.Output) != `{"label": "L"}` {
			t.Errorf("got outcome %+v, %v, want success", f, err)
		}
		_, err = workers(y.e).Fail(y.ctx, leaseOf(task), remote.Failure{Message: "too late"})
		testkit.WantCode(t, err, fault.LeaseLost)
		y.is("done")
	})
}

// Verifies that a worker's validation runs before a worker's action, that a refusal and a failure, which is
// not recorded as a refusal, revert the entity, and that repeating each call returns the same result.
func TestAWorkerValidates(t *testing.T) {
	eachYard(t, "transactional", "hold", func(y *yard) {
		y.fire("check")
		task := y.one("May")
		if task.Kind != "validation" {
			t.Errorf("got task %+v, want a validation", task)
		}
		for range 2 {
			if _, err := workers(y.e).Fail(y.ctx, leaseOf(task), remote.Failure{Message: "not today", Invalid: true}); err != nil {
				t.Fatal(err)
			}
			y.is("new")
		}
		y.wantOutcome("invalid")
		y.fire("check")
		task = y.one("May")
		for range 2 {
			if _, err := workers(y.e).Fail(y.ctx, leaseOf(task), remote.Failure{Message: "the database is down"}); err != nil {
				t.Fatal(err)
			}
			y.is("new")
		}
		y.wantOutcome("failed")
		op := y.fire("check")
		task = y.one("May")
		for range 2 {
			if _, err := workers(y.e).Complete(y.ctx, leaseOf(task), remote.Result{}); err != nil {
				t.Fatal(err)
			}
			y.is("checking due")
		}
		if again := y.take("May"); len(again) > 0 {
			t.Errorf("validation was delivered twice: %+v", again)
		}
		action := y.one("Do")
		if action.Operation != op || action.Kind != "action" || action.Epoch <= task.Epoch {
			t.Errorf("got task %+v, want the action under a higher epoch", action)
		}
		if _, err := workers(y.e).Complete(y.ctx, leaseOf(task), remote.Result{}); err != nil { // it did end it
			t.Fatal(err)
		}
		y.is("checking held")
		if _, err := workers(y.e).Complete(y.ctx, leaseOf(action), remote.Result{}); err != nil {
			t.Fatal(err)
		}
		y.is("done")
	})
}

// Verifies what a failure comes to: the entity goes back where nothing was begun.
func TestAWorkerFails(t *testing.T) {
	eachYard(t, "journaled", "hold", func(y *yard) {
		y.fire("do")
		task := y.one("Do")
		for range 2 {
			if _, err := workers(y.e).Fail(y.ctx, leaseOf(task), remote.Failure{Message: "no stamps"}); err != nil {
				t.Fatal(err)
			}
			y.is("new")
		}
	})
}

// Verifies that an effect of unknown outcome is not retried automatically if the handler declares nothing,
// and is retried with the same key if the handler declares that the remote system honors it.
func TestAWorkersEffects(t *testing.T) {
	for unknown, want := range map[string]string{"hold": "doing uncertain", "retry": "doing held"} {
		t.Run(unknown, func(t *testing.T) {
			eachYard(t, "journaled", unknown, func(y *yard) {
				y.fire("do")
				task := y.one("Do")
				first, err := workers(y.e).Effect(y.ctx, leaseOf(task), remote.Effect{Name: "charge"})
				if err != nil || first.State != "begun" || first.Key == "" {
					t.Fatalf("begin effect returned %+v, %v, want begun with a key", first, err)
				}
				if _, err := workers(y.e).Fail(y.ctx, leaseOf(task), remote.Failure{Message: "cut off"}); err != nil {
					t.Fatal(err)
				}
				y.is("doing due")
				holdfasttest.Advance(y.t, y.e, time.Hour)
				next := y.one("Do")
				if next.Operation != task.Operation || next.Attempt != 2 || next.ID != task.ID || next.Epoch <= task.Epoch {
					t.Errorf("got second attempt %+v", next)
				}
				_, err = workers(y.e).Effect(y.ctx, leaseOf(task), remote.Effect{Name: "charge", Result: []byte(`1`)})
				testkit.WantCode(t, err, fault.LeaseLost)
				again, err := workers(y.e).Effect(y.ctx, leaseOf(next), remote.Effect{Name: "charge"})
				y.is(want)
				if unknown == "hold" {
					testkit.WantCode(t, err, fault.Conflict)
					return
				}
				if err != nil || again.Key != first.Key || again.State != "begun" {
					t.Fatalf("second begin returned %+v, %v, want the same key", again, err)
				}
				done, err := workers(y.e).Effect(y.ctx, leaseOf(next), remote.Effect{Name: "charge", Result: []byte(`"ch_1"`)})
				if err != nil || done.State != "done" {
					t.Fatalf("end effect returned %+v, %v, want done", done, err)
				}
				if _, err := workers(y.e).Complete(y.ctx, leaseOf(next), remote.Result{}); err != nil {
					t.Fatal(err)
				}
				y.is("done")
			})
		})
	}
}

// Verifies that a worker that is stopped past its lease can no longer write: the operation is reverted, or
// waits for a person if starting it was an effect.
func TestAWorkerThatStops(t *testing.T) {
	for safety, want := range map[string]string{"transactional": "new", "opaque": "doing uncertain"} {
		t.Run(safety, func(t *testing.T) {
			eachYard(t, safety, "hold", func(y *yard) {
				y.fire("do")
				y.is("doing due")
				task := y.one("Do")
				_, err := workers(y.e).Renew(y.ctx, leaseOf(task), time.Minute) // it was heard of
				testkit.WantCode(t, err, "")
				holdfasttest.Advance(y.t, y.e, 2*time.Minute)
				_, err = workers(y.e).Complete(y.ctx, leaseOf(task), remote.Result{})
				testkit.WantCode(t, err, fault.LeaseLost)
				if err := lifecycleengine.Sweep(y.ctx, engine.Of(y.e)); err != nil {
					t.Fatal(err)
				}
				y.is(want)
				_, err = workers(y.e).Complete(y.ctx, leaseOf(task), remote.Result{})
				testkit.WantCode(t, err, fault.LeaseLost)
				_, err = workers(y.e).Renew(y.ctx, leaseOf(task), time.Minute)
				testkit.WantCode(t, err, fault.LeaseLost)
			})
		})
	}
}

func TestBadTasks(t *testing.T) {
	eachYard(t, "transactional", "hold", func(y *yard) {
		for _, id := range []string{"", "tsk_", "tsk_!!", "tsk_W10", "x", "tsk_WyJhIiwiYiIsImMiLCJkIl0"} {
			_, err := workers(y.e).Complete(y.ctx, remote.Lease{ID: id, Epoch: 1}, remote.Result{})
			testkit.WantCode(t, err, fault.NotFound)
		}
		_, err := takeTasks(y.ctx, y.e, remote.Claim{Worker: "", Handlers: []string{"Do"}, Lease: time.Minute}, 1)
		testkit.WantCode(t, err, fault.Validation)
	})
}

// Verifies that an operation which was not given out as a task cannot be ended as one
// by who knows its id, and that a validation's worker cannot end the action.
func TestAForgedTaskIsNone(t *testing.T) {
	eachYard(t, "transactional", "hold", func(y *yard) {
		forge := func(operation, stage string) string {
			text, _ := json.Marshal([4]string{"job", "j", operation, stage})
			return "tsk_" + base64.RawURLEncoding.EncodeToString(text)
		}
		claim, err := y.l.Claim(y.ctx, engine.Of(y.e), "j", "do", "admin", lifecycleengine.FireOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = workers(y.e).Complete(y.ctx, remote.Lease{ID: forge(claim.Operation(), "action"), Epoch: claim.Entity.Claimed.Epoch}, remote.Result{State: []byte(`{"forged":true}`)})
		testkit.WantCode(t, err, fault.NotFound)
		y.is("doing held")
		if _, err := claim.End(y.ctx, lifecycleengine.Failure, "enough"); err != nil {
			t.Fatal(err)
		}
		op := y.fire("check")
		task := y.one("May")
		_, err = workers(y.e).Complete(y.ctx, remote.Lease{ID: forge(op, "action"), Epoch: task.Epoch}, remote.Result{})
		testkit.WantCode(t, err, fault.LeaseLost)
		y.is("checking held")
		_, err = y.l.Claim(y.ctx, engine.Of(y.e), "j", "check", "admin", lifecycleengine.FireOptions{})
		testkit.WantCode(t, err, fault.Validation)
	})
}

// Verifies that a manual claim of a step with an opaque worker handler counts as begun: it is not reverted
// automatically.
func TestAClaimByHandOfAnOpaqueWorkersStep(t *testing.T) {
	eachYard(t, "opaque", "hold", func(y *yard) {
		if _, err := y.l.Claim(y.ctx, engine.Of(y.e), "j", "do", "admin", lifecycleengine.FireOptions{Lease: time.Minute}); err != nil {
			t.Fatal(err)
		}
		holdfasttest.Advance(y.t, y.e, time.Hour)
		if err := lifecycleengine.Sweep(y.ctx, engine.Of(y.e)); err != nil {
			t.Fatal(err)
		}
		y.is("doing uncertain")
	})
}

// Verifies that what an opaque handler began stays so, whatever it is declared as when
// its worker has died.
func TestADeclarationDoesNotChangeWhatBegan(t *testing.T) {
	eachYard(t, "opaque", "hold", func(y *yard) {
		y.fire("do")
		task := y.one("Do")
		err := y.e.Update(y.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			_, err := remotehandler.Put(ctx, store.TxOf(tx), remotehandler.Handler{Name: "Do", Kind: "worker", Safety: "idempotent", OnUnknown: "hold"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		holdfasttest.Advance(y.t, y.e, time.Hour)
		if err := lifecycleengine.Sweep(y.ctx, engine.Of(y.e)); err != nil {
			t.Fatal(err)
		}
		y.is("doing uncertain")
		if again := y.take("Do"); len(again) > 0 {
			t.Errorf("%s was delivered again: %+v", task.ID, again)
		}
	})
}

// Verifies that the result of an opaque worker decides, and is returned again when the call is repeated.
func TestAnOpaqueWorkerFails(t *testing.T) {
	eachYard(t, "opaque", "hold", func(y *yard) {
		y.fire("do")
		task := y.one("Do")
		for range 2 {
			if _, err := workers(y.e).Fail(y.ctx, leaseOf(task), remote.Failure{Message: "no stamps"}); err != nil {
				t.Fatal(err)
			}
			y.is("new")
		}
	})
}

// lapse lets the lease of a worker expire and runs the janitor.
func (y *yard) lapse() {
	y.t.Helper()
	holdfasttest.Advance(y.t, y.e, 2*time.Minute)
	engine.Of(y.e).Round(y.ctx)
}

// Verifies that a handler that keeps no journal and can be probed is probed after its worker was lost: if it
// has not acted, the task is handed out again; if it has, the step is settled once with the reported result.
func TestAWorkerIsAsked(t *testing.T) {
	eachYard(t, "opaque", "probe", func(y *yard) {
		op := y.fire("do")
		first := y.one("Do")
		if first.Kind != "action" {
			t.Fatalf("got task %+v, want an action", first)
		}
		y.lapse()
		y.is("doing due")
		asked := y.one("Do")
		if asked.Kind != "probe" || asked.Operation != op || asked.Epoch <= first.Epoch {
			t.Fatalf("got task %+v, want a probe", asked)
		}
		_, err := workers(y.e).Complete(y.ctx, leaseOf(first), remote.Result{})
		testkit.WantCode(t, err, fault.LeaseLost)
		for _, bad := range []string{``, `{}`, `{"happened":"yes"}`, `[]`} {
			_, err := workers(y.e).Complete(y.ctx, leaseOf(asked), remote.Result{Output: []byte(bad)})
			testkit.WantCode(t, err, fault.Validation)
		}
		for range 2 {
			if _, err := workers(y.e).Complete(y.ctx, leaseOf(asked), remote.Result{Output: []byte(`{"happened":false}`)}); err != nil {
				t.Fatal(err)
			}
			y.is("doing due")
		}

		second := y.one("Do")
		if second.Kind != "action" || second.Operation != op {
			t.Fatalf("got task %+v, want an action", second)
		}
		y.lapse()
		asked = y.one("Do")
		if asked.Kind != "probe" {
			t.Fatalf("got task %+v, want a probe", asked)
		}
		if _, err := workers(y.e).Fail(y.ctx, leaseOf(asked), remote.Failure{Message: "the other side is down"}); err != nil {
			t.Fatal(err)
		}
		y.is("doing due") // and it is not forgotten that it may have happened
		y.lapse()
		asked = y.one("Do")
		if asked.Kind != "probe" {
			t.Fatalf("got task %+v, want a probe", asked)
		}
		for range 2 {
			e, err := workers(y.e).Complete(y.ctx, leaseOf(asked), remote.Result{Output: []byte(`{"happened":true,"result":{"ref":"r1"}}`), State: []byte(`{"paid":true}`)})
			now, failed := y.l.Get(y.ctx, engine.Of(y.e), "j")
			if err != nil || failed != nil || e.Status != "done" || !strings.Contains(string(now.Data), `"paid"`) {
				t.Errorf("got entity %+v with data %s, %v, %v", e, now.Data, err, failed)
			}
		}
		y.is("done")
	})
}

// Verifies that a task without a journal is repeated if its handler declares that the remote system honors
// the key, and waits for a person after too many crashes.
func TestAWorkerTriesAgain(t *testing.T) {
	eachYard(t, "opaque", "retry", func(y *yard) {
		op := y.fire("do")
		for i := range 5 {
			task := y.one("Do")
			if task.Kind != "action" || task.Operation != op || task.Attempt != i+1 {
				t.Fatalf("got task %+v, want the next attempt of the action", task)
			}
			if _, err := workers(y.e).Renew(y.ctx, leaseOf(task), time.Minute); err != nil { // it was heard of
				t.Fatal(err)
			}
			y.lapse()
		}
		y.is("doing uncertain")
		if _, err := lifecycle.Resolve(y.ctx, y.e, op, []holdfast.Resolution{{Name: "$body", State: holdfast.EffectNotDone}}, lifecycle.By("ann")); err != nil {
			t.Fatal(err)
		}
		y.is("new")
	})
}

// Verifies that the lease of a worker that hangs is renewed only up to the timeout of its handler.
func TestAWorkerThatHangsIsNotHeldForEver(t *testing.T) {
	eachYard(t, "transactional", "hold", func(y *yard) {
		y.fire("do")
		task := y.one("Do")
		var last time.Time
		for range 15 { // the default is 15 minutes
			renewed, err := workers(y.e).Renew(y.ctx, leaseOf(task), 2*time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if renewed.Until.Before(last) {
				t.Errorf("renew moved until from %s back to %s", last, renewed.Until)
			}
			last = renewed.Until
			holdfasttest.Advance(y.t, y.e, 59*time.Second)
		}
		holdfasttest.Advance(y.t, y.e, 30*time.Second)
		_, err := workers(y.e).Renew(y.ctx, leaseOf(task), 2*time.Minute)
		testkit.WantCode(t, err, fault.LeaseLost)
		engine.Of(y.e).Round(y.ctx)
		y.is("new") // nothing was begun
	})
}
