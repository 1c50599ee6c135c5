package client

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast/fault"
)

// ErrNotModified is returned by [Client.GetScope] with [IfNoneMatch] if the scope still has that
// version.
var ErrNotModified = errors.New("the scope has not changed")

// ExpectVersion applies a change only if the scope is at this version. Otherwise the call returns an error with the
// code [fault.PreconditionFailed], which [errors.Is] also recognizes as [fault.Concurrency], with the field
// lastVersion. Calls that do not change a scope refuse this option.
func ExpectVersion(version int64) Option {
	return condition("ExpectVersion", "If-Match", tagOf(version))
}

// Present applies a change only if the scope exists, whatever its version. Calls that do not change a scope refuse this
// option.
func Present() Option { return condition("Present", "If-Match", "*") }

// Absent applies a change only if the scope does not exist. Calls that do not change a scope refuse this option.
func Absent() Option { return condition("Absent", "If-None-Match", "*") }

// IfNoneMatch reads a scope only if the scope is not at this version. Otherwise the call returns
// [ErrNotModified]. Calls other than [Client.GetScope] refuse this option.
func IfNoneMatch(version int64) Option {
	return Option{func(r *request) {
		if r.path[0] != "scopes" || len(r.path) != 3 || r.method != http.MethodGet {
			r.refused = fault.New(fault.Validation, "IfNoneMatch applies only to GetScope: remove the option")
		}
		r.header.Set("If-None-Match", tagOf(version))
	}}
}

// condition returns an option that sends the condition of a change of a scope. Other routes do not
// read the header, so the change would be made in any case.
func condition(option, header, value string) Option {
	return Option{func(r *request) {
		if r.path[0] != "scopes" || r.method == http.MethodGet {
			r.refused = fault.New(fault.Validation, "%s applies only to calls that change a scope: remove the option", option)
		}
		r.header.Set(header, value)
	}}
}

// tagOf returns the entity tag of a version.
func tagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }
