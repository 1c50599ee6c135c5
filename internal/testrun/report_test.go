package main

import (
	"strings"
	"testing"
)

const pkg = `"Package":"github.com/holdfast-go/holdfast/run"`

// reported returns the report of lines of go test -json, and its text.
func reported(t *testing.T, o options, lines ...string) (*report, string) {
	t.Helper()
	var out strings.Builder
	r := newReport(&out, o)
	if err := r.read(strings.NewReader(strings.Join(lines, "\n") + "\n")); err != nil {
		t.Fatal(err)
	}
	r.close()
	return r, out.String()
}

func wantIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("report has no %q:\n%s", part, text)
		}
	}
}

// TestReport verifies that passed and skipped tests, databases and crash cases are counted.
func TestReport(t *testing.T) {
	r, text := reported(t, options{level: "test", seed: 1},
		`{"Action":"attr",`+pkg+`,"Test":"TestA","Key":"holdfast.database","Value":"sqlite"}`,
		`{"Action":"attr",`+pkg+`,"Test":"TestA","Key":"holdfast.crash.cases","Value":"24"}`,
		`{"Action":"attr",`+pkg+`,"Test":"TestA","Key":"holdfast.note","Value":"no promtool"}`,
		`{"Action":"pass",`+pkg+`,"Test":"TestA","Elapsed":1}`,
		`{"Action":"skip",`+pkg+`,"Test":"TestB","Elapsed":0}`,
		`{"Action":"pass",`+pkg+`,"Elapsed":2.5}`)
	if r.bad() {
		t.Error("the run is reported as failed")
	}
	wantIn(t, text, "note  ./run: no promtool\n", "ok    ./run", "2.5s", "1 of SQLite, 0 of PostgreSQL; crash cases: 24; level test, seed 1", "tests: 1 passed, 0 failed, 1 skipped\n")
}

// TestReportOfFailures verifies that a failed test, a failed build and a crashed process are
// failures, reported with their output and a command that repeats them.
func TestReportOfFailures(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  []string
	}{
		"a test": {[]string{
			`{"Action":"output",` + pkg + `,"Test":"TestA/it's_one","Output":"    a_test.go:7: wrong\n"}`,
			`{"Action":"fail",` + pkg + `,"Test":"TestA/it's_one","Elapsed":1}`,
			`{"Action":"fail",` + pkg + `,"Test":"TestA","Elapsed":1}`,
			`{"Action":"fail",` + pkg + `,"Elapsed":1}`},
			[]string{"a_test.go:7: wrong", "FAIL  ./run", `again: HOLDFAST_TEST_LEVEL=check HOLDFAST_TEST_SEED=7 go test -count=1 -timeout=20m ./run -run '^TestA$/^it'\''s_one$'`, "0 passed, 2 failed"}},
		"a build": {[]string{
			`{"Action":"build-output","ImportPath":"x","Output":"a.go:1: undefined: y\n"}`,
			`{"Action":"fail",` + pkg + `,"Elapsed":0,"FailedBuild":"x"}`},
			[]string{"a.go:1: undefined: y", "FAIL  ./run", "again: HOLDFAST_TEST_LEVEL=check HOLDFAST_TEST_SEED=7 go test -count=1 -timeout=20m ./run\n", "1 failed"}},
		"a process, behind a failed test": {[]string{
			`{"Action":"fail",` + pkg + `,"Test":"TestA","Elapsed":1}`,
			`{"Action":"output",` + pkg + `,"Test":"TestB","Output":"panic: boom\n"}`,
			`{"Action":"fail",` + pkg + `,"Elapsed":1}`},
			[]string{"panic: boom", "FAIL  ./run"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, text := reported(t, options{level: "check", seed: 7, timeout: "20m"}, c.lines...)
			if !r.bad() {
				t.Error("the run is reported as passed")
			}
			wantIn(t, text, c.want...)
		})
	}
}

// TestReportOfAnotherModule verifies that the command that repeats a failure runs in its module.
func TestReportOfAnotherModule(t *testing.T) {
	_, text := reported(t, options{level: "test", seed: 1, timeout: "10m", module: "bench"},
		`{"Action":"fail","Package":"github.com/holdfast-go/holdfast/bench/baseline","Test":"TestA","Elapsed":1}`)
	wantIn(t, text, "again: go test -C bench -count=1 -timeout=10m github.com/holdfast-go/holdfast/bench/baseline -run '^TestA$'\n")
}
