package archtest

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// moduleRoot returns the folder of go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above this package")
		}
		dir = filepath.Dir(dir)
	}
}

// projectFiles returns the files of the project: all that git tracks or would track. Without
// git, as in a module cache, it returns all files.
func projectFiles(t *testing.T, dir string) []string {
	t.Helper()
	git := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = dir
	if out, err := git.Output(); err == nil {
		return strings.FieldsFunc(string(out), func(c rune) bool { return c == 0 })
	}
	var files []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.Type().IsRegular():
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func report(t *testing.T, found []Violation, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

func TestNoPathsOfThisMachine(t *testing.T) {
	testlevel.OneGoroutine(t)
	dir := moduleRoot(t)
	found, err := MachinePaths(os.DirFS(dir), projectFiles(t, dir), filepath.Dir(dir))
	report(t, found, err)
}

func TestNothingLeftUnfinished(t *testing.T) {
	testlevel.OneGoroutine(t)
	dir := moduleRoot(t)
	found, err := Unfinished(os.DirFS(dir), projectFiles(t, dir))
	report(t, found, err)
}

func TestGuaranteesNameTestsThatExist(t *testing.T) {
	testlevel.OneGoroutine(t)
	const name = "docs/guarantees.md"
	dir := moduleRoot(t)
	doc, err := fs.ReadFile(os.DirFS(dir), name)
	if err != nil {
		t.Fatal(err)
	}
	have, err := testFuncs(os.DirFS(dir), projectFiles(t, dir))
	report(t, NamedTests(name, doc, have), err)
}

func TestDependenciesAreExplained(t *testing.T) {
	testlevel.OneGoroutine(t)
	dir := os.DirFS(moduleRoot(t))
	doc, err := fs.ReadFile(dir, "docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	gomod, err := fs.ReadFile(dir, "go.mod")
	report(t, Dependencies(gomod, doc), err)
}

// Verifies that every public package has an example that is run, and that a document links to each example.
func TestEveryPackageHasAnExample(t *testing.T) {
	testlevel.OneGoroutine(t)
	dir := moduleRoot(t)
	found, err := PackageExamples(os.DirFS(dir), projectFiles(t, dir))
	report(t, found, err)
}

func TestPlantedExamples(t *testing.T) {
	testlevel.OneGoroutine(t)
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	fsys := fstest.MapFS{
		"README.md":           text("[a](a/example_test.go)"),
		"docs/b.md":           text("[b](../b/example_test.go)"),
		"a/a.go":              text("package a"),
		"a/example_test.go":   text("package a\n\nfunc ExampleA() {\n// Output: 1\n}"),
		"b/b.go":              text("package b"),
		"b/example_test.go":   text("package b\n\nfunc ExampleB() {}"),
		"c/c.go":              text("package c"),
		"d/d.go":              text("package d"),
		"d/example_test.go":   text("package d\n\nfunc ExampleD() {\n// Output: 1\n}"),
		"d/internal/e/e.go":   text("package e"),
		"examples/x/main.go":  text("package main"),
		"bench/baseline/b.go": text("package baseline"),
	}
	found, err := PackageExamples(fsys, slices.Collect(maps.Keys(fsys)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range found {
		got = append(got, v.File+": "+v.What)
	}
	slices.Sort(got)
	want := []string{"b/b.go: the package has no example with // Output:", "c/c.go: the package has no example with // Output:", "d/example_test.go: no document links to this example"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPlantedPaths(t *testing.T) {
	testlevel.OneGoroutine(t)
	files := fstest.MapFS{
		"README.md":   {Data: []byte("fine\nsee /home/ada/src/holdfast/docs\n")},
		"start.sh":    {Data: []byte("cd \"/home/ada/src/other\"")},
		"url.md":      {Data: []byte("https://example.org/home/ada/src/x, /home/ada/srcs, ./home/ada/src/x\n")},
		"picture.png": {Data: []byte("\x00 /home/ada/src/holdfast")},
	}
	found, err := MachinePaths(files, keys(files), "/home/ada/src")
	wantPlaces(t, found, err, "README.md:2", "start.sh:1")

	found, err = MachinePaths(files, keys(files), "/")
	wantPlaces(t, found, err)
}

func TestPlantedUnfinished(t *testing.T) {
	testlevel.OneGoroutine(t)
	later, fix := "TO"+"DO", "FIX"+"ME"
	files := fstest.MapFS{
		"a.go":          {Data: []byte("package a\n\n// " + later + ": the rest\nvar ctx = context." + later + "()\n")},
		"b.go":          {Data: []byte("package b\n\nvar x = 1 /* " + fix + " */\n")},
		"testdata/c.go": {Data: []byte("package c // " + fix + "\n")},
		"notes.md":      {Data: []byte(later)},
	}
	found, err := Unfinished(files, append(keys(files), "gone.go"))
	wantPlaces(t, found, err, "a.go:3", "b.go:3")
}

func TestPlantedGuarantees(t *testing.T) {
	testlevel.OneGoroutine(t)
	files := fstest.MapFS{
		"a/a_test.go":              {Data: []byte("package a\nfunc TestHere(t *testing.T) {}\nfunc FuzzHere(f *testing.F) {}\nfunc (s suite) TestMethod() {}\n")},
		"internal/storetest/do.go": {Data: []byte("package storetest\nfunc TestStore(t *testing.T) {}\n")},
		"a/a.go":                   {Data: []byte("package a\nfunc TestNot() {}\n")},
	}
	have, err := testFuncs(files, keys(files))
	doc := "I1 `TestHere/some_case`, `FuzzHere`, storetest.TestStore\nI2 `TestGone`\nI3 TestNot\nI4 TestMethod"
	wantPlaces(t, NamedTests("g.md", []byte(doc), have), err, "g.md:2", "g.md:3", "g.md:4")
}

func TestPlantedDependencies(t *testing.T) {
	testlevel.OneGoroutine(t)
	gomod := `module example.org/x

require github.com/one/lone v1.0.0

require (
	github.com/a/listed/v5 v5.1.0
	github.com/a/list v0.1.0
	github.com/a/far v0.0.0-2020 // indirect
)
`
	doc := "| github.com/a/listed | v5 | saves us much |\n"
	wantPlaces(t, Dependencies([]byte(gomod), []byte(doc)), nil, "go.mod:3", "go.mod:7")
}

func keys(files fstest.MapFS) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// wantPlaces compares the places of violations with the given file:line texts.
func wantPlaces(t *testing.T, found []Violation, err error, want ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range found {
		got = append(got, strings.SplitAfterN(v.String(), ": ", 2)[0])
	}
	for i := range want {
		want[i] += ": "
	}
	if !slices.Equal(got, want) {
		t.Errorf("found at %q, want %q\n%v", got, want, found)
	}
}

func glob(t *testing.T, fsys fs.FS, pattern string) []string {
	t.Helper()
	names, err := fs.Glob(fsys, pattern)
	if err != nil {
		t.Fatal(err)
	}
	return names
}
