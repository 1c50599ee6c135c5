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

// Scenario is a use of an engine that must survive a crash at any point. A case is one run of a scenario with its faults
// ([Crash]).
type Scenario struct {
	// Name, if set, makes the scenario run as a subtest with that name.
	Name string
	// Setup creates what the scenario needs in each database, such as its own tables, before an engine is opened. where is the path of a
	// SQLite file or the URL of a PostgreSQL database. It may be nil.
	Setup func(ctx context.Context, where string) error
	// Parts returns the parts that the engine is opened with. It is called each time the engine is opened.
	Parts func() []holdfast.Part
	// Do is the client's request. After an error, or after the engine crashed, it is repeated with the same intent
	// until it returns nil or an error in Accepts. Its context is in a workspace that no other case uses.
	Do func(context.Context, *holdfast.Engine) error
	// Accepts lists the errors from which a retrying client learns that its request is done. They are compared with
	// [errors.Is].
	Accepts []error
	// Recover performs the work that background loops do in a running program. It is called after each request, whether
	// it is done or failed, and after the engine is reopened. The default is [SettleWith] with Person.
	Recover func(context.Context, *holdfast.Engine) error
	// Person acts on what [Settle] finds waiting. It may be nil. It is not used if Recover is set.
	Person Person
	// Check verifies the final state and returns an error if it is wrong.
	Check func(context.Context, *holdfast.Engine) error
	// Pairs also runs cases with a second fault, at each point that follows a single fault. It applies only to
	// SQLite, because there are many such cases.
	Pairs bool
	// Databases lists the databases to run on: "sqlite", "postgres" or both. The default is both.
	Databases []string
}

// caseVar is the name of the environment variable that makes [Crash] run a single case, such as "7:after",
// "7:after,2:before" or "3:lost!", a fault that lasts. A failure prints the value.
const caseVar = "HOLDFAST_CRASH_CASE"

// Crash runs a scenario once for every point at which the engine accesses its database, or a handler calls the [World],
// and every fault that can occur there: the process crashes before or after the point; the response is lost, whether or
// not the point was executed; or the caller's context ends. When the process crashes, the contexts of its handlers end
// and the World refuses their calls. After each case, the scenario's Check must succeed, and the invariants of
// [holdfast.Engine.Check] must hold. A failure prints the case, the points that it reached, and a command that
// replays it.
//
// HOLDFAST_TEST_LEVEL selects how many cases run: "test", the default, runs those at calls of the World on SQLite, and
// samples all others; "check" runs every case with one fault on SQLite, and samples the cases on PostgreSQL and those
// with two faults; "crash" runs all. The sample depends on HOLDFAST_TEST_SEED and the name of the test.
//
// In a case such as "7:after,2:before", points are counted from 1 again after each fault: the second fault occurs at the
// second point after the first one, so during the recovery from it. Do, Recover and Check must be deterministic and use one
// goroutine. Several databases and, from level "check", several cases run at the same time, so these functions may share
// nothing but a [World]. Crash runs the
// scenario twice without faults and fails if the points differ. Each case has its own workspace, in which the program's
// reactions are registered. A case in which the scenario ends its goroutine, such as with t.Fatal, has failed.
func Crash(t *testing.T, s Scenario) {
	t.Helper()
	if s.Name != "" {
		t.Run(s.Name, func(t *testing.T) { crashAll(t, s) })
		return
	}
	crashAll(t, s)
}

// crashDatabases make the database of one [crashWorker].
var crashDatabases = map[string]func(t testing.TB, setup func(where string)) holdfast.Database{
	"sqlite": func(t testing.TB, setup func(string)) holdfast.Database {
		path := SQLite(t)
		setup(path)
		if testlevel.Current() == testlevel.Crash { // reopened after each crash
			return sqlite.File(path)
		}
		return At(path)
	},
	"postgres": func(t testing.TB, setup func(string)) holdfast.Database {
		url := PostgreSQL(t)
		setup(url)
		if testlevel.Current() == testlevel.Crash {
			return postgres.URL(url)
		}
		return At(url)
	},
}

func crashAll(t *testing.T, s Scenario) {
	t.Helper()
	if s.Do == nil || s.Check == nil {
		t.Fatal("a scenario requires Do and Check")
	}
	if s.Recover == nil {
		s.Recover = func(ctx context.Context, hf *holdfast.Engine) error { return SettleWith(ctx, hf, s.Person) }
	}
	names := s.Databases
	if len(names) == 0 {
		names = []string{"sqlite", "postgres"}
	}
	for _, name := range names {
		open := crashDatabases[name]
		if open == nil {
			t.Fatalf("database %q does not exist: use sqlite or postgres", name)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &crashDriver{t: t, s: s, create: open, pairs: s.Pairs && name == "sqlite", slow: name == "postgres"}
			if only := os.Getenv(caseVar); only != "" {
				d.replay(only)
				return
			}
			d.run()
		})
	}
}

// singles returns all cases with one fault, for a scenario with the given number of points. A fault that the engine
// survives (Error: executed, but the response is lost; Lost: not executed; Cancel) also has a case in which it lasts
// (ForGood).
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

// pairs returns all cases that add one more fault to a single fault, at one of the points that followed it.
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
