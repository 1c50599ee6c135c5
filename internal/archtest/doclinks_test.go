package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// TestDocCommentsNameWhatExists verifies that a doc comment begins with the name that it documents, and that a link in
// a comment leads somewhere: after a rename, both are easily left behind.
func TestDocCommentsNameWhatExists(t *testing.T) {
	testlevel.OneGoroutine(t)
	for _, v := range docViolations(thisModule(t)) {
		t.Error(v)
	}
}

// Each planted file breaks the rule once.
func TestPlantedDocComments(t *testing.T) {
	testlevel.OneGoroutine(t)
	for name, text := range map[string]string{
		"another function":    "// Close opens it.\nfunc Open() {}\n",
		"another type":        "// A Door is one.\ntype T struct{}\n",
		"another field":       "// T is one.\ntype T struct {\n\t// Safe reports it.\n\tRetryable bool\n}\n",
		"no such name":        "// Open is like [Close].\nfunc Open() {}\n",
		"no such method":      "// T is one. See [T.Close].\ntype T struct{}\n",
		"no such name in pkg": "// Open is like [q.Close].\nfunc Open() {}\n",
	} {
		if found := docViolations(planted(t, map[string]string{"p/a.go": text, "q/b.go": "// Here is one.\nfunc Here() {}\n"})); len(found) != 1 {
			t.Errorf("%s: got violations %q, want 1", name, found)
		}
	}
	good := "// T is like [q.Here] and [T.M] and [T.F] and [a regexp].\ntype T struct {\n\t// F is one.\n\tF, G int\n}\n\n// M is one of x[I].\nfunc (T) M() {}\n"
	if found := docViolations(planted(t, map[string]string{"p/a.go": good, "q/b.go": "// Here is one.\nfunc Here() {}\n"})); len(found) != 0 {
		t.Errorf("good file: got violations %q", found)
	}
}

var (
	docLink   = regexp.MustCompile(`(?:^|[\s(])\[\*?(?:([a-z]\w*)\.)?([A-Z]\w*)(?:\.([A-Z]\w*))?\]`)
	fieldDoc  = regexp.MustCompile(`^([A-Z]\w*) (?:is|are|reports|returns|limits|sets|names|holds|selects|counts) `)
	docArticl = regexp.MustCompile(`^(?:A|An|The) `)
)

func docViolations(m *Module) (all []string) {
	names := make(map[string]map[string]bool) // by the last element of the package's path
	for _, f := range m.Files {
		if !f.Test {
			pkg := lastElement(f.Pkg, f.Syntax)
			if names[pkg] == nil {
				names[pkg] = make(map[string]bool)
			}
			declare(names[pkg], f.Syntax)
		}
	}
	for _, f := range m.Files {
		if f.Test {
			continue
		}
		report := func(at token.Pos, text string) {
			all = append(all, f.Name+":"+strconv.Itoa(m.fset.Position(at).Line)+": "+text)
		}
		own := names[lastElement(f.Pkg, f.Syntax)]
		for _, group := range f.Syntax.Comments {
			for _, c := range group.List {
				for _, link := range docLink.FindAllStringSubmatch(strings.TrimPrefix(c.Text, "//"), -1) {
					in := own
					if link[1] != "" {
						in = names[link[1]]
					}
					name := link[2]
					if link[3] != "" {
						name += "." + link[3]
					}
					if in != nil && !in[name] {
						report(c.Pos(), "the comment links to "+strings.TrimSpace(link[0])+", which does not exist")
					}
				}
			}
		}
		for _, d := range f.Syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				beginsWith(d.Doc, d.Name, report)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						doc := s.Doc
						if doc == nil && len(d.Specs) == 1 {
							doc = d.Doc
						}
						beginsWith(doc, s.Name, report)
						ast.Inspect(s.Type, func(n ast.Node) bool {
							field, ok := n.(*ast.Field)
							if !ok || field.Doc == nil || len(field.Names) == 0 {
								return true
							}
							word := fieldDoc.FindStringSubmatch(field.Doc.Text())
							if word != nil && !docArticl.MatchString(field.Doc.Text()) && !slices.ContainsFunc(field.Names, func(id *ast.Ident) bool { return id.Name == word[1] }) && ast.IsExported(field.Names[0].Name) {
								report(field.Doc.Pos(), "the comment of "+field.Names[0].Name+" begins with "+word[1])
							}
							return true
						})
					}
				}
			}
		}
	}
	return all
}

// beginsWith reports a doc comment of an exported name that begins with another.
func beginsWith(doc *ast.CommentGroup, id *ast.Ident, report func(token.Pos, string)) {
	if doc == nil || !id.IsExported() {
		return
	}
	if word, _, _ := strings.Cut(strings.TrimSpace(docArticl.ReplaceAllString(doc.Text(), "")), " "); word != id.Name {
		report(doc.Pos(), "the comment of "+id.Name+" begins with "+word)
	}
}

// declare adds the names of a file: constants, variables, types, functions, and methods and fields as Type.Name.
func declare(names map[string]bool, file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names[d.Name.Name] = true
			} else {
				names[receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, id := range s.Names {
						names[id.Name] = true
					}
				case *ast.TypeSpec:
					names[s.Name.Name] = true
					ast.Inspect(s.Type, func(n ast.Node) bool {
						if field, ok := n.(*ast.Field); ok {
							for _, id := range field.Names {
								names[s.Name.Name+"."+id.Name] = true
							}
						}
						return true
					})
				}
			}
		}
	}
}

// receiver returns the name of a receiver's type.
func receiver(t ast.Expr) string {
	switch x := t.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// lastElement returns the name by which comments refer to a package.
func lastElement(pkg string, file *ast.File) string {
	if pkg == root {
		return file.Name.Name
	}
	return path.Base(pkg)
}
