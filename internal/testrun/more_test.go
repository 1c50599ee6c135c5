package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// TestMore verifies that every test that depends on the level is found, directly or through
// variables, methods and helpers, and that no other test is.
func TestMore(t *testing.T) {
	t.Chdir(t.TempDir())
	const imports = "import (\n\"testing\"\n\"example.org/h/help\"\n\"example.org/h/internal/testlevel\"\n)\nvar _ = help.Plain\nvar _ = testlevel.Seed\n"
	for path, text := range map[string]string{
		"go.mod":                          "module example.org/h\ngo 1.24\n",
		"internal/testlevel/testlevel.go": "package testlevel\nimport \"testing\"\nfunc Pick(a, b, c int) int { return a }\nfunc Long(testing.TB) {}\nfunc Seed() int { return 1 }\nfunc Current() int { return 1 }\nfunc Databases() int { return Current() }\n",
		"help/help.go":                    "package help\nimport \"example.org/h/internal/testlevel\"\nfunc Deep() int { return deep() }\nfunc deep() int { return testlevel.Pick(1, 2, 3) }\nfunc Plain() int { return testlevel.Seed() }\n",
		"a/a.go":                          "package a\n",
		"a/a_test.go": "package a\n" + imports + `
			var rounds = testlevel.Pick(1, 2, 3)
			type rig struct{}
			func (rig) long(t *testing.T) { testlevel.Long(t) }
			func TestMain(m *testing.M) { _ = rounds }
			func TestAsks(t *testing.T) { t.Run("sub", func(t *testing.T) { testlevel.Long(t) }) }
			func TestAsksByAVariable(t *testing.T) { _ = rounds }
			func TestAsksByAMethod(t *testing.T) { rig{}.long(t) }
			func TestAsksByAHelper(t *testing.T) { help.Deep() }
			func TestAsksNot(t *testing.T) { rounds := help.Plain(); _ = rounds + testlevel.Seed() }`,
		"a/x_test.go": "package a_test\n" + imports + "func TestAsksFromOutside(t *testing.T) { testlevel.Long(t) }\nfunc rounds() {}\nfunc TestAsksNotFromOutside(t *testing.T) { rounds() }",
		"b/b_test.go": "package b\n" + imports + "func TestAsksNotEither(t *testing.T) { testlevel.Seed() }\nfunc TestAlternates(t *testing.T) { testlevel.Databases() }",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packages, tests, err := more([]string{"./..."}, part{1, 1})
	if err != nil || !slices.Equal(packages, []string{"./a"}) {
		t.Errorf("got packages %q, error %v, want ./a", packages, err)
	}
	if got := strings.Join(tests, " "); got != "TestAsks TestAsksByAHelper TestAsksByAMethod TestAsksByAVariable TestAsksFromOutside" {
		t.Errorf("got tests %s", got)
	}
	var parts []string
	for n := range uint32(3) {
		_, some, err := more([]string{"./..."}, part{n + 1, 3})
		if err != nil || len(some) == len(tests) {
			t.Errorf("part %d of 3 has all tests, error %v", n+1, err)
		}
		parts = append(parts, some...)
	}
	if slices.Sort(parts); !slices.Equal(parts, tests) {
		t.Errorf("the parts together have %s", parts)
	}
	if packages, tests, err := more([]string{"./b"}, part{1, 1}); len(packages)+len(tests) > 0 || err != nil {
		t.Errorf("package that does not depend on the level: got packages %q, tests %q, error %v", packages, tests, err)
	}
}

// TestPackagesWithoutATest verifies that a package whose tests all skip at level test, with or without the race detector, is not
// compiled.
func TestPackagesWithoutATest(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, x := range map[string]struct {
		body        string
		race, plain bool
	}{
		"one":     {"testlevel.OneGoroutine(t)", false, true},
		"long":    {"t.Helper(); testlevel.Long(t)", false, false},
		"both":    {"}; func TestOther(t *testing.T) { testlevel.OneGoroutine(t)", true, true},
		"nested":  {"if true { testlevel.Long(t) }", true, true},
		"other":   {"testlevel.Share(1)", true, true},
		"of":      {"other.Long(t)", true, true},
		"example": {"testlevel.Long(t) }; func ExampleIt() {", false, true},
	} {
		if err := os.WriteFile(name+"_test.go", []byte("package a\nfunc TestMain(m *testing.M) {}\nfunc (x) TestIt() {}\nfunc helper() {}\nfunc TestIt(t *testing.T) { "+x.body+" }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for race, want := range map[bool]bool{true: x.race, false: x.plain} {
			if got, err := (listed{TestGoFiles: []string{name + "_test.go"}}).tests(race); got != want || err != nil {
				t.Errorf("%s, with the race detector %v: runs %v, error %v, want %v", x.body, race, got, err, want)
			}
		}
	}
}

// TestParts verifies which texts name a part.
func TestParts(t *testing.T) {
	for text, want := range map[string]part{"1/1": {1, 1}, "2/3": {2, 3}, "0/2": {}, "3/2": {}, "1": {}, "/2": {}, "a/b": {}} {
		var got part
		if err := got.Set(text); got != want || (err == nil) != (want.of > 0) {
			t.Errorf("%q is part %v, error %v, want %v", text, got, err, want)
		}
	}
}

// TestMoreOfOurs verifies that known tests of this module that depend on the level are found,
// with the slow packages first.
func TestMoreOfOurs(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Chdir("../..")
	o := options{packages: []string{"./..."}}
	ordered, err := o.inOrder()
	if err != nil {
		t.Fatal(err)
	}
	packages, tests, err := more(ordered, part{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"TestChaos", "TestConformance", "TestCrashOfEveryVerb", "TestRandomWalk", "TestScripts", "TestTheGate"} {
		if !slices.Contains(tests, name) {
			t.Errorf("%s is missing", name)
		}
	}
	first := slices.DeleteFunc(slices.Clone(slow), func(p string) bool { return !slices.Contains(packages, p) })
	if slices.Contains(tests, t.Name()) || len(first) < 10 || !slices.Equal(packages[:len(first)], first) {
		t.Errorf("got packages %q", packages)
	}
}
