package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/holdfast-go/holdfast/internal/inbox"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

const runbooks = "../../docs/runbooks"

// alertRules are the rules in deploy/prometheus/alerts.yaml, as far as tests need them.
type alertRules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

// TestEveryAlertHasARunbook verifies that each alert is complete and links to the page that names it, that each kind of the
// inbox has a page, and that no page is left over.
func TestEveryAlertHasARunbook(t *testing.T) {
	text, err := os.ReadFile("../../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules alertRules
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	needed := map[string]bool{"README": true}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			page, ok := strings.CutPrefix(r.Annotations["runbook_url"], "https://github.com/holdfast-go/holdfast/blob/main/docs/runbooks/")
			body, err := os.ReadFile(filepath.Join(runbooks, page))
			if !ok || err != nil || !strings.Contains(string(body), "\nAlert: `"+r.Alert+"`.\n") {
				t.Errorf("%s: runbook_url %q does not lead to a page that names the alert: %v", r.Alert, r.Annotations["runbook_url"], err)
			}
			if r.For == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) {
				t.Errorf("%s needs a duration, a severity, a summary and a description: %+v", r.Alert, r)
			}
			needed[strings.TrimSuffix(page, ".md")] = true
		}
	}
	if len(needed) < 20 {
		t.Fatalf("only %d alerts were read", len(needed))
	}
	for _, k := range inbox.Kinds {
		needed[string(k)] = true
	}
	files, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".md")
		if !needed[name] {
			t.Errorf("%s belongs to no alert and to no kind of the inbox", f)
		}
		delete(needed, name)
	}
	for name := range needed {
		t.Errorf("%s/%s.md is missing", runbooks, name)
	}
}

// command matches a command in a block of code or in a sentence.
var command = regexp.MustCompile("(?m)(?:^|`)holdfast ([a-z][^`\n]*)")

// TestRunbooksParse verifies that each page has the same sections, and that each command in it can be parsed.
func TestRunbooksParse(t *testing.T) {
	testlevel.OneGoroutine(t)
	files, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(f)] = string(text)
	}
	t.Chdir(t.TempDir()) // a settings file of this folder would count
	var g grammar
	k, err := newProgram(nil, io.Discard, io.Discard).parser(&g)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		for _, section := range []string{"## What it means", "## Look", "## Do", "## It is over when"} {
			if name != "README.md" && strings.Count(text, "\n"+section+"\n\n") != 1 {
				t.Errorf("%s needs one section %q", name, section)
			}
		}
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			if err := parseExample(k, m[1]); err != nil {
				t.Errorf("%s: %q does not parse: %v", name, m[1], err)
			}
		}
	}
}
