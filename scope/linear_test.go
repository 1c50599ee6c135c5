package scope_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/scope"
)

// number is a register and a counter.
type number struct {
	N int64 `json:"n"`
}

// callInput is the input of a call in the model.
type callInput struct {
	what string // get, set, inc, atomic, delete
	n    int64
}

// callOutput is its result. With unknown, it was applied at some time, or never will be. With
// vague, the answer was lost and then looked up: it was made, and the number may be a later
// one.
type callOutput struct {
	unknown, vague  bool
	exists, changed bool
	n, version      int64
}

// numberState is the state of the model: the number, and the last version that was used.
type numberState struct {
	exists     bool
	n, version int64
}

// next is the state behind a call.
func (s numberState) next(a callInput) numberState {
	n := a.n
	switch a.what {
	case "get":
		return s
	case "delete":
		if s.exists {
			return numberState{false, 0, s.version + 1}
		}
		return s
	case "inc", "atomic":
		n += s.n
	}
	if s.exists && n == s.n {
		return s
	}
	return numberState{true, n, s.version + 1}
}

// numberModel is a scope with one number. A call whose outcome is unknown may be put at the
// very end, where no read sees it.
var numberModel = porcupine.Model{
	Init: func() any { return numberState{version: -1} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(numberState), input.(callInput), output.(callOutput)
		next := s.next(in)
		if out.unknown {
			return true, next
		}
		changed := next != s
		if out.vague {
			out.n, out.vague = next.n, false
		}
		version := next.version
		if !next.exists && !(in.what == "delete" && changed) {
			version = -1
		}
		return out == callOutput{exists: next.exists, changed: changed, n: next.n, version: version}, next
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
}

// recorder remembers calls. What is known not to have been made is left out: an order in
// which it was made would then not be found.
type recorder struct {
	cut      bool // connections are
	mu       sync.Mutex
	all      []porcupine.Operation
	outcomes map[string]int
}

func (r *recorder) call(client int, a callInput, vague bool, f func() (scope.Snapshot[number], error)) error {
	begun := clock.Now().UnixNano()
	s, err := f()
	ended := clock.Now().UnixNano()
	out := callOutput{exists: s.Exists, changed: s.Changed, n: s.State.N, version: s.Version}
	what := "made"
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		out.vague = vague && s.Changed && a.what == "set" // of a patch, the event does not tell the number
	case fault.CodeOf(err) == fault.OutcomeUnknown:
		what, out, ended = "unknown", callOutput{unknown: true}, math.MaxInt64
	case errors.Is(err, scope.ErrMutationTimeout), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, holdfast.ErrConcurrency), r.cut && errors.Is(err, holdfast.ErrUnavailable):
		r.outcomes["not made"]++
		return nil
	default:
		return fmt.Errorf("%+v: %w", a, err)
	}
	r.outcomes[what]++
	r.all = append(r.all, porcupine.Operation{ClientId: client, Input: a, Call: begun, Output: out, Return: ended})
	return nil
}

// calls has a client make random calls of a scope, with budgets and contexts that end now
// and then.
func (r *recorder) calls(e *env, client, n int) error {
	for range n {
		a := callInput{what: []string{"get", "get", "set", "inc", "inc", "atomic", "atomic", "delete"}[rand.IntN(8)], n: rand.Int64N(4)}
		var o []scope.Option
		ctx, cancel, hurried := e.ctx, context.CancelFunc(func() {}), true
		switch rand.IntN(6) {
		case 0:
			ctx, cancel = context.WithTimeout(e.ctx, time.Duration(rand.IntN(2000))*time.Microsecond)
		case 1, 2:
			o = append(o, scope.Budget(time.Duration(1+rand.IntN(2000))*time.Microsecond))
		default:
			hurried = false
		}
		// A statement that PostgreSQL has begun is broken off when its context ends.
		err := r.call(client, a, r.cut || hurried && e.name == "postgres",
			func() (scope.Snapshot[number], error) { return a.make(ctx, at[number](e, "thing", "u", o...)) })
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func (a callInput) make(ctx context.Context, s scope.Scope[number]) (scope.Snapshot[number], error) {
	switch a.what {
	case "get":
		return s.Get(ctx)
	case "set":
		return s.Patch(ctx, number{a.n})
	case "inc":
		return s.Inc(ctx, "n", a.n)
	case "atomic":
		return s.Atomic(ctx, func(_ context.Context, n number) (number, error) { return number{n.N + a.n}, nil })
	}
	return s.Delete(ctx)
}

func (r *recorder) check(e *env) {
	e.Helper()
	if got := porcupine.CheckOperationsTimeout(numberModel, r.all, time.Minute); got != porcupine.Ok {
		e.Errorf("the history of %d calls is not linearizable: %s", len(r.all), got)
	}
	e.Logf("%v", r.outcomes)
}

// TestLinearizable verifies that there is an order of all calls of many callers of one scope,
// in this process and by another handle that does not stand in the same queue, each at a
// moment between its call and its answer, in which every answer is right: what it is, its
// version, and whether it was changed. A call that was told that its budget or its context
// ended, or that others were faster, is not in that order.
func TestLinearizable(t *testing.T) {
	each(t, func(e *env) {
		r := &recorder{outcomes: map[string]int{}}
		envs := []*env{e, e}
		if e.where != "" {
			envs[1] = e.other()
		}
		won, lost := holdfasttest.Race(e.T, 8, func(i int) error { return r.calls(envs[i%2], i, 120) })
		e.equal("errors", lost, "[]")
		e.equal("callers", won, 8)
		r.check(e)
		if r.outcomes["not made"] == 0 || r.outcomes["made"] < 100 {
			e.Errorf("too few outcomes to prove anything: %v", r.outcomes)
		}
	})
}

// cutter cuts a connection between an engine and its server now and then: before what the
// client has sent arrives, or behind it, so that the answer is lost.
type cutter struct {
	on   atomic.Bool
	cuts atomic.Int64
}

func (c *cutter) fate([]byte) testkit.Action {
	if !c.on.Load() || rand.IntN(40) > 0 {
		return testkit.Pass
	}
	c.cuts.Add(1)
	if rand.IntN(3) > 0 {
		return testkit.LoseResponse
	}
	return testkit.Cut
}

// TestLinearizableWithLostAnswers verifies the same where connections to the server are cut,
// so that answers are lost: those are asked for, and only a call that was told that nobody
// knows may have been made or not.
func TestLinearizableWithLostAnswers(t *testing.T) {
	base := holdfasttest.PostgreSQL(t)
	c := &cutter{}
	_, through := testkit.NewProxy(t, base, c.fate, nil)
	hf := holdfasttest.OpenOn(t, postgres.URL(through))
	e := &env{T: t, name: "postgres", ctx: freshWorkspace(), hf: hf}
	other := e.at(holdfasttest.OpenOn(t, postgres.URL(base)))
	r := &recorder{outcomes: map[string]int{}, cut: true}
	_, err := at[number](e, "thing", "u").Inc(e.ctx, "n", 0)
	e.ok(err)
	r.all = append(r.all, porcupine.Operation{ClientId: 9, Input: callInput{"inc", 0}, Output: callOutput{exists: true, changed: true}, Call: 0, Return: 1})
	c.on.Store(true)
	_, lost := holdfasttest.Race(t, 6, func(i int) error { return r.calls([]*env{e, e, other}[i%3], i, 60) })
	c.on.Store(false)
	e.equal("errors", lost, "[]")
	r.check(e)
	e.Logf("%d connections were cut", c.cuts.Load())
	if c.cuts.Load() == 0 || r.outcomes["made"] < 50 {
		e.Errorf("too few outcomes to prove anything: %v with %d cuts", r.outcomes, c.cuts.Load())
	}
}

func (e *env) at(hf *holdfast.Engine) *env {
	c := *e
	c.hf = hf
	return &c
}
