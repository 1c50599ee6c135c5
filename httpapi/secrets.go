package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/secretref"
	"github.com/holdfast-go/holdfast/internal/secrets"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/webhooks"
	"github.com/holdfast-go/holdfast/internal/workflow"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) secretRoutes() {
	add(a, route{Method: http.MethodPut, Path: "secrets/{name}", ID: "putSecret", Tag: "secrets", Summary: "Store the value of a named secret.", Roles: admins, Also: http.StatusCreated,
		Idempotency: table.InTx, Adds: []quota.Kind{quota.Definitions}, Blind: true,
		More: "Handlers, webhooks and http steps refer to it by its name. No request returns the value."}, putSecret)
	add(a, route{Method: http.MethodGet, Path: "secrets", ID: "listSecrets", Tag: "secrets", Summary: "List the workspace's secrets, without their values.", Roles: readers}, listSecrets)
	add(a, route{Method: http.MethodGet, Path: "secrets/{name}", ID: "getSecret", Tag: "secrets", Summary: "Show a secret without its value.", Roles: readers}, getSecret)
	add(a, route{Method: http.MethodDelete, Path: "secrets/{name}", ID: "deleteSecret", Tag: "secrets", Summary: "Delete a secret that nothing refers to.", Roles: admins, Idempotency: table.InTx, Frees: true}, deleteSecret)
}

func secretMetaOf(s secrets.Secret) wire.Secret {
	out := wire.Secret{Name: s.Name, Version: s.Version, CreatedBy: s.CreatedBy, CreatedAt: shapes.At(s.CreatedAt), UpdatedBy: s.UpdatedBy, UpdatedAt: shapes.At(s.UpdatedAt)}
	if s.OverlapUntil != nil {
		out.OverlapUntil = shapes.At(*s.OverlapUntil)
	}
	return out
}

type putSecretIn struct {
	Name string `path:"name"`
	Body wire.PutSecret
}

func (in *putSecretIn) repeats(c *call) (bool, error) {
	_, err := secrets.Get(c.ctx(), c.api.engine, in.Name)
	return exists(err)
}

func putSecret(c *call, in *putSecretIn) (out wire.Secret, err error) {
	box, err := c.api.sealing()
	if err != nil {
		return out, err
	}
	b := in.Body
	err = c.update(func(ctx context.Context, tx *store.Tx) error {
		s, created, err := secrets.Put(ctx, tx, box, secrets.PutArgs{Name: in.Name, Value: b.Value, Overlap: span(b.OverlapMs), Expected: b.ExpectedVersion, By: c.actor()}, func() error {
			if secretref.CanSign(b.Value) {
				return nil
			}
			users, err := usersOf(ctx, tx, in.Name)
			for _, u := range users {
				if u.signs {
					return fault.New(fault.Validation, "%s is signed with this secret: the value must be whsec_ followed by 24 to 64 bytes in base64", u.what).With("pointer", "/value")
				}
			}
			return err
		})
		if out = secretMetaOf(s); created {
			c.status = http.StatusCreated
		}
		return err
	})
	return out, err
}

// user is what refers to a secret.
type user struct {
	what  string
	signs bool
}

// usersOf returns the handlers and webhooks that refer to a secret.
func usersOf(ctx context.Context, tx *store.Tx, name string) (users []user, err error) {
	const page = 1000
	add := func(what string, headers map[string]string, signedWith string) {
		if slices.Contains(secretref.NamesIn(headers, signedWith), name) {
			by, _ := secretref.Whole(signedWith)
			users = append(users, user{what, by == name})
		}
	}
	for after, more := "", true; more; {
		all, err := remotehandler.List(ctx, tx, after, page)
		if err != nil {
			return nil, err
		}
		for _, h := range all {
			add("handler "+h.Name, h.Headers, h.SignedWith())
			after = h.Name
		}
		more = len(all) == page
	}
	for after, more := "", true; more; {
		all, err := webhooks.List(ctx, tx, after, page)
		if err != nil {
			return nil, err
		}
		for _, w := range all {
			add("webhook "+w.ID, w.Headers, w.SignedWith)
			after = w.ID
		}
		more = len(all) == page
	}
	return users, nil
}

// runsWith returns a definition that refers to a secret and has a run that has not ended, or "".
func (c *call) runsWith(name string) (string, error) {
	for d, err := range store.Seq(func(after runengine.StoredDefinition, limit int) ([]runengine.StoredDefinition, error) {
		return runengine.Definitions(c.ctx(), c.doer(), after.ID, limit)
	}, func(d runengine.StoredDefinition) runengine.StoredDefinition { return d }) {
		if err != nil {
			return "", err
		}
		def, _ := workflow.Parse(d.Body)
		if def == nil || !slices.Contains(def.Secrets(), name) {
			continue
		}
		for _, status := range []string{runengine.Pending, runengine.Running, runengine.Waiting, runengine.Paused} {
			for _, err := range store.SeqFound(func(after runengine.Run, limit int) ([]store.Found[runengine.Run], error) {
				return runengine.List(c.ctx(), c.doer(), runengine.Filter{Status: status, Definition: d.ID}, after.ID, limit)
			}, func(r runengine.Run) string { return r.ID }) {
				return d.ID, err
			}
		}
	}
	return "", nil
}

func listSecrets(c *call, in *paged) (wire.List[wire.Secret], error) {
	return list(c, *in, func(ctx context.Context, after string, limit int) ([]secrets.Secret, error) {
		return secrets.List(ctx, c.doer(), after, limit)
	}, secretMetaOf, func(s secrets.Secret) string { return s.Name })
}

type secretIn struct {
	Name string `path:"name"`
}

func getSecret(c *call, in *secretIn) (wire.Secret, error) {
	s, err := secrets.Get(c.ctx(), c.doer(), in.Name)
	return secretMetaOf(s), err
}

func deleteSecret(c *call, in *secretIn) (*struct{}, error) {
	definition, err := c.runsWith(in.Name)
	if err != nil {
		return nil, err
	}
	return nil, c.update(func(ctx context.Context, tx *store.Tx) error {
		return secrets.Delete(ctx, tx, in.Name, c.actor(), func() error {
			users, err := usersOf(ctx, tx, in.Name)
			if err != nil {
				return err
			}
			if definition != "" {
				users = append(users, user{what: "definition " + definition + " with runs that have not ended"})
			}
			if len(users) == 0 {
				return nil
			}
			names := make([]string, len(users))
			for i, u := range users {
				names[i] = u.what
			}
			return fault.New(fault.Conflict, "secret %q is used by %s: change or delete what uses it first", in.Name, strings.Join(names, ", ")).With("usedBy", names)
		})
	})
}

// checkSigner refuses a reference to a secret that does not exist or cannot sign.
// In a transaction that has raised the revision of the registry, it can sign until the transaction ends.
func (c *call) checkSigner(ctx context.Context, tx *store.Tx, reference string) error {
	if !secretref.IsWhole(reference) {
		return nil
	}
	name, ok := secretref.Whole(reference)
	if !ok {
		return fault.New(fault.Validation, "the secret must be whsec_ followed by 24 to 64 bytes in base64, or secret:NAME for a named secret").With("pointer", "/secret")
	}
	if err := secrets.Check(ctx, tx, []string{name}); err != nil {
		return err
	}
	opened, err := secrets.Open(ctx, tx, c.api.box, nil, secrets.Signer{Stored: reference})
	if err != nil {
		return err
	}
	if !secretref.CanSign(opened.Signing[0]) {
		return fault.New(fault.Validation, "secret %q cannot sign: its value must be whsec_ followed by 24 to 64 bytes in base64", name).With("pointer", "/secret")
	}
	return nil
}
