// Command testrun runs the tests at a level and tells people how it went:
//
//	go run ./internal/testrun -level check -race ./...
//
// It prints a line a package, what failed in full with one command that repeats it,
// and a closing summary. The levels are those of the package testlevel.
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

// options are what the command line says.
type options struct {
	level    string
	seed     uint64
	more     bool
	only     string // the tests to run, if not all
	race     bool
	cover    string
	slowest  int
	at       int
	parallel int
	timeout  string
	module   string // the folder of a module in this one, "" for this one
	packages []string
}

func main() {
	o := options{}
	flag.StringVar(&o.level, "level", testlevel.Test.String(), "how thorough: test, check or crash")
	flag.Uint64Var(&o.seed, "seed", testlevel.DefaultSeed, "the seed of everything random")
	flag.BoolVar(&o.more, "more", false, "run only the tests that ask for the level: the others do at every level what they do at level test")
	flag.BoolVar(&o.race, "race", false, "run with the race detector")
	flag.StringVar(&o.cover, "cover", "", "write the coverage of all packages to this file")
	flag.IntVar(&o.slowest, "slowest", 0, "list so many of the slowest tests")
	flag.IntVar(&o.at, "p", 3, "how many packages run at once")
	flag.IntVar(&o.parallel, "parallel", 4, "how many tests of a package run at once")
	flag.StringVar(&o.timeout, "timeout", "10m", "the limit for one package")
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
	if o.packages = o.inOrder(); o.more {
		packages, tests, err := more(o.packages)
		if err != nil {
			return 2, err
		}
		if len(tests) == 0 {
			fmt.Println("no test of these packages asks for the level")
			return 0, nil
		}
		o.packages, o.only = packages, "^("+strings.Join(tests, "|")+")$"
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
	// An interrupt reaches go test too, which ends the tests; what they print until
	// then is still reported, and what they leave is still removed.
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

// arguments are those of the go command.
func (o options) arguments() []string {
	args := []string{"test", "-json", "-count=1", "-timeout=" + o.timeout,
		"-p=" + strconv.Itoa(o.at), "-parallel=" + strconv.Itoa(o.parallel)}
	if o.race {
		args = append(args, raceFlags...)
		args = append(args, "-vet=off") // "make test" does it
	} else {
		args = append(args, "-vet=all") // over what is compiled anyway
	}
	if o.cover != "" {
		args = append(args, "-coverpkg=./...", "-coverprofile="+o.cover)
	}
	if o.only != "" {
		args = append(args, "-run="+o.only)
	}
	return append(args, o.packages...)
}

// slow are the packages whose tests take longest. Those that wait most stand first: what they leave of
// the processors the others use.
var slow = []string{"./httpapi", "./internal/chaos", "./internal/reactions", "./internal/lifecycleengine", "./lifecycle", "./internal/storetest", "./postgres", "./scope", "./run", "./internal/cli", "./internal/feed"}

// inOrder returns the packages, with the slow ones first: begun last, they would run alone at the end.
func (o options) inOrder() []string {
	if o.module != "" || !slices.Equal(o.packages, []string{"./..."}) {
		return o.packages
	}
	return append(slices.Clone(slow), o.packages...)
}

// raceFlags switch on the race detector for our code. SQLite is C that was translated
// to Go, with an allocator of its own: to instrument them finds nothing of ours, and makes
// them twenty times slower.
var raceFlags = []string{"-race", "-gcflags=modernc.org/sqlite/lib=-race=false",
	"-gcflags=modernc.org/libc/...=-race=false", "-gcflags=modernc.org/memory=-race=false"}

// environment is that of the tests. Their temporary files are in memory where there is
// room: most of them are databases, and no test is about the disk's speed.
func (o options) environment() (env []string, clean func(), err error) {
	env = append(os.Environ(), testlevel.LevelVar+"="+o.level, testlevel.SeedVar+"="+strconv.FormatUint(o.seed, 10))
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=400") // many short processes: memory is there, and a tenth of their time was collection
	}
	if o.race && os.Getenv("GORACE") == "" {
		env = append(env, "GORACE=atexit_sleep_ms=100") // else each of hundreds of processes waits a second when it ends
	}
	root, ok := pgtest.Memory()
	if !ok {
		return env, func() {}, nil
	}
	dir, err := os.MkdirTemp(root, "holdfast-test-")
	if err != nil {
		return nil, nil, err
	}
	if err := os.Chmod(dir, 0o1777); err != nil { // a PostgreSQL that a test starts is another user's
		return nil, nil, err
	}
	// What go builds stays on the disk: it is large.
	env = append(env, "TMPDIR="+dir, "GOTMPDIR="+filepath.Clean(os.TempDir()))
	return env, func() { _ = os.RemoveAll(dir) }, nil
}
