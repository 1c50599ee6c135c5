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

// How steps end, and the next begin.

// completed ends the step well, and goes on.
func (c *planner) completed(output, patch json.RawMessage, target string) error {
	if len(patch) > 0 {
		state, err := strictjson.Merge(c.run.State, patch)
		if err != nil {
			return err
		}
		c.run.State, c.plan.Run.State = state, state
	}
	c.touch(Completed, func(t *touch) { t.Output, t.Error, t.Next = output, nil, &target })
	c.remember(c.step.Name, Completed, c.step.Visit, output, "")
	c.awake()
	c.emitStep("stepCompleted", c.step.Name, c.step.Visit, map[string]any{"next": target})
	c.goOn(target)
	return nil
}

// lost ends the step badly, for good, and goes on where the definition says.
func (c *planner) lost(message, target string) {
	if target == "" {
		target = c.spec().OnFailure
	}
	c.touch(Failed, func(t *touch) { t.Error, t.Next = &message, &target })
	c.remember(c.step.Name, Failed, c.step.Visit, nil, message)
	if target != "" || c.run.CancelRequested {
		c.awake()
	}
	c.emitStep("stepFailed", c.step.Name, c.step.Visit, map[string]any{"error": message})
	c.goOn(target)
}

// goOn goes on with a step, or to the end; unless the run is paused, or is to be cancelled.
func (c *planner) goOn(target string) {
	switch {
	case c.run.CancelRequested:
		c.cancelled()
	case c.run.Status == Paused: // it is noted where to
	case target == "":
		c.failed()
	default:
		c.enter(target)
	}
}

// enter goes on with a step: through those that need nobody, to one that somebody does or
// that something is waited for at, or to the end.
func (c *planner) enter(target string) {
	for range spins {
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
	c.fault(fmt.Sprintf("it has taken %d steps without one that does anything", spins))
}

// visit begins a step, and says where to go on if that is known already.
func (c *planner) visit(name string) (target string, more bool) {
	i := c.def.Find(name)
	if i < 0 || c.memo.N >= MaxVisits {
		message := fmt.Sprintf("it has taken %d steps, which is all that a run may", MaxVisits)
		if i < 0 {
			message = fmt.Sprintf("the definition %s has no step %q", c.def.ID(), name)
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
		return c.spoilt(s, a, err)
	}
	c.plan.Add = append(c.plan.Add, a)
	return target, target != ""
}

// spoilt is a step that cannot begin: what the definition says of it cannot be worked out.
func (c *planner) spoilt(s *workflow.Step, a addStep, err error) (target string, more bool) {
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

// started tells that a step begins; the run does not wait any more.
func (c *planner) started(a addStep) {
	c.to(Running)
	c.emitStep("stepStarted", a.Name, a.Visit, nil)
}

// begin works out how a step begins. Where it is over at once, it says where to go on.
func (c *planner) begin(s *workflow.Step, a *addStep) (target string, err error) {
	switch s.Type {
	case workflow.Condition:
		return c.decide(s, a)
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

func (c *planner) decide(s *workflow.Step, a *addStep) (target string, err error) {
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
	a.Output, _ = json.Marshal(map[string]bool{"result": yes}) // of a bool, it does not fail
	c.started(*a)
	c.emitStep("stepCompleted", a.Name, a.Visit, map[string]any{"result": yes})
	last := c.memo.Last
	c.remember(a.Name, Completed, a.Visit, a.Output, "")
	c.memo.Last = last
	return target, nil
}

// rest is a step that waits from the start.
func (c *planner) rest(a *addStep) {
	a.Status = Waiting
	c.started(*a)
	c.to(Waiting)
	c.emitStep("stepWaiting", a.Name, a.Visit, nil)
}

func (c *planner) sleep(s *workflow.Step, a *addStep) error {
	if len(s.Until) == 0 {
		a.Due = ms(s.Duration)
		c.soon(s.Duration)
		c.rest(a)
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
	c.rest(a)
	return nil
}

// timeOf reads a time: a text, or milliseconds since 1970.
func timeOf(v json.RawMessage) (time.Time, error) {
	var text string
	if json.Unmarshal(v, &text) == nil {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || at.Year() < 1970 || at.Year() > 9000 {
			return at, fault.New(fault.Validation, "until is a time such as 2027-01-31T08:00:00Z: %q", text)
		}
		return at, nil
	}
	var n int64
	if json.Unmarshal(v, &n) != nil || n < 0 || n > 1<<47 {
		return time.Time{}, fault.New(fault.Validation, "until is a time, as a text or in milliseconds since 1970: %s", lease.Plain(string(v)))
	}
	return time.UnixMilli(n), nil
}

// await waits for somebody, for as long as the step says.
func (c *planner) await(s *workflow.Step, a *addStep) {
	if s.Timeout > 0 {
		a.Due, a.Wait = ms(s.Timeout), ms(s.Timeout)
		c.soon(s.Timeout)
	}
	c.wakes = append(c.wakes, Topic("")) // it may have come before
	c.rest(a)
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
	c.rest(a)
	return nil
}

// work is a step that somebody does.
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
