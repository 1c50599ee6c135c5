package scope_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/scope"
)

// little is a duration that a test can wait for.
const little = 60 * time.Millisecond

// short is a budget that is spent while a test waits for it.
var short = scope.Budget(little)

// inTime calls try with a short duration, and doubles it until try succeeds. On a slow
// machine a short one may end too early.
func (e *env) inTime(try func(time.Duration) (got bool)) {
	e.Helper()
	for d := little; !try(d); d *= 2 {
		if d > time.Minute {
			e.Fatalf("%s was not enough time", d)
		}
	}
}

// TestBudgetSpentByWaiting verifies that whoever waits longer than the budget is told so, by
// every verb, and never changes anything: also when the way is free again.
func TestBudgetSpentByWaiting(t *testing.T) {
	each(t, func(e *env) {
		e.has("u", full)
		letGo := holds(e, e.raw("u", scope.Budget(-1)))
		told := make(chan error)
		for _, v := range verbs {
			go func() {
				_, err := v.do(e.ctx, e.raw("u", short))
				told <- err
			}()
		}
		for range verbs {
			if err := <-told; !errors.Is(err, scope.ErrMutationTimeout) {
				e.Errorf("got %v, want ErrMutationTimeout", err)
			}
		}
		e.is("u", full, 0)
		e.ok(letGo())
		_, err := e.raw("u").Inc(e.ctx, "n", 1)
		e.ok(err)
		e.is("u", `{"n":2,"l":[1],"r":{"k":1}}`, 1)
	})
}

// TestBudgetSpentByDeciding verifies that a function that takes too long is given up: its
// caller is told so, the queue goes on meanwhile, its context has ended, and what it returns
// in the end is never written.
func TestBudgetSpentByDeciding(t *testing.T) {
	each(t, func(e *env) {
		e.has("u", full)
		free, ended := make(chan struct{}), make(chan error, 20)
		e.inTime(func(budget time.Duration) bool {
			var begun atomic.Bool
			_, err := e.raw("u", scope.Budget(budget)).Atomic(e.ctx, func(ctx context.Context, d json.RawMessage) (json.RawMessage, error) {
				begun.Store(true)
				<-free
				defer func() { ended <- ctx.Err() }()
				return json.RawMessage(`{"late":true}`), nil
			})
			in := begun.Load()
			if !errors.Is(err, scope.ErrMutationTimeout) {
				e.Fatalf("got %v, want ErrMutationTimeout", err)
			}
			e.equal("budget", e.refused(err, scope.ErrMutationTimeout.Code).Fields["budgetMs"], budget.Milliseconds())
			return in
		})
		for _, v := range verbs[:6] { // it hangs still
			_, err := v.do(e.ctx, e.raw("u"))
			e.ok(err)
		}
		e.is("u", `{"a":1}`, 6)
		close(free)
		e.equal("its context", <-ended, context.DeadlineExceeded)
		_, err := e.raw("u").Atomic(e.ctx, func(_ context.Context, d json.RawMessage) (json.RawMessage, error) { return d, nil })
		e.ok(err)
		e.is("u", `{"a":1}`, 6)
	})
}

// TestBudget verifies the exact time at which a change is given up: waiting and deciding
// count together, 0 is the kind's or 30 seconds, less is no limit, and what a handle says
// goes before what its kind says.
func TestBudget(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *scope.Store{
		"memory": func(t *testing.T) *scope.Store { return memory(t, budgeted...) },
		"files": func(t *testing.T) *scope.Store {
			s, err := scope.FileStore(t.TempDir(), budgeted...)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		for _, c := range []struct {
			name       string
			kind       string
			o          []scope.Option
			wait, work time.Duration
			want       time.Duration // 0: it is done
		}{
			{"waiting", "thing", nil, time.Minute, 0, 30 * time.Second},
			{"deciding", "thing", nil, 0, time.Minute, 30 * time.Second},
			{"both", "thing", nil, 20 * time.Second, 20 * time.Second, 30 * time.Second},
			{"neither", "thing", nil, 14 * time.Second, 15 * time.Second, 0},
			{"0 is the default", "thing", []scope.Option{scope.Budget(0)}, 0, time.Hour, 30 * time.Second},
			{"negative is no limit", "thing", []scope.Option{scope.Budget(-1)}, 24 * time.Hour, 24 * time.Hour, 0},
			{"the handle's", "thing", []scope.Option{scope.Budget(time.Second)}, 0, time.Hour, time.Second},
			{"the kind's", "slow", nil, 30 * time.Second, time.Hour, time.Minute},
			{"the kind's none", "endless", nil, 24 * time.Hour, 24 * time.Hour, 0},
			{"the handle's before the kind's", "endless", []scope.Option{scope.Budget(time.Second)}, 0, time.Hour, time.Second},
			{"no limit before the kind's", "slow", []scope.Option{scope.Budget(-1)}, 0, time.Hour, 0},
		} {
			t.Run(name+", "+c.name, func(t *testing.T) {
				store := make(t)
				synctest.Test(t, func(t *testing.T) {
					e := &env{T: t, own: store, ctx: freshWorkspace()}
					e.spend(at[cart](e, c.kind, "u", scope.Budget(-1)), at[cart](e, c.kind, "u", c.o...), c.wait, c.work, c.want)
				})
			})
		}
	}
}

var budgeted = []scope.Kind{{Name: "slow", Budget: time.Minute}, {Name: "endless", Budget: -1}}

// spend has one hold a scope for a while, and another wait for that and then decide for a
// while; it wants the second to be given up after a time, or to be done.
func (e *env) spend(first, second scope.Scope[cart], wait, work, want time.Duration) {
	e.Helper()
	begun := clock.Now()
	done, worked := make(chan struct{}), make(chan struct{}, 1)
	in := make(chan struct{})
	go func() {
		defer close(done)
		_, err := first.Atomic(e.ctx, func(_ context.Context, c cart) (cart, error) {
			close(in)
			<-time.After(wait)
			c.Total = 10
			return c, nil
		})
		if err != nil {
			e.Error(err)
		}
	}()
	<-in
	_, err := second.Atomic(e.ctx, func(_ context.Context, c cart) (cart, error) {
		defer func() { worked <- struct{}{} }()
		<-time.After(work)
		c.Total++
		return c, nil
	})
	took := clock.Since(begun)
	<-done
	if wait < want || want == 0 {
		<-worked // also the one that was given up
	}
	synctest.Wait()
	got, failed := first.Get(e.ctx)
	e.ok(failed)
	if want == 0 {
		e.ok(err)
		e.equal("took", took, wait+work)
		e.equal("total", got.State.Total, 11)
		return
	}
	if !errors.Is(err, scope.ErrMutationTimeout) {
		e.Errorf("got %v, want ErrMutationTimeout", err)
	}
	e.equal("took", took, want)
	e.equal("total", got.State.Total, 10)
	e.equal("version", got.Version, 0)
}

// TestCancelledContextStopsBeforeThePersist verifies that a context that ends while a
// function decides stops the change, whatever the function returns.
func TestCancelledContextStopsBeforeThePersist(t *testing.T) {
	each(t, func(e *env) {
		e.has("u", full)
		for _, budget := range []scope.Option{scope.Budget(0), scope.Budget(-1)} {
			ctx, cancel := context.WithCancel(e.ctx)
			_, err := e.raw("u", budget).Atomic(ctx, func(context.Context, json.RawMessage) (json.RawMessage, error) {
				cancel()
				return json.RawMessage(`{"cancelled":true}`), nil
			})
			if !errors.Is(err, context.Canceled) || errors.Is(err, scope.ErrMutationTimeout) {
				e.Errorf("got %v, want context.Canceled", err)
			}
			e.inTime(func(limit time.Duration) bool {
				timed, cancel := context.WithTimeout(e.ctx, limit)
				defer cancel()
				var begun atomic.Bool
				_, err := e.raw("u", budget).Atomic(timed, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
					begun.Store(true)
					<-ctx.Done()
					return json.RawMessage(`{"cancelled":true}`), nil
				})
				if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, scope.ErrMutationTimeout) {
					e.Errorf("got %v, want context.DeadlineExceeded", err) // the caller's own deadline is not the budget
				}
				return begun.Load()
			})
		}
		e.is("u", full, 0)
	})
}

// Verifies that a budget is refused in a transaction, where it has no effect.
func TestNoBudgetInATransaction(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			_, err := scope.In[map[string]int](tx, scope.User, "u", scope.Budget(time.Second)).Inc(ctx, "n", 1)
			return err
		})
		if !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("got %v, want ErrValidation", err)
		}
	})
}
