// Package fault provides Holdfast's error type.
//
// Every refusal and every failure that a caller can act on is an [*Error] with a [Code]. The same code is sent over
// HTTP and restored by the client, so a program tests for it in the same way on both sides:
//
//	if errors.Is(err, fault.Of(fault.ClaimFailed)) { … }
//
// The underlying cause, such as a database driver error, is wrapped. The cause is meant for the log; its text is not
// part of the message that a caller sees.
package fault

import (
	"errors"
	"fmt"
	"maps"
)

// Code identifies a kind of failure. Codes are stable, so programs may depend on them.
type Code string

// Codes of refusals and of temporary conditions.
const (
	// Validation is returned when an argument or a document is invalid.
	Validation Code = "VALIDATION_ERROR"
	// Auth is returned when the API key, the session or the token of a request is missing or invalid, or the
	// signature of a webhook message.
	Auth Code = "AUTH_ERROR"
	// Forbidden is returned when the caller is not permitted to make the call.
	Forbidden Code = "FORBIDDEN"
	// NotFound is returned when the object does not exist in the workspace.
	NotFound Code = "NOT_FOUND"
	// MethodNotAllowed is returned by the HTTP API when a path does not support the method.
	MethodNotAllowed Code = "METHOD_NOT_ALLOWED"
	// ClaimFailed is returned when another operation on the entity is in progress.
	ClaimFailed Code = "CLAIM_FAILED"
	// Concurrency is returned when an object is not at the version or the lease not at the epoch that the caller
	// expected, or others were faster in each attempt.
	Concurrency Code = "CONCURRENCY_ERROR"
	// LeaseLost is returned when a holder has lost its lease.
	LeaseLost Code = "LEASE_LOST"
	// NotDelivered is returned when a version is acknowledged that the lease has not delivered.
	NotDelivered Code = "NOT_DELIVERED"
	// InvalidTransition is returned when the status of an entity, a run or a batch does not allow the step or the
	// command.
	InvalidTransition Code = "INVALID_TRANSITION"
	// EffectUnresolved is returned when an operation cannot be released because an effect may have happened.
	EffectUnresolved Code = "EFFECT_UNRESOLVED"
	// KeyInFlight is returned while another request with the same idempotency key is in flight.
	KeyInFlight Code = "KEY_IN_FLIGHT"
	// StreamClosed is returned when a stream accepts no more events.
	StreamClosed Code = "STREAM_CLOSED"
	// Conflict is returned when an object exists already, also with other content, or when the state of anything else
	// than an entity, a run or a batch does not allow the call.
	Conflict Code = "CONFLICT"
	// PreconditionFailed is returned by the HTTP API when an expected version that was sent in a header does not
	// match.
	PreconditionFailed Code = "PRECONDITION_FAILED"
	// PayloadTooLarge is returned when an argument is larger than its limit.
	PayloadTooLarge Code = "PAYLOAD_TOO_LARGE"
	// UnsupportedMediaType is returned by the HTTP API for a body of another media type, or with an encoding.
	UnsupportedMediaType Code = "UNSUPPORTED_MEDIA_TYPE"
	// KeyMismatch is returned when an idempotency key, or the key of a run, was used before for a different request.
	KeyMismatch Code = "KEY_MISMATCH"
	// KeyExpired is returned when the key of a run, or the id of a batch, belongs to one that has ended and was deleted after its retention.
	KeyExpired Code = "KEY_EXPIRED"
	// CursorExpired is returned when a cursor is of an event of the feed that was lost because a backup was restored.
	CursorExpired Code = "CURSOR_EXPIRED"
	// ActionInvalid is returned when the validation or the action of a lifecycle step refused the step.
	ActionInvalid Code = "ACTION_INVALID"
	// ActionFailed is returned when the action of a lifecycle step failed or waits for a worker, or its validation
	// failed.
	ActionFailed Code = "ACTION_FAILED"
	// InsufficientFunds means that a wallet has too few points. No call returns it at present: a batch whose wallet
	// cannot pay is PAUSED.
	InsufficientFunds Code = "INSUFFICIENT_FUNDS"
	// RateLimited is returned by the HTTP API when the rate limit of the API key is exceeded.
	RateLimited Code = "RATE_LIMITED"
	// QuotaExceeded is returned by the HTTP API when a workspace has reached one of its quotas. Nothing was written.
	QuotaExceeded Code = "QUOTA_EXCEEDED"
	// MutationTimeout is returned when a change of a scope did not get its turn, or was not decided, within its
	// budget.
	MutationTimeout Code = "MUTATION_TIMEOUT"
	// SecretUnavailable means that a call was not made, because a secret that it refers to does not exist or cannot be decrypted.
	SecretUnavailable Code = "SECRET_UNAVAILABLE"
	// Unavailable is returned when the database is down or stayed busy, or the server cannot be reached. Nothing was
	// written.
	Unavailable Code = "UNAVAILABLE"
)

// Codes of a damaged, full or unsuitable database, of unknown outcomes and of bugs. Over HTTP their status is 503,
// except for [Reentrant] and [Internal], which are bugs and have the status 500.
const (
	// OutcomeUnknown is returned when the database accepted a write but did not respond, or a client got no response of
	// the server: the write may or may not have been applied.
	OutcomeUnknown Code = "OUTCOME_UNKNOWN"
	// StorageFull is returned when the database has no space left. Nothing was written, and earlier acknowledged
	// writes are intact.
	StorageFull Code = "STORAGE_FULL"
	// DatabaseDamaged is returned when the database is corrupt or incomplete.
	DatabaseDamaged Code = "DATABASE_DAMAGED"
	// DatabaseReadOnly is returned when the database does not accept writes.
	DatabaseReadOnly Code = "DATABASE_READ_ONLY"
	// DatabaseRestored is returned when the database was restored from a backup while the program had it open: the program
	// must be restarted.
	DatabaseRestored Code = "DATABASE_RESTORED"
	// DatabaseForeign is returned when the database belongs to another application.
	DatabaseForeign Code = "DATABASE_FOREIGN"
	// DatabaseTooOld is returned when the database, its server or its library is older than this program requires.
	DatabaseTooOld Code = "DATABASE_TOO_OLD"
	// DatabaseTooNew is returned when a newer program has changed the database in a way that this program does not
	// support.
	DatabaseTooNew Code = "DATABASE_TOO_NEW"
	// DatabaseDenied is returned when the database role lacks a privilege.
	DatabaseDenied Code = "DATABASE_DENIED"
	// Reentrant is returned when an engine is used inside one of its own transactions, where only the transaction may
	// be used.
	Reentrant Code = "REENTRANT"
	// Internal is a bug in Holdfast, or an error without a code.
	Internal Code = "INTERNAL_ERROR"
)

var statuses = map[Code]int{
	Validation:           400,
	Auth:                 401,
	Forbidden:            403,
	NotFound:             404,
	MethodNotAllowed:     405,
	ClaimFailed:          409,
	Concurrency:          409,
	LeaseLost:            409,
	NotDelivered:         409,
	InvalidTransition:    409,
	EffectUnresolved:     409,
	KeyInFlight:          409,
	StreamClosed:         409,
	Conflict:             409,
	PreconditionFailed:   412,
	PayloadTooLarge:      413,
	UnsupportedMediaType: 415,
	KeyMismatch:          422,
	KeyExpired:           410,
	CursorExpired:        410,
	ActionInvalid:        422,
	ActionFailed:         422,
	InsufficientFunds:    422,
	RateLimited:          429,
	QuotaExceeded:        429,
	Reentrant:            500,
	Internal:             500,
}

// Status returns the HTTP status of the code. The status is 503 for codes that describe the database or a temporary
// condition, and for unknown codes.
func (c Code) Status() int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return 503
}

// Violation is one violated rule in a refused document.
type Violation struct {
	Rule    string `json:"rule"`
	Path    string `json:"path"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}

// Error is a failure with a code. Its fields do not change after the error is created, so it is safe for concurrent
// use.
type Error struct {
	// Code is the kind of failure; [errors.Is] compares it.
	Code Code
	// Message describes what happened and, if the caller can do something about it, what to do.
	Message string
	// Fields holds the details that the code defines, such as expectedVersion, lastVersion or holder.
	Fields map[string]any
	// Violations lists every violated rule of a refused document.
	Violations []Violation
	// Retryable reports that nothing was written and that the same call may be retried, immediately or a little later.
	Retryable bool

	cause error
}

// New returns an error with a code and a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Of returns an error that has only a code, as a target for [errors.Is].
func Of(code Code) *Error { return &Error{Code: code} }

// With returns a copy of the error with one more field.
func (e *Error) With(name string, value any) *Error {
	c := *e
	c.Fields = maps.Clone(e.Fields)
	if c.Fields == nil {
		c.Fields = make(map[string]any, 1)
	}
	c.Fields[name] = value
	return &c
}

// Wrap returns a copy of e that wraps cause. A caller gets the cause through [errors.Unwrap]; the text of the
// error does not include the cause.
func (e *Error) Wrap(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// AsRetryable returns a copy of the error with Retryable set: nothing was written, and the same call may be retried.
func (e *Error) AsRetryable() *Error {
	c := *e
	c.Retryable = true
	return &c
}

// Error returns the code and the message.
func (e *Error) Error() string {
	if e.Message == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap returns the wrapped cause, or nil. It is meant for the log.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether the target is an [*Error] with the same code. A [PreconditionFailed] is also a [Concurrency]: the
// HTTP API returns it if an expected version that was sent in a header does not match.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && (t.Code == e.Code || t.Code == Concurrency && e.Code == PreconditionFailed)
}

// CodeOf returns the code of an error. For an error without a code it returns [Internal], and for nil it returns "".
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// IsRetryable reports whether an error of the engine guarantees that nothing was written, so that the same call may be
// retried. Responses over HTTP do not say so: it is false for an error of the client. It is not the opposite of
// [IsNonRetryable]: an error may be neither.
func IsRetryable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Retryable
}
