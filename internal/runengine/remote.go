package runengine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Remote hands out steps of runs to workers.
type Remote struct {
	Engine   Engine
	Executor *Executor
	Node     string
	Log      *slog.Logger

	workers remote.Known[map[string]Handled]
}

const (
	// probeMark is the suffix of the id of a task that probes whether its step has acted.
	probeMark = "~probe"
	// journalMark is the suffix of the id under which a URL journals the effects of its step. With this
	// id it cannot end the step: only its response does.
	journalMark = "~journal"
)

// JournalID returns the id under which a URL journals the effects of the step.
func (l *ClaimedStep) JournalID() string { return l.TaskID() + journalMark }

// Owns reports whether a task is a step of a run.
func (r *Remote) Owns(id string) bool { return strings.HasPrefix(id, taskPrefix) }

// Offer returns the offer of steps for the claim's handlers.
func (r *Remote) Offer(ctx context.Context, c remote.Claim) (remote.Offer, error) {
	all, err := r.workers.For(c, func() (map[string]Handled, error) { return r.readWorkers(ctx) })
	if err != nil {
		return remote.Offer{}, err
	}
	served := maps.Clone(all)
	maps.DeleteFunc(served, func(name string, _ Handled) bool { return !slices.Contains(c.Handlers, name) })
	o := remote.Offer{Leased: wake.HeldStep, Due: wake.WorkKinds(wake.Step, c.Handlers...)}
	for _, name := range c.Handlers {
		o.Topics = append(o.Topics, Topic(name))
	}
	o.Take = func(ctx context.Context, d store.Doer, limit int) ([]remote.Task, error) {
		if len(served) == 0 {
			return nil, nil
		}
		return r.take(ctx, d, Ask{Handlers: served, Kind: "worker", Holder: c.Worker, Limit: limit, Lease: c.Lease, Busy: c.Busy})
	}
	return o, nil
}

// readWorkers reads the handlers of the context's workspace that are served by workers.
func (r *Remote) readWorkers(ctx context.Context) (map[string]Handled, error) {
	const page = 500
	workers := make(map[string]Handled)
	for after := ""; ; {
		all, err := remotehandler.List(ctx, r.Engine, after, page)
		if err != nil {
			return nil, err
		}
		for _, h := range all {
			after = h.Name
			if h.Kind == "worker" {
				workers[h.Name] = Handled{Safety: h.Safety, Unknown: h.OnUnknown, Timeout: h.Timeout}
			}
		}
		if len(all) < page {
			return workers, nil
		}
	}
}

func (r *Remote) take(ctx context.Context, d store.Doer, a Ask) ([]remote.Task, error) {
	taken, err := r.Executor.TakeDue(ctx, d, a)
	all := make([]remote.Task, 0, len(taken))
	for i := range taken {
		l := &taken[i]
		probe, failed := l.Probes(ctx, d)
		if failed != nil { // its lease expires, and it is taken again
			r.Log.Warn("failed to hand out a step", "workspace", l.Run.Workspace, "run", l.Run.ID, "step", l.Step.Name, "visit", l.Step.Visit, "epoch", l.Step.Epoch, "error", failed)
			continue
		}
		t := l.Remote()
		if probe {
			t.ID, t.Kind = t.ID+probeMark, "probe"
		}
		all = append(all, t)
	}
	return all, err
}

// Remote returns the task for the step.
func (l *ClaimedStep) Remote() remote.Task {
	return remote.Task{ID: l.TaskID(), Epoch: l.Step.Epoch, Handler: l.Step.Handler, Kind: "runStep", Input: l.Step.Input, Attempt: int(l.Step.Attempts), Until: l.Step.Until,
		Operation: l.Operation(), Run: l.Run.ID, Step: l.Step.Name, Visit: l.Step.Visit, State: l.Run.State, RunInput: l.Run.Input}
}

// task is a step that a worker executes.
type task struct {
	ClaimedStep
	r     *Remote
	held  bool // leased under the given epoch
	epoch int64
	probe bool // the task probes whether the step has acted
}

// task returns the step of a lease, in the context's workspace. A step that is not leased under that epoch cannot be
// ended: a caller that ended it before only receives the same result again.
func (r *Remote) task(ctx context.Context, h remote.Lease) (t *task, err error) {
	id, probe := strings.CutSuffix(h.ID, probeMark)
	t = &task{r: r, epoch: h.Epoch, probe: probe}
	v, ok := cutID(taskPrefix, id)
	if !ok {
		return t, fault.New(fault.NotFound, "task %q does not exist", id)
	}
	at, err := r.Engine.Partition(ctx, store.Read)
	if err != nil {
		return t, err
	}
	t.ClaimedStep, err = load(ctx, r.Engine, at, v)
	if fault.CodeOf(err) == fault.NotFound {
		err = fault.New(fault.NotFound, "task %q does not exist", id)
	}
	t.held = err == nil && t.Step.Epoch == h.Epoch && t.Step.Holder != ""
	return t, err
}

// heldTask returns the step of a lease, or an error if the lease is lost.
func (r *Remote) heldTask(ctx context.Context, h remote.Lease) (t *task, err error) {
	t, err = r.task(ctx, h)
	if err == nil && !t.held {
		err = t.ended(ctx, func(Step) bool { return false })
	}
	return t, err
}

// ended returns nil to a caller that ends a step again that it no longer holds, if the step ended the
// same way under its epoch and no other holder has taken it since. Otherwise the lease is lost.
func (t *task) ended(ctx context.Context, same func(Step) bool) error {
	now, err := t.Now(ctx, t.r.Engine)
	if err == nil && (now.Step.Epoch != t.epoch || now.Step.Holder != "" || !same(now.Step)) {
		err = refusals.Note(ctx, t.r.Engine, refusals.Try{Stream: Stream(t.Run.ID), Action: "settle", Operation: t.Operation(), Epoch: t.epoch},
			lease.Lost("step "+t.Step.Name+" of run "+t.Run.ID, t.epoch))
	}
	return err
}

// Complete ends a step that is done.
func (r *Remote) Complete(ctx context.Context, h remote.Lease, done remote.Result) (remote.Ended, error) {
	t, err := r.task(ctx, h)
	if err != nil {
		return remote.Ended{}, err
	}
	if len(done.Output) > 0 {
		if err := strictjson.Check(done.Output); err != nil {
			return remote.Ended{}, strictjson.Within(err, "/output")
		}
	}
	if t.probe {
		happened, result, err := remote.Probed(done.Output)
		if err != nil {
			return remote.Ended{}, err
		}
		if !happened {
			return t.notHappened(ctx)
		}
		done.Output = result
	}
	if t.held {
		_, err = r.Executor.Complete(ctx, r.Engine, &t.ClaimedStep, Ended{Output: done.Output, Patches: [][]byte{done.State}, Whole: true})
		if errors.Is(err, effects.ErrOpen) {
			err = t.leftOpen(ctx)
		}
	} else {
		err = t.completedBefore(ctx, done.Output)
	}
	if fault.CodeOf(err) == fault.LeaseLost {
		t.late(ctx, effects.LateCall{Name: effects.Body, State: effects.Done, Result: done.Output})
	}
	return remote.Ended{Status: Completed}, err
}

// late reports a call of a worker that has lost its lease. It is stored only if the step's journal
// contains the effect.
func (t *task) late(ctx context.Context, call effects.LateCall) {
	l := t.ClaimedStep
	l.Step.Epoch = t.epoch
	l.Late(ctx, t.r.Engine, t.r.Node, []effects.LateCall{call}, t.r.Log)
}

// notHappened continues after a probe reported that the body has not acted: the next holder starts
// it anew.
func (t *task) notHappened(ctx context.Context) (remote.Ended, error) {
	if t.held {
		next, err := t.r.Executor.Release(ctx, t.r.Engine, &t.ClaimedStep, true, nil)
		return t.after(next), err
	}
	journal, err := t.Journal(ctx, t.r.Engine)
	if err == nil {
		err = t.ended(ctx, func(s Step) bool {
			return !s.Uncertain && slices.ContainsFunc(journal, func(x effects.Entry) bool { return x.Name == effects.Body && x.State == effects.NotDone })
		})
	}
	return t.after(t.ClaimedStep), err
}

// completedBefore returns the result for a worker that completes a step which it no longer holds.
func (t *task) completedBefore(ctx context.Context, output json.RawMessage) error {
	open, _, err := t.open(ctx, t.r.Engine, nil)
	switch {
	case err != nil:
		return err
	case open:
		return t.leftOpen(ctx)
	}
	return t.ended(ctx, func(s Step) bool { return s.Status == Completed && strictjson.Equal(s.Output, remote.OrNull(output)) })
}

// leftOpen refuses the success of a step that has an effect with an unknown outcome, and parks the
// step.
func (t *task) leftOpen(ctx context.Context) (err error) {
	if t.held {
		_, err = t.r.Executor.Park(ctx, t.r.Engine, &t.ClaimedStep, effects.ErrOpen.Error(), nil)
	} else {
		err = t.ended(ctx, func(s Step) bool { return s.Uncertain && s.Error == effects.ErrOpen.Error() })
	}
	if err == nil {
		err = fault.New(fault.ActionFailed, "%s", effects.ErrOpen).With("outcome", "uncertain").With("operation", t.OperationID())
	}
	return err
}

// after returns the result of a step. It contains only what a repeated call could return as well.
func (t *task) after(next ClaimedStep) remote.Ended {
	status := Failed // the step failed, and the run continued elsewhere
	if next.Step.Name == t.Step.Name && next.Step.Visit == t.Step.Visit {
		status = next.Step.Status
	}
	return remote.Ended{Status: status}
}

// Fail ends an attempt of a step. The worker's report says nothing about an earlier attempt that
// may have acted.
func (r *Remote) Fail(ctx context.Context, h remote.Lease, why remote.Failure) (remote.Ended, error) {
	if err := why.Said(); err != nil {
		return remote.Ended{}, err
	}
	t, err := r.task(ctx, h)
	if err != nil {
		return remote.Ended{}, err
	}
	out := t.after(t.ClaimedStep)
	if t.held {
		doubtful, err := t.Doubtful(ctx, r.Engine)
		if err != nil {
			return remote.Ended{}, err
		}
		next, err := r.Executor.Fail(ctx, r.Engine, &t.ClaimedStep, Failure{Message: why.Message, Final: why.Invalid || why.Final, Reported: !t.probe && !doubtful})
		if err != nil {
			return remote.Ended{}, err
		}
		out = t.after(next)
	} else if err := t.ended(ctx, Failure{Message: lease.Plain(why.Message)}.is); err != nil {
		return remote.Ended{}, err
	}
	if out.Status == Running { // the effect may have happened
		out.Status = "UNCERTAIN"
	}
	return out, nil
}

// Snooze makes a step due again after the delay. The worker's report says nothing about an earlier attempt that may have
// acted.
func (r *Remote) Snooze(ctx context.Context, h remote.Lease, delay time.Duration) (remote.Ended, error) {
	t, err := r.task(ctx, h)
	if err != nil {
		return remote.Ended{}, err
	}
	if !t.held {
		return remote.Ended{Status: Waiting}, t.ended(ctx, func(s Step) bool { return s.Status == Waiting && !s.Uncertain })
	}
	doubtful, err := t.Doubtful(ctx, r.Engine)
	if err != nil {
		return remote.Ended{}, err
	}
	next, err := r.Executor.Snooze(ctx, r.Engine, &t.ClaimedStep, delay, !t.probe && !doubtful)
	return t.after(next), err
}

// Renew extends the lease of a step and returns whether its run is to be cancelled.
func (r *Remote) Renew(ctx context.Context, h remote.Lease, lease time.Duration) (remote.Renewed, error) {
	t, err := r.heldTask(ctx, h)
	if err != nil {
		return remote.Renewed{}, err
	}
	return Renew(ctx, r.Engine, &t.ClaimedStep, lease)
}

// Effect journals an effect of a step. An effect that an earlier attempt began, and whose outcome is
// unknown, is returned as begun if its policy is to retry or probe it. Otherwise the step is parked.
func (r *Remote) Effect(ctx context.Context, h remote.Lease, x remote.Effect) (remote.EffectState, error) {
	h.ID = strings.TrimSuffix(h.ID, journalMark)
	t, err := r.heldTask(ctx, h)
	if err != nil {
		t.lateEffect(ctx, x, err)
		return remote.EffectState{}, err
	}
	if len(x.Result) > 0 {
		if err := strictjson.Check(x.Result); err != nil {
			return remote.EffectState{}, strictjson.Within(err, "/result")
		}
	}
	state, unknown, err := x.Journal(ctx, t.Book(r.Engine), cmp.Or(effects.Policy(t.Step.Unknown), effects.Hold))
	t.lateEffect(ctx, x, err)
	if unknown {
		err = t.parkUnknown(ctx, x)
	}
	return state, err
}

// lateEffect reports an effect whose outcome cannot be recorded because the lease is lost.
func (t *task) lateEffect(ctx context.Context, x remote.Effect, err error) {
	if fault.CodeOf(err) == fault.LeaseLost && len(x.Result) > 0 && strictjson.Check(x.Result) == nil {
		t.late(ctx, effects.LateCall{Name: x.Name, Ordinal: x.Ordinal, State: effects.Done, Result: x.Result})
	}
}

// parkUnknown parks a step whose effect an earlier attempt began and whose outcome is unknown. It
// returns the error for the worker.
func (t *task) parkUnknown(ctx context.Context, x remote.Effect) error {
	unknown := effects.BegunBefore(x.Name, x.Ordinal)
	if _, err := t.r.Executor.Park(ctx, t.r.Engine, &t.ClaimedStep, unknown.Message, nil); err != nil {
		return err
	}
	return unknown
}
