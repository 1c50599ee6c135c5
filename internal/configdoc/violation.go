package configdoc

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The rules for a document's text. The rules for its meaning belong to the packages that use it.
const (
	RuleSize      = "size"            // too large
	RuleEncoding  = "encoding"        // not UTF-8, a byte order mark, a NUL
	RuleSyntax    = "syntax"          // not JSON, or not YAML
	RuleDepth     = "depth"           // nested too deeply
	RuleYAML      = "yaml"            // an unsupported YAML feature
	RuleDuplicate = "duplicate-field" // a duplicate name
	RuleTwin      = "case-twin"       // two names that differ only by case
	RuleUnknown   = "unknown-field"
	RuleRequired  = "required"
	RuleType      = "type"
	RuleConflict  = "conflict" // two fields with the same meaning
)

// MaxFound limits the number of reported violations.
const MaxFound = 1000

// Violation is a rule that a document breaks. As a warning, it is a rule that the document is
// likely to break.
type Violation struct {
	Rule    string `json:"rule"`
	Path    string `json:"path"` // a JSON pointer: /steps/0/successful_claim_state/admin
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// inOrder sorts by position. Violations at one position stay in the order in which they were
// found.
func inOrder(all []Violation) {
	slices.SortStableFunc(all, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// maxShown limits how many characters of a text a message repeats.
const maxShown = 64

// Show returns a text, shortened and quoted, for messages.
func Show(s string) string { return strconv.Quote(Shorten(s, maxShown)) }

// Shorten cuts a text to a number of characters.
func Shorten(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// Last returns the name at the end of a pointer, for messages.
func Last(path string) string { return Show(path[strings.LastIndexByte(path, '/')+1:]) }

// List joins names with commas and "and".
func List(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Few shortens a long list of names.
func Few(names []string) []string {
	const most = 10
	if len(names) <= most {
		return names
	}
	return append(names[:most:most], Counted(len(names)-most)+" more")
}

// Counted returns a number of values, for messages.
func Counted(n int) string {
	if n == 1 {
		return "1 value"
	}
	return strconv.Itoa(n) + " values"
}
