package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) scopeRoutes() {
	const one, record = "scopes/{kind}/{id}", "scopes/{kind}/{id}/records/{field}/{key}"
	add(a, route{Method: http.MethodGet, Path: one, ID: "getScope", Tag: "scopes", Summary: "Show a scope, or watch it (text/event-stream).",
		Roles: readers, Stream: true, Conditional: true}, getScope)
	add(a, route{Method: http.MethodPatch, Path: one, ID: "patchScope", Tag: "scopes", Summary: "Merge a document into a scope's state (RFC 7396), or make the scope.",
		Roles: operators, Idempotency: table.InTx, Update: inTurn, Conditional: true, Merges: true}, patchScope)
	add(a, route{Method: http.MethodDelete, Path: one, ID: "deleteScope", Tag: "scopes", Summary: "Delete a scope.",
		Roles: operators, Idempotency: table.InTx, Update: inTurn, Conditional: true,
		More: "One that is not there changes nothing."}, deleteScope)
	add(a, route{Method: http.MethodPost, Path: one + "/inc", ID: "incScope", Tag: "scopes", Summary: "Add to the whole number in a field.",
		Roles: operators, Idempotency: table.InTx, Update: inTurn, Conditional: true,
		More: "A field that is missing is 0."}, incScope)
	add(a, route{Method: http.MethodPost, Path: one + "/push", ID: "pushScope", Tag: "scopes", Summary: "Add an item to the list in a field.",
		Roles: operators, Idempotency: table.InTx, Update: inTurn, Conditional: true,
		More: "A field that is missing is an empty list."}, pushScope)
	add(a, route{Method: http.MethodPut, Path: record, ID: "setScopeRecord", Tag: "scopes", Summary: "Put a record into the object in a field, under a key.",
		Roles: operators, Idempotency: table.InTx, Update: inTurn, Conditional: true,
		More: "A record that is nil is null."}, setScopeRecord)
	add(a, route{Method: http.MethodDelete, Path: record, ID: "deleteScopeRecord", Tag: "scopes", Summary: "Take a record out of the object in a field.",
		Roles: operators, Idempotency: table.InTx, Update: inTurn, Conditional: true,
		More: "One that is not there changes nothing."}, deleteScopeRecord)
}

// inTurn has the transaction of a request with a key stand in the scope's line, within its
// budget, as a change without a key does.
func inTurn(c *call, f func(context.Context, *store.Tx) error) error {
	return scope.Update(c.ctx(), c.api.hf, c.values["kind"], c.values["id"], func(ctx context.Context, tx holdfast.Tx) error { return f(ctx, store.TxOf(tx)) })
}

// snapshot is a scope whose state is handed on as it is.
type snapshot = scope.Snapshot[json.RawMessage]

// stateOf is the state, or null where there is none.
func stateOf(s snapshot) json.RawMessage {
	if !s.Exists {
		return nil
	}
	return s.State
}

func scopeOf(s snapshot) wire.Scope {
	return wire.Scope{Kind: s.Kind, ID: s.ID, Version: s.Version, State: stateOf(s)}
}

// tagOf is the entity tag of a version.
func tagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

type scopeIn struct {
	Kind string `path:"kind"`
	ID   string `path:"id"`
}

func getScope(c *call, in *scopeIn) (wire.Scope, error) {
	if c.wantsStream() {
		return wire.Scope{}, c.watchScope(in)
	}
	s, err := scope.In[json.RawMessage](c.doer(), in.Kind, in.ID).Get(c.ctx())
	if err == nil && !s.Exists {
		err = fault.New(fault.NotFound, "there is no %s scope %q", in.Kind, in.ID)
	}
	if err != nil {
		return wire.Scope{}, err
	}
	if err := c.moved(s); err != nil {
		return wire.Scope{}, err
	}
	c.etag = tagOf(s.Version)
	if c.names("If-None-Match", func(one string) bool { return strings.TrimPrefix(one, "W/") == c.etag }) {
		c.unchanged()
	}
	return scopeOf(s), nil
}

// names says that a condition of a read names what is there. A read may name several; a weak
// one is the same where the caller has it (If-None-Match), and never where it must be it
// (If-Match; RFC 9110, 13.1).
func (c *call) names(header string, same func(tag string) bool) bool {
	for _, one := range strings.Split(strings.Join(c.r.Header.Values(header), ","), ",") {
		if one = strings.TrimSpace(one); one == "*" || same(one) {
			return true
		}
	}
	return false
}

// moved refuses a read of a scope that is at none of the versions that If-Match names. It is
// violationsOf as a change is.
func (c *call) moved(s snapshot) error {
	match := c.r.Header.Values("If-Match")
	if len(match) == 0 || c.names("If-Match", func(one string) bool { return one == tagOf(s.Version) }) {
		return nil
	}
	f := fault.New(fault.PreconditionFailed, "%s scope %s is at version %d, and If-Match does not name that: load it again and decide anew", s.Kind, s.ID, s.Version)
	if version, err := versionIn(strings.Join(match, ",")); err == nil {
		f = f.With("expectedVersion", version)
	}
	return f.With("lastVersion", s.Version)
}

// unchanged answers that the caller has it already.
func (c *call) unchanged() {
	h := c.w.Header()
	h.Set("ETag", c.etag)
	h.Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusNotModified)
	c.done = true
}

// changing is a handle on a scope that is changed if it is as the caller says: If-Match has
// the version that was seen, or * for any that there is; If-None-Match has *, for a scope
// that must not be there.
func (c *call) changing(kind, id string) (scope.Scope[json.RawMessage], error) {
	want, err := wanted(c.r.Header.Values("If-Match"), c.r.Header.Values("If-None-Match"))
	return scope.In[json.RawMessage](c.doer(), kind, id, append(want, scope.By(c.actor()))...), err
}

func wanted(match, none []string) ([]scope.Option, error) {
	switch {
	case len(match)+len(none) == 0:
		return nil, nil
	case len(match)+len(none) > 1:
		return nil, fault.New(fault.Validation, "a change has one condition: If-Match or If-None-Match, once")
	case len(none) == 1 && none[0] == "*":
		return []scope.Option{scope.Absent()}, nil
	case len(none) == 1:
		return nil, fault.New(fault.Validation, "If-None-Match of a change is *: it is made if there is no such scope. If-Match names a version")
	case match[0] == "*":
		return []scope.Option{scope.Present()}, nil
	}
	version, err := versionIn(match[0])
	return []scope.Option{scope.ExpectVersion(version)}, err
}

// versionIn reads the tag of a version.
func versionIn(tag string) (int64, error) {
	switch {
	case strings.Contains(tag, ","):
		return 0, fault.New(fault.Validation, "If-Match has a list: name one version, such as \"5\"")
	case strings.HasPrefix(tag, "W/"):
		return 0, fault.New(fault.Validation, "If-Match has a weak tag: send it without W/, such as \"5\"")
	}
	version, err := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64)
	if err != nil || version < 0 || tagOf(version) != tag {
		return 0, fault.New(fault.Validation, "If-Match is the version that was seen, in quotes, such as \"5\", or * for any")
	}
	return version, nil
}

// changed tells what a change has made of a scope.
func (c *call) changed(s snapshot, err error) (wire.ChangedScope, error) {
	if err != nil {
		return wire.ChangedScope{}, err
	}
	if s.Exists {
		c.etag = tagOf(s.Version)
	}
	return wire.ChangedScope{Version: s.Version, State: stateOf(s), Changed: s.Changed}, nil
}

type patchScopeIn struct {
	Kind string          `path:"kind"`
	ID   string          `path:"id"`
	Body json.RawMessage `arg:"merge"`
}

func patchScope(c *call, in *patchScopeIn) (out wire.ChangedScope, err error) {
	s, err := c.changing(in.Kind, in.ID)
	if err != nil {
		return out, err
	}
	return c.changed(s.Patch(c.ctx(), in.Body))
}

func deleteScope(c *call, in *scopeIn) (out wire.ChangedScope, err error) {
	s, err := c.changing(in.Kind, in.ID)
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
	s, err := c.changing(in.Kind, in.ID)
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
	s, err := c.changing(in.Kind, in.ID)
	if err != nil {
		return out, err
	}
	if in.Body.Value == nil {
		return out, fault.New(fault.Validation, "value is missing: it is what is added, and may be null").With("pointer", "/value")
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
	s, err := c.changing(in.Kind, in.ID)
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
	s, err := c.changing(in.Kind, in.ID)
	if err != nil {
		return out, err
	}
	return c.changed(s.DeleteRecord(c.ctx(), in.Field, in.Key))
}

// watchScope tells how a scope is, and again whenever it has changed. The id of a message is
// the version; who comes back with that of the present state is told of the next one.
func (c *call) watchScope(in *scopeIn) error {
	told, last, err := c.lastSeen()
	if err != nil {
		return err
	}
	s := scope.In[json.RawMessage](c.api.hf, in.Kind, in.ID)
	if _, err := s.Get(c.ctx()); err != nil { // it is refused while there is still a status to do it with
		return err
	}
	return c.send(func(ctx context.Context, give func(message) error) error {
		changes, err := scope.In[unread](c.api.hf, in.Kind, in.ID).Watch(store.Gated(ctx, nil))
		if err != nil {
			return err
		}
		for change := range changes {
			if change.Err == nil && told && change.Version == last {
				continue
			}
			now, err := s.Get(ctx)                                               // when there is room for it
			for err = cmp.Or(change.Err, err); err != nil && ctx.Err() == nil; { // what is told last is how it is
				c.api.log.Warn("a scope that is watched cannot be read", "error", err)
				if clock.Wait(ctx, time.Second) == nil {
					now, err = s.Get(ctx)
				}
			}
			if err != nil {
				break
			}
			told, last = true, now.Version
			if give(scopeMessage(now)) != nil {
				break // the caller went away, and the context ends
			}
			c.share.Keep(0)
		}
		return nil
	})
}

// unread is a state that is not kept.
type unread struct{}

func (*unread) UnmarshalJSON([]byte) error { return nil }

// scopeMessage is what a watcher is told.
func scopeMessage(s snapshot) message {
	event := "state"
	if !s.Exists {
		event = "deleted"
	}
	return message{strconv.FormatInt(s.Version, 10), event, scopeOf(s)}
}

// lastSeen is the version that a watcher was told of before its connection broke.
func (c *call) lastSeen() (told bool, version int64, err error) {
	text := c.r.Header.Get("Last-Event-ID")
	if text == "" {
		return false, 0, nil
	}
	version, err = strconv.ParseInt(text, 10, 64)
	if err != nil || version < -1 {
		return false, 0, fault.New(fault.Validation, "Last-Event-ID is not one that was given out here: it is a version")
	}
	return true, version, nil
}
