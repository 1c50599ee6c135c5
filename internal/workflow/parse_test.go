package workflow

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"pgregory.net/rapid"
)

// bare returns a copy of a definition without its source positions.
func bare(d *Definition) *Definition {
	b := *d
	b.source = configdoc.Source{}
	return &b
}

const wholeYAML = `
name: order   # everything that there is
version: 3
retentionMs: 86400000
steps:
  - name: charge
    type: task
    handler: Charge
    input: {amount: =input.amount, "on": [1, 2.50, true, null, "==x"]}
    safety: journaled
    onUnknown: hold
    retry: {maxAttempts: 5, backoffMs: 500, multiplier: 1.5, maxBackoffMs: 60000}
    timeoutMs: 30000
    onFailure: refund
  - {name: ask, type: approval, prompt: "=\"Ship \" + string(input.amount)", requesters: [boss], timeoutMs: 1000, onTimeout: ship, onReject: refund}
  - {name: paid, type: event, signal: paid, timeoutMs: 1000}
  - {name: which, type: condition, if: steps.ask.status == "completed", then: pause, else: refund}
  - {name: pause, type: wait, durationMs: 5}
  - {name: date, type: wait, until: "2030-01-31T12:00:00Z"}
  - name: ship
    type: http
    method: POST
    url: https://example.com/ship
    headers: {X-B: b, X-A: =run.id}
    body: =input
    safety: idempotent
  - {name: close, type: transition, lifecycle: invoice, entity: =input.id, stepKey: close, requester: system, input: {}, next: end}
  - {name: refund, type: task, handler: Mail}
`

const wholeJSON = `{"steps": [
  {"type": "task", "name": "charge", "handler": "Charge", "input": {"on": [1, 2.50, true, null, "==x"], "amount": "=input.amount"},
   "safety": "journaled", "onUnknown": "hold", "retry": {"maxAttempts": 5, "backoffMs": 500, "multiplier": 1.5, "maxBackoffMs": 60000},
   "timeoutMs": 30000, "onFailure": "refund"},
  {"name": "ask", "type": "approval", "prompt": "=\"Ship \" + string(input.amount)", "requesters": ["boss"], "timeoutMs": 1000, "onTimeout": "ship", "onReject": "refund"},
  {"name": "paid", "type": "event", "signal": "paid", "timeoutMs": 1000},
  {"name": "which", "type": "condition", "if": "steps.ask.status == \"completed\"", "then": "pause", "else": "refund"},
  {"name": "pause", "type": "wait", "durationMs": 5},
  {"name": "date", "type": "wait", "until": "2030-01-31T12:00:00Z"},
  {"name": "ship", "type": "http", "method": "POST", "url": "https://example.com/ship", "headers": {"X-A": "=run.id", "X-B": "b"}, "body": "=input", "safety": "idempotent"},
  {"name": "close", "type": "transition", "lifecycle": "invoice", "entity": "=input.id", "stepKey": "close", "requester": "system", "input": {}, "next": "end"},
  {"name": "refund", "type": "task", "handler": "Mail"}
], "version": "3", "name": "order", "retentionMs": 86400000}`

func wholeGo() *Definition {
	return &Definition{Name: "order", Version: "3", Retention: 24 * time.Hour, Steps: []Step{
		{
			Name: "charge", Type: Task, Handler: "Charge", Input: Value(`{"amount":"=input.amount","on":[1,2.50,true,null,"==x"]}`),
			Safety: "journaled", OnUnknown: "hold", Timeout: 30 * time.Second, OnFailure: "refund",
			Retry: Retry{MaxAttempts: 5, Backoff: 500 * time.Millisecond, Multiplier: 1.5, MaxBackoff: time.Minute},
		},
		{Name: "ask", Type: Approval, Prompt: Value(`"=\"Ship \" + string(input.amount)"`), Requesters: []string{"boss"}, Timeout: time.Second, OnTimeout: "ship", OnReject: "refund"},
		{Name: "paid", Type: Event, Signal: "paid", Timeout: time.Second},
		{Name: "which", Type: Condition, If: `steps.ask.status == "completed"`, Then: "pause", Else: "refund"},
		{Name: "pause", Type: Wait, Duration: 5 * time.Millisecond},
		{Name: "date", Type: Wait, Until: Value(`"2030-01-31T12:00:00Z"`)},
		{
			Name: "ship", Type: HTTP, Method: "POST", URL: Value(`"https://example.com/ship"`), Safety: "idempotent",
			Headers: map[string]Value{"X-A": Value(`"=run.id"`), "X-B": Value(`"b"`)}, Body: Value(`"=input"`),
		},
		{Name: "close", Type: Transition, Lifecycle: "invoice", Entity: Value(`"=input.id"`), StepKey: "close", Requester: "system", Input: Value(`{}`), Next: End},
		{Name: "refund", Type: Task, Handler: "Mail"},
	}}
}

// TestTwins verifies that JSON, YAML and Go give the same definition.
func TestTwins(t *testing.T) {
	want := wholeGo()
	for _, text := range []string{wholeYAML, wholeJSON, "# not a brace\n" + wholeJSON, string(want.JSON())} {
		d, found, warnings := Check([]byte(text), everything)
		if d == nil || len(warnings) > 0 {
			t.Fatalf("got violations %v, warnings %v", found, warnings)
		}
		if !reflect.DeepEqual(bare(d), want) {
			t.Errorf("got\n%+v\nwant\n%+v", bare(d), want)
		}
		if !bytes.Equal(d.JSON(), want.JSON()) {
			t.Errorf("got JSON\n%s\nwant\n%s", d.JSON(), want.JSON())
		}
	}
	if found, _ := want.Lint(everything); len(found) > 0 {
		t.Errorf("got violations %v", found)
	}
	if got := want.Handlers(); !slices.Equal(got, []string{"Charge", "Mail"}) {
		t.Errorf("got handlers %v", got)
	}
	if want.ID() != "order@3" || want.Find("ship") != 6 || want.Find("shop") != -1 || want.After(0) != "ask" || want.After(8) != End {
		t.Errorf("the definition resolves names wrongly")
	}
}

// TestJSON verifies the canonical form of a definition: a fixed order, and only fields that are set.
func TestJSON(t *testing.T) {
	d := &Definition{Name: "o", Version: "1", Steps: []Step{
		{Name: "h", Type: HTTP, URL: Value(` "http://a/?b&c" `), Body: Value(`{"b": 1.0, "a": [ ]}`), Next: End},
	}}
	const want = `{"name":"o","version":"1","steps":[{"name":"h","type":"http","method":"GET","url":"http://a/?b&c","body":{"a":[],"b":1.0},"next":"end"}]}`
	if got := string(d.JSON()); got != want {
		t.Errorf("got JSON %s", got)
	}
	back, found := Parse(d.JSON())
	if len(found) > 0 || string(back.JSON()) != want || back.Steps[0].Method != "GET" {
		t.Errorf("parsed again: got %+v, violations %v", back, found)
	}
}

// TestJSONIsReadBack verifies that Parse reads every canonical form.
func TestJSONIsReadBack(t *testing.T) {
	testlevel.Rapid()
	rapid.Check(t, func(t *rapid.T) {
		d := drawDefinition(t)
		back, found := Parse(d.JSON())
		if len(found) > 0 {
			t.Fatalf("%s\ngot violations %v", d.JSON(), found)
		}
		if !reflect.DeepEqual(bare(back), d) {
			t.Fatalf("%s\nparsed again is\n%+v", d.JSON(), bare(back))
		}
	})
}

func drawDefinition(t *rapid.T) *Definition {
	word := rapid.StringMatching(`[a-zA-Z0-9 _<&é-]{1,8}`)
	d := &Definition{Name: word.Draw(t, "name"), Version: word.Draw(t, "version"), Retention: drawMs(t)}
	types := []Type{Task, HTTP, Wait, Event, Approval, Condition, Transition}
	for range rapid.IntRange(1, 4).Draw(t, "steps") {
		s := Step{Name: word.Draw(t, "step"), Type: rapid.SampledFrom(types).Draw(t, "type")}
		doc := &drawer{t: t, word: word}
		for _, f := range stepFields {
			shape := shapes[s.Type]
			if shape.has(f.name) && (slices.Contains(shape.required, f.name) || rapid.Bool().Draw(t, f.name)) {
				doc.set(&s, f.name)
			}
		}
		d.Steps = append(d.Steps, s)
	}
	return d
}

func drawMs(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(0, MaxDuration.Milliseconds()).Draw(t, "ms")) * time.Millisecond
}

// drawer draws the fields of a step.
type drawer struct {
	t    *rapid.T
	word *rapid.Generator[string]
}

func (d *drawer) set(s *Step, name string) {
	texts := map[string]*string{
		"handler": &s.Handler, "safety": &s.Safety, "onUnknown": &s.OnUnknown, "signal": &s.Signal, "if": &s.If, "then": &s.Then,
		"else": &s.Else, "method": &s.Method, "lifecycle": &s.Lifecycle, "stepKey": &s.StepKey, "requester": &s.Requester,
		"next": &s.Next, "onFailure": &s.OnFailure, "onTimeout": &s.OnTimeout, "onReject": &s.OnReject,
	}
	values := map[string]*Value{"input": &s.Input, "until": &s.Until, "prompt": &s.Prompt, "url": &s.URL, "body": &s.Body, "entity": &s.Entity}
	switch {
	case texts[name] != nil:
		*texts[name] = d.word.Draw(d.t, name)
	case values[name] != nil:
		*values[name] = d.value()
	case name == "durationMs":
		s.Duration = drawMs(d.t)
	case name == "timeoutMs":
		s.Timeout = drawMs(d.t)
	case name == "requesters":
		s.Requesters = []string{d.word.Draw(d.t, name)}
	case name == "headers":
		s.Headers = map[string]Value{"X-" + d.word.Draw(d.t, name): d.value()}
	case name == "retry":
		s.Retry = Retry{MaxAttempts: rapid.IntRange(1, 20).Draw(d.t, name), Backoff: drawMs(d.t), Multiplier: rapid.Float64Range(1, 100).Draw(d.t, name)}
	}
	if s.Type == HTTP && s.Method == "" {
		s.Method = "GET"
	}
}

func (d *drawer) value() Value {
	leaf := rapid.SampledFrom([]any{nil, true, json.Number("1.50"), json.Number("-12345678901234567890"), "=input.a", "<&>", "\u2028"})
	v := map[string]any{"b": leaf.Draw(d.t, "b"), "a": []any{leaf.Draw(d.t, "a"), d.word.Draw(d.t, "c")}}
	doc, _ := encode(v)
	return doc
}

// TestVersion verifies that a version may be written as an integer, and as no other number.
func TestVersion(t *testing.T) {
	for text, want := range map[string]string{"1": "1", `"1.0"`: "1.0", "v1": "v1", "0": "0"} {
		d, found := Parse([]byte("name: n\nversion: " + text + "\nsteps: []"))
		if len(found) > 0 || d.Version != want {
			t.Errorf("%s: got version %v, violations %v", text, d.Version, found)
		}
	}
	for _, text := range []string{"1.0", "1e3", "0x1", "01", "-1", "true", "[1]", "null"} {
		if d, found := Parse([]byte("name: n\nversion: " + text + "\nsteps: []")); !slices.Equal(rules(found), []string{"type /version"}) {
			t.Errorf("%s: got version %q, violations %v", text, d.Version, found)
		}
	}
}

// TestParseRefuses verifies that ambiguous texts are refused.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``: "syntax ",
		`{"name":"n","name":"m","version":"1","steps":[]}`: "duplicate-field /name",
		`{"name":"n","Name":"m","version":"1","steps":[]}`: "case-twin /Name",
		"[]":                              "type ",
		"name":                            "type ",
		"name: n\nversion: 1\nsteps: {}":  "type /steps",
		"name: n\nversion: 1\nsteps: [7]": "type /steps/0",
		definition("name: 7, type: task, handler: Mail"):                           "type /steps/0/name",
		definition(mail + ", input: {a: 1, A: 2}"):                                 "case-twin /steps/0/input/A",
		definition(mail + ", input: {a: {b: 1, b: 2}}"):                            "duplicate-field /steps/0/input/a/b",
		definition(mail + ", input: [0x10]"):                                       "type /steps/0/input/0",
		definition(mail + ", input: .inf"):                                         "type /steps/0/input",
		definition(mail + ", input: 1e999"):                                        "type /steps/0/input",
		definition(mail + ", input: &a 1"):                                         "yaml /steps/0/input",
		definition(mail + ", input: {a: {b: !x c}}"):                               "yaml /steps/0/input/a/b",
		definition(mail + ", timeoutMs: 1.5"):                                      "type /steps/0/timeoutMs",
		definition(mail + ", timeoutMs: 1h"):                                       "type /steps/0/timeoutMs",
		definition(mail + ", timeoutMs: 99999999999999999999"):                     "D7 /steps/0/timeoutMs",
		definition(mail + ", retry: 3"):                                            "type /steps/0/retry",
		definition(mail + ", retry: {attempts: 3}"):                                "unknown-field /steps/0/retry/attempts",
		definition(mail + ", retry: {maxAttempts: '3'}"):                           "type /steps/0/retry/maxAttempts",
		definition(mail + ", retry: {multiplier: 0}"):                              "D7 /steps/0/retry/multiplier",
		definition(mail + ", retry: {multiplier: .nan}"):                           "type /steps/0/retry/multiplier",
		definition("name: a, type: approval, prompt: x, requesters: boss"):         "type /steps/0/requesters",
		definition("name: a, type: http, url: 'http://a', headers: [x]"):           "type /steps/0/headers",
		"name: n\nversion: 1\nsteps: [" + strings.Repeat("{}, ", MaxSteps) + "{}]": "D7 /steps",
	} {
		_, found := Parse([]byte(text))
		if len(found) == 0 || found[0].Rule+" "+found[0].Path != want || found[0].Line < 1 || found[0].Message == "" {
			t.Errorf("%.80s\ngot violations %v, want %s", text, found, want)
		}
	}
}
