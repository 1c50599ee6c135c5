package scope

import "github.com/holdfast-go/holdfast/fault"

// Errors of scopes. With each of them nothing was written; compare with [errors.Is].
var (
	// ErrMutationTimeout is returned when waiting and deciding took longer than the
	// budget. The change will never land.
	ErrMutationTimeout = fault.Of(fault.MutationTimeout)
	// ErrConcurrentModification is returned when others were faster each time that it
	// was tried. Its fact attempts says how often that was.
	ErrConcurrentModification = fault.Of(fault.Concurrency)
	// ErrReentrant is returned when a function that changes a container changes it again
	// inside, and when an engine is used inside one of its own transactions.
	ErrReentrant = fault.Of(fault.Reentrant)
	// ErrPrecondition is returned when the scope is not as [ExpectVersion], [Absent] or [Present]
	// want it. Its fact lastVersion is the version that it is at, -1 where there is none.
	ErrPrecondition = fault.Of(fault.PreconditionFailed)
)
