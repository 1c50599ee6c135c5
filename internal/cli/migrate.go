package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Run brings the schema up to date, or prints how.
func (c *migrateCommand) Run(ctx context.Context, p *program) error {
	if c.RuntimeRole != "" && !c.isPostgres() {
		return misuse("--runtime-role is of use with PostgreSQL only: a SQLite file has no roles")
	}
	db, err := c.open()
	if err != nil {
		return err
	}
	o := store.Options{Log: p.log, RuntimeRole: c.RuntimeRole}
	if c.Print {
		script, err := db.Script(o)
		if err == nil {
			_, err = io.WriteString(p.stdout, script)
		}
		return err
	}
	done, err := db.Migrate(ctx, o)
	if err != nil {
		return err
	}
	return p.migrated(done, c.RuntimeRole)
}

func (p *program) migrated(done store.Migrated, role string) error {
	text := fmt.Sprintf("schema %d → %d\n", done.From, done.To)
	if done.From == done.To {
		text = fmt.Sprintf("schema %d, nothing to do\n", done.To)
	}
	if role != "" {
		text += fmt.Sprintf("role %s has what a node needs\n", role)
	}
	_, err := io.WriteString(p.stdout, text)
	return err
}
