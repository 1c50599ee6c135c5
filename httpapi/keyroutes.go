package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) keyRoutes() {
	add(a, route{Method: http.MethodPost, Path: "keys", ID: "createKey", Tag: "keys", Summary: "Create an API key. Its secret is returned only once.",
		Roles: admins, Status: http.StatusCreated, Idempotency: table.InTx, Adds: []quota.Kind{quota.Definitions},
		More: "If the [Key] was used before, the secret is empty."}, createKey)
	add(a, route{Method: http.MethodGet, Path: "keys", ID: "listKeys", Tag: "keys", Summary: "List the workspace's API keys.", Roles: admins}, listKeys)
	add(a, route{Method: http.MethodGet, Path: "keys/{id}", ID: "getKey", Tag: "keys", Summary: "Show an API key without its secret.", Roles: admins}, getKey)
	add(a, route{Method: http.MethodPost, Path: "keys/{id}/rotate", ID: "rotateKey", Tag: "keys", Summary: "Replace an API key with a new key that has the same permissions.",
		Roles: admins, Status: http.StatusCreated, Idempotency: table.InTx,
		More: "The secret of the new key is returned only once."}, rotateKey)
	add(a, route{Method: http.MethodDelete, Path: "keys/{id}", ID: "revokeKey", Tag: "keys", Summary: "Revoke an API key. All nodes begin to refuse it within 5 seconds.", Roles: admins, Idempotency: table.InTx, Frees: true}, revokeKey)
}

func keyOf(k keys.Key) wire.Key {
	w := wire.Key{ID: k.ID, Workspace: k.Workspace, Name: k.Name, Role: string(k.Role), Requesters: k.Requesters, Handlers: k.Handlers, RouteGroups: append([]string{}, k.Restrictions.RouteGroups...),
		Lifecycles: append([]string{}, k.Restrictions.Lifecycles...), From: make([]string, len(k.Restrictions.From)), Rate: k.Rate, CreatedBy: k.CreatedBy,
		CreatedAt: shapes.At(k.CreatedAt)}
	for i, n := range k.Restrictions.From {
		w.From[i] = n.String()
	}
	if w.Requesters == nil {
		w.Requesters = []string{}
	}
	if w.Handlers == nil {
		w.Handlers = []string{}
	}
	if k.ExpiresAt != nil {
		w.ExpiresAt = shapes.At(*k.ExpiresAt)
	}
	if k.RevokedAt != nil {
		w.RevokedAt = shapes.At(*k.RevokedAt)
	}
	if k.LastUsedAt != nil {
		w.LastUsedAt = shapes.At(*k.LastUsedAt)
	}
	return w
}

type createKeyIn struct{ Body wire.NewKey }

func createKey(c *call, in *createKeyIn) (wire.CreatedKey, error) {
	b := in.Body
	if !keys.Role(b.Role).Valid() {
		return wire.CreatedKey{}, fault.New(fault.Validation, "role must be %s, %s, %s or %s, got %q", keys.Read, keys.Operate, keys.Worker, keys.Admin, b.Role).With("pointer", "/role")
	}
	if b.Name == "" {
		b.Name = b.Role
	}
	if err := c.mayGrant(b.Requesters); err != nil {
		return wire.CreatedKey{}, err
	}
	from, err := keys.ParseNetworks(b.From)
	if err != nil {
		return wire.CreatedKey{}, withPointer(err, "lifetime", "lifetimeMs")
	}
	k, secret, err := keys.Create(c.ctx(), c.doer(), keys.CreateArgs{Name: b.Name, Role: keys.Role(b.Role), Requesters: b.Requesters, Handlers: b.Handlers, Rate: b.Rate,
		Restrictions: keys.Restrictions{RouteGroups: b.RouteGroups, Lifecycles: b.Lifecycles, From: from}, Lifetime: span(b.LifetimeMs), By: c.actor()})
	return c.created(k, secret), withPointer(err, "lifetime", "lifetimeMs")
}

// mayGrant refuses to grant a key requesters that the caller's key may not act for.
func (c *call) mayGrant(requesters []string) error {
	for _, name := range requesters {
		if !c.key.Speaks(name) {
			return fault.New(fault.Forbidden, "the %s may not act for requester %q, so it cannot grant that requester to another key: use one that lists the requester", c.credential(), name).With("pointer", "/requesters")
		}
	}
	return nil
}

// withPointer adds the JSON pointer of the member that a validation error is about. One of the fields
// has a different name in the document.
func withPointer(err error, field, as string) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.Validation {
		return err
	}
	name, _ := f.Fields["field"].(string)
	if name == field {
		name = as
	}
	return f.With("pointer", "/"+name)
}

// created returns a new key. The response stored for repetitions has no secret.
func (c *call) created(k keys.Key, secret string) wire.CreatedKey {
	c.storeAs = wire.CreatedKey{Key: keyOf(k)}
	return wire.CreatedKey{Key: keyOf(k), Secret: secret}
}

func listKeys(c *call, in *paged) (wire.List[wire.Key], error) {
	return list(c, *in, func(ctx context.Context, after string, limit int) ([]keys.Key, error) {
		return keys.List(ctx, c.doer(), after, limit)
	}, keyOf, func(k keys.Key) string { return k.ID })
}

type keyIn struct {
	ID string `path:"id"`
}

func getKey(c *call, in *keyIn) (wire.Key, error) {
	k, err := keys.Get(c.ctx(), c.doer(), in.ID)
	return keyOf(k), err
}

type rotateIn struct {
	ID   string         `path:"id"`
	Body wire.RotateKey `optional:"true"`
}

func rotateKey(c *call, in *rotateIn) (wire.CreatedKey, error) {
	old, err := keys.Get(c.ctx(), c.doer(), in.ID) // the requesters of a key do not change
	if err == nil {
		err = c.mayGrant(old.Requesters)
	}
	if err != nil {
		return wire.CreatedKey{}, err
	}
	k, secret, err := keys.Rotate(c.ctx(), c.doer(), in.ID, span(in.Body.OverlapMs), c.actor())
	return c.created(k, secret), withPointer(err, "overlap", "overlapMs")
}

func revokeKey(c *call, in *keyIn) (wire.Key, error) {
	k, err := keys.Revoke(c.ctx(), c.doer(), in.ID, c.actor())
	return keyOf(k), err
}
