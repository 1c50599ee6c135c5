package client

import (
	"errors"
	"strconv"
)

// ErrNotModified is returned by [Client.GetScope] with [IfNoneMatch] when the scope is still
// at that version.
var ErrNotModified = errors.New("it is not modified")

// IfMatch makes a change of a scope only while it is at a version; else it is
// [fault.PreconditionFailed], with lastVersion.
func IfMatch(version int64) Option { return header("If-Match", tagOf(version)) }

// IfPresent makes a change of a scope only while there is one, at whatever version.
func IfPresent() Option { return header("If-Match", "*") }

// IfAbsent makes a change of a scope only while there is none.
func IfAbsent() Option { return header("If-None-Match", "*") }

// IfNoneMatch reads a scope only if it is at another version; else it is [ErrNotModified].
func IfNoneMatch(version int64) Option { return header("If-None-Match", tagOf(version)) }

func header(name, value string) Option {
	return func(r *request) { r.header.Set(name, value) }
}

// tagOf is the entity tag of a version.
func tagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }
