package configdoc

import (
	"fmt"
	"slices"
)

// Source holds the positions of a document's values in its text. The zero value is for a document
// that was built in code.
type Source struct {
	at      map[string]Position // by JSON pointer
	refused map[string]bool     // the values that could not be read
}

// IsText reports whether the document was read from a text.
func (s Source) IsText() bool { return s.at != nil }

// Given reports whether the document has a valid value at path. A missing or invalid value has
// already been reported.
func (s Source) Given(path string) bool {
	_, ok := s.at[path]
	return (ok || !s.IsText()) && !s.refused[path]
}

// Refused reports whether a value could not be read.
func (s Source) Refused(path string) bool { return s.refused[path] }

// Partial reports whether some values of the text could not be read.
func (s Source) Partial() bool { return len(s.refused) > 0 }

// Linter collects violations and warnings about the meaning of a document.
type Linter struct {
	Source
	Violations, Warnings []Violation

	reported map[string]bool
}

// NewLinter returns a linter of one document.
func NewLinter(s Source) *Linter { return &Linter{Source: s, reported: make(map[string]bool)} }

// Refuse reports a violation, once per rule, path and message.
func (l *Linter) Refuse(rule, path, format string, args ...any) {
	if len(l.Violations) < MaxFound {
		l.Violations = append(l.Violations, l.violation(rule, path, format, args...)...)
	}
}

// Warn reports a warning.
func (l *Linter) Warn(rule, path, format string, args ...any) {
	if len(l.Warnings) < MaxFound {
		l.Warnings = append(l.Warnings, l.violation(rule, path, format, args...)...)
	}
}

func (l *Linter) violation(rule, path, format string, args ...any) []Violation {
	message := fmt.Sprintf(format, args...)
	key := rule + " " + path + " " + message
	if l.reported[key] {
		return nil
	}
	l.reported[key] = true
	at := Find(l.at, path)
	return []Violation{{Rule: rule, Path: path, Line: at.Line, Column: at.Column, Message: message}}
}

// Report returns the violations and warnings, sorted by position.
func (l *Linter) Report() (violations, warnings []Violation) {
	inOrder(l.Violations)
	inOrder(l.Warnings)
	return l.Violations, l.Warnings
}

// Check parses and lints a document, and reports everything at once. The document is nil if there
// are violations.
func Check[D any](data []byte, parse func([]byte) (*D, []Violation), lint func(*D) (violations, warnings []Violation)) (doc *D, violations, warnings []Violation) {
	doc, violations = parse(data)
	if doc == nil {
		return nil, violations, nil
	}
	more, warnings := lint(doc)
	violations = append(violations, more...)
	if len(violations) > 0 {
		inOrder(violations)
		return nil, violations, warnings
	}
	return doc, nil, warnings
}

// Graph maps each node to its successors.
type Graph[N comparable] map[N][]N

// From returns all nodes reachable from the given ones, including these.
func (g Graph[N]) From(starts ...N) map[N]bool {
	starts = slices.Clone(starts) // it is modified, and may belong to the graph
	seen := make(map[N]bool)
	for len(starts) > 0 {
		n := starts[len(starts)-1]
		starts = starts[:len(starts)-1]
		if !seen[n] {
			seen[n] = true
			starts = append(starts, g[n]...)
		}
	}
	return seen
}

// Back returns the graph with all edges reversed.
func (g Graph[N]) Back() Graph[N] {
	b := make(Graph[N])
	for from, all := range g {
		for _, to := range all {
			b[to] = append(b[to], from)
		}
	}
	return b
}
