package cli

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/wire"
)

type webhooksCommand struct {
	List   webhooksList   `cmd:"" help:"List the webhooks of a workspace."`
	Create webhooksCreate `cmd:"" help:"Have events sent to a URL."`
	Rotate webhooksRotate `cmd:"" help:"Give a webhook another secret."`
	Delete webhooksDelete `cmd:"" help:"Remove a webhook."`
}

type webhooksList struct {
	pageFlags
}

func (c *webhooksList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListWebhooksPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"ID", "NAME", "EVENTS", "STREAMS", "URL"}}
	for _, x := range l.Items {
		t.add(x.ID, x.Name, strings.Join(x.Events, ","), x.Streams, x.URL)
	}
	return d.showList(t, l.Next, err)
}

type webhooksCreate struct {
	idempotencyFlags
	To      string   `arg:"" help:"The URL."`
	Name    string   `setting:"-" placeholder:"NAME" help:"What to call it."`
	Events  []string `setting:"-" placeholder:"NAME,…" help:"The names of events. By default all."`
	Streams string   `setting:"-" placeholder:"RE2" help:"A pattern of streams. By default all."`
	Source  string   `setting:"-" enum:",event,history" default:"" placeholder:"SOURCE" help:"The streams that are appended to (event), or the histories (history). By default as the pattern says."`
}

func (c *webhooksCreate) Run(ctx context.Context, d *connection) error {
	x, err := d.CreateWebhook(ctx, wire.NewWebhook{URL: c.To, Name: c.Name, Events: c.Events, Streams: c.Streams, Source: c.Source}, c.options(d)...)
	return d.show(webhookFacts(x), err)
}

func webhookFacts(x wire.CreatedWebhook) *table {
	return facts("id", x.ID, "name", x.Name, "url", x.URL, "events", strings.Join(x.Events, ","), "streams", x.Streams, "reaction", x.Reaction, "secret", x.Secret)
}

type webhooksRotate struct {
	idempotencyFlags
	ID      string        `arg:"" help:"The webhook's id."`
	Overlap time.Duration `setting:"-" placeholder:"DURATION" help:"How long messages are signed with the old secret, too. By default not at all."`
}

func (c *webhooksRotate) Run(ctx context.Context, to *target) error {
	d, err := to.openUnless(ctx, positive("--overlap", c.Overlap))
	if err != nil {
		return err
	}
	x, err := d.RotateWebhook(ctx, c.ID, wire.RotateWebhook{OverlapMs: wire.Ms(c.Overlap)}, c.options(d)...)
	return d.show(webhookFacts(x), err)
}

type webhooksDelete struct {
	idempotencyFlags
	ID string `arg:"" help:"The webhook's id."`
}

func (c *webhooksDelete) Run(ctx context.Context, d *connection) error {
	return d.show(facts("removed", c.ID), d.DeleteWebhook(ctx, c.ID, c.options(d)...))
}
