package lifecycle

import (
	"context"
	"encoding/json"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Act is a step in the hands of its body. It is used by one goroutine at a time.
type Act[E any] struct {
	// Entity is the entity as it was when the body began: in the claim status,
	// if the step has one. In an after-effect, it is as it is now.
	Entity    Entity[E]
	Step      string
	Requester string
	// Operation is the same for every attempt, and new for the next operation:
	// a key for other systems.
	Operation string
	// Attempt counts the tries of the operation, this one included.
	Attempt int
	// Input is what the caller gave, as JSON, or nil.
	Input json.RawMessage

	inner *lifecycleengine.Act
}

// WriteTx adds what is written when the step is settled, in that transaction: all of
// it is committed with the new status, or nothing. f may be run again. In an
// after-effect, it is the transaction of the acknowledgement.
func (a *Act[E]) WriteTx(f func(context.Context, holdfast.Tx) error) {
	a.inner.Commit(store.TxFunc(f))
}

// Set replaces the entity's data when the step is settled. The rows of a table of
// the user's own are changed in [Act.WriteTx].
func (a *Act[E]) Set(data E) error {
	raw, err := encoded(a.Entity.ID, data)
	if err != nil {
		return err
	}
	return a.inner.Set(raw)
}

// Decode reads the input into v.
func (a *Act[E]) Decode(v any) error {
	if a.Input == nil {
		return holdfast.Invalid("there is no input")
	}
	if err := json.Unmarshal(a.Input, v); err != nil {
		return holdfast.Invalid("the input is not what it should be: " + err.Error())
	}
	return nil
}
