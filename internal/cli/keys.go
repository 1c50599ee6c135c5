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
	Create keysCreate `cmd:"" help:"Create an API key and print it. It is shown only once."`
	List   keysList   `cmd:"" help:"List the API keys of a workspace."`
	Show   keysShow   `cmd:"" help:"Show an API key without its secret."`
	Rotate keysRotate `cmd:"" help:"Replace an API key with a new key that has the same permissions."`
	Revoke keysRevoke `cmd:"" help:"Revoke an API key permanently."`
}

type keysCreate struct {
	targetFlags
	Role       string        `setting:"-" required:"" enum:"read,operate,worker,admin" placeholder:"ROLE" help:"Role of the API key: read, operate, worker or admin."`
	Requester  []string      `setting:"-" placeholder:"NAME,…" help:"Requesters that the API key may act for; * for all. Without requesters, the API key cannot fire steps."`
	Handler    []string      `setting:"-" placeholder:"NAME,…" help:"Handlers whose tasks the API key may claim and settle. Default: all handlers."`
	RouteGroup []string      `setting:"-" placeholder:"GROUP,…" help:"Route groups that it may use, such as runs,tasks. Default: all."`
	Lifecycle  []string      `setting:"-" placeholder:"NAME,…" help:"Lifecycles that the API key may use, and nothing else. Default: no restriction."`
	From       []string      `setting:"-" placeholder:"NETWORK,…" help:"Networks of its callers, such as 10.1.0.0/16. Default: all."`
	Name       string        `setting:"-" placeholder:"NAME" help:"Name of the API key. Default: its role."`
	Lifetime   time.Duration `setting:"-" placeholder:"DURATION" help:"How long the API key is valid, such as 720h. Default: forever."`
	KeyRate    int           `setting:"-" placeholder:"N" help:"Rate limit for the API key, in requests per second. Default: the server's limit."`
}

func (c *keysCreate) Run(ctx context.Context, to *target) error {
	to.create = true
	d, err := to.openUnless(ctx, notNegative("--lifetime", c.Lifetime))
	if err != nil {
		return err
	}
	made, err := d.CreateKey(ctx, wire.NewKey{Name: c.Name, Role: c.Role, Requesters: c.Requester, Handlers: c.Handler, RouteGroups: c.RouteGroup, Lifecycles: c.Lifecycle, From: c.From, LifetimeMs: wire.Ms(c.Lifetime), Rate: c.KeyRate}, d.raw())
	return d.showSecret(made, err)
}

// showSecret prints only the API key to stdout, so that $(…) works. Its description goes to stderr.
func (d *connection) showSecret(made wire.CreatedKey, err error) error {
	if err != nil || d.Output == "json" {
		return d.show(nil, err)
	}
	if made.Secret == "" {
		return fault.New(fault.Internal, "the server created API key %s but did not return it: revoke it and create another", made.ID)
	}
	if _, err := fmt.Fprintln(d.stdout, made.Secret); err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.stderr, "API key %s of workspace %s, role %s: store it now, because it is not shown again\n", made.ID, cell(made.Workspace), made.Role)
	return err
}

type keysList struct {
	pageFlags
}

func (c *keysList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListKeysPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"ID", "NAME", "ROLE", "REQUESTERS", "RESTRICTIONS", "CREATED", "EXPIRES", "REVOKED", "LAST USED"}}
	for _, x := range l.Items {
		t.add(x.ID, x.Name, x.Role, strings.Join(x.Requesters, ","), restrictionsOf(x), at(x.CreatedAt), at(x.ExpiresAt), at(x.RevokedAt), at(x.LastUsedAt))
	}
	return d.showList(t, l.Next, err)
}

// restrictionsOf describes the restrictions of a key.
func restrictionsOf(x wire.Key) string {
	var all []string
	for _, r := range []struct {
		name   string
		values []string
	}{{"handler", x.Handlers}, {"route-group", x.RouteGroups}, {"lifecycle", x.Lifecycles}, {"from", x.From}} {
		if len(r.values) > 0 {
			all = append(all, r.name+"="+strings.Join(r.values, ","))
		}
	}
	return strings.Join(all, " ")
}

type keysShow struct {
	targetFlags
	ID string `arg:"" name:"id" help:"Id of the API key: the part between hf_ and the next _."`
}

func (c *keysShow) Run(ctx context.Context, d *connection) error {
	x, err := d.GetKey(ctx, c.ID, d.raw())
	return d.show(keyFacts(x), err)
}

func keyFacts(x wire.Key) *table {
	rate := ""
	if x.Rate > 0 {
		rate = fmt.Sprintf("%d requests per second", x.Rate)
	}
	return facts("id", x.ID, "workspace", x.Workspace, "name", x.Name, "role", x.Role, "requesters", strings.Join(x.Requesters, ","), "restrictions", restrictionsOf(x), "rate", rate,
		"created", at(x.CreatedAt), "created by", x.CreatedBy, "expires", at(x.ExpiresAt), "revoked", at(x.RevokedAt), "last used", at(x.LastUsedAt))
}

type keysRotate struct {
	targetFlags
	ID      string        `arg:"" name:"id" help:"Id of the API key: the part between hf_ and the next _."`
	Overlap time.Duration `setting:"-" placeholder:"DURATION" help:"How long the old API key stays valid. Default: 0s."`
}

func (c *keysRotate) Run(ctx context.Context, to *target) error {
	d, err := to.openUnless(ctx, notNegative("--overlap", c.Overlap))
	if err != nil {
		return err
	}
	made, err := d.RotateKey(ctx, c.ID, wire.RotateKey{OverlapMs: wire.Ms(c.Overlap)}, d.raw())
	return d.showSecret(made, err)
}

type keysRevoke struct {
	targetFlags
	ID string `arg:"" name:"id" help:"Id of the API key: the part between hf_ and the next _."`
}

func (c *keysRevoke) Run(ctx context.Context, d *connection) error {
	x, err := d.RevokeKey(ctx, c.ID, d.raw())
	return d.show(keyFacts(x), err)
}
