package lifecycleengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/stream"
)

const fxCrashConfig = `{
  "workflow": "crash", "owning_module": "fx", "initial_status": "open", "status_types": ["open", "closing", "closed"],
  "steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_claim_state": ["closing", "open"], "successful_state": "closed", "action": "Close"}]
}`

// fxLease is an additional step, whose requester takes no claim status.
const fxLease = `, {"step_id": 2, "step_key": "void", "status": "open", "successful_state": {"system": "closed"}, "action": "Close", "serialized": "system"}]`

// fxCrash fires a step, with a crash at any point.
type fxCrash struct {
	holdfasttest.World
	config string // "" means fxCrashConfig
	leased bool   // fire the step void
	safety lifecycleconfig.Safety
	body   func(ctx context.Context, a *Act, c *fxCrash) error
	// repeats allows more than one call of a key.
	repeats bool
	// ends are the allowed end states: the status and the phase.
	ends []string
	// person resolves an uncertain end.
	person bool
	// anew allows a repeated request to begin another operation after a release.
	anew bool
}

// note records something in the case of a context. It is not a crash point.
func (c *fxCrash) note(ctx context.Context, name, key string) {
	_ = c.Call(store.InWorkspace(context.Background(), store.WorkspaceOf(ctx)), name, key) // cannot fail in this context
}

// parts creates a new lifecycle, as a restarted process would.
func (c *fxCrash) parts() []holdfast.Part {
	config := cmp.Or(c.config, fxCrashConfig)
	if c.leased {
		config = strings.Replace(config, `"Close"}]`, `"Close"}`+fxLease, 1)
	}
	l := handling(config, "action", "Close", func(ctx context.Context, a *Act) error {
		c.note(ctx, "began", a.Operation)
		a.Commit(func(ctx context.Context, tx *store.Tx) error {
			_, err := stream.Append(ctx, tx, "credits", stream.Any, stream.Event{Name: "credit"})
			return err
		})
		return c.body(ctx, a, c)
	}, Declared{Safety: c.safety})
	return []holdfast.Part{part(l.Start)}
}

// do fires the step unless it was fired before: a client without a response reads the state
// first. It therefore requests one operation, unless one was released.
func (c *fxCrash) do(ctx context.Context, hf *holdfast.Engine) (err error) {
	s := registryOf(engine.Of(hf)).boundTo("crash")
	e, err := entities.Get(ctx, engine.Of(hf), "crash", "x")
	if fault.CodeOf(err) == fault.NotFound {
		e, err = entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "crash", ID: "x", Status: "open", Data: []byte(`{}`)})
	}
	if err != nil {
		return err
	}
	if e.Version > 0 {
		return nil // it was fired: the janitor handles the rest
	}
	defer func() {
		if p := recover(); p != nil {
			err = nil // the body's own error
		}
	}()
	step := "close"
	if c.leased {
		step = "void"
	}
	_, err = s.fire(ctx, "x", step, "system", FireOptions{})
	if fault.CodeOf(err) == fault.ActionFailed && errors.Is(err, errFxCrash) {
		return nil // the body's own error
	}
	return err
}

var errFxCrash = errors.New("by plan")

// settle runs the background loops of a program, and an operator's resolutions.
func (c *fxCrash) settle(ctx context.Context, hf *holdfast.Engine) error {
	return holdfasttest.SettleWith(ctx, hf, func(ctx context.Context, hf *holdfast.Engine, w holdfasttest.Waiting) (bool, error) {
		if w.Kind != "uncertainOperation" || !c.person {
			return false, nil
		}
		return c.resolve(ctx, hf)
	})
}

// resolve resolves an operation as an operator who knows its effects, and reports whether there
// was an operation to resolve.
func (c *fxCrash) resolve(ctx context.Context, hf *holdfast.Engine) (bool, error) {
	all, err := Operations(ctx, engine.Of(hf), "uncertain", "", 0)
	if err != nil {
		return false, err
	}
	for _, p := range all {
		var known []effects.Resolution
		for _, x := range p.Effects {
			if x.State == "begun" {
				r := effects.Resolution{Name: x.Name, Ordinal: x.Ordinal, State: effects.StateOf(slices.Contains(c.Keys(ctx, "card"), x.Key))}
				if r.State == effects.Done {
					r.Result = []byte("7")
				}
				known = append(known, r)
			}
		}
		if _, err := Resolve(ctx, engine.Of(hf), p.ID, known, "", lease.Intervention{Actor: "me"}); err != nil && fault.CodeOf(err) != fault.Conflict && fault.CodeOf(err) != fault.NotFound {
			return false, err
		}
	}
	return len(all) > 0, nil
}

// check checks the end state against the invariants of operations.
func (c *fxCrash) check(ctx context.Context, hf *holdfast.Engine) error {
	if wrong := c.Keys(ctx, "wrong"); len(wrong) > 0 {
		return fmt.Errorf("%q", wrong)
	}
	if err := c.nothingAnnounced(ctx, hf); err != nil {
		return err
	}
	e, err := entities.Get(ctx, engine.Of(hf), "crash", "x")
	if err != nil {
		return err
	}
	credits, err := holdfast.Collect(stream.Read(ctx, hf, "credits", 0))
	if err != nil {
		return err
	}
	want := 0
	if e.Status == "closed" {
		want = 1
	}
	if c.person && len(credits) == 0 { // an operator settled it
		want = 0
	}
	if len(credits) != want {
		return fmt.Errorf("entity has status %s and %d credits", e.Status, len(credits))
	}
	for _, name := range []string{"card", "not done"} {
		if n, keys := c.Count(ctx, name), c.Keys(ctx, name); n > len(keys) && !c.repeats {
			return fmt.Errorf("effects %q were called %d times", keys, n)
		}
	}
	if keys := c.Keys(ctx, "card"); e.Status == "open" && e.Claim.Phase == entities.Free && len(keys) > 0 {
		return fmt.Errorf("entity returned to open although effects %q were called", keys)
	}
	if began := c.Keys(ctx, "began"); len(began) > 1 && !c.anew {
		return fmt.Errorf("got several operations: %q", began)
	}
	end := e.Status + " " + string(e.Claim.Phase)
	if !slices.Contains(c.ends, end) {
		return fmt.Errorf("entity ended as %s (%s)", end, e.Claim.Error)
	}
	return nil
}

// nothingAnnounced verifies that an unfinished change of the config is reverted by the next
// caller after a while. It also isolates the cases: a newly opened engine would continue the
// change.
func (c *fxCrash) nothingAnnounced(ctx context.Context, hf *holdfast.Engine) error {
	at, err := engine.Of(hf).Partition(ctx, store.Read)
	if err != nil {
		return err
	}
	now, err := getConfigVerb.DoAt(ctx, engine.Of(hf), at, "crash")
	if err != nil || now.wanted == "" {
		return err
	}
	if err := store.Shift(ctx, engine.Of(hf), time.Hour); err != nil {
		return err
	}
	if err := registryOf(engine.Of(hf)).boundTo("crash").register(ctx, false); err != nil {
		return err
	}
	if now, err = getConfigVerb.DoAt(ctx, engine.Of(hf), at, "crash"); err == nil && now.wanted != "" {
		err = fmt.Errorf("a config change is still announced: %+v", now)
	}
	return err
}

func (c *fxCrash) run(t *testing.T, name string) {
	t.Helper()
	holdfasttest.Crash(t, holdfasttest.Scenario{Name: name, Parts: c.parts, Do: c.do, Recover: c.settle, Check: c.check, Pairs: true})
}

// charge runs an effect that calls outside and returns an error.
func (c *fxCrash) charge(ctx context.Context, err error, o ...holdfast.EffectOption) error {
	r, err := holdfast.Effect(ctx, "card", func(ctx context.Context, key string) (int, error) {
		return 7, errors.Join(c.Call(ctx, "card", key), err)
	}, o...)
	if err == nil && r != 7 {
		c.note(ctx, "wrong", fmt.Sprintf("effect returned %d, want 7", r))
	}
	return err
}

// Bodies of steps.
func fxOK(context.Context, *Act, *fxCrash) error              { return nil }
func fxFails(context.Context, *Act, *fxCrash) error           { return errFxCrash }
func fxHold(ctx context.Context, _ *Act, c *fxCrash) error    { return c.charge(ctx, nil) }
func fxUnknown(ctx context.Context, _ *Act, c *fxCrash) error { return c.charge(ctx, errFxCrash) }
func fxRetry(ctx context.Context, _ *Act, c *fxCrash) error {
	return c.charge(ctx, nil, holdfast.OnUnknownRetry())
}
func fxProbe(ctx context.Context, _ *Act, c *fxCrash) error {
	return c.charge(ctx, nil, holdfast.OnUnknownProbe(func(_ context.Context, key string) (int, bool, error) {
		return 7, slices.Contains(c.Keys(ctx, "card"), key), nil
	}))
}

// fxOpaque makes a call without an effect. The error of an opaque body reports that it did nothing, so one that does not
// know panics.
func fxOpaque(ctx context.Context, a *Act, c *fxCrash) error {
	if err := c.Call(ctx, "card", a.Operation+"/$body/0"); err != nil {
		panic(err)
	}
	return nil
}

// TestCrashOfAStep verifies, at every point and for every fault, the end of a fired step after
// rounds of the janitor and the resumer: it is settled, with its body's commits, once; or it is
// reverted, and no call was made; or it is uncertain, if the policy of its effect is to hold. No
// effect is called twice unless its policy is to retry, and then under the same key.
func TestCrashOfAStep(t *testing.T) {
	settledOrBack, anyEnd := []string{"closed free", "open free"}, []string{"closed free", "open free", "closing uncertain"}
	for name, c := range map[string]*fxCrash{
		"ok":    {safety: lifecycleconfig.Transactional, ends: settledOrBack, body: fxOK},
		"fails": {safety: lifecycleconfig.Transactional, ends: []string{"open free"}, body: fxFails},
		"panics": {safety: lifecycleconfig.Transactional, ends: []string{"open free"},
			body: func(context.Context, *Act, *fxCrash) error { panic(errFxCrash) }},
		"opaque": {safety: lifecycleconfig.Opaque, ends: anyEnd, body: fxOpaque},
		"hold":   {safety: lifecycleconfig.Journaled, ends: anyEnd, body: fxHold},
		"hold, recorded, and fails once": {safety: lifecycleconfig.Journaled, ends: anyEnd,
			body: func(ctx context.Context, a *Act, c *fxCrash) error {
				err := c.charge(ctx, nil, holdfast.RecordNow())
				if err == nil && a.Attempt == 1 {
					return errFxCrash
				}
				return err
			}},
		"probe": {safety: lifecycleconfig.Journaled, ends: settledOrBack, body: fxProbe},
		"retry": {safety: lifecycleconfig.Journaled, repeats: true, ends: settledOrBack, body: fxRetry},
		"not done": {safety: lifecycleconfig.Journaled, ends: []string{"open free", "closing uncertain"},
			body: func(ctx context.Context, _ *Act, c *fxCrash) error {
				_, err := holdfast.Effect(ctx, "card", func(ctx context.Context, key string) (int, error) {
					return 0, cmp.Or(c.Call(ctx, "not done", key), holdfast.NotDone(errFxCrash))
				})
				return err
			}},
		"resolved": {safety: lifecycleconfig.Journaled, person: true, ends: settledOrBack, body: fxUnknown},
		"opaque, resolved": {safety: lifecycleconfig.Opaque, person: true, ends: settledOrBack,
			body: func(ctx context.Context, a *Act, c *fxCrash) error {
				_ = fxOpaque(ctx, a, c)
				panic(errFxCrash)
			}},
	} {
		c.run(t, name)
	}
}

// TestCrashUnderALease verifies the same for a serialized step: it is leased in its current
// status, and no crash leaves it leased.
func TestCrashUnderALease(t *testing.T) {
	settledOrBack := []string{"closed free", "open free"}
	for name, c := range map[string]*fxCrash{
		"ok":       {ends: settledOrBack, body: fxOK},
		"fails":    {ends: []string{"open free"}, body: fxFails},
		"hold":     {ends: append([]string{"open uncertain"}, settledOrBack...), body: fxHold},
		"resolved": {person: true, ends: settledOrBack, body: fxUnknown},
	} {
		c.leased, c.safety = true, lifecycleconfig.Transactional
		c.run(t, name)
	}
}
