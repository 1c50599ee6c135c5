package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/stream"
)

const (
	clerks      = 16  // clerks that change the state of one customer at once
	visits      = 10  // visits that each clerk adds
	limit       = 500 // credit of the customer
	reserve     = 100 // credit that each clerk reserves
	firstBudget = 200 * time.Millisecond
)

// customer is the state of the demo's scope.
type customer struct {
	Visits   int64 `json:"visits"`
	Reserved int64 `json:"reserved"`
}

var errNoCredit = errors.New("credit limit reached")

// credits changes the state of one customer from many clerks at once. All of them increment a
// counter and reserve credit, which is not enough for all. One clerk exceeds its time budget.
func (d *Demo) credits(ctx context.Context) error {
	state := scope.In[customer](d.engine, scope.User, d.run+"-customer", scope.MaxAttempts(-1))
	won := make([]bool, clerks)
	errs := atOnce(clerks, func(i int) (err error) {
		won[i], err = serve(ctx, state)
		return err
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, yes := range won {
		if yes {
			d.total.observed.reserved++
		}
	}
	d.total.observed.visits += clerks * visits
	if err := d.exceedBudget(ctx, firstBudget); err != nil {
		return err
	}
	return d.auditCredit(ctx, state)
}

// serve is one clerk: it records visits, and reserves credit if enough is left.
func serve(ctx context.Context, state scope.Scope[customer]) (reserved bool, err error) {
	for range visits {
		if _, err := state.Inc(ctx, "visits", 1); err != nil {
			return false, err
		}
	}
	_, err = state.Atomic(ctx, func(_ context.Context, c customer) (customer, error) {
		if c.Reserved+reserve > limit {
			return c, errNoCredit
		}
		c.Reserved += reserve
		return c, nil
	})
	if errors.Is(err, errNoCredit) {
		return false, nil
	}
	return err == nil, err
}

// exceedBudget changes the state in a callback that takes longer than its budget, so that the
// change is dropped. If the budget is spent before the callback starts, it doubles the budget
// and tries again.
func (d *Demo) exceedBudget(ctx context.Context, budget time.Duration) error {
	for ; ; budget *= 2 {
		started, err := d.changeLate(ctx, budget)
		if err == nil {
			return errors.New("a clerk's change that exceeds its budget must time out, but it succeeded")
		}
		if !errors.Is(err, scope.ErrMutationTimeout) {
			return fmt.Errorf("a clerk's change that exceeds its budget must time out, got %w", err)
		}
		if started {
			return nil
		}
	}
}

// changeLate changes the state after the budget is spent. It reports whether the callback
// started within the budget.
func (d *Demo) changeLate(ctx context.Context, budget time.Duration) (started bool, err error) {
	state := scope.In[customer](d.engine, scope.User, d.run+"-customer", scope.Budget(budget))
	in, done := make(chan struct{}), make(chan struct{})
	_, err = state.Atomic(ctx, func(ctx context.Context, c customer) (customer, error) {
		defer close(done)
		close(in)
		<-ctx.Done() // ignores the cancellation
		c.Reserved = 0
		return c, nil
	})
	select {
	case <-in:
		<-done // the callback ends, because its context is cancelled
		return true, err
	default: // a callback that starts later ends at once
		return false, err
	}
}

// auditCredit compares the state and its history with the observed results.
func (d *Demo) auditCredit(ctx context.Context, state scope.Scope[customer]) error {
	s, err := state.Get(ctx)
	if err != nil {
		return err
	}
	history, err := holdfast.Collect(stream.Read(ctx, d.engine, "$scope/user/"+s.ID, 0))
	if err != nil {
		return err
	}
	for _, e := range history {
		switch e.Name {
		case "inc":
			d.total.recorded.visits++
		case "put":
			d.total.recorded.reserved++
		}
	}
	d.tell("%d clerks add %d visits each: %d added; %d of them get credit", clerks, visits, s.State.Visits, s.State.Reserved/reserve)
	if want := (customer{clerks * visits, limit}); s.State != want {
		d.total.mismatch(s.ID, fmt.Sprintf("the state is %+v, want %+v", s.State, want))
	}
	return nil
}
