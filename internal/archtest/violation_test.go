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
