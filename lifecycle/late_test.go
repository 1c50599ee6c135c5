package lifecycle_test

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
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// late is a holder that is stopped inside a call until its lease has expired.
type late struct {
	*fxWorld
	inside, goOn chan struct{}
	first        bool
	o            []holdfast.EffectOption
	err          error // of the first call
	again        error // of the others
	panics       bool  // the body does, when it has called
	same         bool  // every call under one key returns the same
}

// body calls once, and stands still the first time.
func (l *late) body(ctx context.Context, _ *fxAct) error {
	_, err := holdfast.Effect(ctx, "card", func(_ context.Context, key string) (int, error) {
		n, err := l.charge(key)
		if l.same {
			n = 7
		}
		return n, err
	}, l.o...)
	if err == nil && l.panics {
		panic("by plan")
	}
	return err
}

// opaque is a body that is a call itself.
func (l *late) opaque(_ context.Context, a *fxAct) error {
	_, err := l.charge(a.Operation)
	return err
}

func (l *late) charge(key string) (int, error) {
	l.mu.Lock()
	first := l.first
	l.first = false
	l.mu.Unlock()
	if !first {
		return l.call(key), l.again
	}
	close(l.inside)
	<-l.goOn
	return l.call(key), l.err
}

// Verifies that a call by a holder whose lease had expired is stored, changes no operation, and is listed
// until it is acknowledged, whatever the outcome of the operation.
func TestALateCallIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		step     string
		set      func(*late)
		after    func(*late)
		status   string
		happened bool
		reported int
		told     string // of the late holder
	}{
		"a person said that it did not happen": {step: "charge", status: "open", happened: true, reported: 1,
			after: func(l *late) { l.resumed("b"); l.resolve("card", false, lifecycle.Failure) }},
		"nobody has said anything yet": {step: "charge", status: "charging", happened: true, reported: 1,
			after: func(l *late) { l.resumed("b"); l.is("b", "charging", "uncertain") }},
		"the outcome is unknown": {step: "charge", status: "open", reported: 1,
			set:   func(l *late) { l.err = errFx },
			after: func(l *late) { l.resumed("b"); l.resolve("card", false, lifecycle.Failure) }},
		"it did not happen": {step: "charge", status: "open",
			set:   func(l *late) { l.err = holdfast.NotDone(errFx) },
			after: func(l *late) { l.resumed("b"); l.resolve("card", false, lifecycle.Failure) }},
		"the body panics behind it": {step: "charge", status: "open", happened: true, reported: 1, told: "panic: by plan",
			set:   func(l *late) { l.panics = true },
			after: func(l *late) { l.resumed("b"); l.resolve("card", false, lifecycle.Failure) }},
		"a person did what an opaque body had to do": {step: "wrap", status: "wrapped", happened: true, reported: 1,
			after: func(l *late) { l.resolve("$body", false, lifecycle.Success) }},
		"an opaque body": {step: "wrap", status: "open", happened: true, reported: 1,
			after: func(l *late) { l.resolve("$body", false, lifecycle.Failure) }},
		"asked before, and called again": {step: "charge", status: "charged", happened: true, reported: 1,
			set:   func(l *late) { l.o = append(l.o, l.probe(false, 0, nil)) },
			after: func(l *late) { l.resumed("b") }},
		"asked before, and called again with the same result": {step: "charge", status: "charged", happened: true, reported: 1,
			set:   func(l *late) { l.o, l.same = append(l.o, l.probe(false, 0, nil)), true },
			after: func(l *late) { l.resumed("b") }},
		"called again with the same result": {step: "charge", status: "charged",
			set: func(l *late) {
				l.o, l.same = []holdfast.EffectOption{holdfast.OnUnknownRetry()}, true
			},
			after: func(l *late) { l.resumed("b") }},
		"called again, and declined": {step: "charge", status: "charging", happened: true, reported: 1,
			set:   func(l *late) { l.o, l.again = append(l.o, holdfast.OnUnknownRetry()), holdfast.NotDone(errFx) },
			after: func(l *late) { l.resumed("b"); l.is("b", "charging", "uncertain") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fxEach(t, func(w *fxWorld) {
				l := &late{fxWorld: w, inside: make(chan struct{}), goOn: make(chan struct{}), first: true}
				if c.set != nil {
					c.set(l)
				}
				body := l.body
				if c.step == "wrap" {
					body = l.opaque
				}
				w.make("b", body)
				fired := make(chan error, 1)
				go func() { fired <- w.fire(context.Background(), "b", c.step) }()
				<-l.inside
				operation := w.get("b").Claimed.ID
				holdfasttest.Advance(w, w.e, time.Hour)
				engine.Of(w.e).Round(w.Context())
				c.after(l)
				before := w.get("b")
				close(l.goOn)
				if err := <-fired; !strings.Contains(fmt.Sprint(err), cmp.Or(c.told, "LEASE_LOST")) {
					w.Errorf("the late holder got %v, want %s", err, cmp.Or(c.told, "LEASE_LOST"))
				}
				if after := w.get("b"); after.Status != c.status || after.Version != before.Version {
					w.Errorf("got %+v, before the late call %+v", after, before)
				}
				l.reported(operation, c.reported, c.happened)
			})
		})
	}
}

// resolve resolves an effect, and ends its operation.
func (l *late) resolve(name string, happened bool, o lifecycle.Outcome) {
	l.Helper()
	operation := l.get("b").Claimed.ID
	if _, err := lifecycle.Resolve(l.Context(), l.e, operation, []holdfast.Resolution{{Name: name, State: holdfast.EffectState(effects.StateOf(happened))}}, append(ending(o), lifecycle.By("someone"))...); err != nil {
		l.Fatal(err)
	}
}

// reported checks the contradictions of an operation, and acknowledges them.
func (l *late) reported(operation string, n int, happened bool) {
	l.Helper()
	all, err := holdfast.Collect(holdfast.ListContradictions(l.Context(), l.e, holdfast.ContradictionFilter{}))
	if err != nil || len(all) != n {
		l.Fatalf("got contradictions %+v (%v), want %d", all, err, n)
	}
	if n == 0 {
		return
	}
	x := all[0]
	key := operation + "/" + x.Effect + "/0"
	if x.Operation != operation || x.Subject != "fx/b" || x.Epoch != 1 || x.Unknown == happened || x.Key != key || x.At.IsZero() || x.Node == "" {
		l.Errorf("got contradiction %+v", x)
	}
	if err := holdfast.AcknowledgeContradictions(l.Context(), l.e, operation, []string{"another"}, holdfast.By("someone")); !errors.Is(err, holdfast.ErrNotFound) {
		l.Errorf("acknowledge of an unknown id: got %v, want ErrNotFound", err)
	}
	for range 2 {
		if err := holdfast.AcknowledgeContradictions(l.Context(), l.e, operation, []string{x.ID}, holdfast.By("someone")); err != nil {
			l.Fatal(err)
		}
	}
	if all, err = holdfast.Collect(holdfast.ListContradictions(l.Context(), l.e, holdfast.ContradictionFilter{})); err != nil || len(all) != 0 {
		l.Errorf("got contradictions %+v after the acknowledgement (%v), want none", all, err)
	}
}

// Verifies that an effect whose first call has an unknown outcome, and whose repeated call did not
// happen, is not taken for one that did not happen: within one attempt, and by a later one.
func TestADeclinedRepetitionIsNoWordOnTheFirstCall(t *testing.T) {
	for name, within := range map[string]bool{"within an attempt": true, "by a later attempt": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fxEach(t, func(w *fxWorld) {
				answers := []error{errFx, holdfast.NotDone(errors.New("declined"))}
				w.make("b", func(ctx context.Context, _ *fxAct) error {
					_, err := w.charge(ctx, "card", answers[len(w.called())], holdfast.OnUnknownRetry())
					if within {
						_, err = w.charge(ctx, "card", answers[len(w.called())], holdfast.OnUnknownRetry())
					}
					return err
				})
				if err := w.fire(w.Context(), "b", "charge"); err == nil {
					w.Error("fire succeeded, want an error")
				}
				if !within {
					w.resumed("b")
				}
				o := w.is("b", "charging", "uncertain")
				if got := fxStates(w.find(o.ID)); !slices.Equal(got, []string{"card/0 begun"}) || len(w.called()) != 2 {
					w.Errorf("after calls %q the effects are %q", w.called(), got)
				}
			})
		})
	}
}

// Verifies that a late call of which the next attempt gets the same result under its key is not listed any more: it
// contradicts nothing.
func TestALateCallThatIsConfirmedIsNoContradiction(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		l := &late{fxWorld: w, inside: make(chan struct{}), goOn: make(chan struct{}), first: true}
		l.o, l.same = []holdfast.EffectOption{holdfast.OnUnknownRetry()}, true
		w.make("b", l.body)
		fired := make(chan error, 1)
		go func() { fired <- w.fire(context.Background(), "b", "charge") }()
		<-l.inside
		holdfasttest.Advance(w, w.e, time.Hour)
		close(l.goOn)
		if err := <-fired; !errors.Is(err, holdfast.ErrLeaseLost) {
			w.Errorf("the late holder got %v, want ErrLeaseLost", err)
		}
		if all, err := holdfast.Collect(holdfast.ListContradictions(w.Context(), w.e, holdfast.ContradictionFilter{})); err != nil || len(all) != 1 {
			w.Errorf("got contradictions %+v before the next attempt (%v), want one", all, err)
		}
		engine.Of(w.e).Round(w.Context())
		l.resumed("b")
		w.is("b", "charged", "")
		l.reported("", 0, false)
	})
}
