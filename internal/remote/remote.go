// Package remote defines the work that other programs do: workers, which claim tasks, and
// URLs, which Holdfast calls. Each capability is a [Source] of tasks and enforces the
// rules of its own tasks. The code that hands out tasks, over HTTP or otherwise, knows no
// capability.
package remote

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Source hands out the tasks of one capability.
type Source interface {
	// Owns reports whether a task id belongs to this source.
	Owns(id string) bool
	// Offer returns the source's offer for a claim. It is called outside of a transaction.
	Offer(context.Context, Claim) (Offer, error)
	// Complete ends a task with its result. Repeating it under the same epoch returns the
	// same result.
	Complete(context.Context, Lease, Result) (Ended, error)
	// Fail ends a task with a failure. Repeating it under the same epoch returns the same
	// result.
	Fail(context.Context, Lease, Failure) (Ended, error)
	// Snooze ends a task that was not done, without counting an attempt or a failure. It is handed
	// out again after the delay. Repeating it under the same epoch returns the same result.
	Snooze(context.Context, Lease, time.Duration) (Ended, error)
	// Renew extends the lease of a task.
	Renew(context.Context, Lease, time.Duration) (Renewed, error)
	// Effect journals an effect of a task: it begins the effect or records its outcome.
	Effect(context.Context, Lease, Effect) (EffectState, error)
}

// Claim is a worker's request for tasks.
type Claim struct {
	Workspace string
	Revision  int64 // of the workspace's registry
	Worker    string
	Handlers  []string
	Lease     time.Duration
	Busy      map[string]bool // objects that an earlier attempt of the transaction could not lock; sources add to it
}

// Offer describes the tasks that a source has for a claim.
type Offer struct {
	Topics []string        // woken when there may be tasks
	Leased string          // the kind of expired leases to release first
	Due    []wake.WorkKind // the work that Take serves
	Take   func(ctx context.Context, d store.Doer, limit int) ([]Task, error)
}

// Task is one piece of work for another program.
type Task struct {
	ID      string
	Epoch   int64
	Handler string
	Kind    string // validation, action, probe, afterEffect, reaction, batchItem, undoItem or runStep
	Attempt int
	Until   time.Time
	// Operation is the same for every attempt: the idempotency key for other systems.
	Operation string
	Input     json.RawMessage

	// Fields of a lifecycle step.
	StepKey, Requester string
	Lifecycle          string
	Entity             *entities.Entity

	// Fields of a reaction.
	Reaction string
	Event    *events.Event

	// Fields of a batch item.
	Batch, Item    string
	ArtifactPrefix string
	ItemStatus     string          // of an undo
	Output         json.RawMessage // of the item that is undone; may be empty

	// Fields of a run step.
	Run, Step       string
	Visit           int64
	State, RunInput json.RawMessage
}

// size returns the number of bytes in a task's documents.
func (t *Task) size() int {
	n := len(t.Input) + len(t.RunInput) + len(t.State) + len(t.Output)
	if t.Entity != nil {
		n += len(t.Entity.Data)
	}
	if t.Event != nil {
		n += len(t.Event.Data)
	}
	return n
}

// Lease is the id of a task that was handed out, and the epoch of its lease.
type Lease struct {
	ID    string
	Epoch int64
}

// Result is the result of a completed task.
type Result struct {
	Output json.RawMessage
	State  json.RawMessage // a merge patch
}

// Stateless returns an error for a result with a state. Most kinds of task have none.
func (r Result) Stateless() error {
	if len(r.State) == 0 {
		return nil
	}
	return fault.New(fault.Validation, "the result of an event or a batch item must not have a state: remove the field state").With("pointer", "/state")
}

// Failure is the reason why a task failed.
type Failure struct {
	Message string
	Final   bool // a retry does not help
	Invalid bool // the handler rejects the task itself
}

// Said returns an error for a failure without a message.
func (f Failure) Said() error {
	if f.Message != "" {
		return nil
	}
	return fault.New(fault.Validation, "message is required: describe what went wrong").With("pointer", "/message")
}

// Ended is the state of a task after its lease ended.
type Ended struct {
	Status    string
	Version   int64
	NotBefore time.Time // when it is due again; zero if unknown or not due again
}

// Renewed is the result of a renewal.
type Renewed struct {
	Until           time.Time
	CancelRequested bool
}

// Effect is a call of another system that a task journals. Without a result, and without
// NotDone, the call is about to be made.
type Effect struct {
	Name    string
	Ordinal int
	Result  json.RawMessage
	NotDone bool
}

// Action returns what a call does with the effect, as it is named in the list of refusals.
func (x Effect) Action() string {
	if len(x.Result) > 0 || x.NotDone {
		return "endEffect"
	}
	return "beginEffect"
}

// EffectState is the recorded state of an effect.
type EffectState struct {
	Key    string
	State  string
	Result json.RawMessage
}

// Journal records the effect in the journal of its operation, and returns its state.
// unknown is true if an earlier attempt began the effect and its outcome is unknown; the
// operation is then parked for manual resolution.
func (x Effect) Journal(ctx context.Context, b effects.Book, p effects.Policy) (s EffectState, unknown bool, err error) {
	s = EffectState{Key: effects.Key(b.Operation(), x.Name, x.Ordinal), Result: x.Result}
	if len(x.Result) == 0 && !x.NotDone {
		e, err := b.Begin(ctx, x.Name, x.Ordinal, p, nil)
		s.State, s.Result = string(e.State), e.Result
		if e.State == effects.New {
			s.State = string(effects.Begun)
		}
		return s, err == nil && e.State == effects.Begun && p == effects.Hold, err
	}
	to := effects.Done
	if x.NotDone {
		to = effects.NotDone
	}
	state, result, err := b.End(ctx, x.Name, x.Ordinal, to, x.Result, p == effects.Probe)
	s.State = string(state)
	switch {
	case err != nil:
	case state == "":
		err = fault.New(fault.NotFound, "effect %q with ordinal %d was not begun: begin it first", x.Name, x.Ordinal)
	case x.NotDone && state == effects.Begun: // says nothing about the call of the earlier attempt
		unknown = true
	case state != to:
		err = fault.New(fault.Conflict, "effect %q with ordinal %d is already recorded as %s", x.Name, x.Ordinal, state)
	case !x.NotDone && !strictjson.Equal(OrNull(result), OrNull(x.Result)):
		s.Result = result
		err = fault.New(fault.Conflict, "effect %q with ordinal %d is already recorded with a different result", x.Name, x.Ordinal)
	}
	return s, unknown, err
}

// OrNull returns the document, or the JSON null if it is empty.
func OrNull(doc []byte) []byte {
	if len(doc) == 0 {
		return []byte("null")
	}
	return doc
}

// NoEffects is embedded by a source whose tasks journal nothing.
type NoEffects struct{}

// Effect returns [fault.Validation].
func (NoEffects) Effect(context.Context, Lease, Effect) (EffectState, error) {
	return EffectState{}, fault.New(fault.Validation, "this task cannot journal effects, because it is neither an action nor a run step: since the task may be repeated, pass its idempotencyKey to the other system")
}

// Probed parses the output of a probe: whether the effect happened, and its result.
func Probed(output json.RawMessage) (happened bool, result json.RawMessage, err error) {
	var found struct {
		Happened *bool           `json:"happened"`
		Result   json.RawMessage `json:"result"`
	}
	if len(output) == 0 || json.Unmarshal(output, &found) != nil || found.Happened == nil {
		return false, nil, fault.New(fault.Validation, `the output of a probe must be {"happened": true, "result": …} or {"happened": false}`).With("pointer", "/output")
	}
	return *found.Happened, found.Result, nil
}

// Known caches a value read from each workspace's declarations, until the revision of the workspace's registry changes.
type Known[T any] struct{ workspaces sync.Map }

type known[T any] struct {
	revision int64
	value    T
}

// For returns the cached value for a claim. It calls read if the cached value is of
// another revision.
func (k *Known[T]) For(c Claim, read func() (T, error)) (T, error) {
	if was, ok := k.workspaces.Load(c.Workspace); ok && was.(known[T]).revision == c.Revision {
		return was.(known[T]).value, nil
	}
	value, err := read()
	if err == nil {
		k.workspaces.Store(c.Workspace, known[T]{c.Revision, value})
	}
	return value, err
}
