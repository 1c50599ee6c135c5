package workflow

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// everything holds all names that the definitions of these tests may use.
var everything = Known{
	Handlers: map[string]Handler{
		"Charge": {Kind: "step", Safety: "journaled"},
		"Mail":   {Safety: "idempotent"},
		"Vague":  {Kind: "worker"},
		"Close":  {Kind: "action", Safety: "journaled"},
	},
	Lifecycles: func(name string) (map[string]bool, bool) {
		return map[string]bool{"close": true, "open": true}, name == "invoice"
	},
	Secrets: map[string]bool{"known": true},
}

func rules(all []Violation) (names []string) {
	for _, v := range all {
		names = append(names, v.Rule+" "+v.Path)
	}
	return names
}

// definition returns a definition with these steps, each a line of YAML in braces.
func definition(steps ...string) string {
	return "name: order\nversion: 1\nsteps:\n  - {" + strings.Join(steps, "}\n  - {") + "}\n"
}

const (
	charge = "name: charge, type: task, handler: Charge"
	paid   = "name: paid, type: event, signal: payment, timeoutMs: 9"
	mail   = "name: mail, type: task, handler: Mail"
	call   = "name: h, type: http"

	secretHeader = ", headers: {X-A: '${secret:known}'}"
)

// TestRules verifies that each rule accepts one definition and refuses another, and that the report names the rule
// and the path.
func TestRules(t *testing.T) {
	for _, r := range []struct {
		rule, path string // of the broken rule
		good, bad  string
	}{
		{"D1", "/name", "name: an order\nversion: 1\nsteps: [{" + charge + "}]", "name: an/order\nversion: 1\nsteps: [{" + charge + "}]"},
		{"D1", "/name", "name: ü\nversion: 1\nsteps: [{" + charge + "}]", "name: \"a\\tb\"\nversion: 1\nsteps: [{" + charge + "}]"},
		{"D1", "/name", "name: " + strings.Repeat("a", 200) + "\nversion: 1\nsteps: [{" + charge + "}]", "name: " + strings.Repeat("a", 201) + "\nversion: 1\nsteps: [{" + charge + "}]"},
		{"D1", "/version", "name: order\nversion: \"1.0\"\nsteps: [{" + charge + "}]", "name: order\nversion: a@b\nsteps: [{" + charge + "}]"},
		{"D1", "/version", "name: order\nversion: 12\nsteps: [{" + charge + "}]", "name: order\nversion: ''\nsteps: [{" + charge + "}]"},
		{"D1", "/steps/0/name", definition("name: a_B-9, type: task, handler: Mail"), definition("name: a b, type: task, handler: Mail")},
		{"D1", "/steps/0/name", definition("name: ending, type: task, handler: Mail"), definition("name: end, type: task, handler: Mail")},
		{"D1", "/steps/1/name", definition(charge, mail), definition(charge, charge)},

		{"D2", "/steps/0/next", definition(charge + ", next: end"), definition(charge + ", next: nowhere")},
		{"D2", "/steps/0/onFailure", definition(charge+", onFailure: mail", mail), definition(charge+", onFailure: male", mail)},
		{"D2", "/steps/0/onTimeout", definition(paid+", onTimeout: mail", mail), definition(paid+", onTimeout: male", mail)},
		{"D2", "/steps/0/then", definition("name: c, type: condition, if: 'true', then: mail, else: end", mail), definition("name: c, type: condition, if: 'true', then: male", mail)},
		{"D2", "/steps/0/else", definition("name: c, type: condition, if: 'true', else: mail", mail), definition("name: c, type: condition, if: 'true', else: male", mail)},
		{"D2", "/steps/0/onReject", definition("name: a, type: approval, prompt: x, onReject: end"), definition("name: a, type: approval, prompt: x, onReject: ende")},

		{"D3", "/steps/1", definition(charge+", next: end, onFailure: mail", mail), definition(charge+", next: end", mail)},
		{"D4", "/steps/0", definition(charge + ", onFailure: charge"), definition(charge + ", next: charge")},
		{"D4", "/steps/0", definition("name: c, type: condition, if: 'true', then: end, else: mail", mail+", next: c"), definition("name: c, type: condition, if: 'true', then: end, else: c")},
		{"D4", "/steps/0", definition("name: c, type: condition, if: 'true', then: d", "name: d, type: condition, if: 'true'"), definition("name: c, type: condition, if: 'true', then: d", "name: d, type: condition, if: 'true', then: c")},

		{"D5", "/steps/0/handler", definition(charge), definition("name: a, type: task, handler: Nobody")},
		{"D5", "/steps/0/handler", definition("name: a, type: task, handler: Vague, safety: opaque"), definition("name: a, type: task, handler: Close")},

		{"D6", "/steps/0/if", definition("name: c, type: condition, if: input.a > 1"), definition("name: c, type: condition, if: input.a >")},
		{"D6", "/steps/0/if", definition("name: c, type: condition, if: run.id == 'x'"), definition("name: c, type: condition, if: ran.id == 'x'")},
		{"D6", "/steps/1/input/a/0", definition(charge, mail+", input: {a: ['=steps.charge.output', '==now()']}"), definition(charge, mail+", input: {a: ['=now()']}")},
		{"D6", "/steps/1/input", definition(charge, mail+", input: '=steps[\"charge\"].status'"), definition(charge, mail+", input: =steps.chrage.status")},
		{"D6", "/steps/0/headers/X-A", definition("name: h, type: http, url: 'https://a.b/', headers: {X-A: =input.a}"), definition("name: h, type: http, url: 'https://a.b/', headers: {X-A: =input.}")},

		{"D7", "/steps/0/handler", definition(charge), definition("name: a, type: task, handler: ''")},
		{"D7", "/steps/0/handler", definition(charge), definition("name: a, type: task, handler: $http")},
		{"D7", "/steps/0/type", definition(charge), definition("name: a, type: tusk, handler: Charge")},
		{"D7", "/steps/0/retry/maxAttempts", definition(charge + ", retry: {maxAttempts: 20}"), definition(charge + ", retry: {maxAttempts: 21}")},
		{"D7", "/steps/0/retry/maxAttempts", definition(charge + ", retry: {maxAttempts: 1}"), definition(charge + ", retry: {maxAttempts: 0}")},
		{"D7", "/steps/0/retry/multiplier", definition(charge + ", retry: {multiplier: 1.5}"), definition(charge + ", retry: {multiplier: 0.5}")},
		{"D7", "/steps/0/retry/multiplier", definition(charge + ", retry: {multiplier: 100}"), definition(charge + ", retry: {multiplier: 101}")},
		{"D7", "/steps/0/retry/maxBackoffMs", definition(charge + ", retry: {backoffMs: 10, maxBackoffMs: 10}"), definition(charge + ", retry: {backoffMs: 10, maxBackoffMs: 9}")},
		{"D7", "/steps/0/retry/backoffMs", definition(charge + ", retry: {backoffMs: 1}"), definition(charge + ", retry: {backoffMs: 0}")},
		{"D7", "/steps/0/timeoutMs", definition(charge + ", timeoutMs: 86400000"), definition(charge + ", timeoutMs: 86400001")},
		{"D7", "/steps/0/timeoutMs", definition("name: e, type: event, signal: s, timeoutMs: 3155760000000"), definition("name: e, type: event, signal: s, timeoutMs: 3155760000001")},
		{"D7", "/steps/0/timeoutMs", definition(charge + ", timeoutMs: 1"), definition(charge + ", timeoutMs: -1")},
		{"D7", "/steps/0/safety", definition(charge + ", safety: opaque"), definition(charge + ", safety: harmless")},
		{"D7", "/steps/0/onUnknown", definition(charge + ", onUnknown: hold"), definition(charge + ", onUnknown: pray")},
		{"D7", "/steps/0/safety", definition("name: h, type: http, url: 'https://a.b/', safety: idempotent"), definition("name: h, type: http, url: 'https://a.b/', safety: transactional")},
		{"D7", "/steps/0/method", definition("name: h, type: http, url: 'https://a.b/', method: PUT"), definition("name: h, type: http, url: 'https://a.b/', method: put")},
		{"D7", "/steps/0/url", definition("name: h, type: http, url: =input.url"), definition("name: h, type: http, url: a.b/c")},
		{"D7", "/steps/0/url", definition("name: h, type: http, url: 'http://a'"), definition("name: h, type: http, url: 7")},
		{"D7", "/steps/0/headers/idempotency-key", definition("name: h, type: http, url: 'http://a', headers: {key: b}"), definition("name: h, type: http, url: 'http://a', headers: {idempotency-key: b}")},
		{"D7", "/steps/0/headers/Host", definition("name: h, type: http, url: 'http://a', headers: {X-Host: b}"), definition("name: h, type: http, url: 'http://a', headers: {Host: b}")},
		{"D7", "/steps/0/headers/X A", definition("name: h, type: http, url: 'http://a', headers: {X-A: 7}"), definition("name: h, type: http, url: 'http://a', headers: {X A: b}")},
		{"D7", "/steps/0/headers/X-A", definition("name: h, type: http, url: 'http://a', headers: {X-A: b}"), definition("name: h, type: http, url: 'http://a', headers: {X-A: \"a\\nb\"}")},
		{"D7", "/steps/0/headers/X-A", definition("name: h, type: http, url: 'http://a', headers: {}"), definition("name: h, type: http, url: 'http://a', headers: {X-A: [b]}")},
		{"D7", "/steps/0", definition("name: w, type: wait, durationMs: 5"), definition("name: w, type: wait")},
		{"D7", "/steps/0", definition("name: w, type: wait, until: 1900000000000"), definition("name: w, type: wait, durationMs: 5, until: '2030-01-31T12:00:00Z'")},
		{"D7", "/steps/0/until", definition("name: w, type: wait, until: '2030-01-31T12:00:00+01:00'"), definition("name: w, type: wait, until: tomorrow")},
		{"D7", "/steps/0/until", definition("name: w, type: wait, until: =input.when"), definition("name: w, type: wait, until: {at: 1}")},
		{"D7", "/steps/0/signal", definition("name: e, type: event, signal: paid"), definition("name: e, type: event, signal: \"a\\tb\"")},
		{"D7", "/steps/0/onTimeout", definition("name: e, type: event, signal: paid, timeoutMs: 9, onTimeout: end"), definition("name: e, type: event, signal: paid, onTimeout: end")},
		{"D7", "/steps/0/requesters/1", definition("name: a, type: approval, prompt: x, requesters: [boss, admin]"), definition("name: a, type: approval, prompt: x, requesters: [boss, '']")},
		{"D7", "/steps/0/entity", definition("name: t, type: transition, lifecycle: invoice, entity: 7, stepKey: close, requester: r"), definition("name: t, type: transition, lifecycle: invoice, entity: {}, stepKey: close, requester: r")},
		{"D7", "/steps/0/next", definition(charge), definition(charge + ", next: ''")},
		{"D7", "/steps", definition(charge), "name: order\nversion: 1\nsteps: []"},
		{"D7", "/retentionMs", definition(charge) + "retentionMs: 1", definition(charge) + "retentionMs: 0"},

		{"D8", "/steps/0/lifecycle", definition("name: t, type: transition, lifecycle: invoice, entity: =input.id, stepKey: open, requester: r"), definition("name: t, type: transition, lifecycle: voice, entity: e, stepKey: open, requester: r")},
		{"D8", "/steps/0/stepKey", definition("name: t, type: transition, lifecycle: invoice, entity: e, stepKey: close, requester: r"), definition("name: t, type: transition, lifecycle: invoice, entity: e, stepKey: shut, requester: r")},

		{"D9", "/steps/0/headers/X-A", definition(call + ", url: 'http://a', headers: {X-A: 'b ${secret:known}'}"), definition(call + ", url: 'http://a', headers: {X-A: 'b ${secret:unknown}'}")},
		{"D9", "/steps/0/headers/X-A", definition(call + ", url: 'http://a', headers: {X-A: '${secret:known}${secret:known}'}"), definition(call + ", url: 'http://a', headers: {X-A: '${secret:known'}")},
		{"D9", "/steps/0/headers/X-A", definition(call + ", url: 'http://a', headers: {X-A: '=input.a'}"), definition(call + ", url: 'http://a', headers: {X-A: '=\"${secret:known}\" + input.a'}")},
		{"D9", "/steps/0/headers/X-A", definition(call + ", url: 'http://a', headers: {X-A: '${secret:known}'}"), definition(call + ", url: 'http://a', headers: {X-A: 'secret:known'}")},
		{"D9", "/steps/0/url", definition(call + secretHeader + ", url: '=\"https://a.b/\" + input.id + \"/c\"'"), definition(call + secretHeader + ", url: =input.url")},
		{"D9", "/steps/0/url", definition(call + secretHeader + ", url: '=(\"https://a.b/\" + input.id)'"), definition(call + secretHeader + ", url: '=\"https://a.b\" + input.id'")},
		{"D9", "/steps/0/url", definition(call + secretHeader + ", url: 'http://a'"), definition(call + secretHeader + ", url: '=input.x ? \"https://a.b/\" + input.id : input.url'")},
		{"D9", "/steps/0/url", definition(call + secretHeader + ", url: 'http://a'"), definition(call + secretHeader + ", url: '=(\"https://a.b/\" + input.id) | trim()'")},
		{"D9", "/steps/0/url", definition(call + secretHeader + ", url: '=\"http://a.b:8/x\" + input.id'"), definition(call + secretHeader + ", url: '=\"//a.b/\" + input.id'")},
		{"D9", "/steps/0/url", definition(call + secretHeader + ", url: 'https://a/..b'"), definition(call + secretHeader + ", url: 'https://a/b/%2e%2E/c'")},
		{"D9", "/steps/0/url", definition(call + secretHeader + ", url: 'https://a/x@b'"), definition(call + secretHeader + ", url: 'https://x@a/b'")},
		{"D9", "/steps/0/headers/Trailer", definition(call + ", url: 'http://a', headers: {X-Trailer: '${secret:known}'}"), definition(call + ", url: 'http://a', headers: {Trailer: '${secret:known}'}")},
		{"D9", "/steps/0/url", definition(call + ", url: 'http://a/secret:known'"), definition(call + ", url: 'http://a/${secret:known}'")},
		{"D9", "/steps/0/input/a/0", definition(mail + ", input: {a: ['$secret']}"), definition(mail + ", input: {a: ['${secret:known}']}")},
		{"D9", "/steps/0/body", definition(call + ", url: 'http://a', body: x"), definition(call + ", url: 'http://a', body: 'a ${secret:known}'")},
		{"D9", "/steps/0/if", definition("name: c, type: condition, if: 'input.a == \"secret:known\"'"), definition("name: c, type: condition, if: 'input.a == \"${secret:known}\"'")},
	} {
		if d, found, _ := Check([]byte(r.good), everything); d == nil {
			t.Errorf("%s %s: valid definition\n%sgot violations %v", r.rule, r.path, r.good, found)
		}
		d, found, _ := Check([]byte(r.bad), everything)
		if d != nil || !slices.Equal(rules(found), []string{r.rule + " " + r.path}) {
			t.Errorf("%s %s: invalid definition\n%sgot violations %v", r.rule, r.path, r.bad, found)
			continue
		}
		if v := found[0]; v.Line < 1 || v.Column < 1 || len(strings.Fields(v.Message)) < 4 {
			t.Errorf("got violation %+v", v)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, r := range []struct{ warning, good, bad string }{
		{"W1 /steps/0", definition("name: e, type: event, signal: s, timeoutMs: 5"), definition("name: e, type: event, signal: s")},
		{"W1 /steps/0", definition("name: a, type: approval, prompt: x, timeoutMs: 5, onReject: end"), definition("name: a, type: approval, prompt: x, onReject: end")},
		{"W2 /steps/0/handler", definition("name: a, type: task, handler: Vague, safety: opaque"), definition("name: a, type: task, handler: Vague")},
		{"W2 /steps/0", definition("name: h, type: http, url: 'http://a', method: PUT"), definition("name: h, type: http, url: 'http://a', method: POST")},
		{"W2 /steps/0", definition("name: h, type: http, url: 'http://a', method: PATCH, safety: idempotent"), definition("name: h, type: http, url: 'http://a', method: PATCH")},
		{"W3 /steps/0", definition("name: a, type: approval, prompt: x, timeoutMs: 5", "name: c, type: condition, if: steps.a.output.decision == 'approved'"), definition("name: a, type: approval, prompt: x, timeoutMs: 5", charge)},
		{"W3 /steps/0", definition("name: a, type: approval, prompt: x, timeoutMs: 5, onReject: end", "name: c, type: condition, if: 'true'"), definition("name: a, type: approval, prompt: x, timeoutMs: 5", "name: c, type: condition, if: 'true'")},
		{"W5 /steps/0/headers/Authorization", definition(call + ", url: 'http://a', headers: {Authorization: 'Bearer ${secret:known}'}"), definition(call + ", url: 'http://a', headers: {Authorization: 'Bearer abc'}")},
		{"W5 /steps/0/input/a", definition(mail + ", input: {a: 'secret: known'}"), definition(mail + ", input: {a: 'secret:known'}")},
		{"W4 /steps/0/input", definition(charge, mail+", input: =steps.charge.output"), definition(mail+", input: =steps.charge.output", charge)},
		{"W4 /steps/0/if", definition("name: c, type: condition, if: steps.charge.visit > 1, then: end", charge+", next: c"), definition("name: c, type: condition, if: steps.c.visit > 1", charge)},
	} {
		d, found, warnings := Check([]byte(r.good), everything)
		if d == nil || len(warnings) > 0 {
			t.Errorf("%s: definition without a warning\n%sgot violations %v, warnings %v", r.warning, r.good, found, warnings)
		}
		d, found, warnings = Check([]byte(r.bad), everything)
		if d == nil || !slices.Equal(rules(warnings), []string{r.warning}) {
			t.Errorf("%s: definition with a warning\n%sgot violations %v, warnings %v", r.warning, r.bad, found, warnings)
		}
	}
}

// TestNothingKnown verifies that unknown names are not checked.
func TestNothingKnown(t *testing.T) {
	text := definition("name: a, type: task, handler: Nobody", "name: t, type: transition, lifecycle: voice, entity: e, stepKey: s, requester: r")
	if d, found, warnings := Check([]byte(text), Known{}); d == nil || len(warnings) > 0 {
		t.Errorf("got violations %v, warnings %v", found, warnings)
	}
}

// TestAllAtOnce verifies that all violations are reported at once, in the order of the lines.
func TestAllAtOnce(t *testing.T) {
	d, found, _ := Check([]byte(`name: a/b
version: 1.5
colour: red
steps:
  - {name: end, type: task, handler: Nobody, signal: x, next: nowhere}
  - {name: b, type: tusk}
  - {name: c, type: condition, if: "input.a >", then: "", next: end}
  - {type: wait, durationMs: "5"}
`), everything)
	want := []string{
		"D1 /name", "type /version", "unknown-field /colour",
		"D1 /steps/0/name", "D5 /steps/0/handler", "unknown-field /steps/0/signal", "D2 /steps/0/next",
		"D7 /steps/1/type", "D6 /steps/2/if", "D7 /steps/2/then", "required /steps/3", "type /steps/3/durationMs",
	}
	if d != nil || !slices.Equal(rules(found), want) {
		t.Errorf("got violations %q", rules(found))
	}
}

// TestMadeInCode verifies that a definition built in code is checked by the same rules, without positions.
func TestMadeInCode(t *testing.T) {
	d := &Definition{
		Name: "order", Version: "1", Retention: time.Microsecond,
		Steps: []Step{
			{Name: "a", Type: Task, Signal: "x", Timeout: -1, Input: Value(`{"a":`)},
			{Name: "b", Type: Type("tusk")},
			{Name: "c", Type: Wait, Duration: 200 * 365 * 24 * time.Hour},
		},
	}
	found, _ := d.Lint(Known{})
	want := []string{
		"D7 /retentionMs", "D7 /steps/0/handler", "D7 /steps/0/signal", "D7 /steps/0/timeoutMs", "D7 /steps/0/input",
		"D7 /steps/1/type", "D7 /steps/2/durationMs",
	}
	if !slices.Equal(rules(found), want) {
		t.Errorf("got violations %v", found)
	}
	if found, _ := (&Definition{}).Lint(Known{}); len(found) == 0 {
		t.Error("empty definition has no violations")
	}
	many := &Definition{Name: "n", Version: "1", Steps: make([]Step, MaxSteps+1)}
	if found, _ := many.Lint(Known{}); !slices.Contains(rules(found), "D7 /steps") {
		t.Error("definition with too many steps has no violation")
	}
}

// TestFieldsOfTypes verifies that a field of another type is refused, and that the message lists the valid fields.
func TestFieldsOfTypes(t *testing.T) {
	whole := map[Type]string{
		Task: "handler: Charge", HTTP: "url: 'http://a'", Wait: "durationMs: 5", Event: "signal: s", Approval: "prompt: p",
		Condition: "if: 'true'", Transition: "lifecycle: invoice, entity: e, stepKey: close, requester: r",
	}
	for typ, s := range shapes {
		for _, f := range stepFields {
			if s.has(f.name) {
				continue
			}
			d, found, _ := Check([]byte(definition("name: a, type: "+string(typ)+", "+whole[typ]+", "+f.name+": x")), everything)
			if d != nil || !slices.Equal(rules(found), []string{"unknown-field /steps/0/" + f.name}) {
				t.Errorf("%s of %s: got violations %v", f.name, typ, found)
				continue
			}
			for _, name := range s.names() {
				if !strings.Contains(found[0].Message, name) {
					t.Errorf("%s of %s: message %q does not contain %s", f.name, typ, found[0].Message, name)
				}
			}
		}
		for _, name := range s.required {
			_, found, _ := Check([]byte(definition("name: a, type: "+string(typ))), everything)
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Rule == "required" && strings.Contains(v.Message, name) }) {
				t.Errorf("missing %s of %s: got violations %v", name, typ, found)
			}
		}
	}
}
