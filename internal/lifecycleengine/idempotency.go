package lifecycleengine

import (
	"cmp"
	"context"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/store"
)

// A step that is fired or claimed in a handler of idem.Middleware belongs to the key of the
// request, as it does over HTTP. A slot of the key points to the operation, starting with the
// transaction that begins it. A handler that runs again under the key therefore finds its
// operation and the outcome.
//
// If the process crashes, the handler runs again after the key's lease has expired. The crash
// may happen:
//
//   - before that transaction commits: the slot is empty, and the step runs.
//   - while the body runs: the operation is in flight ([fault.KeyInFlight]) until the janitor
//     releases it. Either the janitor reverted the entity, and the step runs again under a new
//     operation; or it made the operation due, and the outcome is pending and later the result
//     of the resumed operation.
//   - after the end of the operation: its outcome is the response, even if the entity has
//     changed since then.
//
// A holder whose lease on the key expired is refused in that transaction ([fault.LeaseLost]),
// because its successor may have reported to the client that nothing was changed. A holder that
// has begun by then continues, and its successor finds its operation.
//
// Two steps of one handler have separate slots: by lifecycle, entity, step and requester, and
// by the number of such operations whose end the handler has seen. A step that was refused, or
// released without effect, leaves its slot to the next attempt.

// underKey runs a step, by calling do, under the idempotency key of the context's request, if there is
// one. The context that do gets is for the bodies, which belong to the operation and not to the request.
func (s *bound) underKey(ctx context.Context, r *request, do func(context.Context) (entities.Entity, error)) (entities.Entity, error) {
	f := idempotency.FlightOf(ctx)
	if f == nil {
		return do(ctx)
	}
	slot := f.Slot(s.config.Workflow, r.id, r.step, r.as)
	was, outcome, err := s.inSlot(ctx, slot, r.id)
	if err != nil {
		return entities.Entity{}, err
	}
	if inFlightOrDone(outcome) {
		return s.replay(ctx, slot, r, was, outcome)
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
	second := refusal(err) || fault.CodeOf(err) == fault.KeyInFlight // another execution may have come first
	if !pointed && !second {
		return e, err
	}
	was, outcome, failed := s.inSlot(ctx, slot, r.id)
	switch {
	case failed != nil:
		return e, err
	case inFlightOrDone(outcome) && second: // a concurrent execution of the same request came first
		return s.replay(ctx, slot, r, was, outcome)
	case outcome.Outcome == "failed":
		slot.End()
	default:
		slot.Stands(inFlightOrDone(outcome))
	}
	return e, err
}

// inFlightOrDone reports whether an operation is in flight or has ended with an effect.
func inFlightOrDone(f OperationOutcome) bool { return f.Outcome != "" && f.Outcome != "released" }

// inSlot returns the operation that a slot points to, if there is one, and its outcome.
func (s *bound) inSlot(ctx context.Context, slot *idempotency.Slot, id string) (operation string, f OperationOutcome, err error) {
	if operation, err = slot.Operation(ctx, s.engine); err != nil || operation == "" {
		return "", OperationOutcome{}, err
	}
	f, err = s.outcomeOf(ctx, id, operation)
	return operation, f, err
}

// replay returns the result of an operation that was begun earlier.
func (s *bound) replay(ctx context.Context, slot *idempotency.Slot, r *request, operation string, f OperationOutcome) (entities.Entity, error) {
	slot.Stands(true)
	if err := slot.Extend(ctx, s.engine, operation); err != nil {
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
	return e, fault.New(fault.ActionFailed, "%s", cmp.Or(f.Message, "the step has not ended")).
		With("outcome", f.Outcome).With("operation", operation).With("status", e.Status)
}

// refusal reports whether an error means that another request came first.
func refusal(err error) bool {
	switch fault.CodeOf(err) {
	case fault.ClaimFailed, fault.InvalidTransition, fault.Concurrency:
		return true
	}
	return false
}
