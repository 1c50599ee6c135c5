package lifecycle

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Claim is a claim that was taken by hand, for a body that runs elsewhere. It is
// held until its lease runs out, unless it is renewed. Safe for concurrent use.
type Claim[E any] struct {
	Entity Entity[E]

	inner *lifecycleengine.Claim
}

// Outcome is how a claim is settled.
type Outcome string

// The outcomes.
const (
	Success  = Outcome(lifecycleengine.Success)
	Failure  = Outcome(lifecycleengine.Failure)
	Rejected = Outcome(lifecycleengine.Rejected)
)

// Claim takes the claim of a step and leaves the body to the caller, who ends it by
// [Claim.Settle] or [Claim.Release]. Whoever does not is put back by the janitor. The
// validation of the step is asked; its action is not run.
//
// In a handler of idem.Middleware the claim belongs to the key of the request, as in
// [Lifecycle.Fire]. One that has ended well is [holdfast.ErrConflict], with the outcome.
func (l *Lifecycle[E]) Claim(ctx context.Context, e *holdfast.Engine, id, step, as string, o ...FireOption) (*Claim[E], error) {
	c, err := l.inner.Claim(ctx, engine.Of(e), id, step, as, fireOptions(o))
	if err != nil {
		return nil, err
	}
	p, err := typed[E](c.Entity)
	if err != nil {
		return nil, c.Refuse(ctx, err)
	}
	return &Claim[E]{p, c}, nil
}

// Operation is the id of the claim's operation.
func (c *Claim[E]) Operation() string { return c.inner.Operation() }

// Until is when the claim runs out, in the database's time, as it was when it was
// taken.
func (c *Claim[E]) Until() time.Time { return c.inner.Until() }

// Renew extends the claim, or returns [holdfast.ErrLeaseLost].
func (c *Claim[E]) Renew(ctx context.Context, lease time.Duration) (until time.Time, err error) {
	return c.inner.Renew(ctx, lease)
}

// Settle ends the claim. A success moves the entity on, with its data, if one is
// given, and what f writes, in one transaction; a failure or a refusal gives it
// back. After the claim was lost, the error is [holdfast.ErrLeaseLost], and nothing
// is changed. Settling again with the same outcome gives the same answer.
func (c *Claim[E]) Settle(ctx context.Context, o Outcome, data *E, f func(context.Context, holdfast.Tx) error) (Entity[E], error) {
	var raw json.RawMessage
	if data != nil && o == Success {
		var err error
		if raw, err = encoded(c.Entity.ID, *data); err != nil {
			return c.Entity, err
		}
	}
	return shown[E](c.inner.Settle(ctx, lifecycleengine.Outcome(o), raw, store.TxFunc(f)))
}

// Release gives the claim back, with a reason.
func (c *Claim[E]) Release(ctx context.Context, reason string) (Entity[E], error) {
	return c.End(ctx, Failure, reason)
}

// End ends the claim with an outcome other than a success, and a reason.
func (c *Claim[E]) End(ctx context.Context, o Outcome, reason string) (Entity[E], error) {
	return shown[E](c.inner.End(ctx, lifecycleengine.Outcome(o), reason))
}

// Effect journals an effect of the body, which runs elsewhere: with neither a result
// nor notDone, that it is about to be tried. It returns the effect as it stands then,
// with the key to try it under. While it is begun and nothing more is known, the claim
// cannot go back; should it run out, it waits for a person, unless its handler says that
// it may be tried again or asked about.
func (c *Claim[E]) Effect(ctx context.Context, name string, ordinal int, result json.RawMessage, notDone bool) (Effect, error) {
	x, err := c.inner.Effect(ctx, remote.Effect{Name: name, Ordinal: ordinal, Result: result, NotDone: notDone})
	return Effect(x), err
}
