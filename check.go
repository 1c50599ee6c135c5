package holdfast

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// Report is the result of [Engine.Check].
type Report struct {
	// Checked counts the rows that were checked, by kind: streams, entities, claims, scopes, wallets, batches, runs
	// and positions (of reactions).
	Checked map[string]int64 `json:"checked"`
	// Violations lists the violations found, at most 100 of each kind.
	Violations []Violation `json:"violations"`
	// Unlisted counts the violations beyond that limit.
	Unlisted int64 `json:"unlisted,omitempty"`
	// OverdueLeases counts leases that expired more than a minute ago and that no janitor has released. If there are
	// such leases, check that an engine is running and that its SweepEvery is below a minute. They are not violations.
	OverdueLeases int64 `json:"overdueHolds"`
}

// Violation is an invariant that does not hold for a row of the database.
type Violation struct {
	Invariant string `json:"invariant"` // number of the invariant, such as "I17"
	Workspace string `json:"workspace"`
	Subject   string `json:"subject"` // "stream orders-17", "entity invoice/7"
	Message   string `json:"message"`
}

// String returns the violation on one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s in workspace %s: %s", v.Invariant, v.Subject, v.Workspace, v.Message)
}

// Clean reports whether the check found no violations.
func (r Report) Clean() bool { return len(r.Violations) == 0 }

// String returns the violations, one per line, or "" for a clean report.
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

// Check checks the database against the invariants that are visible in its rows: every stream, entity and scope is at
// the version of its last event, no version is missing, and every event belongs to an existing object. It reads all
// workspaces, changes nothing, and may run during writes, because it pauses between pages. The report lists the
// violations. Check returns an error only if the check itself failed.
func (e *Engine) Check(ctx context.Context) (Report, error) {
	found, err := check.Run(ctx, engine.Of(e))
	r := Report{Checked: found.Checked, Violations: make([]Violation, len(found.Violations)), Unlisted: found.Unlisted, OverdueLeases: found.OverdueLeases}
	for i, v := range found.Violations {
		r.Violations[i] = Violation(v)
	}
	return r, err
}
