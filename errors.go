package holdfast

import "github.com/holdfast-go/holdfast/fault"

// Errors of writes. Each changed nothing; compare with [errors.Is].
var (
	// ErrConcurrency is returned when a thing is not at the version that the
	// caller expected. Its facts are expectedVersion and lastVersion.
	ErrConcurrency = fault.Of(fault.Concurrency)
	// ErrInvalidTransition is returned when a thing is not in the status
	// that a transition leaves.
	ErrInvalidTransition = fault.Of(fault.InvalidTransition)
	// ErrConflict is returned when a thing exists that was to be created.
	ErrConflict = fault.Of(fault.Conflict)
	// ErrNotFound is returned when there is no such thing in the workspace.
	ErrNotFound = fault.Of(fault.NotFound)
	// ErrForbidden is returned when the caller may not do this, such as
	// append to Holdfast's own history.
	ErrForbidden = fault.Of(fault.Forbidden)
	// ErrValidation is returned when what was given cannot be accepted.
	ErrValidation = fault.Of(fault.Validation)
	// ErrKeyMismatch is returned when a key was used before, for something
	// else. Its fact differs says what.
	ErrKeyMismatch = fault.Of(fault.KeyMismatch)
	// ErrKeyInFlight is returned when a request with the same key is being
	// worked on. Repeat it a little later.
	ErrKeyInFlight = fault.Of(fault.KeyInFlight)
)

// Errors of steps and claims.
var (
	// ErrClaimFailed is returned when another operation is in progress. Its
	// facts are holder, since and until. Nothing was done.
	ErrClaimFailed = fault.Of(fault.ClaimFailed)
	// ErrLeaseLost is returned when a holder has lost what it held. What it
	// did after that is not recorded.
	ErrLeaseLost = fault.Of(fault.LeaseLost)
	// ErrActionInvalid is returned when a validation or an action refused.
	ErrActionInvalid = fault.Of(fault.ActionInvalid)
	// ErrActionFailed is returned when an action failed. Its fact outcome says
	// whether it was "released", is "pending", to be resumed, or "uncertain".
	ErrActionFailed = fault.Of(fault.ActionFailed)
)

// Errors of the engine and of the database under it.
var (
	// ErrReentrant is returned when an engine is used inside one of its own
	// transactions. Use the transaction.
	ErrReentrant = fault.Of(fault.Reentrant)
	// ErrUnavailable is returned when the database is down or stayed busy.
	// Nothing was written.
	ErrUnavailable = fault.Of(fault.Unavailable)
	// ErrOutcomeUnknown is returned when the database took a write and did
	// not answer. Look before you repeat it.
	ErrOutcomeUnknown = fault.Of(fault.OutcomeUnknown)
	// ErrStorageFull is returned when the database has no room left. Nothing
	// was written, and what was acknowledged before is intact.
	ErrStorageFull = fault.Of(fault.StorageFull)
)

// NonRetryable says of an error that trying again does not mend it: what fails
// with it is not tried again.
func NonRetryable(err error) error { return fault.NonRetryable(err) }
