package demo

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/scope"
)

// A budget that is spent before the callback starts, as on a slow machine, is doubled, and
// canceling the context stops the loop.
func TestDemoLateClerk(t *testing.T) {
	d := &Demo{shop: &shop{engine: holdfasttest.Open(t)}, run: "r"}
	state := scope.In[customer](d.engine, scope.User, "r-customer")
	if _, err := state.Inc(t.Context(), "reserved", limit); err != nil {
		t.Fatal(err)
	}
	if started, err := d.changeLate(t.Context(), time.Nanosecond); started || !errors.Is(err, scope.ErrMutationTimeout) {
		t.Errorf("started %t, error %v", started, err)
	}
	if err := d.exceedBudget(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
	s, err := state.Get(t.Context())
	if err != nil || s.Version != 0 || s.State.Reserved != limit {
		t.Errorf("got scope %+v, error %v", s, err)
	}
	stopped, stop := context.WithCancel(t.Context())
	defer time.AfterFunc(20*time.Millisecond, stop).Stop()
	if err := d.exceedBudget(stopped, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("after the stop: got error %v, want context.Canceled", err)
	}
}
