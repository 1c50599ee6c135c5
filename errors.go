package holdfast

import "github.com/holdfast-go/holdfast/fault"

// Errors of writes. A refused call changes nothing. Compare with [errors.Is].
var (
	// ErrConcurrency is returned when an object is not at the version that the caller expected. Its fields are
	// expectedVersion and lastVersion.
	ErrConcurrency = fault.Of(fault.Concurrency)
	// ErrInvalidTransition is returned when an object is not in the status that the transition starts from.
	ErrInvalidTransition = fault.Of(fault.InvalidTransition)
	// ErrConflict is returned when an object to be created already exists, or when an object's state does not allow
	// the call.
	ErrConflict = fault.Of(fault.Conflict)
	// ErrNotFound is returned when the object does not exist in the workspace.
	ErrNotFound = fault.Of(fault.NotFound)
	// ErrForbidden is returned when the caller is not permitted to make the call, for example to append to one of
	// Holdfast's own histories.
	ErrForbidden = fault.Of(fault.Forbidden)
	// ErrValidation is returned when an argument or a document is invalid.
	ErrValidation = fault.Of(fault.Validation)
	// ErrKeyMismatch is returned when a key was already used for a different request. Its field "differs"
	// describes the difference.
	ErrKeyMismatch = fault.Of(fault.KeyMismatch)
	// ErrKeyInFlight is returned while another request with the same key is in flight. Retry the call a little later.
	ErrKeyInFlight = fault.Of(fault.KeyInFlight)
)

// Errors of steps and claims.
var (
	// ErrClaimFailed is returned when another operation is in progress. Its fields are holder, since and until.
	// Nothing was changed.
	ErrClaimFailed = fault.Of(fault.ClaimFailed)
	// ErrLeaseLost is returned when a holder has lost its lease. Nothing that it did after that is recorded.
	ErrLeaseLost = fault.Of(fault.LeaseLost)
	// ErrActionInvalid is returned when a validation or an action refused the request.
	ErrActionInvalid = fault.Of(fault.ActionInvalid)
	// ErrActionFailed is returned when an action failed. Its field outcome is "released" if the claim was released,
	// "pending" if the operation will be resumed, or "uncertain" if the outcome of an effect is unknown.
	ErrActionFailed = fault.Of(fault.ActionFailed)
)

// Errors of the engine and of its database.
var (
	// ErrReentrant is returned when an engine is used inside one of its own transactions. Use the transaction
	// instead.
	ErrReentrant = fault.Of(fault.Reentrant)
	// ErrUnavailable is returned when the database is down or stayed busy. Nothing was written.
	ErrUnavailable = fault.Of(fault.Unavailable)
	// ErrOutcomeUnknown is returned when the database accepted a write but did not respond. Read the current state
	// before you retry.
	ErrOutcomeUnknown = fault.Of(fault.OutcomeUnknown)
	// ErrStorageFull is returned when the database has no space left. Nothing was written, and earlier acknowledged
	// writes are intact.
	ErrStorageFull = fault.Of(fault.StorageFull)
)

// NonRetryable marks an error that a retry cannot fix: an operation that fails with it is not retried.
// NonRetryable(nil) returns nil.
func NonRetryable(err error) error { return fault.NonRetryable(err) }
