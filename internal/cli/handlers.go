package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/wire"
)

type handlersCommand struct {
	List   handlersList   `cmd:"" help:"List the handlers of a workspace."`
	Put    handlersPut    `cmd:"" help:"Declare a handler, or replace its declaration."`
	Delete handlersDelete `cmd:"" help:"Delete a handler."`
}

type handlersList struct {
	pageFlags
}

func (c *handlersList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListHandlersPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"NAME", "KIND", "SAFETY", "ON UNKNOWN", "TIMEOUT", "URL"}}
	for _, x := range l.Items {
		t.add(x.Name, x.Kind, x.Safety, x.OnUnknown, timeout(x.TimeoutMs), x.URL)
	}
	return d.showList(t, l.Next, err)
}

func timeout(m wire.Millis) string {
	if m == 0 {
		return ""
	}
	return ms(m)
}

type handlersPut struct {
	idempotencyFlags
	Name      string            `arg:"" help:"Handler name, as used in configs and definitions."`
	Kind      string            `setting:"-" enum:",worker,http" default:"" placeholder:"KIND" help:"Kind: worker, if workers claim the handler's tasks, or http, if the server calls a URL. Default: http with --call, worker without."`
	HandlerAt string            `setting:"-" name:"call" placeholder:"URL" help:"URL that the server calls, for the kind http."`
	Safety    string            `setting:"-" enum:",idempotent,transactional,journaled,opaque" default:"" placeholder:"SAFETY" help:"Safety to declare for the handler: idempotent, transactional, journaled or opaque."`
	OnUnknown string            `setting:"-" enum:",hold,retry,probe" default:"" placeholder:"POLICY" help:"Policy for effects with an unknown outcome: hold, retry or probe. Default: hold."`
	Header    map[string]string `setting:"-" mapsep:"none" placeholder:"NAME=VALUE" help:"Header of each call, such as 'X-Token=${secret:token}'. Repeat the flag for each."`
	Secret    string            `setting:"-" name:"signed-with" placeholder:"secret:NAME" help:"Named secret that signs calls. Default: an own one."`
	Timeout   time.Duration     `setting:"-" placeholder:"DURATION" help:"How long a task may take. Default: 15m."`
}

func (c *handlersPut) Run(ctx context.Context, to *target) error {
	in := wire.PutHandler{Kind: c.Kind, URL: c.HandlerAt, Safety: c.Safety, OnUnknown: c.OnUnknown, TimeoutMs: wire.Ms(c.Timeout), Headers: c.Header, Secret: c.Secret}
	var bad error
	switch {
	case signedWith(c.Secret) != nil:
		bad = signedWith(c.Secret)
	case in.Kind == "http" && in.URL == "":
		bad = misuse("--kind http requires a URL: set it with --call")
	case in.Kind == "worker" && in.URL != "":
		bad = misuse("--kind worker cannot be combined with --call: the server calls no URL for workers")
	case in.Kind == "" && in.URL != "":
		in.Kind = "http"
	case in.Kind == "":
		in.Kind = "worker"
	}
	d, err := to.openUnless(ctx, bad, notNegative("--timeout", c.Timeout))
	if err != nil {
		return err
	}
	x, err := d.PutHandler(ctx, c.Name, in, c.options(d)...)
	return d.show(facts("name", x.Name, "kind", x.Kind, "url", x.URL, "safety", x.Safety, "on unknown", x.OnUnknown, "timeout", timeout(x.TimeoutMs),
		"headers", headerNames(x.Headers), "signed with", x.SignedWith, "updated", at(x.UpdatedAt), "secret", x.Secret), err)
}

// headerNames returns the names of headers.
func headerNames(h map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(h)), ",")
}

type handlersDelete struct {
	idempotencyFlags
	Name string `arg:"" help:"Handler name."`
}

func (c *handlersDelete) Run(ctx context.Context, d *connection) error {
	return d.show(facts("removed", c.Name), d.DeleteHandler(ctx, c.Name, c.options(d)...))
}
