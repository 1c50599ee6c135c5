// Package remote is work that other programs do: workers, which ask for tasks, and URLs, which
// are called. Each capability is a [Source] of it and keeps the rules of its own tasks; whoever
// gives them out, over HTTP or otherwise, knows no capability.
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

// Source gives out the tasks of one capability.
type Source interface {
	// Owns says whether a task's id is one of this source.
	Owns(id string) bool
	// Offer tells what the source has for a claim. It is called outside of a transaction.
	Offer(context.Context, Claim) (Offer, error)
	// Complete ends a task that is done. Under the epoch that ended it, it answers the same again.
	Complete(context.Context, Lease, Result) (Ended, error)
	// Fail ends a task that is not done, with the same promise.
	Fail(context.Context, Lease, Failure) (Ended, error)
	// Renew extends the lease of a task.
	Renew(context.Context, Lease, time.Duration) (Renewed, error)
	// Effect journals an effect of a task: it begins the effect, or says what became of it.
	Effect(context.Context, Lease, Effect) (EffectState, error)
}

// Claim is what a worker asks for.
type Claim struct {
	Workspace string
	Revision  int64 // of what the workspace has declared
	Worker    string
	Handlers  []string
	Lease     time.Duration
	Busy      map[string]bool // what an earlier try of the transaction could not lock; a source adds to it
}

// Offer is what a source has for a claim.
type Offer struct {
	Topics []string        // what is woken when there may be something
	Leased string          // the kind of leases that end first, where they have expired
	Due    []wake.WorkKind // what Take finds something of
	Take   func(ctx context.Context, d store.Doer, limit int) ([]Task, error)
}

// Task is one piece of work in the hands of another program.
type Task struct {
	ID      string
	Epoch   int64
	Handler string
	Kind    string // validation, action, probe, afterEffect, reaction, batchItem or runStep
	Attempt int
	Until   time.Time
	// Operation is the same for every attempt: the idempotency key for other systems.
	Operation string
	Input     json.RawMessage

	// Of a step of a lifecycle.
	StepKey, Requester string
	Lifecycle          string
	Entity             *entities.Entity

	// Of a reaction.
	Reaction string
	Event    *events.Event

	// Of an item of a batch.
	Batch, Item    string
	ArtifactPrefix string

	// Of a step of a run.
	Run, Step       string
	Visit           int64
	State, RunInput json.RawMessage
}

// size is how many bytes the documents of a task have.
func (t *Task) size() int {
	n := len(t.Input) + len(t.RunInput) + len(t.State)
	if t.Entity != nil {
		n += len(t.Entity.Data)
	}
	if t.Event != nil {
		n += len(t.Event.Data)
	}
	return n
}

// Lease names a task that was given out, and the epoch of its lease.
type Lease struct {
	ID    string
	Epoch int64
}

// Result is what a task has brought.
type Result struct {
	Output json.RawMessage
	State  json.RawMessage // a merge patch
}

// Stateless refuses a result with a state, which has no meaning for most tasks.
func (r Result) Stateless() error {
	if len(r.State) == 0 {
		return nil
	}
	return fault.New(fault.Validation, "only an action has a state").With("pointer", "/state")
}

// Failure says why a task is not done.
type Failure struct {
	Message string
	Final   bool // another attempt does not help
	Invalid bool // the task itself is refused
}

// Said refuses a failure without a message.
func (f Failure) Said() error {
	if f.Message != "" {
		return nil
	}
	return fault.New(fault.Validation, "message says what went wrong").With("pointer", "/message")
}

// Ended is what has become of a task.
type Ended struct {
	Status    string
	Version   int64
	NotBefore time.Time
}

// Renewed is a lease that was extended.
type Renewed struct {
	Until           time.Time
	CancelRequested bool
}

// Effect is a call of another system that a task journals. Without a result, and not NotDone, it
// is about to be made.
type Effect struct {
	Name    string
	Ordinal int
	Result  json.RawMessage
	NotDone bool
}

// EffectState is how an effect stands.
type EffectState struct {
	Key    string
	State  string
	Result json.RawMessage
}

// Journal writes the effect into the book of its operation, and returns how it stands. unknown says that an earlier attempt
// began it, and that nothing is known of that: its operation waits for a person.
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
		err = fault.New(fault.NotFound, "the effect %q, ordinal %d, was not begun", x.Name, x.Ordinal)
	case x.NotDone && state == effects.Begun: // that this call did not happen says nothing of the earlier one
		unknown = true
	case state != to:
		err = fault.New(fault.Conflict, "of the effect %q, ordinal %d, it is known already that it is %s", x.Name, x.Ordinal, state)
	case !x.NotDone && !strictjson.Equal(OrNull(result), OrNull(x.Result)):
		s.Result = result
		err = fault.New(fault.Conflict, "of the effect %q, ordinal %d, another result is known already", x.Name, x.Ordinal)
	}
	return s, unknown, err
}

// OrNull is a document, or null if there is none.
func OrNull(doc []byte) []byte {
	if len(doc) == 0 {
		return []byte("null")
	}
	return doc
}

// NoEffects is embedded by a source whose tasks journal nothing.
type NoEffects struct{}

// Effect refuses.
func (NoEffects) Effect(context.Context, Lease, Effect) (EffectState, error) {
	return EffectState{}, fault.New(fault.Validation, "effects are those of actions and of steps of runs: an event or an item is repeated, under the same idempotencyKey, until it is done")
}

// Probed reads the output of a probe: whether the body has acted, and with what result.
func Probed(output json.RawMessage) (happened bool, result json.RawMessage, err error) {
	var found struct {
		Happened *bool           `json:"happened"`
		Result   json.RawMessage `json:"result"`
	}
	if len(output) == 0 || json.Unmarshal(output, &found) != nil || found.Happened == nil {
		return false, nil, fault.New(fault.Validation, `the output of a probe says whether it has happened: {"happened": true, "result": …} or {"happened": false}`).With("pointer", "/output")
	}
	return *found.Happened, found.Result, nil
}

// Known keeps what was read of each workspace's declarations, until they change.
type Known[T any] struct{ workspaces sync.Map }

type known[T any] struct {
	revision int64
	value    T
}

// For returns what is known for a claim. It is read where that is not of the claim's revision.
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
