// Package shapes converts values of the engine to the types of package wire.
package shapes

import (
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/wire"
)

// At converts a time. The zero time becomes nil.
func At(t time.Time) *wire.Time {
	if t.IsZero() {
		return nil
	}
	return &wire.Time{Time: t}
}

// Entity converts an entity of a lifecycle.
func Entity(name string, e lifecycleengine.Entity) wire.Entity {
	w := wire.Entity{Lifecycle: name, ID: e.ID, Status: e.Status, Version: e.Version, Data: e.Data, CreatedAt: At(e.CreatedAt), UpdatedAt: At(e.UpdatedAt)}
	if len(w.Data) == 0 {
		w.Data = json.RawMessage("{}")
	}
	if o := e.Claimed; o != nil {
		claim := Claim(*o)
		w.Claim = &claim
	}
	return w
}

// Claim converts the claim of an operation.
func Claim(o lifecycleengine.Operation) wire.Claim {
	return wire.Claim{StepKey: o.Step, Requester: o.Requester, Holder: o.Holder, Epoch: o.Epoch, Until: At(o.Until), Uncertain: o.Phase == "uncertain",
		Operation: o.ID, Since: At(o.Since)}
}

// Event converts an event. Position is not set, because the event may not have one yet.
func Event(e events.Event) wire.Event {
	return wire.Event{Stream: e.Stream, Version: e.Version, Name: e.Name, Data: e.Data, Correlation: e.Correlation, Causation: e.Causation, Actor: e.Actor, At: At(e.At)}
}

// Task converts a task for its worker.
func Task(t remote.Task) wire.Task {
	w := wire.Task{ID: t.ID, Epoch: t.Epoch, Handler: t.Handler, Kind: t.Kind, Input: remote.OrNull(t.Input), Attempt: t.Attempt, Until: At(t.Until), IdempotencyKey: t.Operation,
		Context: wire.TaskContext{StepKey: t.StepKey, Requester: t.Requester, Reaction: t.Reaction, Batch: t.Batch, Item: t.Item, ArtifactPrefix: t.ArtifactPrefix, ItemStatus: t.ItemStatus, Output: t.Output,
			Run: t.Run, Step: t.Step, Visit: t.Visit}}
	if t.Entity != nil {
		w.Context.Entity = new(Entity(t.Lifecycle, lifecycleengine.Public(*t.Entity)))
	}
	if t.Event != nil {
		w.Context.Event = new(Event(*t.Event))
	}
	if t.Run != "" {
		w.Context.State, w.Context.Input = remote.OrNull(t.State), remote.OrNull(t.RunInput)
	}
	return w
}
