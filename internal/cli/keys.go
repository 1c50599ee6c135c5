package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/client"
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
	doorFlags
	Role      string        `setting:"-" required:"" enum:"read,operate,worker,admin" placeholder:"ROLE" help:"What it may do: read, operate, worker or admin."`
	Requester []string      `setting:"-" placeholder:"NAME,…" help:"Whom it may speak for; * for everyone. Without one it fires nothing."`
	Handler   []string      `setting:"-" placeholder:"NAME,…" help:"Whose tasks it may claim and end. Without one those of all handlers."`
	Name      string        `setting:"-" placeholder:"NAME" help:"What to call it. By default its role."`
	Lifetime  time.Duration `setting:"-" placeholder:"DURATION" help:"How long it works, such as 720h. By default without end."`
	KeyRate   int           `setting:"-" placeholder:"N" help:"Requests a second that it may make. By default the server's."`
}

// Help is shown by kong.
func (keysCreate) Help() string {
	return `Stdout has the key alone; it is not shown again. The first key of a database is made
where the database is, without any key:

    holdfast keys create --db sqlite:holdfast.db --role admin --requester '*'
    holdfast keys create --workspace default --role operate --requester admin,system --lifetime 720h`
}

// Run makes a key.
func (c *keysCreate) Run(ctx context.Context, p *program, k *kong.Context) error {
	if err := positive("--lifetime", c.Lifetime); err != nil {
		return err
	}
	return c.opened(ctx, p, k, inProcess{create: true}, func(d *door) error {
		var raw json.RawMessage
		made, err := d.CreateKey(ctx, wire.NewKey{Name: c.Name, Role: c.Role, Requesters: c.Requester, Handlers: c.Handler, LifetimeMs: wire.Ms(c.Lifetime), Rate: c.KeyRate}, client.Raw(&raw))
		if err != nil {
			return err
		}
		return d.showSecret(raw, made)
	})
}

// showSecret prints a key alone, for $(…); what it is goes to stderr.
func (d *door) showSecret(raw json.RawMessage, made wire.CreatedKey) error {
	if d.output == "json" {
		return writeDocument(d.stdout, raw)
	}
	if made.Secret == "" {
		return fault.New(fault.Internal, "the server has made the key %s and did not show it: revoke it", made.ID)
	}
	if _, err := fmt.Fprintln(d.stdout, made.Secret); err != nil {
		return err
	}
	_, err := fmt.Fprintf(d.stderr, "key %s of the workspace %s, role %s: keep it, it is not shown again\n", made.ID, cell(made.Workspace), made.Role)
	return err
}

type keysList struct {
	doorFlags
	pageFlags
}

// Help is shown by kong.
func (keysList) Help() string {
	return `Those that are revoked or expired are listed too:

    holdfast keys list --db sqlite:holdfast.db
    holdfast keys list --url http://127.0.0.1:7070 --key "$HOLDFAST_KEY" -o json`
}

// Run lists keys.
func (c *keysList) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListKeysPage(ctx, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"ID", "NAME", "ROLE", "REQUESTERS", "CREATED", "EXPIRES", "REVOKED"}}
		for _, x := range l.Items {
			t.add(x.ID, x.Name, x.Role, strings.Join(x.Requesters, ","), at(x.CreatedAt), at(x.ExpiresAt), at(x.RevokedAt))
		}
		return d.showList(raw, t, l.Next)
	})
}

type keysShow struct {
	doorFlags
	ID string `arg:"" name:"id" help:"The key's id: what stands after hf_."`
}

// Help is shown by kong.
func (keysShow) Help() string {
	return `    holdfast keys show 01J9Z3K4M5N6P7Q8 --db sqlite:holdfast.db`
}

// Run shows a key.
func (c *keysShow) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := d.GetKey(ctx, c.ID, client.Raw(&raw))
		if err != nil {
			return err
		}
		return d.show(raw, keyFacts(x))
	})
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
	doorFlags
	ID      string        `arg:"" name:"id" help:"The key's id: what stands after hf_."`
	Overlap time.Duration `setting:"-" placeholder:"DURATION" help:"How long the old one still works. By default not at all."`
}

// Help is shown by kong.
func (keysRotate) Help() string {
	return `Stdout has the new key alone; it is not shown again:

    holdfast keys rotate 01J9Z3K4M5N6P7Q8 --overlap 1h --db sqlite:holdfast.db`
}

// Run replaces a key.
func (c *keysRotate) Run(ctx context.Context, p *program, k *kong.Context) error {
	if err := positive("--overlap", c.Overlap); err != nil {
		return err
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		made, err := d.RotateKey(ctx, c.ID, wire.RotateKey{OverlapMs: wire.Ms(c.Overlap)}, client.Raw(&raw))
		if err != nil {
			return err
		}
		return d.showSecret(raw, made)
	})
}

type keysRevoke struct {
	doorFlags
	ID string `arg:"" name:"id" help:"The key's id: what stands after hf_."`
}

// Help is shown by kong.
func (keysRevoke) Help() string {
	return `Servers that run refuse it within 5 seconds. Doing it twice is harmless:

    holdfast keys revoke 01J9Z3K4M5N6P7Q8 --db sqlite:holdfast.db`
}

// Run revokes a key.
func (c *keysRevoke) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := d.RevokeKey(ctx, c.ID, client.Raw(&raw))
		if err != nil {
			return err
		}
		return d.show(raw, keyFacts(x))
	})
}
