package lifecycle

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// After-effects are reactions to the history of a lifecycle's entities, one for each
// handler, so that one that fails keeps no other from running. What they have to do
// is marked in the transaction that settles the step: it is not lost, and a step
// that is not settled has none.

// startAfterEffects registers the after-effects.
func (s *site) startAfterEffects(ctx context.Context) error {
	for name, h := range s.handlers {
		if h.Kind != "afterEffect" {
			continue
		}
		keys := s.keysWith(name)
		if len(keys) == 0 {
			continue
		}
		r := &reactions.Handler{Timeout: h.Timeout, Body: func(ctx context.Context, d *reactions.Delivery) error { return s.after(ctx, h, d) },
			Definition: reactions.Definition{Name: "$after/" + s.config.Workflow + "/" + name, Events: keys,
				Streams: "^" + regexp.QuoteMeta(entities.Stream(s.config.Workflow, "")), Options: reactions.DefaultOptions()}}
		if err := s.engine.Reactions().Add(r); err != nil {
			return err
		}
		for _, space := range s.spaces() {
			if _, err := reactions.Register(holdfast.InWorkspace(ctx, space), s.engine, r.Definition); err != nil {
				return err
			}
		}
	}
	return nil
}

// keysWith returns the events of the steps that have an after-effect for somebody.
func (s *site) keysWith(handler string) (names []string) {
	for i := range s.config.Steps {
		step := &s.config.Steps[i]
		has := step.AfterEffect.All != nil && *step.AfterEffect.All == handler
		for _, name := range step.AfterEffect.By {
			has = has || name == handler
		}
		if has && !slices.Contains(names, settled(step.Key)) {
			names = append(names, settled(step.Key))
		}
	}
	slices.Sort(names)
	return names
}

// told is what the event of a settled step says: at its top, or, for a step that
// was not claimed, in its note.
type told struct {
	From      string          `json:"from"`
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
	if t.Step == "" && t.Note != nil {
		from := t.From
		t = *t.Note
		t.From = from
	}
	if !s.follows(t, h.name) {
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

// follows says whether a step, as a requester did it, is followed by a handler. A
// claimed step left the status that it would have gone back to, so its event does
// not tell the one it started at: any step of the key will do that has the handler.
func (s *site) follows(t told, handler string) bool {
	steps, err := s.offered(t.Step, t.Requester)
	if err != nil {
		return false
	}
	for _, step := range steps {
		name, _ := step.AfterEffect.For(t.Requester)
		c, claimed := step.Claim.For(t.Requester)
		here := slices.Contains(step.Status, t.From) || (claimed && c.Into == t.From)
		if name == handler && here {
			return true
		}
	}
	return false
}
