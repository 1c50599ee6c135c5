package scope_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/scope"
)

// interceptor stands between an engine and its database, and may handle a
// command while it is set. It returns false to pass the command on.
type interceptor struct {
	store.Database
	store.Store
	how atomic.Pointer[intercept]
}

type intercept func(ctx context.Context, verb string, do func(context.Context) error) (done bool, err error)

func (m *interceptor) Open(ctx context.Context, o store.Options) (_ store.Store, err error) {
	m.Store, err = m.Database.Open(ctx, o)
	return m, err
}

// Base returns the adapter's own store.
func (m *interceptor) Base() store.Store { return m.Store }

func (m *interceptor) Do(ctx context.Context, c store.Command) error {
	if how := m.how.Load(); how != nil {
		done, err := (*how)(ctx, c.Decl().Name, func(ctx context.Context) error { return m.Store.Do(ctx, c) })
		if done {
			if err != nil {
				c.Reset() // the answer is lost
			}
			return err
		}
	}
	return m.Store.Do(ctx, c)
}

// intercepted runs a test on both databases, with an interceptor before each.
func intercepted(t *testing.T, f func(e *env, set func(intercept))) {
	t.Helper()
	each(t, func(e *env) {
		m := &interceptor{Database: store.DatabaseOf(database(e.where))}
		e.hf = holdfasttest.OpenOn(e.T, store.HandleDatabase(m))
		f(e, func(how intercept) {
			if m.how.Store(&how); how == nil {
				m.how.Store(nil)
			}
		})
	}, "sqlite", "postgres")
}

var errUntold = fault.New(fault.OutcomeUnknown, "the answer was lost")

// lateVerbs are one that is made in the database, and one that compares and swaps.
var lateVerbs = map[string]verb{"scopes.edit": verbOf("patch"), "scopes.put": verbOf("atomic")}

// TestAChangeThatMayHaveLandedIsNoTimeout verifies that a change whose answer is lost, and
// which cannot be asked for either, is one that nobody knows of, also if its budget has ended
// meanwhile: told that it never will land, its caller would make it again. One that is known
// not to have landed is a timeout.
func TestAChangeThatMayHaveLandedIsNoTimeout(t *testing.T) {
	intercepted(t, func(e *env, set func(intercept)) {
		for name, v := range lateVerbs {
			e.has(name, full)
			var asked atomic.Bool // for the change itself, within the budget
			set(func(ctx context.Context, verb string, do func(context.Context) error) (bool, error) {
				switch verb {
				case name:
					asked.Store(true)
					e.ok(do(context.WithoutCancel(ctx)))
					<-ctx.Done()
					return true, errUntold
				case "history.void_command":
					return true, context.DeadlineExceeded // as when it was asked for as long as that is done
				}
				return false, nil
			})
			e.inTime(func(budget time.Duration) bool {
				_, err := v.do(e.ctx, e.raw(name, scope.Budget(budget)))
				if !asked.Load() {
					e.refused(err, scope.ErrMutationTimeout.Code)
				} else if !errors.Is(err, holdfast.ErrOutcomeUnknown) || errors.Is(err, scope.ErrMutationTimeout) {
					e.Errorf("%s that was committed: got %v, want ErrOutcomeUnknown", v.name, err)
				}
				return asked.Load()
			})
			set(nil)
			e.is(name, after[v.name], 1)

			asked.Store(false)
			set(func(ctx context.Context, verb string, _ func(context.Context) error) (bool, error) {
				if verb != name {
					return false, nil
				}
				asked.Store(true)
				<-ctx.Done()
				return true, errUntold
			})
			e.inTime(func(budget time.Duration) bool {
				_, err := v.do(e.ctx, e.raw(name+"-not", scope.Budget(budget)))
				if !errors.Is(err, scope.ErrMutationTimeout) || errors.Is(err, holdfast.ErrOutcomeUnknown) {
					e.Errorf("%s that was not committed: got %v, want ErrMutationTimeout", v.name, err)
				}
				return asked.Load()
			})
			set(nil)
			e.isNone(name + "-not")
		}
	})
}

// TestAHungReadHoldsNobody verifies that where the answer of a change is lost, and the state
// cannot be read either because the database hangs, the caller is told after a while that it
// was made, and the line goes on.
func TestAHungReadHoldsNobody(t *testing.T) {
	intercepted(t, func(e *env, set func(intercept)) {
		e.has("u", full)
		var lost atomic.Bool
		set(func(ctx context.Context, verb string, do func(context.Context) error) (bool, error) {
			switch {
			case isEdit(verb) && lost.CompareAndSwap(false, true):
				e.ok(do(ctx))
				return true, errUntold
			case verb == "scopes.get":
				if ends, bounded := ctx.Deadline(); !bounded || time.Until(ends) > store.Completing {
					e.Error("the read has no deadline")
					return true, errMine
				}
				<-ctx.Done()
				return true, ctx.Err()
			}
			return false, nil
		})
		s, err := e.raw("u").Inc(e.ctx, "n", 1)
		e.ok(err)
		e.like(s, `{"n":2}`, 1, true) // its event tells the sum
		e.equal("left in the line", scope.Queued(e.ctx, e.raw("u")), 0)
		set(nil)
		_, err = e.raw("u").Atomic(e.ctx, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"a":1}`), nil
		})
		e.ok(err)
		e.is("u", `{"a":1}`, 2)
	})
}

// TestAWorkspaceInDoubtIsNoChangeInDoubt verifies that a change in a new workspace that comes
// no further than to ask for the workspace's place is known not to be made, whatever became
// of the place.
func TestAWorkspaceInDoubtIsNoChangeInDoubt(t *testing.T) {
	intercepted(t, func(e *env, set func(intercept)) {
		for _, placed := range []bool{true, false} {
			for _, v := range lateVerbs {
				for _, c := range []struct {
					name  string
					o     scope.Option
					limit time.Duration // of the context
					want  error
				}{
					{"its budget ended", short, time.Minute, scope.ErrMutationTimeout},
					{"its context ended", scope.Budget(-1), 20 * time.Millisecond, context.DeadlineExceeded},
					{"nothing ended", scope.Budget(0), 0, holdfast.ErrUnavailable},
				} {
					e.ctx = freshWorkspace() // a place that was seen is remembered
					ctx, cancel := e.ctx, context.CancelFunc(func() {})
					if c.limit > 0 {
						ctx, cancel = context.WithTimeout(e.ctx, c.limit)
					}
					set(func(ctx context.Context, verb string, do func(context.Context) error) (bool, error) {
						if verb != "workspaces.assign_shard" {
							return false, nil
						}
						if placed {
							e.ok(do(context.WithoutCancel(ctx)))
						}
						if c.limit > 0 {
							<-ctx.Done()
						}
						return true, errUntold
					})
					_, err := v.do(ctx, e.raw("u", c.o))
					if cancel(); !errors.Is(err, c.want) || fault.CodeOf(err) == fault.OutcomeUnknown {
						e.Errorf("%s, and %s: got %v, want %v", v.name, c.name, err, c.want)
					}
					set(nil)
					e.isNone("u")
					_, err = v.do(e.ctx, e.raw("u"))
					e.ok(err)
				}
			}
		}
	})
}

// isEdit reports whether a verb edits a scope in place.
func isEdit(verb string) bool { return verb == "scopes.edit" || verb == "scopes.increment" }
