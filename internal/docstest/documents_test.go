package docstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
)

// TestDocumentsAreValid verifies that the JSON in the pages is JSON, and that lifecycle configs and workflow definitions
// parse. Package cli verifies settings.
func TestDocumentsAreValid(t *testing.T) {
	testlevel.OneGoroutine(t)
	pages, err := Pages(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	configs := 0
	for _, p := range pages {
		for _, b := range p.Blocks {
			switch b.Lang {
			case "json":
				all, err := documents(b.Text)
				if err != nil {
					t.Errorf("%s: %v", b.At(), err)
				}
				for _, v := range all {
					kind, err := document(v)
					if err != nil {
						t.Errorf("%s: %v", b.At(), err)
					}
					if kind != "" {
						configs++
					}
				}
			case "yaml":
				if err := yamlBlock(b); err != nil {
					t.Errorf("%s: %v", b.At(), err)
				}
				configs++
			}
		}
	}
	if configs < 5 {
		t.Errorf("only %d documents were found", configs)
	}
}

// document parses a document that is a lifecycle config or a workflow definition.
func document(text []byte) (kind string, err error) {
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil || fields["steps"] == nil {
		return "", nil
	}
	switch {
	case fields["workflow"] != nil:
		_, err := lifecycle.Parse[any](text)
		return "lifecycle", violations(err)
	case fields["version"] != nil && fields["name"] != nil:
		_, err := run.Parse(text)
		return "workflow", violations(err)
	}
	return "", nil
}

// violations adds the violations of an error to its text.
func violations(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return fmt.Errorf("%w: %+v", err, f.Violations)
	}
	return err
}

// whole is a config that the parts of configs in the pages complete.
const whole = `
workflow: order
owning_module: shop
status_types: [open, closing, closed]
initial_status: open
janitor: standard
steps:
  - {step_id: 10, step_key: close, status: open, successful_claim_state: [closing, open], successful_state: closed, action: Close, success_after_effect: MailInvoice}
`

// yamlBlock checks a block of YAML.
func yamlBlock(b Block) error {
	kind, err := document([]byte(b.Text))
	if err != nil || kind != "" {
		return err
	}
	switch of := b.Comments["part of"]; {
	case of == "lifecycle":
		_, err = lifecycle.Parse[any]([]byte(whole + b.Text))
		return violations(err)
	case strings.HasPrefix(of, "holdfast.yaml"), of == "handlers.yaml": // see package cli
		return nil
	case of != "":
		var v any
		return yaml.Unmarshal([]byte(b.Text), &v)
	}
	return errors.New("the document is unknown: name the document that it is a part of in a comment <!-- part of: DOCUMENT --> before the block")
}

// TestPlanted verifies that each check finds a mistake.
func TestPlanted(t *testing.T) {
	testlevel.OneGoroutine(t)
	page, err := Parse("docs/p.md", strings.Join([]string{
		"# One `Two`, three", "", "## One", "", "## One", "", "[a](#one-1) `[b](c)`", "",
		"<!-- source: docs/docs.go#r -->", "```go", "old", "```", "", "```sh", "call -X PUT $U/wallets/acme -d '{}'", "```", "",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := page.Anchors(), []string{"one-two-three", "one", "one-1"}; !slices.Equal(got, want) {
		t.Errorf("got anchors %q, want %q", got, want)
	}
	if got := page.Links(); len(got) != 1 || got[0] != (Link{Line: 7, Target: "#one-1"}) {
		t.Errorf("got links %+v", got)
	}
	if got := page.Replace(map[int]string{0: "new\n"}); !strings.Contains(got, "```go\nnew\n```\n") || strings.Contains(got, "old") {
		t.Errorf("got %q", got)
	}
	src := "package a\n\n\t// [r]\n\tone()\n\ttwo() // [hide]\n\t// [hide]\n\tthree()\n\t// [/hide]\n\tif x {\n\t\tfour()\n\t}\n\t// [/r]\n"
	if got, err := Region(src, "r"); got != "one()\nif x {\n\tfour()\n}\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for _, name := range []string{"s", "hide"} {
		if _, err := Region(strings.Replace(src, "// [/hide]\n", "", 1), name); err == nil {
			t.Errorf("the region %q was found", name)
		}
	}
	program := "// A test.\npackage a_test\n\nimport \"fmt\"\n\n// It runs.\nfunc Example_a() {\n\tdefer folder()() // [hide]\n\tfmt.Println(1)\n\t// Output: 1\n}\n"
	if got, err := Program(program); got != "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(1)\n\t// Output: 1\n}\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := Program(strings.Replace(program, "fmt.Println(1)", "fmt.Println(1) // [hide]", 1)); err == nil {
		t.Error("an unused import was not found")
	}
	if got := elided(`{"a":1,…,"b":[…],"c":"…",…}`); !json.Valid([]byte(got)) || got != `{"a":1,"b":[],"c":"…"}` {
		t.Errorf("got %s", got)
	}
}

// TestPlantedRequests verifies that requests with a mistake are found.
func TestPlantedRequests(t *testing.T) {
	testlevel.OneGoroutine(t)
	s := openSpec(t)
	for line, good := range map[string]bool{
		"call -X PUT $U/wallets/acme -d '{}'":                      true,
		"call $U/wallets/acme/ledger?backward=true # newest first": true,
		"call -X PUT $U/purses/acme -d '{}'":                       false,
		"call $U/wallets/acme/ledger?back=true":                    false,
		"call -X PUT $U/wallets/acme -d '{\"negative\": true}'":    false,
		"call -X PUT $U/wallets/acme -d '{'":                       false,
		"call -X POST $U/wallets/acme -d '{}'":                     false,
		"unknown":                                                  false,
		"make test":                                                false,
	} {
		commands, err := Commands(line, map[string]string{"U": server + "/api/v1"})
		if err == nil {
			_, err = s.command(Block{}, commands[0])
		}
		if (err == nil) != good {
			t.Errorf("%s: %v", line, err)
		}
	}
}
