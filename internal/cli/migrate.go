package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/sqlite"
)

// Run migrates the schema, or prints the SQL.
func (c *migrateCommand) Run(ctx context.Context, p *program) error {
	if c.RuntimeRole != "" && !c.isPostgres() {
		return misuse("--runtime-role requires PostgreSQL: a SQLite file has no roles")
	}
	db, err := c.open()
	if err != nil {
		return err
	}
	if path, ok := c.sqlitePath(); ok {
		db = sqlite.File(path) // may have your own tables: whoever runs this command has chosen the file
	}
	m := holdfast.Migration{Log: p.log, RuntimeRole: c.RuntimeRole}
	if c.Print && c.Restored {
		return misuse("--restored changes the data of a database, which --print cannot show: omit one of them")
	}
	if c.Print {
		script, err := holdfast.MigrationScript(db, m)
		if err == nil {
			_, err = io.WriteString(p.stdout, script)
		}
		return err
	}
	if c.Restored {
		done, err := holdfast.MigrateRestored(ctx, db, m)
		if err != nil {
			return err
		}
		if err := p.migrated(done.From, done.To, c.RuntimeRole); err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "generation %d, %d connections ended\nnodes, workers and readers from before the restore are refused\n", done.Generation, done.Ended)
		return err
	}
	from, to, err := holdfast.Migrate(ctx, db, m)
	if err != nil {
		return err
	}
	return p.migrated(from, to, c.RuntimeRole)
}

func (p *program) migrated(from, to int, role string) error {
	text := fmt.Sprintf("schema %d → %d\n", from, to)
	if from == to {
		text = fmt.Sprintf("schema %d, nothing to do\n", to)
	}
	if role != "" {
		text += fmt.Sprintf("role %s has the privileges that a node needs\n", role)
	}
	_, err := io.WriteString(p.stdout, text)
	return err
}
