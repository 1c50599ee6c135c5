package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// event is an event of go test -json (see "go doc test2json").
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	Elapsed     float64
	Key, Value  string
	FailedBuild string
}

// test is one test or subtest.
type test struct{ pkg, name string }

// report collects the events of a run and prints them.
type report struct {
	out   io.Writer
	o     options
	begun time.Time

	output  map[test][]string // of tests that have not ended; name "" is the package itself
	builds  map[string][]string
	passed  int
	skipped int
	inPkg   map[string]int
	failed  []test
	notes   []string
	broken  []string // packages that failed without a failed test
	took    map[test]float64
	attrs   map[string]int // sums of numeric attributes
}

func newReport(out io.Writer, o options) *report {
	return &report{out: out, o: o, begun: clock.Now(), output: make(map[test][]string), builds: make(map[string][]string),
		inPkg: make(map[string]int), took: make(map[test]float64), attrs: make(map[string]int)}
}

// read reads all events. It prints a line that is not an event unchanged.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil {
				r.take(e)
			} else {
				fmt.Fprintf(r.out, "%s", line)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e event) {
	at := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case "output":
		r.output[at] = append(r.output[at], e.Output)
	case "attr":
		if e.Key == testlevel.NoteAttr {
			if note := fmt.Sprintf("note  %s: %s\n", short(e.Package), e.Value); !slices.Contains(r.notes, note) {
				r.notes = append(r.notes, note)
				fmt.Fprint(r.out, note)
			}
			return
		}
		n, err := strconv.Atoi(e.Value)
		if err != nil {
			n = 1
			e.Key += "=" + e.Value
		}
		r.attrs[e.Key] += n
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(e, at)
		}
		delete(r.output, at)
	}
}

func (r *report) endTest(e event, at test) {
	r.took[at] = e.Elapsed
	switch e.Action {
	case "pass":
		r.passed++
		r.inPkg[e.Package]++
	case "skip":
		r.skipped++
	case "fail":
		r.failed = append(r.failed, at)
		r.printOutput(at)
	}
}

func (r *report) endPackage(e event) {
	name := short(e.Package)
	switch {
	case e.Action == "pass":
		fmt.Fprintf(r.out, "ok    %-32s %7.1fs  %5d tests\n", name, e.Elapsed, r.inPkg[e.Package])
	case e.Action == "skip": // the package has no tests
	default:
		if !slices.ContainsFunc(r.failed, func(t test) bool { return t.pkg == e.Package }) {
			r.broken = append(r.broken, e.Package)
		}
		for _, line := range r.builds[e.FailedBuild] {
			fmt.Fprint(r.out, line)
		}
		for at := range r.output { // the package itself, and tests that had not ended
			if at.pkg == e.Package {
				r.printOutput(at)
			}
		}
		fmt.Fprintf(r.out, "FAIL  %-32s %7.1fs\n", name, e.Elapsed)
	}
}

// printOutput prints the output of a test without its "===" lines.
func (r *report) printOutput(at test) {
	fmt.Fprintf(r.out, "--- %s %s\n", short(at.pkg), at.name)
	for _, line := range r.output[at] {
		if !strings.HasPrefix(line, "=== ") {
			fmt.Fprint(r.out, line)
		}
	}
}

// short returns the folder of a package in the module.
func short(pkg string) string {
	_, name, ok := strings.Cut(pkg, "holdfast-go/holdfast")
	if !ok {
		return pkg
	}
	return "." + name
}

func (r *report) bad() bool { return len(r.failed)+len(r.broken) > 0 }

// close prints the summary.
func (r *report) close() {
	if r.o.slowest > 0 {
		r.slowest()
	}
	fmt.Fprintln(r.out)
	for _, command := range r.commands() {
		fmt.Fprintln(r.out, "again:", command)
	}
	fmt.Fprintf(r.out, "databases: %d of SQLite, %d of PostgreSQL; crash cases: %d; level %s, seed %d, %s\n",
		r.attrs[testlevel.DatabaseAttr+"=sqlite"], r.attrs[testlevel.DatabaseAttr+"=postgres"], r.attrs[testlevel.CasesAttr],
		r.o.level, r.o.seed, clock.Since(r.begun).Round(time.Second))
	fmt.Fprintf(r.out, "tests: %d passed, %d failed, %d skipped\n", r.passed, len(r.failed)+len(r.broken), r.skipped)
}

// commands returns one command for each failure that repeats it: the innermost test, or the
// package.
func (r *report) commands() (all []string) {
	prefix := ""
	if r.o.level != testlevel.Test.String() {
		prefix += testlevel.LevelVar + "=" + r.o.level + " "
	}
	if r.o.seed != testlevel.DefaultSeed {
		prefix += fmt.Sprintf("%s=%d ", testlevel.SeedVar, r.o.seed)
	}
	in, place := "", short
	if r.o.module != "" {
		in, place = "-C "+r.o.module+" ", func(pkg string) string { return pkg }
	}
	command := prefix + "go test " + in + "-count=1 -timeout=" + r.o.timeout
	if r.o.race {
		command = "CGO_ENABLED=1 " + command + " " + strings.Join(raceFlags, " ")
	}
	for _, t := range r.failed {
		inner := func(o test) bool { return o.pkg == t.pkg && strings.HasPrefix(o.name, t.name+"/") }
		if !slices.ContainsFunc(r.failed, inner) {
			all = append(all, fmt.Sprintf("%s %s -run '%s'", command, place(t.pkg), pattern(t.name)))
		}
	}
	for _, pkg := range r.broken {
		all = append(all, command+" "+place(pkg))
	}
	return all
}

// pattern returns a -run pattern that matches exactly one test.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + strings.ReplaceAll(regexp.QuoteMeta(p), "'", `'\''`) + "$"
	}
	return strings.Join(parts, "/")
}

// slowest lists the slowest tests. The time of a test includes its subtests and the wait for
// other parallel tests.
func (r *report) slowest() {
	all := make([]test, 0, len(r.took))
	for t := range r.took {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b test) int { return int(1000 * (r.took[b] - r.took[a])) })
	for _, t := range all[:min(len(all), r.o.slowest)] {
		fmt.Fprintf(r.out, "%7.1fs  %s %s\n", r.took[t], short(t.pkg), t.name)
	}
}
