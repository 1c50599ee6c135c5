package scope

import "github.com/holdfast-go/holdfast/fault"

// Errors of scopes. Each means that nothing was written; compare with [errors.Is].
var (
	// ErrMutationTimeout is returned when waiting and deciding took longer than the budget. The
	// change will never be written.
	ErrMutationTimeout = fault.Of(fault.MutationTimeout)
	// ErrConcurrentModification is returned when other writers were faster in every attempt. Its
	// field attempts is the number of attempts.
	ErrConcurrentModification = fault.Of(fault.Concurrency)
	// ErrReentrant is returned when a function that changes a container changes it again inside,
	// and when an engine is used inside one of its own transactions.
	ErrReentrant = fault.Of(fault.Reentrant)
	// ErrPrecondition is returned when the scope does not meet [ExpectVersion], [Absent] or
	// [Present]. Its field lastVersion is the current version, or -1 if the scope does not exist.
	ErrPrecondition = fault.Of(fault.PreconditionFailed)
)
