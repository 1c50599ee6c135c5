package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/httpapi/internal/webhooksender"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/secretref"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/webhooks"
	"github.com/holdfast-go/holdfast/webhook"
	"github.com/holdfast-go/holdfast/wire"
)

// openBox creates the box that encrypts secrets, if there are keys.
func (a *API) openBox() (err error) {
	if len(a.o.SecretKeys) > 0 {
		a.box, err = seal.New(a.o.SecretKeys...)
	}
	return err
}

// serveWebhooks sends webhooks while the engine runs. A node without secret keys leaves them to
// others.
func (a *API) serveWebhooks() {
	if a.box == nil {
		return
	}
	a.hooks = webhooksender.New(a.engine, a.box, a.policy, a.log)
	a.engine.Background(a.hooks.Run)
}

func (a *API) webhookRoutes() {
	add(a, route{Method: http.MethodPost, Path: "webhooks", ID: "createWebhook", Tag: "webhooks", Summary: "Create a webhook. Its secret is returned only once.",
		Roles: admins, Status: http.StatusCreated, Idempotency: table.InTx, Adds: []quota.Kind{quota.Definitions},
		More: "If the [Key] was used before, the secret is empty."}, createWebhook)
	add(a, route{Method: http.MethodGet, Path: "webhooks", ID: "listWebhooks", Tag: "webhooks", Summary: "List the workspace's webhooks.", Roles: readers}, listWebhooks)
	add(a, route{Method: http.MethodGet, Path: "webhooks/{id}", ID: "getWebhook", Tag: "webhooks", Summary: "Show a webhook without its secret.", Roles: readers}, getWebhook)
	add(a, route{Method: http.MethodPost, Path: "webhooks/{id}/rotate", ID: "rotateWebhook", Tag: "webhooks", Summary: "Rotate a webhook's secret. The new secret is returned only once.",
		Roles: admins, Idempotency: table.InTx}, rotateWebhook)
	add(a, route{Method: http.MethodDelete, Path: "webhooks/{id}", ID: "deleteWebhook", Tag: "webhooks", Summary: "Delete a webhook.", Roles: admins, Idempotency: table.InTx, Frees: true}, deleteWebhook)
}

func webhookOf(w webhooks.Webhook) wire.Webhook {
	out := wire.Webhook{ID: w.ID, Name: w.Name, URL: w.URL, Events: w.Events, Streams: w.Streams, Source: "event", Reaction: webhooks.Reaction(w.ID),
		Headers: w.Headers, SignedWith: w.SignedWith, CreatedBy: w.CreatedBy, CreatedAt: shapes.At(w.CreatedAt)}
	if strings.HasPrefix(w.Streams, reactions.Own) {
		out.Source = "history"
	}
	if w.RotatedAt != nil {
		out.RotatedAt = shapes.At(*w.RotatedAt)
	}
	if w.OverlapUntil != nil {
		out.OverlapUntil = shapes.At(*w.OverlapUntil)
	}
	return out
}

// sealing returns the box that encrypts secrets.
func (a *API) sealing() (*seal.Box, error) {
	if a.box == nil {
		return nil, fault.New(fault.Unavailable, "secrets cannot be stored: start the server with an encryption key (HOLDFAST_SECRET_KEY)")
	}
	return a.box, nil
}

// secretOf returns the given secret or reference, or a new secret.
func (c *call) secretOf(given string) (string, error) {
	if given == "" {
		return webhook.NewSecret(), nil
	}
	if secretref.IsWhole(given) {
		return given, nil
	}
	if !strings.HasPrefix(given, "whsec_") {
		return "", fault.New(fault.Validation, "a webhook secret must begin with whsec_, or be secret:NAME").With("pointer", "/secret")
	}
	_, err := webhook.NewVerifier(given)
	return given, err
}

type createWebhookIn struct{ Body wire.NewWebhook }

func createWebhook(c *call, in *createWebhookIn) (wire.CreatedWebhook, error) {
	var none wire.CreatedWebhook
	box, err := c.api.sealing()
	if err != nil {
		return none, err
	}
	b := in.Body
	if _, err := c.api.policy.CheckURL(b.URL); err != nil {
		err = badURL(err)
		return none, err
	}
	if secretref.In(b.URL) {
		return none, badURL(fault.New(fault.Validation, "the URL must not contain a reference to a secret, because URLs are logged and shown: use a header"))
	}
	// a webhook can follow what a reaction can
	d, err := definition("webhook", wire.PutReaction{Events: b.Events, Streams: b.Streams, Source: b.Source})
	if err != nil {
		return none, err
	}
	secret, err := c.secretOf(b.Secret)
	if err != nil {
		return none, err
	}
	headers, err := secretref.CheckHeaders(b.Headers)
	if err != nil {
		return none, err
	}
	var w webhooks.Webhook
	err = c.update(func(ctx context.Context, tx *store.Tx) (err error) {
		if w, err = webhooks.Create(ctx, tx, box, webhooks.CreateArgs{Name: b.Name, URL: b.URL, Events: b.Events, Streams: d.Streams, Headers: headers, Secret: secret, By: c.actor()}); err != nil {
			return err
		}
		return c.checkSigner(ctx, tx, secret)
	})
	if err != nil {
		return none, err
	}
	c.w.Header().Set("Location", table.Base+"webhooks/"+url.PathEscape(w.ID))
	return c.createdWebhook(w, secret), nil
}

// createdWebhook returns a webhook with its new secret. The response stored for repetitions has none.
func (c *call) createdWebhook(w webhooks.Webhook, secret string) wire.CreatedWebhook {
	c.storeAs = wire.CreatedWebhook{Webhook: webhookOf(w)}
	if secretref.IsWhole(secret) {
		secret = ""
	}
	return wire.CreatedWebhook{Webhook: webhookOf(w), Secret: secret}
}

func listWebhooks(c *call, in *paged) (wire.List[wire.Webhook], error) {
	return list(c, *in, func(ctx context.Context, after string, limit int) ([]webhooks.Webhook, error) {
		return webhooks.List(ctx, c.doer(), after, limit)
	}, webhookOf, func(w webhooks.Webhook) string { return w.ID })
}

type webhookIn struct {
	ID string `path:"id"`
}

func getWebhook(c *call, in *webhookIn) (wire.Webhook, error) {
	w, err := webhooks.Get(c.ctx(), c.doer(), in.ID)
	return webhookOf(w), err
}

type rotateWebhookIn struct {
	ID   string             `path:"id"`
	Body wire.RotateWebhook `optional:"true"`
}

func rotateWebhook(c *call, in *rotateWebhookIn) (wire.CreatedWebhook, error) {
	var none wire.CreatedWebhook
	box, err := c.api.sealing()
	if err != nil {
		return none, err
	}
	if ms := in.Body.OverlapMs; ms < 0 || ms > wire.Ms(webhooks.MaxOverlap) {
		return none, fault.New(fault.Validation, "overlapMs must be between 0 and %d, got %d", wire.Ms(webhooks.MaxOverlap), ms).With("pointer", "/overlapMs")
	}
	secret, err := c.secretOf(in.Body.Secret)
	if err != nil {
		return none, err
	}
	var w webhooks.Webhook
	err = c.update(func(ctx context.Context, tx *store.Tx) (err error) {
		if w, err = webhooks.Rotate(ctx, tx, box, in.ID, secret, in.Body.OverlapMs.Duration(), c.actor()); err != nil {
			return err
		}
		return c.checkSigner(ctx, tx, secret)
	})
	if err != nil {
		return none, err
	}
	return c.createdWebhook(w, secret), nil
}

func deleteWebhook(c *call, in *webhookIn) (*struct{}, error) {
	return nil, webhooks.Remove(c.ctx(), c.doer(), in.ID, c.actor())
}
