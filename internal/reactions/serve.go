package reactions

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/store"
)

// serve handles the events of a lease, one after the other.
func (w *Worker) serve(ctx context.Context, l *Lease) {
	h := w.handler(l)
	body, lose := context.WithCancelCause(store.InWorkspace(ctx, l.Workspace))
	defer lose(context.Canceled)
	defer w.unstuck(l)
	w.mu.Lock()
	g := w.held[l]
	if g != nil {
		g.lost = lose
	}
	w.mu.Unlock()
	if g == nil { // it was lost while it was queued
		return
	}
	done, failures, finished := l.Watermark, l.Failures, false
	careful := l.Group > 0 || l.Failures > 0
	for i := range l.Events {
		if body.Err() != nil {
			w.abandon(l, done, context.Cause(body))
			return
		}
		d := &Delivery{Event: l.Events[i], Lease: l, Attempt: 1}
		if i == 0 {
			d.Attempt = l.Attempt()
		}
		w.begin(l)
		err, committing := w.run(body, h, d), false
		if err == nil && (len(d.commits) > 0 || careful) {
			committing = true
			finished = i == len(l.Events)-1 && !l.Full
			err = w.commit(body, l, d, finished)
		}
		if err != nil {
			w.failed(body, h, l, d, done, failures, err, committing)
			return
		}
		done, failures = d.Event.Version, 0
	}
	if finished { // the last event's commit ended the lease
		w.untrack(l)
		w.trace("acked", l, l.Handled(), nil)
		return
	}
	w.end(l, End{Lease: l, Done: l.Handled()})
}

// unstuck records that a body has returned.
func (w *Worker) unstuck(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.stuck, l.stream())
}

// begin records that the body starts with an event.
func (w *Worker) begin(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.held[l]; g != nil {
		g.begun, g.since = true, clock.Now()
	}
}

// run calls the body with the handler's timeout.
func (w *Worker) run(ctx context.Context, h *Handler, d *Delivery) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.Timeout, lease.ErrTimeout)
	defer cancel()
	defer w.recoverPanic(d.Lease, d, &err)
	defer meter.Of(w.Engine).Kind(Kind(h.Name)).Begin()()
	err = h.Body(ctx, d)
	if err != nil && errors.Is(context.Cause(ctx), lease.ErrTimeout) {
		err = lease.ErrTimeout
	}
	return err
}

// recoverPanic turns a panic into an error.
func (w *Worker) recoverPanic(l *Lease, d *Delivery, err *error) {
	if p := recover(); p != nil {
		w.Log.Error("reaction panicked", "workspace", l.Workspace, "reaction", l.Reaction, "stream", l.Stream, "epoch", l.Epoch, "version", d.Event.Version,
			"panic", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("panic: %v", p)
	}
}

// commit acknowledges one event and runs its body's writes in one transaction. It
// keeps the lease unless the event is the last.
func (w *Worker) commit(ctx context.Context, l *Lease, d *Delivery, last bool) (err error) {
	defer w.recoverPanic(l, d, &err)
	e := End{Lease: l, Done: d.Event.Version, Retain: !last, Extend: w.handler(l).Lease, Now: len(d.commits) > 0}
	if last {
		e.Done = l.Handled()
	}
	if len(d.commits) == 0 {
		w.inBody(l, false)
		_, err := AckOne(ctx, w.Engine, e)
		return err
	}
	return w.Engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		w.inBody(l, true)
		if err := d.Apply(ctx, tx); err != nil {
			return err
		}
		w.inBody(l, false)
		_, err := AckOne(ctx, tx, e)
		return err
	})
}

// inBody records whether code of the handler runs. Only then does a lost lease leave a body that may hang. If the lease was
// ended by a commit whose response has not arrived, the next event can be served here at once.
func (w *Worker) inBody(l *Lease, yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.held[l]; g != nil {
		g.begun = yes
	}
}

// failed ends a lease whose event failed. An error of the engine, in the body or in the commit, is no failure of the event, but
// one that the body has from elsewhere is, whatever its code.
func (w *Worker) failed(ctx context.Context, h *Handler, l *Lease, d *Delivery, done int64, failures int, err error, committing bool) {
	var later *Snoozed
	unavailable := fault.CodeOf(err) == fault.Unavailable || fault.CodeOf(err) == fault.OutcomeUnknown
	switch cause := context.Cause(ctx); {
	case cause != nil:
		w.abandon(l, done, cause)
	case committing && fault.CodeOf(err) == fault.LeaseLost || errors.Is(err, lease.ErrLost):
		w.abandon(l, done, lease.ErrLost)
	case errors.Is(err, lease.ErrTimeout):
		w.timedOut(l, done)
	case unavailable && !fault.IsNonRetryable(err) && (committing || fault.IsRetryable(err)):
		w.Log.Warn("database unavailable; retrying the event", "workspace", l.Workspace, "reaction", h.Name, "stream", l.Stream, "epoch", l.Epoch, "error", err)
		w.end(l, End{Lease: l, Done: done, Unfinished: true, Delay: h.Backoff.Pause(1)})
	case errors.As(err, &later):
		w.trace("deferred", l, done, nil)
		w.end(l, End{Lease: l, Done: done, Unfinished: true, Delay: later.After})
	default:
		w.count(h, l, d, done, failures+1, err)
	}
}

// timedOut lets the lease of a timed-out body expire: a timeout counts as a
// crash, not as a failure. The versions handled before stay acknowledged.
func (w *Worker) timedOut(l *Lease, done int64) {
	w.Log.Warn("reaction timed out", "workspace", l.Workspace, "reaction", l.Reaction, "stream", l.Stream, "epoch", l.Epoch)
	if done > l.Watermark {
		w.end(l, End{Lease: l, Done: done, Retain: true})
	}
	w.untrack(l)
	w.trace("lost", l, done, lease.ErrTimeout)
}

// count counts a failure: the event is retried after a pause, or its stream is
// blocked, or it is skipped.
func (w *Worker) count(h *Handler, l *Lease, d *Delivery, done int64, failures int, err error) {
	message := err.Error()
	if message == "" {
		message = "failed without an error message"
	}
	o := h.Options
	if d.Options != nil {
		o = *d.Options
	}
	version := d.Event.Version
	if !fault.IsNonRetryable(err) && failures <= o.MaxRetries {
		w.Log.Warn("reaction failed; retrying", "workspace", l.Workspace, "reaction", h.Name, "stream", l.Stream, "epoch", l.Epoch, "version", version, "failures", failures, "error", err)
		w.end(l, End{Lease: l, Done: done, Delay: o.Backoff.Pause(failures), Error: message, Failing: version})
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.Lease)
	defer cancel()
	stop := Block(ctx, w.Engine, l, done, version, message, failures, o.BlockOnError)
	w.untrack(l)
	what := "blocked"
	if !o.BlockOnError {
		what = "skipped"
	}
	if stop != nil {
		w.Log.Warn("failed to record that a reaction failed permanently; the event is handled again when the lease expires", "workspace", l.Workspace, "reaction", h.Name,
			"stream", l.Stream, "epoch", l.Epoch, "version", version, "error", errors.Join(err, stop))
		return
	}
	w.trace(what, l, done, err)
}

// abandon ends a lease that was lost, or whose body was told to stop.
func (w *Worker) abandon(l *Lease, done int64, cause error) {
	if errors.Is(cause, lease.ErrLost) {
		w.untrack(l)
		w.Log.Warn("lease lost while the reaction ran", "workspace", l.Workspace, "reaction", l.Reaction, "stream", l.Stream, "epoch", l.Epoch)
		w.trace("lost", l, done, cause)
		return
	}
	w.end(l, End{Lease: l, Done: done, Unfinished: true})
}
