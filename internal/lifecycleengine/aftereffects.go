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

// After-effects are reactions to the history of a lifecycle's entities, one for each
// handler, so that one that fails keeps no other from running. What they have to do
// is marked in the transaction that settles the step: it is not lost, and a step
// that is not settled has none. Which one follows is decided there too, and told by
// the event: a config that is changed later takes none away.

// addAfterEffects has the engine serve the after-effects.
func (s *bound) addAfterEffects() error {
	for name, h := range s.handlers {
		if h.Kind != "afterEffect" {
			continue
		}
		// A body that takes too long and comes back has failed, and is tried again as often as
		// others that fail. Only one that does not come back is a death, of which few are
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

// afterEffect is the reaction that an after-effect is.
func afterEffect(workflow, name string, a lifecycleconfig.AfterEffect) reactions.Definition {
	return reactions.Definition{Name: reactions.AfterPrefix + workflow + ":" + name, Events: []string{entities.After(name)},
		Streams: "^" + regexp.QuoteMeta(entities.Stream(workflow, "")), Options: optionsOf(a)}
}

// afterElsewhere is the reaction that an after-effect is whose handler is elsewhere.
func afterElsewhere(c *lifecycleconfig.Config, name string) reactions.Definition {
	def := afterEffect(c.Workflow, name, c.AfterEffects[name].Filled())
	def.Options.Handler = name
	return def
}

// optionsOf is how a reaction is served that is delivered like this.
func optionsOf(a lifecycleconfig.AfterEffect) reactions.Options {
	o := reactions.DefaultOptions()
	o.MaxRetries, o.Backoff = a.MaxAttempts-1, reactions.Backoff{Kind: "exponential", Base: a.Backoff, Max: a.MaxBackoff}
	return o
}

// delivery is how an after-effect is delivered: as the config says, or the program.
func (c *Lifecycle) delivery(name string) lifecycleconfig.AfterEffect {
	a := c.config.AfterEffects[name]
	if h := c.handlers[name]; h != nil && h.after != nil {
		a = *h.after
	}
	return a.Filled()
}

// checkDeliveries refuses what programs say of deliveries and cannot be meant.
func (c *Lifecycle) checkDeliveries() error {
	for name, h := range c.handlers {
		if h.after == nil {
			continue
		}
		_, twice := c.config.AfterEffects[name]
		switch a := h.after.Filled(); {
		case h.Kind != "afterEffect":
			return fault.New(fault.Validation, "the handler %q is no after-effect: Retry and SkipMissing are for after-effects", name)
		case twice:
			return fault.New(fault.Validation, "how the after-effect %q is delivered is said by the program and by the config (after_effects): keep one of them", name)
		case a.MaxAttempts < 1 || a.MaxAttempts > lifecycleconfig.MaxAttempts:
			return fault.New(fault.Validation, "MaxAttempts of the after-effect %q is %d: it is 1 to %d, or 0 for the default", name, a.MaxAttempts, lifecycleconfig.MaxAttempts)
		}
	}
	return nil
}

// workflowOf is the lifecycle of an after-effect whose handler is elsewhere.
func workflowOf(x reactions.Info) string {
	return strings.TrimSuffix(strings.TrimPrefix(x.Name, reactions.AfterPrefix), ":"+x.Options.Handler)
}

// stepFacts returns what there is to do behind an event, if it is for the handler.
func (s *bound) afterEffectWork(ctx context.Context, handler string, x events.Event) (*work, bool, error) {
	t, err := stepFactsOf(x)
	if err != nil || t.After != handler { // it is another's, or nobody's
		return nil, false, err
	}
	id := x.Stream[len(entities.Stream(s.config.Workflow, "")):]
	e, err := s.store.get(ctx, id)
	e.ID = id // also of one that is gone
	return &work{entity: e, step: t.Step, requester: t.Requester, operation: t.Operation, input: t.Input}, true, err
}

// after runs an after-effect, if it is that of the event's step and requester. After a
// reset it is another operation, as with any reaction.
func (s *bound) after(ctx context.Context, h *handler, d *reactions.Delivery) error {
	how := s.delivery(h.name)
	d.Options = new(optionsOf(how))
	w, ours, err := s.afterEffectWork(ctx, h.name, d.Event)
	if ours && fault.CodeOf(err) == fault.NotFound {
		d.Options.BlockOnError = how.OnMissing != lifecycleconfig.Skip
		return fault.NonRetryable(fault.New(fault.NotFound, "the %s %q was deleted before this was delivered: skip it, or put the row back and unblock it",
			s.config.Workflow, w.entity.ID))
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

// retriable is what a URL's error is to an after-effect. A 4xx is as often a proxy's word as
// the handler's, so it is tried again like any failure, unless the config says otherwise.
func retriable(err error, a lifecycleconfig.AfterEffect) error {
	block := a.Filled().OnRefusal == lifecycleconfig.Block
	switch code := fault.CodeOf(err); {
	case block && code == fault.ActionInvalid:
		return fault.NonRetryable(err)
	case !block && (code == fault.ActionFailed || code == fault.Forbidden):
		f, _ := errors.AsType[*fault.Error](err)
		return f // without what makes it final
	}
	return err
}
