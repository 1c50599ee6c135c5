package lifecycleconfig

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

func load(t testing.TB, name string) *Config {
	t.Helper()
	c, violations, _ := Check(readFile(t, "testdata/valid/"+name), handlers)
	if c == nil {
		t.Fatalf("%s: got violations %v", name, violations)
	}
	return c
}

// bare returns a copy of a config without its source positions.
func bare(c *Config) *Config {
	b := *c
	b.source = configdoc.Source{}
	return &b
}

// TestTwins verifies that JSON and YAML give the same config.
func TestTwins(t *testing.T) {
	files, _ := filepath.Glob("testdata/valid/*.yaml")
	if len(files) < 3 {
		t.Fatalf("got files %v, want at least 3", files)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		y, j := load(t, name+".yaml"), load(t, name+".json")
		if !reflect.DeepEqual(bare(y), bare(j)) {
			t.Errorf("%s: YAML is\n%+v\nJSON is\n%+v", name, bare(y), bare(j))
		}
		if !reflect.DeepEqual(y.Claims(), j.Claims()) || y.Diagram().SVG() != j.Diagram().SVG() || y.Diagram().Mermaid() != j.Diagram().Mermaid() {
			t.Errorf("%s: YAML and JSON have different claims or diagrams", name)
		}
	}
}

// TestJSONAsYAML verifies that JSON parsed as YAML gives the same config.
func TestJSONAsYAML(t *testing.T) {
	files, _ := filepath.Glob("testdata/valid/*.json")
	for _, file := range files {
		data := readFile(t, file)
		j, _ := Parse(data)
		y, violations := Parse(append([]byte("# not a brace\n"), data...))
		if len(violations) > 0 || !reflect.DeepEqual(bare(y), bare(j)) {
			t.Errorf("%s: got violations %v\n%+v\n%+v", file, violations, bare(y), bare(j))
		}
	}
}

// TestSeed verifies the exact value of a parsed step.
func TestSeed(t *testing.T) {
	admin := func(s string) Per[string] { return Per[string]{By: map[string]string{"admin": s}} }
	want := Step{
		ID: 20, Key: "close", Status: []string{"approved"},
		Claim:   Per[Claim]{By: map[string]Claim{"admin": {Into: "closing", Revert: "approved"}}},
		Success: admin("closed"), Action: admin("CloseBillingActionUseCase"),
	}
	if got := load(t, "billing.json").Steps[1]; !reflect.DeepEqual(got, want) {
		t.Errorf("got step %+v", got)
	}
}

func TestEverythingIsRead(t *testing.T) {
	c := load(t, "invoice.yaml")
	if want := (AfterEffect{MaxAttempts: 40, Backoff: 5 * time.Second, MaxBackoff: time.Hour, OnRefusal: Block, OnMissing: Skip}); c.AfterEffects["MailInvoice"] != want {
		t.Errorf("got after-effects %+v", c.AfterEffects)
	}
	if want := (Table{Name: "app.invoices", ID: "invoice_id", Status: "status", Version: "row_version", InWorkspace: "acme"}); *c.Table != want {
		t.Errorf("got table %+v", *c.Table)
	}
	if want := (Table{Name: "orders", ID: "order_id", Status: "state", Version: "lock", Workspace: "tenant"}); *load(t, "table.yaml").Table != want {
		t.Errorf("got table %+v", *load(t, "table.yaml").Table)
	}
	if want := (Janitor{Every: 2 * time.Minute, StuckAfter: 5 * time.Minute}); *load(t, "billing.yaml").Janitor != want {
		t.Errorf("got janitor %+v", *load(t, "billing.yaml").Janitor)
	}
	if c.Janitor == nil || *c.Janitor != (Janitor{}) {
		t.Errorf("got default janitor %+v", c.Janitor)
	}
	s := c.Steps[3]
	if claim, ok := s.Claim.For("anyone"); !ok || claim != (Claim{"applying_payment_from_sent", "sent"}) {
		t.Errorf("claim without requesters: got %v, %v", claim, ok)
	}
	if c.Steps[2].Timeout != 10*time.Minute || !slices.Equal(c.Steps[4].Serialized, []string{"system"}) {
		t.Errorf("got steps %+v", c.Steps)
	}
}

func TestClaims(t *testing.T) {
	got := load(t, "invoice.yaml").Claims()
	want := []ClaimState{
		{"invoice", "invoicing", "applying_payment_from_overdue", "overdue", "app.invoices"},
		{"invoice", "invoicing", "applying_payment_from_sent", "sent", "app.invoices"},
		{"invoice", "invoicing", "regenerating", "sent", "app.invoices"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// TestAllAtOnce verifies that all violations are reported at once, in the order of the lines.
func TestAllAtOnce(t *testing.T) {
	c, found, _ := Check([]byte(`workflow: a/b
owning_module: billing
status_types: [draft, closing, closed]
initial_status: drafd
colour: red
steps:
  - {step_id: one, step_key: close, status: draft, successful_claim_state: [closing], successful_state: closed}
  - {step_id: 2, step_key: close, status: closing, claim_state: [closing, lost], successful_state: closing}
`), nil)
	var got []string
	for _, v := range found {
		got = append(got, v.Rule+" "+v.Path)
	}
	want := []string{
		"R15 /workflow", "R15 /initial_status", "unknown-field /colour", "type /steps/0/step_id",
		"R1 /steps/0/successful_claim_state", "R4 /steps/1/claim_state", "R5 /steps/1/claim_state", "R2 /steps/1/claim_state/1",
	}
	if c != nil || !slices.Equal(got, want) {
		t.Errorf("got violations %q", got)
	}
}

// TestLimits verifies that a text that is too large is refused, and that the number of violations is limited.
func TestLimits(t *testing.T) {
	if _, found := Parse(bytes.Repeat([]byte(" "), 1<<20+1)); len(found) != 1 || found[0].Rule != configdoc.RuleSize {
		t.Errorf("got violations %v, want one about the size", found)
	}
	if _, found := Parse([]byte("{" + strings.Repeat(`"a":1,`, 5000) + `"b":1}`)); len(found) != configdoc.MaxFound {
		t.Errorf("got %d violations", len(found))
	}
	c := &Config{Workflow: "w", OwningModule: "m", StatusTypes: []string{"a", "b"}, InitialStatus: "a"}
	s := Step{ID: 1, Key: "k", Success: Per[string]{By: make(map[string]string)}}
	for i := range 200 {
		status := fmt.Sprintf("s%d", i)
		c.StatusTypes = append(c.StatusTypes, status)
		s.Status = append(s.Status, status)
		s.Success.By[status] = "b"
	}
	c.Steps = []Step{s}
	if found, _ := c.Lint(nil); len(found) != 1 || found[0].Path != "/steps" || found[0].Rule != "R15" {
		t.Errorf("got violations %v", found)
	}
	if svg := c.Diagram().SVG(); !strings.Contains(svg, "too large to draw") {
		t.Errorf("config was drawn, %d bytes, want a note that it is too large", len(svg))
	}
}

// TestHostile verifies that texts that attack the parser's stack or time fail quickly with a report.
func TestHostile(t *testing.T) {
	for _, unit := range []string{
		"[", "{", "- ", "? ", "!a ", "&a ", "*a ", "a: ", "a:\n", "|\n", ">", "\"", "'", "%a\n", "---\n", "...\n", "<<: ", ", ", "\t", "#", "!", "&",
		"[]", "[a: ", "{a: ", "- a\n", "- [", "a: |\n x\n", "é", "\r", "[{", ": ", "?\n", "-\n", "a: {a: b}\n", "- - a\n  - b\n",
	} {
		start := time.Now()
		_, found := Parse(bytes.Repeat([]byte(unit), (128<<10)/len(unit)))
		if len(found) == 0 {
			t.Errorf("%q was accepted", unit)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%q took %v", unit, took)
		}
	}
	var deep strings.Builder
	for i := range 1000 {
		deep.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	if _, found := Parse([]byte(deep.String())); len(found) != 1 || found[0].Rule != configdoc.RuleDepth {
		t.Errorf("got violations %v, want one about the depth", found)
	}
}
