package lifecycleengine

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// settled returns the name of the event of a settled step.
func settled(key string) string { return "settled/" + key }

// noteOf returns the note of the event of a step without a claim. after is the name of the step's after-effect, or "";
// was is the result of wasOf.
func noteOf(key, requester, operation, after string, input, was []byte) []byte {
	if input == nil {
		input = []byte("null")
	}
	note, _ := json.Marshal(struct { // cannot fail: plain values
		Step      string          `json:"step"`
		Requester string          `json:"requester"`
		Operation string          `json:"operation"`
		After     string          `json:"after,omitempty"`
		Input     json.RawMessage `json:"input"`
		Was       json.RawMessage `json:"was,omitempty"`
	}{key, requester, operation, after, input, was})
	return note
}

// wasOf returns a JSON patch that restores an entity's data from the new data that a step sets, or nil if the step
// sets none, or if the config records no changes. The data of a user's own row is not known.
func (l *Lifecycle) wasOf(old, data []byte) []byte {
	if data == nil || l.config.Table != nil || l.config.NoDataHistory {
		return nil
	}
	was, err := strictjson.Difference(data, old)
	if err != nil || string(was) == "[]" {
		return nil // the write checks the data
	}
	return was
}

// GetAt returns an entity as it was at a version. Its claim is not known. A version that is no longer retained, or
// not yet reached, is [holdfast.ErrNotFound].
func (l *Lifecycle) GetAt(ctx context.Context, d store.Doer, id string, version int64) (Entity, error) {
	if l.config.Table != nil {
		return Entity{}, fault.New(fault.Validation, "the data of entity %q is its row in the program's table, whose earlier versions Holdfast does not record: read the history instead", id)
	}
	if l.config.NoDataHistory {
		return Entity{}, fault.New(fault.Validation, "lifecycle %q does not record changes of data (data_history: false): read the history instead", l.Name())
	}
	now, err := entities.Get(ctx, d, l.Name(), id)
	if err != nil {
		return Entity{}, err
	}
	now.Claim = entities.Claim{Phase: entities.Free}
	expected := now.Version
	for x, err := range backward(ctx, d, entities.Stream(l.Name(), id), now.Version) {
		if err != nil {
			return Entity{}, err
		}
		var data struct {
			To   string
			Note struct{ Was json.RawMessage }
		}
		if x.Version != expected || json.Unmarshal(x.Data, &data) != nil {
			break // a gap: the rest is no longer retained
		}
		if x.Version == version {
			now.Status, now.Version, now.UpdatedAt = data.To, version, x.At
			return Public(now), nil
		}
		if len(data.Note.Was) > 0 {
			if now.Data, err = strictjson.Patched(now.Data, data.Note.Was); err != nil {
				return Entity{}, err
			}
		}
		expected--
	}
	return Entity{}, fault.New(fault.NotFound, "%s %q is at version %d, and version %d does not exist or is no longer retained", l.Name(), id, now.Version, version).With("lastVersion", now.Version)
}

// settledNote returns the note of the event of a settled step, or nil.
func settledNote(after string, output, was []byte) []byte {
	note := make(map[string]any)
	if was != nil {
		note["was"] = json.RawMessage(was)
	}
	if after != "" {
		note["after"] = after
	}
	if len(output) > 0 {
		note["output"] = json.RawMessage(output)
	}
	if len(note) == 0 {
		return nil
	}
	return []byte(jsonOf(note))
}

// jsonOf encodes a plain value as JSON text.
func jsonOf(v any) string {
	list, _ := json.Marshal(v) // cannot fail: plain values
	return string(list)
}

// stepFacts is the data of a settled step's event. It is at the top level or, for a step
// without a claim, in the note.
type stepFacts struct {
	After     string          `json:"after"` // the name of the after-effect, or ""
	Step      string          `json:"step"`
	Requester string          `json:"requester"`
	Operation string          `json:"operation"`
	Input     json.RawMessage `json:"input"`
	Note      *stepFacts      `json:"note"`
}

// stepFactsOf reads the data of a step from an event of an entity's history.
func stepFactsOf(x events.Event) (stepFacts, error) {
	var t stepFacts
	if err := json.Unmarshal(x.Data, &t); err != nil {
		return t, fault.NonRetryable(err)
	}
	if t.Note != nil && t.Step == "" {
		t = *t.Note
	} else if t.Note != nil {
		t.After = t.Note.After
	}
	if !strings.HasPrefix(x.Name, settled("")) { // interrupted or parked, with the note of the attempt to settle
		t.After = ""
	}
	if string(t.Input) == "null" {
		t.Input = nil
	}
	return t, nil
}

// How an attempt of an operation ended, according to its history.
const (
	EndedSuccess = "success"
	EndedFailed  = "failed"  // failed or released
	EndedInvalid = "invalid" // refused
	EndedQueued  = "queued"  // handed over to workers
	EndedOpen    = "open"    // an effect was begun: it is resumed or parked
)

// AttemptEnd is the end of an attempt, with the entity's status and version at that point.
type AttemptEnd struct {
	How     string // "" if it has not ended, or not by its holder
	Status  string
	Version int64
	Message string
}

// Ended returns how the holder of a claim ended an attempt, even if the entity has changed
// since then. It searches a limited number of events: for an older end, How is "".
func Ended(ctx context.Context, d store.Doer, t entities.Ticket) (AttemptEnd, error) {
	const longAgo = 2000 // events
	n := 0
	for x, err := range backward(ctx, d, entities.Stream(t.Lifecycle, t.ID), -1) {
		if n++; err != nil || n > longAgo {
			return AttemptEnd{}, err
		}
		var data struct {
			Deaths    *int   `json:"deaths"` // set if the janitor released the claim
			Message   string `json:"message"`
			Operation string `json:"operation"`
			Epoch     int64  `json:"epoch"`
			To        string `json:"to"`
			Outcome   string `json:"outcome"`
		}
		if json.Unmarshal(x.Data, &data) != nil || data.Operation != t.Operation || data.Epoch != t.Epoch {
			continue
		}
		how := ""
		switch {
		case data.Deaths != nil:
			return AttemptEnd{}, nil
		case strings.HasPrefix(x.Name, settled("")):
			how = EndedSuccess
		case x.Name == "released" && data.Outcome == "invalid":
			how = EndedInvalid
		case x.Name == "released" || strings.HasPrefix(x.Name, "failed/"):
			how = EndedFailed
		case x.Name == "queued":
			how = EndedQueued
		case x.Name == "interrupted" || x.Name == "parked":
			how = EndedOpen
		default:
			continue
		}
		return AttemptEnd{how, data.To, x.Version, data.Message}, nil
	}
	return AttemptEnd{}, nil
}

// backward iterates over the events of a stream, latest first, beginning with a version; -1 is the last.
func backward(ctx context.Context, d store.Doer, stream string, from int64) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		for first := int64(-1); first != 0; from = first - 1 {
			page, err := events.Read(ctx, d, events.ReadArgs{Stream: stream, From: from, Limit: 200, Backward: true})
			if err != nil {
				yield(events.Event{}, err)
				return
			}
			first = 0
			for _, x := range page {
				if first = x.Version; !yield(x, nil) {
					return
				}
			}
		}
	}
}

// OperationOutcome is the outcome of an operation.
type OperationOutcome struct {
	// Outcome is success; failed, if the entity moved to the step's failed status; released,
	// if the entity was reverted without effect; pending, while the operation is in flight or
	// due; or uncertain, until it is resolved manually.
	Outcome string
	// Running reports whether a pending operation is being executed now, by a holder that
	// has not handed it over.
	Running bool
	Message string
	// Output is the output of the action.
	Output json.RawMessage
	// Invalid reports whether a released operation was refused.
	Invalid bool
}

func (s *bound) outcomeOf(ctx context.Context, id, operation string) (OperationOutcome, error) {
	now, err := s.store.get(ctx, id)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return OperationOutcome{}, err
	}
	if operation == "" {
		return OperationOutcome{}, fault.New(fault.NotFound, "the operation id must not be empty: use the operation id in the entity's claim or history")
	}
	if c := now.Claim; err == nil && c.Operation == operation && c.Phase != entities.Free {
		queue, _, err := entities.Queued(ctx, s.engine, s.config.Workflow, id)
		return OperationOutcome{Outcome: map[bool]string{true: "uncertain", false: "pending"}[c.Phase == entities.Uncertain], Running: c.Phase == entities.Held && queue == "",
			Message: c.Error}, err
	}
	return outcomeIn(ctx, s.engine, entities.Stream(s.config.Workflow, id), operation)
}

// lastEvent is the data of an operation's last event.
type lastEvent struct {
	Operation string `json:"operation"`
	Outcome   string `json:"outcome"`
	Message   string `json:"message"`
	Effects   int    `json:"effects"` // how many happened or may have happened
	Note      *struct {
		Operation string          `json:"operation"`
		Output    json.RawMessage `json:"output"`
	} `json:"note"`
}

// outcomeIn searches the history for the end of an operation, latest event first.
func outcomeIn(ctx context.Context, d store.Doer, stream, operation string) (OperationOutcome, error) {
	for x, err := range backward(ctx, d, stream, -1) {
		if err != nil {
			return OperationOutcome{}, err
		}
		var data lastEvent
		if json.Unmarshal(x.Data, &data) != nil || data.Operation != operation && (data.Note == nil || data.Note.Operation != operation) {
			continue
		}
		f := OperationOutcome{Outcome: outcomeBy(x.Name), Message: data.Message, Invalid: data.Outcome == "invalid"}
		if f.Outcome == "released" && data.Effects > 0 {
			f.Outcome = "failed" // an operator ended it after an effect happened
		}
		if data.Note != nil {
			f.Output = data.Note.Output
		}
		return f, nil
	}
	return OperationOutcome{}, fault.New(fault.NotFound, "operation %q does not exist, or its history has been deleted", operation)
}

// outcomeBy returns the outcome for the name of an operation's last event.
func outcomeBy(event string) string {
	switch {
	case strings.HasPrefix(event, settled("")):
		return "success"
	case strings.HasPrefix(event, "failed/"):
		return "failed"
	}
	return "released"
}
