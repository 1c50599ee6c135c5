package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

const createMigration = `CREATE TABLE IF NOT EXISTS holdfast_migration (
    number     INTEGER NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    min_reader INTEGER NOT NULL,
    sum        TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT`

func noRole(o store.Options) error {
	if o.RuntimeRole == "" {
		return nil
	}
	return fault.New(fault.Validation, "RuntimeRole is a role of PostgreSQL, and SQLite has no roles: omit it")
}

// Script returns the SQL that migrates an empty database.
func (d opener) Script(o store.Options) (string, error) {
	if err := noRole(o); err != nil {
		return "", err
	}
	known, err := store.LoadMigrations(d.migrations)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "BEGIN IMMEDIATE;\n\n%s;\n", createMigration)
	for i, m := range known {
		fmt.Fprintf(&b, "\n%s%s\n%s;\n", m.Heading(known[max(i-1, 0)].MinReader), m.SQL, record(m))
	}
	b.WriteString("\nCOMMIT;\n")
	return b.String(), nil
}

// record returns the statement that records a migration. Its values are ours, so they can be part
// of the text, which is then the same as in Script.
func record(m store.Migration) string {
	return fmt.Sprintf("INSERT INTO holdfast_migration (number, name, min_reader, sum, applied_at)\nVALUES (%d, '%s', %d, '%s', CAST(round(unixepoch('subsec') * 1000) AS INTEGER))",
		m.Number, m.Name, m.MinReader, m.Sum)
}

// migrate migrates the schema. The write lock lets many processes start at once: the first one
// migrates, the others find nothing to do. A current schema is only read.
func (s *adapter) migrate(ctx context.Context, o store.Options, allowed bool) (store.Migrated, error) {
	known, err := store.LoadMigrations(s.migrations)
	if err != nil {
		return store.Migrated{}, err
	}
	var done store.Migrated
	err = store.Retry(ctx, func() error {
		done, err = s.migrateOnce(ctx, o, known, allowed)
		return err
	})
	return done, err
}

func (s *adapter) migrateOnce(ctx context.Context, o store.Options, known []store.Migration, allowed bool) (done store.Migrated, err error) {
	have, err := s.applied(ctx, s.write)
	if err != nil {
		return done, err
	}
	done = store.Migrated{From: len(have), To: len(have)}
	pending, err := store.Pending(known, have)
	if err != nil || (len(pending) == 0 && !o.Restored) {
		return done, err
	}
	if !allowed {
		return done, store.Behind(len(have), len(known))
	}
	return s.apply(ctx, o, known)
}

// apply reads the applied migrations again under the write lock, and applies the pending ones.
func (s *adapter) apply(ctx context.Context, o store.Options, known []store.Migration) (done store.Migrated, err error) {
	ctx = context.WithoutCancel(ctx)
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return done, s.fault(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, createMigration); err != nil {
		return done, s.fault(err)
	}
	have, err := s.applied(ctx, tx)
	if err != nil {
		return done, err
	}
	pending, err := store.Pending(known, have)
	if o.Restored && len(have) == 0 {
		err = store.ErrNotRestored
	}
	if err != nil {
		return done, err
	}
	for _, m := range pending {
		if _, err := tx.ExecContext(ctx, m.SQL+"\n"+record(m)); err != nil { // m.SQL ends with a semicolon
			return done, fmt.Errorf("migration %d: %w", m.Number, s.fault(err))
		}
	}
	done = store.Migrated{From: len(have), To: len(have) + len(pending)}
	if o.Restored {
		if done.Generation, err = s.newGeneration(ctx, tx); err != nil {
			return store.Migrated{}, err
		}
	}
	if err := tx.Commit(); err != nil {
		return store.Migrated{}, commitFault(err, s.name)
	}
	return done, nil
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// applied reads the migrations of the database. Tables with our prefix but without our record
// belong to another program.
func (s *adapter) applied(ctx context.Context, q querier) ([]store.Applied, error) {
	var ours, record int
	err := q.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE name = 'holdfast_migration')
		FROM sqlite_schema WHERE type = 'table' AND name LIKE 'holdfast\_%' ESCAPE '\'`).Scan(&ours, &record)
	if err != nil || ours == 0 {
		return nil, s.fault(err)
	}
	if record == 0 {
		return nil, fault.New(fault.DatabaseForeign,
			"%s has tables whose names begin with holdfast_, but no record of Holdfast's migrations, so they belong to another program: choose another file. Nothing was changed", s.name)
	}
	rows, err := q.QueryContext(ctx, `SELECT number, name, min_reader, sum FROM holdfast_migration ORDER BY number`)
	if err != nil {
		return nil, s.foreign(err)
	}
	defer rows.Close()
	var all []store.Applied
	for rows.Next() {
		var a store.Applied
		if err := rows.Scan(&a.Number, &a.Name, &a.MinReader, &a.Sum); err != nil {
			return nil, s.foreign(err)
		}
		all = append(all, a)
	}
	return all, s.fault(rows.Err())
}

// foreign maps an error of reading the table of migrations. An unexpected one means that the table is not ours.
func (s *adapter) foreign(err error) error {
	mapped := s.fault(err)
	if fault.CodeOf(mapped) != fault.Internal {
		return mapped
	}
	return fault.New(fault.DatabaseForeign, "%s has a table holdfast_migration that is not Holdfast's: choose another file. Nothing was changed", s.name).Wrap(err)
}
