package handlers_test

import (
	"context"
	"errors"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/examples/handlers"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

func TestMain(m *testing.M) { os.Exit(holdfasttest.Main(m).Run()) }

// pairs are the mistakes with what a trace must show, and the repaired handlers.
var pairs = map[string]struct {
	naive, repaired func() holdfasttest.Scenario
	shows           string
}{
	"charge without Effect":        {handlers.ChargeWithoutEffect, handlers.ChargeWithEffect, "call POST /charges"},
	"transactional but acting":     {handlers.TransactionalButActing, handlers.JournaledAndProbing, "call charge"},
	"mail after Fire":              {handlers.MailAfterFire, handlers.MailAsAfterEffect, "call mail"},
	"after-effect without its key": {handlers.AfterEffectWithoutKey, handlers.AfterEffectWithKey, "call charge"},
	"a key made of the attempt":    {handlers.KeyOfTheAttempt, handlers.KeyOfTheOperation, "call charge"},
}

// TestRepaired verifies that the repaired handlers pass every case that is run on both databases.
func TestRepaired(t *testing.T) {
	for name, p := range pairs {
		t.Run(name, func(t *testing.T) { holdfasttest.Crash(t, p.repaired()) })
	}
}

// naiveVar is set in the process that runs the mistakes, because that fails.
const naiveVar = "HOLDFAST_EXAMPLE_NAIVE"

// TestNaive verifies that Crash finds each mistake on each database, also with the cases of the lowest level only, and that
// the printed trace shows the call.
func TestNaive(t *testing.T) {
	for name, p := range pairs {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(naiveVar) != "" {
				holdfasttest.Crash(t, p.naive())
				return
			}
			for _, db := range []string{"sqlite", "postgres"} {
				found(t, db, p.shows)
			}
		})
	}
}

func found(t *testing.T, db, shows string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$/^"+db+"$")
	cmd.Env = append(os.Environ(), naiveVar+"=1", "HOLDFAST_TEST_LEVEL=test")
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), shows) || !strings.Contains(string(out), "replay: ") {
		t.Fatalf("%s: not found (%v):\n%s", db, err, out)
	}
	t.Logf("%s: found after %s", db, time.Since(begun).Round(time.Millisecond))
}

// TestOnlyPublicPackages verifies that the example and its test see only what a user's module sees.
func TestOnlyPublicPackages(t *testing.T) {
	for _, name := range []string{"handlers.go", "handlers_test.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if strings.Contains(i.Path.Value, "/internal/") {
				t.Errorf("%s imports %s", name, i.Path.Value)
			}
		}
	}
}
