// Package remotehandler stores the declarations of remote handlers: URLs that
// Holdfast calls, and workers that claim tasks. A handler is declared in a
// workspace, under the name that configs use.
package remotehandler

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/secretref"
	"github.com/holdfast-go/holdfast/internal/secrets"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Handler is the declaration of a handler.
type Handler struct {
	Name   string `arg:"name"`
	Kind   string `arg:"kind"` // http or worker
	URL    string `arg:"url"`
	Safety string `arg:"safety"` // idempotent, transactional, journaled, opaque; "" means undeclared
	// OnUnknown is the policy for an effect with an unknown outcome: hold, retry or
	// probe.
	OnUnknown string        `arg:"unknown"`
	Timeout   time.Duration `arg:"timeout"` // 0 means the default
	Secret    string        `arg:"secret"`  // encrypted, by package seal, or a reference secret:NAME
	// Headers are sent with each call. Their values may contain references ${secret:NAME}.
	Headers   map[string]string
	CreatedAt time.Time
	UpdatedAt time.Time

	headers string `arg:"headers"` // as JSON
}

type listArgs struct {
	name  string `arg:"name"`
	after string `arg:"after"`
	limit int    `arg:"limit"`
}

var (
	putVerb = store.VerbOf[Handler](store.Decl{Name: "handlers.put", Idempotent: true},
		func(h Handler) []string { return []string{"handler/" + h.Name} },
		store.ScanValue[int64])
	deleteVerb = store.NewVerb(store.Decl{Name: "handlers.delete", Idempotent: true},
		func(name string) []string { return []string{"handler/" + name} },
		store.TextArg("name"),
		store.ScanApplied)
	listVerb = store.VerbOf[listArgs](store.Decl{Name: "handlers.list", Lane: store.Read}, nil,
		func(all *[]Handler, row store.Row) error {
			var h Handler
			var timeout int64
			err := row.Scan(&h.Name, &h.Kind, &h.URL, &h.Safety, &h.OnUnknown, &timeout, &h.Secret, &h.headers, &h.CreatedAt, &h.UpdatedAt)
			h.Timeout = time.Duration(timeout) * time.Millisecond
			if err == nil {
				err = json.Unmarshal([]byte(h.headers), &h.Headers)
			}
			*all = append(*all, h)
			return err
		})
)

// Longest is the maximum timeout of a handler.
const Longest = 24 * time.Hour

// Check validates a handler, except its URL, which the caller of the URL checks.
func (h Handler) Check() error {
	if err := strictjson.Text("handler", h.Name, events.MaxName); err != nil {
		return err
	}
	if strings.HasPrefix(h.Name, "$") {
		return fault.New(fault.Validation, "handler name %q is reserved: choose a name that does not begin with $", h.Name)
	}
	switch {
	case h.Kind != "http" && h.Kind != "worker":
		return fault.New(fault.Validation, "kind must be http or worker, got %q", h.Kind).With("pointer", "/kind")
	case h.Kind == "worker" && len(h.Headers) > 0:
		return fault.New(fault.Validation, "a worker must not have headers, because it claims its tasks: remove the headers, or use kind http").With("pointer", "/headers")
	case secretref.In(h.URL):
		return fault.New(fault.Validation, "the URL must not contain a reference to a secret, because URLs are logged and shown: use a header").With("pointer", "/url")
	case h.Kind == "worker" && h.URL != "":
		return fault.New(fault.Validation, "a worker must not have a URL, because it claims its tasks: remove the URL, or use kind http").With("pointer", "/url")
	case h.Timeout < 0 || h.Timeout > Longest:
		return fault.New(fault.Validation, "timeoutMs must be between 0 and 86400000 (a day), got %d", h.Timeout.Milliseconds()).With("pointer", "/timeoutMs")
	}
	switch h.Safety {
	case "", "idempotent", "transactional", "journaled", "opaque":
	default:
		return fault.New(fault.Validation, "safety must be idempotent, transactional, journaled or opaque, got %q", h.Safety).With("pointer", "/safety")
	}
	switch h.OnUnknown {
	case "hold", "retry", "probe":
		return nil
	}
	return fault.New(fault.Validation, "onUnknown must be hold, retry or probe, got %q", h.OnUnknown).With("pointer", "/onUnknown")
}

// Put creates or replaces a handler in the context's workspace, and reports
// whether it was created. It raises the revision of the workspace's registry, so that
// every node reads the declaration before its next write.
func Put(ctx context.Context, tx *store.Tx, h Handler) (created bool, err error) {
	if err := h.Check(); err != nil {
		return false, err
	}
	if h.headers, err = secretref.Encode(h.Headers); err != nil {
		return false, err
	}
	if _, err := store.Raise(ctx, tx); err != nil {
		return false, err
	}
	was, err := shown(ctx, tx, h.Name)
	if err != nil {
		return false, err
	}
	if err := secrets.Check(ctx, tx, secretref.NamesIn(h.Headers, h.Secret)); err != nil {
		return false, err
	}
	if h.Kind == "worker" && h.Secret == "" {
		if all, err := listVerb.Do(ctx, tx, listArgs{name: h.Name, limit: 1}); err != nil {
			return false, err
		} else if len(all) > 0 && all[0].SignedWith() != "" { // nothing is signed for a worker, so the reference must not keep the secret in use
			if _, err := deleteVerb.Do(ctx, tx, h.Name); err != nil {
				return false, err
			}
		}
	}
	n, err := putVerb.Do(ctx, tx, h)
	if err != nil {
		return false, err
	}
	created = n == 1 && was == nil
	now, err := shown(ctx, tx, h.Name)
	if err != nil {
		return false, err
	}
	if (h.Secret == "" || secretref.IsWhole(h.Secret)) && reflect.DeepEqual(was, now) { // without a secret, the stored one is kept
		return created, nil
	}
	return created, audit.Record(ctx, tx, audit.Action{Name: "handler.put", Subject: "handler/" + h.Name, Before: was, After: now})
}

// shown returns a handler as the audit shows it, without its secret, or nil.
func shown(ctx context.Context, tx *store.Tx, name string) (any, error) {
	all, err := listVerb.Do(ctx, tx, listArgs{name: name, limit: 1})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	h := all[0]
	out := map[string]any{"kind": h.Kind, "url": h.URL, "safety": h.Safety, "onUnknown": h.OnUnknown, "timeoutMs": h.Timeout.Milliseconds(), "signed": len(h.Secret) > 0}
	if len(h.Headers) > 0 {
		out["headers"] = h.Headers
	}
	if by := h.SignedWith(); by != "" {
		out["signedWith"] = by
	}
	return out, nil
}

// SignedWith returns the reference to the secret that signs calls, or "" for a secret of the handler's own.
func (h Handler) SignedWith() string {
	if secretref.IsWhole(h.Secret) {
		return h.Secret
	}
	return ""
}

// Delete deletes a handler, and reports whether it existed.
func Delete(ctx context.Context, tx *store.Tx, name string) (bool, error) {
	if _, err := store.Raise(ctx, tx); err != nil {
		return false, err
	}
	was, err := shown(ctx, tx, name)
	if err != nil || was == nil {
		return false, err
	}
	deleted, err := deleteVerb.Do(ctx, tx, name)
	if err != nil || !deleted {
		return deleted, err
	}
	return true, audit.Record(ctx, tx, audit.Action{Name: "handler.delete", Subject: "handler/" + name, Before: was})
}

// Get returns a handler, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, name string) (Handler, error) {
	all, err := listVerb.Do(ctx, d, listArgs{name: name, limit: 1})
	return store.First(all, err, func() error { return fault.New(fault.NotFound, "handler %q does not exist", name) })
}

// List returns handlers ordered by name, after the given name.
func List(ctx context.Context, d store.Doer, after string, limit int) ([]Handler, error) {
	return listVerb.Do(ctx, d, listArgs{after: after, limit: limit})
}
