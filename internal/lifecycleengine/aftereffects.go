package lifecycleengine

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// After-effects are reactions to the history of a lifecycle's entities. Each handler has its
// own reaction, so that a failing handler does not block the others. The transaction that
// settles the step also records the due after-effect: it cannot be lost, and a step that is not
// settled has none. This transaction also selects the after-effect and stores its name in the
// event, so that a later config change does not remove it.

// addAfterEffects registers the after-effects with the engine's reactions.
func (s *bound) addAfterEffects() error {
	for name, h := range s.handlers {
		if h.Kind != "afterEffect" {
			continue
		}
		// A body that returns after its timeout has failed, and is retried as often as other
		// failures. Only a body that does not return counts as a crash, and few crashes are
		// allowed.
		timeout := cmp.Or(h.Timeout, lease.Timeout)
		r := &reactions.Handler{Timeout: timeout + lease.DefaultDuration, Every: true, Definition: afterEffect(s.config.Workflow, name, s.delivery(name)),
			Body: func(ctx context.Context, d *reactions.Delivery) error {
				ctx, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				return s.after(ctx, h, d)
			}}
		if err := errors.Join(r.Check(), s.engine.Reactions().Add(r)); err != nil {
			return err
		}
		s.afters = append(s.afters, r.Definition)
	}
	return nil
}

// afterEffect returns the reaction that delivers an after-effect. Its event name only selects the due notices of settled
// steps; the body gets every event (Every) and finds in the event's data whether it is for the handler.
func afterEffect(workflow, name string, a lifecycleconfig.AfterEffect) reactions.Definition {
	return reactions.Definition{Name: reactions.AfterPrefix + workflow + ":" + name, Events: []string{entities.After(name)},
		Streams: "^" + regexp.QuoteMeta(entities.Stream(workflow, "")), Options: optionsOf(a)}
}

// remoteAfterEffect returns the reaction that delivers an after-effect to a remote handler.
func remoteAfterEffect(c *lifecycleconfig.Config, name string) reactions.Definition {
	def := afterEffect(c.Workflow, name, c.AfterEffects[name].Filled())
	def.Options.Handler = name
	return def
}

// optionsOf returns the reaction options for the delivery of an after-effect.
func optionsOf(a lifecycleconfig.AfterEffect) reactions.Options {
	o := reactions.DefaultOptions()
	o.MaxRetries, o.Backoff = a.MaxAttempts-1, reactions.Backoff{Kind: "exponential", Base: a.Backoff, Max: a.MaxBackoff}
	return o
}

// delivery returns the delivery options of an after-effect: the program's if it sets them, else the config's.
func (c *Lifecycle) delivery(name string) lifecycleconfig.AfterEffect {
	a := c.config.AfterEffects[name]
	if h := c.handlers[name]; h != nil && h.after != nil {
		a = *h.after
	}
	return a.Filled()
}

// checkDeliveries validates the delivery options that the program sets.
func (c *Lifecycle) checkDeliveries() error {
	for name, h := range c.handlers {
		if h.Kind != "action" && (h.Safety == lifecycleconfig.Journaled || h.Safety == lifecycleconfig.Opaque) {
			return fault.New(fault.Validation, "handler %q is not an action, so it can be called again: remove Journaled and Opaque, which apply only to actions", name)
		}
		if h.after == nil {
			continue
		}
		_, twice := c.config.AfterEffects[name]
		switch a := h.after.Filled(); {
		case h.Kind != "afterEffect":
			return fault.New(fault.Validation, "handler %q is not an after-effect: remove WithRetry and SkipMissing, which apply only to after-effects", name)
		case twice:
			return fault.New(fault.Validation, "the delivery options of after-effect %q are set in both the program and the config (after_effects): set them in only one place", name)
		case a.MaxAttempts < 1 || a.MaxAttempts > lifecycleconfig.MaxAttempts:
			return fault.New(fault.Validation, "MaxAttempts for after-effect %q must be between 1 and %[3]d, or 0 for the default, got %[2]d", name, a.MaxAttempts, lifecycleconfig.MaxAttempts)
		}
	}
	return nil
}

// workflowOf returns the lifecycle of an after-effect with a remote handler.
func workflowOf(x reactions.Info) string {
	return strings.TrimSuffix(strings.TrimPrefix(x.Name, reactions.AfterPrefix), ":"+x.Options.Handler)
}

// afterEffectWork returns the work of a handler for an event, if the event is for the handler.
func (s *bound) afterEffectWork(ctx context.Context, handler string, x events.Event) (*work, bool, error) {
	t, err := stepFactsOf(x)
	if err != nil || t.After != handler { // for another handler, or for none
		return nil, false, err
	}
	id := x.Stream[len(entities.Stream(s.config.Workflow, "")):]
	e, err := s.store.get(ctx, id)
	e.ID = id // also for a deleted entity
	return &work{entity: e, step: t.Step, requester: t.Requester, operation: t.Operation, input: t.Input}, true, err
}

// after runs an after-effect if the event is for its handler. After a reset of the reaction it
// has a new operation, as with any reaction.
func (s *bound) after(ctx context.Context, h *handler, d *reactions.Delivery) error {
	how := s.delivery(h.name)
	d.Options = new(optionsOf(how))
	w, ours, err := s.afterEffectWork(ctx, h.name, d.Event)
	if ours && fault.CodeOf(err) == fault.NotFound {
		d.Options.BlockOnError = how.OnMissing != lifecycleconfig.Skip
		return fault.NonRetryable(s.deleted(w))
	}
	if err != nil || !ours {
		return err
	}
	w.attempt = d.Attempt
	if n := d.Lease.Generation; n > 0 {
		w.operation += "/" + strconv.FormatInt(n, 10)
	}
	if err := h.call(ctx, w); err != nil {
		return err
	}
	for _, f := range w.commits {
		d.Commit(func(ctx context.Context, tx *store.Tx) error { return f(ctx, tx) })
	}
	return nil
}

// deleted is the error of an after-effect whose entity is gone.
func (s *bound) deleted(w *work) error {
	return fault.New(fault.NotFound, "%s %q was deleted before the after-effect was delivered: skip the event, or restore the row and unblock the reaction",
		s.config.Workflow, w.entity.ID)
}

// retriable maps the error of a URL to that of an after-effect. A 4xx comes from a proxy as often as
// from the handler, so it is retried like any failure unless the config says otherwise.
func retriable(err error, a lifecycleconfig.AfterEffect) error {
	block := a.Filled().OnRefusal == lifecycleconfig.Block
	switch code := fault.CodeOf(err); {
	case block && code == fault.ActionInvalid:
		return fault.NonRetryable(err)
	case !block && (code == fault.ActionFailed || code == fault.Forbidden):
		f, _ := errors.AsType[*fault.Error](err)
		return f // without the wrapper that makes it non-retryable
	}
	return err
}
