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

// TestOneClone verifies that, while processes race and are killed, each
// invoice is replaced by one clone, and nothing stays claimed.
func TestOneClone(t *testing.T) {
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
	committed = "a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error { return c.write(ctx, s.DB.In(tx)) })\n"
	atOnce    = "var _ holdfast.Tx\nif err := c.write(ctx, s.DB); err != nil {\n return err\n}\n s.Danger(\"written\")\n"
)

// mistakes are programs that a new user might write.
var mistakes = map[string][]change{
	"no claim, and writes outside the transaction": {
		{"invoice.yaml", "    successful_claim_state: { admin: [regenerating, sent] }\n", ""},
		{"invoice.yaml", "[draft, sent, regenerating, regenerated]", "[draft, sent, regenerated]"},
		{"invoice.go", committed, atOnce},
	},
	"a claim, but writes outside the transaction": {
		{"invoice.go", committed, atOnce},
	},
}

// TestMistakes verifies that the checks of the program find a second clone if the writes are
// not in the transaction of the step.
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
