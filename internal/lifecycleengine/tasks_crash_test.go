package lifecycleengine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

const fxTaskConfig = `{
  "workflow": "job", "owning_module": "fx", "initial_status": "new", "status_types": ["new", "doing", "done"], "janitor": {},
  "steps": [{"step_id": 1, "step_key": "do", "status": "new", "successful_claim_state": ["doing", "new"], "successful_state": "done", "action": "Do", "validation": "May"}]
}`

// fxTasks runs a step that workers serve, with a crash at any point: of the node that hands it
// over, or of the worker between any two of its calls.
type fxTasks struct {
	holdfasttest.World      // counts the calls of the effect
	probed             bool // the action keeps no journal, and its worker can be probed
}

func (c *fxTasks) do(ctx context.Context, hf *holdfast.Engine) error {
	for _, name := range []string{"Do", "May"} {
		if _, err := remotehandler.Get(ctx, engine.Of(hf), name); err == nil {
			continue
		}
		err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			h := remotehandler.Handler{Name: name, Kind: "worker", Safety: "journaled", OnUnknown: "hold"}
			if c.probed {
				h.Safety, h.OnUnknown = "opaque", "probe"
			}
			_, err := remotehandler.Put(ctx, store.TxOf(tx), h)
			return err
		})
		if err != nil {
			return err
		}
	}
	l, err := Named(ctx, engine.Of(hf), "job")
	if fault.CodeOf(err) == fault.NotFound {
		if _, err = PutConfig(ctx, engine.Of(hf), "job", []byte(fxTaskConfig), false); err == nil {
			l, err = Named(ctx, engine.Of(hf), "job")
		}
	}
	if err != nil {
		return err
	}
	e, err := l.Get(ctx, engine.Of(hf), "x")
	if fault.CodeOf(err) == fault.NotFound {
		e, err = l.CreateAt(ctx, engine.Of(hf), "x", "", []byte(`{}`), "me")
	}
	if err != nil || e.Version > 0 {
		return err
	}
	_, err = l.Fire(ctx, engine.Of(hf), "x", "do", "admin", FireOptions{})
	if f, ok := err.(*fault.Error); ok && f.Fields["outcome"] == "pending" {
		return nil
	}
	return err
}

// recover runs the loops and, for what they leave to workers, the workers.
func (c *fxTasks) recover(ctx context.Context, hf *holdfast.Engine) error {
	return holdfasttest.SettleWith(ctx, hf, func(ctx context.Context, hf *holdfast.Engine, w holdfasttest.Waiting) (bool, error) {
		if w.Kind != "unservedWork" {
			return false, nil
		}
		return true, c.work(ctx, hf)
	})
}

// work runs a round of a worker.
func (c *fxTasks) work(ctx context.Context, hf *holdfast.Engine) error {
	tasks, err := takeTasks(ctx, hf, remote.Claim{Worker: "w", Handlers: []string{"Do", "May"}, Lease: time.Minute}, 1)
	for _, t := range tasks {
		if c.probed {
			if err := c.unjournaled(ctx, hf, t); err != nil {
				return err
			}
			continue
		}
		if t.Kind == stageAction {
			x, err := workers(hf).Effect(ctx, leaseOf(t), remote.Effect{Name: "card"})
			if fault.CodeOf(err) == fault.Conflict {
				continue // the operation is parked
			}
			if err != nil {
				return err
			}
			if x.State == "begun" {
				if err := c.Call(ctx, "card", x.Key); err != nil {
					return err
				}
				if _, err := workers(hf).Effect(ctx, leaseOf(t), remote.Effect{Name: "card", Result: []byte("7")}); err != nil {
					return err
				}
			}
		}
		if _, err := workers(hf).Complete(ctx, leaseOf(t), remote.Result{}); err != nil {
			return err
		}
	}
	return err
}

// unjournaled executes a task whose worker keeps no journal and is probed instead.
func (c *fxTasks) unjournaled(ctx context.Context, hf *holdfast.Engine, t remote.Task) error {
	var output []byte
	switch t.Kind {
	case stageAction:
		if err := c.Call(ctx, "card", t.Operation); err != nil {
			return err
		}
	case kindProbe:
		output = fmt.Appendf(nil, `{"happened":%t}`, c.Count(ctx, "card") > 0)
	}
	_, err := workers(hf).Complete(ctx, leaseOf(t), remote.Result{Output: output})
	return err
}

func (c *fxTasks) check(ctx context.Context, hf *holdfast.Engine) error {
	e, err := entities.Get(ctx, engine.Of(hf), "job", "x")
	if err != nil {
		return err
	}
	if n := c.Count(ctx, "card"); n > 1 {
		return fmt.Errorf("effect was called %d times, want at most 1", n)
	}
	if end := e.Status + " " + string(e.Claim.Phase); !slices.Contains([]string{"done free", "new free", "doing uncertain"}, end) {
		return fmt.Errorf("entity ended as %s (%s)", end, e.Claim.Error)
	}
	if c.probed && e.Claim.Phase == entities.Uncertain {
		return fmt.Errorf("operation is uncertain although its worker can be probed")
	}
	if e.Status == "new" && c.Count(ctx, "card") > 0 {
		return fmt.Errorf("entity returned to new although the effect was called")
	}
	if e.Status == "done" && c.Count(ctx, "card") != 1 {
		return fmt.Errorf("entity is done, but the effect was called %d times, want 1", c.Count(ctx, "card"))
	}
	return nil
}

// TestCrashOfATask verifies, at every point and for every fault, the end of a step whose
// validation and action are served by workers: it is done, and its effect was called once; or it
// was reverted, and no call was made; or it is parked.
func TestCrashOfATask(t *testing.T) {
	c := new(fxTasks)
	parts := func() []holdfast.Part {
		return []holdfast.Part{serving(func(context.Context, RemoteCall) (RemoteAnswer, error) { return RemoteAnswer{}, nil })}
	}
	holdfasttest.Crash(t, holdfasttest.Scenario{Name: "task", Parts: parts, Do: c.do, Recover: c.recover, Check: c.check})
	probed := &fxTasks{probed: true}
	holdfasttest.Crash(t, holdfasttest.Scenario{Name: "asked", Parts: parts, Do: probed.do, Recover: probed.recover, Check: probed.check})
}

// TestPublishedLifecyclesAndTheirWorker verifies that the published set and the worker that serves its
// after-effects do not deadlock: after-effects are added while the worker polls.
func TestPublishedLifecyclesAndTheirWorker(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = e.Run(ctx) })
		defer running.Wait()
		defer stop()
		if _, err := engine.Of(e).Partition(ctx, store.Write); err != nil { // the worker polls only if there is a workspace
			t.Fatal(err)
		}
		done := make(chan struct{})
		running.Go(func() {
			defer close(done)
			for i := range 300 {
				name := fmt.Sprint("h", i)
				if err := registryOf(engine.Of(e)).published.serve("wf", name, remoteAfterEffect(&lifecycleconfig.Config{Workflow: "wf"}, name)); err != nil {
					t.Error(err)
				}
			}
		})
		late := time.After(time.Minute)
		for {
			select {
			case <-done:
				return
			case <-late:
				t.Fatal("deadlock")
			default:
				engine.Of(e).Hub().Wake([]string{store.DueTopic("$after:wf:h0")})
			}
		}
	}, serving(func(context.Context, RemoteCall) (RemoteAnswer, error) { return RemoteAnswer{}, nil }))
}
