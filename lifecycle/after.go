package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
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

const afterPrefix = "$after:"

// afterEffect is the reaction that an after-effect is.
func afterEffect(workflow, name string) reactions.Definition {
	return reactions.Definition{Name: afterPrefix + workflow + ":" + name, Events: []string{entities.After(name)},
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

// toldOf reads what an event of a lifecycle's history says of its step.
func toldOf(x events.Event) (told, error) {
	var t told
	if err := json.Unmarshal(x.Data, &t); err != nil {
		return t, fault.NonRetryable(err)
	}
	if t.Note != nil && t.Step == "" {
		t = *t.Note
	} else if t.Note != nil {
		t.After = t.Note.After
	}
	if string(t.Input) == "null" {
		t.Input = nil
	}
	return t, nil
}

// IsAfter says whether a reaction is an after-effect whose handler is elsewhere.
func IsAfter(x reactions.Info) bool {
	return strings.HasPrefix(x.Name, afterPrefix) && x.Options.Handler != ""
}

// WantsAfter says whether an event is one that an after-effect follows.
func WantsAfter(handler string, x events.Event) (bool, error) {
	t, err := toldOf(x)
	return t.After == handler, err
}

// workflowOf is the lifecycle of an after-effect whose handler is elsewhere.
func workflowOf(x reactions.Info) string {
	return strings.TrimSuffix(strings.TrimPrefix(x.Name, afterPrefix), ":"+x.Options.Handler)
}

// told returns what there is to do behind an event, if it is for the handler.
func (s *site) told(ctx context.Context, handler string, x events.Event) (*work, bool, error) {
	t, err := toldOf(x)
	if err != nil || t.After != handler { // it is another's, or nobody's
		return nil, false, err
	}
	e, err := s.ground.get(ctx, x.Stream[len(entities.Stream(s.config.Workflow, "")):])
	return &work{entity: e, step: t.Step, requester: t.Requester, operation: t.Operation, input: t.Input}, true, err
}

// after runs an after-effect, if it is that of the event's step and requester.
func (s *site) after(ctx context.Context, h *handler, d *reactions.Delivery) error {
	w, ours, err := s.told(ctx, h.name, d.Event)
	if err != nil || !ours {
		return err
	}
	w.attempt = d.Attempt
	if err := h.call(ctx, w); err != nil {
		return err
	}
	for _, f := range w.commits {
		d.Commit(func(ctx context.Context, tx *store.Tx) error { return f(ctx, tx) })
	}
	return nil
}
