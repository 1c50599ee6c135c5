package lifecycleengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
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

// fxLease is a step beside it, whose requester takes no claim status.
const fxLease = `, {"step_id": 2, "step_key": "void", "status": "open", "successful_state": {"system": "closed"}, "action": "Close", "serialized": "system"}]`

// fxCrash is a step that is fired, with a crash anywhere. What it did to the world
// outside is remembered by workspace, of which each case has its own.
type fxCrash struct {
	config string // "" is fxCrashConfig
	leased bool   // it is the step void
	safety lifecycleconfig.Safety
	body   func(ctx context.Context, a *Act, k *fxCase) error
	// repeats says that a key may be called more than once.
	repeats bool
	// ends are the ends that are allowed: the status, and the phase.
	ends []string
	// person resolves what is uncertain at the end.
	person bool
	// anew says that who asks again begins another operation where one was released.
	anew bool

	mu    sync.Mutex
	cases map[string]*fxCase
}

// fxCase is the world outside of one case.
type fxCase struct {
	calls map[string]int // by key
	began map[string]bool
	wrong error
}

func (k *fxCase) call(key string) { k.calls[key]++ }

func (c *fxCrash) of(ctx context.Context) *fxCase {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := store.WorkspaceOf(ctx)
	if c.cases == nil {
		c.cases = make(map[string]*fxCase)
	}
	if c.cases[w] == nil {
		c.cases[w] = &fxCase{calls: make(map[string]int), began: make(map[string]bool)}
	}
	return c.cases[w]
}

// parts makes the lifecycle anew: a process that is started again has one of its
// userTable.
func (c *fxCrash) parts() []holdfast.Part {
	config := cmp.Or(c.config, fxCrashConfig)
	if c.leased {
		config = strings.Replace(config, `"Close"}]`, `"Close"}`+fxLease, 1)
	}
	l := handling(config, "action", "Close", func(ctx context.Context, a *Act) error {
		k := c.of(ctx)
		k.began[a.Operation] = true
		a.Commit(func(ctx context.Context, tx *store.Tx) error {
			_, err := stream.Append(ctx, tx, "credits", stream.Any, stream.Event{Name: "credit"})
			return err
		})
		return c.body(ctx, a, k)
	}, Declared{Safety: c.safety})
	return []holdfast.Part{part(l.Start)}
}

// do fires the step, unless it was fired before: a client that got no answer looks
// first. So one operation is asked for, unless one was released.
func (c *fxCrash) do(ctx context.Context, hf *holdfast.Engine) (err error) {
	s := registryOf(engine.Of(hf)).boundTo("crash")
	s.workspaces = []string{store.WorkspaceOf(ctx)}
	e, err := entities.Get(ctx, engine.Of(hf), "crash", "x")
	if fault.CodeOf(err) == fault.NotFound {
		e, err = entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "crash", ID: "x", Status: "open", Data: []byte(`{}`)})
	}
	if err != nil {
		return err
	}
	if e.Version > 0 {
		return nil // it was fired: what became of it is the janitor's business
	}
	defer func() {
		if p := recover(); p != nil {
			err = nil // the body's own
		}
	}()
	step := "close"
	if c.leased {
		step = "void"
	}
	_, err = s.fire(ctx, "x", step, "system", FireOptions{})
	if fault.CodeOf(err) == fault.ActionFailed && errors.Is(err, errFxCrash) {
		return nil // the body's own
	}
	return err
}

var errFxCrash = errors.New("by plan")

// recover is what the loops of a running program do, when everything has run out
// and fallen due, and what a person does who is asked.
func (c *fxCrash) recover(ctx context.Context, hf *holdfast.Engine) error {
	registryOf(engine.Of(hf)).boundTo("crash").workspaces = []string{store.WorkspaceOf(ctx)}
	if err := c.comeRound(ctx, hf); err != nil || !c.person {
		return err
	}
	for range 3 { // the faults may leave it uncertain again
		some, err := c.resolve(ctx, hf)
		if err != nil || !some {
			return err
		}
		if err := c.comeRound(ctx, hf); err != nil {
			return err
		}
	}
	return nil
}

// comeRound goes on until it is at an end, or waits for a person: rounds of the janitor,
// and of the resumer.
func (c *fxCrash) comeRound(ctx context.Context, hf *holdfast.Engine) error {
	b := registryOf(engine.Of(hf))
	for range 4 {
		e, err := entities.Get(ctx, engine.Of(hf), "crash", "x")
		if fault.CodeOf(err) == fault.NotFound {
			return nil
		}
		if err != nil || e.Claim.Phase != entities.Held && e.Claim.Phase != entities.Due {
			return err
		}
		if err := store.Shift(ctx, engine.Of(hf), time.Hour); err != nil {
			return err
		}
		if e.Claim.Phase == entities.Due {
			err = fxResume(ctx, b)
		} else {
			_, err = b.expire(ctx, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fxResume is one round of the resumer, in this goroutine.
func fxResume(ctx context.Context, b *registry) error {
	shards, err := store.Shards(ctx, b.engine)
	if err != nil {
		return err
	}
	for _, shard := range shards {
		some, err := entities.TakeDue(ctx, b.engine, shard, entities.ResumeArgs{Turns: []lease.Turn{{Name: entities.QueueOf("crash"), Workspace: store.WorkspaceOf(ctx)}}, Leases: map[string]time.Duration{entities.QueueOf("crash"): time.Minute}, Holder: "me", Limit: 1})
		if err != nil {
			return err
		}
		for _, r := range some {
			b.take(ctx, shard, r, time.Time{})
		}
	}
	return nil
}

// resolve is a person who knows what happened, and says whether there was something to
// resolve.
func (c *fxCrash) resolve(ctx context.Context, hf *holdfast.Engine) (bool, error) {
	k := c.of(ctx)
	all, err := Operations(ctx, engine.Of(hf), "uncertain", "", 0)
	if err != nil {
		return false, err
	}
	for _, p := range all {
		var known []Resolution
		for _, x := range p.Effects {
			if x.State == "begun" {
				r := Resolution{Name: x.Name, Ordinal: x.Ordinal, Happened: k.calls[x.Key] > 0}
				if r.Happened {
					r.Result = []byte("7")
				}
				known = append(known, r)
			}
		}
		if _, err := Resolve(ctx, engine.Of(hf), p.ID, known, "", "me"); err != nil && fault.CodeOf(err) != fault.Conflict && fault.CodeOf(err) != fault.NotFound {
			return false, err
		}
	}
	return len(all) > 0, nil
}

// check holds the end to the invariants of operations.
func (c *fxCrash) check(ctx context.Context, hf *holdfast.Engine) error {
	k := c.of(ctx)
	if k.wrong != nil {
		return k.wrong
	}
	if err := c.nothingAnnounced(ctx, hf); err != nil {
		return err
	}
	e, err := entities.Get(ctx, engine.Of(hf), "crash", "x")
	if err != nil {
		return err
	}
	credits, err := stream.Read(ctx, hf, "credits", 0, 0)
	if err != nil {
		return err
	}
	want := 0
	if e.Status == "closed" {
		want = 1
	}
	if c.person && len(credits) == 0 { // a person settled it
		want = 0
	}
	if len(credits) != want {
		return fmt.Errorf("it is %s, with %d credits", e.Status, len(credits))
	}
	for key, n := range k.calls {
		if n > 1 && !c.repeats {
			return fmt.Errorf("the effect %s was called %d times", key, n)
		}
		if e.Status == "open" && e.Claim.Phase == entities.Free && n > 0 && !strings.HasPrefix(key, "notDone ") {
			return fmt.Errorf("it went back, although %s was called", key)
		}
	}
	if len(k.began) > 1 && !c.anew {
		return fmt.Errorf("there were several operations: %v", slices.Collect(maps.Keys(k.began)))
	}
	end := e.Status + " " + string(e.Claim.Phase)
	if !slices.Contains(c.ends, end) {
		return fmt.Errorf("it ends as %s (%s)", end, e.Claim.Error)
	}
	return nil
}

// nothingAnnounced verifies that a change of the config which nobody finished is
// taken back by who comes after a while. It also keeps cases apart: an engine that
// is opened would go on with it.
func (c *fxCrash) nothingAnnounced(ctx context.Context, hf *holdfast.Engine) error {
	at, err := engine.Of(hf).Partition(ctx, store.Read)
	if err != nil {
		return err
	}
	now, err := readConfigVerb.DoAt(ctx, engine.Of(hf), at, "crash")
	if err != nil || now.wanted == "" {
		return err
	}
	if err := store.Shift(ctx, engine.Of(hf), time.Hour); err != nil {
		return err
	}
	if err := registryOf(engine.Of(hf)).boundTo("crash").register(ctx, false); err != nil {
		return err
	}
	if now, err = readConfigVerb.DoAt(ctx, engine.Of(hf), at, "crash"); err == nil && now.wanted != "" {
		err = fmt.Errorf("a change of the config is left announced: %+v", now)
	}
	return err
}

func (c *fxCrash) run(t *testing.T, name string) {
	t.Helper()
	holdfasttest.Crash(t, holdfasttest.Scenario{Name: name, Parts: c.parts, Do: c.do, Recover: c.recover, Check: c.check, Pairs: true})
}

// fxCharge is an effect that notes its call.
func fxCharge(ctx context.Context, k *fxCase, err error, o ...holdfast.EffectOption) (int, error) {
	return holdfast.Effect(ctx, "card", func(_ context.Context, key string) (int, error) {
		k.call(key)
		return 7, err
	}, o...)
}

func (k *fxCase) asks() holdfast.EffectOption {
	return holdfast.OnUnknownProbe(func(_ context.Context, key string) (int, bool, error) { return 7, k.calls[key] > 0, nil })
}

// TestCrashOfAStep verifies, at every point and for every fault, what a step that
// is fired comes to once the janitor and the resumer have come round: it is
// settled with what its body commits, once; or it went back, and then nothing was
// called; or it is uncertain, where the policy of its effect is to hold. No effect
// is called twice, unless its policy is to retry, and then under the same key.
func TestCrashOfAStep(t *testing.T) {
	got := func(k *fxCase, r int, err error) error {
		if err == nil && r != 7 {
			k.wrong = fmt.Errorf("the effect returns %d", r)
		}
		return err
	}
	settledOrBack := []string{"closed free", "open free"}
	for name, c := range map[string]*fxCrash{
		"ok": {safety: lifecycleconfig.Transactional, ends: settledOrBack,
			body: func(context.Context, *Act, *fxCase) error { return nil }},
		"fails": {safety: lifecycleconfig.Transactional, ends: []string{"open free"},
			body: func(context.Context, *Act, *fxCase) error { return errFxCrash }},
		"panics": {safety: lifecycleconfig.Transactional, ends: []string{"open free"},
			body: func(context.Context, *Act, *fxCase) error { panic(errFxCrash) }},
		"opaque": {safety: lifecycleconfig.Opaque, ends: []string{"closed free", "open free", "closing uncertain"},
			body: func(_ context.Context, a *Act, k *fxCase) error {
				k.call(a.Operation)
				return nil
			}},
		"hold": {safety: lifecycleconfig.Journaled, ends: []string{"closed free", "open free", "closing uncertain"},
			body: func(ctx context.Context, _ *Act, k *fxCase) error {
				r, err := fxCharge(ctx, k, nil)
				return got(k, r, err)
			}},
		"hold, recorded, and fails once": {safety: lifecycleconfig.Journaled, ends: []string{"closed free", "open free", "closing uncertain"},
			body: func(ctx context.Context, a *Act, k *fxCase) error {
				r, err := fxCharge(ctx, k, nil, holdfast.RecordNow())
				if err == nil && a.Attempt == 1 {
					return errFxCrash
				}
				return got(k, r, err)
			}},
		"probe": {safety: lifecycleconfig.Journaled, ends: settledOrBack,
			body: func(ctx context.Context, _ *Act, k *fxCase) error {
				r, err := fxCharge(ctx, k, nil, k.asks())
				return got(k, r, err)
			}},
		"retry": {safety: lifecycleconfig.Journaled, repeats: true, ends: settledOrBack,
			body: func(ctx context.Context, _ *Act, k *fxCase) error {
				r, err := fxCharge(ctx, k, nil, holdfast.OnUnknownRetry())
				return got(k, r, err)
			}},
		"not done": {safety: lifecycleconfig.Journaled, ends: []string{"open free", "closing uncertain"},
			body: func(ctx context.Context, _ *Act, k *fxCase) error {
				_, err := holdfast.Effect(ctx, "card", func(_ context.Context, key string) (int, error) {
					k.call("notDone " + key)
					return 0, holdfast.NotDone(errFxCrash)
				})
				return err
			}},
		"resolved": {safety: lifecycleconfig.Journaled, person: true, ends: settledOrBack,
			body: func(ctx context.Context, a *Act, k *fxCase) error {
				r, err := fxCharge(ctx, k, errFxCrash)
				return got(k, r, err)
			}},
		"opaque, resolved": {safety: lifecycleconfig.Opaque, person: true, ends: settledOrBack,
			body: func(_ context.Context, a *Act, k *fxCase) error {
				k.call(a.Operation)
				k.call(a.Operation + "/$body/0")
				panic(errFxCrash)
			}},
	} {
		c.run(t, name)
	}
}

// TestCrashUnderALease verifies the same of a step that is serialized: it is held where it
// is, and no crash, whenever, leaves it so.
func TestCrashUnderALease(t *testing.T) {
	settledOrBack := []string{"closed free", "open free"}
	for name, c := range map[string]*fxCrash{
		"ok":    {ends: settledOrBack, body: func(context.Context, *Act, *fxCase) error { return nil }},
		"fails": {ends: []string{"open free"}, body: func(context.Context, *Act, *fxCase) error { return errFxCrash }},
		"hold": {ends: append([]string{"open uncertain"}, settledOrBack...), body: func(ctx context.Context, _ *Act, k *fxCase) error {
			_, err := fxCharge(ctx, k, nil)
			return err
		}},
		"resolved": {person: true, ends: settledOrBack, body: func(ctx context.Context, _ *Act, k *fxCase) error {
			_, err := fxCharge(ctx, k, errFxCrash)
			return err
		}},
	} {
		c.leased, c.safety = true, lifecycleconfig.Transactional
		c.run(t, name)
	}
}
