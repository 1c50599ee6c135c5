package runs

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/definitions"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/internal/transition"
)

// How steps begin.

// enter goes on with a step: through those that need nobody, to one that somebody does or
// that something is waited for at, or to the end.
func (c *course) enter(target string) {
	for range spins {
		if target == definitions.End {
			c.to(Completed)
			c.plan.Run.Output = c.memo.Last
			c.run.Output = c.memo.Last
			c.tell("completed", nil)
			return
		}
		var more bool
		if target, more = c.visit(target); !more {
			return
		}
	}
	c.fault(fmt.Sprintf("it has taken %d steps without one that does anything", spins))
}

// fault ends the run because of itself.
func (c *course) fault(message string) {
	if c.run.Status == Pending {
		c.to(Running)
	}
	c.to(Failed)
	c.run.Error = message
	c.tell("failed", map[string]any{"error": message})
}

// visit begins a step, and says where to go on if that is known already.
func (c *course) visit(name string) (target string, more bool) {
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
	a := addStep{Name: name, Visit: c.memo.Visits[name], N: c.memo.N, Type: string(s.Type), Input: json.RawMessage("null"), Timeout: hold.Timeout.Milliseconds()}
	c.run.Step, c.run.Visit = name, a.Visit
	target, err := c.begin(s, &a)
	if err != nil {
		return c.spoilt(s, a, err)
	}
	c.plan.Add = append(c.plan.Add, a)
	return target, target != ""
}

// spoilt is a step that cannot begin: what the definition says of it cannot be worked out.
func (c *course) spoilt(s *definitions.Step, a addStep, err error) (target string, more bool) {
	message := hold.Plain(err.Error())
	a.Status, a.Error, a.Next, a.Over, a.Held, a.Due, a.At, a.Wait, a.Signal, a.Handler = Failed, &message, &s.OnFailure, true, false, nil, nil, nil, nil, ""
	c.started(a)
	c.tellStep("stepFailed", a.Name, a.Visit, map[string]any{"error": message})
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
func (c *course) started(a addStep) {
	c.to(Running)
	c.tellStep("stepStarted", a.Name, a.Visit, nil)
}

// begin works out how a step begins. Where it is over at once, it says where to go on.
func (c *course) begin(s *definitions.Step, a *addStep) (target string, err error) {
	switch s.Type {
	case definitions.Condition:
		return c.decide(s, a)
	case definitions.Wait:
		return "", c.sleep(s, a)
	case definitions.Event:
		a.Signal = &s.Signal
		c.await(s, a)
		return "", nil
	case definitions.Approval:
		return "", c.approve(s, a)
	}
	return "", c.work(s, a)
}

func (c *course) decide(s *definitions.Step, a *addStep) (target string, err error) {
	x, err := definitions.Compile(s.If)
	if err != nil {
		return "", err
	}
	yes, err := x.True(c.env())
	if err != nil {
		return "", err
	}
	following := c.def.After(c.def.Find(s.Name))
	if target = s.Else; yes {
		target = s.Then
	}
	if target == "" {
		target = following
	}
	a.Status, a.Next, a.Over = Completed, &target, true
	a.Output, _ = json.Marshal(map[string]bool{"result": yes}) // of a bool, it does not fail
	c.started(*a)
	c.tellStep("stepCompleted", a.Name, a.Visit, map[string]any{"result": yes})
	last := c.memo.Last
	c.remember(a.Name, Completed, a.Visit, a.Output, "")
	c.memo.Last = last
	return target, nil
}

// rest is a step that waits from the start.
func (c *course) rest(a *addStep) {
	a.Status = Waiting
	c.started(*a)
	c.to(Waiting)
	c.tellStep("stepWaiting", a.Name, a.Visit, nil)
}

func (c *course) sleep(s *definitions.Step, a *addStep) error {
	if len(s.Until) == 0 {
		a.Due = ms(s.Duration)
		c.soon(s.Duration)
		c.rest(a)
		return nil
	}
	v, err := definitions.Render(s.Until, c.env())
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
		return time.Time{}, fault.New(fault.Validation, "until is a time, as a text or in milliseconds since 1970: %s", hold.Plain(string(v)))
	}
	return time.UnixMilli(n), nil
}

// await waits for somebody, for as long as the step says.
func (c *course) await(s *definitions.Step, a *addStep) {
	if s.Timeout > 0 {
		a.Due, a.Wait = ms(s.Timeout), ms(s.Timeout)
		c.soon(s.Timeout)
	}
	c.wakes = append(c.wakes, Topic("")) // it may have come before
	c.rest(a)
}

func (c *course) approve(s *definitions.Step, a *addStep) error {
	v, err := definitions.Render(s.Prompt, c.env())
	if err != nil {
		return err
	}
	var prompt string
	if json.Unmarshal(v, &prompt) != nil {
		prompt = string(v)
	}
	a.Input, _ = json.Marshal(map[string]string{"prompt": prompt})
	c.plan.Ask = &ask{Step: a.Name, Visit: a.Visit, Prompt: hold.Plain(prompt), Requesters: append([]string{}, s.Requesters...)}
	if s.Timeout > 0 {
		a.Due, a.Wait, c.plan.Ask.Within = ms(s.Timeout), ms(s.Timeout), ms(s.Timeout)
		c.soon(s.Timeout)
	}
	c.rest(a)
	return nil
}

// work is a step that somebody does.
func (c *course) work(s *definitions.Step, a *addStep) (err error) {
	if a.Input, err = c.input(s); err != nil {
		return err
	}
	if err := strict.Check(a.Input); err != nil {
		return err
	}
	switch s.Type {
	case definitions.HTTP:
		a.Handler = CallHandler
	case definitions.Transition:
		a.Handler = TransitionHandler
	default:
		a.Handler = s.Handler
	}
	if c.mine != nil && c.added == nil {
		if h, mine := c.mine(a.Handler); mine {
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

const opaque = "opaque"

// grace is how much longer a hold lasts than its body may take: a body that was told to stop
// can still say so.
const grace = 5 * time.Second

// of is what holds of a handler in a step: the step may say otherwise.
func (h Handled) of(s *definitions.Step) Handled {
	switch s.Type {
	case definitions.HTTP:
		h.Safety = callSafety(s.Method)
	case definitions.Transition:
		h.Safety = "idempotent"
	}
	h.Safety, h.Unknown = either(s.Safety, h.Safety), either(s.OnUnknown, either(h.Unknown, "hold"))
	for _, d := range []time.Duration{s.Timeout, h.Timeout, hold.Timeout} {
		if d > 0 {
			h.Timeout = d + grace
			break
		}
	}
	return h
}

// callSafety is what a call promises that says nothing: to repeat one that only reads, or
// that puts something in its place, does no harm.
func callSafety(method string) string {
	if method == "" || slices.Contains([]string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}, method) {
		return "idempotent"
	}
	return "opaque"
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// input is what a step is given to work with.
func (c *course) input(s *definitions.Step) (json.RawMessage, error) {
	switch {
	case s.Type == definitions.HTTP:
		return c.call(s)
	case s.Type == definitions.Transition:
		return c.transition(s)
	case len(s.Input) == 0:
		return c.run.Input, nil
	}
	return definitions.Render(s.Input, c.env())
}

// Call is the input of a step that calls a URL.
type Call struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
}

func (c *course) call(s *definitions.Step) (json.RawMessage, error) {
	out := Call{Method: either(s.Method, "GET")}
	var err error
	if out.URL, err = c.text("url", s.URL); err != nil {
		return nil, err
	}
	for name, v := range s.Headers {
		if out.Headers == nil {
			out.Headers = make(map[string]string)
		}
		if out.Headers[name], err = c.text("the header "+name, v); err != nil {
			return nil, err
		}
	}
	if len(s.Body) > 0 {
		if out.Body, err = definitions.Render(s.Body, c.env()); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

// text works out a value that is to be a text; a number is taken for one.
func (c *course) text(what string, v definitions.Value) (string, error) {
	out, err := definitions.Render(v, c.env())
	if err != nil {
		return "", err
	}
	var s string
	if json.Unmarshal(out, &s) == nil && s != "" {
		return s, nil
	}
	var n json.Number
	if json.Unmarshal(out, &n) == nil && n != "" {
		return n.String(), nil
	}
	return "", fault.New(fault.Validation, "%s is to be a text, and came out as %s", what, hold.Plain(string(out)))
}

func (c *course) transition(s *definitions.Step) (json.RawMessage, error) {
	entity, err := c.text("entity", s.Entity)
	if err != nil {
		return nil, err
	}
	out := transition.Request{Lifecycle: s.Lifecycle, Entity: entity, StepKey: s.StepKey, Requester: s.Requester}
	if len(s.Input) > 0 {
		if out.Input, err = definitions.Render(s.Input, c.env()); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}
