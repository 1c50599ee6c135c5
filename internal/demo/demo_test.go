package demo

import (
	"encoding/json"
	"log/slog"
	"slices"
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
	if !strings.HasSuffix(good.String(), "duplicates prevented: 1") {
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

// What the demo suggests fits into a terminal, and names no page or database that there is not.
func TestSuggestions(t *testing.T) {
	for name, x := range map[string]struct {
		at   Place
		want []string
	}{
		"all":          {Place{URL: "http://127.0.0.1:7070", Program: "holdfast", DB: "sqlite:a.db"}, []string{"unblock", "approve", "see a race", "who lost", "check it all"}},
		"no dashboard": {Place{URL: "http://127.0.0.1:7070", Program: "holdfast", NoDashboard: true}, []string{"who lost"}},
	} {
		var out strings.Builder
		d := New(&out, nil)
		d.suggest(x.at)
		var got []string
		for line := range strings.SplitSeq(out.String(), "\n") {
			if len(line) > 80 {
				t.Errorf("%s: the line %q has %d columns", name, line, len(line))
			}
			if strings.HasPrefix(line, "  ") {
				got = append(got, strings.TrimSpace(line[:15]))
			}
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: got suggestions %q, want %q", name, got, x.want)
		}
	}
}

// The log has every warning and error, except for those that the demo causes. At level debug it has all.
func TestTheLogOfTheDemo(t *testing.T) {
	records := func(level slog.Level) string {
		var out strings.Builder
		log := Log(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))
		log.Info("serving")
		log.Warn("lease expired", "workspace", Workspace)
		log.With("workspace", Workspace).Warn("lease expired", "entity", "1")
		log.Warn("lease expired", "workspace", "other")
		log.Error("reaction blocked on a stream; unblock or reset the stream, or skip the event", "workspace", "default", "stream", abroad)
		log.Error("reaction blocked on a stream; unblock or reset the stream, or skip the event", "workspace", "default", "stream", books)
		log.WithGroup("g").Error("disk full")
		return out.String()
	}
	got := records(slog.LevelInfo)
	if strings.Count(got, "\n") != 3 || !strings.Contains(got, "workspace=other") || !strings.Contains(got, "stream=books") || !strings.Contains(got, "disk full") {
		t.Errorf("got log\n%s", got)
	}
	if got := records(slog.LevelError); strings.Count(got, "\n") != 2 {
		t.Errorf("at level error: got log\n%s", got)
	}
	if got := records(slog.LevelDebug); strings.Count(got, "\n") != 7 {
		t.Errorf("at level debug: got log\n%s", got)
	}
}
