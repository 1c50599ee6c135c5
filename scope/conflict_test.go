package scope_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/scope"
)

// raced changes a scope by a function, while another process changes it during each of the
// first calls. It returns how often the function was called.
func raced(e, other *env, times int, f func(json.RawMessage) json.RawMessage, o ...scope.Option) (s scope.Snapshot[json.RawMessage], calls int, err error) {
	e.Helper()
	s, err = e.raw("u", o...).Atomic(e.ctx, func(ctx context.Context, d json.RawMessage) (json.RawMessage, error) {
		if calls++; calls <= times {
			_, err := other.raw("u").Inc(other.ctx, "n", 1)
			e.ok(err)
		}
		return f(d), nil
	})
	return s, calls, err
}

// doubled adds a field with the value of n that the function read.
func doubled(d json.RawMessage) json.RawMessage {
	var is struct{ N int64 }
	_ = json.Unmarshal(d, &is)
	return json.RawMessage(fmt.Sprintf(`{"n":%d,"was":%d}`, is.N, is.N))
}

// TestTheCommittedAttemptIsReturned verifies that a function is called again on what another
// process has written meanwhile, that nothing of that is lost, and that the snapshot is that
// of the call that was committed.
func TestTheCommittedAttemptIsReturned(t *testing.T) {
	each(t, func(e *env) {
		other := e.other()
		for i, o := range [][]scope.Option{nil, {scope.Present()}} {
			before := e.has("u", `{"n":1}`)
			s, calls, err := raced(e, other, 2, doubled, o...)
			e.ok(err)
			e.equal(fmt.Sprint("calls ", i), calls, 3)
			e.like(s, `{"n":3,"was":3}`, before.Version+3, true)
			e.is("u", `{"n":3,"was":3}`, before.Version+3)
		}
		made, calls, err := raced(e.in(e.T), other, 0, doubled)
		e.ok(err)
		e.equal("calls", calls, 1)
		e.like(made, `{"n":0,"was":0}`, made.Version, true)
	}, shared...)
}

// TestExhausted verifies that a change that another process was faster than each time ends
// as a concurrent modification, with the number of attempts, and writes nothing: by default
// after four, else after as many as the handle or its kind allows.
func TestExhausted(t *testing.T) {
	each(t, func(e *env) {
		other := e.other()
		e.has("u", `{"n":1}`)
		for _, c := range []struct {
			o    []scope.Option
			want int
		}{{nil, 4}, {[]scope.Option{scope.MaxAttempts(0)}, 4}, {[]scope.Option{scope.MaxAttempts(2)}, 2}, {[]scope.Option{scope.MaxAttempts(6)}, 6}} {
			before, err := e.raw("u").Get(e.ctx)
			e.ok(err)
			s, calls, err := raced(e, other, 100, doubled, c.o...)
			f := e.refused(err, fault.Concurrency)
			if !errors.Is(err, holdfast.ErrConcurrency) || f.Fields["attempts"] != c.want || calls != c.want || s.Changed {
				e.Errorf("after %d calls: got %v %v, want %d attempts", calls, err, f.Fields, c.want)
			}
			now, err := e.raw("u").Get(e.ctx)
			e.ok(err)
			e.like(now, fmt.Sprintf(`{"n":%d}`, 1+now.Version), before.Version+int64(c.want), false)
		}
		s, calls, err := raced(e, other, 7, doubled, scope.MaxAttempts(-1))
		e.ok(err)
		e.equal("calls without a limit", calls, 8)
		e.equal("changed", s.Changed, true)
		s, calls, err = raced(e, other, 1, doubled, scope.ExpectVersion(s.Version))
		e.refused(err, fault.Concurrency)
		e.equal("calls at a version", calls, 1)
	}, shared...)
}

// TestRetriesOfAKind verifies that a kind's retries hold where a handle says nothing.
func TestRetriesOfAKind(t *testing.T) {
	dir := t.TempDir()
	files, err := scope.FileStore(dir, scope.Kind{Name: "thing", MaxAttempts: 2})
	if err != nil {
		t.Fatal(err)
	}
	e := &env{T: t, ctx: freshWorkspace(), own: files, where: "files:" + dir}
	other := e.other()
	e.has("u", `{"n":1}`)
	for o, want := range map[*scope.Option]int{nil: 2, new(scope.MaxAttempts(3)): 3} {
		var options []scope.Option
		if o != nil {
			options = append(options, *o)
		}
		_, calls, err := raced(e, other, 100, doubled, options...)
		e.equal("attempts", e.refused(err, fault.Concurrency).Fields["attempts"], want)
		e.equal("calls", calls, want)
	}
}

// TestANoOpIsCheckedAgainstTheStore verifies that a function which finds nothing to change
// is called again if another process changed the scope meanwhile, so that what it found holds
// of the store; also if that made or deleted the scope.
func TestANoOpIsCheckedAgainstTheStore(t *testing.T) {
	each(t, func(e *env) {
		other := e.other()
		e.has("u", `{"n":1}`)
		s, calls, err := raced(e, other, 1, func(d json.RawMessage) json.RawMessage { return d })
		e.ok(err)
		e.equal("calls", calls, 2)
		e.like(s, `{"n":2}`, 1, false)
		s, calls, err = raced(e, other, 1, func(d json.RawMessage) json.RawMessage { // it is to be 2, and was
			if string(d) != `{"n":2}` && string(d) != `{"n": 2}` {
				return json.RawMessage(`{"n":2}`)
			}
			return d
		})
		e.ok(err)
		e.equal("calls", calls, 2)
		e.like(s, `{"n":2}`, 3, true)

		calls = 0
		s, err = e.raw("u").Atomic(e.ctx, func(_ context.Context, d json.RawMessage) (json.RawMessage, error) {
			if calls++; calls == 1 {
				_, err := other.raw("u").Delete(other.ctx)
				e.ok(err)
			}
			return d, nil
		})
		e.ok(err)
		e.equal("calls", calls, 2)
		e.like(s, `{}`, 5, true) // there was none any more, so what the function returned was made
	}, shared...)
}

// TestANoOpAlone verifies that the same verb from another process that found the work done
// says so, with the version that the first has made.
func TestANoOpAlone(t *testing.T) {
	each(t, func(e *env) {
		other := e.other()
		for i, d := range []*env{e, other} {
			s, err := d.raw("u").SetRecord(d.ctx, "seen", "mail-1", true)
			e.ok(err)
			e.like(s, `{"seen":{"mail-1":true}}`, 0, i == 0)
		}
	}, shared...)
}

// TestAPatchIsNeverSeenHalf verifies that of a patch of several fields readers see all or
// nothing, in this process and in another, and that versions never go back.
func TestAPatchIsNeverSeenHalf(t *testing.T) {
	type pair struct {
		A int64            `json:"a"`
		B int64            `json:"b"`
		R map[string]int64 `json:"r"`
		L []int64          `json:"l"`
	}
	each(t, func(e *env) {
		envs := []*env{e, e}
		if e.where != "" {
			envs[1] = e.other()
		}
		writes := testlevel.Pick[int64](50, 150, 150)
		var stop atomic.Bool
		var readers sync.WaitGroup
		var reads atomic.Int64
		for i := range 4 {
			readers.Go(func() {
				d, last := envs[i%2], int64(-1)
				for !stop.Load() {
					s, err := at[pair](d, "thing", "u").Get(d.ctx)
					if err != nil {
						e.Error(err)
						return
					}
					p := s.State
					if s.Exists && (p.A != p.B || p.R["x"] != p.A || len(p.L) != 1 || p.L[0] != p.A) {
						e.Errorf("read a partial patch at version %d: %+v", s.Version, p)
						return
					}
					if s.Version < last {
						e.Errorf("read version %d after %d", s.Version, last)
					}
					last = s.Version
					reads.Add(1)
				}
			})
		}
		for i := int64(0); i < writes || reads.Load() == 0 && !e.Failed(); i++ { // until somebody has read, too
			p := pair{i, i, map[string]int64{"x": i}, []int64{i}}
			d := envs[i%2]
			var err error
			switch i % 3 {
			case 0:
				_, err = at[pair](d, "thing", "u").Atomic(d.ctx, func(context.Context, pair) (pair, error) { return p, nil })
			default:
				_, err = at[pair](d, "thing", "u").Patch(d.ctx, p)
			}
			e.ok(err)
		}
		stop.Store(true)
		readers.Wait()
		if reads.Load() == 0 {
			e.Error("no reader read anything")
		}
	})
}

// TestInATransaction verifies that what is changed in a transaction is committed with it or
// not at all, and is seen inside it only until then.
func TestInATransaction(t *testing.T) {
	each(t, func(e *env) {
		e.has("u", `{"n":1}`)
		for _, fails := range []bool{true, false} {
			err := e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
				u := scope.In[cart](tx, "thing", "u")
				for range 3 {
					if _, err := u.Inc(ctx, "n", 1); err != nil {
						return err
					}
				}
				s, err := u.Atomic(ctx, func(_ context.Context, c cart) (cart, error) { c.Total = 7; return c, nil })
				if err != nil {
					return err
				}
				e.equal("version inside", s.Version, 4)
				if fails {
					return errMine
				}
				return nil
			})
			if fails {
				e.equal("error", err, errMine)
				e.is("u", `{"n":1}`, 0)
				continue
			}
			e.ok(err)
			e.is("u", `{"n":4,"total":7}`, 4)
		}
	}, "sqlite", "postgres")
}
