package httpapi_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// TestConfigChangesStrandNobody verifies that no change of a config strands an entity. Random
// configs, in which statuses come and go and may be claim statuses, are put while entities are in
// every phase: free, claimed by hand over HTTP and in Go, leased by a worker with and without
// effects, expired, waiting for a worker, parked, with an after-effect due. A config is accepted,
// or refused with a count; the holder of a lease can end it in every way; the check finds nothing.
// At the end all operations are ended, every entity can be moved to the last status by the config
// in force, and every after-effect is delivered once.
func TestConfigChangesStrandNobody(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		m := &configFuzzer{testAPI: d, t: t, r: testlevel.Rand(t), delivered: map[string]bool{}}
		for name, safety := range map[string]string{"Journal": "journaled", "Blind": "opaque", "May": "transactional", "Tell": "transactional"} {
			d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "worker", Safety: safety}, nil), 201, "")
		}
		m.now = m.invent(thingConfig{})
		d.want(d.ask("PUT", "lifecycles/thing", m.now.text(), nil), 201, "")
		changes := testlevel.Pick(40, 200, 600)
		for i := range changes {
			for range 1 + m.r.IntN(5) {
				m.act(true)
			}
			m.change()
			if i%20 == 19 {
				m.check()
			}
		}
		m.drain()
		t.Logf("%d changes applied, %d refused; %d entities, %d after-effects; phases reached: %v", m.applied, m.refused, m.entities, len(m.delivered), m.phases)
		if changes >= 600 && (m.applied < 100 || m.refused < 20) {
			t.Errorf("%d changes applied and %d refused, too few for the test to mean anything", m.applied, m.refused)
		}
	})
}

// configFuzzer is a lifecycle whose config changes all the time.
type configFuzzer struct {
	*testAPI
	t         *testing.T
	r         *rand.Rand
	now       thingConfig   // the config in force
	offset    time.Duration // how far the database's time was advanced
	entities  int
	tokens    []wire.Claimed
	tasks     []work
	delivered map[string]bool // delivered after-effects
	applied   int
	refused   int
	phases    map[string]int // phases that a change met, and how often
}

// work is a task that a worker has claimed.
type work struct {
	wire.Task
	begun, done bool
}

// thingConfig is a config: which of the statuses b to e it has, which of them are claim statuses, and
// where those are claimed.
type thingConfig struct {
	Plain  []string
	Claims []claim
}

type claim struct{ Into, From, To, Failed, Action, Validation, After string }

// invent returns a random config that keeps a part of the previous one.
func (m *configFuzzer) invent(was thingConfig) (c thingConfig) {
	c.Plain = []string{"a"}
	var into []string
	for _, s := range []string{"b", "c", "d", "e"} {
		role := m.r.IntN(5)
		if m.r.IntN(3) > 0 {
			role = was.role(s)
		}
		switch role {
		case 0: // it is removed
		case 1, 2:
			c.Plain = append(c.Plain, s)
		default:
			into = append(into, s)
		}
	}
	for _, s := range into {
		x := claim{Into: s, From: m.one(c.Plain), To: m.one(append(c.Plain, "z"))}
		if m.r.IntN(2) == 0 {
			x.Failed = m.one(c.Plain)
		}
		x.Action = m.one([]string{"", "Journal", "Journal", "Blind"})
		x.Validation = m.one([]string{"", "", "May"})
		x.After = m.one([]string{"", "Tell"})
		c.Claims = append(c.Claims, x)
	}
	return c
}

// role returns what a status is in a config, as [configFuzzer.invent] chooses it.
func (c thingConfig) role(s string) int {
	switch {
	case slices.Contains(c.Plain, s):
		return 1
	case slices.ContainsFunc(c.Claims, func(x claim) bool { return x.Into == s }):
		return 3
	}
	return 0
}

func (m *configFuzzer) one(of []string) string { return of[m.r.IntN(len(of))] }

func (c thingConfig) text() string {
	type step = map[string]any
	steps := []step{{"step_id": 1, "step_key": "end", "status": c.Plain, "successful_state": "z"}}
	statuses := append(slices.Clone(c.Plain), "z")
	for i, s := range c.Plain[1:] {
		steps = append(steps, step{"step_id": 10 + i, "step_key": "to-" + s, "status": "a", "successful_state": s})
	}
	for i, x := range c.Claims {
		statuses = append(statuses, x.Into)
		s := step{"step_id": 20 + i, "step_key": "claim-" + x.Into, "status": x.From, "successful_claim_state": []string{x.Into, x.From}, "successful_state": x.To}
		for field, v := range map[string]string{"failed_state": x.Failed, "action": x.Action, "validation": x.Validation, "success_after_effect": x.After} {
			if v != "" {
				s[field] = v
			}
		}
		steps = append(steps, s)
	}
	text, _ := json.Marshal(step{"workflow": "thing", "owning_module": "mill", "initial_status": "a", "status_types": statuses, "janitor": step{"stuck_after": "5m"}, "steps": steps})
	return string(text)
}

// change puts another config, sometimes concurrently with another action.
func (m *configFuzzer) change() {
	next := m.invent(m.now)
	if m.r.IntN(3) == 0 {
		m.clear()
	}
	var l wire.List[wire.Operation]
	m.want(m.ask("GET", "operations?limit=200", nil, &l), 200, "")
	if m.phases == nil {
		m.phases = make(map[string]int)
	}
	for _, o := range l.Items {
		m.phases[o.State]++
	}
	answers := make(chan *http.Response, 1)
	go func() { answers <- m.ask("PUT", "lifecycles/thing", next.text(), nil) }()
	var answer *http.Response
	if m.r.IntN(3) == 0 {
		for range 3 {
			m.act(false)
		}
	}
	answer = <-answers
	if answer.StatusCode == 200 {
		m.applied++
		m.now = next
		return
	}
	m.refused++
	p := m.want(answer, 422, fault.Validation)
	if len(p.Violations) != 1 || p.Violations[0].Rule != "strand" {
		m.t.Fatalf("%s was refused for another reason than strand: %+v", next.text(), p)
	}
}

// clear moves free entities out of statuses that the config may drop.
func (m *configFuzzer) clear() {
	for _, s := range m.now.Plain[1:] {
		var l wire.List[wire.Entity]
		m.want(m.ask("GET", "lifecycles/thing/entities?limit=500&status="+s, nil, &l), 200, "")
		for _, e := range l.Items {
			if e.Claim == nil {
				m.want(m.ask("POST", "lifecycles/thing/entities/"+e.ID+"/steps/end", wire.Fire{Requester: "admin"}, nil), 200, "")
			}
		}
	}
}

// act does a random action. exclusive reports that nothing runs concurrently, so a permitted action
// must succeed.
func (m *configFuzzer) act(exclusive bool) {
	switch m.r.IntN(12) {
	case 0, 1, 2:
		m.create()
	case 3, 4:
		m.fire(exclusive)
	case 5:
		m.claim(exclusive)
	case 6:
		m.settle(exclusive)
	case 7:
		m.take()
	case 8, 9:
		m.work(exclusive)
	case 10:
		m.pass(time.Duration(1+m.r.IntN(9)) * time.Minute)
	case 11:
		m.person()
	}
}

func (m *configFuzzer) create() {
	m.entities++
	m.want(m.ask("POST", "lifecycles/thing/entities", wire.NewEntity{ID: new(fmt.Sprint("t", m.entities))}, nil), 201, "")
}

// entity returns a random entity, if it is free.
func (m *configFuzzer) entity() (e wire.Entity, ok bool) {
	if m.entities == 0 {
		return e, false
	}
	id := fmt.Sprint("t", max(1, m.entities-m.r.IntN(20)))
	m.want(m.ask("GET", "lifecycles/thing/entities/"+id, nil, &e), 200, "")
	return e, e.Claim == nil
}

// allowed fails unless the status is one of those given, if nothing ran concurrently.
func (m *configFuzzer) allowed(exclusive bool, answer *http.Response, statuses ...int) {
	m.t.Helper()
	if exclusive && !slices.Contains(statuses, answer.StatusCode) {
		m.t.Fatalf("%s %s returned status %d %s, want %v; the config is %s", answer.Request.Method, answer.Request.URL, answer.StatusCode, textOf(answer), statuses, m.now.text())
	}
}

func (m *configFuzzer) fire(exclusive bool) {
	e, free := m.entity()
	if !free || e.Status == "z" {
		return
	}
	keys := []string{"end"}
	for _, s := range m.now.Plain[1:] {
		if e.Status == "a" {
			keys = append(keys, "to-"+s)
		}
	}
	for _, c := range m.now.Claims {
		if c.From == e.Status {
			keys = append(keys, "claim-"+c.Into, "claim-"+c.Into, "claim-"+c.Into)
		}
	}
	m.allowed(exclusive, m.ask("POST", "lifecycles/thing/entities/"+e.ID+"/steps/"+m.one(keys)+"?waitMs=0", wire.Fire{Requester: "admin"}, nil), 200, 202)
}

const millLease = 10 * time.Minute

// claim claims a step: over HTTP, or in Go, where the claim is abandoned.
func (m *configFuzzer) claim(exclusive bool) {
	e, free := m.entity()
	for _, c := range m.now.Claims {
		if !free || c.From != e.Status || c.Validation != "" {
			continue
		}
		if m.r.IntN(3) == 0 {
			l, err := lifecycleengine.Named(m.t.Context(), engine.Of(m.engine), "thing")
			if err == nil {
				_, err = l.Claim(m.t.Context(), engine.Of(m.engine), e.ID, "claim-"+c.Into, "admin", lifecycleengine.FireOptions{Lease: millLease})
			}
			if err != nil && exclusive {
				m.t.Fatal(err)
			}
			return
		}
		var token wire.Claimed
		answer := m.ask("POST", "lifecycles/thing/entities/"+e.ID+"/claims", wire.NewClaim{StepKey: "claim-" + c.Into, Requester: "admin", LeaseMs: wire.Millis(millLease.Milliseconds())}, &token)
		m.allowed(exclusive, answer, 201)
		if answer.StatusCode == 201 {
			m.tokens = append(m.tokens, token)
		}
		return
	}
}

// lasts reports whether a lease certainly lasts for longer than a test may be suspended.
func (m *configFuzzer) lasts(until *wire.Time) bool {
	return until.Time.After(clock.Now().Add(m.offset + time.Minute))
}

// settle ends a claim of [configFuzzer.claim]. It cannot be refused while the lease is valid.
func (m *configFuzzer) settle(exclusive bool) {
	if len(m.tokens) == 0 {
		return
	}
	i := m.r.IntN(len(m.tokens))
	x := m.tokens[i]
	m.tokens = slices.Delete(m.tokens, i, i+1)
	sure := m.lasts(x.Claim.Until)
	answer := m.ask("POST", "claims/"+x.Claim.Token+"/settle", wire.Settle{Outcome: m.one([]string{"success", "failure", "invalid"})}, nil)
	m.allowed(exclusive && sure, answer, 200)
}

// take claims the available tasks for a worker.
func (m *configFuzzer) take() {
	var got wire.Tasks
	m.want(m.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Journal", "Blind", "May"}, Limit: 3, WaitMs: new(wire.Millis),
		LeaseMs: wire.Millis(millLease.Milliseconds())}, &got), 200, "")
	for _, x := range got.Tasks {
		m.tasks = append(m.tasks, work{Task: x})
	}
}

// work continues a task or drops it. It cannot be refused while the lease lasts.
func (m *configFuzzer) work(exclusive bool) {
	if len(m.tasks) == 0 {
		m.take()
		return
	}
	i := m.r.IntN(len(m.tasks))
	x := &m.tasks[i]
	sure := exclusive && m.lasts(x.Until)
	drop := func() { m.tasks = slices.Delete(m.tasks, i, i+1) }
	effect := func(result string) bool {
		in := wire.EffectCall{Epoch: x.Epoch, Name: "charge"}
		if result != "" {
			in.Result = json.RawMessage(result)
		}
		answer := m.ask("POST", "tasks/"+x.ID+"/effects", in, nil)
		if x.Attempt == 1 {
			m.allowed(sure, answer, 200)
		}
		if answer.StatusCode != 200 { // an earlier attempt began it, or the lease has expired
			drop()
		}
		return answer.StatusCode == 200
	}
	switch n := m.r.IntN(6); {
	case n < 2 && x.Handler == "Journal" && x.Kind == "action" && !x.begun:
		x.begun = true
		effect("")
	case n < 3 && x.begun && !x.done:
		x.done = true
		effect(`"c1"`)
	case n == 3:
		drop() // the worker crashes
	case n == 4:
		answer := m.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no", Retryable: new(m.r.IntN(2) == 0)}, nil)
		m.allowed(sure, answer, 200)
		drop()
	default:
		in := wire.CompleteTask{Epoch: x.Epoch}
		if x.Kind == "probe" {
			in.Output = json.RawMessage(`{"happened": true}`)
		}
		answer := m.ask("POST", "tasks/"+x.ID+"/complete", in, nil)
		if x.Attempt == 1 && x.begun == x.done {
			m.allowed(sure, answer, 200)
		}
		drop()
	}
}

// pass advances the time and runs the janitor.
func (m *configFuzzer) pass(d time.Duration) {
	m.offset += d
	holdfasttest.Advance(m.t, m.engine, d)
	engine.Of(m.engine).Round(m.t.Context())
}

// person withdraws a due operation, or resolves an uncertain one.
func (m *configFuzzer) person() bool {
	var l wire.List[wire.Operation]
	m.want(m.ask("GET", "operations?state="+m.one([]string{"due", "uncertain"}), nil, &l), 200, "")
	if len(l.Items) == 0 {
		return false
	}
	o := l.Items[m.r.IntN(len(l.Items))]
	if o.State == "due" {
		m.want(m.ask("POST", "operations/"+o.ID+"/withdraw", nil, nil), 200, "")
		return true
	}
	in := wire.Resolve{Outcome: m.one([]string{"success", "failure", "invalid"})}
	for _, x := range o.Effects {
		if x.State == "begun" {
			in.Effects = append(in.Effects, wire.KnownEffect{Name: x.Name, Ordinal: x.Ordinal, Happened: new(m.r.IntN(2) == 0)})
		}
	}
	m.want(m.ask("POST", "operations/"+o.ID+"/resolve", in, nil), 200, "")
	return true
}

func (m *configFuzzer) check() {
	m.t.Helper()
	report, err := m.engine.Check(m.t.Context())
	if err != nil || !report.Clean() {
		m.t.Fatalf("after %d changes: %v\n%s", m.applied, err, report)
	}
}

// open returns the operations that have not ended.
func (m *configFuzzer) open() []wire.Operation {
	var l wire.List[wire.Operation]
	m.want(m.ask("GET", "operations", nil, &l), 200, "")
	return slices.DeleteFunc(l.Items, func(o wire.Operation) bool { return o.State == "ended" }) // of a late worker
}

// drain ends all operations, and checks the entities against the config in force.
func (m *configFuzzer) drain() {
	m.t.Helper()
	m.check()
	for tries := 0; len(m.open()) > 0; tries++ {
		if tries > 500 {
			m.t.Fatalf("not finished after 500 rounds: %+v", m.open())
		}
		if !m.person() {
			m.pass(11 * time.Minute)
		}
	}
	var promised []string
	l, err := lifecycleengine.Named(m.t.Context(), engine.Of(m.engine), "thing")
	if err != nil {
		m.t.Fatal(err)
	}
	for i := range m.entities {
		id := fmt.Sprint("t", i+1)
		e, err := l.Get(m.t.Context(), engine.Of(m.engine), id)
		if err != nil || e.Claimed != nil || e.Status != "z" && !slices.Contains(m.now.Plain, e.Status) {
			m.t.Errorf("%s is %+v, %v, want it unclaimed in a status of the config %s", id, e, err, m.now.text())
		}
		if e.Status != "z" {
			m.want(m.ask("POST", "lifecycles/thing/entities/"+id+"/steps/end", wire.Fire{Requester: "admin"}, nil), 200, "")
		}
		all, err := l.History(m.t.Context(), engine.Of(m.engine), id, 0, 1000)
		if err != nil {
			m.t.Fatal(err)
		}
		for _, x := range all {
			if strings.HasPrefix(x.Name, "settled/") && strings.Contains(string(x.Data), `"Tell"`) {
				promised = append(promised, id)
			}
		}
	}
	for {
		var got wire.Tasks
		m.want(m.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Tell"}, WaitMs: new(wire.Millis), Limit: 100}, &got), 200, "")
		for _, x := range got.Tasks {
			if m.delivered[x.IdempotencyKey] {
				m.t.Errorf("%s was delivered twice, for %+v", x.IdempotencyKey, x.Context.Entity)
			}
			m.delivered[x.IdempotencyKey] = true
			m.want(m.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil), 200, "")
		}
		if len(got.Tasks) == 0 {
			break
		}
	}
	if len(promised) != len(m.delivered) {
		m.t.Errorf("%d after-effects were promised, but %d delivered", len(promised), len(m.delivered))
	}
	m.check()
}
