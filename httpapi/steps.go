package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/runs"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/wire"
)

// Steps of runs that workers do.

// probeMark ends the id of a task that asks whether its step has acted.
const probeMark = "~probe"

// journalMark ends the id under which a URL journals the effects of a step that it does: it ends
// the step by its answer alone.
const journalMark = "~journal"

// takeSteps takes steps of runs that the handlers do.
func (c *call) takeSteps(d holdfast.Doer, out *wire.Tasks, a claim) error {
	all := a.declared.named(a.Handlers)
	if len(all) == 0 {
		return nil
	}
	taken, err := runs.LocalOf(c.api.engine).Desk.TakeDue(c.ctx(), store.DoerOf(d), runs.Ask{Handlers: all, Kind: "worker", Holder: a.Worker, Limit: a.Limit - len(out.Tasks), Lease: a.lease, Busy: a.busy})
	for i := range taken {
		l := &taken[i]
		probe, failed := l.Probes(c.ctx(), store.DoerOf(d))
		if failed != nil { // it runs out, and is taken again
			c.api.log.Warn("a step could not be given out", "run", l.Run.ID, "step", l.Step.Name, "error", failed)
			continue
		}
		out.Tasks = append(out.Tasks, stepTask(l, probe))
	}
	return err
}

func stepTask(l *runs.Live, probe bool) wire.Task {
	t := wire.Task{ID: l.TaskID(), Epoch: l.Step.Epoch, Handler: l.Step.Handler, Kind: "runStep", Input: docOr(l.Step.Input), Attempt: int(l.Step.Attempts), Until: wire.At(l.Step.Until),
		IdempotencyKey: l.Operation(), Context: wire.TaskContext{Run: l.Run.ID, Step: l.Step.Name, Visit: l.Step.Visit, State: docOr(l.Run.State), Input: docOr(l.Run.Input)}}
	if probe {
		t.ID, t.Kind = t.ID+probeMark, "probe"
	}
	return t
}

// isStep says whether a task is a step of a run.
func isStep(id string) bool { return runs.IsTask(id) }

// task is a step in somebody's hands.
type task struct {
	runs.Live
	held  bool // under the epoch that was named
	epoch int64
	probe bool // it is asked whether it has acted
}

// step is the step that a task is.
func (c *call) step(id string, epoch int64) (t *task, err error) {
	t = &task{epoch: epoch}
	plain, probe := strings.CutSuffix(id, probeMark)
	t.probe = probe
	t.Live, t.held, err = runs.HeldTask(c.ctx(), c.api.engine, plain, epoch)
	return t, err
}

// ended answers who ends a step that he does not hold any more: as before, if it ended so
// under his epoch, and nobody has taken it since.
func (c *call) ended(t *task, so func(runs.Step) bool) error {
	now, err := t.Now(c.ctx(), c.api.engine)
	if err == nil && (now.Step.Epoch != t.epoch || now.Step.Holder != "" || !so(now.Step)) {
		err = hold.Lost("the step "+t.Step.Name+" of the run "+t.Run.ID, t.epoch)
	}
	return err
}

func completeStep(c *call, in *completeTaskIn) (wire.EndedTask, error) {
	b := in.Body
	t, err := c.step(in.ID, b.Epoch)
	if err != nil {
		return wire.EndedTask{}, err
	}
	if len(b.Output) > 0 {
		if err := strict.Check(b.Output); err != nil {
			return wire.EndedTask{}, within(err, "/output")
		}
	}
	if t.probe {
		happened, result, err := probed(b.Output)
		if err != nil {
			return wire.EndedTask{}, err
		}
		if !happened {
			return c.notHappened(t)
		}
		b.Output = result
	}
	if t.held {
		_, err = runs.LocalOf(c.api.engine).Desk.Complete(c.ctx(), c.api.engine, &t.Live, runs.Ended{Output: b.Output, Patch: b.State, Whole: true})
		if errors.Is(err, effects.ErrOpen) {
			err = c.leftOpen(t)
		}
	} else {
		err = c.completedBefore(t, b.Output)
	}
	if fault.CodeOf(err) == fault.LeaseLost {
		c.late(t, effects.LateCall{Name: effects.Body, State: effects.Done, Result: b.Output})
	}
	return wire.EndedTask{Status: runs.Completed}, err
}

// late reports what a worker did that has lost its lease. It is stored only where the step's journal
// has the effect.
func (c *call) late(t *task, call effects.LateCall) {
	l := t.Live
	l.Step.Epoch = t.epoch
	l.Late(c.ctx(), c.api.engine, c.api.engine.Node(), []effects.LateCall{call}, c.api.engine.Log())
}

// probed reads what a worker has found out.
func probed(output json.RawMessage) (happened bool, result json.RawMessage, err error) {
	var found struct {
		Happened *bool           `json:"happened"`
		Result   json.RawMessage `json:"result"`
	}
	if len(output) == 0 || json.Unmarshal(output, &found) != nil || found.Happened == nil {
		return false, nil, fault.New(fault.Validation, `the output of a probe says whether it has happened: {"happened": true, "result": …} or {"happened": false}`).With("pointer", "/output")
	}
	return *found.Happened, found.Result, nil
}

// notHappened goes on behind a probe which says that the body has not acted: the next who
// takes the step begins anew.
func (c *call) notHappened(t *task) (wire.EndedTask, error) {
	if t.held {
		next, err := runs.LocalOf(c.api.engine).Desk.Release(c.ctx(), c.api.engine, &t.Live, true, nil)
		return endedStep(t, next), err
	}
	journal, err := t.Journal(c.ctx(), c.api.engine)
	if err == nil {
		err = c.ended(t, func(s runs.Step) bool {
			return !s.Uncertain && slices.ContainsFunc(journal, func(x effects.Entry) bool { return x.Name == effects.Body && x.State == effects.NotDone })
		})
	}
	return endedStep(t, t.Live), err
}

// completedBefore answers a worker that completes a step which it does not hold any more.
func (c *call) completedBefore(t *task, output json.RawMessage) error {
	open, err := t.Open(c.ctx(), c.api.engine)
	switch {
	case err != nil:
		return err
	case open:
		return c.leftOpen(t)
	}
	return c.ended(t, func(s runs.Step) bool { return s.Status == runs.Completed && strict.Equal(s.Output, docOr(output)) })
}

// leftOpen refuses an end well of a step that has begun something of which nothing is known:
// it waits for a person.
func (c *call) leftOpen(t *task) (err error) {
	if t.held {
		_, err = runs.LocalOf(c.api.engine).Desk.Park(c.ctx(), c.api.engine, &t.Live, effects.ErrOpen.Error(), nil)
	} else {
		err = c.ended(t, func(s runs.Step) bool { return s.Uncertain && s.Error == effects.ErrOpen.Error() })
	}
	if err == nil {
		err = fault.New(fault.ActionFailed, "%s", effects.ErrOpen).With("outcome", "uncertain").With("operation", t.OperationID())
	}
	return err
}

// endedStep is what has become of a step. What a repetition could not tell is not told.
func endedStep(t *task, next runs.Live) wire.EndedTask {
	status := runs.Failed // and the run has gone on since then
	if next.Step.Name == t.Step.Name && next.Step.Visit == t.Step.Visit {
		status = next.Step.Status
	}
	return wire.EndedTask{Status: status}
}

// failStep ends an attempt at a step. What it says of itself is no word on an attempt before
// it that may have acted.
func failStep(c *call, in *failTaskIn) (wire.EndedTask, error) {
	b := in.Body
	if b.Message == "" {
		return wire.EndedTask{}, fault.New(fault.Validation, "message says what went wrong").With("pointer", "/message")
	}
	t, err := c.step(in.ID, b.Epoch)
	if err != nil {
		return wire.EndedTask{}, err
	}
	out := endedStep(t, t.Live)
	if t.held {
		doubtful, err := t.Doubtful(c.ctx(), c.api.engine)
		if err != nil {
			return wire.EndedTask{}, err
		}
		final := b.Invalid || b.Retryable != nil && !*b.Retryable
		next, err := runs.LocalOf(c.api.engine).Desk.Fail(c.ctx(), c.api.engine, &t.Live, runs.Failure{Message: b.Message, Final: final, Told: !t.probe && !doubtful})
		if err != nil {
			return wire.EndedTask{}, err
		}
		out = endedStep(t, next)
	} else if err := c.ended(t, func(s runs.Step) bool {
		return (s.Status == runs.Failed || s.Status == runs.Waiting || s.Uncertain) && s.Error == hold.Plain(b.Message)
	}); err != nil {
		return wire.EndedTask{}, err
	}
	if out.Status == runs.Running { // it may have happened
		out.Status = "UNCERTAIN"
	}
	return out, nil
}

// renewStep extends the hold on a step, and tells whether its run is to be cancelled.
func renewStep(c *call, in *renewTaskIn, lease time.Duration) (wire.Renewed, error) {
	if err := entities.CheckLease(lease); err != nil {
		return wire.Renewed{}, err
	}
	t, err := c.step(in.ID, in.Body.Epoch)
	if err == nil && !t.held {
		err = c.ended(t, func(runs.Step) bool { return false })
	}
	if err != nil {
		return wire.Renewed{}, err
	}
	r, err := runs.Renew(c.ctx(), c.api.engine, &t.Live, lease)
	return wire.Renewed{Until: wire.At(r.Until), CancelRequested: r.CancelRequested}, err
}

// journalStepEffect journals an effect of a step. One that an earlier attempt began, and of
// which nothing is known, is told as begun where it may be tried again or asked about;
// otherwise the step waits for a person.
func journalStepEffect(c *call, id string, b wire.EffectCall) (wire.EffectState, error) {
	t, err := c.step(id, b.Epoch)
	if err == nil && !t.held {
		err = c.ended(t, func(runs.Step) bool { return false })
		c.lateEffect(t, b, err)
	}
	if err != nil {
		return wire.EffectState{}, err
	}
	book := t.Book(c.api.engine)
	out := wire.EffectState{Key: effects.Key(book.Operation(), b.Name, b.Ordinal), Result: b.Result}
	if len(b.Result) == 0 && !b.NotDone {
		return c.intendedStep(&t.Live, book, b, out)
	}
	if len(b.Result) > 0 {
		if err := strict.Check(b.Result); err != nil {
			return out, within(err, "/result")
		}
	}
	to := effects.Done
	if b.NotDone {
		to = effects.NotDone
	}
	state, kept, err := book.End(c.ctx(), b.Name, b.Ordinal, to, b.Result, t.Step.Unknown == string(effects.Probe))
	out.State = string(state)
	c.lateEffect(t, b, err)
	switch {
	case err != nil:
	case state == "":
		err = fault.New(fault.NotFound, "the effect %q, ordinal %d, was not begun", b.Name, b.Ordinal)
	case to == effects.NotDone && state == effects.Begun: // that this call did not happen says nothing of the earlier one
		err = c.waitForPerson(&t.Live, b)
	case state != to:
		err = fault.New(fault.Conflict, "of the effect %q, ordinal %d, it is known already that it is %s", b.Name, b.Ordinal, state)
	case to == effects.Done && !strict.Equal(docOr(kept), docOr(b.Result)):
		err = fault.New(fault.Conflict, "of the effect %q, ordinal %d, another result is known already", b.Name, b.Ordinal)
	}
	return out, err
}

// lateEffect reports an effect whose outcome cannot be recorded because the lease is lost.
func (c *call) lateEffect(t *task, b wire.EffectCall, err error) {
	if fault.CodeOf(err) == fault.LeaseLost && len(b.Result) > 0 && strict.Check(b.Result) == nil {
		c.late(t, effects.LateCall{Name: b.Name, Ordinal: b.Ordinal, State: effects.Done, Result: b.Result})
	}
}

// intendedStep notes that an effect is about to be tried, and tells how it stands.
func (c *call) intendedStep(l *runs.Live, book effects.Book, b wire.EffectCall, out wire.EffectState) (wire.EffectState, error) {
	policy := effects.Policy(l.Step.Unknown)
	if policy == "" {
		policy = effects.Hold
	}
	e, err := book.Begin(c.ctx(), b.Name, b.Ordinal, policy, nil)
	out.State, out.Result = string(e.State), e.Result
	switch {
	case err != nil:
		return out, err
	case e.State == effects.New:
		out.State = string(effects.Begun)
	case e.State == effects.Begun && policy == effects.Hold:
		return out, c.waitForPerson(l, b)
	}
	return out, nil
}

// waitForPerson parks a step whose effect an earlier attempt began, and whose outcome is unknown. It
// returns the error for the worker.
func (c *call) waitForPerson(l *runs.Live, b wire.EffectCall) error {
	unknown := effects.BegunBefore(b.Name, b.Ordinal)
	if _, err := runs.LocalOf(c.api.engine).Desk.Park(c.ctx(), c.api.engine, l, unknown.Message, nil); err != nil {
		return err
	}
	return unknown
}

// stepOperation is the operation that a step is.
func (c *call) stepOperation(ctx context.Context, l *runs.Live, state string) (wire.Operation, error) {
	w := wire.Operation{ID: l.OperationID(), Kind: "runStep", Subject: l.Subject(), State: state, Handler: l.Step.Handler,
		Since: since1970(l.Step.StartedAt), Epoch: l.Step.Epoch, Error: l.Step.Error, Effects: []wire.Effect{}}
	journal, err := l.Journal(ctx, c.api.engine)
	for _, x := range journal {
		w.Effects = append(w.Effects, wire.Effect{Name: x.Name, Ordinal: x.Ordinal, Key: effects.Key(l.Operation(), x.Name, x.Ordinal), State: string(x.State), Result: x.Result})
	}
	return w, err
}

// resolveStep ends the doubt about a step.
func resolveStep(c *call, operation string, b wire.Resolve) (wire.Resolved, error) {
	known := make([]runs.Known, len(b.Effects))
	for i, x := range b.Effects {
		known[i] = runs.Known{Name: x.Name, Ordinal: x.Ordinal, Happened: x.Happened, Result: x.Result}
	}
	l, err := runs.LocalOf(c.api.engine).Desk.Resolve(c.ctx(), c.api.engine, operation, known, b.Outcome, c.actor())
	if err != nil {
		return wire.Resolved{}, err
	}
	if l.Operation() != operation || l.Step.Status != runs.Running { // it is at its end
		return wire.Resolved{}, nil
	}
	w, err := c.stepOperation(c.ctx(), &l, "due")
	return wire.Resolved{Operation: &w}, err
}
