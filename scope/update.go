package scope

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
)

// Update runs f in one transaction, like [holdfast.Engine.Update], but in the scope's queue and within its budget, as
// if it were a change by [Scope.Atomic]. Changes that f makes to the scope, through In with the transaction, therefore
// do not race with other changes in this process. A transaction of [holdfast.Engine.Update] does not queue, and can
// make a concurrent Atomic retry. f may run again, and must not use the engine. Update accepts only the option
// [Budget], and returns [holdfast.ErrValidation] for any other option: pass other options to In.
func Update(ctx context.Context, e *holdfast.Engine, kind, id string, f func(context.Context, holdfast.Tx) error, o ...Option) error {
	h := In[struct{}](e, kind, id, o...).handle
	if g := h.given; g.expected != nil || g.bad != nil || g.TTL != 0 || g.MaxAttempts != 0 || g.meta != (events.Meta{}) {
		return fault.New(fault.Validation, "scope.Update accepts only the option Budget: pass other options to scope.In inside the function")
	}
	_, err := h.change(ctx, true, func(ctx context.Context, _ settings) (found, error) { return found{}, e.Update(ctx, f) })
	return err
}
