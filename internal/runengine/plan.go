package runengine

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/workflow"
)

// plan is what a move changes, as the statement reads it.
type plan struct {
	Run     planRun   `json:"run"`
	Touch   *touch    `json:"touch,omitempty"`
	Add     []addStep `json:"add,omitempty"`
	Ask     *ask      `json:"ask,omitempty"`
	Lapse   bool      `json:"lapse"`
	Signal  string    `json:"signal,omitempty"`
	Results []Result  `json:"results,omitempty"`
	Body    *body     `json:"body,omitempty"`
	Events  []event   `json:"events"`
	Saw     *saw      `json:"saw,omitempty"`
	// Plain says that it has nothing to do with effects, signals and approvals.
	Plain bool `json:"plain"`
}

// saw is what a plan was made by that may change while the run's version stays: how many effects
// of the step were begun and are not known to have come to nothing, of how many nothing is known,
// if of any, and what its transition fired.
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
	Keep   *int64          `json:"keep"` // in ms
}

// touch is what becomes of the step that the move is about.
type touch struct {
	Status    string          `json:"status"`
	Output    json.RawMessage `json:"output,omitempty"`
	Error     *string         `json:"error"`
	Next      *string         `json:"next"`
	Attempts  int64           `json:"attempts"`
	Failures  int64           `json:"failures"`
	Crashes   int64           `json:"deaths"`
	Quiet     bool            `json:"quiet"`
	Lost      int64           `json:"lost"`
	Lease     string          `json:"hold"` // take, keep, drop
	When      string          `json:"when"` // none, in, keep, deadline, park, parkin, unpark
	Ms        int64           `json:"ms"`
	Uncertain bool            `json:"uncertain"`
	Over      bool            `json:"over"`
	Clear     bool            `json:"clear"` // forget what was fired
	Safety    *string         `json:"safety,omitempty"`
	Unknown   *string         `json:"unknown,omitempty"`
	Timeout   *int64          `json:"timeout,omitempty"` // in ms
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
	Held     bool            `json:"held"`
	Due      *int64          `json:"due,omitempty"`  // ms from now
	At       *int64          `json:"at,omitempty"`   // ms since 1970
	Wait     *int64          `json:"wait,omitempty"` // the deadline, ms from now
	Signal   *string         `json:"signal,omitempty"`
	Safety   string          `json:"safety"`
	Unknown  string          `json:"unknown"`
	Begun    int64           `json:"begun"`
	Over     bool            `json:"over"`
}

// body is an opaque body that begins: as a whole, it is an effect.
type body struct {
	Operation string `json:"operation"`
	Epoch     int64  `json:"epoch"`
	Policy    string `json:"policy"`
}

// ask is an approval to be decided.
type ask struct {
	Step       string   `json:"step"`
	Visit      int64    `json:"visit"`
	Prompt     string   `json:"prompt"`
	Requesters []string `json:"requesters"`
	Within     *int64   `json:"within,omitempty"` // ms
}

// Result is what is known of an effect: done, with its result, or notDone.
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
	// MaxVisits is how many steps a run takes at the most: one that goes round in circles
	// ends.
	MaxVisits = 10_000
	// spins is how many steps that need nobody are taken in one move.
	spins = 200
)

// The handlers of steps that a node does itself.
const (
	CallHandler       = "$http"
	TransitionHandler = "$transition"
)

// Handled is what is known of a handler.
type Handled struct {
	Safety, Unknown string
	Timeout         time.Duration
}

// LocalHandlers says of a handler that this node does its steps, and has room for one now.
type LocalHandlers func(handler string) (Handled, bool)

// compiled is a definition, and which of its steps its expressions look at.
type compiled struct {
	*workflow.Definition
	looks map[string]bool
	all   bool
}

func compile(def *workflow.Definition) *compiled {
	looks, all := def.Mentions()
	return &compiled{def, looks, all}
}

// planner is a plan in the making: how a run stands, and what has been decided so far.
type planner struct {
	def       *compiled
	run       Run
	step      Step
	memo      memo
	plan      plan
	how       string        // how the step must be: held, died, due or ""
	retention time.Duration // how long the run is kept beyond its end

	// local says of a handler that this node does its steps, and has room for one: it is
	// then held from the start.
	local func(handler string) (Handled, bool)
	wakes []string
	later time.Duration // when there is something to do that is not due yet
	added *addStep      // the step that is held from the start
}

// spec is what the definition says of the step.
func (c *planner) spec() *workflow.Step {
	if i := c.def.Find(c.step.Name); i >= 0 {
		return &c.def.Steps[i]
	}
	return &workflow.Step{Name: c.step.Name, Type: c.step.Type}
}

// following is where a run goes on behind a step.
func following(def *compiled, step string) string {
	if i := def.Find(step); i >= 0 {
		return def.After(i)
	}
	return workflow.End
}

// to moves the run to a status. The table says which may follow which: anything else is a
// mistake in this package, and nothing is written.
func (c *planner) to(status string) {
	if status == c.run.Status {
		return
	}
	if !slices.Contains(RunTable[c.run.Status], status) {
		panic(fmt.Sprintf("runs: a run goes from %s to %s", c.run.Status, status))
	}
	c.run.Status = status
}

// emit adds an event. Each has what the run is then.
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

// touch sets what becomes of the step.
func (c *planner) touch(status string, set func(*touch)) {
	if status != c.step.Status && !slices.Contains(StepTable[c.step.Status], status) {
		panic(fmt.Sprintf("runs: a step goes from %s to %s", c.step.Status, status))
	}
	t := &touch{Status: status, Attempts: c.step.Attempts, Failures: c.step.Failures, Crashes: c.step.Crashes, Lost: c.step.Lost, Lease: "drop", When: "none",
		Over: status == Completed || status == Failed || status == Cancelled || status == Skipped, Error: maybe(c.step.Error)}
	if c.how == "held" { // its holder was heard of
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

// env is what expressions see.
func (c *planner) env() workflow.Env {
	steps, _ := json.Marshal(c.memo.Steps)                                      // of ours, it does not fail
	run, _ := json.Marshal(map[string]string{"id": c.run.ID, "key": c.run.Key}) // of strings
	return workflow.Env{Input: c.run.Input, State: c.run.State, Steps: steps, Run: run}
}

// remember keeps what came out of a step, if an expression looks at it.
func (c *planner) remember(name, status string, visit int64, output json.RawMessage, failure string) {
	if status == Completed && len(output) > 0 && string(output) != "null" {
		c.memo.Last = output
	}
	if !c.def.all && !c.def.looks[name] {
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

// awake has a run go on that waited.
func (c *planner) awake() {
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

// fault ends the run because of itself.
func (c *planner) fault(message string) {
	if c.run.Status == Pending {
		c.to(Running)
	}
	c.to(Failed)
	c.run.Error = message
	c.emit("failed", map[string]any{"error": message})
}

// soon has this node look again when something is due.
func (c *planner) soon(d time.Duration) {
	if c.later == 0 || d < c.later {
		c.later = max(d, time.Millisecond)
	}
}

// sawStep has the plan hold only while nothing more is begun or fired.
func (c *planner) sawStep() {
	begun, fired := c.step.Begun, c.step.Fired
	c.plan.Saw = &saw{Begun: &begun, Fired: &fired}
}

// soonest is when the next may take the step: at once, unless the run is paused.
func (c *planner) soonest() string {
	if c.run.Status == Paused && !c.run.CancelRequested {
		return "parkin"
	}
	return "in"
}

// sealed writes the plan down.
func (c *planner) sealed() (string, error) {
	p := &c.plan
	p.Run.Status, p.Run.Step, p.Run.Visit, p.Run.Cancel = c.run.Status, c.run.Step, c.run.Visit, c.run.CancelRequested
	p.Run.Error, p.Run.Over = maybe(c.run.Error), Over(c.run.Status)
	if p.Run.Over && c.retention > 0 {
		p.Run.Keep = ms(c.retention)
	}
	memo, err := json.Marshal(c.memo)
	if err != nil {
		return "", err
	}
	p.Run.Memo = memo
	if p.Events == nil {
		p.Events = []event{}
	}
	p.Plain = p.Ask == nil && !p.Lapse && p.Signal == "" && len(p.Results) == 0 && p.Body == nil && (p.Saw == nil || p.Saw.Open == 0) &&
		!slices.ContainsFunc(p.Add, func(a addStep) bool { return a.Signal != nil })
	text, err := json.Marshal(p)
	return string(text), err
}

// names are the events that the plan writes.
func (c *planner) names() []string {
	all := make([]string, len(c.plan.Events))
	for i, e := range c.plan.Events {
		all[i] = e.Name
	}
	return all
}
