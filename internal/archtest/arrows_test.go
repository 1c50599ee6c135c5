package archtest

import (
	"go/ast"
	"strings"
)

// covers reports whether the pattern ("x", or "x/..." for x and all packages below it) matches
// pkg.
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

// below reports whether the import path is lib, or a package or major version of it.
func below(imported, lib string) bool {
	return imported == lib || strings.HasPrefix(imported, lib+"/")
}

// ruleFor returns the rule with the longest pattern that matches pkg.
func ruleFor(rules []Rule, pkg string) (best Rule, ok bool) {
	for _, r := range rules {
		if covers(r.Pkg, pkg) && (!ok || len(r.Pkg) > len(best.Pkg)) {
			best, ok = r, true
		}
	}
	return best, ok
}

// Arrows checks the imports of the module's product code against the rules.
func Arrows(m *Module, rules []Rule) []Violation {
	var found []Violation
	missing := make(map[string]bool)
	for _, f := range m.Files {
		if f.Test {
			continue
		}
		r, ok := ruleFor(rules, f.Pkg)
		if !ok && !missing[f.Pkg] {
			missing[f.Pkg] = true
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

// allows reports whether the rule allows importing pkg of the same module. The packages of one
// tree may import each other.
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

// standard reports whether an import path is of the standard library: its first element is not
// a host name.
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

// Confinements reports confined imports of product code outside of their packages.
func Confinements(m *Module, confined []Confinement) []Violation {
	var found []Violation
	for _, f := range m.Files {
		if f.Test {
			continue
		}
		for _, spec := range f.Syntax.Imports {
			for _, c := range confined {
				if below(importPath(spec), c.Import) && !anyCovers(c.Only, f.Pkg) {
					found = append(found, m.at(f, spec, "%s may not import %s, which is confined to %s: %s",
						name(f.Pkg), importPath(spec), strings.Join(c.Only, ", "), c.Why))
				}
			}
		}
	}
	return sorted(found)
}

// Clocks reports product code that reads the node's clock directly: time.Now, time.Since and
// time.Until, also as values.
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
					"time.%s reads the node's clock: use internal/clock, or the time of the database for decisions", n.(*ast.SelectorExpr).Sel.Name))
			}
			return true
		})
	}
	return sorted(found)
}

// Sleeps reports test code that sleeps. A sleep in a synctest bubble is allowed, because it
// advances the fake clock without waiting.
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
				found = append(found, m.at(f, n, "a test sleeps: wait on a signal, or advance the time in testing/synctest"))
			}
			return true
		})
	}
	return sorted(found)
}

// HiddenNames reports dot imports, which would hide the uses of an import from these checks and
// from readers.
func HiddenNames(m *Module) []Violation {
	var found []Violation
	for _, f := range m.Files {
		for _, spec := range f.Syntax.Imports {
			if spec.Name != nil && spec.Name.Name == "." {
				found = append(found, m.at(f, spec, "%s is imported with a dot: import it by name", importPath(spec)))
			}
		}
	}
	return sorted(found)
}
