package configdoc

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

var document = Document{What: "list", Needs: "a", Depth: "make it flatter", Levels: 9}

// flat returns a tree as one line.
func flat(n *Node) string {
	var b strings.Builder
	b.WriteString([...]string{"!", "{", "[", "t", "n", "b", "0"}[n.Kind] + n.Text)
	for _, m := range n.Members {
		b.WriteString(" " + m.Name + ":" + flat(m.Value))
	}
	for _, it := range n.Items {
		b.WriteString(" " + flat(it))
	}
	return b.String()
}

// TestTree verifies that JSON and YAML give the same tree.
func TestTree(t *testing.T) {
	const want = "{ a:[ n1 n2.5 ttrue btrue bfalse 0 b:{ c:tx"
	for _, text := range []string{
		`{"a": [1, 2.5, "true", true, false, null], "b": {"c": "x"}}`,
		"a: [1, 2.5, 'true', true, false, null]\nb:\n  c: x\n",
	} {
		r := NewReader(document)
		root := r.Tree([]byte(text))
		if root == nil || flat(root) != want || r.Finish([]byte(text)).Partial() {
			t.Errorf("%s: got tree %v, violations %v", text, flat(root), r.Found)
		}
		if r.At["/b/c"].Line == 0 || Find(r.At, "/b/c/d/e") != r.At["/b/c"] {
			t.Errorf("%s: got positions %v", text, r.At)
		}
		if !root.Has("a") || root.Has("c") || root.Member("b").Member("c").Text != "x" {
			t.Errorf("%s: got the wrong members", text)
		}
	}
}

// TestBare verifies that unquoted strings are distinguished from quoted ones.
func TestBare(t *testing.T) {
	root := NewReader(document).Tree([]byte("[1e3, '1e3', \"1e3\", x]"))
	for i, want := range []bool{true, false, false, true} {
		if it := root.Items[i]; it.Kind != Text || it.Bare != want {
			t.Errorf("item %d: got %+v", i, it)
		}
	}
}

// TestWords verifies that messages use the words of the document's kind.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "the list is empty: write at least a",
		"# nothing\n":              "the list is empty: write at least a",
		"a: 1\n---\nb: 2\n":        "a file must contain only one list",
		strings.Repeat("[", 65):    "the document is nested more than 64 levels deep: make it flatter",
		strings.Repeat(" ", 1<<21): "the list has 2097152 bytes",
	} {
		r := NewReader(document)
		r.Tree([]byte(text))
		if len(r.Found) != 1 || !strings.Contains(r.Found[0].Message, want) {
			t.Errorf("%.20q: got violations %v", text, r.Found)
		}
	}
}

func TestLists(t *testing.T) {
	many := strings.Split(strings.Repeat("a ", 12)+"b", " ")
	for got, want := range map[string]string{
		List(nil): "", List([]string{"a"}): "a", List([]string{"a", "b", "c"}): "a, b and c",
		Few(many)[10]: "3 values more", Counted(1): "1 value",
		Child("/a", "b/c~d"): "/a/b~1c~0d", Item("", 3): "/3", Parent("/a/b"): "/a", Parent(""): "", Last("/a/b"): `"b"`,
		Shorten("äöü", 2): "ä…",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestADocumentOfManyValuesIsRefused verifies that a document that needs hundreds of times its size in memory is refused before it is parsed. Each text is nearly as long as allowed.
func TestADocumentOfManyValuesIsRefused(t *testing.T) {
	testlevel.OneGoroutine(t)
	for _, part := range []string{"[],", "[[]],", "{},", "- - - -\n", "a: b\n", "? ", "&a ", "!t ", "*a ", "- ", "a,"} {
		for _, form := range []string{"%", "[%]", "{a: [%]}", `{"a": [%]}`} {
			r := NewReader(document)
			text := strings.Replace(form, "%", strings.Repeat(part, 1<<20/len(part)-16), 1)
			var root *Node
			if used := testing.AllocsPerRun(1, func() { root = r.Tree([]byte(text)) }); root != nil || len(r.Found) == 0 || r.Found[0].Rule != RuleSize || used > 100 {
				t.Errorf("%q as %s: parsed %v, violations %v, %v allocations", part, form, root != nil, r.Found, used)
			}
		}
	}
}
