package cli

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type webhooksCommand struct {
	List   webhooksList   `cmd:"" help:"List the webhooks of a workspace."`
	Create webhooksCreate `cmd:"" help:"Have events sent to a URL."`
	Rotate webhooksRotate `cmd:"" help:"Give a webhook another secret."`
	Delete webhooksDelete `cmd:"" help:"Remove a webhook."`
}

type webhooksList struct {
	doorFlags
	pageFlags
}

// Help is shown by kong.
func (webhooksList) Help() string { return `    holdfast webhooks list --url http://127.0.0.1:7070` }

// Run lists webhooks.
func (c *webhooksList) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListWebhooksPage(ctx, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"ID", "NAME", "EVENTS", "STREAMS", "URL"}}
		for _, x := range l.Items {
			t.add(x.ID, x.Name, strings.Join(x.Events, ","), x.Streams, x.URL)
		}
		return d.showList(raw, t, l.Next)
	})
}

type webhooksCreate struct {
	doorFlags
	onceFlags
	To      string   `arg:"" help:"The URL."`
	Name    string   `setting:"-" placeholder:"NAME" help:"What to call it."`
	Events  []string `setting:"-" placeholder:"NAME,…" help:"The names of events. By default all."`
	Streams string   `setting:"-" placeholder:"RE2" help:"A pattern of streams. By default all."`
	Source  string   `setting:"-" enum:",event,history" default:"" placeholder:"SOURCE" help:"The streams that are appended to (event), or the histories (history). By default as the pattern says."`
}

// Help is shown by kong.
func (webhooksCreate) Help() string {
	return `The secret that messages are signed with is told this once:

    holdfast webhooks create https://example.com/hook --events paid --url http://127.0.0.1:7070`
}

// Run makes a webhook.
func (c *webhooksCreate) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := d.CreateWebhook(ctx, wire.NewWebhook{URL: c.To, Name: c.Name, Events: c.Events, Streams: c.Streams, Source: c.Source}, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, webhookFacts(x))
	})
}

func webhookFacts(x wire.CreatedWebhook) *table {
	return facts("id", x.ID, "name", x.Name, "url", x.URL, "events", strings.Join(x.Events, ","), "streams", x.Streams, "reaction", x.Reaction, "secret", x.Secret)
}

type webhooksRotate struct {
	doorFlags
	onceFlags
	ID      string        `arg:"" help:"The webhook's id."`
	Overlap time.Duration `setting:"-" placeholder:"DURATION" help:"How long messages are signed with the old secret, too. By default not at all."`
}

// Help is shown by kong.
func (webhooksRotate) Help() string {
	return `    holdfast webhooks rotate 06gtupmm4toh38tmcgqepcp76g --overlap 24h --url http://127.0.0.1:7070`
}

// Run gives a webhook another secret.
func (c *webhooksRotate) Run(ctx context.Context, p *program, k *kong.Context) error {
	if err := positive("--overlap", c.Overlap); err != nil {
		return err
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := d.RotateWebhook(ctx, c.ID, wire.RotateWebhook{OverlapMs: wire.Ms(c.Overlap)}, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, webhookFacts(x))
	})
}

type webhooksDelete struct {
	doorFlags
	onceFlags
	ID string `arg:"" help:"The webhook's id."`
}

// Help is shown by kong.
func (webhooksDelete) Help() string {
	return `    holdfast webhooks delete 06gtupmm4toh38tmcgqepcp76g --url http://127.0.0.1:7070`
}

// Run removes a webhook.
func (c *webhooksDelete) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		if err := d.DeleteWebhook(ctx, c.ID, c.options(&raw)...); err != nil {
			return err
		}
		return d.show(raw, facts("removed", c.ID))
	})
}
