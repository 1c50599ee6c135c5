package configdoc

import (
	"fmt"
	"slices"
)

// Source is where the values of a document stand in the text that it was read from. The
// zero value is that of a document that was made in code.
type Source struct {
	at      map[string]Position // by JSON pointer
	refused map[string]bool     // the values that could not be read
}

// IsText says whether the document was read from a text.
func (s Source) IsText() bool { return s.at != nil }

// Given says whether the document has a value: what is missing, or could not be read, has
// been reported then.
func (s Source) Given(path string) bool {
	_, ok := s.at[path]
	return (ok || !s.IsText()) && !s.refused[path]
}

// Refused says whether a value could not be read.
func (s Source) Refused(path string) bool { return s.refused[path] }

// Partial says that there is more in the text than in the document.
func (s Source) Partial() bool { return len(s.refused) > 0 }

// Linter collects what is wrong with the meaning of a document.
type Linter struct {
	Source
	Violations, Warnings []Violation

	said map[string]bool
}

// NewLinter returns a linter of one document.
func NewLinter(s Source) *Linter { return &Linter{Source: s, said: make(map[string]bool)} }

// Refuse reports a violation, once for a rule and a place.
func (l *Linter) Refuse(rule, path, format string, args ...any) {
	if len(l.Violations) < MaxFound {
		l.Violations = append(l.Violations, l.say(rule, path, format, args...)...)
	}
}

// Warn reports a warning.
func (l *Linter) Warn(rule, path, format string, args ...any) {
	if len(l.Warnings) < MaxFound {
		l.Warnings = append(l.Warnings, l.say(rule, path, format, args...)...)
	}
}

func (l *Linter) say(rule, path, format string, args ...any) []Violation {
	message := fmt.Sprintf(format, args...)
	key := rule + " " + path + " " + message
	if l.said[key] {
		return nil
	}
	l.said[key] = true
	at := Find(l.at, path)
	return []Violation{{Rule: rule, Path: path, Line: at.Line, Column: at.Column, Message: message}}
}

// Report returns all that was found, in the order of the text.
func (l *Linter) Report() (violations, warnings []Violation) {
	inOrder(l.Violations)
	inOrder(l.Warnings)
	return l.Violations, l.Warnings
}

// Check reads a document and judges it. It reports all that can be found in one go; the
// document is nil if there are violations.
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

// Graph is where each node leads.
type Graph[N comparable] map[N][]N

// From returns all nodes that can be reached from those given, these included.
func (g Graph[N]) From(starts ...N) map[N]bool {
	starts = slices.Clone(starts) // it is worked off, and may be the graph's own
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

// Back returns the graph with every way turned round.
func (g Graph[N]) Back() Graph[N] {
	b := make(Graph[N])
	for from, all := range g {
		for _, to := range all {
			b[to] = append(b[to], from)
		}
	}
	return b
}
