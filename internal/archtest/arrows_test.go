package archtest

import (
	"go/ast"
	"strings"
)

// covers says whether the pattern ("x", or "x/..." for x and all below) is
// about pkg.
func covers(pattern, pkg string) bool {
	tree, ok := strings.CutSuffix(pattern, "/...")
	return pkg == tree || ok && strings.HasPrefix(pkg, tree+"/")
}

func anyCovers(patterns []string, pkg string) bool {
	for _, p := range patterns {
		if covers(p, pkg) {
			return true
		}
	}
	return false
}

// below says whether the import path is lib, or a package or major version of it.
func below(imported, lib string) bool {
	return imported == lib || strings.HasPrefix(imported, lib+"/")
}

// ruleFor returns the longest rule about pkg.
func ruleFor(rules []Rule, pkg string) (best Rule, ok bool) {
	for _, r := range rules {
		if covers(r.Pkg, pkg) && (!ok || len(r.Pkg) > len(best.Pkg)) {
			best, ok = r, true
		}
	}
	return best, ok
}

// Arrows compares the imports of the module's product code with the table.
func Arrows(m *Module, rules []Rule) []Violation {
	var found []Violation
	homeless := make(map[string]bool)
	for _, f := range m.Files {
		if f.Test {
			continue
		}
		r, ok := ruleFor(rules, f.Pkg)
		if !ok && !homeless[f.Pkg] {
			homeless[f.Pkg] = true
			found = append(found, m.at(f, f.Syntax.Name,
				"package %s has no rule: add it to Rules (or to a group there) in internal/archtest/rules_test.go", f.Pkg))
		}
		if ok {
			found = append(found, m.wrongArrows(f, r)...)
		}
	}
	return sorted(found)
}

func (m *Module) wrongArrows(f File, r Rule) []Violation {
	var found []Violation
	for _, spec := range f.Syntax.Imports {
		p := importPath(spec)
		if pkg, ok := m.within(p); ok {
			if !r.allows(pkg) {
				found = append(found, m.at(f, spec, "%s may not import %s: %s", name(f.Pkg), name(pkg), r.Why))
			}
			continue
		}
		if !standard(p) && !r.allowsLib(p) {
			found = append(found, m.at(f, spec, "%s may not depend on %s: %s", name(f.Pkg), p, r.Why))
		}
	}
	return found
}

// allows says whether the rule lets its package import pkg of the same module.
// The packages of one tree are one house.
func (r Rule) allows(pkg string) bool {
	return strings.HasSuffix(r.Pkg, "/...") && covers(r.Pkg, pkg) || anyCovers(r.May, pkg)
}

func (r Rule) allowsLib(imported string) bool {
	for _, lib := range r.Libs {
		if lib == "*" || below(imported, lib) {
			return true
		}
	}
	return false
}

// standard says whether an import path is of the standard library: its first
// element is no host name.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func name(pkg string) string {
	if pkg == root {
		return "holdfast (the root)"
	}
	return pkg
}

// Confinements reports imports in product code outside of the places that they
// are kept to.
func Confinements(m *Module, confined []Confinement) []Violation {
	var found []Violation
	for _, f := range m.Files {
		if f.Test {
			continue
		}
		for _, spec := range f.Syntax.Imports {
			for _, c := range confined {
				if below(importPath(spec), c.Import) && !anyCovers(c.Only, f.Pkg) {
					found = append(found, m.at(f, spec, "%s may not import %s, which is kept to %s: %s",
						name(f.Pkg), importPath(spec), strings.Join(c.Only, ", "), c.Why))
				}
			}
		}
	}
	return sorted(found)
}

// Clocks reports product code that reads the node's clock by itself. time.Since
// and time.Until read it too, and a clock passed on as a value is a clock read.
func Clocks(m *Module) []Violation {
	var found []Violation
	for _, f := range m.Files {
		if f.Test || anyCovers(mayAskTime, f.Pkg) {
			continue
		}
		pkg := f.localName("time")
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if isSelector(n, pkg, "Now", "Since", "Until") {
				found = append(found, m.at(f, n,
					"time.%s reads the node's clock: use internal/clock, or the database's time where it decides anything", n.(*ast.SelectorExpr).Sel.Name))
			}
			return true
		})
	}
	return sorted(found)
}

// Sleeps reports test code that sleeps, but for the inside of a synctest bubble,
// where a sleep is the way to move the time and costs none.
func Sleeps(m *Module) []Violation {
	var found []Violation
	for _, f := range m.Files {
		if !f.Test && !covers("internal/storetest/...", f.Pkg) {
			continue
		}
		clock, bubble := f.localName("time"), f.localName("testing/synctest")
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isSelector(call.Fun, bubble, "Test") {
				return false
			}
			if isSelector(n, clock, "Sleep") {
				found = append(found, m.at(f, n, "a test sleeps: wait on a signal, or move the time in testing/synctest"))
			}
			return true
		})
	}
	return sorted(found)
}

// HiddenNames reports dot imports, which would hide an import's uses from the
// checks here and from a reader.
func HiddenNames(m *Module) []Violation {
	var found []Violation
	for _, f := range m.Files {
		for _, spec := range f.Syntax.Imports {
			if spec.Name != nil && spec.Name.Name == "." {
				found = append(found, m.at(f, spec, "%s is imported with a dot: give it a name", importPath(spec)))
			}
		}
	}
	return sorted(found)
}
