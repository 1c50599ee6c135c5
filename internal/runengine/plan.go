package runengine

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/workflow"
)

// plan is the set of changes of a move, in the encoding that the statement reads.
type plan struct {
	Run     planRun   `json:"run"`
	Touch   *touch    `json:"touch,omitempty"`
	Add     []addStep `json:"add,omitempty"`
	Ask     *ask      `json:"ask,omitempty"`
	Lapse   bool      `json:"lapse"`            // the step's approval expires
	Signal  string    `json:"signal,omitempty"` // the id of the signal that the step takes
	Results []Result  `json:"results,omitempty"`
	Body    *body     `json:"body,omitempty"`
	Events  []event   `json:"events"`
	Saw     *saw      `json:"saw,omitempty"`
	Actor   string    `json:"actor,omitempty"` // of a command or resolution
	// Plain means that the plan involves no effects, signals or approvals, so that a faster statement applies it. (A plain
	// move, in plain.go, has no plan at all.)
	Plain bool `json:"plain"`
}

// saw is the state that a plan is based on and that may change while the run's version stays: the number
// of the step's effects that were begun and not known as not done, the number of those with an unknown
// outcome, and the operation that its transition fired.
type saw struct {
	Begun *int64  `json:"begun,omitempty"`
	Open  int64   `json:"open,omitempty"`
	Fired *string `json:"fired,omitempty"`
}

type planRun struct {
	Status string          `json:"status"`
	Step   string          `json:"step"`
	Visit  int64           `json:"visit"`
	State  json.RawMessage `json:"state,omitempty"`
	Memo   json.RawMessage `json:"memo,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  *string         `json:"error"`
	Cancel bool            `json:"cancel"`
	Over   bool            `json:"over"`
	Keep   *int64          `json:"keep"` // how long the ended run is stored, in ms; nil means forever
}

// touch is the change of the step that the move is about.
type touch struct {
	Status   string          `json:"status"`
	Output   json.RawMessage `json:"output,omitempty"`
	Error    *string         `json:"error"`
	Next     *string         `json:"next"`
	Attempts int64           `json:"attempts"`
	Failures int64           `json:"failures"`
	Crashes  int64           `json:"deaths"`
	Quiet    bool            `json:"quiet"`
	Lost     int64           `json:"lost"`
	Lease    string          `json:"hold"` // take, keep, drop
	// When sets when the step is due: none (not due), in (after Ms), keep (unchanged), deadline (at its deadline). In a
	// paused run a step is not due, and stores when it would be: park stores its due time, parkin stores now plus Ms,
	// and unpark makes the stored time the due time again.
	When      string  `json:"when"`
	Ms        int64   `json:"ms"`
	Uncertain bool    `json:"uncertain"`
	Over      bool    `json:"over"`
	Clear     bool    `json:"clear"` // clears Step.Fired
	Safety    *string `json:"safety,omitempty"`
	Unknown   *string `json:"unknown,omitempty"`
	Timeout   *int64  `json:"timeout,omitempty"` // in ms
}

// addStep is a step that begins.
type addStep struct {
	Name     string          `json:"name"`
	Visit    int64           `json:"visit"`
	N        int64           `json:"n"`
	Type     string          `json:"type"`
	Handler  string          `json:"handler"`
	Status   string          `json:"status"`
	Input    json.RawMessage `json:"input"`
	Output   json.RawMessage `json:"output,omitempty"`
	Error    *string         `json:"error,omitempty"`
	Next     *string         `json:"next,omitempty"`
	Attempts int64           `json:"attempts"`
	Timeout  int64           `json:"timeout"`
	Held     bool            `json:"held"`           // leased from the start
	Due      *int64          `json:"due,omitempty"`  // ms from now
	At       *int64          `json:"at,omitempty"`   // when it is due, ms since 1970
	Wait     *int64          `json:"wait,omitempty"` // the deadline, ms from now
	Signal   *string         `json:"signal,omitempty"`
	Safety   string          `json:"safety"`
	Unknown  string          `json:"unknown"`
	Begun    int64           `json:"begun"`
	Over     bool            `json:"over"`
}

// body is an opaque body that begins. As a whole it is one effect.
type body struct {
	Operation string `json:"operation"`
	Epoch     int64  `json:"epoch"`
	Policy    string `json:"policy"`
}

// ask is a new approval.
type ask struct {
	Step       string   `json:"step"`
	Visit      int64    `json:"visit"`
	Prompt     string   `json:"prompt"`
	Requesters []string `json:"requesters"`
	Within     *int64   `json:"within,omitempty"` // ms
}

// Result is the known outcome of an effect: done, with its result, or notDone.
type Result struct {
	Name    string          `json:"n"`
	Ordinal int             `json:"o"`
	State   string          `json:"s"`
	Result  json.RawMessage `json:"r,omitempty"`
}

type event struct {
	Name string         `json:"name"`
	Data map[string]any `json:"data"`
}

// Limits of runs.
const (
	// MaxVisits limits the visits of all steps of a run, so that an endless loop ends.
	MaxVisits = 10_000
	// maxInstantSteps limits how many steps that end as soon as they begin are taken in one move.
	maxInstantSteps = 200
)

// The handlers of steps that a node executes itself.
const (
	CallHandler       = "$http"
	TransitionHandler = "$transition"
)

// Handled holds the options of a handler.
type Handled struct {
	Safety, Unknown string
	Timeout         time.Duration
	// Behind lets an idempotent step be recorded behind (behind.go).
	Behind bool
}

// LocalHandlers reports whether this node serves a handler and has capacity for a step now.
type LocalHandlers func(handler string) (Handled, bool)

// compiled is a definition with the steps that its expressions refer to.
type compiled struct {
	*workflow.Definition
	refs map[string]bool
	all  bool // they may refer to any step
}

func compile(def *workflow.Definition) *compiled {
	refs, all := def.Mentions()
	return &compiled{def, refs, all}
}

// planner builds a plan: it holds the state of a run and the changes decided so far.
type planner struct {
	def       *compiled
	run       Run
	step      Step
	memo      memo
	plan      plan
	how       string        // the required state of the step: held, died (its lease expired), due or "" (any)
	retention time.Duration // how long the run is stored after its end

	// local reports whether this node serves a handler and has capacity for a step, which is
	// then leased from the start.
	local func(handler string) (Handled, bool)
	wakes []string
	later time.Duration // the time until the next step becomes due
	added *addStep      // the step that is leased from the start
}

// spec returns the definition of the step.
func (c *planner) spec() *workflow.Step {
	if i := c.def.Find(c.step.Name); i >= 0 {
		return &c.def.Steps[i]
	}
	return &workflow.Step{Name: c.step.Name, Type: c.step.Type}
}

// following returns the step after a step.
func following(def *compiled, step string) string {
	if i := def.Find(step); i >= 0 {
		return def.After(i)
	}
	return workflow.End
}

// to moves the run to a status. A transition that the table does not allow is a bug in this package:
// it panics, and nothing is written.
func (c *planner) to(status string) {
	if status == c.run.Status {
		return
	}
	if !slices.Contains(RunTable[c.run.Status], status) {
		panic(fmt.Sprintf("runengine: invalid transition of a run from %s to %s", c.run.Status, status))
	}
	c.run.Status = status
}

// emit adds an event, with the run's status at that point.
func (c *planner) emit(name string, data map[string]any) {
	if data == nil {
		data = map[string]any{}
	}
	data["status"] = c.run.Status
	c.plan.Events = append(c.plan.Events, event{name, data})
}

func (c *planner) emitStep(name, step string, visit int64, data map[string]any) {
	if data == nil {
		data = map[string]any{}
	}
	data["step"], data["visit"] = step, visit
	c.emit(name, data)
}

// touch sets the change of the step.
func (c *planner) touch(status string, set func(*touch)) {
	if status != c.step.Status && !slices.Contains(StepTable[c.step.Status], status) {
		panic(fmt.Sprintf("runengine: invalid transition of a step from %s to %s", c.step.Status, status))
	}
	t := &touch{Status: status, Attempts: c.step.Attempts, Failures: c.step.Failures, Crashes: c.step.Crashes, Lost: c.step.Lost, Lease: "drop", When: "none",
		Over: status == Completed || status == Failed || status == Cancelled || status == Skipped, Error: maybe(c.step.Error)}
	if c.how == "held" { // its holder has responded
		t.Lost = 0
	}
	set(t)
	c.plan.Touch = t
	c.step.Status, c.step.Error = status, deref(t.Error)
}

func maybe(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func ms(d time.Duration) *int64 {
	n := int64(math.Ceil(float64(d) / float64(time.Millisecond)))
	return &n
}

// env returns the environment of expressions.
func (c *planner) env() workflow.Env {
	steps, _ := json.Marshal(c.memo.Steps)                                      // cannot fail: stored JSON
	run, _ := json.Marshal(map[string]string{"id": c.run.ID, "key": c.run.Key}) // cannot fail: strings
	return workflow.Env{Input: c.run.Input, State: c.run.State, Steps: steps, Run: run}
}

// remember stores the result of a step in the memo if an expression refers to it.
func (c *planner) remember(name, status string, visit int64, output json.RawMessage, failure string) {
	if status == Completed && len(output) > 0 && string(output) != "null" {
		c.memo.Last = output
	}
	if !c.def.all && !c.def.refs[name] {
		return
	}
	if c.memo.Steps == nil {
		c.memo.Steps = make(map[string]knownStep)
	}
	if was, ok := c.memo.Steps[name]; ok && was.Visit == visit && output == nil {
		output = was.Output
	}
	c.memo.Steps[name] = knownStep{status, visit, output, failure}
}

// wake moves a waiting run to running.
func (c *planner) wake() {
	if c.run.Status == Waiting {
		c.to(Running)
	}
}

func (c *planner) cancelled() {
	c.to(Cancelled)
	c.run.Error = ""
	c.emit("cancelled", nil)
}

// failed ends the run with the error of its step.
func (c *planner) failed() {
	c.to(Failed)
	c.run.Error = fmt.Sprintf("%s: %s", c.step.Name, c.step.Error)
	c.emit("failed", map[string]any{"step": c.step.Name, "error": c.run.Error})
}

// fault ends the run with an error that is not that of a step.
func (c *planner) fault(message string) {
	if c.run.Status == Pending {
		c.to(Running)
	}
	c.to(Failed)
	c.run.Error = message
	c.emit("failed", map[string]any{"error": message})
}

// soon makes this node poll again when something becomes due.
func (c *planner) soon(d time.Duration) {
	if c.later == 0 || d < c.later {
		c.later = max(d, time.Millisecond)
	}
}

// sawStep makes the plan apply only if no other effect was begun and no operation fired meanwhile.
func (c *planner) sawStep() {
	begun, fired := c.step.Begun, c.step.Fired
	c.plan.Saw = &saw{Begun: &begun, Fired: &fired}
}

// soonest returns when the next holder may take the step: at once, unless the run is paused.
func (c *planner) soonest() string {
	if c.run.Status == Paused && !c.run.CancelRequested {
		return "parkin"
	}
	return "in"
}

// finish completes the plan with the state of the run.
func (c *planner) finish() error {
	p := &c.plan
	p.Run.Status, p.Run.Step, p.Run.Visit, p.Run.Cancel = c.run.Status, c.run.Step, c.run.Visit, c.run.CancelRequested
	p.Run.Error, p.Run.Over = maybe(c.run.Error), Over(c.run.Status)
	if p.Run.Over && c.retention > 0 {
		p.Run.Keep = ms(c.retention)
	}
	memo, err := json.Marshal(c.memo)
	if err != nil {
		return err
	}
	p.Run.Memo = memo
	if p.Events == nil {
		p.Events = []event{}
	}
	p.Plain = p.Ask == nil && !p.Lapse && p.Signal == "" && len(p.Results) == 0 && p.Body == nil && (p.Saw == nil || p.Saw.Open == 0) &&
		!slices.ContainsFunc(p.Add, func(a addStep) bool { return a.Signal != nil })
	return nil
}

// encoded encodes the finished plan.
func (c *planner) encoded() (string, error) {
	text, err := json.Marshal(&c.plan)
	return string(text), err
}

// names returns the names of the events that the plan writes.
func (c *planner) names() []string {
	all := make([]string, len(c.plan.Events))
	for i, e := range c.plan.Events {
		all[i] = e.Name
	}
	return all
}
