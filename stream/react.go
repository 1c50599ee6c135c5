package stream

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Select chooses the events and streams of a reaction.
type Select struct {
	// Events are the names of the events to deliver; none means every event.
	Events []string
	// Pattern is an RE2 pattern for stream names; "" means every stream of the source.
	Pattern string
	// Source chooses the streams of the program (Events, the default) or the histories that Holdfast writes. A pattern
	// for histories begins with ^\$: `^\$entity/invoice/` matches the history of every invoice.
	Source Source
}

// Options are the options of a reaction. The zero value is ready to use.
type Options struct {
	// FromNow skips events that exist when the reaction is first registered.
	FromNow bool
	// Retry sets how many times an event is attempted before its stream is blocked for the
	// reaction, and the pauses between attempts; the default is 4 attempts. Multiplier must be 0, 1
	// or 2.
	Retry holdfast.RetryPolicy
	// MaxCrashes is the number of crashes on a stream after which it is blocked; 0 means
	// 5.
	MaxCrashes int
	// SkipOnError skips an event that has failed permanently, instead of blocking its stream. The
	// skip is recorded.
	SkipOnError bool
	// Lease is how long the lease on a stream lasts without renewal, from a millisecond to 24 hours; 0 means 10
	// seconds. A body may take longer, because its lease is renewed.
	Lease time.Duration
	// Timeout limits the time that a body may take for one event; 0 means 15 minutes. A body that exceeds it counts as a
	// crash (MaxCrashes), not as a failed attempt.
	Timeout time.Duration
	// Priority is a head start, in whole seconds: an event of this reaction is handled before events of other reactions,
	// unless those have waited that much longer.
	Priority time.Duration
	// Workspaces are the workspaces in which the reaction is registered; none means the default workspace. The reaction
	// is served in every workspace where it is registered.
	Workspaces []string
}

// MaxWorkers limits how many reaction events this node handles at the same time; 0 means the default of 16. If there are
// several workspaces, one workspace gets at most two thirds of it. Pass it to [holdfast.Open].
func MaxWorkers(n int) holdfast.Part { return maxWorkers(n) }

type maxWorkers int

// Register sets the limit on an engine.
func (n maxWorkers) Register(_ context.Context, e *holdfast.Engine) error {
	if n < 0 {
		return fault.New(fault.Validation, "MaxWorkers must not be negative, got %d", n)
	}
	engine.Of(e).Reactions().MaxConcurrency = int(n)
	return engine.Of(e).Once("stream.MaxWorkers")
}

// Delivery is one event, delivered to a reaction.
type Delivery struct {
	Event
	// Attempt is the number of this attempt, starting at 1.
	Attempt int
	// Operation identifies the handling of this event. It is the same for every attempt, and
	// changes after a reset.
	Operation string

	inner *reactions.Delivery
}

// WriteTx adds f to the transaction that acknowledges the event, so that the writes of f and the
// acknowledgment are committed together or not at all. f runs after the body has returned nil, and
// may run more than once.
func (d *Delivery) WriteTx(f func(context.Context, holdfast.Tx) error) {
	d.inner.Commit(store.TxFunc(f))
}

// Snooze returns an error for the function of a reaction to return. The event is then delivered again after the given
// time, and no failure is counted. A time that has passed, such as a negative time.Until, means 1ms. For more than 30 days,
// Snooze returns [holdfast.ErrValidation], which counts as a failure.
func Snooze(after time.Duration) error {
	if after > lease.LongestSnooze {
		return fault.New(fault.Validation, "a snooze must be at most %s, got %s", lease.LongestSnooze, after)
	}
	return &reactions.Snoozed{After: max(after, time.Millisecond)}
}

// React returns a reaction, which calls f for every event that sel selects, in the order of each stream. A reaction
// begins with the oldest stored event or, with o.FromNow, with the first event after its registration. Pass the
// reaction to [holdfast.Open], which registers it in the workspaces that o lists or, without a list, only in the
// default workspace. Any number of nodes serve it while [holdfast.Engine.Run] runs.
//
// An event is acknowledged once f returns nil for it. If f returns an error, the event is delivered again after a pause. If the
// node crashes before the acknowledgment is recorded, the event is delivered again too. Writes through [Delivery.WriteTx] are
// applied once. After the last attempt, or immediately if the error is [holdfast.NonRetryable], the stream is blocked for this
// reaction only (see [Unblock]) or, with o.SkipOnError, the event is skipped.
func React(name string, sel Select, f func(context.Context, *Delivery) error, o Options) holdfast.Part {
	return &reaction{name: name, sel: sel, body: f, o: o}
}

type reaction struct {
	name string
	sel  Select
	body func(context.Context, *Delivery) error
	o    Options
}

// Register registers the reaction.
func (r *reaction) Register(ctx context.Context, e *holdfast.Engine) error {
	h := &reactions.Handler{Definition: r.definition(), Timeout: r.o.Timeout, Body: r.handle, Workspaces: r.o.Workspaces}
	if len(h.Workspaces) == 0 {
		h.Workspaces = []string{store.DefaultWorkspace}
	}
	if err := errors.Join(r.check(), h.Check(), reactions.CheckName(h.Name)); err != nil {
		return err
	}
	if err := engine.Of(e).Reactions().Add(h); err != nil {
		return err
	}
	for _, space := range h.Workspaces {
		if _, err := reactions.Register(holdfast.InWorkspace(ctx, space), engine.Of(e), h.Definition); err != nil {
			return err
		}
	}
	return nil
}

func (r *reaction) handle(ctx context.Context, d *reactions.Delivery) error {
	return r.body(ctx, &Delivery{Event: public(d.Event), Attempt: d.Attempt, Operation: d.Lease.Operation(d.Event.Version), inner: d})
}

// check rejects options that a reaction cannot store.
func (r *reaction) check() error {
	p := r.o.Retry
	ofHistories := strings.HasPrefix(r.sel.Pattern, reactions.Own)
	switch {
	case r.body == nil:
		return fault.New(fault.Validation, "reaction %q has no function: pass one", r.name)
	case r.sel.Source != "" && r.sel.Source != Events && r.sel.Source != Histories:
		return fault.New(fault.Validation, "reaction %q: Source must be Events or Histories, got %q", r.name, r.sel.Source)
	case r.sel.Source == Histories && r.sel.Pattern != "" && !ofHistories:
		return fault.New(fault.Validation, `reaction %q: a pattern for histories must begin with ^\$, got %q`, r.name, r.sel.Pattern)
	case r.sel.Source != Histories && ofHistories:
		return fault.New(fault.Validation, "reaction %q: a pattern that begins with ^\\$ matches histories: set Source to Histories", r.name)
	case p.MaxAttempts < 0 || p.Backoff < 0 || p.MaxBackoff < 0:
		return fault.New(fault.Validation, "reaction %q: MaxAttempts (%d), Backoff (%s) and MaxBackoff (%s) must not be negative", r.name, p.MaxAttempts, p.Backoff, p.MaxBackoff)
	case p.MaxBackoff > 0 && p.MaxBackoff < p.Backoff:
		return fault.New(fault.Validation, "reaction %q: MaxBackoff (%s) must not be less than Backoff (%s)", r.name, p.MaxBackoff, p.Backoff)
	case p.Multiplier != 0 && p.Multiplier != 1 && p.Multiplier != 2:
		return fault.New(fault.Validation, "reaction %q: Multiplier must be 1 or 2, or 0 for the default, got %g", r.name, p.Multiplier)
	case r.o.Lease < 0 || r.o.Timeout < 0 || r.o.MaxCrashes < 0:
		return fault.New(fault.Validation, "reaction %q: Lease (%s), Timeout (%s) and MaxCrashes (%d) must not be negative", r.name, r.o.Lease, r.o.Timeout, r.o.MaxCrashes)
	case r.o.Priority%time.Second != 0:
		return fault.New(fault.Validation, "reaction %q: Priority must be a whole number of seconds, got %s", r.name, r.o.Priority)
	}
	return nil
}

// definition returns the reaction as it is stored, with defaults filled in.
func (r *reaction) definition() reactions.Definition {
	d := reactions.Definition{Name: r.name, Events: r.sel.Events, Streams: r.sel.Pattern, FromNow: r.o.FromNow, Options: reactions.DefaultOptions()}
	if r.sel.Source == Histories && d.Streams == "" {
		d.Streams = reactions.Own
	}
	p := r.o.Retry
	if p.MaxAttempts > 0 {
		d.MaxRetries = p.MaxAttempts - 1
	}
	d.MaxCrashes = cmp.Or(r.o.MaxCrashes, d.MaxCrashes)
	d.BlockOnError, d.Priority, d.Program = !r.o.SkipOnError, int(r.o.Priority/time.Second), true
	d.Lease = cmp.Or(r.o.Lease, d.Lease)
	if p.Multiplier == 1 {
		d.Backoff.Kind = "fixed"
	}
	d.Backoff.Base = cmp.Or(p.Backoff, d.Backoff.Base)
	if d.Backoff.Max = cmp.Or(p.MaxBackoff, max(d.Backoff.Max, d.Backoff.Base)); p.Backoff == 0 {
		d.Backoff.Base = min(d.Backoff.Base, d.Backoff.Max)
	}
	return d
}

// public converts an event to the type of this package.
func public(e events.Event) Event {
	return Event{Stream: e.Stream, Version: Version(e.Version), Name: e.Name, Data: e.Data, Subject: e.Subject,
		Correlation: e.Correlation, Causation: e.Causation, Actor: e.Actor, At: e.At}
}

// DeleteReaction deletes a reaction and all its positions from the context's workspace, and reports
// whether it existed: an unknown name is no error, as a repeated call has the same effect.
func DeleteReaction(ctx context.Context, e *holdfast.Engine, name string) (bool, error) {
	if err := reactions.CheckName(name); err != nil {
		return false, err
	}
	return reactions.Remove(ctx, engine.Of(e), name)
}
