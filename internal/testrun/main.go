// Command testrun runs the tests at a level and prints a readable report:
//
//	go run ./internal/testrun -level check -race ./...
//
// It prints one line per package, the output of each failed test with a command that repeats
// it, and a summary. The levels are those of the package testlevel.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// options are the flags of the command line.
type options struct {
	level    string
	seed     uint64
	more     bool
	part     part   // of the tests that depend on the level
	only     string // the tests to run, if not all
	race     bool
	cover    string
	slowest  int
	at       int // packages to test in parallel
	parallel int // tests of a package to run in parallel
	timeout  string
	module   string // the folder of a nested module, "" for the root module
	binaries string // the folder of the test binaries
	packages []string
}

func main() {
	o := options{part: part{1, 1}}
	flag.StringVar(&o.level, "level", testlevel.Test.String(), "test level: test, check or crash")
	flag.Uint64Var(&o.seed, "seed", testlevel.DefaultSeed, "seed of all random choices")
	flag.BoolVar(&o.more, "more", false, "run only the tests that depend on the level: the others are the same at every level")
	flag.Var(&o.part, "part", "with -more, run only this part of them, such as 1/2")
	flag.BoolVar(&o.race, "race", false, "run with the race detector")
	flag.StringVar(&o.cover, "cover", "", "write the coverage profile of all packages to this file")
	flag.IntVar(&o.slowest, "slowest", 0, "list this many of the slowest tests")
	flag.IntVar(&o.at, "p", 3, "number of packages to test in parallel")
	flag.IntVar(&o.parallel, "parallel", 4, "number of tests of a package to run in parallel")
	flag.StringVar(&o.timeout, "timeout", "10m", "timeout of one package")
	flag.StringVar(&o.module, "C", "", "test the module in this folder")
	flag.Parse()
	if o.packages = flag.Args(); len(o.packages) == 0 {
		o.packages = []string{"./..."}
	}
	code, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	os.Exit(code)
}

// run returns the exit code: 0 if every test passed.
func run(o options) (int, error) {
	if _, err := testlevel.Parse(o.level); err != nil {
		return 2, err
	}
	var err error
	if o.packages, err = o.inOrder(); err != nil {
		return 2, err
	}
	if o.more {
		packages, tests, err := more(o.packages, o.part)
		if err != nil {
			return 2, err
		}
		if len(tests) == 0 {
			fmt.Println("no test of these packages depends on the level")
			return 0, nil
		}
		o.packages, o.only = packages, "^("+strings.Join(tests, "|")+")$"
	}
	// Linking the test binaries takes an eighth of a run. Kept, they are linked again only after a change.
	if o.binaries, err = filepath.Abs(filepath.Join("bin", "tests", o.module)); err != nil {
		return 2, err
	}
	if err := os.MkdirAll(o.binaries, 0o755); err != nil {
		return 2, err
	}
	env, clean, err := o.environment()
	if err != nil {
		return 2, err
	}
	defer clean()
	cmd := exec.Command("go", o.arguments()...)
	cmd.Dir, cmd.Env = o.module, env
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 2, err
	}
	// An interrupt reaches go test too, which stops the tests. Ignoring it here lets this
	// process report their output and remove their temporary files.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return 2, err
	}
	r := newReport(os.Stdout, o)
	read := r.read(out)
	err = cmd.Wait()
	r.close()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) || err == nil && r.bad():
		return 1, read
	case err != nil || read != nil:
		return 2, errors.Join(err, read)
	}
	return 0, nil
}

// arguments returns the arguments of the go command.
func (o options) arguments() []string {
	args := []string{"test", "-json", "-count=1", "-timeout=" + o.timeout, "-vet=off", // "make test" runs vet
		"-p=" + strconv.Itoa(o.at), "-parallel=" + strconv.Itoa(o.parallel)}
	switch {
	case o.race:
		args = append(args, raceFlags...)
	case o.cover != "":
		args = append(args, "-coverpkg=./...", "-coverprofile="+o.cover)
	default:
		args = append(args, "-ldflags=-s -w", "-o="+o.binaries)
	}
	if o.only != "" {
		args = append(args, "-run="+o.only)
	}
	return append(args, o.packages...)
}

// slow lists the packages with the longest tests. Those that mostly wait come first, so that
// other packages can use the processors meanwhile.
var slow = []string{"./internal/chaos", "./httpapi", "./web", "./internal/interop", "./internal/reactions", "./internal/lifecycleengine", "./lifecycle", "./internal/storetest", "./postgres", "./scope", "./run", "./internal/cli", "./s3", "./sqlite", "./stream", "./holdfasttest", "./sdk", "./internal/feed"}

// inOrder returns the packages that have tests, with the slow ones first. Started last, they would run alone at
// the end.
func (o options) inOrder() (packages []string, err error) {
	all, err := list(o.module, o.packages...)
	if o.module == "" && slices.Equal(o.packages, []string{"./..."}) {
		packages = slices.Clone(slow)
	}
	for _, p := range all {
		runs := len(p.TestGoFiles)+len(p.XTestGoFiles) > 0
		if runs && o.level == testlevel.Test.String() {
			var broken error
			runs, broken = p.tests(o.race)
			err = errors.Join(err, broken)
		}
		if runs {
			packages = append(packages, p.ImportPath)
		} else {
			packages = slices.DeleteFunc(packages, func(slow string) bool { return slow == "."+strings.TrimPrefix(p.ImportPath, p.Module.Path) })
		}
	}
	if err == nil && len(packages) == 0 {
		err = fmt.Errorf("no test of these packages runs at level %s", o.level)
	}
	return packages, err
}

// raceFlags enable the race detector, except for SQLite. SQLite is C translated to Go with its
// own allocator: instrumenting it finds no races of ours and makes it twenty times slower.
var raceFlags = []string{"-race", "-gcflags=modernc.org/sqlite/lib=-race=false",
	"-gcflags=modernc.org/libc/...=-race=false", "-gcflags=modernc.org/memory=-race=false"}

// environment returns the environment of the tests. Their temporary files are in memory if
// there is room: most of them are databases, and no test measures the disk.
func (o options) environment() (env []string, clean func(), err error) {
	env = append(os.Environ(), testlevel.LevelVar+"="+o.level, testlevel.SeedVar+"="+strconv.FormatUint(o.seed, 10))
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=400") // the tests start many short processes, which spent a tenth of their time in garbage collection
	}
	if o.race && os.Getenv("GORACE") == "" {
		env = append(env, "GORACE=atexit_sleep_ms=100") // else each of hundreds of processes sleeps for a second at exit
	}
	root, ok := pgtest.Memory()
	if !ok {
		return env, func() {}, nil
	}
	dir, err := os.MkdirTemp(root, "holdfast-test-")
	if err != nil {
		return nil, nil, err
	}
	if err := os.Chmod(dir, 0o1777); err != nil { // a PostgreSQL started by a test runs as another user
		return nil, nil, err
	}
	// Build output is large, so it stays on the disk.
	env = append(env, "TMPDIR="+dir, "GOTMPDIR="+filepath.Clean(os.TempDir()))
	return env, func() { _ = os.RemoveAll(dir) }, nil
}
