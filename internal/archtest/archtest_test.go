package archtest

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

var module = sync.OnceValues(func() (*Module, error) { return ReadModule(os.DirFS("../..")) })

// thisModule returns this module, which is read once.
func thisModule(t *testing.T) *Module {
	t.Helper()
	m, err := module()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Files) == 0 {
		t.Fatal("the module has no Go files")
	}
	return m
}

func TestArrows(t *testing.T)       { report(t, Arrows(thisModule(t), Rules), nil) }
func TestConfinements(t *testing.T) { report(t, Confinements(thisModule(t), Confined), nil) }
func TestClocks(t *testing.T)       { report(t, Clocks(thisModule(t)), nil) }
func TestSleeps(t *testing.T)       { report(t, Sleeps(thisModule(t)), nil) }
func TestHiddenNames(t *testing.T)  { report(t, HiddenNames(thisModule(t)), nil) }

// A rule about a deleted package protects nothing, and would apply to a new package of the
// same name.
func TestRulesAreAboutPackagesThatExist(t *testing.T) {
	testlevel.OneGoroutine(t)
	all := slices.Clone(mayAskTime)
	for _, r := range Rules {
		all = append(append(all, r.Pkg), r.May...)
	}
	for _, c := range Confined {
		all = append(all, c.Only...)
	}
	for _, pkg := range absent(thisModule(t), all) {
		t.Errorf("the tables in rules_test.go name %s, which does not exist: remove it", pkg)
	}
	m := planted(t, map[string]string{"a/a.go": "", "b/below/b.go": ""})
	if got := absent(m, []string{"a", "a/...", "b", "b/...", "b/below", "gone", "gone/..."}); !slices.Equal(got, []string{"b", "gone", "gone/..."}) {
		t.Errorf("absent packages: got %v, want b, gone and gone/...", got)
	}
}

// absent returns the patterns that match no package of the module.
func absent(m *Module, patterns []string) []string {
	slices.Sort(patterns)
	return slices.DeleteFunc(slices.Compact(patterns), func(pattern string) bool {
		return slices.ContainsFunc(m.Files, func(f File) bool { return covers(pattern, f.Pkg) })
	})
}

func TestBenchArrows(t *testing.T) {
	testlevel.OneGoroutine(t)
	m, err := ReadModule(os.DirFS("../../bench"))
	if err != nil {
		t.Fatal(err)
	}
	report(t, Arrows(m, BenchRules), nil)
}

// The table is consistent, and the main design rules hold in it.
func TestRules(t *testing.T) {
	testlevel.OneGoroutine(t)
	seen := make(map[string]bool)
	for _, r := range Rules {
		if seen[r.Pkg] {
			t.Errorf("two rules for %s", r.Pkg)
		}
		seen[r.Pkg] = true
		if r.Why == "" {
			t.Errorf("the rule for %s gives no reason", r.Pkg)
		}
		for _, pkg := range r.May {
			if _, ok := ruleFor(Rules, pkg); !ok {
				t.Errorf("%s may import %s, which has no rule itself", r.Pkg, pkg)
			}
		}
	}
	never(t, capabilities, join(capabilities, adapters))
	never(t, join(inner, ground), join(capabilities, adapters, []string{root}))
	never(t, []string{root}, join(capabilities, adapters))
	never(t, adapters, join(capabilities, adapters, inner)) // they may import the root: their public functions use its types
	never(t, []string{"httpapi"}, join(adapters, []string{"internal/cli"}))
	never(t, join(capabilities, adapters, inner, ground, []string{root, "httpapi", "client", "wire", "idem", "internal/cli", "cmd/holdfast"}),
		[]string{"internal/storetest", "internal/testkit", "internal/pgtest", "internal/archtest", "holdfasttest"})
}

// never checks that no rule allows one of pkgs to import one of others.
func never(t *testing.T, pkgs, others []string) {
	t.Helper()
	for _, pkg := range pkgs {
		r, ok := ruleFor(Rules, pkg)
		if !ok {
			t.Errorf("%s has no rule", pkg)
		}
		for _, other := range others {
			if pkg != other && r.allows(other) {
				t.Errorf("the table allows %s to import %s", name(pkg), name(other))
			}
		}
	}
}

// planted returns a module of files. Each file is a package clause followed by the given text.
func planted(t *testing.T, files map[string]string) *Module {
	t.Helper()
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module example.org/h\n\ngo 1.26\n")}}
	for name, src := range files {
		fsys[name] = &fstest.MapFile{Data: []byte("package p\n" + src)}
	}
	m, err := ReadModule(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func importing(paths ...string) string {
	src := ""
	for _, p := range paths {
		src += "import _ \"" + p + "\"\n"
	}
	return src
}

func TestPlantedArrows(t *testing.T) {
	testlevel.OneGoroutine(t)
	for file, c := range map[string]struct{ imports, want string }{
		"cmd/holdfast/main.go":     {"example.org/h/httpapi", "cmd/holdfast may not import httpapi"},
		"stream/a.go":              {"example.org/h/batch", "stream may not import batch"},
		"scope/a.go":               {"example.org/h/sqlite", "scope may not import sqlite"},
		"a.go":                     {"example.org/h/run", "holdfast (the root) may not import run"},
		"internal/lease/a.go":      {"example.org/h", "internal/lease may not import holdfast (the root)"},
		"internal/events/a.go":     {"example.org/h/stream", "internal/events may not import stream"},
		"postgres/a.go":            {"example.org/h/internal/events", "postgres may not import internal/events"},
		"sqlite/a.go":              {"example.org/h/postgres", "sqlite may not import postgres"},
		"httpapi/sub/a.go":         {"example.org/h/internal/cli", "httpapi/sub may not import internal/cli"},
		"client/a.go":              {"example.org/h", "client may not import holdfast (the root)"},
		"internal/store/a.go":      {"example.org/h/internal/lease", "internal/store may not import internal/lease"},
		"fault/a.go":               {"github.com/google/uuid", "fault may not depend on github.com/google/uuid"},
		"internal/clock/a.go":      {"example.org/h/fault", "internal/clock may not import fault"},
		"lifecycle/a.go":           {"github.com/stretchr/testify/assert", "lifecycle may not depend on github.com/stretchr"},
		"internal/pantry/a.go":     {"fmt", "package internal/pantry has no rule: add it to Rules"},
		"internal/wake/a.go":       {"example.org/h/internal/storetest", "internal/wake may not import internal/storetest"},
		"lifecycle/diagram/dot.go": {"fmt", "package lifecycle/diagram has no rule"},
	} {
		m := planted(t, map[string]string{file: importing(c.imports)})
		wantOne(t, Arrows(m, Rules), file, c.want)
	}
}

func TestPlantedConfinements(t *testing.T) {
	testlevel.OneGoroutine(t)
	for file, c := range map[string]struct{ imports, want string }{
		"run/a.go":                {"testing", "run may not import testing"},
		"internal/wake/a.go":      {"testing/fstest", "internal/wake may not import testing/fstest"},
		"a.go":                    {"net/http", "holdfast (the root) may not import net/http"},
		"postgres/a.go":           {"database/sql", "postgres may not import database/sql"},
		"internal/events/a.go":    {"github.com/jackc/pgx/v5/pgxpool", "internal/events may not import github.com/jackc/pgx/v5/pgxpool"},
		"batch/a.go":              {"go.opentelemetry.io/otel/sdk/trace", "batch may not import go.opentelemetry.io/otel/sdk/trace"},
		"internal/lease/a.go":     {"github.com/danielgtaylor/huma/v2", "internal/lease may not import"},
		"httpapi/a.go":            {"github.com/alecthomas/kong", "httpapi may not import"},
		"internal/runengine/a.go": {"github.com/expr-lang/expr/file", "internal/runengine may not import"},

		"internal/workflow/a.go": {"github.com/expr-lang/expr/vm", "internal/workflow may not import"},
	} {
		m := planted(t, map[string]string{file: importing(c.imports)})
		wantOne(t, Confinements(m, Confined), file, c.want)
	}
}

func TestPlantedTimes(t *testing.T) {
	testlevel.OneGoroutine(t)
	m := planted(t, map[string]string{
		"internal/clock/a.go": "import \"time\"\nvar _ = time.Now()\n",
		"run/a_test.go":       "import \"time\"\nvar _ = time.Now()\n",
		"run/a.go":            "import \"time\"\nvar _ = time.Now()\nvar _ = time.Second\n",
		"run/b.go":            "import t \"time\"\nvar now = t.Now\nvar _ = t.Since(then)\n",
	})
	wantPlaces(t, Clocks(m), nil, "run/a.go:3", "run/b.go:3", "run/b.go:4")
}

func TestPlantedSleeps(t *testing.T) {
	testlevel.OneGoroutine(t)
	sleep := "func f() { time.Sleep(1) }\n"
	m := planted(t, map[string]string{
		"run/a.go":                "import \"time\"\n" + sleep,
		"run/a_test.go":           "import \"time\"\n" + sleep,
		"internal/storetest/a.go": "import \"time\"\n" + sleep,
		"run/b_test.go": "import \"time\"\nimport \"testing/synctest\"\n" +
			"func g() { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }\n",
	})
	wantPlaces(t, Sleeps(m), nil, "internal/storetest/a.go:3", "run/a_test.go:3")
}

func TestPlantedDotImport(t *testing.T) {
	testlevel.OneGoroutine(t)
	m := planted(t, map[string]string{"run/a.go": "import . \"time\"\nvar _ = Now()\n"})
	wantOne(t, HiddenNames(m), "run/a.go", "time is imported with a dot")
}

// Correct imports are accepted, and files outside the module are not read.
func TestGoodArrows(t *testing.T) {
	testlevel.OneGoroutine(t)
	m := planted(t, map[string]string{
		"cmd/holdfast/main.go":         importing("os", "example.org/h/internal/cli"),
		"internal/cli/a.go":            importing("example.org/h", "example.org/h/postgres", "example.org/h/internal/cli/tables", "github.com/alecthomas/kong"),
		"httpapi/a.go":                 importing("net/http", "example.org/h/run", "github.com/danielgtaylor/huma/v2"),
		"stream/a.go":                  importing("example.org/h", "example.org/h/internal/events", "example.org/h/fault"),
		"a.go":                         importing("example.org/h/internal/lease", "go.opentelemetry.io/otel/trace"),
		"a_test.go":                    importing("testing", "example.org/h/sqlite", "example.org/h/stream"),
		"postgres/a.go":                importing("github.com/jackc/pgx/v5", "example.org/h/internal/store"),
		"sqlite/a.go":                  importing("database/sql", "modernc.org/sqlite"),
		"holdfasttest/a.go":            importing("testing", "example.org/h/internal/crash", "example.org/h/internal/pgtest"),
		"internal/pgtest/pgrun/a.go":   importing("example.org/h/internal/pgtest"),
		"internal/cli/testdata/bad.go": importing("example.org/h/internal/storetest"),
		"internal/onlytests/a_test.go": importing("testing"),
	})
	found := slices.Concat(Arrows(m, Rules), Confinements(m, Confined), HiddenNames(m))
	report(t, found, nil)
}

// wantOne checks that there is one violation, in file, whose text contains want.
func wantOne(t *testing.T, found []Violation, file, want string) {
	t.Helper()
	if len(found) != 1 || found[0].File != file || !strings.Contains(found[0].What, want) {
		t.Errorf("%s: found %v, want %q", file, found, want)
	}
}

// TestThePublicAPINamesNoInternalType verifies that the public packages expose no type of an
// internal package.
func TestThePublicAPINamesNoInternalType(t *testing.T) {
	testlevel.OneGoroutine(t)
	found, err := PublicTypes("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}
