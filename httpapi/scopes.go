package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) scopeRoutes() {
	const one, record = "scopes/{kind}/{id}", "scopes/{kind}/{id}/records/{field}/{key}"
	add(a, route{Method: http.MethodGet, Path: "scopes", ID: "listScopeKinds", Tag: "scopes", Summary: "List the kinds of scopes.",
		Roles: readers}, listScopeKinds)
	add(a, route{Method: http.MethodGet, Path: "scopes/{kind}", ID: "listScopes", Tag: "scopes", Summary: "List the scopes of a kind, without their states.",
		Roles: readers, Filter: "ScopeFilter",
		More: "A page can be short or empty and still have a next page."}, listScopes)
	add(a, route{Method: http.MethodPut, Path: one, ID: "putScope", Tag: "scopes", Summary: "Replace a scope's state, or create the scope.",
		Roles: operators, Idempotency: table.InTx, Adds: []quota.Kind{quota.Storage}, Update: inScopeQueue, Conditional: true,
		More: "With If-Match, it replaces exactly the version that you have read."}, putScope)
	add(a, route{Method: http.MethodGet, Path: one, ID: "getScope", Tag: "scopes", Summary: "Show a scope, or watch it (text/event-stream).",
		Roles: readers, Stream: true, Conditional: true,
		More: "The response for a scope that does not exist is NOT_FOUND; a watcher gets version -1."}, getScope)
	add(a, route{Method: http.MethodPatch, Path: one, ID: "patchScope", Tag: "scopes", Summary: "Merge a document into a scope's state (RFC 7396), or create the scope.",
		Roles: operators, Idempotency: table.InTx, Adds: []quota.Kind{quota.Storage}, Update: inScopeQueue, Conditional: true, Merges: true}, patchScope)
	add(a, route{Method: http.MethodDelete, Path: one, ID: "deleteScope", Tag: "scopes", Summary: "Delete a scope.",
		Roles: operators, Idempotency: table.InTx, Update: inScopeQueue, Conditional: true,
		More: "Deleting a scope that does not exist changes nothing."}, deleteScope)
	add(a, route{Method: http.MethodPost, Path: one + "/inc", ID: "incScope", Tag: "scopes", Summary: "Add to the integer in a field.",
		Roles: operators, Idempotency: table.InTx, Adds: []quota.Kind{quota.Storage}, Update: inScopeQueue, Conditional: true,
		More: "A missing field counts as 0."}, incScope)
	add(a, route{Method: http.MethodPost, Path: one + "/push", ID: "pushScope", Tag: "scopes", Summary: "Append an item to the list in a field.",
		Roles: operators, Idempotency: table.InTx, Adds: []quota.Kind{quota.Storage}, Update: inScopeQueue, Conditional: true,
		More: "A missing field counts as an empty list."}, pushScope)
	add(a, route{Method: http.MethodPut, Path: record, ID: "setScopeRecord", Tag: "scopes", Summary: "Set a record in the object in a field, under a key.",
		Roles: operators, Idempotency: table.InTx, Adds: []quota.Kind{quota.Storage}, Update: inScopeQueue, Conditional: true,
		More: "The record may be null."}, setScopeRecord)
	add(a, route{Method: http.MethodDelete, Path: record, ID: "deleteScopeRecord", Tag: "scopes", Summary: "Delete a record from the object in a field.",
		Roles: operators, Idempotency: table.InTx, Update: inScopeQueue, Conditional: true,
		More: "Deleting a record that does not exist changes nothing."}, deleteScopeRecord)
}

// inScopeQueue runs the transaction of a request with an idempotency key in the queue of the scope,
// within its budget, like a change without a key.
func inScopeQueue(c *call, f func(context.Context, *store.Tx) error) error {
	return scope.Update(c.ctx(), c.api.hf, c.values["kind"], c.values["id"], func(ctx context.Context, tx holdfast.Tx) error { return f(ctx, store.TxOf(tx)) })
}

// snapshot is a scope whose state is passed through as it is.
type snapshot = scope.Snapshot[json.RawMessage]

// stateOf returns the state, or null if the scope does not exist.
func stateOf(s snapshot) json.RawMessage {
	if !s.Exists {
		return nil
	}
	return s.State
}

func scopeOf(s snapshot) wire.Scope {
	return wire.Scope{Kind: s.Kind, ID: s.ID, Version: s.Version, State: stateOf(s)}
}

// tagOf returns the entity tag of a version.
func tagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

type scopeIn struct {
	Kind string `path:"kind"`
	ID   string `path:"id"`
}

type getScopeIn struct {
	Kind string `path:"kind"`
	ID   string `path:"id"`
	At   *int64 `query:"at" doc:"Show the scope as it was at this version."`
}

func getScope(c *call, in *getScopeIn) (wire.Scope, error) {
	if in.At != nil {
		return c.scopeAt(in)
	}
	if c.wantsStream() {
		return wire.Scope{}, c.watchScope(in)
	}
	s, err := scope.In[json.RawMessage](c.doer(), in.Kind, in.ID).Get(c.ctx())
	if err == nil && !s.Exists {
		err = fault.New(fault.NotFound, "%s scope %q does not exist", in.Kind, in.ID)
	}
	if err != nil {
		return wire.Scope{}, err
	}
	if err := c.checkIfMatch(s); err != nil {
		return wire.Scope{}, err
	}
	c.etag = tagOf(s.Version)
	if c.matchesTag("If-None-Match", func(one string) bool { return strings.TrimPrefix(one, "W/") == c.etag }) {
		c.unchanged()
	}
	return scopeOf(s), nil
}

// scopeAt returns an earlier version of a scope. It never changes, so conditions make no sense.
func (c *call) scopeAt(in *getScopeIn) (wire.Scope, error) {
	if c.wantsStream() || len(c.r.Header.Values("If-Match"))+len(c.r.Header.Values("If-None-Match")) > 0 {
		return wire.Scope{}, fault.New(fault.Validation, "at cannot be combined with If-Match, If-None-Match or an event stream: omit one of them")
	}
	s, err := scope.In[json.RawMessage](c.doer(), in.Kind, in.ID).GetAt(c.ctx(), *in.At)
	if err != nil {
		return wire.Scope{}, err
	}
	c.etag = tagOf(s.Version)
	return scopeOf(s), nil
}

type listScopeKindsIn struct{ paged }

func listScopeKinds(c *call, in *listScopeKindsIn) (wire.List[wire.ScopeKind], error) {
	return list(c, in.paged, func(ctx context.Context, after string, limit int) ([]string, error) {
		return scopestore.ListKinds(ctx, c.doer(), after, limit)
	}, func(kind string) wire.ScopeKind { return wire.ScopeKind{Kind: kind} }, func(kind string) string { return kind })
}

type listScopesIn struct {
	Kind   string `path:"kind"`
	Prefix string `query:"prefix" doc:"List only scopes whose ids begin with this text."`
	paged
}

func listScopes(c *call, in *listScopesIn) (wire.List[wire.ScopeInfo], error) {
	all, err := list(c, in.paged, func(ctx context.Context, after string, limit int) ([]scopestore.Entry, error) {
		return scopestore.List(ctx, c.doer(), scopestore.ListArgs{Kind: in.Kind, Prefix: in.Prefix, After: after, Limit: limit})
	}, func(e scopestore.Entry) *wire.ScopeInfo {
		if !e.Exists {
			return nil
		}
		return &wire.ScopeInfo{Kind: in.Kind, ID: e.ID, Version: e.Version, CreatedAt: shapes.At(e.CreatedAt), UpdatedAt: shapes.At(e.UpdatedAt), ExpiresAt: timeOrNil(e.ExpiresAt)}
	}, func(e scopestore.Entry) string { return e.ID })
	out := wire.List[wire.ScopeInfo]{Items: []wire.ScopeInfo{}, Next: all.Next}
	for _, x := range all.Items {
		if x != nil {
			out.Items = append(out.Items, *x)
		}
	}
	return out, err
}

// matchesTag reports whether a condition of a read names the current version. A read may name several
// tags. A weak tag matches for If-None-Match, but never for If-Match (RFC 9110, 13.1).
func (c *call) matchesTag(header string, same func(tag string) bool) bool {
	for _, one := range strings.Split(strings.Join(c.r.Header.Values(header), ","), ",") {
		if one = strings.TrimSpace(one); one == "*" || same(one) {
			return true
		}
	}
	return false
}

// checkIfMatch refuses a read of a scope whose version If-Match does not name, with the same error as a
// change.
func (c *call) checkIfMatch(s snapshot) error {
	match := c.r.Header.Values("If-Match")
	if len(match) == 0 || c.matchesTag("If-Match", func(one string) bool { return one == tagOf(s.Version) }) {
		return nil
	}
	f := fault.New(fault.PreconditionFailed, "%s scope %q is at version %d, which If-Match does not list: read the scope again and retry", s.Kind, s.ID, s.Version)
	if version, err := versionIn(strings.Join(match, ",")); err == nil {
		f = f.With("expectedVersion", version)
	}
	return f.With("lastVersion", s.Version)
}

// unchanged responds with 304.
func (c *call) unchanged() {
	h := c.w.Header()
	h.Set("ETag", c.etag)
	h.Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusNotModified)
	c.done = true
}

// scopeToChange returns a handle for a conditional change: If-Match has the expected version, or * for
// any existing scope; If-None-Match has *, for a scope that must not exist.
func (c *call) scopeToChange(kind, id string) (scope.Scope[json.RawMessage], error) {
	want, err := conditionsOf(c.r.Header.Values("If-Match"), c.r.Header.Values("If-None-Match"))
	return scope.In[json.RawMessage](c.doer(), kind, id, append(want, scope.By(c.actor()))...), err
}

func conditionsOf(match, none []string) ([]scope.Option, error) {
	switch {
	case len(match)+len(none) == 0:
		return nil, nil
	case len(match)+len(none) > 1:
		return nil, fault.New(fault.Validation, "a change can have only one condition: send a single If-Match or If-None-Match header")
	case len(none) == 1 && none[0] == "*":
		return []scope.Option{scope.Absent()}, nil
	case len(none) == 1:
		return nil, fault.New(fault.Validation, "If-None-Match on a change must be * (the scope must not exist), got %.80q: use If-Match to require a version", none[0])
	case match[0] == "*":
		return []scope.Option{scope.Present()}, nil
	}
	version, err := versionIn(match[0])
	return []scope.Option{scope.ExpectVersion(version)}, err
}

// versionIn parses the entity tag of a version.
func versionIn(tag string) (int64, error) {
	switch {
	case strings.Contains(tag, ","):
		return 0, fault.New(fault.Validation, "If-Match must not be a list: send one version, such as \"5\"")
	case strings.HasPrefix(tag, "W/"):
		return 0, fault.New(fault.Validation, "If-Match must not be a weak tag: send it without W/, such as \"5\"")
	}
	version, err := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64)
	if err != nil || version < 0 || tagOf(version) != tag {
		return 0, fault.New(fault.Validation, "If-Match must be a version in quotes, such as \"5\", or * for any, got %.80q", tag)
	}
	return version, nil
}

// changed returns the response to a change.
func (c *call) changed(s snapshot, err error) (wire.ChangedScope, error) {
	if err != nil {
		return wire.ChangedScope{}, c.conditionError(err)
	}
	if s.Exists {
		c.etag = tagOf(s.Version)
	}
	return wire.ChangedScope{Version: s.Version, State: stateOf(s), Changed: s.Changed}, nil
}

// conditionError converts the error for an expected version that does not match to the error for a condition in a
// header that does not match.
func (c *call) conditionError(err error) error {
	f, _ := errors.AsType[*fault.Error](err)
	if f == nil || f.Code != fault.Concurrency || len(c.r.Header.Values("If-Match"))+len(c.r.Header.Values("If-None-Match")) == 0 {
		return err
	}
	p := fault.New(fault.PreconditionFailed, "%s", f.Message).Wrap(err)
	p.Fields = f.Fields
	return p
}

type putScopeIn struct {
	Kind string          `path:"kind"`
	ID   string          `path:"id"`
	Body json.RawMessage `arg:"state"`
}

func putScope(c *call, in *putScopeIn) (out wire.ChangedScope, err error) {
	s, err := c.scopeToChange(in.Kind, in.ID)
	if err != nil {
		return out, err
	}
	return c.changed(s.Put(c.ctx(), in.Body))
}

type patchScopeIn struct {
	Kind string          `path:"kind"`
	ID   string          `path:"id"`
	Body json.RawMessage `arg:"merge"`
}

func patchScope(c *call, in *patchScopeIn) (out wire.ChangedScope, err error) {
	s, err := c.scopeToChange(in.Kind, in.ID)
	if err != nil {
		return out, err
	}
	return c.changed(s.Patch(c.ctx(), in.Body))
}

func deleteScope(c *call, in *scopeIn) (out wire.ChangedScope, err error) {
	s, err := c.scopeToChange(in.Kind, in.ID)
	if err != nil {
		return out, err
	}
	return c.changed(s.Delete(c.ctx()))
}

type incScopeIn struct {
	Kind string `path:"kind"`
	ID   string `path:"id"`
	Body wire.IncScope
}

func incScope(c *call, in *incScopeIn) (out wire.ChangedScope, err error) {
	s, err := c.scopeToChange(in.Kind, in.ID)
	if err != nil {
		return out, err
	}
	by := int64(1)
	if in.Body.By != nil {
		by = *in.Body.By
	}
	return c.changed(s.Inc(c.ctx(), in.Body.Field, by))
}

type pushScopeIn struct {
	Kind string `path:"kind"`
	ID   string `path:"id"`
	Body wire.PushScope
}

func pushScope(c *call, in *pushScopeIn) (out wire.ChangedScope, err error) {
	s, err := c.scopeToChange(in.Kind, in.ID)
	if err != nil {
		return out, err
	}
	if in.Body.Value == nil {
		return out, fault.New(fault.Validation, "value is required: set it to the item to append, which may be null").With("pointer", "/value")
	}
	return c.changed(s.Push(c.ctx(), in.Body.Field, in.Body.Value))
}

type setScopeRecordIn struct {
	Kind  string          `path:"kind"`
	ID    string          `path:"id"`
	Field string          `path:"field"`
	Key   string          `path:"key"`
	Body  json.RawMessage `arg:"record"`
}

func setScopeRecord(c *call, in *setScopeRecordIn) (out wire.ChangedScope, err error) {
	s, err := c.scopeToChange(in.Kind, in.ID)
	if err != nil {
		return out, err
	}
	return c.changed(s.SetRecord(c.ctx(), in.Field, in.Key, in.Body))
}

type scopeRecordIn struct {
	Kind  string `path:"kind"`
	ID    string `path:"id"`
	Field string `path:"field"`
	Key   string `path:"key"`
}

func deleteScopeRecord(c *call, in *scopeRecordIn) (out wire.ChangedScope, err error) {
	s, err := c.scopeToChange(in.Kind, in.ID)
	if err != nil {
		return out, err
	}
	return c.changed(s.DeleteRecord(c.ctx(), in.Field, in.Key))
}

// watchScope streams the current state of a scope, and then every change. The id of a message is
// the version; a caller that reconnects with the current version only gets the next change.
func (c *call) watchScope(in *getScopeIn) error {
	seen, last, err := c.lastSeen()
	if err != nil {
		return err
	}
	s := scope.In[json.RawMessage](c.api.hf, in.Kind, in.ID)
	if _, err := s.Get(c.ctx()); err != nil { // refuses the request while a status can still be sent
		return err
	}
	return c.send(func(ctx context.Context, emit func(message) error) error {
		// Watch says that there is a change, without decoding the state and without waiting for room. s.Get then reads
		// the state.
		for change, err := range scope.In[ignoredState](c.api.hf, in.Kind, in.ID).Watch(store.Gated(ctx, nil)) {
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return err
			case seen && change.Version == last:
				continue
			}
			now, err := s.Get(ctx)               // waits for room
			for err != nil && ctx.Err() == nil { // the last message must be the current state
				c.api.log.Warn("failed to read a watched scope", "error", err)
				if clock.Wait(ctx, time.Second) == nil {
					now, err = s.Get(ctx)
				}
			}
			if err != nil {
				break
			}
			seen, last = true, now.Version
			if emit(scopeMessage(now)) != nil {
				break // the caller has disconnected, and the context ends
			}
			c.share.Shrink(0)
		}
		return nil
	})
}

// ignoredState is a state that is not decoded.
type ignoredState struct{}

func (*ignoredState) UnmarshalJSON([]byte) error { return nil }

// scopeMessage returns the message for a snapshot.
func scopeMessage(s snapshot) message {
	event := "state"
	if !s.Exists {
		event = "deleted"
	}
	return message{strconv.FormatInt(s.Version, 10), event, scopeOf(s)}
}

// lastSeen returns the version in Last-Event-ID, if there is one.
func (c *call) lastSeen() (seen bool, version int64, err error) {
	text := c.r.Header.Get("Last-Event-ID")
	if text == "" {
		return false, 0, nil
	}
	version, err = strconv.ParseInt(text, 10, 64)
	if err != nil || version < -1 {
		return false, 0, fault.New(fault.Validation, "Last-Event-ID must be a version of the scope or -1, got %.80q: omit it to start with the current state", text)
	}
	return true, version, nil
}
