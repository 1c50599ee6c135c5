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

// The demo's config is one that lint finds nothing wrong with.
func TestDemoConfig(t *testing.T) {
	_, violations, warnings := lifecycleconfig.Check(config, nil)
	if len(violations)+len(warnings) > 0 {
		t.Errorf("%v, %v", violations, warnings)
	}
}

// event is one of a history, of an operation at an epoch.
func event(text, operation string, epoch int64) lifecycle.Event {
	name, who, _ := strings.Cut(text, " by ")
	data, _ := json.Marshal(attempt{operation, epoch}) // of plain values
	return lifecycle.Event{Name: name, Actor: who, Data: data}
}

// closedByOne is an invoice that one has closed, and of which another was refused.
func closedByOne() *account {
	return &account{id: "1", bodies: 1, claims: 1, refused: 1, won: []string{"one"}, status: "closed",
		told:     []string{"created", "claimed by one", "settled/close by one"},
		attempts: []lifecycle.Refusal{{Code: "CLAIM_FAILED"}},
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
		t.Errorf("told %s", good)
	}
}

// Each thing that must not be is found, also if all the rest is well.
func TestDemoFindsWhatMustNotBe(t *testing.T) {
	for name, plant := range map[string]func(*account){
		"closed twice": func(a *account) {
			a.history = append(a.history, event("claimed by two", "b", 2), event("settled/close by two", "b", 2))
		},
		"two told":           func(a *account) { _, _ = a.answered("two", "close", nil) },
		"closed by another":  func(a *account) { a.history[2].Actor = "two" },
		"never closed":       func(a *account) { a.history, a.status = a.history[:2], "closing" },
		"open after all":     func(a *account) { a.status = "approved" },
		"a body unseen":      func(a *account) { a.bodies++ },
		"a body untold":      func(a *account) { a.history = append(a.history, event("claimed by two", "b", 2)) },
		"a refusal unnoted":  func(a *account) { a.attempts = nil },
		"a refusal made up":  func(a *account) { a.refused = 0 },
		"a kill not mended":  func(a *account) { a.kills++ },
		"paid, not charged":  func(a *account) { a.status = "paid" },
		"put back in secret": func(a *account) { a.history = append(a.history, event("recovered", "a", 1)) },
	} {
		var bad tally
		a := closedByOne()
		plant(a)
		bad.add(a)
		bad.recorded.mails = bad.told.mails
		if bad.check() == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// On a terminal a bar stands under the lines, and is gone at the end.
func TestBar(t *testing.T) {
	var out bytes.Buffer
	b := &bar{out: &out, of: 4}
	b.draw(1)
	b.clear()
	if got := out.String(); got != "  [=   ] 1 of 4\r\x1b[K" {
		t.Errorf("drew %q", got)
	}
	if b := newBar(&out, 4); b != nil {
		t.Error("a buffer is taken for a terminal")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if b := newBar(file, 4); b != nil {
		t.Error("a file is taken for a terminal")
	}
}

// The shape of the tally, for a person.
func TestDemoTallyIsATable(t *testing.T) {
	var out bytes.Buffer
	fmt.Fprint(&out, tally{told: counts{bodies: 21}, recorded: counts{bodies: 21, lost: 60}})
	want := "                       told  recorded\n  bodies run             21        21\n"
	if !strings.HasPrefix(out.String(), want) {
		t.Errorf("it is\n%s", out.String())
	}
}
