// Package fault holds the one error type of Holdfast.
//
// Every refusal and every failure that a caller can act on is an [*Error] with
// a [Code]. The same code travels over HTTP and comes back in the client, so
// that a program asks the same question on either side:
//
//	if errors.Is(err, fault.Of(fault.ClaimFailed)) { … }
//
// What went wrong inside (a driver's error, say) is wrapped: it is there for
// the log, and its text is not part of what a caller is told.
package fault

import (
	"errors"
	"fmt"
	"maps"
)

// Code names one kind of failure. Codes are stable: a program may be written
// against them.
type Code string

// Codes of the wire contract.
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
	KeyInFlight          Code = "KEY_IN_FLIGHT"
	StreamClosed         Code = "STREAM_CLOSED"
	Conflict             Code = "CONFLICT"
	PreconditionFailed   Code = "PRECONDITION_FAILED"
	PayloadTooLarge      Code = "PAYLOAD_TOO_LARGE"
	UnsupportedMediaType Code = "UNSUPPORTED_MEDIA_TYPE"
	KeyMismatch          Code = "KEY_MISMATCH"
	ActionInvalid        Code = "ACTION_INVALID"
	ActionFailed         Code = "ACTION_FAILED"
	InsufficientFunds    Code = "INSUFFICIENT_FUNDS"
	RateLimited          Code = "RATE_LIMITED"
	MutationTimeout      Code = "MUTATION_TIMEOUT"
	Unavailable          Code = "UNAVAILABLE"
)

// Codes beyond the contract's list. On the wire they are a 503, except
// [Reentrant] and [Internal], which are a mistake in a program.
const (
	// OutcomeUnknown is returned when the database took a write and did not
	// answer: it may or may not have been applied.
	OutcomeUnknown Code = "OUTCOME_UNKNOWN"
	// StorageFull is returned when the database has no room left. Nothing
	// was written, and what was acknowledged before is intact.
	StorageFull Code = "STORAGE_FULL"
	// DatabaseDamaged is returned when the database is not whole.
	DatabaseDamaged Code = "DATABASE_DAMAGED"
	// DatabaseReadOnly is returned when the database takes no writes.
	DatabaseReadOnly Code = "DATABASE_READ_ONLY"
	// DatabaseForeign is returned when the database belongs to something else.
	DatabaseForeign Code = "DATABASE_FOREIGN"
	// DatabaseTooOld is returned when the database, its server or its
	// library is older than this program needs.
	DatabaseTooOld Code = "DATABASE_TOO_OLD"
	// DatabaseTooNew is returned when a newer program has changed the
	// database in a way that this one cannot work with.
	DatabaseTooNew Code = "DATABASE_TOO_NEW"
	// DatabaseDenied is returned when the role lacks a privilege.
	DatabaseDenied Code = "DATABASE_DENIED"
	// Reentrant is returned when an engine is used from inside one of its
	// own transactions, where only the transaction may be.
	Reentrant Code = "REENTRANT"
	// Internal is a defect of ours.
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
	KeyInFlight:          409,
	StreamClosed:         409,
	Conflict:             409,
	PreconditionFailed:   412,
	PayloadTooLarge:      413,
	UnsupportedMediaType: 415,
	KeyMismatch:          422,
	ActionInvalid:        422,
	ActionFailed:         422,
	InsufficientFunds:    422,
	RateLimited:          429,
	Reentrant:            500,
	Internal:             500,
}

// Status returns the HTTP status that goes with the code; 503 for every code
// that says something of the database or of the moment.
func (c Code) Status() int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return 503
}

// Violation is one broken rule of a refused document.
type Violation struct {
	Rule    string `json:"rule"`
	Path    string `json:"path"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}

// Error is a failure with a code. Its fields are set when it is made and not
// changed afterwards, so it is safe for concurrent use.
type Error struct {
	// Code says which kind of failure it is; [errors.Is] compares it.
	Code Code
	// Message says what happened and, where there is something to do, what.
	Message string
	// Fields are the code's own facts: expectedVersion, lastVersion, holder …
	Fields map[string]any
	// Violations lists every broken rule, where a document was refused.
	Violations []Violation
	// Safe says that nothing was written and that the very same call may be
	// repeated, now or a little later.
	Safe bool

	cause error
}

// New makes an error with a code and a message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Of is the error of a code alone: a target for [errors.Is].
func Of(code Code) *Error { return &Error{Code: code} }

// With returns a copy of the error that carries one more fact.
func (e *Error) With(name string, value any) *Error {
	c := *e
	c.Fields = maps.Clone(e.Fields)
	if c.Fields == nil {
		c.Fields = make(map[string]any, 1)
	}
	c.Fields[name] = value
	return &c
}

// Wrap returns a copy of the error with what went wrong inside. A caller sees
// it through [errors.Unwrap]; the text of the error stays the message.
func (e *Error) Wrap(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// Repeatable returns a copy of the error that says that nothing was written
// and the same call may be made again.
func (e *Error) Repeatable() *Error {
	c := *e
	c.Safe = true
	return &c
}

func (e *Error) Error() string {
	if e.Message == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap returns what went wrong inside, for the log.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether the target is an error of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// CodeOf returns the code of an error: [Internal] for one that has none, ""
// for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// IsSafe reports whether the error says that nothing was written and the same
// call may be repeated.
func IsSafe(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Safe
}
