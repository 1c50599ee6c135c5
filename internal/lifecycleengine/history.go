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
)

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

// settledNote is what the event of a settled step tells besides.
func settledNote(after string, output []byte) []byte {
	note := make(map[string]any)
	if after != "" {
		note["after"] = after
	}
	if len(output) > 0 {
		note["output"] = json.RawMessage(output)
	}
	if len(note) == 0 {
		return nil
	}
	return []byte(text(note))
}

func text(v any) string {
	list, _ := json.Marshal(v) // of plain values, it does not fail
	return string(list)
}

// stepFacts is what the event of a settled step says: at its top, or, for a step that
// was not claimed, in its note.
type stepFacts struct {
	After     string          `json:"after"`
	Step      string          `json:"step"`
	Requester string          `json:"requester"`
	Operation string          `json:"operation"`
	Input     json.RawMessage `json:"input"`
	Note      *stepFacts      `json:"note"`
}

// stepFactsOf reads what an event of a lifecycle's history says of its step.
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
	if !strings.HasPrefix(x.Name, settled("")) { // it was to be settled, and is parked
		t.After = ""
	}
	if string(t.Input) == "null" {
		t.Input = nil
	}
	return t, nil
}

// How an attempt of an operation ended, as its history tells.
const (
	EndedSuccess = "success"
	EndedFailed  = "failed"  // or it was released
	EndedInvalid = "invalid" // it was refused
	EndedQueued  = "queued"  // it was handed on
	EndedOpen    = "open"    // something was begun: it is resumed, or waits for a person
)

// AttemptEnd is how an attempt ended, and the status and version that the entity had then.
type AttemptEnd struct {
	How     string // "": it did not, or its holder did not end it
	Status  string
	Version int64
	Message string
}

// Ended returns how the holder of a claim ended an attempt, also when the entity has long
// gone on; where that is too long ago, it is not known any more.
func Ended(ctx context.Context, d store.Doer, t entities.Ticket) (AttemptEnd, error) {
	const longAgo = 2000 // events
	n := 0
	for x, err := range backward(ctx, d, entities.Stream(t.Lifecycle, t.ID)) {
		if n++; err != nil || n > longAgo {
			return AttemptEnd{}, err
		}
		var told struct {
			Deaths    *int   `json:"deaths"` // of one that the janitor has freed
			Message   string `json:"message"`
			Operation string `json:"operation"`
			Epoch     int64  `json:"epoch"`
			To        string `json:"to"`
			Outcome   string `json:"outcome"`
		}
		if json.Unmarshal(x.Data, &told) != nil || told.Operation != t.Operation || told.Epoch != t.Epoch {
			continue
		}
		how := ""
		switch {
		case told.Deaths != nil:
			return AttemptEnd{}, nil
		case strings.HasPrefix(x.Name, settled("")):
			how = EndedSuccess
		case x.Name == "released" && told.Outcome == "invalid":
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
		return AttemptEnd{how, told.To, x.Version, told.Message}, nil
	}
	return AttemptEnd{}, nil
}

// backward returns the events of a stream, from its end.
func backward(ctx context.Context, d store.Doer, stream string) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		for from, first := int64(-1), int64(-1); first != 0; from = first - 1 {
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

// OperationOutcome is what became of an operation.
type OperationOutcome struct {
	// Outcome is success; failed, which moved the entity to where failures go;
	// released, which put it back without effect; pending, while it is worked on
	// or is to be resumed; uncertain, until a person resolves it.
	Outcome string
	// Running says of a pending one that somebody works on it at this moment who
	// has not handed it on.
	Running bool
	Message string
	// Output is what a worker's action told.
	Output json.RawMessage
	// Invalid says of a released one that the step was refused.
	Invalid bool
}

func (s *bound) outcomeOf(ctx context.Context, id, operation string) (OperationOutcome, error) {
	now, err := s.store.get(ctx, id)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return OperationOutcome{}, err
	}
	if operation == "" {
		return OperationOutcome{}, fault.New(fault.NotFound, "an operation has an id")
	}
	if c := now.Claim; err == nil && c.Operation == operation && c.Phase != entities.Free {
		queue, _, err := entities.Queued(ctx, s.engine, s.config.Workflow, id)
		return OperationOutcome{Outcome: map[bool]string{true: "uncertain", false: "pending"}[c.Phase == entities.Uncertain], Running: c.Phase == entities.Held && queue == "",
			Message: c.Error}, err
	}
	return outcomeIn(ctx, s.engine, entities.Stream(s.config.Workflow, id), operation)
}

// ended is what the last event of an operation tells.
type ended struct {
	Operation string `json:"operation"`
	Outcome   string `json:"outcome"`
	Message   string `json:"message"`
	Effects   int    `json:"effects"`
	Note      *struct {
		Operation string          `json:"operation"`
		Output    json.RawMessage `json:"output"`
	} `json:"note"`
}

// outcomeIn looks for the end of an operation in the history, from its end.
func outcomeIn(ctx context.Context, d store.Doer, stream, operation string) (OperationOutcome, error) {
	for x, err := range backward(ctx, d, stream) {
		if err != nil {
			return OperationOutcome{}, err
		}
		var told ended
		if json.Unmarshal(x.Data, &told) != nil || told.Operation != operation && (told.Note == nil || told.Note.Operation != operation) {
			continue
		}
		f := OperationOutcome{Outcome: outcomeBy(x.Name), Message: told.Message, Invalid: told.Outcome == "invalid"}
		if f.Outcome == "released" && told.Effects > 0 {
			f.Outcome = "failed" // somebody has ended it so, knowing what had happened
		}
		if told.Note != nil {
			f.Output = told.Note.Output
		}
		return f, nil
	}
	return OperationOutcome{}, fault.New(fault.NotFound, "nothing is known of the operation %s any more", operation)
}

// outcomeBy is the outcome that the name of an operation's last event tells.
func outcomeBy(event string) string {
	switch {
	case strings.HasPrefix(event, settled("")):
		return "success"
	case strings.HasPrefix(event, "failed/"):
		return "failed"
	}
	return "released"
}
