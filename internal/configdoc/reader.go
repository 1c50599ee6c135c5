package configdoc

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Document describes a kind of document, for messages, and its depth.
type Document struct {
	What  string // "config"
	Needs string // the fields that it requires
	Depth string // advice for a document that is too deep: "a config needs at most five levels"
	// Levels is the depth to which values are checked. Deeper values are refused as a whole when
	// the fields are read.
	Levels int
}

// Reader reads one document and collects its violations.
type Reader struct {
	Found []Violation
	At    map[string]Position // the position of each value, by JSON pointer

	doc Document
}

// NewReader returns a reader of one document.
func NewReader(doc Document) *Reader {
	return &Reader{At: make(map[string]Position), doc: doc}
}

// Refuse reports a violation.
func (r *Reader) Refuse(rule, path string, at Position, format string, args ...any) {
	if len(r.Found) == MaxFound {
		return
	}
	r.Found = append(r.Found, Violation{
		Rule: rule, Path: path, Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...),
	})
}

// Tree parses the document: JSON if it begins with a brace, else YAML. It returns nil if the text
// cannot be parsed. Members with a duplicate name are refused and are not in the tree.
func (r *Reader) Tree(data []byte) *Node {
	root := r.syntax(data)
	if root != nil {
		r.names(root, "", 0)
	}
	return root
}

// syntax parses the document; it returns nil if that fails.
func (r *Reader) syntax(data []byte) *Node {
	if !r.plainText(data) {
		return nil
	}
	if isJSON(data) {
		return r.jsonTree(data)
	}
	return r.yamlTree(data)
}

func isJSON(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] == '{'
}

// plainText refuses data that is not valid text, or is too large.
func (r *Reader) plainText(data []byte) bool {
	start := Position{1, 1}
	nul := bytes.IndexByte(data, 0)
	switch {
	case len(data) > strictjson.MaxBytes:
		r.Refuse(RuleSize, "", start, "the %s has %d bytes, but the limit is %d: split it", r.doc.What, len(data), strictjson.MaxBytes)
	case len(bytes.TrimSpace(data)) == 0:
		r.empty()
	case !utf8.Valid(data):
		r.Refuse(RuleEncoding, "", place(data, invalidAt(data)), "invalid UTF-8: save the file as UTF-8")
	case bytes.HasPrefix(data, []byte("\ufeff")):
		r.Refuse(RuleEncoding, "", start, "the file begins with a byte order mark: save it without one")
	case marks(data) > MaxMarks:
		r.Refuse(RuleSize, "", start, "the %s has more than %d brackets, lists, members and lines: split it", r.doc.What, MaxMarks)
	case nul >= 0:
		r.Refuse(RuleEncoding, "", place(data, nul), "NUL byte in the file: remove it")
	default:
		return true
	}
	return false
}

// MaxMarks limits the number of characters at which a value or a line may begin or end. A value needs some hundred times
// the memory of its text, so a limit on the bytes is not enough.
const MaxMarks = 50_000

func marks(data []byte) (n int) {
	for _, c := range data {
		switch c {
		case '[', ']', '{', '}', ',', ':', '?', '-', '&', '*', '!', '\n', '\r':
			n++
		}
	}
	return n
}

func (r *Reader) empty() {
	r.Refuse(RuleSyntax, "", Position{1, 1}, "the %s is empty: write at least %s", r.doc.What, r.doc.Needs)
}

func (r *Reader) tooDeep(at Position) {
	r.Refuse(RuleDepth, "", at, "the document is nested more than %d levels deep: %s", strictjson.MaxDepth, r.doc.Depth)
}

func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		if c == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(data)
}

// place returns the line and column of an offset.
func place(data []byte, offset int) Position {
	before := data[:min(max(offset, 0), len(data))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return Position{bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(line) + 1}
}

// names records the position of each value, and refuses and removes members with a duplicate
// name.
func (r *Reader) names(n *Node, path string, depth int) {
	if depth > r.doc.Levels {
		return
	}
	r.At[path] = n.At
	if n.Kind == Text && strings.ContainsRune(n.Text, 0) {
		r.Refuse(RuleEncoding, path, n.At, "NUL character in a string: remove it")
		n.refuse()
	}
	for i, it := range n.Items {
		r.names(it, Item(path, i), depth+1)
	}
	seen := make(map[string]string)
	n.Members = slices.DeleteFunc(n.Members, func(m Member) bool {
		if !r.fresh(seen, m, Child(path, m.Name)) {
			return true
		}
		r.names(m.Value, Child(path, m.Name), depth+1)
		return false
	})
}

// fresh refuses a member whose name is already used.
func (r *Reader) fresh(seen map[string]string, m Member, path string) bool {
	folded := strings.ToLower(strings.ToUpper(m.Name))
	earlier, taken := seen[folded]
	switch {
	case strings.ContainsRune(m.Name, 0):
		r.Refuse(RuleEncoding, path, m.At, "NUL character in a name: remove it")
		return false
	case !taken:
		seen[folded] = m.Name
		return true
	case earlier == m.Name:
		r.Refuse(RuleDuplicate, path, m.At, "%s is given twice: keep one of them", Show(m.Name))
	default:
		r.Refuse(RuleTwin, path, m.At, "%s differs only by case from %s: keep one of them", Show(m.Name), Show(earlier))
	}
	return false
}

// Finish checks a document without violations against the strict JSON rules of the rest of
// Holdfast, so that it is not accepted here and refused elsewhere. It sorts [Reader.Found] by
// position and returns the positions of the values.
func (r *Reader) Finish(data []byte) Source {
	if len(r.Found) == 0 && isJSON(data) {
		if err := strictjson.Check(data); err != nil {
			path := pointerOf(err)
			r.Refuse(RuleSyntax, path, Find(r.At, path), "%s: correct it", Reason(err))
		}
	}
	refused := make(map[string]bool)
	for _, v := range r.Found {
		refused[v.Path] = true
	}
	inOrder(r.Found)
	return Source{r.At, refused}
}
