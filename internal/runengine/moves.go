package runengine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

// The moves of a run, each as a plan. They know how the run stands, and nothing else.

// take gives the step to somebody, of whose handler this is known. One who is elsewhere is
// quiet until he is heard of.
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

// fail is an attempt that its worker lived to report.
func (c *planner) fail(message string, final bool) {
	c.how = "held"
	last := c.last(final)
	c.step.Failures++
	if last {
		c.lost(message, "")
		return
	}
	r := c.spec().Retry
	delay := Backoff(r, c.step.Failures)
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

// last says whether a failure now would be the last.
func (c *planner) last(final bool) bool {
	most := int64(cmp.Or(c.spec().Retry.MaxAttempts, DefaultAttempts))
	return final || c.step.Failures+1 >= most || c.run.CancelRequested
}

// The defaults of retries.
const (
	DefaultAttempts   = 3
	defaultBackoff    = time.Second
	defaultMultiplier = 2
	defaultMaxBackoff = 5 * time.Minute
)

// Backoff is the pause behind the n-th failure: it grows up to a cap, and is scattered, so
// that those who failed together do not come back together.
func Backoff(r workflow.Retry, n int64) time.Duration {
	base, factor, longest := cmp.Or(r.Backoff, defaultBackoff), cmp.Or(r.Multiplier, defaultMultiplier), cmp.Or(r.MaxBackoff, defaultMaxBackoff)
	d := float64(base) * math.Pow(factor, float64(n-1))
	return clock.Jitter(time.Duration(min(d, float64(longest))))
}

// pass has the step wait a while for something elsewhere: it has not failed.
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

// stopped ends a step, of a run that is to be cancelled, that has done nothing.
func (c *planner) stopped(why string) {
	c.touch(Cancelled, func(*touch) {})
	c.emitStep(why, c.step.Name, c.step.Visit, nil)
	c.cancelled()
}

// release gives the step back untouched.
func (c *planner) release() {
	c.how = "held"
	if c.run.CancelRequested && c.step.Begun == 0 && c.step.Fired == "" {
		c.stopped("stepReleased")
		return
	}
	c.touch(Running, func(t *touch) { t.When = c.soonest(); t.Attempts-- })
	c.emitStep("stepReleased", c.step.Name, c.step.Visit, nil)
	c.wakes = append(c.wakes, Topic(c.step.Handler), Made)
}

// died is a hold that has run out. Where its holder is elsewhere and was never heard of, the
// hand-out is lost: no death is counted, and the step fails by no number of them.
func (c *planner) died() {
	c.how = "died"
	c.sawStep()
	name, message := "stepDied", fmt.Sprintf("the holder %s did not come back", c.step.Holder)
	told := map[string]any{"holder": c.step.Holder}
	var delay time.Duration
	dead := false // one more than may die of it
	if c.step.Quiet {
		c.step.Lost++
		name, message, delay = "stepLost", fmt.Sprintf("it was handed out to %s, who was not heard of", c.step.Holder), lease.LostPause(c.step.Lost, c.run.ID)
		told["lost"] = c.step.Lost
	} else {
		c.step.Crashes++
		c.step.Lost = 0
		delay, dead = clock.Jitter(time.Second<<min(c.step.Crashes-1, 8)), c.step.Crashes >= lease.MaxCrashes
		told["deaths"] = c.step.Crashes
	}
	unknown := c.step.Begun > 0
	parked := unknown && (c.step.Safety == opaque && c.step.Unknown == "hold" || dead || c.run.CancelRequested)
	switch {
	case parked:
		c.park(message)
	case c.run.CancelRequested && c.step.Fired == "":
		c.stopped(name)
	case dead:
		c.lost(fmt.Sprintf("%d holders died of it: %s", c.step.Crashes, message), "")
	default:
		c.touch(Running, func(t *touch) { t.When, t.Ms, t.Error = c.soonest(), *ms(delay), &message })
		c.emitStep(name, c.step.Name, c.step.Visit, told)
		c.soon(delay)
	}
}

// park has the step wait for a person, who says what happened.
func (c *planner) park(message string) {
	c.touch(Running, func(t *touch) { t.Uncertain, t.Error = true, &message })
	c.emitStep("stepUncertain", c.step.Name, c.step.Visit, map[string]any{"error": message})
}

// due is a step of the engine's own at which something may have come: the time, a signal,
// a decision. It says false if nothing has.
func (c *planner) due(l *ClaimedStep) bool {
	c.how = "due"
	s := c.spec()
	next := following(c.def, c.step.Name)
	switch {
	case c.step.Type == workflow.Wait:
		_ = c.completed(nil, nil, next) // without a patch, it does not fail
	case c.step.Type == workflow.Event && l.signal.id != "":
		c.plan.Signal = l.signal.id
		_ = c.completed(l.signal.payload, nil, next)
	case c.step.Type == workflow.Approval && l.approval.status != "" && l.approval.status != "pending" && l.approval.status != "expired":
		c.judged(l.approval, s, next)
	case c.step.past:
		if c.step.Type == workflow.Approval {
			c.plan.Lapse = true
		}
		c.lost(fmt.Sprintf("nobody came within %s", s.Timeout), s.OnTimeout)
	default:
		return false
	}
	return true
}

// judged goes on behind a decision. A rejection that nothing looks at fails the step.
func (c *planner) judged(v decision, s *workflow.Step, next string) {
	out := map[string]any{"decision": v.status, "by": v.actor}
	if v.label != "" {
		out["label"] = v.label
	}
	if len(v.content) > 0 {
		out["content"] = json.RawMessage(v.content)
	}
	output, _ := json.Marshal(out) // of what was read, it does not fail
	if v.status == "rejected" {
		switch {
		case s.OnReject != "":
			next = s.OnReject
		case !c.def.LooksAt(next, s.Name):
			message := "rejected by " + v.actor
			if t := s.OnFailure; t != "" { // what looks at it there is to see it
				c.remember(s.Name, Failed, c.step.Visit, output, message)
			}
			c.lost(message, "")
			c.plan.Touch.Output = output
			return
		}
	}
	_ = c.completed(output, nil, next)
}

// The commands, by what they do to a run.
const (
	Pause  = "pause"
	Resume = "resume"
	Cancel = "cancel"
	Retry  = "retry"
)

// command does one of the commands, or says why not.
func (c *planner) command(name string, open bool) error {
	into := map[string]string{Pause: Paused, Resume: Running, Cancel: Cancelled, Retry: Running}[name]
	from := map[string]bool{Pause: c.run.Status == Running, Resume: c.run.Status == Paused, Retry: c.run.Status == Failed,
		Cancel: c.run.Status == Pending || c.run.Status == Running || c.run.Status == Waiting || c.run.Status == Paused}[name]
	if !from || name == Pause && c.run.CancelRequested {
		return fault.New(fault.InvalidTransition, "the run %q is %s: it cannot %s, which would make it %s", c.run.ID, c.run.Status, name, into).
			With("status", c.run.Status).With("version", c.run.Version).With("command", name)
	}
	switch name {
	case Pause:
		c.pause()
	case Resume:
		c.resume()
	case Cancel:
		c.cancel(open)
	case Retry:
		c.retry()
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
		c.goOn(c.step.Next)
	default:
		if c.step.Status == Waiting {
			c.to(Waiting)
			c.emitStep("stepWaiting", c.step.Name, c.step.Visit, nil)
		}
		c.touch(c.step.Status, func(t *touch) { t.When = "unpark" })
		c.wakes = append(c.wakes, Topic(c.step.Handler), Made)
	}
}

// cancel ends a run that nobody works for; otherwise it is noted, and whoever works for it
// is told, and ends it.
func (c *planner) cancel(open bool) {
	live := c.step.Status == Pending || c.step.Status == Running || c.step.Status == Waiting
	switch {
	case c.step.Holder != "" || c.step.Uncertain:
		c.run.CancelRequested = true
		c.emit("cancelRequested", nil)
		c.wakes = append(c.wakes, CancelTopic(c.run.ID))
		return
	case live && open: // an effect may have happened: a person says so, and then it is over
		c.run.CancelRequested = true
		c.awake()
		c.emit("cancelRequested", nil)
		c.park("it was cancelled, and nobody knows what became of an effect that was begun")
		return
	case live && c.step.Fired != "": // what it fired goes on: the run is over when that is
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

// retry has a run go on at the step at which it failed, with as many attempts as at first.
// What was waited for there in vain is waited for anew.
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

// settled ends an uncertain step by what a person says.
func (c *planner) settled(outcome, by string, output json.RawMessage) {
	c.emitStep("stepResolved", c.step.Name, c.step.Visit, map[string]any{"by": by, "outcome": outcome})
	switch {
	case outcome == "success":
		_ = c.completed(output, nil, following(c.def, c.step.Name))
	case outcome == "failure":
		c.lost("it has not happened, says who resolved it", "")
	case c.run.CancelRequested:
		c.stopped("stepCancelled")
	default:
		c.touch(Running, func(t *touch) { t.When = c.soonest() })
		c.wakes = append(c.wakes, Topic(c.step.Handler), Made)
	}
}
