package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

type keysCommand struct {
	Create keysCreate `cmd:"" help:"Make an API key, and print it once."`
	List   keysList   `cmd:"" help:"List the API keys of a workspace."`
	Show   keysShow   `cmd:"" help:"Show an API key, without its secret."`
	Rotate keysRotate `cmd:"" help:"Replace an API key by another with the same rights."`
	Revoke keysRevoke `cmd:"" help:"End an API key for good."`
}

type keysCreate struct {
	targetFlags
	Role      string        `setting:"-" required:"" enum:"read,operate,worker,admin" placeholder:"ROLE" help:"What it may do: read, operate, worker or admin."`
	Requester []string      `setting:"-" placeholder:"NAME,…" help:"Whom it may speak for; * for everyone. Without one it fires nothing."`
	Handler   []string      `setting:"-" placeholder:"NAME,…" help:"Whose tasks it may claim and end. Without one those of all handlers."`
	Name      string        `setting:"-" placeholder:"NAME" help:"What to call it. By default its role."`
	Lifetime  time.Duration `setting:"-" placeholder:"DURATION" help:"How long it works, such as 720h. By default without end."`
	KeyRate   int           `setting:"-" placeholder:"N" help:"Requests a second that it may make. By default the server's."`
}

func (c *keysCreate) Run(ctx context.Context, to *target) error {
	to.create = true
	d, err := to.openUnless(ctx, positive("--lifetime", c.Lifetime))
	if err != nil {
		return err
	}
	made, err := d.CreateKey(ctx, wire.NewKey{Name: c.Name, Role: c.Role, Requesters: c.Requester, Handlers: c.Handler, LifetimeMs: wire.Ms(c.Lifetime), Rate: c.KeyRate}, d.raw())
	return d.showSecret(made, err)
}

// showSecret prints a key alone, for $(…); what it is goes to stderr.
func (d *connection) showSecret(made wire.CreatedKey, err error) error {
	if err != nil || d.Output == "json" {
		return d.show(nil, err)
	}
	if made.Secret == "" {
		return fault.New(fault.Internal, "the server has made the key %s and did not show it: revoke it", made.ID)
	}
	if _, err := fmt.Fprintln(d.stdout, made.Secret); err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.stderr, "key %s of the workspace %s, role %s: keep it, it is not shown again\n", made.ID, cell(made.Workspace), made.Role)
	return err
}

type keysList struct {
	pageFlags
}

func (c *keysList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListKeysPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"ID", "NAME", "ROLE", "REQUESTERS", "CREATED", "EXPIRES", "REVOKED"}}
	for _, x := range l.Items {
		t.add(x.ID, x.Name, x.Role, strings.Join(x.Requesters, ","), at(x.CreatedAt), at(x.ExpiresAt), at(x.RevokedAt))
	}
	return d.showList(t, l.Next, err)
}

type keysShow struct {
	targetFlags
	ID string `arg:"" name:"id" help:"The key's id: what stands after hf_."`
}

func (c *keysShow) Run(ctx context.Context, d *connection) error {
	x, err := d.GetKey(ctx, c.ID, d.raw())
	return d.show(keyFacts(x), err)
}

func keyFacts(x wire.Key) *table {
	rate := ""
	if x.Rate > 0 {
		rate = fmt.Sprintf("%d requests a second", x.Rate)
	}
	return facts("id", x.ID, "workspace", x.Workspace, "name", x.Name, "role", x.Role, "requesters", strings.Join(x.Requesters, ","), "handlers", strings.Join(x.Handlers, ","), "rate", rate,
		"created", at(x.CreatedAt), "created by", x.CreatedBy, "expires", at(x.ExpiresAt), "revoked", at(x.RevokedAt))
}

type keysRotate struct {
	targetFlags
	ID      string        `arg:"" name:"id" help:"The key's id: what stands after hf_."`
	Overlap time.Duration `setting:"-" placeholder:"DURATION" help:"How long the old one still works. By default not at all."`
}

func (c *keysRotate) Run(ctx context.Context, to *target) error {
	d, err := to.openUnless(ctx, positive("--overlap", c.Overlap))
	if err != nil {
		return err
	}
	made, err := d.RotateKey(ctx, c.ID, wire.RotateKey{OverlapMs: wire.Ms(c.Overlap)}, d.raw())
	return d.showSecret(made, err)
}

type keysRevoke struct {
	targetFlags
	ID string `arg:"" name:"id" help:"The key's id: what stands after hf_."`
}

func (c *keysRevoke) Run(ctx context.Context, d *connection) error {
	x, err := d.RevokeKey(ctx, c.ID, d.raw())
	return d.show(keyFacts(x), err)
}
