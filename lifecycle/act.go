package lifecycle

import (
	"context"
	"encoding/json"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
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

	w *work
}

// work is an [Act] without its type.
type work struct {
	entity    entities.Entity
	step      string
	requester string
	operation string
	attempt   int
	input     []byte
	data      []byte
	own       bool                        // the entity is a row of the user's own
	started   bool                        // the action has begun
	held      func(context.Context) error // fails where the lease of the claim may have run out; nil without a claim
	doubtful  bool                        // an earlier attempt of it may have acted
	cleared   bool                        // it was asked, and has not
	stage     string
	output    []byte
	commits   []func(context.Context, *store.Tx) error
}

// Commit adds what is written when the step is settled, in that transaction: all of
// it is committed with the new status, or nothing. f may be run again. In an
// after-effect, it is the transaction of the acknowledgement.
func (a *Act[E]) Commit(f func(context.Context, holdfast.Tx) error) {
	a.w.commits = append(a.w.commits, store.TxFunc(f))
}

// Set replaces the entity's data when the step is settled. The rows of a table of
// the user's own are changed in [Act.Commit].
func (a *Act[E]) Set(data E) error {
	if a.w.own {
		return fault.New(fault.Validation, "the data of %q is its row in your own table: change it in Commit", a.Entity.ID)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return fault.New(fault.Validation, "the data of %q cannot be kept as JSON: %s", a.Entity.ID, err)
	}
	a.w.data = raw
	return nil
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

// settled names the event of a step that was done.
func settled(key string) string { return "settled/" + key }

// noteOf is what an event tells of a step that was not claimed.
func noteOf(key, requester, operation, after string, input []byte) []byte {
	if input == nil {
		input = []byte("null")
	}
	note, _ := json.Marshal(struct { // of plain values, it does not fail
		Step      string          `json:"step"`
		Requester string          `json:"requester"`
		Operation string          `json:"operation"`
		After     string          `json:"after,omitempty"`
		Input     json.RawMessage `json:"input"`
	}{key, requester, operation, after, input})
	return note
}
