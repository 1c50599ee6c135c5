package reactions

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// maxCalls is the number of calls of handlers that a node makes at once for
// reactions. One reaction in one workspace gets at most half of it.
const maxCalls = 128

type callingKey struct{}

// CallingWorker returns the engine's worker that calls remote handlers for
// reactions and after-effects. It is separate from the engine's own worker: a
// handler that does not respond occupies capacity until its timeout and would delay
// the program's reactions.
func CallingWorker(e interface {
	Engine
	remotehandler.Engine
	Node() string
	Steps(kinds func() []wake.WorkKind, step func(context.Context, store.Partition) (bool, error))
}) *Worker {
	tallies := TalliesOf(e)
	return e.Shared(callingKey{}, func() any {
		w := &Worker{Engine: e, Hub: e.Hub(), Log: e.Log(), Name: e.Node(), MaxConcurrency: maxCalls, ByHandler: true, Idle: true, Tallies: tallies}
		e.Background(w.Run)
		e.Steps(w.WorkKinds, w.Step)
		return w
	}).(*Worker)
}

// Remote hands out the events of reactions whose handlers are workers.
type Remote struct {
	remote.NoEffects

	Engine  Engine
	Log     *slog.Logger
	Tallies *Tallies
	// After makes the tasks of after-effects.
	After After

	handled remote.Known[[]Info] // the reactions of a workspace that have a handler
}

// After knows the after-effects of lifecycles. An after-effect is a reaction that
// a lifecycle declares.
type After interface {
	// Is reports whether a reaction is an after-effect.
	Is(Info) bool
	// Wants reports whether the after-effect follows an event.
	Wants(Info, events.Event) (bool, error)
	// Task returns the remote task of an after-effect, or an [*Undeliverable] error.
	Task(context.Context, Task) (remote.Task, error)
}

// Undeliverable is the error of an event that can never be handed out. Its stream is blocked or, with Skip, the event is
// skipped.
type Undeliverable struct {
	Err  error
	Skip bool
}

// Error returns the reason.
func (u *Undeliverable) Error() string { return u.Err.Error() }

// Unwrap returns the reason.
func (u *Undeliverable) Unwrap() error { return u.Err }

// Owns reports whether a task id is one of a reaction.
func (r *Remote) Owns(id string) bool { return IsTask(id) }

// Offer offers the events of the reactions that the claim's handlers serve.
func (r *Remote) Offer(ctx context.Context, c remote.Claim) (remote.Offer, error) {
	all, err := r.handled.For(c, func() ([]Info, error) {
		all, err := List(ctx, r.Engine, "")
		return slices.DeleteFunc(all, func(x Info) bool { return x.Options.Handler == "" }), err
	})
	if err != nil {
		return remote.Offer{}, err
	}
	served := make(map[string]Info)
	ask := Ask{Holder: c.Worker, Lease: c.Lease, Every: r.After.Is, Wants: func(l *Lease, e events.Event) (bool, error) {
		if x := served[l.Reaction]; r.After.Is(x) {
			return r.After.Wants(x, e)
		}
		return true, nil
	}}
	var names, topics []string
	for _, x := range all {
		if slices.Contains(c.Handlers, x.Options.Handler) {
			served[x.Name] = x
			ask.Reactions, names, topics = append(ask.Reactions, x), append(names, x.Name), append(topics, store.DueTopic(x.Name))
		}
	}
	return remote.Offer{Topics: topics, Leased: wake.HeldReaction, Due: wake.WorkKinds(wake.Reaction, names...), Take: func(ctx context.Context, d store.Doer, limit int) ([]remote.Task, error) {
		ask.Limit = limit
		return r.take(ctx, d, ask)
	}}, nil
}

func (r *Remote) take(ctx context.Context, d store.Doer, a Ask) ([]remote.Task, error) {
	taken, err := TakeTasks(ctx, d, a)
	all := make([]remote.Task, 0, len(taken))
	for _, t := range taken {
		r.Tallies.Trace(r.Log, "claimed", t.Lease, t.Lease.Watermark)
		x := t.Remote()
		if r.After.Is(t.Reaction) {
			var failed error
			x, failed = r.After.Task(ctx, t)
			if u, ok := errors.AsType[*Undeliverable](failed); ok {
				l := t.Lease
				if failed = Block(ctx, d, l, l.Watermark, t.Event.Version, u.Error(), l.Failures+1, !u.Skip); failed == nil || errors.Is(failed, errReset) {
					r.Tallies.Trace(r.Log, Failed{Blocked: !u.Skip, Skipped: u.Skip}.What(), l, t.Event.Version)
					continue
				}
			}
			if failed != nil { // its lease expires, and the stream is taken again
				r.Log.Warn("failed to hand out an after-effect", "workspace", t.Lease.Workspace, "reaction", t.Reaction.Name, "stream", t.Lease.Stream, "error", failed)
				continue
			}
		}
		all = append(all, x)
	}
	return all, err
}

// Remote returns the task in its wire form.
func (t Task) Remote() remote.Task {
	return remote.Task{ID: t.ID(), Epoch: t.Lease.Epoch, Handler: t.Reaction.Options.Handler, Kind: "reaction", Input: t.Event.Data, Attempt: t.Lease.Attempt(),
		Until: t.Lease.Until, Operation: t.Lease.Operation(t.Event.Version), Reaction: t.Reaction.Name, Event: &t.Event}
}

// Complete acknowledges the event.
func (r *Remote) Complete(ctx context.Context, h remote.Lease, done remote.Result) (remote.Ended, error) {
	if err := done.Stateless(); err != nil {
		return remote.Ended{}, err
	}
	t, err := completeTask(ctx, r.Engine, h.ID, h.Epoch)
	if err == nil {
		r.Tallies.Trace(r.Log, "acked", t.lease, t.version)
	}
	return remote.Ended{Status: "acked", Version: t.version}, err
}

// Fail schedules a retry, blocks the stream or skips the event, as the reaction's
// options say.
func (r *Remote) Fail(ctx context.Context, h remote.Lease, why remote.Failure) (remote.Ended, error) {
	if err := why.Said(); err != nil { // without a message it would not count as a failure
		return remote.Ended{}, err
	}
	t, f, err := failTask(ctx, r.Engine, h.ID, h.Epoch, why.Message, !why.Final && !why.Invalid)
	if err == nil {
		r.Tallies.Trace(r.Log, f.What(), t.lease, t.version)
	}
	return remote.Ended{Status: f.What(), Version: t.version, NotBefore: f.NotBefore}, err
}

// Snooze delivers the event again later.
func (r *Remote) Snooze(ctx context.Context, h remote.Lease, delay time.Duration) (remote.Ended, error) {
	version, dueAt, err := SnoozeTask(ctx, r.Engine, h.ID, h.Epoch, delay)
	return remote.Ended{Status: "snoozed", Version: version, NotBefore: dueAt}, err
}

// Renew extends the lease of the event's stream, within the timeout of the handler.
func (r *Remote) Renew(ctx context.Context, h remote.Lease, leaseTime time.Duration) (remote.Renewed, error) {
	x, err := RenewTask(ctx, r.Engine, h.ID, h.Epoch, leaseTime, func(handler string) (time.Duration, error) {
		h, err := remotehandler.Get(ctx, r.Engine, handler)
		if fault.CodeOf(err) == fault.NotFound {
			err = nil // the handler was deleted meanwhile
		}
		return cmp.Or(h.Timeout, lease.Timeout), err
	})
	return remote.Renewed{Until: x.Until, CancelRequested: x.CancelRequested}, err
}
