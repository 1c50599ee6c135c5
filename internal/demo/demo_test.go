package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

// The config of the demo has no violations and no warnings.
func TestDemoConfig(t *testing.T) {
	_, violations, warnings := lifecycleconfig.Check(config, nil)
	if len(violations)+len(warnings) > 0 {
		t.Errorf("got violations %v, warnings %v", violations, warnings)
	}
}

// event returns an event of a history, for an operation at an epoch.
func event(text, operation string, epoch int64) lifecycle.Event {
	name, who, _ := strings.Cut(text, " by ")
	data, _ := json.Marshal(attempt{operation, epoch}) // never fails for plain values
	return lifecycle.Event{Name: name, Actor: who, Data: data}
}

// closedByOne returns an invoice that one caller has closed, after another was refused.
func closedByOne() *account {
	return &account{id: "1", executions: 1, claims: 1, refused: 1, won: []string{"one"}, status: "closed",
		observed: []string{"created", "claimed by one", "settled/close by one"},
		refusals: []lifecycle.Refusal{{Code: "CLAIM_FAILED"}},
		history:  []lifecycle.Event{event("created", "", 0), event("claimed by one", "a", 1), event("settled/close by one", "a", 1)}}
}

func TestDemoTally(t *testing.T) {
	var good tally
	good.add(closedByOne())
	good.recorded.mails = 1
	if err := good.check(); err != nil {
		t.Error(err)
	}
	if !strings.HasSuffix(good.String(), "duplicates prevented: 1\n") {
		t.Errorf("got tally %s", good)
	}
}

// Each kind of difference is found on its own.
func TestDemoFindsWhatMustNotBe(t *testing.T) {
	for name, plant := range map[string]func(*account){
		"closed twice": func(a *account) {
			a.history = append(a.history, event("claimed by two", "b", 2), event("settled/close by two", "b", 2))
		},
		"two winners":        func(a *account) { _, _ = a.observe("two", "close", nil) },
		"closed by another":  func(a *account) { a.history[2].Actor = "two" },
		"never closed":       func(a *account) { a.history, a.status = a.history[:2], "closing" },
		"open after all":     func(a *account) { a.status = "approved" },
		"an extra execution": func(a *account) { a.executions++ },
		"an extra claim":     func(a *account) { a.history = append(a.history, event("claimed by two", "b", 2)) },
		"a refusal unnoted":  func(a *account) { a.refusals = nil },
		"a refusal made up":  func(a *account) { a.refused = 0 },
		"a kill not mended":  func(a *account) { a.kills++ },
		"paid, not charged":  func(a *account) { a.status = "paid" },
		"put back in secret": func(a *account) { a.history = append(a.history, event("recovered", "a", 1)) },
	} {
		var bad tally
		a := closedByOne()
		plant(a)
		bad.add(a)
		bad.recorded.mails = bad.observed.mails
		if bad.check() == nil {
			t.Errorf("%s: the check found no mistake", name)
		}
	}
}

// A bar is drawn and cleared, and only a terminal has one.
func TestBar(t *testing.T) {
	var out bytes.Buffer
	b := &bar{out: &out, of: 4}
	b.draw(1)
	b.clear()
	if got := out.String(); got != "  [=   ] 1 of 4\r\x1b[K" {
		t.Errorf("got progress bar %q", got)
	}
	if b := newBar(&out, 4); b != nil {
		t.Error("a buffer is treated as a terminal")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if b := newBar(file, 4); b != nil {
		t.Error("a file is treated as a terminal")
	}
}

// The tally is printed as an aligned table.
func TestDemoTallyIsATable(t *testing.T) {
	var out bytes.Buffer
	fmt.Fprint(&out, tally{observed: counts{executions: 21}, recorded: counts{executions: 21, lost: 60}})
	want := "                      observed  recorded\n  executions                21        21\n"
	if !strings.HasPrefix(out.String(), want) {
		t.Errorf("got output\n%s", out.String())
	}
}
