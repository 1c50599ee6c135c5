package lifecycleconfig

import (
	"slices"
	"strings"
	"testing"
)

func rules(all []Violation) (names []string) {
	for _, v := range all {
		names = append(names, v.Rule+" "+v.Path)
	}
	return names
}

func TestWarnings(t *testing.T) {
	const text = `workflow: billing
owning_module: billing
status_types: [draft, approved, closing, closed, forgotten]
initial_status: draft
steps:
  - {step_id: 1, step_key: approve, status: draft, successful_state: {admin: approved, cron: approved}, action: Vague, serialized: [cron, nobody]}
  - {step_id: 2, step_key: close, status: approved, claim_state: [closing, approved], successful_state: closed, action: {admin: Vague}}
`
	c, violations, warnings := Check([]byte(text), handlers)
	want := []string{
		"W2 /status_types/4", "W3 /steps/0/action", "W5 /steps/0/serialized/1", "W4 /steps/1/claim_state", "W1 /steps/1/action/admin",
	}
	if c == nil || !slices.Equal(rules(warnings), want) {
		t.Errorf("got violations %v, warnings %q", violations, rules(warnings))
	}
	for _, v := range warnings {
		if v.Line < 3 || v.Column < 1 || v.Message == "" {
			t.Errorf("got warning %+v", v)
		}
	}
	if _, warnings := c.Lint(nil); slices.ContainsFunc(warnings, func(v Violation) bool { return v.Rule == "W1" || v.Rule == "W3" }) {
		t.Errorf("without known handlers: got warnings %v", warnings)
	}
}

// TestHandlersUnknown verifies that handler names are not checked if the handlers are unknown.
func TestHandlersUnknown(t *testing.T) {
	for _, name := range []string{"R11-unknown", "R11-kind", "R11-after", "R13-journaled", "R13-opaque", "R14-default", "R14-timeout"} {
		c, violations, _ := Check(readFile(t, "testdata/broken/"+name+".yaml"), nil)
		if c == nil {
			t.Errorf("%s: %v", name, violations)
		}
	}
}

// TestMadeInCode verifies that a config built in code is checked by the same rules, without positions.
func TestMadeInCode(t *testing.T) {
	closed, claim := "closed", Claim{"closing", "approved"}
	c := &Config{
		Workflow: "billing", OwningModule: "billing", InitialStatus: "approved",
		StatusTypes: []string{"approved", "closing", "closed"}, Janitor: &Janitor{Every: -1},
		Steps: []Step{{ID: 1, Key: "close", Status: []string{"approved"}, Claim: Per[Claim]{All: &claim}, Success: Per[string]{All: &closed}, Timeout: -1}},
	}
	violations, _ := c.Lint(nil)
	if want := []string{"R15 /janitor/every", "R15 /steps/0/timeout"}; !slices.Equal(rules(violations), want) {
		t.Errorf("got violations %v", violations)
	}
	c.Janitor, c.Steps[0].Timeout, c.Workflow, claim.Into = nil, 0, "", "closed"
	violations, _ = c.Lint(nil)
	if want := []string{"R15 /workflow", "R5 /steps/0/successful_claim_state"}; !slices.Equal(rules(violations), want) {
		t.Errorf("got violations %v", violations)
	}
	if len((&Config{}).Claims()) != 0 {
		t.Error("an empty config has claims")
	}
	if violations, _ := (&Config{}).Lint(nil); len(violations) == 0 {
		t.Error("empty config has no violations")
	}
}

// TestSkippedClaim verifies that a skipped claim is found for every way to write a step, and only
// then.
func TestSkippedClaim(t *testing.T) {
	const head = "workflow: w\nowning_module: m\nstatus_types: [a, b, c]\ninitial_status: a\nsteps:\n"
	for text, want := range map[string]string{
		"  - {step_id: 1, step_key: k, status: a, claim_state: [b, a], successful_state: {x: c, y: c}}":                                                                                                "",
		"  - {step_id: 1, step_key: k, status: a, claim_state: {x: [b, a]}, successful_state: {x: c, y: c}, serialized: y}":                                                                            "",
		"  - {step_id: 1, step_key: k, status: a, claim_state: {x: [b, a]}, successful_state: {x: c, y: c}, serialized: [z]}":                                                                          "R9 /steps/0/successful_state/y",
		"  - {step_id: 1, step_key: k, status: a, claim_state: {x: [b, a]}, successful_state: c, serialized: y}":                                                                                       "R9 /steps/0/successful_state",
		"  - {step_id: 1, step_key: k, status: a, claim_state: {x: [b, a]}, successful_state: {x: c}}\n  - {step_id: 2, step_key: k, status: a, successful_state: {y: c}, serialized: y}":              "",
		"  - {step_id: 1, step_key: k, status: a, claim_state: {x: [b, a]}, successful_state: {x: c}}\n  - {step_id: 2, step_key: other, status: a, successful_state: {y: c}}":                         "",
		"  - {step_id: 1, step_key: k, status: a, successful_state: {y: c}}\n  - {step_id: 2, step_key: k, status: a, claim_state: [b, a], successful_state: {x: c}}":                                  "R9 /steps/0/successful_state/y",
		"  - {step_id: 1, step_key: k, status: [a, c], successful_state: {y: a}}\n  - {step_id: 2, step_key: k, status: a, claim_state: [b, a], successful_state: {x: d}}\nstatus_types: [a, b, c, d]": "duplicate-field /status_types",
	} {
		_, violations, _ := Check([]byte(head+text), nil)
		if got := strings.Join(rules(violations), " "); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s\nfound %q, want %q", text, got, want)
		}
	}
}

// TestStatusGraph verifies which statuses must be reachable and lead to an end. A lifecycle need not end, and the rows of
// a user table may be moved by other code.
func TestStatusGraph(t *testing.T) {
	const head = "workflow: w\nowning_module: m\ninitial_status: draft\njanitor: standard\n"
	for name, c := range map[string]struct{ text, violations, warnings string }{
		"close and reopen": {`status_types: [draft, open, closed]
steps:
  - {step_id: 1, step_key: open, status: draft, successful_state: open}
  - {step_id: 2, step_key: close, status: open, successful_state: closed}
  - {step_id: 3, step_key: reopen, status: closed, successful_state: open}`, "", ""},
		"a claimed step ends where it starts": {`status_types: [draft, sent, regenerating, cancelled]
steps:
  - {step_id: 1, step_key: send, status: draft, successful_state: sent}
  - {step_id: 2, step_key: cancel, status: draft, successful_state: cancelled}
  - {step_id: 3, step_key: regenerate, status: sent, claim_state: [regenerating, sent], successful_state: sent}`, "", ""},
		"a claimed step fails to where it starts": {`status_types: [draft, paying, paid]
steps:
  - {step_id: 1, step_key: pay, status: draft, claim_state: [paying, draft], successful_state: paid, failed_state: draft}`, "", ""},
		"other code moves the rows": {`entity_table: invoices
status_types: [draft, sent, imported, booked]
steps:
  - {step_id: 1, step_key: send, status: draft, successful_state: sent}
  - {step_id: 2, step_key: book, status: imported, successful_state: booked}`, "", ""},
		"unreachable": {`status_types: [draft, sent, imported, booked]
steps:
  - {step_id: 1, step_key: send, status: draft, successful_state: sent}
  - {step_id: 2, step_key: book, status: imported, successful_state: booked}`, "R10 /status_types/2 R10 /status_types/3", ""},
		"some statuses do not lead to the end": {`status_types: [draft, cancelled, open, closing, closed]
steps:
  - {step_id: 1, step_key: cancel, status: draft, successful_state: cancelled}
  - {step_id: 2, step_key: open, status: draft, successful_state: open}
  - {step_id: 3, step_key: close, status: open, claim_state: [closing, open], successful_state: closed}
  - {step_id: 4, step_key: reopen, status: closed, successful_state: open}`, "", "W6 /status_types/2"},
	} {
		_, violations, warnings := Check([]byte(head+c.text), nil)
		if got := strings.Join(rules(violations), " "); got != c.violations {
			t.Errorf("%s: got violations %v", name, violations)
		}
		if got := strings.Join(rules(warnings), " "); got != c.warnings {
			t.Errorf("%s: got warnings %v", name, warnings)
		}
	}
}
