package client

import (
	"errors"
	"strconv"
)

// ErrNotModified is returned by [Client.GetScope] with [IfNoneMatch] if the scope still has that
// version.
var ErrNotModified = errors.New("the scope has not changed")

// ExpectVersion makes a change of a scope require that the scope is at this version. Otherwise the call returns
// [fault.PreconditionFailed], which is also a [fault.Concurrency], with the field lastVersion.
func ExpectVersion(version int64) Option { return header("If-Match", tagOf(version)) }

// Present makes a change of a scope require that the scope exists, at any version.
func Present() Option { return header("If-Match", "*") }

// Absent makes a change of a scope require that the scope does not exist.
func Absent() Option { return header("If-None-Match", "*") }

// IfNoneMatch reads a scope only if it has another version. Otherwise the call returns
// [ErrNotModified].
func IfNoneMatch(version int64) Option { return header("If-None-Match", tagOf(version)) }

func header(name, value string) Option {
	return Option{func(r *request) { r.header.Set(name, value) }}
}

// tagOf returns the entity tag of a version.
func tagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }
