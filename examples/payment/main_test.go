package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// perform runs a program, which starts and kills its own child processes.
func perform(t *testing.T, program string, args ...string) (output string, ok bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, append(args, "-dir", t.TempDir())...)
	out, err := c.CombinedOutput()
	t.Logf("%s\n%s", c, out)
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return string(out), err == nil
}

// TestOneCredit verifies that, while processes race and are killed, each
// invoice is charged and credited once, and nothing stays claimed.
func TestOneCredit(t *testing.T) {
	testlevel.Long(t)
	databases := map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + holdfasttest.SQLite(t) },
		"postgres": func(t *testing.T) string { return holdfasttest.PostgreSQL(t) },
	}
	seeds := []string{"1"}
	program := build(t, nil)
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range seeds {
				out, ok := perform(t, program, "-seed", seed, "-db", database(t))
				if !ok {
					t.Errorf("a check failed with seed %s", seed)
				}
				if !regexp.MustCompile(`killed [1-9]\d* times`).MatchString(out) {
					t.Errorf("no process was killed with seed %s", seed)
				}
			}
		})
	}
}

// change introduces a mistake into one of the program's files.
type change struct{ file, from, to string }

const (
	journaled   = "holdfast.Effect(ctx, \"charge\","
	atOnce      = "charge(ctx,"
	unjournaled = `// charge calls with a new key each time.
func charge(ctx context.Context, call func(context.Context, string) (string, error), _ holdfast.EffectOption) (string, error) {
	return call(ctx, rand.Text())
}

// payment is a booking`
)

// mistakes are programs that a new user might write.
var mistakes = map[string][]change{
	"no claim and no journal": {
		{"invoice.yaml", "    successful_claim_state: { admin: [applying_payment_from_sent, sent] }\n", ""},
		{"invoice.yaml", "    successful_claim_state: { admin: [applying_payment_from_overdue, overdue] }\n", ""},
		{"invoice.yaml", "applying_payment_from_sent, applying_payment_from_overdue, paid]", "paid]"},
		{"invoice.go", journaled, atOnce},
		{"invoice.go", "lifecycle.Journaled()", "lifecycle.Idempotent()"},
		{"invoice.go", "// payment is a booking", unjournaled},
		{"invoice.go", `_ "embed"`, "\"crypto/rand\"\n_ \"embed\""},
	},
	"a claim but no journal": {
		{"invoice.go", journaled, atOnce},
		{"invoice.go", "lifecycle.Journaled()", "lifecycle.Idempotent()"},
		{"invoice.go", "// payment is a booking", unjournaled},
		{"invoice.go", `_ "embed"`, "\"crypto/rand\"\n_ \"embed\""},
	},
}

// TestMistakes verifies that the checks of the program find a second charge if the gateway is
// called without the journal.
func TestMistakes(t *testing.T) {
	testlevel.Long(t)
	for name, changes := range mistakes {
		t.Run(name, func(t *testing.T) {
			program := build(t, changes)
			for _, seed := range []string{"1", "2", "3", "4"} { // a kill may come too late
				if out, ok := perform(t, program, "-seed", seed); !ok && strings.Contains(out, "BROKEN") {
					return
				} else if !ok {
					t.Fatal("the program failed before its checks")
				}
			}
			t.Error("the checks did not find the planted mistake")
		})
	}
}

// build builds the program with changes applied. It does not use the race detector, with which
// the processes are too slow on a small machine for leases of two seconds.
func build(t *testing.T, changes []change) (program string) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for _, c := range changes {
		file, err := filepath.Abs(c.file)
		if err != nil {
			t.Fatal(err)
		}
		source := file
		if replace[file] != "" {
			source = replace[file]
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), c.from) {
			t.Fatalf("%s does not contain %q any more", c.file, c.from)
		}
		replace[file] = filepath.Join(dir, c.file)
		write(t, replace[file], strings.ReplaceAll(string(text), c.from, c.to))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), string(overlay))
	program = filepath.Join(dir, "program")
	c := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", c, err, out)
	}
	return program
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
