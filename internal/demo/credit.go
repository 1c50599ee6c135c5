package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/stream"
)

const (
	clerks  = 16  // who change one customer's state at once
	visits  = 10  // how often each adds to it
	limit   = 500 // how much credit the customer has
	reserve = 100 // what each clerk reserves of it
	giveUp  = 200 * time.Millisecond
)

// customer is the state of the demo's scope.
type customer struct {
	Visits   int64 `json:"visits"`
	Reserved int64 `json:"reserved"`
}

var errNoCredit = errors.New("the limit is reached")

// credits has many change the state of one customer at once: all add to it, all reserve a part
// of a credit that is not enough for all, and one decides for longer than it may.
func (d *Demo) credits(ctx context.Context) error {
	d.say("\n7. A scope: %d clerks note %d visits each of one customer, and each reserves %d of a credit of %d, at once; one takes too long.\n\n",
		clerks, visits, reserve, limit)
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
			d.total.told.reserved++
		}
	}
	d.total.told.visits += clerks * visits
	if err := d.late(ctx, giveUp); err != nil {
		return err
	}
	return d.auditCredit(ctx, state)
}

// serve is one clerk: it notes visits, and reserves credit if there is enough left.
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

// late is a clerk who decides for longer than the budget. What comes of it is never seen. A
// budget that is spent before the clerk has begun shows nothing: the next one is twice that.
func (d *Demo) late(ctx context.Context, budget time.Duration) error {
	for ; ; budget *= 2 {
		begun, err := d.dither(ctx, budget)
		if !errors.Is(err, scope.ErrMutationTimeout) {
			return fmt.Errorf("a clerk who took too long was told %w", err)
		}
		if begun {
			return nil
		}
	}
}

// dither decides for longer than a budget, and says whether that was begun within it.
func (d *Demo) dither(ctx context.Context, budget time.Duration) (begun bool, err error) {
	state := scope.In[customer](d.engine, scope.User, d.run+"-customer", scope.Budget(budget))
	in, done := make(chan struct{}), make(chan struct{})
	_, err = state.Atomic(ctx, func(ctx context.Context, c customer) (customer, error) {
		defer close(done)
		close(in)
		<-ctx.Done() // and goes on all the same
		c.Reserved = 0
		return c, nil
	})
	select {
	case <-in:
		<-done // its context has ended
		return true, err
	default: // or begins yet, and is over at once
		return false, err
	}
}

// auditCredit holds the state and its history to what the clerks were told.
func (d *Demo) auditCredit(ctx context.Context, state scope.Scope[customer]) error {
	s, err := state.Get(ctx)
	if err != nil {
		return err
	}
	history, err := stream.Read(ctx, d.engine, "$scope/user/"+s.ID, 0, 1000)
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
	d.say("  customer %s   version %d: %d visits, %d of %d reserved; who took too long has changed nothing\n", s.ID, s.Version, s.State.Visits, s.State.Reserved, limit)
	if want := (customer{clerks * visits, limit}); s.State != want {
		d.total.blame(s.ID, fmt.Sprintf("its state is %+v, and %+v was told", s.State, want))
	}
	return nil
}
