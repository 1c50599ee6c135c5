package scope

import "github.com/holdfast-go/holdfast/fault"

// Errors of scopes. Each means that nothing was written; compare with [errors.Is].
var (
	// ErrMutationTimeout is returned when waiting and deciding took longer than the budget. The change will never be
	// applied.
	ErrMutationTimeout = fault.Of(fault.MutationTimeout)
	// ErrPrecondition is returned when the scope does not meet [ExpectVersion], [Absent] or
	// [Present]. Its field lastVersion is the current version, or -1 if the scope does not exist.
	ErrPrecondition = fault.Of(fault.PreconditionFailed)
)
