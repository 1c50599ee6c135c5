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
	Validation           Code = "VALIDATION_ERROR"
	Auth                 Code = "AUTH_ERROR"
	Forbidden            Code = "FORBIDDEN"
	NotFound             Code = "NOT_FOUND"
	MethodNotAllowed     Code = "METHOD_NOT_ALLOWED"
	ClaimFailed          Code = "CLAIM_FAILED"
	Concurrency          Code = "CONCURRENCY_ERROR"
	LeaseLost            Code = "LEASE_LOST"
	NotDelivered         Code = "NOT_DELIVERED"
	InvalidTransition    Code = "INVALID_TRANSITION"
	EffectUnresolved     Code = "EFFECT_UNRESOLVED"
	KeyInFlight          Code = "KEY_IN_FLIGHT"
	StreamClosed         Code = "STREAM_CLOSED"
	Conflict             Code = "CONFLICT"
	PreconditionFailed   Code = "PRECONDITION_FAILED"
	PayloadTooLarge      Code = "PAYLOAD_TOO_LARGE"
	UnsupportedMediaType Code = "UNSUPPORTED_MEDIA_TYPE"
	KeyMismatch          Code = "KEY_MISMATCH"
	KeyExpired           Code = "KEY_EXPIRED"
	ActionInvalid        Code = "ACTION_INVALID"
	ActionFailed         Code = "ACTION_FAILED"
	InsufficientFunds    Code = "INSUFFICIENT_FUNDS"
	RateLimited          Code = "RATE_LIMITED"
	MutationTimeout      Code = "MUTATION_TIMEOUT"
	Unavailable          Code = "UNAVAILABLE"
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
	ActionInvalid:        422,
	ActionFailed:         422,
	InsufficientFunds:    422,
	RateLimited:          429,
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
