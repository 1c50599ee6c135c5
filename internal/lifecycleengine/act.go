package lifecycleengine

import (
	"context"
	"encoding/json"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Act is a step in the hands of its body; lifecycle.Act explains it.
type Act struct {
	Entity    Entity
	Step      string
	Requester string
	Operation string
	Attempt   int
	Input     json.RawMessage

	w *work
}

// work is an [Act] as the attempt knows it.
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

// Commit adds what is written when the step is settled, in that transaction.
func (a *Act) Commit(f func(context.Context, *store.Tx) error) {
	a.w.commits = append(a.w.commits, f)
}

// Set replaces the entity's data when the step is settled.
func (a *Act) Set(data json.RawMessage) error {
	if a.w.own {
		return fault.New(fault.Validation, "the data of %q is its row in your own table: change it in Commit", a.Entity.ID)
	}
	a.w.data = data
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
