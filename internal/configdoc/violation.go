package configdoc

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The rules of a document's text. Those of what it says are its package's own.
const (
	RuleSize      = "size"            // too large
	RuleEncoding  = "encoding"        // not UTF-8, a byte order mark, a NUL
	RuleSyntax    = "syntax"          // not JSON, or not YAML
	RuleDepth     = "depth"           // nested too deeply
	RuleYAML      = "yaml"            // a part of YAML that is not used here
	RuleDuplicate = "duplicate-field" // a name given twice
	RuleTwin      = "case-twin"       // two names that differ only by case
	RuleUnknown   = "unknown-field"
	RuleRequired  = "required"
	RuleType      = "type"
	RuleConflict  = "conflict" // two fields that say the same
)

// MaxFound is how many violations are reported. Who has more has enough to do.
const MaxFound = 1000

// Violation is a rule that a document breaks, or, as a warning, comes near to
// breaking.
type Violation struct {
	Rule    string `json:"rule"`
	Path    string `json:"path"` // a JSON pointer: /steps/0/successful_claim_state/admin
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
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

// Show is a text as a message shows it.
func Show(s string) string { return strconv.Quote(Shorten(s, maxShown)) }

// Shorten cuts a text to a number of characters.
func Shorten(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// Last is the name at the end of a pointer, for messages.
func Last(path string) string { return Show(path[strings.LastIndexByte(path, '/')+1:]) }

// List puts names in a row.
func List(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Few cuts a list that would fill a page.
func Few(names []string) []string {
	const most = 10
	if len(names) <= most {
		return names
	}
	return append(names[:most:most], Counted(len(names)-most)+" more")
}

// Counted is a number of values, in words.
func Counted(n int) string {
	if n == 1 {
		return "1 value"
	}
	return strconv.Itoa(n) + " values"
}
