package cli

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/internal/docstest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// inSentence matches a command in a sentence.
var inSentence = regexp.MustCompile("`holdfast ([a-z][^`\n]*)`")

// incomplete matches the errors of a command that is named without its arguments.
var incomplete = regexp.MustCompile(`expected |^missing flags: `)

// TestPagesShowRealCommands verifies that each command in the pages for users can be parsed, and that the settings files and
// the files of handlers in them are accepted.
func TestPagesShowRealCommands(t *testing.T) {
	testlevel.OneGoroutine(t)
	pages, err := docstest.Pages(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	t.Chdir(folder)
	var g grammar
	k, err := newProgram(nil, io.Discard, io.Discard).parser(&g)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range pages {
		for _, b := range p.Blocks {
			found += checkBlock(t, k, folder, b)
		}
		for _, m := range inSentence.FindAllStringSubmatch(p.Text, -1) {
			err := parseExample(k, m[1])
			if err != nil && !errors.Is(err, errHelped) && !incomplete.MatchString(err.Error()) {
				t.Errorf("%s: `holdfast %s` does not parse: %v", p.Name, m[1], err)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d commands and settings were found", found)
	}
}

// checkBlock checks the commands and the settings of a block, and returns their number.
func checkBlock(t *testing.T, k *kong.Kong, folder string, b docstest.Block) (found int) {
	t.Helper()
	switch part := b.Comments["part of"]; {
	case part == "holdfast.yaml":
		file := filepath.Join(folder, part)
		if err := os.WriteFile(file, []byte(b.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(file)
		if err := parseWords(k, []string{"serve"}); err != nil {
			t.Errorf("%s: %v", b.At(), err)
		}
		return 1
	case part == "handlers.yaml":
		if _, err := parseHandlers([]byte(b.Text)); err != nil {
			t.Errorf("%s: %v", b.At(), err)
		}
		return 1
	case b.Lang != "sh" && b.Lang != "console":
		return 0
	}
	commands, err := b.Commands(map[string]string{})
	if err != nil {
		t.Errorf("%s: %v", b.At(), err)
	}
	for _, words := range commands {
		if words[0] == "go" && len(words) > 3 && words[2] == "./cmd/holdfast" {
			words = words[2:]
		} else if words[0] != "holdfast" {
			continue
		}
		found++
		if err := parseWords(k, words[1:]); err != nil {
			t.Errorf("%s: %q does not parse: %v", b.At(), strings.Join(words, " "), err)
		}
	}
	return found
}

// mostHelp is the number of lines of a help that fits a screen, if lines have 80 columns. The others list more: all commands,
// the settings of a server, or all that a reaction can be.
const mostHelp = 60

var longerHelp = map[string]int{"": 76, "dev": 105, "serve": 118, "reactions put": 72, "handlers put": 61}

// TestHelpFitsAScreen verifies that no help is longer than a screen. TestExamplesAreUnderstood verifies the examples in it.
func TestHelpFitsAScreen(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Chdir(t.TempDir())
	var g grammar
	k, err := newProgram(nil, io.Discard, io.Discard).parser(&g)
	if err != nil {
		t.Fatal(err)
	}
	commands := []string{""}
	for _, leaf := range k.Model.Leaves(true) {
		commands = append(commands, strings.TrimPrefix(leaf.FullPath(), "holdfast "))
	}
	for _, command := range commands {
		var out bytes.Buffer
		k.Stdout = &out
		if err := parseWords(k, append(strings.Fields(command), "--help")); !errors.Is(err, errHelped) {
			t.Fatalf("%s --help: %v", command, err)
		}
		most := cmp.Or(longerHelp[command], mostHelp)
		if n := strings.Count(out.String(), "\n"); n > most {
			t.Errorf("holdfast %s --help has %d lines, want at most %d", command, n, most)
		}
	}
}

var update = flag.Bool("update", false, "write the commands into docs/cli.md")

// TestCommandsAreListed verifies that docs/cli.md lists each command. With -update, it writes them.
func TestCommandsAreListed(t *testing.T) {
	testlevel.OneGoroutine(t)
	name, err := filepath.Abs("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := docstest.Section(string(page), "commands")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var g grammar
	k, err := newProgram(nil, io.Discard, io.Discard).parser(&g)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| command | what it does |\n| --- | --- |\n")
	for _, leaf := range k.Model.Leaves(true) {
		fmt.Fprintf(&want, "| `%s` | %s |\n", leaf.FullPath(), leaf.Help)
	}
	if got == want.String() {
		return
	}
	if !*update {
		t.Fatalf("docs/cli.md differs from the commands: run go test ./internal/cli -run TestCommandsAreListed -update\nwant:\n%s", want.String())
	}
	if err := os.WriteFile(name, []byte(docstest.ReplaceSection(string(page), "commands", want.String())), 0o644); err != nil {
		t.Fatal(err)
	}
}
