package lifecycles

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// The rules of a config's text. Those of what it says are R1 to R15, see
// [Config.Lint].
const (
	ruleSize      = "size"            // too large
	ruleEncoding  = "encoding"        // not UTF-8, a byte order mark, a NUL
	ruleSyntax    = "syntax"          // not JSON, or not YAML
	ruleDepth     = "depth"           // nested too deeply
	ruleYAML      = "yaml"            // a part of YAML that is not used here
	ruleDuplicate = "duplicate-field" // a name given twice
	ruleTwin      = "case-twin"       // two names that differ only by case
	ruleUnknown   = "unknown-field"
	ruleRequired  = "required"
	ruleType      = "type"
	ruleConflict  = "conflict" // two fields that say the same
)

// Check reads a config and judges it. It reports all that can be found in one go;
// the config is nil if there are violations. For handlers see [Config.Lint].
func Check(data []byte, handlers map[string]Handler) (c *Config, violations, warnings []Violation) {
	c, violations = Parse(data)
	if c == nil {
		return nil, violations, nil
	}
	more, warnings := c.Lint(handlers)
	violations = append(violations, more...)
	if len(violations) > 0 {
		inOrder(violations)
		return nil, violations, warnings
	}
	return c, nil, warnings
}

// Parse reads a config: JSON if it begins with a brace, else YAML. What is
// unknown, said twice, of a wrong type or open to more than one reading is
// refused. With violations the config has what could be read, for [Config.Lint] to
// say more about it, or is nil if nothing could.
func Parse(data []byte) (*Config, []Violation) {
	r := &reader{at: make(map[string]position)}
	root := r.tree(data)
	if root == nil {
		return nil, r.found
	}
	r.names(root, "", 0)
	c := &Config{at: r.at}
	read(r, configFields, c, root, "")
	r.finishTable(c, root)
	if len(r.found) == 0 && isJSON(data) {
		r.doubleCheck(data)
	}
	c.refused = make(map[string]bool)
	for _, v := range r.found {
		c.refused[v.Path] = true
	}
	inOrder(r.found)
	return c, r.found
}

// maxFound is how many violations are reported. Who has more has enough to do.
const maxFound = 1000

// configDepth is how deep a config goes: /steps/0/successful_claim_state/admin/0.
// What is deeper is refused as a whole.
const configDepth = 5

// reader reads one document and collects what is wrong with it.
type reader struct {
	found []Violation
	at    map[string]position
}

func (r *reader) refuse(rule, path string, at position, format string, args ...any) {
	if len(r.found) == maxFound {
		return
	}
	r.found = append(r.found, Violation{
		Rule: rule, Path: path, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...),
	})
}

// tree reads the document by its syntax; nil if it has none.
func (r *reader) tree(data []byte) *node {
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

// plainText refuses what is no text at all.
func (r *reader) plainText(data []byte) bool {
	start := position{1, 1}
	nul := bytes.IndexByte(data, 0)
	switch {
	case len(data) > strict.MaxBytes:
		r.refuse(ruleSize, "", start, "the config has %d bytes, and %d are allowed: split it", len(data), strict.MaxBytes)
	case len(bytes.TrimSpace(data)) == 0:
		r.refuse(ruleSyntax, "", start, "the config is empty: write at least workflow, owning_module, status_types, initial_status and steps")
	case !utf8.Valid(data):
		r.refuse(ruleEncoding, "", place(data, invalidAt(data)), "here is a byte that is not UTF-8: save the file as UTF-8")
	case bytes.HasPrefix(data, []byte("\ufeff")):
		r.refuse(ruleEncoding, "", start, "the file begins with a byte order mark: save it without")
	case nul >= 0:
		r.refuse(ruleEncoding, "", place(data, nul), "here is a NUL byte: take it out")
	default:
		return true
	}
	return false
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
func place(data []byte, offset int) position {
	before := data[:min(max(offset, 0), len(data))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return position{bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(line) + 1}
}

// names notes where each value stands, and refuses and takes out members whose
// name repeats an earlier one.
func (r *reader) names(n *node, path string, depth int) {
	if depth > configDepth {
		return
	}
	r.at[path] = n.at
	if n.kind == text && strings.ContainsRune(n.text, 0) {
		r.refuse(ruleEncoding, path, n.at, "a NUL character in a text: take it out")
		n.refuse()
	}
	for i, it := range n.items {
		r.names(it, item(path, i), depth+1)
	}
	seen := make(map[string]string)
	n.members = slices.DeleteFunc(n.members, func(m member) bool {
		if !r.fresh(seen, m, child(path, m.name)) {
			return true
		}
		r.names(m.value, child(path, m.name), depth+1)
		return false
	})
}

// fresh refuses a member whose name is taken.
func (r *reader) fresh(seen map[string]string, m member, path string) bool {
	folded := strings.ToLower(strings.ToUpper(m.name))
	earlier, taken := seen[folded]
	switch {
	case strings.ContainsRune(m.name, 0):
		r.refuse(ruleEncoding, path, m.at, "a NUL character in a name: take it out")
		return false
	case !taken:
		seen[folded] = m.name
		return true
	case earlier == m.name:
		r.refuse(ruleDuplicate, path, m.at, "%s is given twice: keep one of the two", show(m.name))
	default:
		r.refuse(ruleTwin, path, m.at, "%s differs only by case from %s: keep one of the two", show(m.name), show(earlier))
	}
	return false
}

// doubleCheck holds a document to what the rest of Holdfast takes for JSON, so
// that a config is not read here and refused elsewhere.
func (r *reader) doubleCheck(data []byte) {
	err := strict.Check(data)
	if err == nil {
		return
	}
	path := pointerOf(err)
	r.refuse(ruleSyntax, path, find(r.at, path), "%s: correct it", reason(err))
}

// find returns the position of a value, or of the nearest that holds it.
func find(at map[string]position, path string) position {
	for {
		if p, ok := at[path]; ok || path == "" {
			return p
		}
		path = parent(path)
	}
}

// inOrder sorts by position; what stands at one place stays in the order it was
// found in.
func inOrder(all []Violation) {
	slices.SortStableFunc(all, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// maxShown is how many characters of a text a message repeats.
const maxShown = 64

// show is a text as a message shows it.
func show(s string) string { return strconv.Quote(shorten(s, maxShown)) }

// shorten cuts a text to a number of characters.
func shorten(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}
