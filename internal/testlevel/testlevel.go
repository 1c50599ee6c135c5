// Package testlevel says how thorough a run of the tests is.
//
// There are three levels. A test chooses in its own code what it does at each:
//
//	testlevel.Long(t)                   // not at level test
//	rounds := testlevel.Pick(3, 20, 200) // at level test, check, crash
//
// The level comes from [LevelVar]; without it a plain go test runs at level test,
// as "make test" does. Random choices come from [Rand], so that a run is the same
// each time unless [SeedVar] says otherwise.
package testlevel

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// Level is how thorough a run of the tests is.
type Level int

// The levels, each with all that is in the one before it.
const (
	Test  Level = iota // every commit: minutes
	Check              // every change: a quarter of an hour
	Crash              // by hand: hours
)

var names = []string{"test", "check", "crash"}

func (l Level) String() string { return names[l] }

const (
	// LevelVar names the environment variable with the level: test, check or crash.
	LevelVar = "HOLDFAST_TEST_LEVEL"
	// SeedVar names the environment variable with the seed of everything random.
	SeedVar = "HOLDFAST_TEST_SEED"
)

// Attributes by which tests tell the runner what they used (see [testing.T.Attr]).
const (
	DatabaseAttr = "holdfast.database"    // sqlite or postgres, for each database
	CasesAttr    = "holdfast.crash.cases" // how many crash cases a test ran
)

// DefaultSeed is the seed where [SeedVar] names none: fixed, so that two runs of the
// same code do the same.
const DefaultSeed = 1

// Parse returns the level of that name. An empty name is [Test].
func Parse(name string) (Level, error) {
	for i, n := range names {
		if name == n || name == "" {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("there is no test level %q: write test, check or crash", name)
}

// Current returns the level of this run. A level that does not exist is a panic:
// the tests must not pass because of a slip of the pen.
func Current() Level { return current() }

var current = sync.OnceValue(func() Level {
	level, err := Parse(os.Getenv(LevelVar))
	if err != nil {
		panic(LevelVar + ": " + err.Error())
	}
	return level
})

// Seed returns the seed of this run.
func Seed() uint64 { return seed() }

var seed = sync.OnceValue(func() uint64 {
	text := os.Getenv(SeedVar)
	if text == "" {
		return DefaultSeed
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(SeedVar + ": " + err.Error())
	}
	return n
})

// Rand returns random numbers that depend on the seed and the test's name alone.
func Rand(t testing.TB) *rand.Rand { return random(t.Name()) }

func random(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(Seed(), h.Sum64()))
}

// Long skips the test at level [Test]: it runs at level [Check] and above.
func Long(t testing.TB) {
	t.Helper()
	if Current() < Check {
		t.Skip("runs at level check: make check")
	}
}

// Pick returns the value for this run's level.
func Pick[T any](test, check, crash T) T {
	return [...]T{test, check, crash}[Current()]
}

// Share returns n or, at level [Test] with the race detector, a third of it: of cases that run the
// same code in one goroutine few are enough to look for races in, and without it all are run.
func Share(n int) int {
	if raced && Current() == Test {
		return (n + 2) / 3
	}
	return n
}

// Some returns a [Share] of all, which the seed chooses, in their order.
func Some[T any](t testing.TB, all []T) (some []T) {
	chosen := Rand(t).Perm(len(all))[:Share(len(all))]
	slices.Sort(chosen)
	for _, i := range chosen {
		some = append(some, all[i])
	}
	return some
}

// Either skips the test at level [Test] on one of the two databases that it is a subtest for; on which, the seed
// chooses. It is for tests that take long, and are of code that is the same over both.
func Either(t testing.TB) {
	t.Helper()
	test, database := path.Split(t.Name())
	if Current() == Test && (random(test).IntN(2) == 0) != (database == "sqlite") {
		t.Skip("the seed chose the other database: make check runs both")
	}
}

// Rapid gives the seed to the package rapid, unless its own flag names one. A test
// calls it before rapid.Check.
func Rapid() { rapid() }

var rapid = sync.OnceFunc(func() {
	if f := flag.Lookup("rapid.seed"); f != nil && f.Value.String() == f.DefValue {
		_ = f.Value.Set(strconv.FormatUint(Seed(), 10)) // a number that rapid reads as one
	}
})

// Variant skips the test at level [Test] unless the seed chooses it, as it does one in
// so many, and a [Share] of those. It is for cases of a table, of which others run the same statements.
func Variant(t testing.TB, oneIn int) {
	t.Helper()
	if r := Rand(t); Current() == Test && (r.IntN(oneIn) != 0 || r.IntN(3) >= Share(3)) {
		t.Skip("the seed chose other cases of this table: make check runs all")
	}
}
