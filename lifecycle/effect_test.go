package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

const fxConfig = `{
  "workflow": "fx", "owning_module": "fx", "initial_status": "open",
  "status_types": ["open", "charging", "charged", "wrapping", "wrapped", "trying", "tried", "broken", "done"],
  "steps": [
    {"step_id": 1, "step_key": "charge", "status": "open", "successful_claim_state": ["charging", "open"], "successful_state": "charged", "action": "Charge"},
    {"step_id": 2, "step_key": "reopen", "status": "charged", "successful_state": "open"},
    {"step_id": 3, "step_key": "wrap", "status": "open", "successful_claim_state": ["wrapping", "open"], "successful_state": "wrapped", "action": "Wrap"},
    {"step_id": 4, "step_key": "try", "status": "open", "successful_claim_state": ["trying", "open"], "successful_state": "tried", "failed_state": "broken", "action": "Charge"},
    {"step_id": 5, "step_key": "note", "status": "open", "successful_state": "done", "action": "Note"},
    {"step_id": 6, "step_key": "wrap", "status": "charged", "successful_claim_state": ["rewrapping", "charged"], "successful_state": "wrapped", "action": "Charge"},
    {"step_id": 7, "step_key": "finish", "status": ["charged", "wrapped", "tried", "broken"], "successful_state": "done"}
  ]
}`

type (
	fxAct  = lifecycle.Act[bill]
	fxBody = func(context.Context, *fxAct) error
)

// fxWorld is the world outside, and a lifecycle whose bodies act on it: what the
// body of an entity does is set by its id.
type fxWorld struct {
	*testing.T
	*lifecycle.Lifecycle[bill]
	e *holdfast.Engine

	mu     sync.Mutex
	bodies map[string]fxBody
	calls  []string // the keys, in the order of the calls

	seen map[string][]string

	sentinels int
}

// fxEach runs a test on both databases, each with a world of its own.
func fxEach(t *testing.T, f func(*fxWorld)) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, db string) {
		w := newFxWorld(t)
		w.open(holdfasttest.At(db))
		f(w)
	})
}

func newFxWorld(t *testing.T) *fxWorld {
	w := &fxWorld{T: t, bodies: make(map[string]fxBody)}
	config := strings.Replace(fxConfig, `"wrapped",`, `"wrapped", "rewrapping",`, 1)
	w.Lifecycle = lifecycle.MustParse[bill]([]byte(config)).RecoveredBy().
		Action("Charge", w.act, lifecycle.Journaled(), lifecycle.Timeout(time.Minute)).
		Action("Wrap", w.act, lifecycle.Opaque()).
		Action("Note", w.act)
	return w
}

// open opens an engine with the world's lifecycle and other parts. It logs nothing, because the tests
// cause failures on purpose.
func (w *fxWorld) open(db holdfast.Database, others ...holdfast.Part) {
	w.Helper()
	e, err := holdfast.Open(context.Background(), db, holdfast.Config{Log: slog.New(slog.DiscardHandler)}, append(others, w.Lifecycle)...)
	if err != nil {
		w.Fatal(err)
	}
	w.e = e
	w.Cleanup(func() {
		if report, err := e.Check(context.Background()); err != nil || !report.Clean() {
			w.Errorf("check: %v\n%s", err, report)
		}
		if err := e.Close(); err != nil {
			w.Error(err)
		}
	})
}

func (w *fxWorld) act(ctx context.Context, a *fxAct) error {
	w.mu.Lock()
	body := w.bodies[a.Entity.ID]
	w.mu.Unlock()
	return body(ctx, a)
}

// make makes an entity whose body is b.
func (w *fxWorld) make(id string, b fxBody) {
	w.Helper()
	if _, err := w.Create(w.Context(), w.e, id, bill{1}); err != nil {
		w.Fatal(err)
	}
	w.does(id, b)
}

// does sets the body of an entity.
func (w *fxWorld) does(id string, b fxBody) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodies[id] = b
}

// fire fires a step, and returns a panic as an error.
func (w *fxWorld) fire(ctx context.Context, id, step string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	_, err = w.Fire(ctx, w.e, id, step, "admin")
	return err
}

// call notes a call of the world outside, and returns its number.
func (w *fxWorld) call(key string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, key)
	return len(w.calls)
}

func (w *fxWorld) called() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// charge is an effect that returns the number of its call, or an error.
func (w *fxWorld) charge(ctx context.Context, name string, err error, o ...holdfast.EffectOption) (int, error) {
	return holdfast.Effect(ctx, name, func(_ context.Context, key string) (int, error) { return w.call(key), err }, o...)
}

func (w *fxWorld) get(id string) lifecycle.Entity[bill] {
	w.Helper()
	e, err := w.Get(context.Background(), w.e, id)
	if err != nil {
		w.Fatal(err)
	}
	return e
}

// is checks the status and the phase ("" is free) of an entity, and returns the
// operation that it is in.
func (w *fxWorld) is(id, status string, phase lifecycle.Phase) lifecycle.Operation {
	w.Helper()
	e := w.get(id)
	var o lifecycle.Operation
	if e.Claimed != nil {
		o = *e.Claimed
	}
	if e.Status != status || o.Phase != phase {
		w.Fatalf("entity %s: got %s, %q (%s), want %s, %q", id, e.Status, o.Phase, o.Error, status, phase)
	}
	return o
}

// find returns an operation with its effects.
func (w *fxWorld) find(operation string) lifecycle.Operation {
	w.Helper()
	p, err := lifecycle.GetOperation(context.Background(), w.e, operation)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// states are the effects of an operation, as "name/ordinal state result".
func fxStates(p lifecycle.Operation) (all []string) {
	for _, x := range p.Effects {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s/%d %s %s", x.Name, x.Ordinal, x.State, x.Result)))
	}
	slices.Sort(all)
	return all
}

// running runs an engine while f waits for something.
func (w *fxWorld) running(f func()) {
	w.Helper()
	defer testkit.Run(w, w.e)()
	f()
}

// resumed has an operation resumed once, by a running engine, when its time has
// come, and waits for the end of that attempt.
func (w *fxWorld) resumed(id string) {
	w.Helper()
	before := w.get(id).Claimed
	if before == nil || before.Phase != "due" {
		w.Fatalf("operation of %s is not due: %+v", id, before)
	}
	holdfasttest.Advance(w, w.e, 10*time.Minute)
	w.running(func() {
		testkit.Eventually(w, id+" is resumed", func() bool {
			now := w.get(id).Claimed
			return now == nil || (now.Epoch > before.Epoch && now.Phase != "held")
		})
	})
}

// wantUnchanged checks that nothing happens to an entity while a janitor and a
// running engine do what there is to do: an operation that is due after it is
// resumed.
func (w *fxWorld) wantUnchanged(id string) {
	w.Helper()
	before, calls := w.get(id), w.called()
	w.sentinels++
	other := fmt.Sprintf("sentinel-%d", w.sentinels)
	first := true
	w.make(other, func(ctx context.Context, _ *fxAct) error {
		_, err := holdfast.Effect(ctx, "s", func(context.Context, string) (int, error) { return 0, nil })
		if first && err == nil {
			first, err = false, errors.New("not yet")
		}
		return err
	})
	if err := w.fire(w.Context(), other, "charge"); err == nil {
		w.Fatal("the sentinel finished in its first attempt")
	}
	holdfasttest.Advance(w, w.e, time.Hour)
	engine.Of(w.e).Round(w.Context())
	w.resumed(other)
	w.is(other, "charged", "")
	after := w.get(id)
	if after.Version != before.Version || after.Status != before.Status || !slices.Equal(w.called(), calls) {
		w.Errorf("%s changed: got %+v, before %+v; calls %q, before %q", id, after, before, w.called(), calls)
	}
}

func fxOutcome(err error) any {
	f, _ := errors.AsType[*fault.Error](err)
	if f == nil {
		return nil
	}
	return f.Fields["outcome"]
}

var errFx = errors.New("by plan")

func (w *fxWorld) probe(happened bool, result int, err error) holdfast.EffectOption {
	return holdfast.OnUnknownProbe(func(_ context.Context, key string) (int, bool, error) {
		w.call("asked " + key)
		return result, happened, err
	})
}

// TestEffectWithAResultIsNotCalledAgain verifies, for each policy and with the
// result recorded at once or later, that the first attempt calls once and gets the
// result; that a later attempt of the operation gets the same one without a call,
// also as the attempt after that; that the key is operation, name and ordinal, and
// that the next operation on the same entity calls again under another key.
func TestEffectWithAResultIsNotCalledAgain(t *testing.T) {
	policies := map[string]func(*fxWorld) []holdfast.EffectOption{
		"hold":     func(*fxWorld) []holdfast.EffectOption { return nil },
		"retry":    func(*fxWorld) []holdfast.EffectOption { return []holdfast.EffectOption{holdfast.OnUnknownRetry()} },
		"probe":    func(w *fxWorld) []holdfast.EffectOption { return []holdfast.EffectOption{w.probe(false, 0, nil)} },
		"hold now": func(*fxWorld) []holdfast.EffectOption { return []holdfast.EffectOption{holdfast.RecordNow()} },
		"retry now": func(*fxWorld) []holdfast.EffectOption {
			return []holdfast.EffectOption{holdfast.OnUnknownRetry(), holdfast.RecordNow()}
		},
	}
	for policy, options := range policies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			fxEach(t, func(w *fxWorld) {
				var operations []string
				var got []int
				var attempts []int
				fail := 2
				w.make("b", func(ctx context.Context, a *fxAct) error {
					operations, attempts = append(operations, a.Operation), append(attempts, a.Attempt)
					r, err := w.charge(ctx, "card", nil, options(w)...)
					got = append(got, r)
					if err == nil && fail > 0 {
						fail--
						return errFx
					}
					return err
				})
				err := w.fire(w.Context(), "b", "charge")
				if !errors.Is(err, errFx) || !errors.Is(err, holdfast.ErrActionFailed) || fxOutcome(err) != "pending" {
					w.Fatalf("got error %v, outcome %v, want pending", err, fxOutcome(err))
				}
				o := w.is("b", "charging", "due")
				if p := w.find(o.ID); !slices.Equal(fxStates(p), []string{"card/0 done 1"}) || p.Effects[0].Key != o.ID+"/card/0" {
					w.Errorf("got effects %+v", p.Effects)
				}
				w.resumed("b")
				w.is("b", "charging", "due")
				w.resumed("b")
				w.is("b", "charged", "")
				if first := o.ID + "/card/0"; !slices.Equal(w.called(), []string{first}) {
					w.Errorf("got calls %q, want %q once", w.called(), first)
				}
				if !slices.Equal(got, []int{1, 1, 1}) || !slices.Equal(attempts, []int{1, 2, 3}) {
					w.Errorf("attempts %v got results %v", attempts, got)
				}
				if operations[0] != o.ID || operations[1] != o.ID || operations[2] != o.ID {
					w.Errorf("the body got operations %q, want %q", operations, o.ID)
				}
				if err := errors.Join(w.fire(w.Context(), "b", "reopen"), w.fire(w.Context(), "b", "charge")); err != nil {
					w.Fatal(err)
				}
				next := operations[len(operations)-1]
				if want := []string{o.ID + "/card/0", next + "/card/0"}; next == o.ID || !slices.Equal(w.called(), want) {
					w.Errorf("got calls %q, want %q", w.called(), want)
				}
			})
		})
	}
}

// TestUnknownUnderHoldIsParked verifies that an effect without a policy whose call returns an error parks its
// operation: the caller gets the error, the operation is listed with its effect and keeps its claim, and
// neither a janitor nor a resumer touches it.
func TestUnknownUnderHoldIsParked(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		w.make("b", func(ctx context.Context, _ *fxAct) error {
			_, err := w.charge(ctx, "card", errFx)
			return err
		})
		err := w.fire(w.Context(), "b", "charge")
		if !errors.Is(err, holdfast.ErrActionFailed) || !errors.Is(err, errFx) || fxOutcome(err) != "uncertain" {
			w.Fatalf("got error %v, want outcome uncertain", err)
		}
		o := w.is("b", "charging", "uncertain")
		w.wantUnchanged("b")
		all, err := holdfast.Collect(lifecycle.ListOperations(w.Context(), w.e, lifecycle.OperationFilter{Phase: lifecycle.Uncertain}))
		if err != nil || len(all) != 1 || all[0].ID != o.ID || all[0].Step != "charge" || all[0].Entity != "b" || all[0].Requester != "admin" {
			w.Fatalf("listed operations %+v, %v", all, err)
		}
		x := all[0].Effects
		if len(x) != 1 || x[0].Name != "card" || x[0].State != "begun" || x[0].Policy != "hold" || x[0].Key != o.ID+"/card/0" || x[0].Since.IsZero() || len(x[0].Result) != 0 {
			w.Errorf("got effects %+v", x)
		}
		for _, phase := range []string{"held", "due"} {
			if all, err := holdfast.Collect(lifecycle.ListOperations(w.Context(), w.e, lifecycle.OperationFilter{Phase: lifecycle.Phase(phase)})); err != nil || len(all) != 0 {
				w.Errorf("listed operations in phase %s: %+v, %v, want none", phase, all, err)
			}
		}
		if _, err := holdfast.Collect(lifecycle.ListOperations(w.Context(), w.e, lifecycle.OperationFilter{Phase: "leased"})); !errors.Is(err, holdfast.ErrValidation) || !strings.Contains(err.Error(), "Phase must be") {
			w.Errorf("operations in an unknown phase: got %v, want ErrValidation", err)
		}
		if err := w.fire(w.Context(), "b", "charge"); !errors.Is(err, holdfast.ErrClaimFailed) {
			w.Errorf("second caller got %v, want ErrClaimFailed", err)
		}
	})
}

// TestTakenLightly verifies that a body that ignores an effect of unknown outcome and returns nil does not
// settle its step under hold.
func TestTakenLightly(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		w.make("b", func(ctx context.Context, _ *fxAct) error {
			_, _ = w.charge(ctx, "card", errFx)
			return nil
		})
		if err := w.fire(w.Context(), "b", "charge"); fxOutcome(err) != "uncertain" {
			w.Errorf("got error %v, want outcome uncertain", err)
		}
		w.is("b", "charging", "uncertain")
	})
}

// TestTakenLightlyUnderRetry verifies the same where the effect would be tried
// again: a step is not settled while one of its effects may or may not have
// happened.
func TestTakenLightlyUnderRetry(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		first := true
		w.make("b", func(ctx context.Context, _ *fxAct) error {
			var err error
			if first {
				first, err = false, errFx
			}
			_, _ = w.charge(ctx, "card", err, holdfast.OnUnknownRetry())
			return nil
		})
		err := w.fire(w.Context(), "b", "charge")
		if e := w.get("b"); e.Status == "charged" {
			w.Errorf("settled (error %v) although an effect has an unknown outcome", err)
		}
	})
}

// TestUnknownUnderRetry verifies that an effect of unknown outcome is retried with the same key if the policy
// says that the remote system honors it.
func TestUnknownUnderRetry(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		fail := 2
		var got int
		w.make("b", func(ctx context.Context, _ *fxAct) (err error) {
			got, err = holdfast.Effect(ctx, "card", func(_ context.Context, key string) (int, error) {
				if n := w.call(key); fail > 0 {
					fail--
					return n, errFx
				}
				return 42, nil
			}, holdfast.OnUnknownRetry())
			return err
		})
		if err := w.fire(w.Context(), "b", "charge"); fxOutcome(err) != "pending" {
			w.Fatal(err)
		}
		o := w.is("b", "charging", "due")
		w.resumed("b")
		w.resumed("b")
		w.is("b", "charged", "")
		if key := o.ID + "/card/0"; got != 42 || !slices.Equal(w.called(), []string{key, key, key}) {
			w.Errorf("got %d after calls %q", got, w.called())
		}
	})
}

// TestUnknownUnderProbe verifies that the remote system is asked about an effect of unknown outcome: a result
// is used without a call, an effect that did not happen is called again with the same key, and a failed probe
// is repeated later. An effect that this attempt has begun itself is not probed.
func TestUnknownUnderProbe(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		happened, unwell, fail := false, errFx, true
		var got int
		w.make("b", func(ctx context.Context, _ *fxAct) (err error) {
			got, err = holdfast.Effect(ctx, "card", func(_ context.Context, key string) (int, error) {
				if n := w.call(key); fail {
					return n, errFx
				}
				return 42, nil
			}, w.probe(happened, 77, unwell))
			return err
		})
		if err := w.fire(w.Context(), "b", "charge"); fxOutcome(err) != "pending" {
			w.Fatal(err)
		}
		key := w.is("b", "charging", "due").ID + "/card/0"
		want := []string{key}
		wantCalls := func(also ...string) {
			w.Helper()
			if want = append(want, also...); !slices.Equal(w.called(), want) {
				w.Fatalf("got calls %q, want %q", w.called(), want)
			}
		}
		wantCalls()
		w.resumed("b") // it cannot tell
		w.is("b", "charging", "due")
		wantCalls("asked " + key)
		unwell = nil
		w.resumed("b") // it did not happen, and the next call is unknown too
		w.is("b", "charging", "due")
		wantCalls("asked "+key, key)
		happened = true
		w.resumed("b")
		w.is("b", "charged", "")
		wantCalls("asked " + key)
		if got != 77 {
			w.Errorf("the body got %d, want 77", got)
		}
	})
}

// TestNotDoneIsReleased verifies that an effect which is known not to have
// happened is closed: the body gets its error, the claim goes back, and the next
// operation calls under a new key; within one operation, it may be called again.
func TestNotDoneIsReleased(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		declined := errors.New("declined")
		w.make("b", func(ctx context.Context, _ *fxAct) error {
			_, err := w.charge(ctx, "card", holdfast.NotDone(declined))
			if !errors.Is(err, declined) {
				w.Errorf("the body got error %v, want declined", err)
			}
			return err
		})
		err := w.fire(w.Context(), "b", "charge")
		if !errors.Is(err, declined) || !errors.Is(err, holdfast.ErrActionFailed) || fxOutcome(err) != "released" {
			w.Fatalf("got error %v, want outcome released", err)
		}
		w.is("b", "open", "")
		w.does("b", func(ctx context.Context, _ *fxAct) error {
			if _, err := w.charge(ctx, "card", holdfast.NotDone(declined)); !errors.Is(err, declined) {
				w.Errorf("the body got error %v, want declined", err)
			}
			_, err := w.charge(ctx, "card", nil) // with another card
			return err
		})
		if err := w.fire(w.Context(), "b", "charge"); err != nil {
			t.Fatal(err)
		}
		w.is("b", "charged", "")
		calls := w.called()
		if len(calls) != 3 || strings.HasSuffix(calls[0], "/1") || calls[1] == calls[0] || calls[2] != strings.TrimSuffix(calls[1], "0")+"1" {
			w.Errorf("got calls %q", calls)
		}
	})
}

// TestNotDoneUnderACancelledContext verifies that what is known of an effect is
// kept where the caller's context has ended meanwhile: a declined card is
// released, and a result is found by the next attempt, recorded at once or later.
func TestNotDoneUnderACancelledContext(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		options []holdfast.EffectOption
		phase   string
		states  []string
	}{
		"not done":   {err: holdfast.NotDone(errFx)},
		"done":       {phase: "due", states: []string{"card/0 done 1"}},
		"done now":   {phase: "due", states: []string{"card/0 done 1"}, options: []holdfast.EffectOption{holdfast.RecordNow()}},
		"retry, now": {phase: "due", states: []string{"card/0 done 1"}, options: []holdfast.EffectOption{holdfast.OnUnknownRetry(), holdfast.RecordNow()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fxEach(t, func(w *fxWorld) {
				ctx, cancel := context.WithCancel(w.Context())
				defer cancel()
				w.make("b", func(ctx context.Context, _ *fxAct) error {
					_, err := holdfast.Effect(ctx, "card", func(_ context.Context, key string) (int, error) {
						defer cancel()
						return w.call(key), c.err
					}, c.options...)
					return errors.Join(err, ctx.Err())
				})
				err := w.fire(ctx, "b", "charge")
				if !errors.Is(err, holdfast.ErrActionFailed) {
					w.Errorf("got error %v, want ErrActionFailed", err)
				}
				if c.phase == "" {
					w.is("b", "open", "")
					return
				}
				o := w.is("b", "charging", lifecycle.Phase(c.phase))
				if got := fxStates(w.find(o.ID)); !slices.Equal(got, c.states) {
					w.Errorf("got effects %q, want %q", got, c.states)
				}
			})
		})
	}
}

// TestEndsWithAnEffectBegun verifies, for every way in which a body can end that
// is no success, that with an effect begun the entity does not go back: it is
// resumed with the result of the effect, which is not called again, or parked
// where another attempt would not help.
func TestEndsWithAnEffectBegun(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(*fxWorld, context.Context) error
		phase string
		told  string // of the error
	}{
		"failure":       {func(*fxWorld, context.Context) error { return errFx }, "due", "pending"},
		"invalid":       {func(*fxWorld, context.Context) error { return holdfast.Invalid("no") }, "uncertain", "uncertain"},
		"non-retryable": {func(*fxWorld, context.Context) error { return fault.NonRetryable(errFx) }, "uncertain", "uncertain"},
		"panic":         {func(*fxWorld, context.Context) error { panic("ouch") }, "due", ""},
		"cancelled":     {func(_ *fxWorld, ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "due", "pending"},
		"commit fails":  {nil, "due", "pending"},
		"death": {func(w *fxWorld, ctx context.Context) error {
			holdfasttest.Advance(w, w.e, time.Hour)
			engine.Of(w.e).Round(context.WithoutCancel(ctx))
			return nil
		}, "due", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fxEach(t, func(w *fxWorld) {
				ctx, cancel := context.WithCancel(w.Context())
				defer cancel()
				first := true
				w.make("b", func(ctx context.Context, a *fxAct) error {
					r, err := w.charge(ctx, "card", nil, holdfast.RecordNow())
					if r != 1 || err != nil {
						w.Errorf("the effect returned %d, %v, want 1", r, err)
					}
					if !first {
						return nil
					}
					first = false
					if name == "cancelled" {
						cancel()
					}
					if c.end == nil {
						a.WriteTx(func(context.Context, holdfast.Tx) error { return errFx })
						return nil
					}
					return c.end(w, ctx)
				})
				err := w.fire(ctx, "b", "charge")
				if err == nil || (c.told != "" && fxOutcome(err) != c.told) {
					w.Errorf("got error %v, outcome %v, want %v", err, fxOutcome(err), c.told)
				}
				if name == "panic" && err.Error() != "panic: ouch" {
					w.Errorf("the panic is reported as %v", err)
				}
				if name == "death" && !errors.Is(err, holdfast.ErrLeaseLost) {
					w.Errorf("the late holder got %v, want ErrLeaseLost", err)
				}
				o := w.is("b", "charging", lifecycle.Phase(c.phase))
				if c.phase == "uncertain" {
					w.wantUnchanged("b")
					if _, err := lifecycle.Resolve(w.Context(), w.e, o.ID, nil, lifecycle.By("me")); err != nil {
						w.Fatal(err)
					}
				}
				w.resumed("b")
				w.is("b", "charged", "")
				if calls := w.called(); len(calls) != 1 {
					w.Errorf("got calls %q, want one", calls)
				}
			})
		})
	}
}

// TestTimeoutWithAnEffectBegun verifies that a body which does not end in time has
// its effect kept too.
func TestTimeoutWithAnEffectBegun(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		config := strings.ReplaceAll(strings.Replace(fxConfig, `"wrapped",`, `"wrapped", "rewrapping",`, 1), `"fx"`, `"slow"`)
		first := true
		l := lifecycle.MustParse[bill]([]byte(config)).RecoveredBy().
			Action("Charge", func(ctx context.Context, _ *fxAct) error {
				if _, err := w.charge(context.WithoutCancel(ctx), "card", nil); err != nil || !first {
					return err
				}
				first = false
				<-ctx.Done()
				return ctx.Err()
			}, lifecycle.Journaled(), lifecycle.Timeout(20*time.Millisecond)).
			Action("Wrap", w.act, lifecycle.Opaque()).Action("Note", w.act)
		if err := l.Register(w.Context(), w.e); err != nil {
			w.Fatal(err)
		}
		if _, err := l.Create(w.Context(), w.e, "b", bill{}); err != nil {
			w.Fatal(err)
		}
		_, err := l.Fire(w.Context(), w.e, "b", "charge", "admin")
		if !errors.Is(err, holdfast.ErrActionFailed) || fxOutcome(err) != "pending" {
			w.Fatalf("got error %v, want outcome pending", err)
		}
		got, err := l.Get(w.Context(), w.e, "b")
		if err != nil || got.Status != "charging" || got.Claimed == nil || got.Claimed.Phase != "due" {
			w.Fatalf("got %+v, %v, want a due operation", got, err)
		}
		if p := w.find(got.Claimed.ID); !slices.Equal(fxStates(p), []string{"card/0 done 1"}) {
			w.Errorf("got effects %q", fxStates(p))
		}
	})
}

// TestResumedUpToALimit verifies that an operation that fails each time, with an effect done, is attempted
// six times and then parked, and that an operation that crashes each of its holders is parked after five
// crashes. Neither is reverted.
func TestResumedUpToALimit(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		tries := 0
		w.make("b", func(ctx context.Context, _ *fxAct) error {
			tries++
			_, err := w.charge(ctx, "card", nil)
			return errors.Join(err, errFx)
		})
		if err := w.fire(w.Context(), "b", "charge"); fxOutcome(err) != "pending" {
			w.Fatal(err)
		}
		for w.get("b").Claimed.Phase == "due" {
			w.resumed("b")
		}
		o := w.is("b", "charging", "uncertain")
		if tries != 6 || o.Failures != 6 || o.Crashes != 0 || len(w.called()) != 1 {
			w.Errorf("after %d attempts: got %+v, calls %q", tries, o, w.called())
		}
		w.wantUnchanged("b")

		w.make("d", func(ctx context.Context, _ *fxAct) error {
			if _, err := w.charge(ctx, "deadly", nil, holdfast.OnUnknownRetry()); err != nil {
				return err
			}
			holdfasttest.Advance(w, w.e, time.Hour)
			engine.Of(w.e).Round(context.WithoutCancel(ctx))
			return nil
		})
		if err := w.fire(w.Context(), "d", "charge"); !errors.Is(err, holdfast.ErrLeaseLost) {
			w.Fatal(err)
		}
		w.running(func() {
			testkit.Eventually(w, "the crashing operation is parked", func() bool { return w.get("d").Claimed.Phase == "uncertain" })
		})
		if o := w.is("d", "charging", "uncertain"); o.Crashes != 5 || o.Failures != 0 {
			w.Errorf("got parked operation %+v, want 5 crashes and no failures", o)
		}
	})
}

// TestOpaque verifies that the return value of an opaque body decides, so that a failure and a refusal revert
// the entity; and that after a panic, an ended context or a crash the operation is uncertain, under the
// effect name "$body", and does not run again automatically.
func TestOpaque(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(*fxWorld, context.Context) error
		status string
		phase  string
	}{
		"success": {func(*fxWorld, context.Context) error { return nil }, "wrapped", ""},
		"failure": {func(*fxWorld, context.Context) error { return errFx }, "open", ""},
		"invalid": {func(*fxWorld, context.Context) error { return holdfast.Invalid("no") }, "open", ""},
		"panic":   {func(*fxWorld, context.Context) error { panic("ouch") }, "wrapping", "uncertain"},
		"cancelled": {func(_ *fxWorld, ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, "wrapping", "uncertain"},
		"death": {func(w *fxWorld, ctx context.Context) error {
			holdfasttest.Advance(w, w.e, time.Hour)
			engine.Of(w.e).Round(context.WithoutCancel(ctx))
			return nil
		}, "wrapping", "uncertain"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fxEach(t, func(w *fxWorld) {
				ctx, cancel := context.WithCancel(w.Context())
				defer cancel()
				w.make("b", func(ctx context.Context, _ *fxAct) error {
					w.call("body")
					if name == "cancelled" {
						cancel()
					}
					return c.end(w, ctx)
				})
				err := w.fire(ctx, "b", "wrap")
				if (err == nil) != (c.status == "wrapped") {
					w.Errorf("got error %v", err)
				}
				o := w.is("b", c.status, lifecycle.Phase(c.phase))
				if c.phase == "" {
					return
				}
				if got := fxStates(w.find(o.ID)); !slices.Equal(got, []string{"$body/0 begun"}) {
					w.Errorf("got effects %q", got)
				}
				w.wantUnchanged("b")
			})
		})
	}
}

// TestOpaqueWhoseCommitFails verifies that an opaque body that returned success is not reverted if its writes
// fail, because it has acted and must not run again.
func TestOpaqueWhoseCommitFails(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		w.make("b", func(_ context.Context, a *fxAct) error {
			w.call("body")
			a.WriteTx(func(context.Context, holdfast.Tx) error { return errFx })
			return nil
		})
		if err := w.fire(w.Context(), "b", "wrap"); !errors.Is(err, errFx) {
			w.Errorf("got error %v, want errFx", err)
		}
		w.is("b", "wrapping", "uncertain")
	})
}

// TestOpaqueOnlyWhereItStarts verifies that a step whose action is journaled is
// not treated as opaque because another one of its key, at another status, is:
// without an effect begun it goes back.
func TestOpaqueOnlyWhereItStarts(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		w.make("b", func(context.Context, *fxAct) error { return nil })
		if err := w.fire(w.Context(), "b", "charge"); err != nil {
			w.Fatal(err)
		}
		w.does("b", func(context.Context, *fxAct) error { panic("ouch") })
		if err := w.fire(w.Context(), "b", "wrap"); err == nil {
			w.Fatal("no panic")
		}
		w.is("b", "charged", "")
	})
}

// TestWhereEffectsMayNotBe verifies that an effect outside of any operation, in a
// step that is not claimed, under a name that is none, with two policies, or whose result
// cannot be kept as JSON, is refused; all but the last before its call.
func TestWhereEffectsMayNotBe(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		if _, err := w.charge(w.Context(), "card", nil); !errors.Is(err, holdfast.ErrValidation) {
			w.Errorf("effect outside an action: got %v, want ErrValidation", err)
		}
		w.make("free", func(ctx context.Context, _ *fxAct) error {
			_, err := w.charge(ctx, "card", nil)
			return err
		})
		if err := w.fire(w.Context(), "free", "note"); !errors.Is(err, holdfast.ErrValidation) || !errors.Is(err, holdfast.ErrActionFailed) {
			w.Errorf("effect without a claim: got %v, want ErrValidation", err)
		}
		w.is("free", "open", "")
		for i, name := range []string{"", "$body", "$x", "a\x00b", "a\xffb", strings.Repeat("n", 5000)} {
			id := fmt.Sprintf("n%d", i)
			w.make(id, func(ctx context.Context, _ *fxAct) error {
				_, err := w.charge(ctx, name, nil)
				return err
			})
			if err := w.fire(w.Context(), id, "charge"); !errors.Is(err, holdfast.ErrValidation) || fxOutcome(err) != "released" {
				w.Errorf("name %.10q: got %v, want ErrValidation", name, err)
			}
			w.is(id, "open", "")
		}
		w.make("both", func(ctx context.Context, _ *fxAct) error {
			_, err := w.charge(ctx, "card", nil, holdfast.OnUnknownRetry(), w.probe(true, 1, nil))
			return err
		})
		if err := w.fire(w.Context(), "both", "charge"); !errors.Is(err, holdfast.ErrValidation) || fxOutcome(err) != "released" {
			w.Errorf("two policies: got %v, want ErrValidation", err)
		}
		w.is("both", "open", "")
		if calls := w.called(); len(calls) != 0 {
			w.Errorf("got calls %q, want none", calls)
		}
		w.make("json", func(ctx context.Context, _ *fxAct) error {
			_, err := holdfast.Effect(ctx, "card", func(_ context.Context, key string) (any, error) {
				w.call(key)
				return func() {}, nil
			})
			return err
		})
		if err := w.fire(w.Context(), "json", "charge"); !errors.Is(err, holdfast.ErrValidation) || fxOutcome(err) != "uncertain" {
			w.Errorf("result that cannot be stored: got %v, want ErrValidation", err)
		}
		w.is("json", "charging", "uncertain")
	})
}

// TestUnclaimedInsideClaimed verifies that a step without a claim that a body
// fires has no effects either: they are not those of the operation around it.
func TestUnclaimedInsideClaimed(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		w.make("inner", func(ctx context.Context, _ *fxAct) error {
			_, err := w.charge(ctx, "card", nil)
			return err
		})
		w.make("outer", func(ctx context.Context, _ *fxAct) error {
			if err := w.fire(ctx, "inner", "note"); !errors.Is(err, holdfast.ErrValidation) {
				w.Errorf("the inner action got %v, want ErrValidation", err)
			}
			return nil
		})
		if err := w.fire(w.Context(), "outer", "charge"); err != nil {
			w.Fatal(err)
		}
		if calls := w.called(); len(calls) != 0 {
			w.Errorf("got calls %q, want none", calls)
		}
	})
}

// TestEffectsAfterTheHoldWasLost verifies that a body that has lost its lease begins no effect, records no
// result and settles nothing.
func TestEffectsAfterTheHoldWasLost(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		w.make("b", func(ctx context.Context, _ *fxAct) error {
			holdfasttest.Advance(w, w.e, time.Hour) // nobody has swept
			_, err := w.charge(ctx, "late", nil)
			if !errors.Is(err, holdfast.ErrLeaseLost) {
				w.Errorf("got error %v, want ErrLeaseLost", err)
			}
			engine.Of(w.e).Round(context.WithoutCancel(ctx))
			if _, err := w.charge(ctx, "later", nil); !errors.Is(err, holdfast.ErrLeaseLost) {
				w.Errorf("after the sweep: got %v, want ErrLeaseLost", err)
			}
			return err
		})
		if err := w.fire(w.Context(), "b", "charge"); !errors.Is(err, holdfast.ErrLeaseLost) {
			w.Errorf("got error %v, want ErrLeaseLost", err)
		}
		w.is("b", "open", "")
		w.make("c", func(ctx context.Context, a *fxAct) error {
			_, err := holdfast.Effect(ctx, "card", func(ctx context.Context, key string) (int, error) {
				holdfasttest.Advance(w, w.e, time.Hour)
				engine.Of(w.e).Round(context.WithoutCancel(ctx))
				return w.call(key), nil
			}, holdfast.RecordNow())
			if a.Attempt == 1 && !errors.Is(err, holdfast.ErrLeaseLost) {
				w.Errorf("late result: got %v, want ErrLeaseLost", err)
			}
			return err
		})
		if err := w.fire(w.Context(), "c", "charge"); !errors.Is(err, holdfast.ErrLeaseLost) {
			w.Errorf("got error %v, want ErrLeaseLost", err)
		}
		o := w.is("c", "charging", "due")
		if got := fxStates(w.find(o.ID)); !slices.Equal(got, []string{"card/0 begun"}) {
			w.Errorf("got effects %q", got)
		}
		w.resumed("c") // nothing is known of it
		w.is("c", "charging", "uncertain")
		if calls := w.called(); len(calls) != 1 {
			w.Errorf("got calls %q, want one", calls)
		}
	})
}

// TestOrdinals verifies that effects of the same name are distinguished by the order in which they begin, and
// get their own results again.
func TestOrdinals(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		var got [][]int
		first := true
		w.make("b", func(ctx context.Context, _ *fxAct) error {
			var all []int
			for range 3 {
				r, err := w.charge(ctx, "card", nil)
				if err != nil {
					return err
				}
				all = append(all, r)
			}
			if got = append(got, all); first {
				first = false
				return errFx
			}
			return nil
		})
		if err := w.fire(w.Context(), "b", "charge"); fxOutcome(err) != "pending" {
			w.Fatal(err)
		}
		id := w.is("b", "charging", "due").ID
		w.resumed("b")
		w.is("b", "charged", "")
		if fmt.Sprint(got) != "[[1 2 3] [1 2 3]]" || !slices.Equal(w.called(), []string{id + "/card/0", id + "/card/1", id + "/card/2"}) {
			w.Errorf("got %v after calls %q", got, w.called())
		}
	})
}

// TestConcurrentEffects verifies that effects of different names may be done at
// once: each is called once, and each result is known to the next attempt.
func TestConcurrentEffects(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		const n = 8
		first := true
		w.make("b", func(ctx context.Context, _ *fxAct) error {
			_, lost := holdfasttest.Race(w, n, func(i int) error {
				for j := range 3 {
					r, err := holdfast.Effect(ctx, fmt.Sprintf("e%d", i), func(_ context.Context, key string) (string, error) {
						w.call(key)
						return key, nil
					})
					if err != nil || !strings.HasSuffix(r, fmt.Sprintf("/e%d/%d", i, j)) {
						return fmt.Errorf("effect %d of %d returned %q: %w", j, i, r, err)
					}
				}
				return nil
			})
			if first {
				first = false
				lost = append(lost, errFx)
			}
			return errors.Join(lost...)
		})
		if err := w.fire(w.Context(), "b", "charge"); fxOutcome(err) != "pending" {
			w.Fatal(err)
		}
		o := w.is("b", "charging", "due")
		for _, x := range w.find(o.ID).Effects {
			if x.State != "done" {
				w.Errorf("effect %s is %s, but returned", x.Key, x.State)
			}
		}
		w.resumed("b")
		w.is("b", "charged", "")
		if calls := w.called(); len(calls) != 3*n || len(slices.Compact(slices.Sorted(slices.Values(calls)))) != 3*n {
			w.Errorf("got calls %q", calls)
		}
	})
}

// TestRecordNow verifies that a result with RecordNow is in the journal before the body continues, and
// otherwise with the next effect.
func TestRecordNow(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		w.make("b", func(ctx context.Context, a *fxAct) error {
			for i, c := range []struct {
				options []holdfast.EffectOption
				want    string
			}{
				{nil, "[e0/0 begun]"},
				{nil, "[e0/0 done 1 e1/0 begun]"},
				{[]holdfast.EffectOption{holdfast.RecordNow()}, "[e0/0 done 1 e1/0 done 2 e2/0 done 3]"},
			} {
				if _, err := w.charge(ctx, fmt.Sprintf("e%d", i), nil, c.options...); err != nil {
					return err
				}
				if got := fmt.Sprint(fxStates(w.find(a.Operation))); got != c.want {
					w.Errorf("after step %d: got effects %s, want %s", i, got, c.want)
				}
			}
			return nil
		})
		if err := w.fire(w.Context(), "b", "charge"); err != nil {
			w.Error(err)
		}
		w.is("b", "charged", "")
	})
}

// TestResultsAreKeptAsTheyAre verifies that results come back as they were given:
// structures, text with anything in it, large numbers and nothing at all.
func TestResultsAreKeptAsTheyAre(t *testing.T) {
	type receipt struct {
		ID    string            `json:"id"`
		Cents int64             `json:"cents"`
		Tags  map[string]string `json:"tags"`
		Raw   json.RawMessage   `json:"raw"`
	}
	want := receipt{"ä\"\\\n'; -- \U0001F600", 9007199254740993, map[string]string{"r": "{n: 1}", "n": "null"}, json.RawMessage(`{"n":[1,null],"o":0,"r":2}`)}
	fxEach(t, func(w *fxWorld) {
		first := true
		w.make("b", func(ctx context.Context, _ *fxAct) error {
			for i := range 2 {
				var now []holdfast.EffectOption
				if i == 1 {
					now = append(now, holdfast.RecordNow())
				}
				got, err := holdfast.Effect(ctx, "card", func(context.Context, string) (receipt, error) { return want, nil }, now...)
				if err != nil || got.ID != want.ID || got.Cents != want.Cents || fmt.Sprint(got.Tags) != fmt.Sprint(want.Tags) || strings.ReplaceAll(string(got.Raw), " ", "") != string(want.Raw) {
					w.Errorf("got %+v, %v", got, err)
				}
			}
			if got, err := holdfast.Effect(ctx, "none", func(context.Context, string) (*receipt, error) { return nil, nil }); got != nil || err != nil {
				w.Errorf("a nil result is returned as %+v, %v", got, err)
			}
			if first {
				first = false
				return errFx
			}
			return nil
		})
		if err := w.fire(w.Context(), "b", "charge"); fxOutcome(err) != "pending" {
			w.Fatal(err)
		}
		w.resumed("b")
		w.is("b", "charged", "")
	})
}

// TestEffectsUnderAClaimTakenByHand verifies that a manual claim with a begun effect is never reverted: a
// release, a failure and a crash park it, because it cannot be resumed, and it is resolved only with an
// outcome. There is no public way to journal under such a claim yet, so the test uses the journal itself.
func TestEffectsUnderAClaimTakenByHand(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		for name, end := range map[string]func(*lifecycle.Claim[bill]) error{
			"release": func(c *lifecycle.Claim[bill]) error { _, err := c.Fail(w.Context(), "no"); return err },
			"failure": func(c *lifecycle.Claim[bill]) error {
				_, err := c.Fail(w.Context(), "")
				return err
			},
			"invalid": func(c *lifecycle.Claim[bill]) error {
				_, err := c.Reject(w.Context(), "")
				return err
			},
			"death": func(*lifecycle.Claim[bill]) error {
				holdfasttest.Advance(w, w.e, time.Hour)
				engine.Of(w.e).Round(w.Context())
				return nil
			},
		} {
			w.make(name, nil)
			c, err := w.Claim(w.Context(), w.e, name, "try", "admin")
			if err != nil {
				w.Fatal(err)
			}
			if err := fxBegin(w, c, w.Name(), name); err != nil {
				w.Fatal(err)
			}
			if err := end(c); err != nil {
				w.Errorf("%s: %v", name, err)
			}
			o := w.is(name, "trying", "uncertain")
			w.wantUnchanged(name)
			known := []holdfast.Resolution{{Name: "card", State: holdfast.EffectDone}}
			if _, err := lifecycle.Resolve(w.Context(), w.e, o.ID, known, lifecycle.By("me")); !errors.Is(err, holdfast.ErrValidation) {
				w.Errorf("%s: resolve without an outcome: got %v, want ErrValidation", name, err)
			}
			if got := fxStates(w.find(o.ID)); !slices.Equal(got, []string{"card/0 begun"}) {
				w.Errorf("%s: effects after the refused resolve are %q", name, got)
			}
			if _, err := lifecycle.Resolve(w.Context(), w.e, o.ID, known, lifecycle.EndWith(lifecycle.Success), lifecycle.By("me")); err != nil {
				w.Errorf("%s: %v", name, err)
			}
			w.is(name, "tried", "")
		}
	})
}

// fxBegin begins an effect, "card", under a claim of Lifecycle.Claim.
func fxBegin(w *fxWorld, c *lifecycle.Claim[bill], name, id string) error {
	at, err := engine.Of(w.e).Partition(w.Context(), store.Write)
	if err != nil {
		return err
	}
	ticket := entities.Ticket{Lifecycle: name, ID: id, Operation: c.Operation(), Epoch: c.Entity.Claimed.Epoch}
	_, err = effects.Begin(w.Context(), engine.Of(w.e), at, ticket, "card", 0, effects.Retry, nil)
	return err
}
