package archtest

import (
	"cmp"
	"fmt"
	"slices"
)

// Violation is one place that breaks a rule. What states the problem and the remedy.
type Violation struct {
	File string
	Line int
	What string
}

// String formats the violation as file:line: what.
func (v Violation) String() string {
	return fmt.Sprintf("%s:%d: %s", v.File, v.Line, v.What)
}

// sorted sorts violations by file and line.
func sorted(vs []Violation) []Violation {
	slices.SortStableFunc(vs, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return vs
}
