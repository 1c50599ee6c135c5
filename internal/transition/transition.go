// Package transition lets runs fire the steps of lifecycles, without either capability importing the other.
package transition

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Request requests a step of a lifecycle. It is the input of a run's transition.
type Request struct {
	Lifecycle string          `json:"lifecycle"`
	Entity    string          `json:"entity"`
	StepKey   string          `json:"stepKey"`
	Requester string          `json:"requester"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// Transitioner fires steps of lifecycles.
type Transitioner interface {
	// Fire fires a step. begun runs in the transaction that begins its operation.
	Fire(ctx context.Context, r Request, begun func(ctx context.Context, tx *store.Tx, operation string) error) (output []byte, err error)
	// Outcome returns the outcome of an operation: success, failed, released, pending or uncertain.
	Outcome(ctx context.Context, r Request, operation string) (outcome string, output []byte, message string, err error)
	// Steps returns the steps of a lifecycle, and whether the lifecycle exists.
	Steps(ctx context.Context, lifecycle string) (keys map[string]bool, ok bool)
}

// Engine is the engine that both capabilities share.
type Engine interface {
	Shared(key any, make func() any) any
}

type transitionerKey struct{}

func transitionerOf(e Engine) *atomic.Pointer[Transitioner] {
	return e.Shared(transitionerKey{}, func() any { return new(atomic.Pointer[Transitioner]) }).(*atomic.Pointer[Transitioner])
}

// Register sets the transitioner of an engine.
func Register(e Engine, f Transitioner) { transitionerOf(e).Store(&f) }

// On returns the transitioner of an engine, or nil.
func On(e Engine) Transitioner {
	if f := transitionerOf(e).Load(); f != nil {
		return *f
	}
	return nil
}
