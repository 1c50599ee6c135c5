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

// Claim is a manual claim, for a body that runs elsewhere. It lasts until its lease expires, unless it is renewed. It
// is safe for concurrent use.
type Claim[E any] struct {
	Entity Entity[E]

	inner *lifecycleengine.Claim
}

// Outcome is the outcome of a settled claim.
type Outcome string

// The outcomes of a claim.
const (
	Success  Outcome = "success" // the step is done
	Failure  Outcome = "failure" // the work failed
	Rejected Outcome = "invalid" // the request was refused, as with [holdfast.Invalid]
)

// Claim claims a step for a caller that runs the body itself and then calls [Claim.Settle], [Claim.Fail] or
// [Claim.Reject]. If the caller does not end the claim, the janitor recovers it after its lease has expired. Claim runs
// the validation of the step, but not its action. It returns the same errors as [Lifecycle.Fire], including
// [holdfast.ErrActionFailed] if the validation fails.
//
// In a handler of idem.Middleware, the claim belongs to the request's key, as in [Lifecycle.Fire]. If the
// key's operation has already succeeded, the error is [holdfast.ErrConflict], with the outcome.
func (l *Lifecycle[E]) Claim(ctx context.Context, e *holdfast.Engine, id, step, requester string, o ...FireOption) (*Claim[E], error) {
	c, err := l.inner.Claim(ctx, engine.Of(e), id, step, requester, fireOptions(o))
	if err != nil {
		return nil, err
	}
	p, err := typed[E](c.Entity)
	if err != nil {
		return nil, c.Refuse(ctx, err)
	}
	return &Claim[E]{p, c}, nil
}

// Operation returns the id of the claim's operation.
func (c *Claim[E]) Operation() string { return c.inner.Operation() }

// Until returns the time at which the claim's lease expires, according to the database's clock.
func (c *Claim[E]) Until() time.Time { return c.inner.Until() }

// Renew extends the claim's lease and returns its new end. A lease of 0 is the lifecycle's stuck_after. If the lease is lost, the error is
// [holdfast.ErrLeaseLost].
func (c *Claim[E]) Renew(ctx context.Context, lease time.Duration) (until time.Time, err error) {
	return c.inner.Renew(ctx, lease)
}

// Settle ends the claim with [Success]: it moves the entity to its next status, replaces its data if data is not nil,
// and runs f if it is not nil, all in one transaction. For a user-owned table data must be nil; otherwise the error is
// [holdfast.ErrValidation]. If the lease is lost, the error is [holdfast.ErrLeaseLost], and nothing is changed. Settling
// again returns the same result.
func (c *Claim[E]) Settle(ctx context.Context, data *E, f func(context.Context, holdfast.Tx) error) (Entity[E], error) {
	var raw json.RawMessage
	if data != nil {
		var err error
		if raw, err = encoded(c.Entity.ID, *data); err != nil {
			return c.Entity, err
		}
	}
	return shown[E](c.inner.Settle(ctx, lifecycleengine.Success, raw, store.TxFunc(f)))
}

// Fail ends the claim with [Failure] and a reason. The entity moves to the step's failure status if the config sets one;
// otherwise it returns to the status that the claim started from.
func (c *Claim[E]) Fail(ctx context.Context, reason string) (Entity[E], error) {
	return shown[E](c.inner.End(ctx, lifecycleengine.Failure, reason))
}

// Reject ends the claim with [Rejected] and a reason. The entity returns to the status that the claim started from.
func (c *Claim[E]) Reject(ctx context.Context, reason string) (Entity[E], error) {
	return shown[E](c.inner.End(ctx, lifecycleengine.Rejected, reason))
}

// BeginEffect journals that a body that runs elsewhere is about to perform an effect. It returns the current state of
// the effect, with the key to use for it. While the outcome of a begun effect is unknown, the claim cannot be released.
// If the lease expires while the outcome is unknown, the operation waits for manual resolution.
func (c *Claim[E]) BeginEffect(ctx context.Context, name string, ordinal int) (holdfast.EffectInfo, error) {
	return c.effect(ctx, remote.Effect{Name: name, Ordinal: ordinal})
}

// EffectDone journals that an effect happened, with its result; nil is stored as null.
func (c *Claim[E]) EffectDone(ctx context.Context, name string, ordinal int, result json.RawMessage) (holdfast.EffectInfo, error) {
	if len(result) == 0 {
		result = json.RawMessage("null") // without a result, the engine would record that the effect is begun
	}
	return c.effect(ctx, remote.Effect{Name: name, Ordinal: ordinal, Result: result})
}

// EffectNotDone journals that an effect did not happen.
func (c *Claim[E]) EffectNotDone(ctx context.Context, name string, ordinal int) (holdfast.EffectInfo, error) {
	return c.effect(ctx, remote.Effect{Name: name, Ordinal: ordinal, NotDone: true})
}

func (c *Claim[E]) effect(ctx context.Context, x remote.Effect) (holdfast.EffectInfo, error) {
	state, err := c.inner.Journaled(ctx, x)
	return publicEffect(state), err
}
