package demo

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/scope"
)

// The clerk who takes too long is shown also where the budget is spent before it has begun,
// as on a slow machine, and a stop ends it.
func TestDemoLateClerk(t *testing.T) {
	d := &Demo{shop: &shop{engine: holdfasttest.Open(t)}, run: "r"}
	state := scope.In[customer](d.engine, scope.User, "r-customer")
	if _, err := state.Inc(t.Context(), "reserved", limit); err != nil {
		t.Fatal(err)
	}
	if begun, err := d.dither(t.Context(), time.Nanosecond); begun || !errors.Is(err, scope.ErrMutationTimeout) {
		t.Errorf("begun %t, told %v", begun, err)
	}
	if err := d.late(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
	s, err := state.Get(t.Context())
	if err != nil || s.Version != 0 || s.State.Reserved != limit {
		t.Errorf("it is %+v, %v", s, err)
	}
	stopped, stop := context.WithCancel(t.Context())
	defer time.AfterFunc(20*time.Millisecond, stop).Stop()
	if err := d.late(stopped, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped, it was told %v", err)
	}
}
