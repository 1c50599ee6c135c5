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
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Remote gives out steps of runs whose handlers are workers.
type Remote struct {
	Engine   Engine
	Executor *Executor
	Node     string
	Log      *slog.Logger

	workers remote.Known[map[string]Handled]
}

const (
	// probeMark ends the id of a task that asks whether its step has acted.
	probeMark = "~probe"
	// journalMark ends the id under which a URL journals the effects of a step that it does: it ends
	// the step by its answer alone.
	journalMark = "~journal"
)

// JournalID names the step to a URL that journals its effects.
func (l *ClaimedStep) JournalID() string { return l.TaskID() + journalMark }

// Owns says whether a task is a step of a run.
func (r *Remote) Owns(id string) bool { return strings.HasPrefix(id, taskPrefix) }

// Offer has the steps that the claim's handlers do.
func (r *Remote) Offer(ctx context.Context, c remote.Claim) (remote.Offer, error) {
	all, err := r.workers.For(c, func() (map[string]Handled, error) { return r.readWorkers(ctx) })
	if err != nil {
		return remote.Offer{}, err
	}
	asked := maps.Clone(all)
	maps.DeleteFunc(asked, func(name string, _ Handled) bool { return !slices.Contains(c.Handlers, name) })
	o := remote.Offer{Leased: wake.HeldStep, Due: wake.WorkKinds(wake.Step, c.Handlers...)}
	for _, name := range c.Handlers {
		o.Topics = append(o.Topics, Topic(name))
	}
	o.Take = func(ctx context.Context, d store.Doer, limit int) ([]remote.Task, error) {
		if len(asked) == 0 {
			return nil, nil
		}
		return r.take(ctx, d, Ask{Handlers: asked, Kind: "worker", Holder: c.Worker, Limit: limit, Lease: c.Lease, Busy: c.Busy})
	}
	return o, nil
}

// readWorkers reads the handlers of the context's workspace that are workers.
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
			r.Log.Warn("a step could not be given out", "run", l.Run.ID, "step", l.Step.Name, "error", failed)
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

// Remote is the step as another program is told of it.
func (l *ClaimedStep) Remote() remote.Task {
	return remote.Task{ID: l.TaskID(), Epoch: l.Step.Epoch, Handler: l.Step.Handler, Kind: "runStep", Input: l.Step.Input, Attempt: int(l.Step.Attempts), Until: l.Step.Until,
		Operation: l.Operation(), Run: l.Run.ID, Step: l.Step.Name, Visit: l.Step.Visit, State: l.Run.State, RunInput: l.Run.Input}
}

// task is a step in the hands of a worker.
type task struct {
	ClaimedStep
	r     *Remote
	held  bool // under the epoch that was named
	epoch int64
	probe bool // it is asked whether it has acted
}

// task is the step that a hold is of, in the context's workspace. What is not held under that very epoch cannot be ended:
// only whoever ended it can be told so again.
func (r *Remote) task(ctx context.Context, h remote.Lease) (t *task, err error) {
	id, probe := strings.CutSuffix(h.ID, probeMark)
	t = &task{r: r, epoch: h.Epoch, probe: probe}
	v, ok := cutID(taskPrefix, id)
	if !ok {
		return t, fault.New(fault.NotFound, "there is no task %q", id)
	}
	at, err := r.Engine.Partition(ctx, store.Read)
	if err != nil {
		return t, err
	}
	t.ClaimedStep, err = load(ctx, r.Engine, at, v)
	if fault.CodeOf(err) == fault.NotFound {
		err = fault.New(fault.NotFound, "there is no task %q", id)
	}
	t.held = err == nil && t.Step.Epoch == h.Epoch && t.Step.Holder != ""
	return t, err
}

// heldTask is the step that a hold is of, or the error of who has lost it.
func (r *Remote) heldTask(ctx context.Context, h remote.Lease) (t *task, err error) {
	t, err = r.task(ctx, h)
	if err == nil && !t.held {
		err = t.ended(ctx, func(Step) bool { return false })
	}
	return t, err
}

// ended answers who ends a step that it does not hold any more: as before, if the step ended so
// under its epoch, and nobody has taken it since.
func (t *task) ended(ctx context.Context, so func(Step) bool) error {
	now, err := t.Now(ctx, t.r.Engine)
	if err == nil && (now.Step.Epoch != t.epoch || now.Step.Holder != "" || !so(now.Step)) {
		err = lease.Lost("the step "+t.Step.Name+" of the run "+t.Run.ID, t.epoch)
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
		_, err = r.Executor.Complete(ctx, r.Engine, &t.ClaimedStep, Ended{Output: done.Output, Patch: done.State, Whole: true})
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

// late reports what a worker did that has lost its lease. It is stored only where the step's journal
// has the effect.
func (t *task) late(ctx context.Context, call effects.LateCall) {
	l := t.ClaimedStep
	l.Step.Epoch = t.epoch
	l.Late(ctx, t.r.Engine, t.r.Node, []effects.LateCall{call}, t.r.Log)
}

// notHappened goes on behind a probe which says that the body has not acted: the next who
// takes the step begins anew.
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

// completedBefore answers a worker that completes a step which it does not hold any more.
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

// leftOpen refuses a success of a step that has begun something of which nothing is known:
// it waits for a person.
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

// after is what has become of a step. What a repetition could not tell is not told.
func (t *task) after(next ClaimedStep) remote.Ended {
	status := Failed // and the run has gone on since then
	if next.Step.Name == t.Step.Name && next.Step.Visit == t.Step.Visit {
		status = next.Step.Status
	}
	return remote.Ended{Status: status}
}

// Fail ends an attempt at a step. What it says of itself is no word on an attempt before
// it that may have acted.
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
	if out.Status == Running { // it may have happened
		out.Status = "UNCERTAIN"
	}
	return out, nil
}

// Renew extends the lease of a step, and tells whether its run is to be cancelled.
func (r *Remote) Renew(ctx context.Context, h remote.Lease, lease time.Duration) (remote.Renewed, error) {
	t, err := r.heldTask(ctx, h)
	if err != nil {
		return remote.Renewed{}, err
	}
	return Renew(ctx, r.Engine, &t.ClaimedStep, lease)
}

// Effect journals an effect of a step. One that an earlier attempt began, and of
// which nothing is known, is told as begun where it may be tried again or asked about;
// otherwise the step waits for a person.
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
		err = t.waitForPerson(ctx, x)
	}
	return state, err
}

// lateEffect reports an effect whose outcome cannot be recorded because the lease is lost.
func (t *task) lateEffect(ctx context.Context, x remote.Effect, err error) {
	if fault.CodeOf(err) == fault.LeaseLost && len(x.Result) > 0 && strictjson.Check(x.Result) == nil {
		t.late(ctx, effects.LateCall{Name: x.Name, Ordinal: x.Ordinal, State: effects.Done, Result: x.Result})
	}
}

// waitForPerson parks a step whose effect an earlier attempt began, and whose outcome is unknown. It
// returns the error for the worker.
func (t *task) waitForPerson(ctx context.Context, x remote.Effect) error {
	unknown := effects.BegunBefore(x.Name, x.Ordinal)
	if _, err := t.r.Executor.Park(ctx, t.r.Engine, &t.ClaimedStep, unknown.Message, nil); err != nil {
		return err
	}
	return unknown
}
