package archtest

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// MachinePaths reports files that contain a path below parent, the folder of the checkout,
// because it exists on one machine only. It reports nothing if parent is empty or the root of
// the file system.
func MachinePaths(fsys fs.FS, files []string, parent string) ([]Violation, error) {
	if strings.Trim(parent, `/\.`) == "" {
		return nil, nil
	}
	// The preceding character must not make it a part of another path or a URL.
	below := regexp.MustCompile(`(^|[^\w/.:~}>-])` + regexp.QuoteMeta(parent) + `[/\\]`)
	return eachText(fsys, files, func(name string, src []byte) []Violation {
		var found []Violation
		for i, line := range bytes.Split(src, []byte("\n")) {
			if below.Match(line) {
				found = append(found, Violation{File: name, Line: i + 1, What: "contains a path of this machine: write it relative to the module root"})
			}
		}
		return found
	})
}

// unfinished matches markers of postponed work in comments.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)

// Unfinished reports comments in Go files that postpone work, which belongs into an issue.
func Unfinished(fsys fs.FS, files []string) ([]Violation, error) {
	return eachText(fsys, files, func(name string, src []byte) []Violation {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/") {
			return nil
		}
		var found []Violation
		eachComment(src, func(line int, text string) {
			if m := unfinished.FindString(text); m != "" {
				found = append(found, Violation{File: name, Line: line, What: "a comment has " + m + ": do it, or open an issue"})
			}
		})
		return found
	})
}

func eachComment(src []byte, f func(line int, text string)) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return
		}
		if tok == token.COMMENT {
			f(file.Line(pos), text)
		}
	}
}

// eachText calls check with every text file. It skips deleted files, which git may still list.
func eachText(fsys fs.FS, files []string, check func(name string, src []byte) []Violation) ([]Violation, error) {
	var found []Violation
	for _, name := range files {
		src, err := fs.ReadFile(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if !bytes.ContainsRune(src[:min(len(src), 8000)], 0) {
			found = append(found, check(name, src)...)
		}
	}
	return sorted(found), nil
}

// testName matches the name of a test in a document. Of TestX/sub it matches only TestX,
// because names of subtests exist only at run time.
var testName = regexp.MustCompile(`\b(Test|Fuzz)[A-Z0-9_]\w*`)

// NamedTests reports tests that the document names but that are not in have.
func NamedTests(name string, doc []byte, have map[string]bool) []Violation {
	var found []Violation
	for i, line := range bytes.Split(doc, []byte("\n")) {
		for _, test := range testName.FindAllString(string(line), -1) {
			if !have[test] {
				found = append(found, Violation{File: name, Line: i + 1,
					What: fmt.Sprintf("names the test %s, which does not exist: add the test or correct the name", test)})
			}
		}
	}
	return found
}

// testFuncs returns the names of the tests in files: the Test and Fuzz functions
// of _test.go files and of internal/storetest.
func testFuncs(fsys fs.FS, files []string) (map[string]bool, error) {
	have := make(map[string]bool)
	_, err := eachText(fsys, files, func(name string, src []byte) []Violation {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/storetest/") && strings.HasSuffix(name, ".go") {
			addTestFuncs(src, have)
		}
		return nil
	})
	return have, err
}

// addTestFuncs adds the tests of a file. It skips a file that does not parse, which the compiler
// reports.
func addTestFuncs(src []byte, have map[string]bool) {
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && testName.MatchString(f.Name.Name) {
			have[f.Name.Name] = true
		}
	}
}

// Dependencies reports direct dependencies in go.mod without a line in the document. A line
// names the module, with or without its major version.
func Dependencies(gomod, doc []byte) []Violation {
	var found []Violation
	for i, line := range strings.Split(string(gomod), "\n") {
		module, direct := requirement(line)
		if direct && !named(string(doc), module) && !named(string(doc), majorVersion.ReplaceAllString(module, "")) {
			found = append(found, Violation{File: "go.mod", Line: i + 1,
				What: fmt.Sprintf("%s has no line in docs/dependencies.md: add one that explains why it is needed", module)})
		}
	}
	return found
}

var (
	required     = regexp.MustCompile(`^\s*(?:require\s+)?(\S+\.\S+/\S+)\s+v\d\S*\s*(//.*)?$`)
	majorVersion = regexp.MustCompile(`/v\d+$`)
)

// requirement parses one line of go.mod. A replace line does not match, because it has an
// arrow.
func requirement(line string) (module string, direct bool) {
	m := required.FindStringSubmatch(line)
	if m == nil {
		return "", false
	}
	return m[1], !strings.Contains(m[2], "indirect")
}

func named(doc, module string) bool {
	return regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(module) + `($|[^\w/-])`).MatchString(doc)
}

// PackageExamples reports public packages without an example that is run, and examples that no document links to.
func PackageExamples(fsys fs.FS, files []string) ([]Violation, error) {
	var docs strings.Builder
	shown, public := make(map[string]bool), make(map[string]string) // by folder
	var found []Violation
	for _, name := range files {
		folder := path.Dir(name)
		isGo := strings.HasSuffix(name, ".go")
		switch {
		case strings.Contains("/"+folder+"/", "/internal/") || strings.Contains(name, "testdata/") || strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, "bench/") || strings.HasPrefix(name, "cmd/"):
			continue
		case !isGo && name != "README.md" && !(folder == "docs" && strings.HasSuffix(name, ".md")):
			continue
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		switch {
		case !isGo:
			docs.Write(src)
		case folder == "docs": // the pages as files
		case !strings.HasSuffix(name, "_test.go"):
			public[folder] = name
		case bytes.Contains(src, []byte("\nfunc Example")):
			shown[folder] = shown[folder] || bytes.Contains(src, []byte("// Output:"))
			public["link "+name] = name
		}
	}
	for folder, name := range public {
		if link, ok := strings.CutPrefix(folder, "link "); ok {
			if !strings.Contains(docs.String(), "]("+link+")") && !strings.Contains(docs.String(), "](../"+link+")") {
				found = append(found, Violation{File: name, What: "no document links to this example"})
			}
		} else if !shown[folder] {
			found = append(found, Violation{File: name, What: "the package has no example with // Output:"})
		}
	}
	return found, nil
}
