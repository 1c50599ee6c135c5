// Package archtest holds the house to its plan.
//
// Three things are agreed on paper and easily lost in code: which package may
// import which, what every SQL statement must say of shard and workspace, and
// what the documents claim about tests and dependencies. Each is a table or a
// short rule here, and a test that reads the module as it stands.
//
// The arrows are in rules.go, to be read as documentation: a package that has
// no line there fails the test, so that a new one is placed on purpose. The
// rules on SQL are in sqlrules.go, with the tables and verbs that are excepted
// and the reason of each.
//
// The checks return each [Violation] as a value and never import testing, so
// that the tests also run them on planted mistakes and see them caught:
//
//	m, err := archtest.ReadModule(os.DirFS(root))
//	for _, v := range archtest.Arrows(m, archtest.Rules) { … }
//
// Only the syntax is read, by go/parser and by a small reader of SQL: nothing is
// compiled, so files behind build tags are held to the same rules.
package archtest

import (
	"cmp"
	"fmt"
	"slices"
)

// Violation is one place that breaks a rule. What says what is wrong there and
// what to do about it.
type Violation struct {
	File string
	Line int
	What string
}

// String returns the violation as file:line: what.
func (v Violation) String() string {
	return fmt.Sprintf("%s:%d: %s", v.File, v.Line, v.What)
}

// sorted orders violations by place, so that a report reads from top to bottom.
func sorted(vs []Violation) []Violation {
	slices.SortStableFunc(vs, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return vs
}
