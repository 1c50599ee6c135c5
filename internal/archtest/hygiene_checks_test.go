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
	"regexp"
	"strings"
)

// MachinePaths reports files that name a path below parent, the folder that the
// checkout is in: it exists on one machine only. An empty parent, or the root of
// the file system, says nothing.
func MachinePaths(fsys fs.FS, files []string, parent string) ([]Violation, error) {
	if strings.Trim(parent, `/\.`) == "" {
		return nil, nil
	}
	// What stands before must not make it a part of another path or a URL.
	path := regexp.MustCompile(`(^|[^\w/.:~}>-])` + regexp.QuoteMeta(parent) + `[/\\]`)
	return eachText(fsys, files, func(name string, src []byte) []Violation {
		var found []Violation
		for i, line := range bytes.Split(src, []byte("\n")) {
			if path.Match(line) {
				found = append(found, Violation{File: name, Line: i + 1, What: "names a path of this machine: write it from the module's root"})
			}
		}
		return found
	})
}

// unfinished is what a comment says of work that is left for later.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)

// Unfinished reports comments in Go files that put work off: it goes where
// others look for it, or is done.
func Unfinished(fsys fs.FS, files []string) ([]Violation, error) {
	return eachText(fsys, files, func(name string, src []byte) []Violation {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/") {
			return nil
		}
		var found []Violation
		eachComment(src, func(line int, text string) {
			if m := unfinished.FindString(text); m != "" {
				found = append(found, Violation{File: name, Line: line, What: "a comment says " + m + ": do it, or write an issue"})
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

// eachText calls check with every file that is text. Files that are gone (git
// still lists them) are left out.
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

// testName is a test that a document names. Of TestX/sub only TestX is looked
// for: a subtest's name is made when it runs.
var testName = regexp.MustCompile(`\b(Test|Fuzz)[A-Z0-9_]\w*`)

// NamedTests reports tests that the document names and that are not in have.
func NamedTests(name string, doc []byte, have map[string]bool) []Violation {
	var found []Violation
	for i, line := range bytes.Split(doc, []byte("\n")) {
		for _, test := range testName.FindAllString(string(line), -1) {
			if !have[test] {
				found = append(found, Violation{File: name, Line: i + 1,
					What: fmt.Sprintf("names the test %s, which does not exist: a guarantee without a test is a wish", test)})
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

// addTestFuncs leaves a file that cannot be parsed to the compiler.
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

// Dependencies reports direct dependencies in go.mod that the document has no
// line for. A line names the module, with or without its major version.
func Dependencies(gomod, doc []byte) []Violation {
	var found []Violation
	for i, line := range strings.Split(string(gomod), "\n") {
		module, direct := requirement(line)
		if direct && !named(string(doc), module) && !named(string(doc), majorVersion.ReplaceAllString(module, "")) {
			found = append(found, Violation{File: "go.mod", Line: i + 1,
				What: fmt.Sprintf("%s has no line in docs/dependencies.md: say what it saves us", module)})
		}
	}
	return found
}

var (
	required     = regexp.MustCompile(`^\s*(?:require\s+)?(\S+\.\S+/\S+)\s+v\d\S*\s*(//.*)?$`)
	majorVersion = regexp.MustCompile(`/v\d+$`)
)

// requirement reads one line of go.mod; replace lines have an arrow, and do not
// match.
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
