package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
)

// HandlerOption is an option of a handler. The safety ([Idempotent], [Transactional], [Journaled], [Opaque]) is that of an action;
// [WithRetry] and [SkipMissing] are for after-effects; [Timeout] is for all.
type HandlerOption struct {
	set  func(*lifecycleengine.Declared)
	once string // the function of an option that a handler may have once, or ""
	err  error  // set if the option is invalid
}

// handle declares a handler. An invalid option is reported when the engine opens.
func (l *Lifecycle[E]) handle(kind, name string, f func(context.Context, *Act[E]) error, all []HandlerOption) *Lifecycle[E] {
	var d lifecycleengine.Declared
	for i, o := range all {
		if o.once != "" && slices.ContainsFunc(all[:i], func(x HandlerOption) bool { return x.once == o.once }) {
			l.bad = errors.Join(l.bad, fault.New(fault.Validation, "handler %q has the option %s twice: pass it only once", name, o.once))
		}
		was := d.Safety
		if o.set(&d); was != "" && was != d.Safety {
			l.bad = errors.Join(l.bad, fault.New(fault.Validation, "handler %q is declared %s and %s: pass only one of them", name, was, d.Safety))
		}
		if o.err != nil {
			l.bad = errors.Join(l.bad, fmt.Errorf("handler %q: %w", name, o.err))
		}
	}
	if f == nil {
		l.bad = errors.Join(l.bad, fault.New(fault.Validation, "handler %q has no function: pass one", name))
	}
	l.inner.Handle(kind, name, run(f), d)
	return l
}

func safety(s lifecycleconfig.Safety) HandlerOption {
	return HandlerOption{set: func(d *lifecycleengine.Declared) { d.Safety = s }}
}

// delivery returns an option of an after-effect.
func delivery(set func(*lifecycleconfig.AfterEffect)) HandlerOption {
	return HandlerOption{set: func(d *lifecycleengine.Declared) {
		if d.After == nil {
			d.After = new(lifecycleconfig.AfterEffect)
		}
		set(d.After)
	}}
}

// Idempotent declares that it is safe to run an action again. After a crash the entity returns to its previous status, unless an
// effect was journaled, and the action runs again when the step is fired again.
func Idempotent() HandlerOption { return safety(lifecycleconfig.Idempotent) }

// Transactional declares that a handler writes only through [Act.WriteTx].
func Transactional() HandlerOption { return safety(lifecycleconfig.Transactional) }

// Journaled declares that a handler performs its side effects through [holdfast.Effect].
func Journaled() HandlerOption { return safety(lifecycleconfig.Journaled) }

// Opaque declares that a handler has side effects that it does not journal: once the handler has started, only the
// handler itself or a person can report what happened.
func Opaque() HandlerOption { return safety(lifecycleconfig.Opaque) }

// Timeout limits the duration of a handler. For a validation and an action, it must be shorter than the step's timeout, which
// is 15 minutes by default. For an after-effect, the default is 15 minutes.
func Timeout(d time.Duration) HandlerOption {
	return HandlerOption{once: "Timeout", set: func(h *lifecycleengine.Declared) { h.Timeout = d }}
}

// WithRetry sets how many times an after-effect is delivered before it is blocked, and the pauses between
// deliveries; the default is 1000 times, which takes two to four days. Crashes of its holders do not count as deliveries:
// the fifth one blocks the after-effect, whatever the policy. The policy's Multiplier must be 2 or 0; otherwise
// [holdfast.Open] returns an error.
func WithRetry(p holdfast.RetryPolicy) HandlerOption {
	o := delivery(func(a *lifecycleconfig.AfterEffect) {
		a.MaxAttempts, a.Backoff, a.MaxBackoff = p.MaxAttempts, p.Backoff, p.MaxBackoff
	})
	o.once = "WithRetry"
	if p.Multiplier != 0 && p.Multiplier != 2 {
		o.err = fault.New(fault.Validation, "an after-effect's Multiplier must be 2, or 0 for the default, got %g", p.Multiplier)
	}
	return o
}

// SkipMissing skips an after-effect instead of blocking it if its row in a user-owned table is deleted before the
// delivery. The skip is recorded.
func SkipMissing() HandlerOption {
	return delivery(func(a *lifecycleconfig.AfterEffect) { a.OnMissing = lifecycleconfig.Skip })
}

// FireOption is an option of [Lifecycle.Fire] and [Lifecycle.Claim].
type FireOption interface {
	fire(*lifecycleengine.FireOptions)
}

type fireOption func(*lifecycleengine.FireOptions)

func (f fireOption) fire(o *lifecycleengine.FireOptions) { f(o) }

func fireOptions(all []FireOption) (o lifecycleengine.FireOptions) {
	for _, x := range all {
		x.fire(&o)
	}
	return o
}

// ResolveOption is an option of [Resolve].
type ResolveOption interface {
	resolve(*resolveOptions)
}

type resolveOptions struct {
	ending Outcome
	actor  string
	bad    error
}

type resolveOption func(*resolveOptions)

func (f resolveOption) resolve(o *resolveOptions) { f(o) }

// EndWith ends the operation with an outcome, instead of resuming it. If an effect is still unknown, the error of
// [Resolve] is [holdfast.ErrConflict].
func EndWith(outcome Outcome) ResolveOption {
	return resolveOption(func(o *resolveOptions) {
		if o.ending = outcome; outcome == "" {
			o.bad = fault.New(fault.Validation, "EndWith has no outcome: specify one, or omit EndWith")
		}
	})
}

// ReleaseOption is an option of [Release].
type ReleaseOption interface {
	release(*lease.Intervention)
}

type releaseOption func(*lease.Intervention)

func (f releaseOption) release(r *lease.Intervention) { f(r) }

// ExpectEpoch makes [Release] fail with [holdfast.ErrConcurrency] unless the lease has this epoch. Without it, a repeated
// call may end the lease of the next holder. An epoch below 1, which no lease has, is [holdfast.ErrValidation].
func ExpectEpoch(epoch int64) ReleaseOption {
	return releaseOption(func(r *lease.Intervention) { r.Epoch = &epoch })
}

// ActorOption is the option [By] for [Lifecycle.Create] and [Withdraw]. It is also a [FireOption], a [ReleaseOption] and a
// [ResolveOption].
type ActorOption struct{ actor string }

// By sets the actor that the history records. For a manual claim, the actor is also its holder.
func By(actor string) ActorOption { return ActorOption{actor} }

func (a ActorOption) fire(o *lifecycleengine.FireOptions) { o.Meta.Actor = a.actor }
func (a ActorOption) resolve(o *resolveOptions)           { o.actor = a.actor }
func (a ActorOption) release(r *lease.Intervention)       { r.Actor = a.actor }

// Input sets the input of the body. It is stored as JSON.
func Input(v any) FireOption {
	return fireOption(func(o *lifecycleengine.FireOptions) { o.SetInput(v) })
}

// ExpectVersion makes the step fail with [holdfast.ErrConcurrency] unless the entity is at this
// version, which must not be negative.
func ExpectVersion(version int64) FireOption {
	return fireOption(func(o *lifecycleengine.FireOptions) { o.ExpectVersion = &version })
}

// Lease sets the duration of the lease. For a fired step the default is 30 seconds, or the lifecycle's stuck_after if
// that is shorter, and the lease is renewed while the body runs. For a manual claim the default is stuck_after. An
// operation that is resumed uses the default again. A lease lasts from a millisecond to 24 hours.
func Lease(d time.Duration) FireOption {
	return fireOption(func(o *lifecycleengine.FireOptions) { o.Lease = d })
}

// Correlation sets a correlation id that the history records.
func Correlation(id string) FireOption {
	return fireOption(func(o *lifecycleengine.FireOptions) { o.Meta.Correlation = id })
}

// mapped returns f of each element.
func mapped[A, B any](all []A, f func(A) B) []B {
	out := make([]B, len(all))
	for i, a := range all {
		out[i] = f(a)
	}
	return out
}
