package effects_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/store"
)

// slow is an engine whose responses may be delayed.
type slow struct {
	*engine.Engine
	after func(name string)
}

func (s *slow) Do(ctx context.Context, c store.Command) error {
	err := s.Engine.Do(ctx, c)
	s.after(c.Decl().Name)
	return err
}

// claimed creates an entity and claims it.
func claimed(t *testing.T, hf *holdfast.Engine) (store.Partition, entities.Ticket) {
	t.Helper()
	ctx := t.Context()
	if _, err := entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "l", ID: "x", Status: "a"}); err != nil {
		t.Fatal(err)
	}
	e, err := entities.Take(ctx, engine.Of(hf), entities.ClaimArgs{Lifecycle: "l", ID: "x", Choices: map[string]entities.Choice{"a": {Into: "b", Revert: "a"}},
		Operation: store.NewID().String(), Step: "s", Requester: "r", Holder: "me", Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	at, err := engine.Of(hf).Partition(ctx, store.Write)
	if err != nil {
		t.Fatal(err)
	}
	return at, e.Ticket()
}

func call(name string) effects.Call {
	return effects.Call{Name: name, Policy: effects.Hold, Result: func([]byte) error { return nil },
		Try: func(context.Context, string) (any, error) { return name, nil }}
}

// TestNoResultIsForgotten verifies that a result that arrives while another effect is being begun is written
// with the next write or at the end of the attempt, and is not mistaken for one already written.
func TestNoResultIsForgotten(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		at, ticket := claimed(t, hf)
		d := &slow{Engine: engine.Of(hf), after: func(string) {}}
		j := &effects.Journal{Book: effects.OfClaim(d, at, ticket)}
		if err := j.Do(t.Context(), call("first")); err != nil {
			t.Fatal(err)
		}
		held := false
		d.after = func(name string) {
			if name != "effects.begin" || held {
				return
			}
			held = true // the response to "slow" is delayed while "fast" is done
			if err := j.Do(t.Context(), call("fast")); err != nil {
				t.Error(err)
			}
		}
		if err := j.Do(t.Context(), call("slow")); err != nil {
			t.Fatal(err)
		}
		d.after = func(string) {}
		if err := j.Do(t.Context(), call("last")); err != nil { // writes the remaining results
			t.Fatal(err)
		}
		all, err := effects.List(t.Context(), engine.Of(hf), at, ticket.Operation)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			if want := (map[bool]effects.State{true: effects.Begun, false: effects.Done})[x.Name == "last"]; x.State != want {
				t.Errorf("effect %s has state %s, want %s", x.Name, x.State, want)
			}
		}
	})
}

// TestBeginAndEnd verifies the state of an effect when it is begun, begun again under the same epoch, and
// ended: the first end counts, an effect that did not happen may be begun again, and under another epoch
// nothing is written.
func TestBeginAndEnd(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		at, ticket := claimed(t, hf)
		begin := func(ticket entities.Ticket) (effects.State, error) {
			e, err := effects.Begin(ctx, engine.Of(hf), at, ticket, "e", 0, effects.Hold, nil)
			return e.State, err
		}
		begun := func(want int) {
			t.Helper()
			if e, err := entities.Get(ctx, engine.Of(hf), "l", "x"); err != nil || e.Claim.Begun != want {
				t.Errorf("got %d begun effects, error %v, want %d", e.Claim.Begun, err, want)
			}
		}
		for range 2 {
			if s, err := begin(ticket); s != effects.New || err != nil {
				t.Errorf("first begin returned state %s, error %v", s, err)
			}
			begun(1)
		}
		late := ticket
		late.Epoch--
		if _, err := begin(late); !isLost(err) {
			t.Errorf("begin under another epoch returned %v, want LEASE_LOST", err)
		}
		if _, err := effects.End(ctx, engine.Of(hf), at, late, "e", 0, effects.NotDone, nil, false); !isLost(err) {
			t.Errorf("end under another epoch returned %v, want LEASE_LOST", err)
		}
		for range 2 {
			if s, err := effects.End(ctx, engine.Of(hf), at, ticket, "e", 0, effects.NotDone, nil, false); s != effects.NotDone || err != nil {
				t.Errorf("end returned state %s, error %v", s, err)
			}
			begun(0)
		}
		if s, err := begin(ticket); s != effects.New || err != nil {
			t.Errorf("second begin returned state %s, error %v", s, err)
		}
		begun(1)
		for _, s := range []effects.State{effects.Done, effects.NotDone} {
			if got, err := effects.End(ctx, engine.Of(hf), at, ticket, "e", 0, s, []byte("7"), false); got != effects.Done || err != nil {
				t.Errorf("end as %s returned state %s, error %v", s, got, err)
			}
			begun(1)
		}
		if s, err := begin(ticket); s != effects.Done || err != nil {
			t.Errorf("begin of a done effect returned state %s, error %v", s, err)
		}
		holdfasttest.Advance(t, hf, time.Hour)
		if _, err := begin(ticket); !isLost(err) {
			t.Errorf("begin after the lease expired returned %v, want LEASE_LOST", err)
		}
	})
}

func isLost(err error) bool { return errors.Is(err, holdfast.ErrLeaseLost) }

// Verifies that a call is not made if the lease may have expired. An effect that was just begun has then not
// happened; one that was called before stays unknown.
func TestACallIsNotMadeWithoutTheLease(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		at, ticket := claimed(t, hf)
		lost := errors.New("lease lost")
		for name, c := range map[string]struct {
			called int
			state  effects.State
		}{"new": {0, effects.NotDone}, "called": {1, effects.Begun}} {
			calls := 0
			j := &effects.Journal{Book: effects.OfClaim(engine.Of(hf), at, ticket), Leased: func(context.Context) error {
				if calls == c.called {
					return lost
				}
				return nil
			}}
			x := effects.Call{Name: name, Policy: effects.Retry, Result: func([]byte) error { return nil }, Try: func(context.Context, string) (any, error) {
				calls++
				return nil, errors.New("no response")
			}}
			for range c.called {
				if err := j.Do(t.Context(), x); err == nil {
					t.Fatal("Do succeeded, want an error")
				}
			}
			if err := j.Do(t.Context(), x); !errors.Is(err, lost) || calls != c.called {
				t.Errorf("%s: got error %v after %d calls", name, err, calls)
			}
			all, err := effects.List(t.Context(), engine.Of(hf), at, ticket.Operation)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range all {
				if e.Name == name && e.State != c.state {
					t.Errorf("effect %s has state %s", name, e.State)
				}
			}
			if made := j.Made(); len(made) != c.called {
				t.Errorf("%s: got journaled calls %v", name, made)
			}
		}
	})
}

// unavailableBook begins every effect and records no end.
type unavailableBook struct{}

func (unavailableBook) Operation() string { return "o" }
func (unavailableBook) Begin(context.Context, string, int, effects.Policy, []entities.Result) (effects.Entry, error) {
	return effects.Entry{State: effects.New}, nil
}
func (unavailableBook) End(context.Context, string, int, effects.State, []byte, bool) (effects.State, []byte, error) {
	return "", nil, errors.New("unavailable")
}

// Verifies that a repeated call with an unknown outcome is among the calls made, even if the call before it did
// not happen.
func TestARepeatedCallIsMade(t *testing.T) {
	j := &effects.Journal{Book: unavailableBook{}}
	answers := []error{effects.NotHappened(errors.New("declined")), errors.New("timeout: unknown")}
	n := 0
	for range 2 {
		_ = j.Do(t.Context(), effects.Call{Name: "card", Policy: effects.Probe,
			Try:    func(context.Context, string) (any, error) { n++; return nil, answers[n-1] },
			Probe:  func(context.Context, string) (any, bool, error) { return nil, false, nil },
			Result: func([]byte) error { return nil }})
	}
	if made := j.Made(); n != 2 || len(made) != 1 {
		t.Errorf("after %d calls, the last with an unknown outcome, got journaled calls %v, want 1", n, made)
	}
}
