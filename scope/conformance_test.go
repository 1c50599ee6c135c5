package scope_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/scope"
)

// testCase is one thing that a store must do.
type testCase struct {
	name string
	run  func(*env)
}

// cases are what every store does, also inside a transaction. largeCases are not run there:
// they are about the state, not about whose write it is.
var cases = slices.Concat(verbCases, wantCases, nameCases, atomicCases)

// TestConformance runs every case on every store: in memory, in files, in both databases,
// and inside a transaction of each. In a database they share it, each in a workspace of its
// own; elsewhere each has a store, where versions begin with 0.
func TestConformance(t *testing.T) {
	if n := len(cases); n < 40 {
		t.Fatalf("only %d cases, want at least 40", n)
	}
	each(t, func(e *env) {
		for i, c := range slices.Concat(cases, largeCases) {
			e.Run(c.name, func(t *testing.T) {
				if i >= len(cases) {
					testlevel.Variant(t, 6)
				}
				if e.hf == nil {
					c.run(stores[e.name](t).in(t))
					return
				}
				c.run(e.in(t))
			})
		}
	})
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for _, c := range cases {
			t.Run("in a transaction: "+c.name, func(t *testing.T) {
				testlevel.Variant(t, 6)
				e := &env{T: t, hf: hf}
				e.inTx(freshWorkspace(), c.run)
			})
		}
	})
}

func (e *env) inTx(ctx context.Context, f func(*env)) {
	e.Helper()
	e.ok(e.hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		f(&env{T: e.T, ctx: ctx, tx: tx, hf: e.hf})
		return nil
	}))
}

// TestConformanceOverTime runs the cases in which time passes: in memory and in files with
// the time of the node, in databases with theirs.
func TestConformanceOverTime(t *testing.T) {
	for _, c := range timedCases {
		t.Run(c.name, func(t *testing.T) {
			t.Run("memory", func(t *testing.T) {
				inBubble(t, func() *scope.Store { return memory(t, timedKinds...) }, c.run)
			})
			t.Run("files", func(t *testing.T) {
				dir := t.TempDir()
				inBubble(t, func() *scope.Store {
					s, err := scope.FileStore(dir, timedKinds...)
					if err != nil {
						t.Fatal(err)
					}
					return s
				}, c.run)
			})
			storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
				e := &env{T: t, ctx: freshWorkspace(), hf: hf, pass: func(d time.Duration) { holdfasttest.Advance(t, hf, d) }}
				c.run(e)
			}, scope.Kinds(timedKinds...))
		})
	}
}
