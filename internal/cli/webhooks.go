package cli

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/wire"
)

type webhooksCommand struct {
	List   webhooksList   `cmd:"" help:"List the webhooks of a workspace."`
	Create webhooksCreate `cmd:"" help:"Create a webhook that sends events to a URL."`
	Rotate webhooksRotate `cmd:"" help:"Rotate a webhook's secret."`
	Delete webhooksDelete `cmd:"" help:"Delete a webhook."`
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
	To      string            `arg:"" help:"Webhook URL."`
	Name    string            `setting:"-" placeholder:"NAME" help:"Webhook name."`
	Events  []string          `setting:"-" placeholder:"NAME,…" help:"Event names. Default: all events."`
	Streams string            `setting:"-" placeholder:"RE2" help:"Pattern that stream names must match. Default: all streams."`
	Header  map[string]string `setting:"-" mapsep:"none" placeholder:"NAME=VALUE" help:"Header of each message, such as 'X-Token=${secret:token}'. Repeat the flag for each."`
	Secret  string            `setting:"-" name:"signed-with" placeholder:"secret:NAME" help:"Named secret that signs messages. Default: an own one."`
	Source  string            `setting:"-" enum:",event,history" default:"" placeholder:"SOURCE" help:"Where events come from: user streams (event) or histories (history). Default: derived from the pattern."`
}

func (c *webhooksCreate) Run(ctx context.Context, to *target) error {
	d, err := to.openUnless(ctx, signedWith(c.Secret))
	if err != nil {
		return err
	}
	x, err := d.CreateWebhook(ctx, wire.NewWebhook{URL: c.To, Name: c.Name, Events: c.Events, Streams: c.Streams, Source: c.Source, Headers: c.Header, Secret: c.Secret}, c.options(d)...)
	return d.show(webhookFacts(x), err)
}

// signedWith refuses the value of a secret in an argument, which other processes and the history of the shell show.
func signedWith(reference string) error {
	if reference != "" && !strings.HasPrefix(reference, "secret:") {
		return misuse("--signed-with must be secret:NAME: store the value with holdfast secrets set NAME")
	}
	return nil
}

func webhookFacts(x wire.CreatedWebhook) *table {
	return facts("id", x.ID, "name", x.Name, "url", x.URL, "events", strings.Join(x.Events, ","), "streams", x.Streams, "reaction", x.Reaction, "headers", headerNames(x.Headers), "signed with", x.SignedWith, "secret", x.Secret)
}

type webhooksRotate struct {
	idempotencyFlags
	ID      string        `arg:"" help:"Webhook id."`
	Overlap time.Duration `setting:"-" placeholder:"DURATION" help:"How long messages are also signed with the old secret. Default: 0s."`
}

func (c *webhooksRotate) Run(ctx context.Context, to *target) error {
	d, err := to.openUnless(ctx, notNegative("--overlap", c.Overlap))
	if err != nil {
		return err
	}
	x, err := d.RotateWebhook(ctx, c.ID, wire.RotateWebhook{OverlapMs: wire.Ms(c.Overlap)}, c.options(d)...)
	return d.show(webhookFacts(x), err)
}

type webhooksDelete struct {
	idempotencyFlags
	ID string `arg:"" help:"Webhook id."`
}

func (c *webhooksDelete) Run(ctx context.Context, d *connection) error {
	return d.show(facts("removed", c.ID), d.DeleteWebhook(ctx, c.ID, c.options(d)...))
}
