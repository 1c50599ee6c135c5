package scope_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/scope"
)

// within runs f inside a function that changes a scope.
func within(e *env, s raw, f func(context.Context)) {
	e.Helper()
	_, err := s.Atomic(e.ctx, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		f(ctx)
		return json.RawMessage(`{"outer":true}`), nil
	})
	e.ok(err)
}

// reentrant wants every verb on a scope to be refused at once.
func reentrant(ctx context.Context, e *env, s raw) {
	e.Helper()
	for _, v := range verbs {
		if _, err := v.do(ctx, s); !errors.Is(err, holdfast.ErrReentrant) {
			e.Errorf("%s inside: got %v, want ErrReentrant", v.name, err)
		}
	}
}

// TestNestedOnTheSameContainer verifies that a function that changes a scope cannot change it
// again inside, by any verb, through another function or a transaction; that it is told so
// at once; and that what it returns is written all the same.
func TestNestedOnTheSameContainer(t *testing.T) {
	each(t, func(e *env) {
		u, v := e.raw("u", scope.Budget(-1)), e.raw("v", scope.Budget(-1))
		within(e, u, func(ctx context.Context) { reentrant(ctx, e, e.raw("u")) })
		e.is("u", `{"outer":true}`, 0)
		within(e, u, func(ctx context.Context) { // and further in
			_, err := v.Atomic(ctx, func(ctx context.Context, d json.RawMessage) (json.RawMessage, error) {
				reentrant(ctx, e, e.raw("u"))
				reentrant(ctx, e, e.raw("v"))
				return json.RawMessage(`{"inner":true}`), nil
			})
			e.ok(err)
		})
		e.is("v", `{"inner":true}`, 0)
		within(e, u, func(ctx context.Context) { // what is not the same is free
			_, err := e.raw("u").Inc(holdfast.InWorkspace(ctx, "other"), "n", 1)
			e.ok(err)
			_, err = at[cart](e, "other", "u").Inc(ctx, "total", 1)
			e.ok(err)
			_, err = scope.Of[cart](memory(e), "thing", "u").Inc(ctx, "total", 1)
			e.ok(err)
		})
		_, err := u.Inc(e.ctx, "n", 1)
		e.ok(err)
	})
}

// TestAKeptContextHoldsNothing verifies that who keeps the context of a function beyond it
// may change the scope with it: the function is over.
func TestAKeptContextHoldsNothing(t *testing.T) {
	each(t, func(e *env) {
		var kept context.Context
		within(e, e.raw("u", scope.Budget(-1)), func(ctx context.Context) { kept = ctx })
		_, err := e.raw("u").Inc(kept, "n", 1)
		e.ok(err)
		e.is("u", `{"outer":true,"n":1}`, 1)
	})
}

// TestNestedThroughATransaction verifies that a transaction that is begun inside a function
// does not lead around it, that the engine is refused inside its own transactions, and that a
// function inside a transaction cannot change its scope again either.
func TestNestedThroughATransaction(t *testing.T) {
	each(t, func(e *env) {
		within(e, e.raw("u"), func(ctx context.Context) {
			e.ok(e.hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				reentrant(ctx, e, scope.In[json.RawMessage](tx, "thing", "u"))
				_, err := scope.In[cart](tx, "thing", "v").Inc(ctx, "total", 1)
				return err
			}))
		})
		e.is("u", `{"outer":true}`, 0)
		e.is("v", `{"total":1}`, 0)
		e.ok(e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			reentrant(ctx, e, e.raw("u"))
			if _, err := e.raw("u").Get(ctx); !errors.Is(err, holdfast.ErrReentrant) {
				e.Errorf("get inside: got %v, want ErrReentrant", err)
			}
			if err := firstError(ctx, e.raw("u")); !errors.Is(err, holdfast.ErrReentrant) {
				e.Errorf("watch inside: got %v, want ErrReentrant", err)
			}
			inside := scope.In[json.RawMessage](tx, "thing", "u")
			_, err := inside.Atomic(ctx, func(ctx context.Context, d json.RawMessage) (json.RawMessage, error) {
				reentrant(ctx, e, inside)
				reentrant(ctx, e, e.raw("v"))
				_, err := scope.In[cart](tx, "thing", "v").Inc(ctx, "total", 1)
				return json.RawMessage(`{"inside":true}`), err
			})
			return err
		}))
		e.is("u", `{"inside":true}`, 1)
		e.is("v", `{"total":2}`, 1)
	}, "sqlite", "postgres")
}

// opposite makes two callers change two scopes in opposite order, each holding the first when
// it calls the second, and returns their errors; and whether they met: on a slow machine
// the budget of one may be spent before the other has begun.
func opposite(e *env, o ...scope.Option) (told [2]error, met bool) {
	var (
		done sync.WaitGroup
		saw  [2]atomic.Bool
	)
	names, in := []string{"a", "b"}, []chan struct{}{make(chan struct{}), make(chan struct{})}
	for i := range 2 {
		done.Go(func() {
			_, told[i] = at[cart](e, "thing", names[i], o...).Atomic(e.ctx, func(ctx context.Context, c cart) (cart, error) {
				close(in[i])
				select {
				case <-in[1-i]:
				case <-ctx.Done():
				}
				if err := ctx.Err(); err != nil {
					return c, err
				}
				saw[i].Store(true)
				_, err := at[cart](e, "thing", names[1-i], o...).Inc(ctx, "total", 1)
				return c, err
			})
		})
	}
	done.Wait()
	return told, saw[0].Load() && saw[1].Load()
}

// TestNestedInOppositeOrder verifies that two who hold what the other wants end with an error
// within the budget, and that both scopes are free afterwards.
func TestNestedInOppositeOrder(t *testing.T) {
	free := func(e *env, told [2]error, met bool) bool {
		e.Helper()
		if told[0] == nil && told[1] == nil {
			e.Error("both callers succeeded, want at least one timeout")
		}
		for _, err := range told {
			if err != nil && !errors.Is(err, scope.ErrMutationTimeout) {
				e.Errorf("caller got %v, want ErrMutationTimeout", err)
			}
		}
		for _, id := range []string{"a", "b"} {
			_, err := at[cart](e, "thing", id).Inc(e.ctx, "total", 1)
			e.ok(err)
		}
		return met
	}
	each(t, func(e *env) {
		e.inTime(func(budget time.Duration) bool {
			told, met := opposite(e, scope.Budget(budget))
			return free(e, told, met)
		})
	})
	t.Run("memory, as it is by default", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &env{T: t, own: memory(t), ctx: freshWorkspace()}
			begun := clock.Now()
			told, met := opposite(e)
			e.equal("they met", free(e, told, met), true)
			e.equal("it took", clock.Since(begun), 30*time.Second)
		})
	})
}
