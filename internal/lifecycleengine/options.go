package lifecycleengine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
	"github.com/holdfast-go/holdfast/internal/store"
)

// HandlerOption says something about a handler.
type HandlerOption func(*handler)

// Idempotent says that a handler may run again.
func Idempotent() HandlerOption { return safety(lifecycles.Idempotent) }

// Transactional says that a handler writes only through [Act.Commit].
func Transactional() HandlerOption { return safety(lifecycles.Transactional) }

// Journaled says that a handler's side effects go through [holdfast.Effect].
func Journaled() HandlerOption { return safety(lifecycles.Journaled) }

// Opaque says that a handler acts, and journals nothing: once it has started, only
// itself or a person can say what happened.
func Opaque() HandlerOption { return safety(lifecycles.Opaque) }

func safety(s lifecycles.Safety) HandlerOption { return func(h *handler) { h.Safety = s } }

// Timeout is how long a handler may take. It ends before the claim does.
func Timeout(d time.Duration) HandlerOption { return func(h *handler) { h.Timeout = d } }

// RetryPolicy is how often an after-effect that fails is delivered again. The zero value is
// the default, which tries for two to four days.
type RetryPolicy struct {
	// MaxAttempts is how many deliveries may fail, the first included, before the
	// after-effect is blocked; 0 is 1000.
	MaxAttempts int
	// Backoff is the pause after the first failure, which doubles up to MaxBackoff; 0 is a
	// second, and five minutes. Each pause is half to all of that.
	Backoff, MaxBackoff time.Duration
}

// Retry sets how often an after-effect is delivered that fails. An error that is
// [holdfast.NonRetryable] blocks it at once.
func Retry(p RetryPolicy) HandlerOption {
	return func(h *handler) {
		a := h.delivered()
		a.MaxAttempts, a.Backoff, a.MaxBackoff = p.MaxAttempts, p.Backoff, p.MaxBackoff
	}
}

// SkipMissing has an after-effect skipped, rather than blocked, if the row of a table of the
// user's own is gone before it is delivered. That it was is recorded.
func SkipMissing() HandlerOption {
	return func(h *handler) { h.delivered().OnMissing = lifecycles.Skip }
}

// delivered is how the handler is delivered, to be changed.
func (h *handler) delivered() *lifecycles.AfterEffect {
	if h.after == nil {
		h.after = new(lifecycles.AfterEffect)
	}
	return h.after
}

// asked is what a caller asks for.
type asked struct {
	output *json.RawMessage
	input  []byte
	bad    error
	want   *int64
	lease  time.Duration
	meta   events.Meta
	// begin is written in the transaction that begins the step.
	begin func(ctx context.Context, tx *store.Tx, operation string) error
}

// FireOption is an option of [Lifecycle.Fire] and [Lifecycle.Claim].
type FireOption func(*asked)

// Input gives the body something, as JSON.
func Input(v any) FireOption {
	return func(a *asked) { a.input, a.bad = json.Marshal(v) }
}

// Want refuses the step unless the entity is at this version.
func Want(version int64) FireOption { return func(a *asked) { a.want = &version } }

// Lease is how long the claim is held without a renewal. The default is 30 seconds
// for a step that is fired, or the lifecycle's stuck_after if that is shorter; it is
// renewed as long as the body runs. For a claim taken by hand it is stuck_after. An
// operation that is resumed has the default again.
func Lease(d time.Duration) FireOption { return func(a *asked) { a.lease = d } }

// By says who asks, in the history.
func By(actor string) FireOption { return func(a *asked) { a.meta.Actor = actor } }

// Correlation ties the history to something else.
func Correlation(id string) FireOption { return func(a *asked) { a.meta.Correlation = id } }

// OutputTo has the output of a handler elsewhere written to out, when the step is done.
func OutputTo(out *json.RawMessage) FireOption {
	return func(a *asked) { a.output = out }
}

// Beginning adds what is written in the transaction that begins the step: the one
// that takes the claim or, for a step without one, that moves the entity. What it
// marks is there exactly if the operation is; its error keeps the step from being
// begun. f may be run again.
func Beginning(f func(ctx context.Context, tx *store.Tx, operation string) error) FireOption {
	return func(a *asked) { a.begin = f }
}
