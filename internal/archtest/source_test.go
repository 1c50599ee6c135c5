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

// Module is the parsed Go source of one module, without nested modules (bench/) and testdata.
type Module struct {
	Path  string // from go.mod
	Files []File
	fset  *token.FileSet
}

// File is one Go file of a [Module].
type File struct {
	Name   string // slash-separated, relative to the module root
	Pkg    string // its folder relative to the module root, "." for the root package
	Test   bool   // the name ends in _test.go
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

// skipFolder skips the folders that the go command ignores.
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
	syntax, err := parser.ParseFile(m.fset, name, src, parser.SkipObjectResolution|parser.ParseComments)
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

// within returns the path of an imported package in this module: "." for the root package, or
// a path such as "internal/store".
func (m *Module) within(imported string) (pkg string, ok bool) {
	if imported == m.Path {
		return root, true
	}
	return strings.CutPrefix(imported, m.Path+"/")
}

func (m *Module) at(f File, n ast.Node, format string, args ...any) Violation {
	return Violation{File: f.Name, Line: m.fset.Position(n.Pos()).Line, What: fmt.Sprintf(format, args...)}
}

// importPath returns the path of an import.
func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

// localName returns the local name of the standard package pkg in f, or "" if f does not import
// it.
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

// isSelector reports whether n is pkg.name for one of the names. pkg is the local name of a
// package.
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
