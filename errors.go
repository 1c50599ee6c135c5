package holdfast

import "github.com/holdfast-go/holdfast/fault"

// Errors of writes. A refused call changes nothing, unless its documentation says that it works in several transactions.
// Compare with [errors.Is].
var (
	// ErrConcurrency is returned when an object is not at the version that the caller expected, or was changed by others in
	// each attempt. (Commands on a run and signals return [ErrUnavailable] in that case, and lifecycle.Release [ErrConflict].) If a version was expected, the fields "expectedVersion" and "lastVersion" are set; if an epoch was
	// (ExpectEpoch of packages lifecycle and run), the field "epoch" is the current one.
	ErrConcurrency = fault.Of(fault.Concurrency)
	// ErrInvalidTransition is returned when the status of an entity, a run or a batch does not allow the step or the
	// command. The field "status" is that status.
	ErrInvalidTransition = fault.Of(fault.InvalidTransition)
	// ErrConflict is returned when an object to be created already exists or a part is declared twice, and when a signal, a
	// batch or a credit has the id or the reference of an earlier one with other content. It is also returned when the
	// state of anything else than an entity, a run or a batch does not allow the call: an operation that is in another
	// phase, an effect with another known outcome, an approval request that is decided, a stream that is being closed or
	// that a reaction still needs.
	ErrConflict = fault.Of(fault.Conflict)
	// ErrNotFound is returned when the object does not exist in the workspace.
	ErrNotFound = fault.Of(fault.NotFound)
	// ErrForbidden is returned when the caller is not permitted to make the call, for example to append to one of
	// Holdfast's own histories.
	ErrForbidden = fault.Of(fault.Forbidden)
	// ErrValidation is returned when an argument or a document is invalid.
	ErrValidation = fault.Of(fault.Validation)
	// ErrPayloadTooLarge is returned when an argument is larger than its limit. The message states the limit.
	ErrPayloadTooLarge = fault.Of(fault.PayloadTooLarge)
	// ErrKeyMismatch is returned when an idempotency key, or the key of a run, was used before for a different request.
	// For a run, the field "differs" lists the parts of the request that are different.
	ErrKeyMismatch = fault.Of(fault.KeyMismatch)
	// ErrKeyExpired is returned when the key of a run belongs to one that has ended and was deleted after its retention. The
	// run is not started again. The field "runId" is its id. It is also returned when a batch is created again whose items were deleted.
	ErrKeyExpired = fault.Of(fault.KeyExpired)
	// ErrKeyInFlight is returned while another request with the same idempotency key is in flight. Retry the call a
	// little later.
	ErrKeyInFlight = fault.Of(fault.KeyInFlight)
)

// Errors of steps and claims.
var (
	// ErrClaimFailed is returned when another operation on the entity is in progress. Nothing was changed. Its field
	// "status" is the entity's status. The fields "operation", "holder" and "since", if they are set, describe that
	// operation. The field "until" is set only while a holder has its lease, and "uncertain" only if the operation is
	// uncertain.
	ErrClaimFailed = fault.Of(fault.ClaimFailed)
	// ErrLeaseLost is returned when a holder has lost its lease. None of its later writes is applied. If it made the call
	// of an effect after that, the call is recorded only as a contradiction; see [ListContradictions].
	ErrLeaseLost = fault.Of(fault.LeaseLost)
	// ErrEffectUnresolved is returned when an operation cannot be released because an effect may have happened. Wait for its
	// holder or for the end of its lease. If the operation is then uncertain, resolve it. The field "effects" names the effects.
	ErrEffectUnresolved = fault.Of(fault.EffectUnresolved)
	// ErrActionInvalid is returned when the validation or the action of a lifecycle step refused the step with [Invalid].
	ErrActionInvalid = fault.Of(fault.ActionInvalid)
	// ErrActionFailed is returned when the action of a lifecycle step failed, its validation failed with an error that is no
	// refusal, or the step waits for a worker. Its
	// field "outcome" is one of:
	//   - "released": the claim was released, or the step had none
	//   - "pending": the operation waits for a worker, or will be resumed
	//   - "uncertain": the outcome of an effect is unknown
	//   - "unreleased": the claim could not be released, and lasts until its lease expires
	//   - "failed": the operation that an earlier request with the same idempotency key started has failed
	ErrActionFailed = fault.Of(fault.ActionFailed)
)

// Errors of the engine and of its database.
var (
	// ErrReentrant is returned when an engine is used inside one of its own transactions. Use the transaction
	// instead.
	ErrReentrant = fault.Of(fault.Reentrant)
	// ErrUnavailable is returned when the database is down or stayed busy, or a run was changed by others in each attempt of a
	// command. Nothing was written.
	ErrUnavailable = fault.Of(fault.Unavailable)
	// ErrOutcomeUnknown is returned when the database accepted a write but did not respond. Read the current state
	// before you retry.
	ErrOutcomeUnknown = fault.Of(fault.OutcomeUnknown)
	// ErrDatabaseRestored is returned when the database was restored from a backup while the engine had it open, and
	// [MigrateRestored] or "holdfast migrate --restored" was run. Every call returns it, and [Engine.Run] ends with it: restart
	// the program.
	ErrDatabaseRestored = fault.Of(fault.DatabaseRestored)
	// ErrCursorExpired is returned when a cursor of the feed is of an event that was lost because a backup was restored. The
	// field "cursor" is the cursor of the last event before the lost ones, to continue with.
	ErrCursorExpired = fault.Of(fault.CursorExpired)
	// ErrStorageFull is returned when the database has no space left. Nothing was written, and earlier acknowledged
	// writes are intact.
	ErrStorageFull = fault.Of(fault.StorageFull)
)

// NonRetryable marks an error that a retry cannot fix: an operation that fails with it is not retried.
// NonRetryable(nil) returns nil.
func NonRetryable(err error) error { return fault.NonRetryable(err) }
