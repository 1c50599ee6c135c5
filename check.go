package holdfast

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// Report says what [Engine.Check] looked at and what is wrong with it.
type Report struct {
	// Checked counts what was looked at: streams, entities, claims, scopes,
	// positions of reactions.
	Checked map[string]int64 `json:"checked"`
	// Violations are those found, at most 100 of each kind.
	Violations []Violation `json:"violations"`
	// Unlisted counts the violations beyond those.
	Unlisted int64 `json:"unlisted,omitempty"`
	// OverdueLeases counts holds that ended over a minute ago and that no
	// janitor has freed. None may be running; that is a warning, and no
	// violation.
	OverdueLeases int64 `json:"overdueHolds"`
}

// Violation is an invariant that something in the database breaks.
type Violation struct {
	Invariant string `json:"invariant"` // "I17", as the design numbers them
	Workspace string `json:"workspace"`
	Subject   string `json:"subject"` // "stream orders-17", "entity invoice/7"
	Message   string `json:"message"`
}

// String returns the violation on one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s in workspace %s: %s", v.Invariant, v.Subject, v.Workspace, v.Message)
}

// Clean says whether nothing is wrong.
func (r Report) Clean() bool { return len(r.Violations) == 0 }

// String tells the violations, one a line; it is empty for a clean report.
func (r Report) String() string {
	var b strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintln(&b, v)
	}
	if r.Unlisted > 0 {
		fmt.Fprintf(&b, "and %d more\n", r.Unlisted)
	}
	return b.String()
}

// Check holds the database to the invariants that its rows can show: that every
// stream, entity and scope is at the version of its last event, with no version
// missing, and that no event is without what it belongs to. It looks at all
// workspaces, changes nothing, and may run while others write. The error is of
// the check itself; what it found is in the report.
func (e *Engine) Check(ctx context.Context) (Report, error) {
	found, err := check.Run(ctx, engine.Of(e))
	r := Report{Checked: found.Checked, Violations: make([]Violation, len(found.Violations)), Unlisted: found.Unlisted, OverdueLeases: found.OverdueLeases}
	for i, v := range found.Violations {
		r.Violations[i] = Violation(v)
	}
	return r, err
}
