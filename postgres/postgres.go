// Package postgres keeps an engine in PostgreSQL, version 15 or later, where
// many nodes share the work.
//
//	hf, err := holdfast.Open(ctx, postgres.URL("postgres://app@db/app"), holdfast.Config{})
//
// Everything is in one schema, "holdfast" unless [Schema] names another. A node
// needs no right to change it: migrate with a role that owns the schema, and
// let the nodes run under one that owns nothing (holdfast.Migration.RuntimeRole).
package postgres

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Database is a PostgreSQL database that an engine can be opened on.
type Database struct {
	handle
	url    string
	pool   *pgxpool.Pool
	schema string
	pooled bool
	plain  bool

	callTimeout time.Duration
	migrations  fs.FS // those of files, but in tests
}

type handle = store.DatabaseHandle

// opener is what an engine opens a database by.
type opener struct{ *Database }

// Option changes how a database is opened.
type Option func(*Database)

// Schema sets the schema that holds Holdfast's tables; the default is
// "holdfast". Two engines with different schemas share nothing.
func Schema(name string) Option { return func(d *Database) { d.schema = name } }

// Pooled says that connections go through PgBouncer, or a pooler like it, in
// transaction mode. Statements are then not prepared, and the session settings
// that keep a stuck client from holding locks must be given to the role
// (docs/postgresql.md has them). A URL with default_query_exec_mode set says
// the same.
func Pooled() Option { return func(d *Database) { d.pooled = true } }

// Plain runs every verb by its general statement, never by the short form for
// a lone caller. It is for tests that compare the two.
func Plain() Option { return func(d *Database) { d.plain = true } }

// CallTimeout sets how long a call of the database may take, 8 seconds by default.
// A connection that does not answer within it is dropped. A transaction may take
// longer: each of its statements is a call. The parameter call_timeout of a URL
// says the same and wins.
func CallTimeout(t time.Duration) Option { return func(d *Database) { d.callTimeout = t } }

// URL is the database that a connection string names, in any form that pgx
// takes.
func URL(url string, options ...Option) *Database {
	return with(&Database{url: url}, options)
}

// Pool is the database behind a pool that the program has opened already. The
// engine does not close it, and opens a small one of its own beside it for what
// must not wait.
func Pool(pool *pgxpool.Pool, options ...Option) *Database {
	return with(&Database{pool: pool}, options)
}

func with(d *Database, options []Option) *Database {
	d.handle, d.schema, d.callTimeout, d.migrations = store.HandleDatabase(opener{d}), "holdfast", callTimeout, files
	for _, o := range options {
		o(d)
	}
	return d
}

// Join makes the user's own transaction a place to run verbs in: what they
// write commits and rolls back with it. The caller commits. A refused command
// leaves the transaction usable; an error of the database ends it, as any
// failed statement does.
func Join(e *holdfast.Engine, tx pgx.Tx) (holdfast.Tx, error) {
	port := engine.Of(e).Runner()
	s, ok := port.Base().(*adapter)
	if !ok {
		return nil, fault.New(fault.Validation, "the engine is not on PostgreSQL: join it with the package of its own database")
	}
	return store.NewTx(&conn{store: s, tx: tx, joined: true}, port.Directory), nil
}

// Raw returns the transaction under one of the engine's, for the program's own tables.
// It panics if tx is not of this package: that is a mistake in wiring. The
// engine ends the transaction; do not commit it or roll it back.
func Raw(tx holdfast.Tx) pgx.Tx {
	under := store.TxOf(tx).Conn()
	c, ok := under.(*conn)
	if !ok {
		panic(fmt.Sprintf("postgres: Raw of a transaction that is not on PostgreSQL (%T)", under))
	}
	c.exposed = true
	return c.tx
}

// Open checks the database, brings its schema up to date, and checks every
// verb against it.
func (d opener) Open(ctx context.Context, o store.Options) (store.Store, error) {
	s, _, err := d.open(ctx, o, !o.NoMigrate)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Migrate brings the schema up to date and does nothing else.
func (d opener) Migrate(ctx context.Context, o store.Options) (store.Migrated, error) {
	s, done, err := d.open(ctx, o, true)
	if err != nil {
		return done, err
	}
	return done, s.Close()
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

func (d *Database) checkSchema() error {
	if schemaName.MatchString(d.schema) && d.schema != "public" {
		return nil
	}
	return fault.New(fault.Validation,
		"%q cannot be Holdfast's schema: a schema of its own is wanted, of small letters, digits and underscores, and not public", d.schema)
}
