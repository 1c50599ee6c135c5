package runengine

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Two moves of a run are the most frequent: the run starts at its first step, and a step completes and the next step
// begins or the run ends. They have their own verbs, whose statements take plain arguments instead of a plan. A third verb
// records several steps that were recorded behind (behind.go). A plan
// that involves anything else (a journaled effect, a signal, an approval, a wait, a condition, a pause, a failure) is
// applied by runs.start or runs.apply_plan. TestPlainMovesDoWhatPlansDo compares plain moves with plans.

// plainMove has the arguments that both verbs share: the state of the run after the move, the step that begins and the
// events.
type plainMove struct {
	run    string        `arg:"run"`
	holder string        `arg:"holder"`
	lease  time.Duration `arg:"lease"`
	status string        `arg:"status"`
	state  string        `arg:"state,null"`
	memo   string        `arg:"memo"`

	begin      string `arg:"begin,null"` // the step that begins; "" at the end of the run
	beginVisit int64  `arg:"begin_visit,null"`
	n          int64  `arg:"n"`
	kind       string `arg:"type"`
	handler    string `arg:"handler"`
	beginInput string `arg:"begin_input,null"`
	timeout    int64  `arg:"timeout"`
	safety     string `arg:"safety"`
	unknown    string `arg:"unknown"`
	held       bool   `arg:"held"`
	policy     string `arg:"policy,null"` // if the step is opaque: what to do if the outcome of its body is unknown

	event     string `arg:"event"`
	data      string `arg:"data"`
	thenEvent string `arg:"then_event,null"`
	thenData  string `arg:"then_data,null"`

	more  []string // the names of the events between event and thenEvent
	wakes []string
}

type startAtStepArgs struct {
	plainMove
	definition string `arg:"definition"`
	key        string `arg:"key,null"`
	input      string `arg:"input"`
}

type finishStepArgs struct {
	plainMove
	version int64  `arg:"version"`
	step    string `arg:"step"`
	visit   int64  `arg:"visit"`
	epoch   int64  `arg:"epoch"`
	output  string `arg:"output"`
	next    string `arg:"next"`
	result  string `arg:"result,null"` // the run's output
	ended   bool   `arg:"ended"`
	keep    *int64 `arg:"keep"`
}

type finishOpaqueStepArgs struct {
	finishStepArgs
	acted bool `arg:"acted"` // the step that ends is opaque, and its body is done
}

// finishStepsArgs are the arguments that complete a step and the steps that the run went through after it. The embedded
// arguments are those of the first step, and the state of the run and the step that begins after the last.
type finishStepsArgs struct {
	finishStepArgs
	passed  int64  `arg:"passed"` // the number of steps
	atStep  string `arg:"at_step"`
	atVisit int64  `arg:"at_visit"`
	steps   []passedStep
}

// passedStep is a step that begins and completes in the same record.
type passedStep struct {
	nth     int64  `arg:"nth"`
	name    string `arg:"p_name"`
	visit   int64  `arg:"p_visit"`
	n       int64  `arg:"p_n"`
	kind    string `arg:"p_type"`
	handler string `arg:"p_handler"`
	input   string `arg:"p_input,null"`
	output  string `arg:"p_output"`
	next    string `arg:"p_next"`
	timeout int64  `arg:"p_timeout"`
	safety  string `arg:"p_safety"`
	unknown string `arg:"p_unknown"`
	began   string `arg:"p_began"` // the data of its two events
	ended   string `arg:"p_ended"`
}

// joined makes one record of the ends of consecutive steps, each of which began the next.
func joined(all []finishStepArgs) finishStepsArgs {
	first, last := &all[0], &all[len(all)-1]
	a := finishStepsArgs{finishStepArgs: *last, passed: int64(len(all) - 1)}
	a.version, a.step, a.visit, a.epoch, a.output, a.next, a.event, a.data = first.version, first.step, first.visit, first.epoch, first.output, first.next, first.event, first.data
	a.more, a.wakes = []string{"stepStarted", "stepCompleted"}, slices.Clone(last.wakes)
	for i := range all[1:] {
		b, e := &all[i], &all[i+1] // b begins the step, e ends it
		a.steps = append(a.steps, passedStep{nth: int64(i), name: b.begin, visit: b.beginVisit, n: b.n, kind: b.kind, handler: b.handler, input: b.beginInput, output: e.output, next: e.next,
			timeout: b.timeout, safety: b.safety, unknown: b.unknown, began: b.thenData, ended: e.data})
		a.wakes = append(a.wakes, b.wakes...)
	}
	at := all[len(all)-2]
	if last.begin != "" {
		at = *last
	}
	a.state, a.atStep, a.atVisit = latestState(all), at.begin, at.beginVisit
	return a
}

// latestState returns the last state that a step of a record has set, or "".
func latestState(all []finishStepArgs) string {
	for _, a := range slices.Backward(all) {
		if a.state != "" {
			return a.state
		}
	}
	return ""
}

// Opaque steps have their own verbs. The statements of the other verbs are faster, because they have no parts for the
// bodies of opaque steps.
var (
	startAtStepVerb       = newStartAtStep("runs.start_at_step")
	startAtOpaqueStepVerb = newStartAtStep("runs.start_at_opaque_step")
	finishStepVerb        = newFinishStep("runs.finish_step", func(a *finishStepArgs) *finishStepArgs { return a })
	finishOpaqueStepVerb  = newFinishStep("runs.finish_opaque_step", func(a *finishOpaqueStepArgs) *finishStepArgs { return &a.finishStepArgs })
	finishStepsVerb       = finishing(store.VerbOfRows(finishDecl("runs.finish_steps"), func(a finishStepsArgs) []string { return []string{row(a.run)} },
		func(a *finishStepsArgs) []passedStep { return a.steps }, scanMoved), func(a *finishStepsArgs) *finishStepArgs { return &a.finishStepArgs })
)

func newStartAtStep(name string) *store.Verb[startAtStepArgs, started] {
	return store.VerbOf(store.Decl{Name: name, Group: true, Events: store.HistoryEvents},
		func(a startAtStepArgs) []string { return startRows(a.run, a.key) },
		scanStarted).
		RecoverWith(func(a startAtStepArgs, k store.CommitProof) started { return started{true, a.run, a.recovered(k)} }).
		Wakes(func(a startAtStepArgs) []string { return woken(a.run, a.wakes, false) }).
		Emits(func(a startAtStepArgs) store.Emission { return a.emits() })
}

func newFinishStep[A any](name string, of func(*A) *finishStepArgs) *store.Verb[A, moved] {
	return finishing(store.VerbOf(finishDecl(name), func(a A) []string { return []string{row(of(&a).run)} }, scanMoved), of)
}

func finishDecl(name string) store.Decl {
	return store.Decl{Name: name, Group: true, Events: store.HistoryEvents}
}

func finishing[A any](v *store.Verb[A, moved], of func(*A) *finishStepArgs) *store.Verb[A, moved] {
	return v.RecoverWith(func(a A, k store.CommitProof) moved { return of(&a).recovered(k) }).
		Wakes(func(a A) []string { f := of(&a); return woken(f.run, f.wakes, f.ended) }).
		Emits(func(a A) store.Emission { return of(&a).emits() })
}

// recovered rebuilds the result of a move from its last event.
func (a *plainMove) recovered(k store.CommitProof) moved {
	m := moved{applied: true, version: k.Version, now: k.At}
	if a.held {
		m.until = k.At.Add(min(a.lease, time.Duration(a.timeout)*time.Millisecond))
	}
	return m
}

func (a *plainMove) emits() store.Emission {
	names := append([]string{a.event}, a.more...)
	if a.thenEvent != "" {
		names = append(names, a.thenEvent)
	}
	return emits(a.run, names)
}

// plainMove returns the arguments that the verbs without a plan share. ok is false if the plan involves more than a step
// that begins.
func (c *planner) plainMove(by Taker) (a plainMove, ok bool) {
	p := &c.plan
	if p.Ask != nil || p.Lapse || p.Signal != "" || p.Saw != nil || p.Run.Error != nil || p.Run.Cancel || len(p.Add) > 1 || len(p.Events) < 1 || len(p.Events) > 2 {
		return a, false
	}
	a = plainMove{run: c.run.ID, holder: by.Holder, lease: by.Lease, status: p.Run.Status, state: string(p.Run.State), memo: string(p.Run.Memo), wakes: c.wakes}
	if len(p.Add) == 1 {
		s := &p.Add[0]
		pending := s.Status == Pending && !s.Held && s.Attempts == 0 && s.Due != nil && *s.Due == 0
		running := s.Status == Running && s.Held && s.Attempts == 1 && s.Due == nil
		if !pending && !running || s.Output != nil || s.Error != nil || s.Next != nil || s.At != nil || s.Wait != nil || s.Signal != nil || s.Over {
			return a, false
		}
		a.begin, a.beginVisit, a.n, a.kind, a.handler, a.beginInput = s.Name, s.Visit, s.N, s.Type, s.Handler, string(s.Input)
		a.timeout, a.safety, a.unknown, a.held = s.Timeout, s.Safety, s.Unknown, s.Held
		if b := p.Body; b != nil && b.Operation == Operation(c.run.ID, s.Name, s.Visit) && b.Epoch == 1 {
			a.policy = b.Policy
		}
		if s.Begun != store.Bit(a.policy != "") {
			return a, false
		}
	}
	if p.Body != nil && a.policy == "" {
		return a, false
	}
	a.event, a.data = p.Events[0].encoded()
	if len(p.Events) == 2 {
		a.thenEvent, a.thenData = p.Events[1].encoded()
	}
	return a, true
}

func (e event) encoded() (name, data string) {
	text, _ := json.Marshal(e.Data) // cannot fail: strings, numbers and booleans
	return e.Name, string(text)
}

// startsAtStep returns the arguments of a start without a plan. ok is false if the start requires a plan.
func (c *planner) startsAtStep(s Start) (a startAtStepArgs, ok bool) {
	a.plainMove, ok = c.plainMove(Taker{Holder: s.Holder, Lease: s.Lease})
	a.definition, a.key, a.input = c.run.Definition, s.Key, string(s.Input)
	return a, ok && a.begin != "" && c.plan.Touch == nil && len(c.plan.Results) == 0 && len(c.plan.Run.State) > 0 && len(c.plan.Run.Output) == 0
}

// finishesStep returns the arguments that complete a step without a plan. ok is false if this requires a plan.
func (c *planner) finishesStep(l *ClaimedStep, by Taker) (a finishOpaqueStepArgs, ok bool) {
	t, r := c.plan.Touch, &c.plan.Run
	if c.how != "held" || t == nil || t.Status != Completed || t.Lease != "drop" || t.When != "none" || t.Error != nil || t.Next == nil || t.Output == nil ||
		t.Attempts != l.Step.Attempts || t.Failures != l.Step.Failures || t.Crashes != l.Step.Crashes || t.Lost != 0 || t.Quiet || t.Uncertain || t.Clear ||
		t.Safety != nil || t.Unknown != nil || t.Timeout != nil || r.Status != Running && r.Status != Completed {
		return a, false
	}
	a.plainMove, ok = c.plainMove(by)
	a.version, a.step, a.visit, a.epoch = l.Run.Version, l.Step.Name, l.Step.Visit, l.Step.Epoch
	a.output, a.next, a.result, a.ended, a.keep = string(t.Output), *t.Next, string(r.Output), r.Over, r.Keep
	switch results := c.plan.Results; {
	case len(results) == 0:
	case len(results) == 1 && results[0].Name == effects.Body && results[0].Ordinal == 0 && results[0].State == string(effects.Done) && bytes.Equal(results[0].Result, t.Output):
		a.acted = true
	default:
		return a, false
	}
	return a, ok && r.Over == (a.begin == "")
}
