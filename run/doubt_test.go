package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// tally counts what bodies do, by run: two databases share a definition, but no run.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

// add counts one more for the run that a body is in, and returns how many that makes.
func (y *tally) add(ctx context.Context) int {
	info, _ := run.Of(ctx)
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.n == nil {
		y.n = make(map[string]int)
	}
	y.n[info.Run]++
	return y.n[info.Run]
}

// of is how many there were for some runs.
func (y *tally) of(ids ...string) (n int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, id := range ids {
		n += y.n[id]
	}
	return n
}

// once polls once for due work, and does it.
func (b *bench) once() {
	b.t.Helper()
	at, err := engine.Of(b.e).Partition(b.ctx, store.Read)
	b.ok(err)
	_, err = run.WorkerOf(b.e).Step(b.ctx, at)
	b.ok(err)
}

// expire frees what the dead have held.
func (b *bench) expire() {
	b.t.Helper()
	at, err := engine.Of(b.e).Partition(b.ctx, store.Read)
	b.ok(err)
	_, err = b.executor().Expire(b.ctx, engine.Of(b.e), at)
	b.ok(err)
}

// uncertain checks whether the step waits for a person, at a run of that status.
func (b *bench) uncertain(status string) {
	b.t.Helper()
	if l := b.live(); l.Run.Status != status || l.Step.Status != "RUNNING" || !l.Step.Uncertain || l.Step.Holder != "" {
		b.t.Fatalf("got run %s, step %s, uncertain: %v, holder %q (%s)", l.Run.Status, l.Step.Status, l.Step.Uncertain, l.Step.Holder, l.Step.Error)
	}
}

// resolve resolves an effect of the step.
func (b *bench) resolve(name string, happened bool) {
	b.t.Helper()
	known := holdfast.Resolution{Name: name, State: holdfast.EffectNotDone}
	if happened {
		known.State, known.Result = holdfast.EffectDone, []byte(`"yes"`)
	}
	r, err := run.Resolve(b.ctx, b.e, b.doubtful(), []holdfast.Resolution{known}, run.By("ann"))
	if b.ok(err); r.ID != b.id {
		b.t.Fatalf("resolved run %q, want %q", r.ID, b.id)
	}
}

// doubtful returns the operation of the uncertain visit.
func (b *bench) doubtful() (operation string) {
	b.t.Helper()
	for v, err := range run.ListSteps(b.ctx, b.e, b.id) {
		if b.ok(err); v.Uncertain {
			operation = v.Operation
		}
	}
	return operation
}

// Verifies that a person can end an uncertain step with an outcome, once, and that the history has
// the actor.
func TestResolveEndsAStep(t *testing.T) {
	def := run.Define("ended", "1", run.Task("a", func(context.Context, any) (string, error) { panic("acted, and died") }, run.Opaque()))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for outcome, status := range map[run.Outcome]run.Status{run.Success: run.Completed, run.Failure: run.Failed} {
			b := newBench(t, e, def)
			b.once()
			b.uncertain("RUNNING")
			operation := b.doubtful()
			if _, err := run.Resolve(b.ctx, e, operation, nil, run.EndWith(outcome)); !errors.Is(err, holdfast.ErrConflict) {
				t.Errorf("ended although the body is unknown: got %v, want ErrConflict", err)
			}
			if _, err := run.Resolve(b.ctx, e, operation, nil, run.EndWith("")); !errors.Is(err, holdfast.ErrValidation) {
				t.Errorf("resolved with an empty outcome: got %v, want ErrValidation", err)
			}
			if _, err := run.Resolve(b.ctx, e, operation, nil, run.EndWith("other")); !errors.Is(err, holdfast.ErrValidation) {
				t.Errorf("resolved with another outcome: got %v, want ErrValidation", err)
			}
			if _, err := run.Resolve(b.ctx, e, operation, []holdfast.Resolution{{Name: "", State: holdfast.EffectDone}}); !errors.Is(err, holdfast.ErrValidation) {
				t.Errorf("resolved an effect without a name: got %v, want ErrValidation", err)
			}
			r, err := run.Resolve(b.ctx, e, operation, []holdfast.Resolution{{Name: "$body", State: holdfast.EffectDone}}, run.EndWith(outcome), run.By("ann"))
			if err != nil || r.Status != status {
				t.Errorf("ended with %s: got %s, %v, want %s", outcome, r.Status, err, status)
			}
			if _, err := run.Resolve(b.ctx, e, operation, nil, run.EndWith(outcome)); !errors.Is(err, holdfast.ErrConflict) {
				t.Errorf("resolved twice: got %v, want ErrConflict", err)
			}
			by := ""
			for x, err := range stream.Read(b.ctx, e, "$run/"+b.id, 0) {
				if b.ok(err); x.Name == "stepResolved" {
					by = string(x.Data)
				}
			}
			if !strings.Contains(by, `"ann"`) {
				t.Errorf("the history has no actor: %s", by)
			}
		}
		if _, err := run.Resolve(t.Context(), e, "none", nil); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("resolved an unknown operation: got %v, want ErrNotFound", err)
		}
	}, def)
}

// Verifies that a resolution of some effects is stored while others stay unknown, that the step does not end before all are
// known, and that a later resolution must not contradict an earlier one.
func TestResolveStoresWhatIsKnown(t *testing.T) {
	var bodies tally
	def := run.Define("partly", "1", run.Task("a", func(ctx context.Context, _ any) (string, error) {
		bodies.add(ctx)
		lost := func(context.Context, string) (string, error) { return "", errors.New("no answer") }
		card, _ := holdfast.Effect(ctx, "card", lost)
		mail, err := holdfast.Effect(ctx, "mail", lost)
		return card + mail, err
	}))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, def)
		b.once()
		b.uncertain("RUNNING")
		operation := b.doubtful()
		resolve := func(o []run.ResolveOption, all ...holdfast.Resolution) error {
			_, err := run.Resolve(b.ctx, e, operation, all, o...)
			return err
		}
		card, mail := holdfast.Resolution{Name: "card", State: holdfast.EffectDone, Result: []byte(`"c"`)}, holdfast.Resolution{Name: "mail", State: holdfast.EffectDone, Result: []byte(`"m"`)}
		end := []run.ResolveOption{run.EndWith(run.Failure)}
		if err := resolve(end, card); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("ended although an effect is unknown: got %v, want ErrConflict", err)
		}
		for range 2 {
			b.ok(resolve(nil, card))
			b.uncertain("RUNNING")
		}
		for _, other := range []holdfast.Resolution{{Name: "card", State: holdfast.EffectNotDone}, {Name: "card", State: holdfast.EffectDone, Result: []byte(`"x"`)}} {
			if err := resolve(nil, other, mail); !errors.Is(err, holdfast.ErrConflict) {
				t.Errorf("contradicted a stored resolution with %+v: got %v, want ErrConflict", other, err)
			}
		}
		b.uncertain("RUNNING")
		all, err := holdfast.Collect(run.ListUncertain(b.ctx, e))
		if b.ok(err); len(all) != 1 || all[0].Run != b.id || all[0].Operation != operation || !all[0].Uncertain || all[0].Name != "a" || len(all[0].Effects) != 2 {
			t.Fatalf("got uncertain steps %+v", all)
		}
		if x, y := all[0].Effects[0], all[0].Effects[1]; x.Name != "card" || x.State != holdfast.EffectDone || string(x.Result) != `"c"` || x.Key != operation+"/card/0" ||
			y.Name != "mail" || y.State != holdfast.EffectBegun || y.Policy != holdfast.EffectHold || y.Since.IsZero() {
			t.Errorf("got effects %+v", all[0].Effects)
		}
		b.ok(resolve(nil, mail))
		if left, err := holdfast.Collect(run.ListUncertain(b.ctx, e)); err != nil || len(left) != 0 {
			t.Errorf("got uncertain steps %+v, %v, want none", left, err)
		}
		b.once()
		b.is("COMPLETED", "a", "COMPLETED")
		if n, l := bodies.of(b.id), b.live(); n != 2 || string(l.Step.Output) != `"cm"` {
			t.Errorf("the body ran %d times and returned %s, want twice, with the results of both effects", n, l.Step.Output)
		}
	}, def)
}

// stopOnce runs an engine until something is so, and stops it in an orderly way.
func stopOnce(t *testing.T, e *holdfast.Engine, yes func() bool) {
	t.Helper()
	stop := testkit.Run(t, e)
	testkit.Eventually(t, "the engine may stop", yes)
	stop()
}

// Verifies that of two waits in a row for one signal the second waits on when the first has
// taken it, that looking at it again harms nobody, and that another signal ends it.
func TestTwoWaitsForOneSignal(t *testing.T) {
	def := run.Define("twice", "1", run.Signal("a", "news"), run.Signal("b", "news"))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, def)
		b.ok(run.Send(b.ctx, e, b.id, "news", 1, run.SignalID("1")))
		for range 4 {
			b.once()
			b.is("WAITING", "b", "WAITING")
		}
		b.ok(run.Send(b.ctx, e, b.id, "news", 2, run.SignalID("2")))
		b.once()
		b.is("COMPLETED", "b", "COMPLETED")
		if out := b.live().Step.Output; string(out) != "2" {
			t.Errorf("the second wait took %s, want 2", out)
		}
	})
}

// Verifies that an opaque body that did its work, but whose end cannot be kept, is uncertain
// and not begun again: what it brought is too big, or what it wants written fails or panics.
// Who knows what happened ends it.
func TestAnOpaqueEndThatCannotBeKept(t *testing.T) {
	var begun tally
	ends := map[string]func(context.Context) (string, error){
		"big": func(context.Context) (string, error) { return strings.Repeat("x", 2<<20), nil },
		"commit": func(ctx context.Context) (string, error) {
			return "x", commitEnds(ctx, func() error { return errors.New("no") })
		},
		"panic": func(ctx context.Context) (string, error) {
			return "x", commitEnds(ctx, func() error { panic("poison") })
		},
	}
	var defs []*run.Definition
	for name, end := range ends {
		defs = append(defs, run.Define("unkept-"+name, "1", run.Task("a", func(ctx context.Context, _ any) (string, error) {
			begun.add(ctx)
			return end(ctx)
		}, run.Opaque())))
	}
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for _, def := range defs {
			b := newBench(t, e, def)
			for range 4 {
				b.once()
				b.uncertain("RUNNING")
				holdfasttest.Advance(t, e, time.Minute)
			}
			if n := begun.of(b.id); n != 1 {
				t.Errorf("%s: the effect began %d times, want 1", def.ID(), n)
			}
			b.resolve(effects.Body, true)
			b.is("COMPLETED", "a", "COMPLETED")
		}
	}, parts(defs)...)
}

// commitEnds has something written with the end of the step that ends so.
func commitEnds(ctx context.Context, end func() error) error {
	return run.WriteTx(ctx, func(context.Context, holdfast.Tx) error { return end() })
}

// Verifies that what panics in the transaction that ends a step is a failure of the step, and
// not the end of the process.
func TestAPanicInACommit(t *testing.T) {
	def := run.Define("poison", "1", run.Task("a", func(ctx context.Context, _ any) (int, error) {
		return 1, commitEnds(ctx, func() error { panic("poison") })
	}, run.Transactional(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 2, Backoff: time.Second})))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, def)
		b.once()
		b.is("WAITING", "a", "WAITING")
		holdfasttest.Advance(t, e, time.Minute)
		b.once()
		b.is("FAILED", "a", "FAILED")
		if l := b.live(); l.Step.Failures != 2 || l.Step.Crashes != 0 || !strings.Contains(l.Step.Error, "poison") {
			t.Errorf("got %d failures, %d crashes, want 2 and 0: %s", l.Step.Failures, l.Step.Crashes, l.Step.Error)
		}
	}, def)
}

// Verifies that a cancel of a run that waits to try an opaque body again, of which nobody
// knows what it did, is noted and the step uncertain; and that the run is cancelled when
// somebody has said what happened, whatever that is.
func TestACancelWithAnUnknownBody(t *testing.T) {
	var begun tally
	def := run.Define("unknown", "1", run.Task("a", func(ctx context.Context, _ any) (string, error) {
		begun.add(ctx)
		panic("acted, and died")
	}, run.Opaque(), run.OnUnknownRetry()))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for happened, step := range map[bool]string{false: "CANCELLED", true: "COMPLETED"} {
			b := newBench(t, e, def)
			b.once()
			b.is("WAITING", "a", "WAITING")
			for range 2 { // a second cancel changes nothing
				b.ok(b.do(runengine.Cancel))
				b.uncertain("RUNNING")
			}
			holdfasttest.Advance(t, e, time.Hour)
			b.once()
			if n := begun.of(b.id); n != 1 || !b.live().Run.CancelRequested {
				t.Errorf("the effect began %d times, want 1; cancel requested: %v", n, b.live().Run.CancelRequested)
			}
			b.resolve(effects.Body, happened)
			b.is("CANCELLED", "a", step)
		}
	}, def)
}

// Verifies the same of a journaled step whose worker died within an effect.
func TestACancelWithAnUnknownEffect(t *testing.T) {
	def := run.Define("charged", "1", run.Remote("a", "w", run.Journaled()))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for _, happened := range []bool{false, true} {
			b := newBench(t, e, def)
			_, err := b.take().Book(engine.Of(e)).Begin(b.ctx, "charge", 0, effects.Hold, nil)
			b.ok(err)
			holdfasttest.Advance(t, e, 2*time.Minute)
			b.expire()
			b.is("RUNNING", "a", "RUNNING")
			b.ok(b.do(runengine.Cancel))
			b.uncertain("RUNNING")
			if !b.live().Run.CancelRequested {
				t.Error("the cancel request is not stored")
			}
			b.resolve("charge", happened)
			b.is("CANCELLED", "a", "CANCELLED")
		}
	})
}

// Verifies that a step is uncertain, and has not failed, whose last attempt leaves something
// of which nobody knows whether it happened: an opaque body that may be tried once, one whose
// second attempt says no and whose first said nothing, an effect that ran out of time.
func TestALastAttemptThatLeavesADoubt(t *testing.T) {
	defs := []*run.Definition{
		run.Define("one-try", "1", run.Task("a", func(context.Context, any) (string, error) {
			panic("acted, and died")
		}, run.Opaque(), run.OnUnknownRetry(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 1, Backoff: time.Second}))),
		run.Define("says-no", "1", run.Task("a", func(ctx context.Context, _ any) (string, error) {
			if info, _ := run.Of(ctx); info.Attempt == 1 {
				panic("acted, and died")
			}
			return "", holdfast.NonRetryable(errors.New("no such card"))
		}, run.Opaque(), run.OnUnknownRetry())),
		run.Define("effect", "1", run.Task("a", func(ctx context.Context, _ any) (string, error) {
			return holdfast.Effect(ctx, "charge", func(context.Context, string) (string, error) { return "", errors.New("timeout") }, holdfast.OnUnknownRetry())
		}, run.Journaled(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 1, Backoff: time.Second}))),
	}
	attempts := map[string]int64{"one-try@1": 1, "says-no@1": 2, "effect@1": 1}
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for _, def := range defs {
			b := newBench(t, e, def)
			for range attempts[def.ID()] {
				b.once()
				holdfasttest.Advance(t, e, time.Minute)
			}
			b.uncertain("RUNNING")
			if l := b.live(); l.Step.Attempts != attempts[def.ID()] {
				t.Errorf("%s: got %d attempts, want %d", def.ID(), l.Step.Attempts, attempts[def.ID()])
			}
		}
	}, parts(defs)...)
}

// Verifies that an engine that stops in an orderly way keeps the result of an effect that was
// done, gives the step back, and that the next attempt goes on from there.
func TestAStopKeepsWhatAnEffectBrought(t *testing.T) {
	var bodies, charges tally
	def := run.Define("journaled-stop", "1", run.Task("a", func(ctx context.Context, _ any) (string, error) {
		ref, err := holdfast.Effect(ctx, "charge", func(ctx context.Context, _ string) (string, error) {
			charges.add(ctx)
			return "ref", nil
		})
		if err == nil && bodies.add(ctx) == 1 {
			<-ctx.Done()
			err = ctx.Err()
		}
		return ref, err
	}, run.Journaled()))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, def)
		stopOnce(t, e, func() bool { return bodies.of(b.id) == 1 })
		if l := b.live(); l.Step.Uncertain || l.Step.Holder != "" || l.Step.Failures+l.Step.Crashes != 0 {
			t.Fatalf("after the stop, got step %+v", l.Step)
		}
		b.once()
		b.is("COMPLETED", "a", "COMPLETED")
		if n := charges.of(b.id); n != 1 {
			t.Errorf("charged %d times, want 1", n)
		}
	}, def)
}

// Verifies that an engine that stops in an orderly way gives an opaque body back that says
// that it gave up, also one that may be tried once, and that it is done by the next.
func TestAStopFailsNoOpaqueBody(t *testing.T) {
	var bodies tally
	def := run.Define("opaque-stop", "1", run.Task("a", func(ctx context.Context, _ any) (string, error) {
		if bodies.add(ctx) == 1 {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "done", nil
	}, run.Opaque(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 1, Backoff: time.Second})))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, def)
		stopOnce(t, e, func() bool { return bodies.of(b.id) == 1 })
		b.is("RUNNING", "a", "RUNNING")
		b.once()
		b.is("COMPLETED", "a", "COMPLETED")
	}, def)
}

// Verifies that a body that takes longer than its timeout has failed: it counts as a failure
// and not as a death, and is tried as often as the definition says.
func TestABodyThatTakesTooLongHasFailed(t *testing.T) {
	var bodies tally
	def := run.Define("slow", "1", run.Task("a", func(ctx context.Context, _ any) (string, error) {
		bodies.add(ctx)
		<-ctx.Done()
		return "", ctx.Err()
	}, run.Idempotent(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 2, Backoff: time.Second}), run.Timeout(50*time.Millisecond)))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, def)
		b.once()
		b.is("WAITING", "a", "WAITING")
		holdfasttest.Advance(t, e, time.Minute)
		b.once()
		b.is("FAILED", "a", "FAILED")
		holdfasttest.Advance(t, e, time.Hour)
		b.expire()
		b.once()
		// One whose time is over before it begins, as on a busy machine, has failed without a body.
		if l := b.live(); bodies.of(b.id) > 2 || l.Step.Failures != 2 || l.Step.Crashes != 0 {
			t.Errorf("the body ran %d times: %d failures, want 2, and %d crashes, want 0", bodies.of(b.id), l.Step.Failures, l.Step.Crashes)
		}
	}, def)
}

// Verifies that slow bodies, as many as a node has room for, and more that wait for room, do
// not hold up the timer of another run.
func TestSlowBodiesHoldUpNoTimer(t *testing.T) {
	var bodies tally
	slow := run.Define("full", "1", run.Task("a", func(ctx context.Context, _ any) (int, error) {
		bodies.add(ctx)
		<-ctx.Done()
		return 0, ctx.Err()
	}, run.Idempotent()))
	nap := run.Define("nap", "1", run.Wait("w", 50*time.Millisecond))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		testkit.Run(t, e)
		room := run.WorkerOf(e).MaxConcurrency
		var ids []string
		for range room + 6 {
			ids = append(ids, newBench(t, e, slow).id)
		}
		testkit.Eventually(t, "all bodies within the limit began", func() bool { return bodies.of(ids...) == room })
		awaitStatus(t, e, newBench(t, e, nap).id, "COMPLETED")
		if n := bodies.of(ids...); n != room {
			t.Errorf("with room for %d bodies, %d began", room, n)
		}
	}, slow, nap)
}

// Verifies that a rejection fails the step if a condition follows that looks at something
// else: the run does not go on as if it had been approved.
func TestARejectionAheadOfAnotherCondition(t *testing.T) {
	def := run.Define("unrelated", "1", run.Approval("ask", "Pay?"), run.If("big", "input.cents > 0", "", "end"), run.Remote("pay", "w", run.Idempotent()))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, def)
		_, err := run.Decide(b.ctx, e, runengine.ApprovalID(b.id, "ask", 1), run.Decision{Status: run.Rejected}, run.By("ann"))
		b.ok(err)
		b.tick()
		b.is("FAILED", "ask", "FAILED")
	})
}

// Verifies that a node that has no lifecycle, or only others, leaves a transition to the node
// that has it.
func TestATransitionWaitsForTheNodeThatHasIt(t *testing.T) {
	def := run.Define("elsewhere", "1", run.Fire("f", "invoice", "=input.id", "close", "system"))
	eachAt(t, func(t *testing.T, none *holdfast.Engine, db string) {
		bills := lifecycle.MustParse[order]([]byte(paidConfig)).AfterEffect("Chase", func(context.Context, *lifecycle.Act[order]) error { return nil }, lifecycle.Transactional())
		other := holdfasttest.OpenOn(t, holdfasttest.At(db), bills, run.Maintenance())
		invoices := new(world).invoices()
		e := holdfasttest.OpenOn(t, holdfasttest.At(db), invoices, def)
		_, err := invoices.Create(t.Context(), e, "o", order{"o", 1})
		b := newBench(t, e, def)
		b.ok(err)
		on := func(e *holdfast.Engine) *bench { return &bench{t: t, ctx: b.ctx, e: e, def: def, id: b.id} }
		on(none).once()
		b.is("PENDING", "f", "PENDING")
		on(other).once()
		b.is("WAITING", "f", "WAITING")
		if l := b.live(); l.Step.Attempts != 0 || l.Step.Failures != 0 {
			t.Errorf("a step left to another node was counted: %d attempts, %d failures", l.Step.Attempts, l.Step.Failures)
		}
		holdfasttest.Advance(t, e, time.Minute)
		b.once()
		b.is("COMPLETED", "f", "COMPLETED")
	}, run.Maintenance())
}

func firing() *run.Definition {
	return run.Define("firing", "1", run.Fire("f", "invoice", "i1", "close", "system"))
}

// takeFire takes the transition that is due.
func (b *bench) takeFire() *runengine.ClaimedStep {
	b.t.Helper()
	all, err := b.executor().TakeDue(b.ctx, engine.Of(b.e), runengine.Ask{Handlers: map[string]runengine.Handled{runengine.TransitionHandler: {}}, Holder: "me", Limit: 10, Lease: time.Minute})
	if b.ok(err); len(all) != 1 {
		b.t.Fatalf("got %d due transitions, want 1: %+v", len(all), b.live())
	}
	return &all[0]
}

// fire takes the transition, and fires.
func (b *bench) fire() *runengine.ClaimedStep {
	b.t.Helper()
	l := b.takeFire()
	b.ok(runengine.Point(b.ctx, engine.Of(b.e), l, "op1"))
	return l
}

// Verifies that a run that is paused behind a transition that was fired, and then cancelled,
// is due again: somebody asks what became of it, and then the run is cancelled.
func TestAPausedTransitionIsCancelled(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, firing())
		l := b.fire()
		b.ok(b.do(runengine.Pause))
		_, err := b.executor().Pass(b.ctx, engine.Of(e), l, time.Second, nil)
		b.ok(err)
		b.ok(b.do(runengine.Cancel))
		holdfasttest.Advance(t, e, time.Hour)
		b.ok(b.do(runengine.Cancel))
		if now := b.live(); now.Run.Status == "CANCELLED" || !now.Run.CancelRequested {
			t.Fatalf("got run %s, cancel requested: %v", now.Run.Status, now.Run.CancelRequested)
		}
		b.complete(b.takeFire())
		b.is("CANCELLED", "f", "COMPLETED")
	})
}

// Verifies that a run is not cancelled over a transition that was fired, if the one who fired
// dies: the next asks what became of it first.
func TestACancelledTransitionWhoseHolderDies(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, firing())
		b.fire()
		b.ok(b.do(runengine.Cancel))
		holdfasttest.Advance(t, e, time.Hour)
		b.expire()
		b.is("RUNNING", "f", "RUNNING")
		holdfasttest.Advance(t, e, time.Minute)
		l := b.takeFire()
		if l.Step.Fired != "op1" {
			t.Errorf("got fired operation %q, want op1", l.Step.Fired)
		}
		b.complete(l)
		b.is("CANCELLED", "f", "COMPLETED")
	})
}

// Verifies that a definition is refused whose runs are kept for no time at all, or for less.
func TestRunsAreKeptForSomeTime(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for _, how := range []time.Duration{-time.Hour, 0, time.Microsecond} {
			def := run.Define("kept", "1", run.Remote("a", "w", run.Idempotent())).Retention(how)
			if r, _, err := def.Start(t.Context(), e, order{"o", 1}); fault.CodeOf(err) != fault.Validation {
				t.Errorf("retention of %s: got %v, %v, want a validation error", how, r.ID, err)
			}
		}
	})
}

// Verifies that a definition is refused if an option would have no effect: one that Handle does not
// keep.
func TestOptionsWithoutEffect(t *testing.T) {
	const text = `{"name":"handled","version":"1","steps":[{"name":"a","type":"task","handler":"h"}]}`
	body := func(context.Context, any) (int, error) { return 1, nil }
	bad := map[string]*run.Definition{
		"another handler": run.Handle(run.MustParse([]byte(text)), "other", body),
		"a timeout":       run.Handle(run.MustParse([]byte(text)), "h", body, run.Timeout(-1)),
		"no safety":       run.Define("x", "1", run.Task("a", body, run.OnUnknownRetry())),
		"a handler twice": run.Handle(run.Handle(run.MustParse([]byte(text)), "h", body), "h", body),
	}
	for name, o := range map[string]run.StepOption{"WithRetry": run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 2}), "Next": run.Next("end"), "Input": run.Input(1),
		"Header": run.Header("a", "b"), "For": run.For("ann"), "OnFailure": run.OnFailure("a")} {
		bad[name] = run.Handle(run.MustParse([]byte(text)), "h", body, o)
	}
	good := run.MustParse([]byte(text))
	run.Handle(good, "h", body, run.Opaque(), run.OnUnknownRetry(), run.Timeout(time.Minute)) // the result is only for chaining
	good.Retention(time.Hour)
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for name, def := range bad {
			want := holdfast.ErrValidation
			if name == "a handler twice" {
				want = holdfast.ErrConflict
			}
			if _, _, err := def.Start(t.Context(), e, 1); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", name, err, want)
			}
		}
		b := newBench(t, e, good)
		b.once()
		b.is("COMPLETED", "a", "COMPLETED")
		if _, err := run.Cancel(t.Context(), e, b.id, run.ExpectVersion(-1)); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("version -1: got %v, want ErrValidation", err)
		}
		if text := string(good.JSON()); !strings.Contains(text, "retention") {
			t.Errorf("the definition has no retention: %s", text)
		}
	}, good)
}

// Verifies that the error of an invalid definition lists the violated rules, as that of a lifecycle
// does.
func TestViolationsOfADefinition(t *testing.T) {
	_, err := run.Parse([]byte(`{"name":"x","version":"1","steps":[{"name":"a","type":"task","handler":"h","next":"nowhere"}]}`))
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.Validation || len(f.Violations) == 0 || f.Violations[0].Rule == "" || f.Violations[0].Path == "" || f.Violations[0].Message == "" || f.Fields != nil {
		t.Errorf("got %+v, want a validation error with violations", err)
	}
}

// Verifies that the patches of one body are applied one after the other (RFC 7396): patches cannot
// be merged into one, because a number or a null takes away what an object that follows adds to.
func TestThePatchesOfOneBody(t *testing.T) {
	def := run.Define("patches", "1",
		run.Task("first", func(ctx context.Context, _ any) (int, error) {
			return 1, run.Patch(ctx, json.RawMessage(`{"a":{"x":1},"b":{"x":1},"c":{"x":{"y":1}},"d":1,"e":1}`))
		}, run.Idempotent()),
		run.Task("second", func(ctx context.Context, _ any) (int, error) {
			var all []error
			for _, patch := range []string{`{"a":5,"b":null,"c":{"x":null},"d":2}`, `{"a":{"b":1},"b":{"z":null,"y":1},"c":{"x":{"z":1}},"e":null}`, `{"e":{"f":2}}`} {
				all = append(all, run.Patch(ctx, json.RawMessage(patch)))
			}
			for _, patch := range []any{nil, 1, "x", true, []int{1}, map[string]any(nil)} { // would replace the whole state
				if err := run.Patch(ctx, patch); fault.CodeOf(err) != fault.Validation {
					all = append(all, fmt.Errorf("the patch %v: got %w, want a validation error", patch, err))
				}
			}
			return 1, errors.Join(all...)
		}, run.Idempotent()))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, def)
		b.once()
		b.once()
		b.is("COMPLETED", "second", "COMPLETED")
		if got, want := string(b.live().Run.State), `{"a":{"b":1},"b":{"y":1},"c":{"x":{"z":1}},"d":2,"e":{"f":2}}`; !strictjson.Equal([]byte(got), []byte(want)) {
			t.Errorf("got state %s, want %s", got, want)
		}
	}, def)
}
