package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// levels is the package of the test levels.
const levels = "internal/testlevel"

// levelFuncs are the functions whose result depends on the level.
var levelFuncs = []string{"Current", "Long", "Pick", "Variant"}

// listed is the output of go list for a package.
type listed struct {
	Dir, ImportPath                          string
	Module                                   struct{ Path string }
	Deps, GoFiles, TestGoFiles, XTestGoFiles []string
}

// part is one of several parts of the tests. A test is always in the same part.
type part struct{ n, of uint32 }

// Set reads a part such as 1/2.
func (p *part) Set(text string) error {
	n, of, _ := strings.Cut(text, "/")
	first, err := strconv.ParseUint(n, 10, 32)
	last, err2 := strconv.ParseUint(of, 10, 32)
	if err != nil || err2 != nil || first < 1 || first > last {
		return errors.New(`want a part such as "1/2", the first of two`)
	}
	*p = part{uint32(first), uint32(last)}
	return nil
}

func (p *part) String() string { return fmt.Sprintf("%d/%d", p.n, p.of) }

func (p *part) has(test string) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(test))
	return uint32(h.Sum64()>>32)%p.of == p.n-1
}

// more returns the tests of a part that depend on the level, directly or through their helpers, and
// their packages. All other tests are the same at every level. Uses are matched by name only,
// so the result may have a test too many, but none too few.
func more(patterns []string, p part) (packages, tests []string, err error) {
	every, err := list("", "./...")
	if err != nil {
		return nil, nil, err
	}
	uses := make(map[string][]string)
	for _, p := range every {
		if err := p.read(uses); err != nil {
			return nil, nil, err
		}
	}
	dependent := levelDependent(uses)
	selected, err := list("", patterns...)
	for _, l := range selected {
		n := len(tests)
		for name := range dependent {
			pkg, test := path.Split(name)
			if strings.TrimSuffix(strings.TrimSuffix(pkg, "/"), "_test") == l.ImportPath && strings.HasPrefix(test, "Test") && test != "TestMain" && p.has(test) {
				tests = append(tests, test)
			}
		}
		if len(tests) > n {
			packages = append(packages, "."+strings.TrimPrefix(l.ImportPath, l.Module.Path))
		}
	}
	slices.Sort(tests)
	return packages, slices.Compact(tests), err
}

func list(module string, patterns ...string) (all []listed, err error) {
	cmd := exec.Command("go", append([]string{"list", "-json=Dir,ImportPath,Module,Deps,GoFiles,TestGoFiles,XTestGoFiles"}, patterns...)...)
	cmd.Dir, cmd.Stderr = module, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for from := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := from.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// read adds the names that each declaration of the package's tests uses. Names have the form
// "package/Name", or "package/.Name" for all methods of that name.
func (p listed) read(uses map[string][]string) error {
	tests := p.TestGoFiles
	if slices.Contains(p.Deps, path.Join(p.Module.Path, levels)) { // a package of test helpers
		tests = append(tests, p.GoFiles...)
	}
	return errors.Join(p.readFiles(p.ImportPath, tests, uses), p.readFiles(p.ImportPath+"_test", p.XTestGoFiles, uses))
}

func (p listed) readFiles(pkg string, files []string, uses map[string][]string) error {
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			return err
		}
		imports := make(map[string]string)
		for _, i := range f.Imports {
			at, _ := strconv.Unquote(i.Path.Value)
			as := path.Base(at)
			if i.Name != nil {
				as = i.Name.Name
			}
			imports[as] = at
		}
		for _, d := range f.Decls {
			for _, name := range declared(d) {
				uses[pkg+"/"+name] = append(uses[pkg+"/"+name], used(d, pkg, imports)...)
			}
		}
	}
	return nil
}

func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			return []string{"." + d.Name.Name}
		}
		return []string{d.Name.Name}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			}
		}
	}
	return names
}

func used(d ast.Decl, pkg string, imports map[string]string) (names []string) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				names = append(names, imports[x.Name]+"/"+n.Sel.Name)
				return false
			}
			names = append(names, pkg+"/."+n.Sel.Name)
		case *ast.Ident:
			if n.Obj == nil || n.Obj.Pos() < d.Pos() || n.Obj.Pos() > d.End() { // else a local variable of this function
				names = append(names, pkg+"/"+n.Name)
			}
		}
		return true
	})
	return names
}

// tests reports whether a test of the package runs at level test: one that does not wait for a higher level or, with the race
// detector, has one goroutine only. Without one, the package need not be compiled and linked.
func (p listed) tests(race bool) (bool, error) {
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			return true, err
		}
		for _, d := range f.Decls {
			d, ok := d.(*ast.FuncDecl)
			if !ok || d.Recv != nil {
				continue
			}
			test := strings.HasPrefix(d.Name.Name, "Test") && d.Name.Name != "TestMain" && !slices.ContainsFunc(d.Body.List, func(s ast.Stmt) bool { return skips(s, race) })
			if test || !race && (strings.HasPrefix(d.Name.Name, "Example") || strings.HasPrefix(d.Name.Name, "Fuzz")) {
				return true, nil
			}
		}
	}
	return false, nil
}

// skips reports whether a statement skips the test at level test, with the race detector or without it.
func skips(s ast.Stmt, race bool) bool {
	x, _ := s.(*ast.ExprStmt)
	if x == nil {
		return false
	}
	call, _ := x.X.(*ast.CallExpr)
	if call == nil {
		return false
	}
	f, _ := call.Fun.(*ast.SelectorExpr)
	if f == nil {
		return false
	}
	pkg, _ := f.X.(*ast.Ident)
	return pkg != nil && pkg.Name == path.Base(levels) && (f.Sel.Name == "Long" || race && f.Sel.Name == "OneGoroutine")
}

// levelDependent returns the names that use one of levelFuncs, directly or indirectly. The other functions of the package of
// the levels do not count, although they ask for the level: without the race detector, Share and Some return everything at
// every level, and a test of Databases runs on both at level test, once with the race detector.
func levelDependent(uses map[string][]string) map[string]bool {
	users := make(map[string][]string)
	var next []string
	for name, used := range uses {
		if strings.Contains(name, levels+"/") {
			continue
		}
		for _, u := range used {
			users[u] = append(users[u], name)
			if pkg, f := path.Split(u); strings.HasSuffix(pkg, levels+"/") && slices.Contains(levelFuncs, f) {
				next = append(next, name)
			}
		}
	}
	all := make(map[string]bool)
	for len(next) > 0 {
		name := next[len(next)-1]
		next = next[:len(next)-1]
		if !all[name] {
			all[name] = true
			next = append(next, users[name]...)
		}
	}
	return all
}
