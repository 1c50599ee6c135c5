package runengine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

// This file computes the moves of a run, each as a plan, from the state of the run alone.

// take gives the step to a holder whose handler has these options. A remote holder is quiet until its
// first call.
func (c *planner) take(h Handled, elsewhere bool) {
	c.how = "due"
	h = h.of(c.spec())
	name := "stepStarted"
	if c.step.Status == Running {
		name = "stepResumed"
	}
	c.to(Running)
	c.touch(Running, func(t *touch) {
		t.Lease, t.Safety, t.Unknown, t.Timeout = "take", &h.Safety, &h.Unknown, ms(h.Timeout)
		t.Attempts++
		t.Quiet = elsewhere
	})
	if h.Safety == opaque {
		c.plan.Body = &body{Operation(c.run.ID, c.step.Name, c.step.Visit), c.step.Epoch + 1, h.Unknown}
	}
	c.step.Safety, c.step.Unknown, c.step.Timeout = h.Safety, h.Unknown, h.Timeout
	c.emitStep(name, c.step.Name, c.step.Visit, map[string]any{"attempt": c.plan.Touch.Attempts, "epoch": c.step.Epoch + 1})
}

// fail ends an attempt whose failure the worker reported.
func (c *planner) fail(message string, final bool) {
	c.how = "held"
	last := c.last(final)
	c.step.Failures++
	if last {
		c.failStep(message, "")
		return
	}
	r := c.spec().Retry
	delay := clock.Backoff(r.Backoff, r.Multiplier, r.MaxBackoff, c.step.Failures)
	when := "in"
	if c.run.Status == Paused {
		when = "parkin"
	} else {
		c.to(Waiting)
		c.soon(delay)
	}
	c.touch(Waiting, func(t *touch) { t.Error, t.When, t.Ms = &message, when, *ms(delay) })
	c.emitStep("stepWaiting", c.step.Name, c.step.Visit, map[string]any{"error": message, "failures": c.step.Failures, "retryInMs": *ms(delay)})
}

// last reports whether a failure now would be final.
func (c *planner) last(final bool) bool {
	most := int64(cmp.Or(c.spec().Retry.MaxAttempts, DefaultAttempts))
	return final || c.step.Failures+1 >= most || c.run.CancelRequested
}

// DefaultAttempts is the number of attempts of a step whose definition sets none.
const DefaultAttempts = 3

// pass makes the step wait a while for something elsewhere. This is not a failure.
func (c *planner) pass(delay time.Duration) {
	c.how = "held"
	if c.run.CancelRequested && c.step.Fired == "" {
		c.stopped("stepReleased")
		return
	}
	if c.soon(delay); c.run.Status != Paused {
		c.to(Waiting)
	}
	c.touch(Waiting, func(t *touch) { t.When, t.Ms = c.soonest(), *ms(delay); t.Attempts-- })
	c.emitStep("stepWaiting", c.step.Name, c.step.Visit, map[string]any{"lookInMs": *ms(delay)})
}

// stopped ends a step that has done nothing, of a run that is to be cancelled.
func (c *planner) stopped(event string) {
	c.touch(Cancelled, func(*touch) {})
	c.emitStep(event, c.step.Name, c.step.Visit, nil)
	c.cancelled()
}

// release releases the step without an attempt. It is due again after the delay.
func (c *planner) release(delay time.Duration) {
	c.how = "held"
	if c.run.CancelRequested && c.step.Begun == 0 && c.step.Fired == "" {
		c.stopped("stepReleased")
		return
	}
	if delay > 0 {
		if c.soon(delay); c.run.Status != Paused {
			c.to(Waiting)
		}
		c.touch(Waiting, func(t *touch) { t.When, t.Ms = c.soonest(), *ms(delay); t.Attempts-- })
		c.emitStep("stepWaiting", c.step.Name, c.step.Visit, map[string]any{"retryInMs": *ms(delay)})
		return
	}
	c.touch(Running, func(t *touch) { t.When = c.soonest(); t.Attempts-- })
	c.emitStep("stepReleased", c.step.Name, c.step.Visit, nil)
	c.wakes = append(c.wakes, Topic(c.step.Handler), Made)
}

// leaseExpired handles an expired lease. If its remote holder never responded, the hand-out is lost: it does not
// count as a crash, and no number of lost hand-outs fails the step.
func (c *planner) leaseExpired() {
	c.how = "died"
	c.sawStep()
	name, message := "stepDied", fmt.Sprintf("the lease of holder %s expired", c.step.Holder)
	data := map[string]any{"holder": c.step.Holder}
	var delay time.Duration
	limitReached := false // the crash limit is reached
	if c.step.Quiet {
		c.step.Lost++
		name, message, delay = "stepLost", fmt.Sprintf("the task was handed out to %s, but no response arrived", c.step.Holder), lease.LostPause(c.step.Lost, c.run.ID)
		data["lost"] = c.step.Lost
	} else {
		c.step.Crashes++
		c.step.Lost = 0
		delay, limitReached = clock.Jitter(time.Second<<min(c.step.Crashes-1, 8)), c.step.Crashes >= lease.MaxCrashes
		data["deaths"] = c.step.Crashes
	}
	unknown := c.step.Begun > 0
	parked := unknown && (c.step.Safety == opaque && c.step.Unknown == "hold" || limitReached || c.run.CancelRequested)
	switch {
	case parked:
		c.park(message)
	case c.run.CancelRequested && c.step.Fired == "":
		c.stopped(name)
	case limitReached:
		c.failStep(fmt.Sprintf("%d holders crashed: %s", c.step.Crashes, message), "")
	default:
		c.touch(Running, func(t *touch) { t.When, t.Ms, t.Error = c.soonest(), *ms(delay), &message })
		c.emitStep(name, c.step.Name, c.step.Visit, data)
		c.soon(delay)
	}
}

// park makes the step uncertain until an operator reports the outcome.
func (c *planner) park(message string) {
	c.touch(Running, func(t *touch) { t.Uncertain, t.Error = true, &message })
	c.emitStep("stepUncertain", c.step.Name, c.step.Visit, map[string]any{"error": message})
}

// due handles one of the engine's own steps: its time, a signal or a decision may have come. It returns
// false if none has.
func (c *planner) due(l *ClaimedStep) bool {
	c.how = "due"
	s := c.spec()
	next := following(c.def, c.step.Name)
	switch {
	case c.step.Type == workflow.Wait:
		_ = c.completed(nil, nil, next) // cannot fail: no patch
	case c.step.Type == workflow.Event && l.signal.id != "":
		c.plan.Signal = l.signal.id
		_ = c.completed(l.signal.payload, nil, next)
	case c.step.Type == workflow.Approval && l.approval.status != "" && l.approval.status != "pending" && l.approval.status != "expired":
		c.applyDecision(l.approval, s, next)
	case c.step.past:
		if c.step.Type == workflow.Approval {
			c.plan.Lapse = true
		}
		c.failStep(fmt.Sprintf("no signal or decision arrived within %s", s.Timeout), s.OnTimeout)
	default:
		return false
	}
	return true
}

// applyDecision continues after a decision. A rejection that the definition does not inspect fails the step.
func (c *planner) applyDecision(v decision, s *workflow.Step, next string) {
	out := map[string]any{"decision": v.status, "by": v.actor}
	if v.label != "" {
		out["label"] = v.label
	}
	if len(v.content) > 0 {
		out["content"] = json.RawMessage(v.content)
	}
	output, _ := json.Marshal(out) // cannot fail: plain values and stored JSON
	if v.status == "rejected" {
		switch {
		case s.OnReject != "":
			next = s.OnReject
		case !c.def.LooksAt(next, s.Name):
			message := "rejected by " + v.actor
			if t := s.OnFailure; t != "" { // expressions there must see the output
				c.remember(s.Name, Failed, c.step.Visit, output, message)
			}
			c.failStep(message, "")
			c.plan.Touch.Output = output
			return
		}
	}
	_ = c.completed(output, nil, next)
}

// The commands on a run.
const (
	Pause  = "pause"
	Resume = "resume"
	Cancel = "cancel"
	Retry  = "retry"
)

// From has the statuses in which a run accepts each command.
var From = map[string][]string{Pause: {Running}, Resume: {Paused}, Retry: {Failed}, Cancel: {Pending, Running, Waiting, Paused}}

// Allows returns [fault.InvalidTransition] if the run's status does not allow a command.
func (r *Run) Allows(command string) error {
	from, why := slices.Contains(From[command], r.Status), ""
	if from && (command != Pause || !r.CancelRequested) {
		return nil
	}
	if from {
		why = ", and its cancellation was requested"
	}
	done := map[string]string{Pause: "paused", Resume: "resumed", Cancel: "cancelled", Retry: "retried"}[command]
	return fault.New(fault.InvalidTransition, "run %q is %s%s: it cannot be %s", r.ID, r.Status, why, done).
		With("status", r.Status).With("version", r.Version).With("command", command)
}

// command applies a command, or returns why it is not allowed. open says that an effect of the step has an unknown outcome.
func (c *planner) command(name string, open bool) error {
	if err := c.run.Allows(name); err != nil {
		return err
	}
	switch name {
	case Pause:
		c.pause()
	case Resume:
		c.resume()
	case Cancel:
		c.cancel(open)
	case Retry:
		if c.retry(); c.run.Status == Failed {
			return fault.New(fault.InvalidTransition, "run %q cannot be retried, because it would fail again at once: %s", c.run.ID, c.run.Error).
				With("status", Failed).With("version", c.run.Version).With("command", name)
		}
	}
	return nil
}

func (c *planner) pause() {
	c.to(Paused)
	if c.step.Holder == "" && !c.step.Uncertain {
		c.touch(c.step.Status, func(t *touch) { t.When = "park" })
	}
	c.emit("paused", nil)
}

func (c *planner) resume() {
	c.to(Running)
	c.emit("resumed", nil)
	switch {
	case c.step.Holder != "" || c.step.Uncertain:
	case c.step.Status == Completed || c.step.Status == Failed:
		c.proceed(c.step.Next)
	default:
		if c.step.Status == Waiting {
			c.to(Waiting)
			c.emitStep("stepWaiting", c.step.Name, c.step.Visit, nil)
		}
		c.touch(c.step.Status, func(t *touch) { t.When = "unpark" })
		c.wakes = append(c.wakes, Topic(c.step.Handler), Made)
	}
}

// cancel ends a run whose step is not in flight. Otherwise it stores the request, notifies the holder
// and leaves the end to it.
func (c *planner) cancel(open bool) {
	live := c.step.Status == Pending || c.step.Status == Running || c.step.Status == Waiting
	switch {
	case c.step.Holder != "" || c.step.Uncertain:
		c.run.CancelRequested = true
		c.emit("cancelRequested", nil)
		c.wakes = append(c.wakes, CancelTopic(c.run.ID))
		return
	case live && open: // an effect may have happened: the run ends when an operator has resolved it
		c.run.CancelRequested = true
		c.wake()
		c.emit("cancelRequested", nil)
		c.park("the run was cancelled while the outcome of an effect was unknown")
		return
	case live && c.step.Fired != "": // the fired operation continues: the run ends when it has ended
		if c.run.CancelRequested = true; c.run.Status == Paused {
			c.touch(c.step.Status, func(t *touch) { t.When = "unpark" })
		}
		c.emit("cancelRequested", nil)
		c.wakes = append(c.wakes, Topic(c.step.Handler), Made)
		return
	}
	if live {
		c.touch(Cancelled, func(*touch) {})
		if c.step.Type == workflow.Approval {
			c.plan.Lapse = true
		}
		c.emitStep("stepCancelled", c.step.Name, c.step.Visit, nil)
	}
	c.cancelled()
}

// retry continues a failed run at its failed step, with a new set of attempts. A step that waited in
// vain waits anew.
func (c *planner) retry() {
	c.to(Running)
	c.run.Error = ""
	c.emit("retried", map[string]any{"step": c.step.Name})
	if c.step.Handler == "" || c.step.Status != Failed {
		c.enter(c.run.Step)
		return
	}
	c.step.Failures, c.step.Crashes, c.step.Lost = 0, 0, 0
	c.touch(Running, func(t *touch) { t.When, t.Error = "in", nil })
	c.wakes = append(c.wakes, Topic(c.step.Handler), Made)
}

// settled ends an uncertain step by an operator's resolution.
func (c *planner) settled(outcome, by string, output json.RawMessage) {
	c.emitStep("stepResolved", c.step.Name, c.step.Visit, map[string]any{"by": by, "outcome": outcome})
	switch {
	case outcome == "success":
		_ = c.completed(output, nil, following(c.def, c.step.Name))
	case outcome == "failure":
		c.failStep("resolved as a failure", "")
	case c.run.CancelRequested:
		c.stopped("stepCancelled")
	default:
		c.touch(Running, func(t *touch) { t.When = c.soonest() })
		c.wakes = append(c.wakes, Topic(c.step.Handler), Made)
	}
}
