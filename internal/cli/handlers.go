package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type handlersCommand struct {
	List   handlersList   `cmd:"" help:"List the handlers of a workspace."`
	Put    handlersPut    `cmd:"" help:"Declare a handler, or declare it anew."`
	Delete handlersDelete `cmd:"" help:"Take a handler away."`
}

type handlersList struct {
	doorFlags
	pageFlags
}

// Help is shown by kong.
func (handlersList) Help() string { return `    holdfast handlers list --db sqlite:holdfast.db` }

// Run lists handlers.
func (c *handlersList) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListHandlersPage(ctx, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"NAME", "KIND", "SAFETY", "ON UNKNOWN", "TIMEOUT", "URL"}}
		for _, x := range l.Items {
			t.add(x.Name, x.Kind, x.Safety, x.OnUnknown, timeout(x.TimeoutMs), x.URL)
		}
		return d.showList(raw, t, l.Next)
	})
}

func timeout(m wire.Millis) string {
	if m == 0 {
		return ""
	}
	return ms(m)
}

type handlersPut struct {
	doorFlags
	onceFlags
	Name      string        `arg:"" help:"The handler's name, as configs have it."`
	HandlerAt string        `setting:"-" name:"call" placeholder:"URL" help:"Where it is called. Without it, workers ask for its tasks."`
	Safety    string        `setting:"-" enum:",idempotent,transactional,journaled,opaque" default:"" placeholder:"SAFETY" help:"What is known of it when no answer is heard: idempotent, transactional, journaled or opaque."`
	OnUnknown string        `setting:"-" enum:",hold,retry,probe" default:"" placeholder:"POLICY" help:"What is done about an effect of which nothing is known: hold, retry or probe. By default hold."`
	Timeout   time.Duration `setting:"-" placeholder:"DURATION" help:"How long it may take. By default 15m."`
}

// Help is shown by kong.
func (handlersPut) Help() string {
	return `    holdfast handlers put Charge --safety journaled --on-unknown retry --db sqlite:holdfast.db
    holdfast handlers put Mail --call https://example.com/mail --safety idempotent --url http://127.0.0.1:7070`
}

// Run declares a handler.
func (c *handlersPut) Run(ctx context.Context, p *program, k *kong.Context) error {
	if err := positive("--timeout", c.Timeout); err != nil {
		return err
	}
	in := wire.PutHandler{Kind: "worker", URL: c.HandlerAt, Safety: c.Safety, OnUnknown: c.OnUnknown, TimeoutMs: wire.Ms(c.Timeout)}
	if in.URL != "" {
		in.Kind = "http"
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := d.PutHandler(ctx, c.Name, in, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, facts("name", x.Name, "kind", x.Kind, "url", x.URL, "safety", x.Safety, "on unknown", x.OnUnknown, "timeout", timeout(x.TimeoutMs),
			"updated", at(x.UpdatedAt), "secret", x.Secret))
	})
}

type handlersDelete struct {
	doorFlags
	onceFlags
	Name string `arg:"" help:"The handler's name."`
}

// Help is shown by kong.
func (handlersDelete) Help() string {
	return `    holdfast handlers delete Mail --db sqlite:holdfast.db`
}

// Run takes a handler away.
func (c *handlersDelete) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		if err := d.DeleteHandler(ctx, c.Name, c.options(&raw)...); err != nil {
			return err
		}
		return d.show(raw, facts("removed", c.Name))
	})
}
