package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/secretref"
	"github.com/holdfast-go/holdfast/internal/secrets"
	"github.com/holdfast-go/holdfast/wire"
)

type secretsCommand struct {
	List   secretsList   `cmd:"" help:"List the secrets of a workspace, without their values."`
	Show   secretsShow   `cmd:"" help:"Show a secret without its value."`
	Set    secretsSet    `cmd:"" help:"Store the value of a secret, read from stdin or from a file. It cannot be read again."`
	Delete secretsDelete `cmd:"" help:"Delete a secret that nothing refers to."`
	Reseal secretsReseal `cmd:"" help:"Encrypt the secrets of all workspaces with the first secret key, so that the other secret keys can be removed."`
}

type secretsList struct {
	pageFlags
}

func (c *secretsList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListSecretsPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"NAME", "VERSION", "UPDATED", "UPDATED BY"}}
	for _, x := range l.Items {
		t.add(x.Name, number64(x.Version), at(x.UpdatedAt), x.UpdatedBy)
	}
	return d.showList(t, l.Next, err)
}

func secretFacts(x wire.Secret) *table {
	return facts("name", x.Name, "version", number64(x.Version), "created", at(x.CreatedAt), "created by", x.CreatedBy, "updated", at(x.UpdatedAt), "updated by", x.UpdatedBy,
		"overlap until", at(x.OverlapUntil))
}

type secretsShow struct {
	targetFlags
	Name string `arg:"" help:"Secret name."`
}

func (c *secretsShow) Run(ctx context.Context, d *connection) error {
	x, err := d.GetSecret(ctx, c.Name, d.raw())
	return d.show(secretFacts(x), err)
}

type secretsSet struct {
	idempotencyFlags
	Name    string        `arg:"" help:"Secret name."`
	File    string        `setting:"-" name:"from-file" placeholder:"FILE" help:"File with the value. Default: stdin. One line break at the end is removed."`
	Overlap time.Duration `setting:"-" placeholder:"DURATION" help:"How long messages are also signed with the previous value. Default: 0s."`
	Version int64         `setting:"-" name:"expected-version" default:"-1" placeholder:"N" help:"Store the value only if the secret is at this version; 0 if it must not exist. Default: any version."`
}

func (c *secretsSet) Run(ctx context.Context, to *target) error {
	value, err := c.value()
	d, err := to.openUnless(ctx, err, notNegative("--overlap", c.Overlap))
	if err != nil {
		return err
	}
	in := wire.PutSecret{Value: value, OverlapMs: wire.Ms(c.Overlap)}
	if c.Version >= 0 {
		in.ExpectedVersion = &c.Version
	}
	x, err := d.PutSecret(ctx, c.Name, in, c.options(d)...)
	return d.show(secretFacts(x), err)
}

// value reads the value. It is not an argument, because other users of the machine can see arguments, and shells store them.
func (c *secretsSet) value() (string, error) {
	from := os.Stdin
	if c.File != "" {
		f, err := os.Open(c.File)
		if err != nil {
			return "", misuse("cannot read the value: %v", err)
		}
		defer f.Close()
		from = f
	}
	raw, err := io.ReadAll(io.LimitReader(from, secretref.MaxValue+3))
	if err != nil {
		return "", misuse("cannot read the value: %v", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r"), nil
}

type secretsDelete struct {
	idempotencyFlags
	Name string `arg:"" help:"Secret name."`
}

func (c *secretsDelete) Run(ctx context.Context, d *connection) error {
	return d.show(facts("removed", c.Name), d.DeleteSecret(ctx, c.Name, c.options(d)...))
}

type secretsReseal struct {
	databaseFlags
	SecretKey string `placeholder:"KEY" commas:"" help:"Secret key that encrypts named secrets and the secrets of handlers and webhooks: 32 bytes in base64 or hex. Separate several secret keys with commas: the first one encrypts, and all of them decrypt."`
	Output    string `short:"o" enum:"table,json" default:"table" placeholder:"FORMAT" help:"Output format: table or json."`
}

// Run encrypts the secrets. It opens the database as a check does: without migrating it.
func (c *secretsReseal) Run(ctx context.Context, p *program) error {
	keys, err := secretKeys(c.SecretKey)
	if err != nil {
		return err
	}
	box, err := seal.New(keys...)
	if err != nil {
		return err
	}
	if path, ok := c.sqlitePath(); ok && isMissing(path) {
		return fault.New(fault.NotFound, "database %s does not exist: choose another database with --db", path)
	}
	db, err := c.open()
	if err != nil {
		return err
	}
	hf, err := holdfast.Open(ctx, db, holdfast.Config{Log: p.log, NoMigrate: true})
	if err != nil {
		return err
	}
	done, err := secrets.Reseal(ctx, engine.Of(hf), box)
	if err = errors.Join(err, hf.Close()); err != nil && done == (secrets.Resealed{}) {
		return err
	}
	if c.Output == "json" {
		err = errors.Join(p.showJSON(map[string]int{"resealed": done.Resealed, "failed": done.Failed}), err)
	} else {
		err = errors.Join(facts("resealed", number64(int64(done.Resealed)), "failed", number64(int64(done.Failed))).write(p.stdout), err)
	}
	return err
}
