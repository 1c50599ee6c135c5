package runengine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Take takes a due step. It returns false if another caller was first.
func (k *Executor) Take(ctx context.Context, d store.Doer, l *ClaimedStep, h Handled, by Taker) (ClaimedStep, bool, error) {
	next, taken, err := k.once(ctx, d, l, by, func(c *planner) { c.take(h, by.Elsewhere) })
	if taken {
		w := meter.Of(d).Kind(meter.Step)
		w.Take(int(l.Step.Failures + l.Step.Crashes + 1))
		w.Waited(l.Step.Due, next.Step.Until, by.Lease)
	}
	return next, taken, err
}

// Ended is a worker's successful result of its step.
type Ended struct {
	Output  []byte
	Patches [][]byte // merge patches of the run's state, applied in this order; empty ones are skipped
	Results []Result
	// Holder takes the next step, for Lease, if Local has its handler.
	Holder string
	Lease  time.Duration
	Local  LocalHandlers
	// Whole refuses the end with [effects.ErrOpen] if an effect has an unknown outcome.
	Whole bool
}

// Complete ends a step that is done and continues the run. If the run takes a next step for this caller
// at once, that step is leased. Completing again under the same epoch with the same output returns the
// same result.
func (k *Executor) Complete(ctx context.Context, d store.Doer, l *ClaimedStep, e Ended) (ClaimedStep, error) {
	if err := e.check(); err != nil {
		return *l, err
	}
	return k.end(ctx, d, l, Taker{Holder: e.Holder, Lease: e.Lease}, func(c *planner) error {
		c.how, c.local = "held", e.Local
		c.plan.Results = e.results(&c.step, effects.Done)
		if e.Whole {
			open, saw, err := l.open(ctx, d, c.plan.Results)
			if err != nil {
				return err
			}
			if open {
				return effects.ErrOpen
			}
			c.plan.Saw = saw
		}
		return c.completed(e.Output, e.Patches, following(c.def, c.step.Name))
	}, func(s Step) bool { return s.Status == Completed && strictjson.Equal(s.Output, e.Output) })
}

// check completes the result, and returns an error if it cannot be stored.
func (e *Ended) check() error {
	if len(e.Output) == 0 {
		e.Output = []byte("null")
	}
	if err := strictjson.Check(e.Output); err != nil {
		return err
	}
	e.Patches = slices.DeleteFunc(slices.Clone(e.Patches), func(patch []byte) bool { return len(patch) == 0 })
	for _, patch := range e.Patches {
		if err := strictjson.Object(patch); err != nil {
			return err
		}
	}
	return nil
}

// plannedEnd is the end of a step, planned but not recorded.
type plannedEnd struct {
	finishStepArgs
	from ClaimedStep
	plan *planner
}

// after returns the run after the end was recorded.
func (p *plannedEnd) after(m moved) ClaimedStep { return p.plan.after(&p.from, m) }

// expected returns the run as it will be when the end is recorded. If another caller changes the run before, the record is
// refused, because it requires the run's version.
func (p *plannedEnd) expected() ClaimedStep {
	return p.after(moved{version: p.version + int64(len(p.plan.plan.Events)), since: clock.OfMachine()})
}

// planEnd plans a successful end that can be recorded together with others (see joined). ok is false if there is none: the
// step or the next one is opaque, the next one waits, the result cannot be stored.
func (k *Executor) planEnd(ctx context.Context, d store.Doer, l *ClaimedStep, e Ended) (p plannedEnd, ok bool) {
	def, err := k.definition(ctx, d, l.partition(), l.Run.Definition)
	if err != nil || e.check() != nil || l.Step.Safety == opaque || k.PlansOnly {
		return p, false
	}
	c := k.planner(l, def)
	c.how, c.local = "held", e.Local
	if c.completed(e.Output, e.Patches, following(c.def, c.step.Name)) != nil || c.finish() != nil {
		return p, false
	}
	a, plain := c.finishesStep(l, Taker{Holder: e.Holder, Lease: e.Lease})
	return plannedEnd{a.finishStepArgs, *l, c}, plain && a.policy == ""
}

// recordEnds records the ends of consecutive steps: all, or none if the lease of the first is lost or the run has
// changed.
func (k *Executor) recordEnds(ctx context.Context, d store.Doer, all []plannedEnd) (m moved, err error) {
	at, since := all[0].from.partition(), clock.OfMachine()
	if len(all) == 1 {
		m, err = finishStepVerb.DoAt(ctx, d, at, all[0].finishStepArgs)
	} else {
		args := make([]finishStepArgs, len(all))
		for i := range all {
			args[i] = all[i].finishStepArgs
		}
		m, err = finishStepsVerb.DoAt(ctx, d, at, joined(args))
	}
	m.since = since
	return m, err
}

// CompleteAll ends a step, the step that it begins, and so on, in one record. It returns false, and records nothing, if
// the lease is lost, the run has changed, or an end requires a record of its own. It is for tests: a worker plans each
// end when its body is done.
func (k *Executor) CompleteAll(ctx context.Context, d store.Doer, l *ClaimedStep, all []Ended) (next ClaimedStep, recorded bool, err error) {
	ends := make([]plannedEnd, len(all))
	next = *l
	for i, e := range all {
		var ok bool
		if ends[i], ok = k.planEnd(ctx, d, &next, e); !ok {
			return *l, false, nil
		}
		next = ends[i].expected()
	}
	m, err := k.recordEnds(ctx, d, ends)
	if err != nil || !m.applied {
		return *l, false, err
	}
	return ends[len(ends)-1].after(m), true, nil
}

// results returns the results of the step's effects. An opaque body is one of them.
func (e Ended) results(s *Step, how effects.State) []Result {
	all := slices.Clone(e.Results)
	if s.Safety == opaque {
		r := Result{Name: effects.Body, State: string(how)}
		if how == effects.Done {
			r.Result = e.Output
		}
		all = append(all, r)
	}
	return all
}

// Failure is a worker's report of a failed attempt.
type Failure struct {
	Message string
	Final   bool // do not retry
	// Reported means that the worker's report covers an opaque body: it has not acted.
	Reported bool
	// Unfired means that the operation that a transition fired has ended without effect.
	Unfired bool
	Results []Result
}

// is reports whether a step failed this way; the message must be the result of [lease.Plain], as it is stored.
func (f Failure) is(s Step) bool {
	return (s.Status == Failed || s.Status == Waiting || s.Uncertain) && s.Error == f.Message
}

// Fail ends an attempt whose failure the worker reported: the step is due again after a while, or has
// failed. If an effect of it may have happened, it is parked instead of failed.
func (k *Executor) Fail(ctx context.Context, d store.Doer, l *ClaimedStep, f Failure) (ClaimedStep, error) {
	f.Message = lease.Plain(f.Message)
	if f.Reported && l.Step.Attempts > 1 { // the report says nothing about an earlier attempt
		doubtful, err := l.Doubtful(ctx, d)
		if err != nil {
			return *l, err
		}
		f.Reported = !doubtful
	}
	return k.end(ctx, d, l, Taker{}, func(c *planner) error {
		c.how, c.plan.Results = "held", f.Results
		if f.Reported {
			c.plan.Results = Ended{Results: f.Results}.results(&c.step, effects.NotDone)
		}
		unknown := false
		if c.last(f.Final) {
			var err error
			if unknown, c.plan.Saw, err = l.unknown(ctx, d, c.plan.Results); err != nil {
				return err
			}
		}
		if unknown {
			c.park(f.Message)
			return nil
		}
		c.fail(f.Message, f.Final)
		c.plan.Touch.Clear = f.Unfired
		return nil
	}, f.is)
}

// Park makes a step uncertain, because an effect may have happened. Parking it again under the same
// epoch with the same message returns the same result.
func (k *Executor) Park(ctx context.Context, d store.Doer, l *ClaimedStep, message string, results []Result) (ClaimedStep, error) {
	message = lease.Plain(message)
	return k.end(ctx, d, l, Taker{}, func(c *planner) error {
		c.how, c.plan.Results = "held", results
		c.park(message)
		return nil
	}, func(s Step) bool { return s.Uncertain && s.Error == message })
}

// Pass makes a step wait a while for something elsewhere.
func (k *Executor) Pass(ctx context.Context, d store.Doer, l *ClaimedStep, delay time.Duration, results []Result) (ClaimedStep, error) {
	return k.holding(ctx, d, l, Taker{}, func(c *planner) error {
		c.plan.Results = results
		if c.run.CancelRequested {
			c.sawStep()
		}
		c.pass(delay)
		return nil
	})
}

// Release releases a step without an attempt. notDone means that an opaque body has not acted.
func (k *Executor) Release(ctx context.Context, d store.Doer, l *ClaimedStep, notDone bool, results []Result) (ClaimedStep, error) {
	return k.holding(ctx, d, l, Taker{}, func(c *planner) error {
		c.plan.Results = results
		if c.run.CancelRequested {
			c.sawStep()
		}
		if notDone {
			c.bodyNotDone(results)
		}
		c.release(0)
		return nil
	})
}

// Snooze releases a step without an attempt until the delay has passed. notDone means that an opaque body has not acted.
// A step that has an effect with an unknown outcome returns [fault.Conflict].
func (k *Executor) Snooze(ctx context.Context, d store.Doer, l *ClaimedStep, delay time.Duration, notDone bool) (ClaimedStep, error) {
	return k.holding(ctx, d, l, Taker{}, func(c *planner) error {
		open, saw, err := l.open(ctx, d, nil)
		if err == nil && open {
			err = fault.New(fault.Conflict, "an effect of step %q has no known outcome: report its outcome first, or fail the step", l.Step.Name)
		}
		if err != nil {
			return err
		}
		c.plan.Saw = saw
		if notDone {
			c.bodyNotDone(nil)
		}
		c.release(delay)
		return nil
	})
}

// bodyNotDone records that an opaque body has not acted.
func (c *planner) bodyNotDone(results []Result) {
	c.plan.Results = Ended{Results: results}.results(&c.step, effects.NotDone)
	if c.step.Safety == opaque {
		c.step.Begun--
	}
}

// Tick handles a due step of the engine's own. If neither a signal nor a decision has come, the step is due again at its
// deadline. Tick returns false if another caller was first.
func (k *Executor) Tick(ctx context.Context, d store.Doer, l *ClaimedStep, by Taker, mine LocalHandlers) (ClaimedStep, bool, error) {
	return k.once(ctx, d, l, by, func(c *planner) {
		c.local = mine
		if !c.due(l) {
			c.how = "due"
			c.touch(c.step.Status, func(t *touch) { t.When = "deadline" })
		}
	})
}

// Command is a command on a run.
type Command struct {
	Name    string // [Pause], [Resume], [Cancel] or [Retry]
	Version *int64 // the expected version; nil is any
	Actor   string // recorded in the history; "" is unknown
}

// Command pauses, resumes, cancels or retries a run. If a version is given and the run has another, the
// error is [fault.Concurrency]. If the run's status does not allow the command, it is
// [fault.InvalidTransition].
func (k *Executor) Command(ctx context.Context, d store.Doer, id string, x Command) (Run, error) {
	r, err := k.command(ctx, d, id, x)
	return r, note(ctx, d, id, x.Name, x.Actor, err)
}

// note records a refused command on a run.
func note(ctx context.Context, d store.Doer, id, action, actor string, err error) error {
	return refusals.Note(ctx, d, refusals.Try{Stream: Stream(id), Action: action, Actor: actor}, err)
}

func (k *Executor) command(ctx context.Context, d store.Doer, id string, x Command) (Run, error) {
	if err := events.CheckMeta(events.Meta{Actor: x.Actor}); err != nil {
		return Run{}, err
	}
	if x.Version != nil && *x.Version < 0 {
		return Run{}, fault.New(fault.Validation, "the expected version must be 0 or more, got %d", *x.Version)
	}
	for range maxAttempts {
		l, err := Load(ctx, d, id)
		if err != nil {
			return l.Run, err
		}
		if x.Version != nil && *x.Version != l.Run.Version {
			return l.Run, fault.New(fault.Concurrency, "run %q is at version %d, expected %d: read it again and retry", id, l.Run.Version, *x.Version).
				With("expectedVersion", *x.Version).With("lastVersion", l.Run.Version)
		}
		if x.Name == Cancel && l.Run.CancelRequested && !Over(l.Run.Status) {
			return l.Run, nil // already requested
		}
		next, err := k.try(ctx, d, &l, Taker{}, func(c *planner) error {
			open := false
			c.plan.Actor = x.Actor
			if x.Name == Cancel && l.Step.Holder == "" && l.Step.Begun > 0 {
				var err error
				if open, c.plan.Saw, err = l.unknown(ctx, d, nil); err != nil {
					return err
				}
			}
			return c.command(x.Name, open)
		})
		if movedOn(err) {
			continue
		}
		return next.Run, err
	}
	return Run{}, fault.New(fault.Unavailable, "run %q changed concurrently during every attempt: try again", id).AsRetryable()
}

// Resolve resolves an uncertain step, in whole or in part; run.Resolve documents it. Without an outcome, its handler
// continues it, unless an opaque body is known to have acted: then the step ends with success.
func (k *Executor) Resolve(ctx context.Context, e Engine, operation string, all []effects.Resolution, outcome string, r lease.Intervention) (ClaimedStep, error) {
	l, err := ByOperation(ctx, e, operation)
	if err != nil {
		return l, err
	}
	if !slices.Contains([]string{"", "success", "failure"}, outcome) {
		return l, fault.New(fault.Validation, "outcome must be success or failure, got %q", outcome).With("pointer", "/outcome")
	}
	err = e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := lockVerb.DoAt(ctx, tx, l.partition(), l.Run.ID); err != nil { // keep the lock order: run before step
			return err
		}
		now, err := l.Now(ctx, tx)
		if err != nil {
			return err
		}
		if !now.Step.Uncertain {
			return fault.New(fault.Conflict, "operation %s is not uncertain: only an uncertain operation can be resolved", operation)
		}
		if err := r.Check(operation, now.Step.Epoch); err != nil {
			return err
		}
		if l, err = k.resolve(ctx, tx, &now, all, outcome, r.Actor); err != nil {
			return err
		}
		if err := r.Write(ctx, tx); err != nil {
			return err
		}
		return audit.Record(ctx, tx, audit.Action{Name: "operation.resolve", Subject: "operation/" + operation, Actor: r.Actor,
			Before: map[string]any{"phase": "uncertain"}, After: map[string]any{"effects": effects.Known(all), "outcome": outcome}})
	})
	return l, err
}

func (k *Executor) resolve(ctx context.Context, tx *store.Tx, l *ClaimedStep, all []effects.Resolution, outcome, by string) (ClaimedStep, error) {
	for _, x := range all {
		if err := l.close(ctx, tx, x); err != nil {
			return *l, err
		}
	}
	now, err := l.Now(ctx, tx)
	if err != nil {
		return *l, err
	}
	journal, err := now.Journal(ctx, tx)
	if err != nil {
		return now, err
	}
	if err := effects.Agree(journal, all); err != nil {
		return now, err
	}
	var output json.RawMessage
	for _, x := range journal {
		switch {
		case x.State == effects.Begun && outcome != "":
			return now, fault.New(fault.Conflict, "operation %s cannot end with %s, because the outcome of effect %q with ordinal %d is unknown: resolve this effect first", l.Operation(), outcome, x.Name, x.Ordinal)
		case x.State == effects.Begun && x.Policy == effects.Hold:
			return now, nil // still uncertain
		}
	}
	for _, x := range journal {
		if x.Name == effects.Body && x.State == effects.Done && outcome == "" {
			outcome, output = "success", x.Result
		}
	}
	return k.settle(ctx, tx, &now, outcome, by, output)
}

func (k *Executor) settle(ctx context.Context, tx *store.Tx, l *ClaimedStep, outcome, by string, output json.RawMessage) (ClaimedStep, error) {
	next, err := k.try(ctx, tx, l, Taker{}, func(c *planner) error {
		c.plan.Actor = by
		c.settled(outcome, by, output)
		return nil
	})
	if errors.Is(err, errChanged) {
		err = fault.New(fault.Concurrency, "run %q changed concurrently: try again", l.Run.ID)
	}
	next.Step.Uncertain = err != nil
	return next, err
}

// ReleaseHeld ends the lease of a step for an operator; run.Release documents it.
func (k *Executor) ReleaseHeld(ctx context.Context, e Engine, operation string, r lease.Intervention) (ClaimedStep, error) {
	l, err := ByOperation(ctx, e, operation)
	if err == nil {
		err = events.CheckMeta(events.Meta{Actor: r.Actor})
	}
	if err != nil {
		return l, err
	}
	err = e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := lockVerb.DoAt(ctx, tx, l.partition(), l.Run.ID); err != nil { // keep the lock order: run before step
			return err
		}
		now, err := l.Now(ctx, tx)
		if err != nil {
			return err
		}
		if err := r.Check(operation, now.Step.Epoch); err != nil {
			return err
		}
		if now.Step.Holder == "" && !now.Step.Uncertain {
			return fault.New(fault.Conflict, "operation %s is not leased: only a leased operation can be released", operation)
		}
		open, saw, err := now.unknown(ctx, tx, nil)
		if err != nil {
			return err
		}
		if open || now.Step.Uncertain {
			return now.unresolved(ctx, tx)
		}
		l, err = k.try(ctx, tx, &now, Taker{}, func(c *planner) error {
			c.plan.Saw, c.plan.Actor = saw, r.Actor
			c.release(0)
			c.how = ""
			return nil
		})
		if errors.Is(err, errChanged) || fault.CodeOf(err) == fault.LeaseLost {
			err = fault.New(fault.Concurrency, "run %q changed concurrently: try again", now.Run.ID)
		}
		if err == nil {
			err = r.Write(ctx, tx)
		}
		if err != nil {
			return err
		}
		return audit.Record(ctx, tx, audit.Action{Name: "operation.release", Subject: "operation/" + operation, Actor: r.Actor,
			Before: map[string]any{"phase": "held", "run": now.Run.ID, "step": now.Step.Name, "holder": now.Step.Holder, "epoch": now.Step.Epoch},
			After:  map[string]any{"status": l.Step.Status, "reason": r.Reason}})
	})
	return l, err
}

// unresolved returns the error for a step with effects whose outcome is unknown.
func (l *ClaimedStep) unresolved(ctx context.Context, d store.Doer) error {
	journal, err := l.Journal(ctx, d)
	if err != nil {
		return err
	}
	var names []string
	for _, x := range journal {
		if x.State == effects.Begun {
			names = append(names, x.Name)
		}
	}
	return effects.Unresolved(l.Operation(), names)
}

// close records an operator's knowledge of an effect.
func (l *ClaimedStep) close(ctx context.Context, tx *store.Tx, x effects.Resolution) error {
	if err := x.Check(); err != nil {
		return err
	}
	n, err := endEffectVerb.DoAt(ctx, tx, l.partition(), endArgs{leasedStep{l.visited(), l.Step.Epoch}, x.Name, x.Ordinal, x.State, x.Result, effects.ByPerson})
	switch {
	case err != nil:
		return err
	case !n.held:
		return fault.New(fault.Conflict, "operation %s is not uncertain: only an uncertain operation can be resolved", l.Operation())
	case n.State == "":
		return fault.New(fault.NotFound, "operation %s has no effect %q with ordinal %d", l.Operation(), x.Name, x.Ordinal)
	case n.State != x.State:
		return fault.New(fault.Conflict, "effect %q with ordinal %d is already recorded as %s", x.Name, x.Ordinal, n.State)
	}
	return nil
}
