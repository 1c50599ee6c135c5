package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast/wire"
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

// GetScope returns a scope.
func (c *Client) GetScope(ctx context.Context, kind, id string, o ...Option) (wire.Scope, error) {
	return do[wire.Scope](ctx, c, newRequest(http.MethodGet, nil, "scopes", kind, id), o)
}

// PatchScope merges a document into a scope's state (RFC 7396), and makes the scope if there
// is none.
func (c *Client) PatchScope(ctx context.Context, kind, id string, merge json.RawMessage, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPatch, merge, "scopes", kind, id), o)
}

// IncScope adds to the whole number in a field. A field that is missing is 0.
func (c *Client) IncScope(ctx context.Context, kind, id string, in wire.IncScope, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPost, in, "scopes", kind, id, "inc"), o)
}

// PushScope adds an item to the list in a field. A field that is missing is an empty list.
func (c *Client) PushScope(ctx context.Context, kind, id string, in wire.PushScope, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPost, in, "scopes", kind, id, "push"), o)
}

// SetScopeRecord puts a record into the object in a field, under a key; nil is null.
func (c *Client) SetScopeRecord(ctx context.Context, kind, id, field, key string, record json.RawMessage, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPut, record, "scopes", kind, id, "records", field, key), o)
}

// DeleteScopeRecord takes a record out of the object in a field. One that is not there
// changes nothing.
func (c *Client) DeleteScopeRecord(ctx context.Context, kind, id, field, key string, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodDelete, nil, "scopes", kind, id, "records", field, key), o)
}

// DeleteScope deletes a scope. One that is not there changes nothing.
func (c *Client) DeleteScope(ctx context.Context, kind, id string, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodDelete, nil, "scopes", kind, id), o)
}

// WatchScope gives a scope as it is, and again whenever it has changed, until the loop
// breaks, ctx ends, or the server refuses; the last is the error of the last pair. Where
// there is none, its version is -1. Who is slow is told of the last change, not of each. A
// connection that breaks is made anew, and the same is not told twice.
func (c *Client) WatchScope(ctx context.Context, kind, id string) iter.Seq2[wire.Scope, error] {
	return func(yield func(wire.Scope, error) bool) {
		f := &following[wire.Scope]{c: c, path: []string{"scopes", kind, id}, yield: yield, b: c.backoff()}
		if err := f.run(ctx); err != nil {
			yield(wire.Scope{}, err)
		}
	}
}
