package archtest

import (
	"go/ast"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// The rule of docs/monitoring.md: an attribute has the same name in every log line, one of those in its table.

// attributeRow matches a row of the table of attributes.
var attributeRow = regexp.MustCompile("(?m)^\\| ((?:`[a-z][A-Za-z]*`(?:, )?)+) \\|")

// logAttributes returns the attributes that docs/monitoring.md lists.
func logAttributes(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Logs\n")
	all := make(map[string]bool)
	for _, m := range attributeRow.FindAllStringSubmatch(section, -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			all[strings.Trim(name, "`")] = true
		}
	}
	return all
}

func TestLogLinesUseOneVocabulary(t *testing.T) {
	testlevel.OneGoroutine(t)
	listed, used := logAttributes(t), make(map[string]bool)
	for _, v := range logViolations(thisModule(t), listed, used) {
		t.Error(v)
	}
	if len(used) < 20 {
		t.Fatalf("only %d attributes were found", len(used))
	}
	for name := range listed {
		if !used[name] {
			t.Errorf("docs/monitoring.md lists the attribute %s, which no log line has", name)
		}
	}
}

// Each planted line breaks the rule once.
func TestPlantedAttributesAreFound(t *testing.T) {
	testlevel.OneGoroutine(t)
	for name, text := range map[string]string{
		"a pair":          `func f(log *slog.Logger) { log.Warn("x", "run", 1, "runID", 2) }`,
		"a field's pair":  `func f(w struct{ Log *slog.Logger }) { w.Log.Error("x", "err", 1) }`,
		"a method's pair": `func f(e interface{ Log() *slog.Logger }) { e.Log().Info("x", "Run", 1) }`,
		"a With":          `func f(log *slog.Logger) { log.With("runID", 2).Info("x") }`,
		"an attribute":    `var a = slog.String("requestId", "x")`,
		"a computed key":  `func f(log *slog.Logger, k string) { log.Warn("x", k, 1) }`,
	} {
		m := planted(t, map[string]string{"p/a.go": "import \"log/slog\"\n\n" + text + "\n"})
		if found := logViolations(m, map[string]bool{"run": true}, map[string]bool{}); len(found) != 1 {
			t.Errorf("%s: got violations %q, want 1", name, found)
		}
	}
}

// logViolations returns the attributes of log lines that are not listed, and adds all to used.
func logViolations(m *Module, listed, used map[string]bool) (all []Violation) {
	for _, f := range m.Files {
		if f.Test || testSupport[f.Pkg] || strings.HasPrefix(f.Pkg, "examples/") || f.Pkg == "internal/testrun" {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			for _, key := range attributeKeys(call) {
				lit, ok := key.(*ast.BasicLit)
				name := ""
				if ok {
					name, _ = strconv.Unquote(lit.Value)
				}
				if used[name] = true; !listed[name] {
					all = append(all, m.at(f, call, "the log attribute %q is not in the table of docs/monitoring.md", name))
				}
			}
			return true
		})
	}
	return all
}

// attributeKeys returns the keys of the attributes in a call of a logger or of a constructor of package slog.
func attributeKeys(call *ast.CallExpr) (keys []ast.Expr) {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if isSelector(fun, "slog", "String", "Int", "Int64", "Uint64", "Float64", "Bool", "Time", "Duration", "Any", "Group") && len(call.Args) > 0 {
		return call.Args[:1]
	}
	first := map[string]int{"With": 0, "Debug": 1, "Info": 1, "Warn": 1, "Error": 1}
	from, ok := first[fun.Sel.Name]
	if !ok || !isLogger(fun.X) {
		return nil
	}
	for i := from; i < len(call.Args); i += 2 {
		keys = append(keys, call.Args[i])
	}
	return keys
}

// isLogger reports whether an expression is a logger, by its name: log, x.log, x.Log or x.Log().
func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "log" || x.Name == "slog"
	case *ast.SelectorExpr:
		return strings.EqualFold(x.Sel.Name, "log")
	case *ast.CallExpr:
		return isLogger(x.Fun)
	}
	return false
}
