package docstest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// TestErrorCodesAreListed verifies that docs/errors.md lists each code with its documentation. With -update, it writes them.
func TestErrorCodesAreListed(t *testing.T) {
	testlevel.OneGoroutine(t)
	const name = "docs/errors.md"
	page, err := os.ReadFile(path.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Section(string(page), "codes")
	if err != nil {
		t.Fatal(err)
	}
	want := codes(t)
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s differs from fault/fault.go: run go test ./internal/docstest -update\nwant:\n%s", name, want)
	}
	if err := os.WriteFile(path.Join(root, name), []byte(ReplaceSection(string(page), "codes", want)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// codes returns the table of the codes.
func codes(t *testing.T) string {
	t.Helper()
	sentinels := sentinels(t)
	var out strings.Builder
	out.WriteString("| code | HTTP | in Go | meaning |\n| --- | --- | --- | --- |\n")
	n := 0
	for _, s := range values(t, "fault/fault.go", token.CONST) {
		literal, ok := s.Values[0].(*ast.BasicLit)
		if !ok || s.Doc == nil {
			continue
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		n++
		goName := "`fault." + s.Names[0].Name + "`"
		if sentinel := sentinels[s.Names[0].Name]; sentinel != "" {
			goName = "`holdfast." + sentinel + "`"
		}
		text := strings.Join(strings.Fields(strings.TrimPrefix(s.Doc.Text(), s.Names[0].Name+" ")), " ")
		for _, begin := range []string{"is returned ", "means that ", "is "} {
			text = strings.TrimPrefix(text, begin)
		}
		text = strings.ToUpper(text[:1]) + text[1:]
		fmt.Fprintf(&out, "| `%s` | %d | %s | %s |\n", value, fault.Code(value).Status(), goName, text)
	}
	if n < 30 {
		t.Fatalf("only %d codes were found", n)
	}
	return out.String()
}

// sentinels returns the names of the errors of package holdfast, by the name of their code.
func sentinels(t *testing.T) map[string]string {
	t.Helper()
	names := make(map[string]string)
	for _, s := range values(t, "errors.go", token.VAR) {
		call, ok := s.Values[0].(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			continue
		}
		if code, ok := call.Args[0].(*ast.SelectorExpr); ok {
			names[code.Sel.Name] = s.Names[0].Name
		}
	}
	return names
}

// values returns the declarations of constants or variables with a value in a file.
func values(t *testing.T, name string, of token.Token) (all []*ast.ValueSpec) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == of {
			for _, s := range g.Specs {
				if s := s.(*ast.ValueSpec); len(s.Values) == 1 {
					all = append(all, s)
				}
			}
		}
	}
	return all
}
