package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Report says what [Engine.Check] looked at and what is wrong with it.
type Report = check.Report

// Violation is an invariant that something in the database breaks.
type Violation = check.Violation

// Check holds the database to the invariants that its rows can show: that every
// stream, entity and scope is at the version of its last event, with no version
// missing, and that no event is without what it belongs to. It looks at all
// workspaces, changes nothing, and may run while others write. The error is of
// the check itself; what it found is in the report.
func (e *Engine) Check(ctx context.Context) (Report, error) {
	return check.Run(ctx, e)
}
