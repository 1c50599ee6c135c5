package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// The rule of CONTRIBUTING.md: names, errors, log lines and help texts use the words of docs/glossary.md.

// bannedNames are words that no exported identifier contains. The types of package wire and its client are named after the
// JSON of the contract, and are left out.
var bannedNames = map[string]string{
	"Door": "API, published or target", "Keep": "Renew, Retention or Maintenance", "Keeper": "Renewer", "Keeping": "Retention", "Kept": "Stored",
	"Told": "Recovered or Reported", "Glance": "HasWork", "Pulse": "IdlePoller", "Desk": "Executor", "Crumb": "TraceEvent", "Fate": "Outcome",
	"Tries": "MaxAttempts", "Bodies": "MaxWorkers", "Deaths": "Crashes", "Mine": "Local", "Story": "History", "House": "State", "Servant": "Dispatcher",
}

// bannedPhrases are phrases that no error, log line, help text or description contains.
var bannedPhrases = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|glance|keeper|the door|trying on|is told|are told|was told|at the most|by itself|of one's own|freed what|goes round|get round|that there is not|it is none|as it likes)\b`)

// testSupport are packages whose texts only the developers of Holdfast see: names of test cases, and the operating
// system's user "nobody".
var testSupport = map[string]bool{"internal/storetest": true, "internal/pgtest": true}

func TestNamesUseTheGlossary(t *testing.T) {
	testlevel.OneGoroutine(t)
	for _, v := range wordViolations(thisModule(t)) {
		t.Error(v)
	}
}

// TestHelpUsesTheGlossary checks the texts of the command line.
func TestHelpUsesTheGlossary(t *testing.T) {
	testlevel.OneGoroutine(t)
	text, err := os.ReadFile("../cli/help.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if found := bannedPhrases.FindString(line); found != "" {
			t.Errorf("internal/cli/help.md:%d: %q is not plain English", i+1, found)
		}
	}
}

// Each planted file breaks the rule once.
func TestPlantedWordsAreFound(t *testing.T) {
	testlevel.OneGoroutine(t)
	for name, text := range map[string]string{
		"a function":          "// KeepRuns keeps.\nfunc KeepRuns() {}\n",
		"a type":              "// Door is one.\ntype Door struct{}\n",
		"a field":             "// T is one.\ntype T struct{ MaxDeaths int }\n",
		"a method":            "// T is one.\ntype T struct{}\n\n// Told is one.\nfunc (T) Told() {}\n",
		"a constant":          "// Tries is one.\nconst Tries = 3\n",
		"a variable":          "// ErrFate is one.\nvar ErrFate error\n",
		"no doc comment":      "func Open() {}\n",
		"no doc of a method":  "// T is one.\ntype T[E any] struct{}\n\nfunc (t *T[E]) Open() {}\n",
		"an error":            "import \"errors\"\n\nvar err = errors.New(\"nobody holds it\")\n",
		"a log line":          "import \"log/slog\"\n\nfunc f() { slog.Info(\"freed what was left\") }\n",
		"a help text":         "type c struct {\n\tN int `help:\"As many as it likes.\"`\n}\n",
		"a name in internals": "// Glance is one.\nfunc Glance() {}\n",
	} {
		if found := wordViolations(planted(t, map[string]string{"p/a.go": text})); len(found) != 1 {
			t.Errorf("%s: got violations %q, want 1", name, found)
		}
	}
}

// wordViolations returns what breaks the rule in the files of a module that are not tests.
func wordViolations(m *Module) (all []string) {
	for _, f := range m.Files {
		if !f.Test && !testSupport[f.Pkg] {
			all = append(all, wordsOf(m.fset, f.Name, f.Syntax)...)
		}
	}
	return all
}

func wordsOf(fset *token.FileSet, path string, file *ast.File) (all []string) {
	report := func(at token.Pos, text string) {
		all = append(all, path+":"+strconv.Itoa(fset.Position(at).Line)+": "+text)
	}
	dir := filepath.ToSlash(filepath.Dir(path))
	named := func(id *ast.Ident) {
		if dir == "wire" || dir == "client" || !id.IsExported() {
			return
		}
		for _, word := range wordsIn(id.Name) {
			if instead, ok := bannedNames[word]; ok {
				report(id.Pos(), "the name "+id.Name+" has the word "+word+": say "+instead)
			}
		}
	}
	public := !strings.Contains("/"+dir+"/", "/internal/") && file.Name.Name != "main"
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			named(d.Name)
			if public && d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && d.Name.Name != "Error" {
				report(d.Pos(), d.Name.Name+" has no doc comment")
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					named(s.Name)
					ast.Inspect(s.Type, func(n ast.Node) bool {
						if f, ok := n.(*ast.Field); ok && s.Name.IsExported() {
							for _, id := range f.Names {
								named(id)
							}
						}
						return true
					})
				case *ast.ValueSpec:
					for _, id := range s.Names {
						named(id)
					}
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				if found := bannedPhrases.FindString(text); found != "" {
					report(n.Pos(), strconv.Quote(found)+" is not plain English: "+strconv.Quote(text))
				}
			}
		}
		return true
	})
	return all
}

// exportedReceiver reports whether a function is a method of an exported type, or none.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// wordsIn splits an identifier: MaxDeaths is Max and Deaths.
func wordsIn(name string) (words []string) {
	start := 0
	for i, r := range name {
		if i > start && unicode.IsUpper(r) && (unicode.IsLower(rune(name[i-1])) || i+1 < len(name) && unicode.IsLower(rune(name[i+1]))) {
			words = append(words, name[start:i])
			start = i
		}
	}
	return append(words, name[start:])
}
