package lifecycleengine

import (
	"cmp"
	"context"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/store"
)

// A step that is fired or claimed in a handler of idem.Middleware belongs to the key of
// the request, as it does over HTTP. A slot of the key points to the operation from the
// transaction on that begins it, so that a handler which is run again under the key
// finds its operation, and what became of it.
//
// The process dies, and the handler is run again when the key's lease has expired:
//
//   - before that transaction commits: the slot is empty, and the step is done.
//   - while the body runs: the operation is held ([fault.KeyInFlight]) until the janitor
//     has released it, and then the step is done anew under another operation; or has
//     made it due, and then it is pending, and later what the resumer makes of it.
//   - behind the end of the operation: that is the answer, also where the entity has
//     gone on since then.
//
// A holder whose lease on the key expired is refused in that transaction
// ([fault.LeaseLost]): its successor may have told the client that nothing was done. One
// that has begun by then goes on, and its successor finds its operation.
//
// Two steps of one handler have slots of their own: by lifecycle, entity, step and
// requester, and by how many such operations the handler knows the end of. A step that
// was refused, or released without effect, leaves its slot to the next try.

// tied does a step for the request of the context, if it has a key. do is given the
// context for the bodies, which belong to the operation and not to the request.
func (s *bound) tied(ctx context.Context, r *request, do func(context.Context) (entities.Entity, error)) (entities.Entity, error) {
	f := idempotency.FlightOf(ctx)
	if f == nil {
		return do(ctx)
	}
	slot := f.Slot(s.config.Workflow, r.id, r.step, r.as)
	was, fate, err := s.inSlot(ctx, slot, r.id)
	if err != nil {
		return entities.Entity{}, err
	}
	if stands(fate) {
		return s.again(ctx, slot, r, was, fate)
	}
	pointed, also := false, r.Begin
	r.Begin = func(ctx context.Context, tx *store.Tx, operation string) error {
		pointed = true
		if also != nil {
			if err := also(ctx, tx, operation); err != nil {
				return err
			}
		}
		return slot.Point(ctx, tx, was, operation)
	}
	e, err := do(idempotency.InFlight(ctx, nil))
	if err == nil {
		slot.End()
		return e, nil
	}
	second := refusal(err) || fault.CodeOf(err) == fault.KeyInFlight
	if !pointed && !second {
		return e, err
	}
	was, fate, failed := s.inSlot(ctx, slot, r.id)
	switch {
	case failed != nil:
		return e, err
	case stands(fate) && second: // another run of the same request came first
		return s.again(ctx, slot, r, was, fate)
	case fate.Outcome == "failed":
		slot.End()
	default:
		slot.Stands(stands(fate))
	}
	return e, err
}

// stands says whether an operation is under way, or has ended with an effect.
func stands(f OperationOutcome) bool { return f.Outcome != "" && f.Outcome != "released" }

// inSlot returns the operation that a slot points to and what became of it, if there is
// one.
func (s *bound) inSlot(ctx context.Context, slot *idempotency.Slot, id string) (operation string, f OperationOutcome, err error) {
	if operation, err = slot.Operation(ctx, s.engine); err != nil || operation == "" {
		return "", OperationOutcome{}, err
	}
	f, err = s.outcomeOf(ctx, id, operation)
	return operation, f, err
}

// again answers for an operation that was begun before.
func (s *bound) again(ctx context.Context, slot *idempotency.Slot, r *request, operation string, f OperationOutcome) (entities.Entity, error) {
	slot.Stands(true)
	if err := slot.Keep(ctx, s.engine, operation); err != nil {
		return entities.Entity{}, err
	}
	if f.Running {
		return entities.Entity{}, idempotency.UnderWay(0).With("operation", operation)
	}
	e, err := s.store.get(ctx, r.id)
	if err != nil {
		return e, err
	}
	if f.Outcome == "success" || f.Outcome == "failed" {
		slot.End()
	}
	if f.Outcome == "success" {
		if r.Output != nil {
			*r.Output = f.Output
		}
		return e, nil
	}
	return e, fault.New(fault.ActionFailed, "%s", cmp.Or(f.Message, "the step is not at its end")).
		With("outcome", f.Outcome).With("operation", operation).With("status", e.Status)
}

// refusal says whether an error is that of one who came second, or too late.
func refusal(err error) bool {
	switch fault.CodeOf(err) {
	case fault.ClaimFailed, fault.InvalidTransition, fault.Concurrency:
		return true
	}
	return false
}
