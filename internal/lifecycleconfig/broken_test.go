package lifecycleconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// handlers are the handlers that the configs of testdata name.
var handlers = map[string]Handler{
	"Close":                     {Kind: "action", Safety: Journaled, Timeout: time.Minute},
	"Wire":                      {Kind: "action", Safety: Opaque},
	"Slow":                      {Kind: "action", Safety: Idempotent, Timeout: 15 * time.Minute},
	"Vague":                     {Kind: "action"},
	"Check":                     {Kind: "validation"},
	"Mail":                      {Kind: "afterEffect"},
	"CloseBillingActionUseCase": {Kind: "action", Safety: Journaled},
	"CheckInvoice":              {Kind: "validation"},
	"MailInvoice":               {},
	"RegenerateInvoice":         {Kind: "action", Safety: Transactional},
	"ApplyPayment":              {Kind: "action", Safety: Transactional},
}

// broken lists the position of the error in each config of testdata/broken. The file name begins with the
// rule that the config breaks.
var broken = map[string]struct {
	path         string
	line, column int
}{
	"R1-number.yaml":                 {"/steps/1/successful_claim_state/admin", 14, 37},
	"R1-text.yaml":                   {"/steps/1/successful_claim_state/admin", 14, 37},
	"R1-three.yaml":                  {"/steps/1/successful_claim_state/admin", 14, 37},
	"R10-unreached.yaml":             {"/status_types/1", 3, 23},
	"R11-after.yaml":                 {"/steps/1/success_after_effect/admin", 17, 35},
	"R11-kind.yaml":                  {"/steps/1/validation", 17, 17},
	"R11-unknown.yaml":               {"/steps/1/action/admin", 16, 21},
	"R12-bare.yaml":                  {"/steps/2", 17, 5},
	"R12-id.yaml":                    {"/steps/1/step_id", 11, 14},
	"R12-step.yaml":                  {"/steps/2", 17, 5},
	"R13-journaled.yaml":             {"/steps/0/action", 11, 13},
	"R13-opaque.yaml":                {"/steps/0/action", 11, 13},
	"R14-default.yaml":               {"/steps/1/action/admin", 16, 21},
	"R14-timeout.yaml":               {"/steps/1/action/admin", 16, 21},
	"R15-claim-offered.yaml":         {"/steps/1/successful_claim_state/system", 14, 66},
	"R15-column-empty.yaml":          {"/columns/id", 7, 15},
	"R15-column.yaml":                {"/entity_table", 6, 15},
	"R15-control.yaml":               {"/steps/0/step_key", 8, 15},
	"R15-dollar.yaml":                {"/workflow", 1, 11},
	"R15-empty.yaml":                 {"/owning_module", 2, 16},
	"R15-failed.yaml":                {"/steps/0/failed_state/admin", 11, 27},
	"R15-initial.yaml":               {"/initial_status", 4, 17},
	"R15-janitor.yaml":               {"/janitor/stuck_after", 5, 24},
	"R15-list.yaml":                  {"/steps/1/status", 13, 13},
	"R15-long.yaml":                  {"/steps/0/step_key", 8, 15},
	"R15-none.yaml":                  {"/steps/0/status", 9, 13},
	"R15-offered.yaml":               {"/steps/1/validation/system", 17, 26},
	"R15-requester.yaml":             {"/steps/0/successful_state/", 10, 28},
	"R15-slash.yaml":                 {"/workflow", 1, 11},
	"R15-status-type.yaml":           {"/status_types/2", 3, 33},
	"R15-status.yaml":                {"/steps/1/status/0", 13, 14},
	"R15-success.yaml":               {"/steps/0/successful_state", 10, 23},
	"R15-table.yaml":                 {"/entity_table/name", 6, 22},
	"R15-timeout.yaml":               {"/steps/1/timeout", 17, 14},
	"R15-twice.yaml":                 {"/status_types/4", 3, 50},
	"R16-attempts.yaml":              {"/after_effects/Mail/max_attempts", 5, 38},
	"R16-many.yaml":                  {"/after_effects/Mail/max_attempts", 5, 38},
	"R16-missing.yaml":               {"/after_effects/Mail/on_missing", 5, 36},
	"R16-pauses.yaml":                {"/after_effects/Mail/max_backoff", 5, 50},
	"R16-refusal.yaml":               {"/after_effects/Mail/on_refusal", 5, 36},
	"R16-unknown.yaml":               {"/after_effects/Post", 5, 23},
	"R2-into.yaml":                   {"/steps/1/successful_claim_state/admin/0", 14, 38},
	"R2-revert.yaml":                 {"/steps/1/successful_claim_state/admin/1", 14, 47},
	"R3-same.yaml":                   {"/steps/1/successful_claim_state/admin", 14, 37},
	"R4-status.yaml":                 {"/steps/1/successful_claim_state/admin", 14, 37},
	"R5-bare.yaml":                   {"/steps/1/claim_state", 14, 18},
	"R5-failed.yaml":                 {"/steps/1/successful_claim_state/admin", 14, 37},
	"R5-success.yaml":                {"/steps/1/successful_claim_state/admin", 14, 37},
	"R6-reverts.yaml":                {"/steps/2/successful_claim_state/admin", 20, 37},
	"R7-elsewhere.yaml":              {"/steps/1/successful_claim_state/admin/1", 14, 47},
	"R8-failed.yaml":                 {"/steps/0/failed_state", 11, 19},
	"R8-initial.yaml":                {"/initial_status", 4, 17},
	"R8-start.yaml":                  {"/steps/2/status", 17, 43},
	"R8-success.yaml":                {"/steps/2/successful_state/admin", 17, 75},
	"R9-bare.yaml":                   {"/steps/1/successful_state", 15, 23},
	"R9-skips.yaml":                  {"/steps/1/successful_state/system", 15, 47},
	"R9-split.yaml":                  {"/steps/2/successful_state/system", 17, 80},
	"case-twin-field.yaml":           {"/steps/1/Action", 17, 5},
	"case-twin-requester.yaml":       {"/steps/1/action/Admin", 16, 28},
	"conflict-claim.yaml":            {"/steps/1/claim_state", 15, 18},
	"conflict-column.yaml":           {"/columns/id", 7, 15},
	"conflict-workspace.yaml":        {"/entity_table/workspace", 6, 40},
	"depth-block.yaml":               {"", 2, 129},
	"depth-json.json":                {"", 2, 64},
	"depth-yaml.yaml":                {"", 1, 74},
	"duplicate-field-json.json":      {"/steps/0/step_id", 7, 20},
	"duplicate-field-requester.yaml": {"/steps/1/action/admin", 16, 28},
	"duplicate-field-root.yaml":      {"/workflow", 6, 1},
	"encoding-bom.json":              {"", 1, 1},
	"encoding-escape.json":           {"/steps/0/step_key", 7, 32},
	"encoding-nul.yaml":              {"", 1, 12},
	"encoding-utf8.yaml":             {"", 2, 17},
	"required-root.yaml":             {"", 1, 1},
	"required-step.yaml":             {"/steps/0", 7, 5},
	"required-table.yaml":            {"/columns", 6, 10},
	"syntax-comment.json":            {"", 2, 3},
	"syntax-empty.yaml":              {"", 1, 1},
	"syntax-json.json":               {"", 4, 1},
	"syntax-second.json":             {"", 2, 1},
	"syntax-surrogate.json":          {"/steps/0/step_key", 7, 32},
	"syntax-yaml-flow.json":          {"", 1, 2},
	"syntax-yaml.yaml":               {"", 10, 5},
	"type-attempts.yaml":             {"/after_effects/Mail/max_attempts", 5, 38},
	"type-attempts-many.yaml":        {"/after_effects/Mail/max_attempts", 5, 38},
	"type-duration.yaml":             {"/steps/1/timeout", 17, 14},
	"type-id-hex.yaml":               {"/steps/1/step_id", 11, 14},
	"type-id.yaml":                   {"/steps/1/step_id", 11, 14},
	"type-janitor.yaml":              {"/janitor", 5, 10},
	"type-key.yaml":                  {"/steps/1/action/7", 16, 28},
	"type-null.yaml":                 {"/workflow", 1, 10},
	"type-number.json":               {"/steps/0/step_id", 7, 17},
	"type-status.yaml":               {"/steps/0/status", 9, 13},
	"type-steps.yaml":                {"/janitor", 5, 10},
	"unknown-field-after.yaml":       {"/after_effects/Mail/maxAttempts", 5, 24},
	"unknown-field-janitor.yaml":     {"/janitor/stuckAfter", 5, 11},
	"unknown-field-json.json":        {"/steps/0/stepId", 7, 6},
	"unknown-field-root.yaml":        {"/version", 6, 1},
	"unknown-field-step.yaml":        {"/steps/1/succesful_after_effect", 17, 5},
	"yaml-anchor.yaml":               {"/steps/1/action", 16, 13},
	"yaml-directive.yaml":            {"", 1, 1},
	"yaml-documents.yaml":            {"", 18, 1},
	"yaml-key.yaml":                  {"/workflow", 1, 1},
	"yaml-merge.yaml":                {"/steps/1/action", 16, 28},
	"yaml-tag.yaml":                  {"/workflow", 1, 11},
}

// TestBroken verifies that each config breaks one rule, and that the report names the rule, position and reason.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*")
	if err != nil || len(files) != len(broken) {
		t.Fatalf("got %d files for %d expectations: %v", len(files), len(broken), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			c, found, _ := Check(readFile(t, file), handlers)
			if c != nil || len(found) != 1 {
				t.Fatalf("got violations %v, want 1", found)
			}
			v, want := found[0], broken[name]
			if rule, _, _ := strings.Cut(name, v.Rule+"-"); rule != "" {
				t.Errorf("got rule %s", v.Rule)
			}
			if v.Path != want.path || v.Line != want.line || v.Column != want.column {
				t.Errorf("violation is at %q %d:%d, want %v", v.Path, v.Line, v.Column, want)
			}
			if len(strings.Fields(v.Message)) < 4 {
				t.Errorf("message is too short: %q", v.Message)
			}
		})
	}
}

// TestEveryRuleIsBroken verifies that every rule has a config that breaks it.
func TestEveryRuleIsBroken(t *testing.T) {
	rules := []string{configdoc.RuleEncoding, configdoc.RuleSyntax, configdoc.RuleDepth, configdoc.RuleYAML, configdoc.RuleDuplicate, configdoc.RuleTwin, configdoc.RuleUnknown, configdoc.RuleRequired, configdoc.RuleType, configdoc.RuleConflict}
	for i := range 16 {
		rules = append(rules, fmt.Sprintf("R%d", i+1))
	}
	for _, rule := range rules {
		if files, _ := filepath.Glob("testdata/broken/" + rule + "-*"); len(files) == 0 {
			t.Errorf("no test config breaks rule %s", rule)
		}
	}
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
