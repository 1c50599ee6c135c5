package lifecycle

import (
	"context"
	"encoding/json"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Act is the step that a handler executes. Only one goroutine at a time may use it.
type Act[E any] struct {
	// Entity is the state of the entity when the body started. If the step is claimed, the entity is in the claim
	// status. In an after-effect, it is the current entity.
	Entity    Entity[E]
	Step      string
	Requester string
	// Operation identifies the operation. It is the same for every attempt and differs between operations, so it can
	// serve as an idempotency key for other systems.
	Operation string
	// Attempt is the number of this attempt of the operation, starting at 1.
	Attempt int
	// Input is the caller's input as JSON, or nil.
	Input json.RawMessage

	inner *lifecycleengine.Act
}

// WriteTx adds f to the transaction that settles the step, so that the writes of f and the step's result are committed
// together or not at all. f may run more than once. In an after-effect, f runs in the transaction that acknowledges the
// delivery. A validation cannot write: if it calls WriteTx, the step fails.
func (a *Act[E]) WriteTx(f func(context.Context, holdfast.Tx) error) {
	a.inner.Commit(store.TxFunc(f))
}

// Set replaces the entity's data when the step is settled. Only an action can call it: in a validation and in an after-effect,
// the error is [holdfast.ErrValidation]. To change a row of a user-owned table, use
// [Act.WriteTx] instead.
func (a *Act[E]) Set(data E) error {
	raw, err := encoded(a.Entity.ID, data)
	if err != nil {
		return err
	}
	return a.inner.Set(raw)
}

// Decode unmarshals the input into v. If there is no input, or it does not fit v, the error is
// [holdfast.ErrActionInvalid].
func (a *Act[E]) Decode(v any) error {
	if a.Input == nil {
		return holdfast.Invalid("the step requires an input, but none was given")
	}
	if err := json.Unmarshal(a.Input, v); err != nil {
		return holdfast.Invalid("the input does not match the expected type: " + err.Error())
	}
	return nil
}
