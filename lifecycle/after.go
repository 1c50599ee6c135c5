package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// After-effects are reactions to the history of a lifecycle's entities, one for each
// handler, so that one that fails keeps no other from running. What they have to do
// is marked in the transaction that settles the step: it is not lost, and a step
// that is not settled has none. Which one follows is decided there too, and told by
// the event: a config that is changed later takes none away.

// addAfterEffects has the engine serve the after-effects.
func (s *site) addAfterEffects() error {
	for name, h := range s.handlers {
		if h.Kind != "afterEffect" {
			continue
		}
		r := &reactions.Handler{Timeout: h.Timeout, Every: true, Body: func(ctx context.Context, d *reactions.Delivery) error { return s.after(ctx, h, d) },
			Definition: afterEffect(s.config.Workflow, name)}
		if err := errors.Join(r.Check(), s.engine.Reactions().Add(r)); err != nil {
			return err
		}
		s.afters = append(s.afters, r.Definition)
	}
	return nil
}

// afterEffect is the reaction that an after-effect is.
func afterEffect(workflow, name string) reactions.Definition {
	return reactions.Definition{Name: "$after:" + workflow + ":" + name, Events: []string{entities.After(name)},
		Streams: "^" + regexp.QuoteMeta(entities.Stream(workflow, "")), Options: reactions.DefaultOptions()}
}

// registerAfterEffects registers the after-effects in the context's workspace.
func (s *site) registerAfterEffects(ctx context.Context) error {
	for _, d := range s.afters {
		if _, err := reactions.Register(ctx, s.engine, d); err != nil {
			return err
		}
	}
	return nil
}

// told is what the event of a settled step says: at its top, or, for a step that
// was not claimed, in its note.
type told struct {
	After     string          `json:"after"`
	Step      string          `json:"step"`
	Requester string          `json:"requester"`
	Operation string          `json:"operation"`
	Input     json.RawMessage `json:"input"`
	Note      *told           `json:"note"`
}

// after runs an after-effect, if it is that of the event's step and requester.
func (s *site) after(ctx context.Context, h *handler, d *reactions.Delivery) error {
	var t told
	if err := json.Unmarshal(d.Event.Data, &t); err != nil {
		return fault.NonRetryable(err)
	}
	if t.Note != nil && t.Step == "" {
		t = *t.Note
	} else if t.Note != nil {
		t.After = t.Note.After
	}
	if t.After != h.name { // it is another's, or nobody's
		return nil
	}
	id := d.Event.Stream[len(entities.Stream(s.config.Workflow, "")):]
	e, err := s.ground.get(ctx, id)
	if err != nil {
		return err
	}
	w := &work{entity: e, step: t.Step, requester: t.Requester, operation: t.Operation, attempt: d.Attempt}
	if string(t.Input) != "null" {
		w.input = t.Input
	}
	if err := h.call(ctx, w); err != nil {
		return err
	}
	for _, f := range w.commits {
		d.Commit(func(ctx context.Context, tx *store.Tx) error { return f(ctx, tx) })
	}
	return nil
}
