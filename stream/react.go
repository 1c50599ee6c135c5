package stream

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Select is what a reaction follows.
type Select struct {
	// Events are the names of the events that it wants; none is every one.
	Events []string
	// Streams is a pattern (RE2) of the streams; "" is every stream of the
	// program's own. A pattern that begins with ^\$ follows the histories of
	// what Holdfast keeps: `^\$entity/invoice/` is every invoice's.
	Streams string
}

// Options is how a reaction is served. The zero value is ready to use.
type Options struct {
	// FromNow leaves out what is there when the reaction is first registered.
	FromNow bool
	// Retry says how often an event is attempted before its stream is blocked for the reaction; by default 4 times.
	Retry holdfast.RetryPolicy
	// MaxCrashes is how many workers may die on a stream before it is blocked;
	// 0 is 5.
	MaxCrashes int
	// SkipOnError skips an event that has failed for good, rather than block
	// its stream. That it was skipped is recorded.
	SkipOnError bool
	// Lease is how long a stream is held without a renewal; 0 is 10 seconds.
	// A body may take longer: its hold is renewed.
	Lease time.Duration
	// Timeout is how long a body may take for one event; 0 is 15 minutes.
	Timeout time.Duration
	// Priority is how many seconds an event of this reaction goes before one
	// of others, which still come when they have waited that much longer.
	Priority int
	// Workspaces are those that the reaction is registered in; none is the
	// default one. It is served wherever it is registered.
	Workspaces []string
}

// Delivery is one event in the hands of a reaction.
type Delivery struct {
	Event
	// Attempt counts the tries of this event, this one included.
	Attempt int
	// Operation names the handling of this event: the same for every
	// attempt, another after a reset.
	Operation string

	inner *reactions.Delivery
}

// WriteTx adds what is written with the acknowledgement of the event, in one
// transaction: both are kept, or neither. f may run again, as in
// [holdfast.Engine.Update]; it runs after the body has returned nil.
func (d *Delivery) WriteTx(f func(context.Context, holdfast.Tx) error) {
	d.inner.Commit(store.TxFunc(f))
}

// Snooze is what a body returns to have its event delivered again after a while.
// It counts as no failure.
func Snooze(after time.Duration) error { return &reactions.Snoozed{After: after} }

// React makes a reaction: named code that is given every event that sel chooses,
// stream by stream in order, also those of before unless o says otherwise. Hand
// it to [holdfast.Open]; it is registered then, and served while
// [holdfast.Engine.Run] runs, by as many nodes as there are.
//
// An event is delivered until f returns nil for it: again after a failure, and
// again if the node dies before the acknowledgement is recorded. What f writes
// through [Delivery.WriteTx] applies once. An error is tried again after a pause;
// past the retries, or at once if it is [holdfast.NonRetryable], the stream is
// blocked for this reaction and nothing else ([Unblock]).
func React(name string, sel Select, f func(context.Context, *Delivery) error, o Options) holdfast.Part {
	return &reaction{name: name, sel: sel, body: f, o: o}
}

type reaction struct {
	name string
	sel  Select
	body func(context.Context, *Delivery) error
	o    Options
}

// Start registers the reaction.
func (r *reaction) Start(ctx context.Context, e *holdfast.Engine) error {
	h := &reactions.Handler{Definition: r.definition(), Timeout: r.o.Timeout, Body: r.handle}
	if err := errors.Join(r.checkRetry(), h.Check(), reactions.CheckName(h.Name)); err != nil {
		return err
	}
	if err := engine.Of(e).Reactions().Add(h); err != nil {
		return err
	}
	spaces := r.o.Workspaces
	if len(spaces) == 0 {
		spaces = []string{store.DefaultWorkspace}
	}
	for _, space := range spaces {
		if _, err := reactions.Register(holdfast.InWorkspace(ctx, space), engine.Of(e), h.Definition); err != nil {
			return err
		}
	}
	return nil
}

func (r *reaction) handle(ctx context.Context, d *reactions.Delivery) error {
	return r.body(ctx, &Delivery{Event: public(d.Event), Attempt: d.Attempt, Operation: d.Lease.Operation(d.Event.Version), inner: d})
}

// checkRetry refuses a policy that a reaction cannot store.
func (r *reaction) checkRetry() error {
	p := r.o.Retry
	switch {
	case p.MaxAttempts < 0 || p.Backoff < 0 || p.MaxBackoff < 0:
		return fault.New(fault.Validation, "reaction %q: MaxAttempts, Backoff and MaxBackoff must not be negative", r.name)
	case p.Multiplier != 0 && p.Multiplier != 1 && p.Multiplier != 2:
		return fault.New(fault.Validation, "reaction %q: Multiplier must be 1 or 2, got %g", r.name, p.Multiplier)
	}
	return nil
}

// definition returns the reaction as it is stored, with its defaults filled in.
func (r *reaction) definition() reactions.Definition {
	d := reactions.Definition{Name: r.name, Events: r.sel.Events, Streams: r.sel.Streams, FromNow: r.o.FromNow, Options: reactions.DefaultOptions()}
	p := r.o.Retry
	if p.MaxAttempts > 0 {
		d.MaxRetries = p.MaxAttempts - 1
	}
	d.MaxCrashes = cmp.Or(r.o.MaxCrashes, d.MaxCrashes)
	d.BlockOnError, d.Priority, d.Program = !r.o.SkipOnError, r.o.Priority, true
	d.Lease = cmp.Or(r.o.Lease, d.Lease)
	if p.Multiplier == 1 {
		d.Backoff.Kind = "fixed"
	}
	d.Backoff.Base = cmp.Or(p.Backoff, d.Backoff.Base)
	d.Backoff.Max = max(cmp.Or(p.MaxBackoff, d.Backoff.Max), d.Backoff.Base)
	return d
}

// public is an event as this package shows it.
func public(e events.Event) Event {
	return Event{Stream: e.Stream, Version: Version(e.Version), Name: e.Name, Data: e.Data, Subject: e.Subject,
		Correlation: e.Correlation, Causation: e.Causation, Actor: e.Actor, At: e.At}
}

// Remove removes a reaction from the context's workspace, with everything that is
// known of where it stands, and says whether there was one.
func Remove(ctx context.Context, e *holdfast.Engine, name string) (bool, error) {
	if err := reactions.CheckName(name); err != nil {
		return false, err
	}
	return reactions.Remove(ctx, engine.Of(e), name)
}
