// Package testlevel defines how thorough a run of the tests is.
//
// There are three levels. A test chooses in its code what it does at each level:
//
//	testlevel.Long(t)                   // skip at level test
//	rounds := testlevel.Pick(3, 20, 200) // at level test, check, crash
//
// The level is set by [LevelVar]. Without it, go test runs at level test, like "make test".
// Random choices come from [Rand], so that runs are reproducible unless [SeedVar] sets another
// seed.
package testlevel

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// Level is the thoroughness of a run of the tests.
type Level int

// Levels of tests. Each includes the one before it.
const (
	Test  Level = iota // for every commit: minutes
	Check              // for every change: a quarter of an hour
	Crash              // manually: hours
)

var names = []string{"test", "check", "crash"}

func (l Level) String() string { return names[l] }

const (
	// LevelVar is the environment variable of the level: test, check or crash.
	LevelVar = "HOLDFAST_TEST_LEVEL"
	// SeedVar is the environment variable of the seed of all random choices.
	SeedVar = "HOLDFAST_TEST_SEED"
)

// Attributes that tests report to the runner (see [testing.T.Attr]).
const (
	DatabaseAttr = "holdfast.database"    // sqlite or postgres, for each database
	CasesAttr    = "holdfast.crash.cases" // the number of crash cases that a test ran
	NoteAttr     = "holdfast.note"        // what the reader of the report must know, such as a tool that is missing
)

// DefaultSeed is the seed if [SeedVar] is not set. It is fixed, so that two runs of the same
// code are the same.
const DefaultSeed = 1

// Parse returns the level with the name. An empty name is [Test].
func Parse(name string) (Level, error) {
	for i, n := range names {
		if name == n || name == "" {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("unknown test level %q: use test, check or crash", name)
}

// Current returns the level of this run. It panics if the level is unknown, so that a typo
// does not make the tests pass.
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

// Rand returns a source of random numbers that depends only on the seed and the name of the
// test.
func Rand(t testing.TB) *rand.Rand { return random(t.Name()) }

func random(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(Seed(), h.Sum64()))
}

// Long skips the test at level [Test]. It runs at level [Check] and above.
func Long(t testing.TB) {
	t.Helper()
	if Current() < Check {
		t.Skip("runs at level check: make check")
	}
}

// Pick returns the value for the level of this run.
func Pick[T any](test, check, crash T) T {
	return [...]T{test, check, crash}[Current()]
}

// Share returns n or, at level [Test] with the race detector, a tenth of it. For cases that run
// the same code in one goroutine, a few are enough to find races; without the race detector all
// of them run.
func Share(n int) int {
	if raced && Current() == Test {
		return (n + 9) / 10
	}
	return n
}

// OneGoroutine skips the test at level [Test] with the race detector, which can find nothing in it: it has one goroutine,
// it reads files, or what it tests is in other processes, which are built without the detector. Without the race detector it runs at every level. It is not for a test of [Databases], which needs both runs.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if raced && Current() == Test {
		t.Skip("has one goroutine: runs without the race detector")
	}
}

// Some returns a [Share] of all, chosen by the seed, in their order.
func Some[T any](t testing.TB, all []T) (some []T) {
	chosen := Rand(t).Perm(len(all))[:Share(len(all))]
	slices.Sort(chosen)
	for _, i := range chosen {
		some = append(some, all[i])
	}
	return some
}

// onPostgres is one in how many tests level [Test] runs on PostgreSQL, where a test takes three times as long as on SQLite.
const onPostgres = 5

// Databases returns the databases, "sqlite" and "postgres", that a test runs on. At level [Test] it is one of them, mostly
// SQLite: the seed chooses it, and with the race detector it is the other one, so "make test" and "make race" together run
// the test on both. At level [Check] it is one of them, chosen by the seed, and at level [Crash] both. It is for tests of
// code above the store, which has its own tests on both databases.
func Databases(t testing.TB) []string {
	chosen := random(t.Name()).IntN(Pick(onPostgres, 2, 2)) == 0
	if raced && Current() == Test {
		chosen = !chosen
	}
	switch {
	case Current() == Crash:
		return []string{"sqlite", "postgres"}
	case chosen:
		return []string{"postgres"}
	}
	return []string{"sqlite"}
}

// OneDatabase returns one of the databases, chosen by the seed, and both at level [Crash]. It is for tests of what does not
// depend on the database, such as a page in a browser.
func OneDatabase(t testing.TB) []string {
	switch {
	case Current() == Crash:
		return []string{"sqlite", "postgres"}
	case random(t.Name()).IntN(Pick(onPostgres, 2, 2)) == 0:
		return []string{"postgres"}
	}
	return []string{"sqlite"}
}

// Rapid passes the seed to the package rapid, unless its own flag is set. Call it before
// rapid.Check.
func Rapid() { rapid() }

var rapid = sync.OnceFunc(func() {
	if f := flag.Lookup("rapid.seed"); f != nil && f.Value.String() == f.DefValue {
		_ = f.Value.Set(strconv.FormatUint(Seed(), 10)) // a valid number for rapid
	}
})

// Variant skips the test at level [Test] unless the seed chooses it, which it does for one in
// oneIn tests, and a [Share] of those. It is for cases of a table that run the same statements
// as others.
func Variant(t testing.TB, oneIn int) {
	t.Helper()
	if r := Rand(t); Current() == Test && (r.IntN(oneIn) != 0 || r.IntN(3) >= Share(3)) {
		t.Skip("the seed chose other cases of this table: make check runs all")
	}
}
