package runengine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

// This file ends steps and begins the next ones.

// completed ends the step with success and continues the run.
func (c *planner) completed(output json.RawMessage, patches [][]byte, target string) error {
	if len(patches) > 0 {
		state, err := strictjson.Merge(c.run.State, patches...)
		if err != nil {
			return err
		}
		c.run.State, c.plan.Run.State = state, state
	}
	c.touch(Completed, func(t *touch) { t.Output, t.Error, t.Next = output, nil, &target })
	c.remember(c.step.Name, Completed, c.step.Visit, output, "")
	c.wake()
	c.emitStep("stepCompleted", c.step.Name, c.step.Visit, map[string]any{"next": target})
	c.proceed(target)
	return nil
}

// failStep ends the step with a permanent failure and continues where the definition says.
func (c *planner) failStep(message, target string) {
	if target == "" {
		target = c.spec().OnFailure
	}
	c.touch(Failed, func(t *touch) { t.Error, t.Next = &message, &target })
	c.remember(c.step.Name, Failed, c.step.Visit, nil, message)
	if target != "" || c.run.CancelRequested {
		c.wake()
	}
	c.emitStep("stepFailed", c.step.Name, c.step.Visit, map[string]any{"error": message})
	c.proceed(target)
}

// proceed continues with a step or ends the run, unless the run is paused or to be cancelled.
func (c *planner) proceed(target string) {
	switch {
	case c.run.CancelRequested:
		c.cancelled()
	case c.run.Status == Paused: // the step row stores the target
	case target == "":
		c.failed()
	default:
		c.enter(target)
	}
}

// enter continues with a step: through steps that end as soon as they begin, until a step needs a handler
// or waits, or until the end.
func (c *planner) enter(target string) {
	for range maxInstantSteps {
		if target == workflow.End {
			c.to(Completed)
			c.plan.Run.Output = c.memo.Last
			c.run.Output = c.memo.Last
			c.emit("completed", nil)
			return
		}
		var more bool
		if target, more = c.visit(target); !more {
			return
		}
	}
	c.fault(fmt.Sprintf("the run took %d steps in a row without executing or waiting: check the definition for a loop", maxInstantSteps))
}

// visit begins a step. It returns the next target if the step completed at once.
func (c *planner) visit(name string) (target string, more bool) {
	i := c.def.Find(name)
	if i < 0 || c.memo.N >= MaxVisits {
		message := fmt.Sprintf("the run reached the limit of %d steps: start a new run, and check the definition for a loop", MaxVisits)
		if i < 0 {
			message = fmt.Sprintf("definition %s has no step %q", c.def.ID(), name)
		}
		c.fault(message)
		return "", false
	}
	s := &c.def.Steps[i]
	if c.memo.Visits == nil {
		c.memo.Visits = make(map[string]int64)
	}
	c.memo.N++
	c.memo.Visits[name]++
	a := addStep{Name: name, Visit: c.memo.Visits[name], N: c.memo.N, Type: string(s.Type), Input: json.RawMessage("null"), Timeout: lease.Timeout.Milliseconds()}
	c.run.Step, c.run.Visit = name, a.Visit
	target, err := c.begin(s, &a)
	if err != nil {
		return c.failBegin(s, a, err)
	}
	c.plan.Add = append(c.plan.Add, a)
	return target, target != ""
}

// failBegin ends a step that cannot begin because an expression in its definition failed.
func (c *planner) failBegin(s *workflow.Step, a addStep, err error) (target string, more bool) {
	message := lease.Plain(err.Error())
	a.Status, a.Error, a.Next, a.Over, a.Held, a.Due, a.At, a.Wait, a.Signal, a.Handler = Failed, &message, &s.OnFailure, true, false, nil, nil, nil, nil, ""
	c.started(a)
	c.emitStep("stepFailed", a.Name, a.Visit, map[string]any{"error": message})
	c.plan.Add = append(c.plan.Add, a)
	c.remember(a.Name, Failed, a.Visit, nil, message)
	if s.OnFailure != "" {
		return s.OnFailure, true
	}
	c.step = Step{Name: a.Name, Visit: a.Visit, Status: Failed, Error: message}
	c.failed()
	return "", false
}

// started records that a step begins; the run is no longer waiting.
func (c *planner) started(a addStep) {
	c.to(Running)
	c.emitStep("stepStarted", a.Name, a.Visit, nil)
}

// begin prepares the first state of a step. It returns the next target if the step completed at once.
func (c *planner) begin(s *workflow.Step, a *addStep) (target string, err error) {
	switch s.Type {
	case workflow.Condition:
		return c.branch(s, a)
	case workflow.Wait:
		return "", c.sleep(s, a)
	case workflow.Event:
		a.Signal = &s.Signal
		c.await(s, a)
		return "", nil
	case workflow.Approval:
		return "", c.approve(s, a)
	}
	return "", c.work(s, a)
}

// branch evaluates a condition.
func (c *planner) branch(s *workflow.Step, a *addStep) (target string, err error) {
	x, err := workflow.Compile(s.If)
	if err != nil {
		return "", err
	}
	yes, err := x.True(c.env())
	if err != nil {
		return "", err
	}
	if target = s.Else; yes {
		target = s.Then
	}
	target = cmp.Or(target, following(c.def, s.Name))
	a.Status, a.Next, a.Over = Completed, &target, true
	a.Output, _ = json.Marshal(map[string]bool{"result": yes}) // cannot fail: a bool
	c.started(*a)
	c.emitStep("stepCompleted", a.Name, a.Visit, map[string]any{"result": yes})
	last := c.memo.Last // the result of a condition is no output of the run
	c.remember(a.Name, Completed, a.Visit, a.Output, "")
	c.memo.Last = last
	return target, nil
}

// beginWaiting begins a step that waits from the start.
func (c *planner) beginWaiting(a *addStep) {
	a.Status = Waiting
	c.started(*a)
	c.to(Waiting)
	c.emitStep("stepWaiting", a.Name, a.Visit, nil)
}

func (c *planner) sleep(s *workflow.Step, a *addStep) error {
	if len(s.Until) == 0 {
		a.Due = ms(s.Duration)
		c.soon(s.Duration)
		c.beginWaiting(a)
		return nil
	}
	v, err := workflow.Render(s.Until, c.env())
	if err != nil {
		return err
	}
	at, err := timeOf(v)
	if err != nil {
		return err
	}
	n := at.UnixMilli()
	if at.After(time.UnixMilli(n)) { // never early
		n++
	}
	a.At = &n
	c.soon(at.Sub(clock.Now()))
	c.beginWaiting(a)
	return nil
}

// timeOf parses a time, given as a string or in milliseconds since 1970.
func timeOf(v json.RawMessage) (time.Time, error) {
	var text string
	if json.Unmarshal(v, &text) == nil {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || at.Year() < 1970 || at.Year() > 9000 {
			return at, fault.New(fault.Validation, "until must be a time between the years 1970 and 9000, such as 2027-01-31T08:00:00Z, got %q", text)
		}
		return at, nil
	}
	var n int64
	if json.Unmarshal(v, &n) != nil || n < 0 || n > 1<<47 {
		return time.Time{}, fault.New(fault.Validation, "until must be a time, as a string or in milliseconds since 1970, got %s", lease.Plain(string(v)))
	}
	return time.UnixMilli(n), nil
}

// await begins a step that waits for a signal, up to the step's timeout.
func (c *planner) await(s *workflow.Step, a *addStep) {
	if s.Timeout > 0 {
		a.Due, a.Wait = ms(s.Timeout), ms(s.Timeout)
		c.soon(s.Timeout)
	}
	c.wakes = append(c.wakes, Topic("")) // the signal may have been sent already
	c.beginWaiting(a)
}

func (c *planner) approve(s *workflow.Step, a *addStep) error {
	v, err := workflow.Render(s.Prompt, c.env())
	if err != nil {
		return err
	}
	var prompt string
	if json.Unmarshal(v, &prompt) != nil {
		prompt = string(v)
	}
	a.Input, _ = json.Marshal(map[string]string{"prompt": prompt})
	c.plan.Ask = &ask{Step: a.Name, Visit: a.Visit, Prompt: lease.Plain(prompt), Requesters: append([]string{}, s.Requesters...)}
	if s.Timeout > 0 {
		a.Due, a.Wait, c.plan.Ask.Within = ms(s.Timeout), ms(s.Timeout), ms(s.Timeout)
		c.soon(s.Timeout)
	}
	c.beginWaiting(a)
	return nil
}

// work begins a step that a handler executes.
func (c *planner) work(s *workflow.Step, a *addStep) (err error) {
	if a.Input, err = c.input(s); err != nil {
		return err
	}
	if err := strictjson.Check(a.Input); err != nil {
		return err
	}
	switch s.Type {
	case workflow.HTTP:
		a.Handler = CallHandler
	case workflow.Transition:
		a.Handler = TransitionHandler
	default:
		if workflow.ReservedHandler(s.Handler) { // a definition of an earlier version
			return fault.New(fault.Validation, "handler %q is reserved: use a step of the type http or transition", s.Handler)
		}
		a.Handler = s.Handler
	}
	if c.local != nil && c.added == nil {
		if h, mine := c.local(a.Handler); mine {
			h = h.of(s)
			a.Status, a.Held, a.Attempts, a.Safety, a.Unknown, a.Timeout = Running, true, 1, h.Safety, h.Unknown, *ms(h.Timeout)
			if h.Safety == opaque {
				a.Begun, c.plan.Body = 1, &body{Operation(c.run.ID, a.Name, a.Visit), 1, h.Unknown}
			}
			c.started(*a)
			held := *a
			c.added = &held
			return nil
		}
	}
	a.Status, a.Due = Pending, new(int64)
	c.wakes = append(c.wakes, Topic(a.Handler), Made)
	return nil
}
