package holdfasttest

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// Scenario is something that a program does with an engine and that must
// survive a crash at any point.
type Scenario struct {
	// Name, if set, makes the scenario a subtest of that name.
	Name string
	// Parts returns what the engine is opened with, anew for each opening.
	Parts func() []holdfast.Part
	// Do is the client's request. After an error, or when the engine died, it
	// is repeated with the same intent until it returns nil or an error that
	// is in Accepts. The context is in a workspace that no other case uses.
	Do func(context.Context, *holdfast.Engine) error
	// Accepts are refusals that tell a client who repeats a request that it
	// is done, compared with [errors.Is].
	Accepts []error
	// Recover steps by hand what loops do in a running program. It is called
	// when the engine is opened again and, once the request is done, at the
	// end. It may be nil.
	Recover func(context.Context, *holdfast.Engine) error
	// Check says what is wrong with the end, if anything.
	Check func(context.Context, *holdfast.Engine) error
	// Pairs also strikes a second time, at the points that follow each single
	// fault (SQLite only: there are many).
	Pairs bool
	// Databases are the databases to run on: "sqlite" and "postgres", which
	// is the default.
	Databases []string
}

// CaseVar names the environment variable that has [Crash] run one case alone:
// "7:after" or "7:after,2:before". A failure prints it.
const CaseVar = "HOLDFAST_CRASH_CASE"

// Crash runs a scenario once for every point at which the engine meets its
// database and every fault that can strike there: the process dies before or
// after the point, the point is executed or not and the answer is lost, the
// caller's context ends. After each the scenario's Check and the invariants of
// [holdfast.Engine.Check] must hold. A failure prints the case, the points that
// it met, and one command that replays it.
//
// How many of the cases are run depends on HOLDFAST_TEST_LEVEL: "test", the default,
// samples them; "check" runs every single fault on SQLite and samples the rest;
// "crash" runs all. The sample depends on HOLDFAST_TEST_SEED and the test's name.
//
// The faults in a case are numbered from the point where the one before them
// struck, so the second of a pair strikes while the first is being recovered
// from. Do, Recover and Check must do the same thing each time they are run, in
// one goroutine: that is checked.
func Crash(t *testing.T, s Scenario) {
	t.Helper()
	if s.Name != "" {
		t.Run(s.Name, func(t *testing.T) { crashAll(t, s) })
		return
	}
	crashAll(t, s)
}

// crashers make a database of its own for a worker.
var crashers = map[string]func(testing.TB) holdfast.Database{
	"sqlite": func(t testing.TB) holdfast.Database {
		path := SQLite(t)
		if testlevel.Current() == testlevel.Crash { // opened again after each death
			return sqlite.File(path)
		}
		return At(path)
	},
	"postgres": func(t testing.TB) holdfast.Database {
		url := PostgreSQL(t)
		if testlevel.Current() == testlevel.Crash {
			return postgres.URL(url)
		}
		return At(url)
	},
}

func crashAll(t *testing.T, s Scenario) {
	t.Helper()
	if s.Do == nil || s.Check == nil {
		t.Fatal("a scenario has a request to do and a check of what it leads to")
	}
	names := s.Databases
	if len(names) == 0 {
		names = []string{"sqlite", "postgres"}
	}
	for _, name := range names {
		open := crashers[name]
		if open == nil {
			t.Fatalf("there is no database called %q: write sqlite or postgres", name)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &crashDriver{t: t, s: s, open: open, pairs: s.Pairs && name == "sqlite", slow: name == "postgres"}
			if only := os.Getenv(CaseVar); only != "" {
				d.replay(only)
				return
			}
			d.run()
		})
	}
}

// singles are all cases with one fault among so many points.
func singles(points int) (all [][]crash.Strike) {
	for at := range points {
		for _, f := range crash.Faults {
			all = append(all, []crash.Strike{{At: at + 1, Fault: f}})
			if f == crash.Error || f == crash.Lost || f == crash.Cancel {
				all = append(all, []crash.Strike{{At: at + 1, Fault: f, ForGood: true}})
			}
		}
	}
	return all
}

// pairs are all cases that go on from a single one with one more fault, at one
// of the points that followed it.
func pairs(results []crashResult) (all [][]crash.Strike) {
	for _, r := range results {
		if r.err != nil || r.strikes[0].ForGood {
			continue
		}
		for at := range r.after() {
			for _, f := range crash.Faults {
				all = append(all, append(slices.Clone(r.strikes), crash.Strike{At: at + 1, Fault: f}))
			}
			all = append(all, append(slices.Clone(r.strikes), crash.Strike{At: at + 1, Fault: crash.Cancel, ForGood: true}))
		}
	}
	return all
}
