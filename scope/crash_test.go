package scope_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/stream"
)

// paid is a marker of what was paid, and what it adds up to.
type paid struct {
	Orders map[string]int64 `json:"orders"`
	Sum    int64            `json:"sum"`
	Log    []string         `json:"log"`
}

// TestCrashOfAMarkerAndWhatItMarks verifies that a scope that says what was done, and the
// stream that it is done in, are of one transaction: wherever a fault strikes, a request that
// is repeated until it is done is done once, and the marker tells the truth.
func TestCrashOfAMarkerAndWhatItMarks(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			return hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error { return pay(ctx, tx, "o-1", 250) })
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			s, err := scope.In[paid](hf, scope.Org, "acme").Get(ctx)
			if err != nil {
				return err
			}
			all, err := holdfast.Collect(stream.Read(ctx, hf, "payments", 0))
			got := fmt.Sprintf("%v %d %v, %d events", s.State.Orders, s.State.Sum, s.State.Log, len(all))
			if want := "map[o-1:250] 250 [o-1], 1 events"; err == nil && got != want {
				err = fmt.Errorf("got %s, want %s", got, want)
			}
			return err
		},
		Pairs: true,
	})
}

// pay pays an order, unless that was done.
func pay(ctx context.Context, tx holdfast.Tx, order string, cents int64) error {
	in := scope.In[paid](tx, scope.Org, "acme")
	s, err := in.Atomic(ctx, func(_ context.Context, p paid) (paid, error) {
		if _, done := p.Orders[order]; done {
			return p, nil
		}
		p.Sum += cents
		return p, nil
	})
	if err != nil || !s.Changed {
		return err
	}
	if _, err := in.SetRecord(ctx, "orders", order, cents); err != nil {
		return err
	}
	if _, err := in.Push(ctx, "log", order); err != nil {
		return err
	}
	_, err = stream.Append(ctx, tx, "payments", stream.Any, stream.Event{Name: "paid"})
	return err
}

// TestCrashOfVerbsThatNameAVersion verifies that a client that names the version which it
// has seen, and takes a refusal for done, makes each change once, wherever a fault strikes.
func TestCrashOfVerbsThatNameAVersion(t *testing.T) {
	in := func(hf *holdfast.Engine, o scope.Option) scope.Scope[paid] {
		return scope.In[paid](hf, "order", "o-1", o)
	}
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			for _, step := range []func() (scope.Snapshot[paid], error){
				func() (scope.Snapshot[paid], error) {
					return in(hf, scope.Absent()).Patch(ctx, map[string]any{"sum": 1})
				},
				func() (scope.Snapshot[paid], error) { return in(hf, scope.ExpectVersion(0)).Inc(ctx, "sum", 1) },
				func() (scope.Snapshot[paid], error) { return in(hf, scope.ExpectVersion(1)).Push(ctx, "log", "x") },
				func() (scope.Snapshot[paid], error) {
					return in(hf, scope.ExpectVersion(2)).SetRecord(ctx, "orders", "a", 1)
				},
				func() (scope.Snapshot[paid], error) {
					return in(hf, scope.ExpectVersion(3)).DeleteRecord(ctx, "orders", "a")
				},
				func() (scope.Snapshot[paid], error) {
					return in(hf, scope.ExpectVersion(4)).Atomic(ctx, func(_ context.Context, p paid) (paid, error) { p.Sum *= 10; return p, nil })
				},
			} {
				if _, err := step(); err != nil && !errors.Is(err, holdfast.ErrConcurrency) {
					return err
				}
			}
			return nil
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			s, err := scope.In[paid](hf, "order", "o-1").Get(ctx)
			if err != nil {
				return err
			}
			all, err := holdfast.Collect(stream.Read(ctx, hf, scopestore.Stream("order", "o-1"), 0))
			got := fmt.Sprintf("%+v at %d", s.State, s.Version)
			for _, ev := range all {
				got += " " + ev.Name
			}
			if want := "{Orders:map[] Sum:20 Log:[x]} at 5 patch inc push set unset put"; err == nil && got != want {
				err = fmt.Errorf("got %s, want %s", got, want)
			}
			return err
		},
	})
}

// TestCrashOfWhatEnds verifies that a scope which ends, is swept, is forgotten and is made
// anew has one event of each, and no version twice, wherever a fault strikes.
func TestCrashOfWhatEnds(t *testing.T) {
	history := func(ctx context.Context, hf *holdfast.Engine) (names []string, versions []int64, err error) {
		all, err := holdfast.Collect(stream.Read(ctx, hf, scopestore.Stream("request", "r-1"), 0))
		for _, ev := range all {
			names, versions = append(names, ev.Name), append(versions, int64(ev.Version))
		}
		return names, versions, err
	}
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			made, _, err := history(ctx, hf)
			if err != nil {
				return err
			}
			if len(made) == 0 {
				_, err := scope.In[paid](hf, "request", "r-1", scope.TTL(time.Minute), scope.Absent()).Inc(ctx, "sum", 1)
				if err != nil && !errors.Is(err, holdfast.ErrConcurrency) {
					return err
				}
			}
			for _, by := range []time.Duration{time.Hour, 48 * time.Hour} { // it has ended; its tombstone may go
				if err := store.Shift(ctx, engine.Of(hf), by); err != nil {
					return err
				}
				if _, err := scopestore.SweepAll(ctx, engine.Of(hf)); err != nil {
					return err
				}
			}
			_, err = scope.In[paid](hf, "request", "r-1", scope.TTL(-1), scope.Absent()).Inc(ctx, "sum", 5)
			if errors.Is(err, holdfast.ErrConcurrency) {
				return nil
			}
			return err
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			s, err := scope.In[paid](hf, "request", "r-1").Get(ctx)
			if err != nil {
				return err
			}
			names, versions, err := history(ctx, hf)
			got := fmt.Sprintf("%d at %d: %v %v", s.State.Sum, s.Version, names, versions)
			if want := "5 at 2: [inc expired inc] [0 1 2]"; err == nil && got != want {
				err = fmt.Errorf("got %s, want %s", got, want)
			}
			return err
		},
		Pairs: true,
	})
}
