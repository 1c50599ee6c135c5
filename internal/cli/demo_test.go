package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// The demo's config is one that lint finds nothing wrong with.
func TestDemoConfig(t *testing.T) {
	_, violations, warnings := lifecycles.Check(demoConfig, nil)
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
		attempts: []lifecycle.Attempt{{Code: "CLAIM_FAILED"}},
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

// TestDemoThatLiesFails runs the demo whole while another hand charges a card and
// sends a mail that nobody was told of. It must end with 1, and name both.
func TestDemoThatLiesFails(t *testing.T) {
	testlevel.Long(t)
	t.Chdir(t.TempDir())
	self, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	var d *demo
	p := newProgram(os.Environ(), onReady(func(line string) error {
		if !strings.Contains(line, "3. Money") {
			return nil
		}
		return lie(holdfast.InWorkspace(t.Context(), demoWorkspace), d)
	}), io.Discard)
	db := databaseFlags{DB: "a.db", Schema: "holdfast"}
	d = newDemo(p, db)
	d.self = self
	s := server{program: p, databaseFlags: db, serverFlags: serverFlags{Listen: "127.0.0.1:0"}, parts: []holdfast.Part{d.shop, d.scans, run.Serve(d.chase)}, sweepEvery: demoSweep,
		story: func(ctx context.Context, _ *holdfast.Engine) error { return d.tell(ctx) }}
	err = s.run(t.Context())
	if exitCode(err) != 1 {
		t.Fatalf("ended with %v", err)
	}
	for _, want := range []string{"must not be", "charges: 2 were told and 3 are recorded", "a mail too many"} {
		if !strings.Contains(message(err), want) {
			t.Errorf("ended with %s, without %q", message(err), want)
		}
	}
}

// lie writes a charge and a mail that are not the demo's.
func lie(ctx context.Context, d *demo) error {
	charge := fmt.Appendf(nil, `{"key": "none", "cents": 1, "receipt": "R99"}`)
	if _, err := stream.Append(ctx, d.engine, "gateway-"+d.run, stream.Any, stream.Event{Name: slipCharged, Data: charge}); err != nil {
		return err
	}
	mail := fmt.Appendf(nil, `{"invoice": "%s-01", "operation": "none"}`, d.run)
	_, err := stream.Append(ctx, d.engine, mailbox(d.run), stream.Any, stream.Event{Name: "sent", Data: mail})
	return err
}

// A caller that ends before it can be killed is told of, with what it said.
func TestDemoCallerFails(t *testing.T) {
	self, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	c := callers{self: self, db: databaseFlags{DB: "sqlite:" + t.TempDir() + "/none.db", Schema: "holdfast"}}
	err = c.killed(t.Context(), "close", "1", admin(0))
	if err == nil || !strings.Contains(err.Error(), "before it was in the middle") || !strings.Contains(err.Error(), "DATABASE_TOO_OLD") {
		t.Errorf("said %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := c.killed(stopped, "close", "1", admin(0)); err == nil {
		t.Error("it was started although it should stop")
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
