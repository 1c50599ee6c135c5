package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
)

// HandlerOption says something about a handler.
type HandlerOption struct {
	set func(*lifecycleengine.Declared)
	err error // why it cannot be used
}

// handle declares a handler. A bad option is reported when the engine opens.
func (l *Lifecycle[E]) handle(kind, name string, f func(context.Context, *Act[E]) error, all []HandlerOption) *Lifecycle[E] {
	var d lifecycleengine.Declared
	for _, o := range all {
		o.set(&d)
		if o.err != nil {
			l.bad = errors.Join(l.bad, fmt.Errorf("handler %q: %w", name, o.err))
		}
	}
	l.inner.Handle(kind, name, run(f), d)
	return l
}

func safety(s lifecycleconfig.Safety) HandlerOption {
	return HandlerOption{set: func(d *lifecycleengine.Declared) { d.Safety = s }}
}

// delivery is an option of an after-effect.
func delivery(set func(*lifecycleconfig.AfterEffect)) HandlerOption {
	return HandlerOption{set: func(d *lifecycleengine.Declared) {
		if d.After == nil {
			d.After = new(lifecycleconfig.AfterEffect)
		}
		set(d.After)
	}}
}

// Idempotent says that a handler may run again.
func Idempotent() HandlerOption { return safety(lifecycleconfig.Idempotent) }

// Transactional says that a handler writes only through [Act.WriteTx].
func Transactional() HandlerOption { return safety(lifecycleconfig.Transactional) }

// Journaled says that a handler's side effects go through [holdfast.Effect].
func Journaled() HandlerOption { return safety(lifecycleconfig.Journaled) }

// Opaque says that a handler acts, and journals nothing: once it has started, only
// itself or a person can say what happened.
func Opaque() HandlerOption { return safety(lifecycleconfig.Opaque) }

// Timeout is how long a handler may take. It ends before the claim does.
func Timeout(d time.Duration) HandlerOption {
	return HandlerOption{set: func(h *lifecycleengine.Declared) { h.Timeout = d }}
}

// WithRetry says how often an after-effect is delivered; by default 1000 times, which takes two to four days. After that it
// is blocked.
func WithRetry(p holdfast.RetryPolicy) HandlerOption {
	o := delivery(func(a *lifecycleconfig.AfterEffect) {
		a.MaxAttempts, a.Backoff, a.MaxBackoff = p.MaxAttempts, p.Backoff, p.MaxBackoff
	})
	if p.Multiplier != 0 && p.Multiplier != 2 {
		o.err = fault.New(fault.Validation, "an after-effect's Multiplier must be 2, got %g", p.Multiplier)
	}
	return o
}

// SkipMissing has an after-effect skipped, rather than blocked, if the row of a table of the
// user's own is gone before it is delivered. That it was is recorded.
func SkipMissing() HandlerOption {
	return delivery(func(a *lifecycleconfig.AfterEffect) { a.OnMissing = lifecycleconfig.Skip })
}

// FireOption is an option of [Lifecycle.Fire] and [Lifecycle.Claim].
type FireOption struct {
	set func(*lifecycleengine.FireOptions)
}

func fireOptions(all []FireOption) (o lifecycleengine.FireOptions) {
	for _, x := range all {
		x.set(&o)
	}
	return o
}

// Input gives the body something, as JSON.
func Input(v any) FireOption {
	return FireOption{func(o *lifecycleengine.FireOptions) { o.SetInput(v) }}
}

// ExpectVersion refuses the step unless the entity is at this version.
func ExpectVersion(version int64) FireOption {
	return FireOption{func(o *lifecycleengine.FireOptions) { o.ExpectVersion = &version }}
}

// Lease is how long the claim is held without a renewal. The default is 30 seconds
// for a step that is fired, or the lifecycle's stuck_after if that is shorter; it is
// renewed as long as the body runs. For a claim taken by hand it is stuck_after. An
// operation that is resumed has the default again.
func Lease(d time.Duration) FireOption {
	return FireOption{func(o *lifecycleengine.FireOptions) { o.Lease = d }}
}

// By says who asks, in the history.
func By(actor string) FireOption {
	return FireOption{func(o *lifecycleengine.FireOptions) { o.Meta.Actor = actor }}
}

// Correlation ties the history to something else.
func Correlation(id string) FireOption {
	return FireOption{func(o *lifecycleengine.FireOptions) { o.Meta.Correlation = id }}
}

// OutputTo has the output of a handler elsewhere written to out, when the step is done.
func OutputTo(out *json.RawMessage) FireOption {
	return FireOption{func(o *lifecycleengine.FireOptions) { o.Output = out }}
}

// mapped is what f makes of each.
func mapped[A, B any](all []A, f func(A) B) []B {
	out := make([]B, len(all))
	for i, a := range all {
		out[i] = f(a)
	}
	return out
}
