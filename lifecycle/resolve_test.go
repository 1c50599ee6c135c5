package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// ending returns the options that end an operation with an outcome; "" resumes it.
func ending(o lifecycle.Outcome) []lifecycle.ResolveOption {
	if o == "" {
		return nil
	}
	return []lifecycle.ResolveOption{lifecycle.EndWith(o)}
}

// resolve resolves an operation as "me".
func (w *fxWorld) resolve(operation string, o lifecycle.Outcome, known ...holdfast.Resolution) (*lifecycle.Operation, error) {
	return lifecycle.Resolve(context.Background(), w.e, operation, known, append(ending(o), lifecycle.By("me"))...)
}

// uncertain creates an entity whose operation has n effects with an unknown outcome,
// "e0" to "e2", and returns the operation.
func (w *fxWorld) uncertain(id string, n int) lifecycle.Operation {
	w.Helper()
	w.make(id, func(ctx context.Context, a *fxAct) error {
		var errs []error
		for i := range n {
			var unknown error
			if a.Attempt == 1 && len(w.keysOf(a.Operation)) < n {
				unknown = errFx
			}
			r, err := w.charge(ctx, fmt.Sprintf("e%d", i), unknown)
			if errs = append(errs, err); err == nil {
				a.WriteTx(func(context.Context, holdfast.Tx) error { return nil })
				w.saw(id, fmt.Sprintf("e%d=%d", i, r))
			}
		}
		return errors.Join(errs...)
	})
	if err := w.fire(w.Context(), id, "charge"); fxOutcome(err) != "uncertain" {
		w.Fatal(err)
	}
	return w.is(id, "charging", "uncertain")
}

// keysOf are the calls of an operation, as "name/ordinal".
func (w *fxWorld) keysOf(operation string) (all []string) {
	for _, key := range w.called() {
		if len(key) > len(operation) && key[:len(operation)] == operation {
			all = append(all, key[len(operation)+1:])
		}
	}
	return all
}

// saw records a result that a body got.
func (w *fxWorld) saw(id, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = make(map[string][]string)
	}
	w.seen[id] = append(w.seen[id], what)
}

func (w *fxWorld) seenBy(id string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen[id])
}

func fxHappened(i, result int) holdfast.Resolution {
	return holdfast.Resolution{Name: fmt.Sprintf("e%d", i), State: holdfast.EffectDone, Result: fmt.Append(nil, result)}
}

func fxDidNot(i int) holdfast.Resolution {
	return holdfast.Resolution{Name: fmt.Sprintf("e%d", i), State: holdfast.EffectNotDone}
}

// last returns the name and the actor of an entity's last event.
func (w *fxWorld) last(id string) string {
	w.Helper()
	all, err := holdfast.Collect(w.ReadHistory(context.Background(), w.e, id, 0))
	if err != nil || len(all) == 0 {
		w.Fatal(all, err)
	}
	return all[len(all)-1].Name + " by " + all[len(all)-1].Actor
}

// TestResolve verifies how one call settles an uncertain operation: an effect that
// happened has the operation resumed, and its body gets the result that was named;
// one that did not, alone, releases it, and beside another that did it is called
// again under the same key; with an outcome the operation ends there, without its
// body. Each leaves an event with the name of who said so.
func TestResolve(t *testing.T) {
	for name, c := range map[string]struct {
		effects int
		known   []holdfast.Resolution
		outcome lifecycle.Outcome
		resumed bool
		status  string
		event   string
		calls   []string
		saw     []string
	}{
		"happened":          {1, []holdfast.Resolution{fxHappened(0, 7)}, "", true, "charged", "resumed by me", []string{"e0/0"}, []string{"e0=7"}},
		"did not":           {1, []holdfast.Resolution{fxDidNot(0)}, "", false, "open", "released by me", []string{"e0/0"}, nil},
		"one of two did":    {2, []holdfast.Resolution{fxHappened(0, 7), fxDidNot(1)}, "", true, "charged", "resumed by me", []string{"e0/0", "e1/0", "e1/0"}, []string{"e0=7", "e1=3"}},
		"success":           {1, []holdfast.Resolution{fxHappened(0, 7)}, lifecycle.Success, false, "charged", "settled/charge by me", []string{"e0/0"}, nil},
		"failure, happened": {1, []holdfast.Resolution{fxHappened(0, 7)}, lifecycle.Failure, false, "open", "released by me", []string{"e0/0"}, nil},
		"failure, did not":  {1, []holdfast.Resolution{fxDidNot(0)}, lifecycle.Failure, false, "open", "released by me", []string{"e0/0"}, nil},
		"invalid":           {1, []holdfast.Resolution{fxDidNot(0)}, lifecycle.Rejected, false, "open", "released by me", []string{"e0/0"}, nil},
		"none happened":     {2, []holdfast.Resolution{fxDidNot(0), fxDidNot(1)}, "", false, "open", "released by me", []string{"e0/0", "e1/0"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fxEach(t, func(w *fxWorld) {
				o := w.uncertain("b", c.effects)
				got, err := w.resolve(o.ID, c.outcome, c.known...)
				if err != nil || (got != nil) != c.resumed {
					w.Fatalf("resolve returned %+v, %v, want a resumed operation: %v", got, err, c.resumed)
				}
				if last := w.last("b"); last != c.event {
					w.Errorf("got last event %s, want %s", last, c.event)
				}
				if c.resumed {
					if got.Phase != "due" || got.ID != o.ID {
						w.Errorf("got %+v, want a due operation", got)
					}
					w.resumed("b")
				}
				w.is("b", c.status, "")
				if calls, saw := w.keysOf(o.ID), w.seenBy("b"); !slices.Equal(calls, c.calls) || !slices.Equal(saw, c.saw) {
					w.Errorf("got calls %q, want %q; the body saw %q, want %q", calls, c.calls, saw, c.saw)
				}
				if _, err := lifecycle.GetOperation(w.Context(), w.e, o.ID); c.resumed == false && !errors.Is(err, holdfast.ErrNotFound) {
					w.Errorf("operation still exists: %v", err)
				}
			})
		})
	}
}

// TestResolveAFailure verifies that an operation that a person ends as failed goes
// where the config sends failed ones, as it does when its body fails.
func TestResolveAFailure(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		w.make("b", func(ctx context.Context, _ *fxAct) error {
			_, err := w.charge(ctx, "e0", errFx)
			return err
		})
		if err := w.fire(w.Context(), "b", "try"); fxOutcome(err) != "uncertain" {
			w.Fatal(err)
		}
		o := w.is("b", "trying", "uncertain")
		if _, err := w.resolve(o.ID, lifecycle.Failure, fxDidNot(0)); err != nil {
			w.Fatal(err)
		}
		w.is("b", "broken", "")
	})
}

// TestResolveTheBody verifies that of a body that journals nothing a person says
// whether it happened: then the step is settled without running it again;
// otherwise it is released.
func TestResolveTheBody(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		for id, happened := range map[string]bool{"did": true, "did not": false} {
			runs := 0
			w.make(id, func(context.Context, *fxAct) error {
				runs++
				panic("ouch")
			})
			if err := w.fire(w.Context(), id, "wrap"); err == nil {
				w.Fatal("no panic")
			}
			o := w.is(id, "wrapping", "uncertain")
			got, err := w.resolve(o.ID, "", holdfast.Resolution{Name: "$body", State: holdfast.EffectState(effects.StateOf(happened))})
			if err != nil || got != nil {
				w.Fatalf("resolve returned %+v, %v, want no operation", got, err)
			}
			want := "open"
			if happened {
				want = "wrapped"
			}
			w.is(id, want, "")
			w.wantUnchanged(id)
			if runs != 1 {
				w.Errorf("the body ran %d times, want 1", runs)
			}
		}
	})
}

// TestResolveTheBodyInParts verifies the same for an opaque body that journaled
// something besides, where the two are resolved by two calls: once it is known
// that the body happened it is not run again.
func TestResolveTheBodyInParts(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		runs := 0
		w.make("b", func(ctx context.Context, _ *fxAct) error {
			if runs++; runs > 1 {
				return nil
			}
			_, _ = w.charge(ctx, "e0", errFx)
			panic("ouch")
		})
		if err := w.fire(w.Context(), "b", "wrap"); err == nil {
			w.Fatal("no panic")
		}
		o := w.is("b", "wrapping", "uncertain")
		if _, err := w.resolve(o.ID, "", holdfast.Resolution{Name: "$body", State: holdfast.EffectDone}); err != nil {
			w.Fatal(err)
		}
		if _, err := w.resolve(o.ID, "", fxHappened(0, 1)); err != nil {
			w.Fatal(err)
		}
		if e := w.get("b"); e.Claimed != nil {
			w.resumed("b")
		}
		if e := w.get("b"); runs != 1 || e.Status != "wrapped" {
			w.Errorf("the body ran %d times, want 1, and status is %s, want wrapped", runs, e.Status)
		}
	})
}

// TestResolveInParts verifies that an operation with an effect of unknown outcome stays uncertain, stores the
// outcomes that are already reported, and continues once all are known; and that a different outcome for the
// same effect is refused.
func TestResolveInParts(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		o := w.uncertain("b", 3)
		wantStates := func(want ...string) {
			w.Helper()
			if got := fxStates(w.find(o.ID)); !slices.Equal(got, want) {
				w.Fatalf("got effects %q, want %q", got, want)
			}
		}
		if got, err := w.resolve(o.ID, "", fxHappened(1, 7)); err != nil || got == nil || got.Phase != "uncertain" {
			w.Fatalf("resolve returned %+v, %v, want an uncertain operation", got, err)
		}
		wantStates("e0/0 begun", "e1/0 done 7", "e2/0 begun")
		if _, err := w.resolve(o.ID, "", fxDidNot(1)); !errors.Is(err, holdfast.ErrConflict) {
			w.Errorf("opposite resolution: got %v, want ErrConflict", err)
		}
		if _, err := w.resolve(o.ID, "", fxHappened(0, 5), fxDidNot(1)); !errors.Is(err, holdfast.ErrConflict) {
			w.Errorf("opposite resolution with another effect: got %v, want ErrConflict", err)
		}
		wantStates("e0/0 begun", "e1/0 done 7", "e2/0 begun") // all or nothing
		if _, err := w.resolve(o.ID, "", fxHappened(1, 7)); err != nil {
			w.Errorf("same resolution again: %v", err)
		}
		w.wantUnchanged("b")
		if got, err := w.resolve(o.ID, "", fxHappened(0, 5), fxHappened(2, 9)); err != nil || got == nil || got.Phase != "due" {
			w.Fatalf("resolve returned %+v, %v, want a due operation", got, err)
		}
		w.resumed("b")
		w.is("b", "charged", "")
		if saw := w.seenBy("b"); !slices.Equal(saw, []string{"e0=5", "e1=7", "e2=9"}) {
			w.Errorf("the body saw %q", saw)
		}
	})
}

// TestResolveAnotherResult verifies that a person who reports a result other than the recorded one gets an
// error.
func TestResolveAnotherResult(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		o := w.uncertain("b", 2)
		if _, err := w.resolve(o.ID, "", fxHappened(0, 7)); err != nil {
			w.Fatal(err)
		}
		if _, err := w.resolve(o.ID, "", fxHappened(0, 8)); !errors.Is(err, holdfast.ErrConflict) {
			w.Errorf("got error %v, stored effects are %q", err, fxStates(w.find(o.ID)))
		}
	})
}

// TestWhatCannotBeResolved verifies that unknown operations and effects, results
// that are no JSON, outcomes that are none, and operations that are not uncertain
// are refused with an error that says which, and that nothing is changed by it.
func TestWhatCannotBeResolved(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		o := w.uncertain("b", 1)
		before := w.get("b")
		for name, c := range map[string]struct {
			operation string
			known     []holdfast.Resolution
			outcome   lifecycle.Outcome
			want      error
		}{
			"no such operation": {"none", []holdfast.Resolution{fxDidNot(0)}, "", holdfast.ErrNotFound},
			"no such effect":    {o.ID, []holdfast.Resolution{fxDidNot(9)}, "", holdfast.ErrNotFound},
			"no such ordinal":   {o.ID, []holdfast.Resolution{{Name: "e0", Ordinal: 1, State: holdfast.EffectNotDone}}, "", holdfast.ErrNotFound},
			"one of two":        {o.ID, []holdfast.Resolution{fxHappened(0, 1), fxDidNot(9)}, "", holdfast.ErrNotFound},
			"no JSON":           {o.ID, []holdfast.Resolution{{Name: "e0", State: holdfast.EffectDone, Result: []byte(`{"a"`)}}, "", holdfast.ErrValidation},
			"no state":          {o.ID, []holdfast.Resolution{{Name: "e0"}}, "", holdfast.ErrValidation},
			"result, not done":  {o.ID, []holdfast.Resolution{{Name: "e0", State: holdfast.EffectNotDone, Result: []byte(`1`)}}, "", holdfast.ErrValidation},
			"no outcome":        {o.ID, []holdfast.Resolution{fxDidNot(0)}, "maybe", holdfast.ErrValidation},
		} {
			if _, err := w.resolve(c.operation, c.outcome, c.known...); !errors.Is(err, c.want) {
				w.Errorf("%s: got %v, want %v", name, err, c.want)
			}
			if got := fxStates(w.find(o.ID)); !slices.Equal(got, []string{"e0/0 begun"}) || w.get("b").Version != before.Version {
				w.Errorf("%s changed the effects to %q", name, got)
			}
		}
		other := holdfast.InWorkspace(w.Context(), "other")
		if _, err := lifecycle.Resolve(other, w.e, o.ID, []holdfast.Resolution{fxDidNot(0)}, lifecycle.By("me")); !errors.Is(err, holdfast.ErrNotFound) {
			w.Errorf("from another workspace: got %v, want ErrNotFound", err)
		}
	})
}

// TestResolveWhatIsNotUncertain verifies that an operation that is leased or waits to be resumed cannot be
// resolved, with effects or with an outcome only; and that an ended operation is not found.
func TestResolveWhatIsNotUncertain(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		w.make("b", func(ctx context.Context, a *fxAct) error {
			_, err := holdfast.Effect(ctx, "e0", func(context.Context, string) (int, error) {
				for name, known := range map[string][]holdfast.Resolution{"something": {fxDidNot(0)}, "nothing": nil} {
					for _, o := range []lifecycle.Outcome{"", lifecycle.Success} {
						if _, err := w.resolve(a.Operation, o, known...); !errors.Is(err, holdfast.ErrConflict) {
							w.Errorf("held, resolve with %s, outcome %q: got %v, want ErrConflict", name, o, err)
						}
					}
				}
				return 1, nil
			})
			if err == nil && a.Attempt == 1 {
				return errFx
			}
			return err
		})
		if err := w.fire(w.Context(), "b", "charge"); fxOutcome(err) != "pending" {
			w.Fatal(err)
		}
		o := w.is("b", "charging", "due")
		for _, outcome := range []lifecycle.Outcome{"", lifecycle.Success, lifecycle.Failure} {
			for name, known := range map[string][]holdfast.Resolution{"something": {fxDidNot(0)}, "nothing": nil} {
				if _, err := w.resolve(o.ID, outcome, known...); !errors.Is(err, holdfast.ErrConflict) {
					w.Errorf("due, resolve with %s, outcome %q: got %v, want ErrConflict", name, outcome, err)
				}
			}
		}
		if got := fxStates(w.find(o.ID)); !slices.Equal(got, []string{"e0/0 done 1"}) {
			w.Errorf("got effects %q", got)
		}
		w.resumed("b")
		w.is("b", "charged", "")
		if _, err := w.resolve(o.ID, lifecycle.Success); !errors.Is(err, holdfast.ErrNotFound) {
			w.Errorf("finished operation: got %v, want ErrNotFound", err)
		}
	})
}

// TestResolveWithoutWhatIsUnknown verifies that an outcome that is given while effects are unknown is not
// ignored silently: the operation stays uncertain, and the caller gets an error.
func TestResolveWithoutWhatIsUnknown(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		o := w.uncertain("b", 2)
		for _, known := range [][]holdfast.Resolution{nil, {fxHappened(0, 1)}} {
			if got, err := w.resolve(o.ID, lifecycle.Success, known...); err == nil {
				w.Errorf("resolve with %d known effects returned %+v and no error", len(known), got)
			}
			w.is("b", "charging", "uncertain")
		}
	})
}

// TestTwoResolveAtOnce verifies that of two callers that resolve an operation at once with opposite reports,
// one wins and the other gets an error; the first report decides the operation.
func TestTwoResolveAtOnce(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		for i := range 10 {
			id := fmt.Sprintf("b%d", i)
			o := w.uncertain(id, 1)
			winner := make([]bool, 4)
			won, lost := holdfasttest.Race(w, 4, func(j int) error {
				outcome := []lifecycle.Outcome{lifecycle.Success, lifecycle.Failure}[j%2]
				_, err := w.resolve(o.ID, outcome, fxHappened(0, j))
				winner[j] = err == nil
				return err
			})
			for _, err := range lost {
				if !errors.Is(err, holdfast.ErrConflict) && !errors.Is(err, holdfast.ErrNotFound) {
					w.Errorf("losing caller got %v, want ErrConflict or ErrNotFound", err)
				}
			}
			want := []string{"charged", "open"}[slices.Index(winner, true)%2]
			if got := w.get(id); won != 1 || got.Status != want || got.Claimed != nil {
				w.Errorf("%d callers won, want 1; got %+v, want %s", won, got, want)
			}
		}
	})
}

// TestPartsResolvedAtOnce verifies that of persons who resolve a part each at once
// all are heard: nothing that was said is lost, and whoever is last has the
// operation go on.
func TestPartsResolvedAtOnce(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		for i := range 10 {
			id := fmt.Sprintf("b%d", i)
			o := w.uncertain(id, 3)
			_, lost := holdfasttest.Race(w, 3, func(j int) error {
				_, err := w.resolve(o.ID, "", fxHappened(j, 10+j))
				return err
			})
			if len(lost) > 0 {
				w.Fatalf("unexpected errors: %v", lost)
			}
			if got := fxStates(w.find(o.ID)); !slices.Equal(got, []string{"e0/0 done 10", "e1/0 done 11", "e2/0 done 12"}) {
				w.Fatalf("got effects %q", got)
			}
			w.is(id, "charging", "due") // nothing of it is unknown
			w.resumed(id)
			w.is(id, "charged", "")
		}
	})
}

// TestResolveAgainstTheResumed verifies that a second person who comes when the
// operation is resumed already, or resumed and done, changes nothing.
func TestResolveAgainstTheResumed(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		o := w.uncertain("b", 1)
		inside := w.bodies["b"]
		w.does("b", func(ctx context.Context, a *fxAct) error {
			if _, err := w.resolve(o.ID, lifecycle.Failure, fxDidNot(0)); !errors.Is(err, holdfast.ErrConflict) {
				w.Errorf("during the resumed attempt: got %v, want ErrConflict", err)
			}
			return inside(ctx, a)
		})
		if _, err := w.resolve(o.ID, "", fxHappened(0, 7)); err != nil {
			w.Fatal(err)
		}
		w.resumed("b")
		w.is("b", "charged", "")
		if saw := w.seenBy("b"); !slices.Equal(saw, []string{"e0=7"}) {
			w.Errorf("the body saw %q", saw)
		}
		if _, err := w.resolve(o.ID, lifecycle.Failure, fxDidNot(0)); !errors.Is(err, holdfast.ErrNotFound) {
			w.Errorf("finished operation: got %v, want ErrNotFound", err)
		}
	})
}
