package archtest

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Module is the Go source of one module, parsed. Modules nested in it (bench/)
// and testdata are left out.
type Module struct {
	Path  string // as go.mod says
	Files []File
	fset  *token.FileSet
}

// File is one Go file of a [Module].
type File struct {
	Name   string // slash-separated, from the module's root
	Pkg    string // its folder from there, "." for the root package
	Test   bool   // its name ends in _test.go
	Syntax *ast.File
}

// ReadModule parses every Go file of the module whose root is fsys.
func ReadModule(fsys fs.FS) (*Module, error) {
	gomod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, fmt.Errorf("read module: %w", err)
	}
	m := &Module{Path: modulePath(gomod), fset: token.NewFileSet()}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skipFolder(fsys, name)
		case strings.HasSuffix(name, ".go"):
			return m.add(fsys, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read module: %w", err)
	}
	return m, nil
}

func modulePath(gomod []byte) string {
	for lines := bufio.NewScanner(bytes.NewReader(gomod)); lines.Scan(); {
		if p, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			return strings.TrimSpace(p)
		}
	}
	return ""
}

// skipFolder leaves out what the go command leaves out of a module.
func skipFolder(fsys fs.FS, name string) error {
	if name == "." {
		return nil
	}
	base := path.Base(name)
	if base == "testdata" || base == "vendor" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(fsys, path.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (m *Module) add(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(m.fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	m.Files = append(m.Files, File{
		Name:   name,
		Pkg:    path.Dir(name),
		Test:   strings.HasSuffix(name, "_test.go"),
		Syntax: syntax,
	})
	return nil
}

// within returns the place of an import path in this module: "." for the root
// package, "internal/store" for one below.
func (m *Module) within(imported string) (pkg string, ok bool) {
	if imported == m.Path {
		return root, true
	}
	return strings.CutPrefix(imported, m.Path+"/")
}

func (m *Module) at(f File, n ast.Node, format string, args ...any) Violation {
	return Violation{File: f.Name, Line: m.fset.Position(n.Pos()).Line, What: fmt.Sprintf(format, args...)}
}

// importPath returns the path that an import names.
func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

// localName returns the name under which f uses the standard package pkg, or ""
// if it does not import it.
func (f File) localName(pkg string) string {
	for _, spec := range f.Syntax.Imports {
		if importPath(spec) != pkg {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(pkg)
	}
	return ""
}

// isSelector says whether n is pkg.name, with pkg the local name of a package.
func isSelector(n ast.Node, pkg string, names ...string) bool {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok || pkg == "" {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok || x.Name != pkg {
		return false
	}
	for _, name := range names {
		if sel.Sel.Name == name {
			return true
		}
	}
	return false
}
