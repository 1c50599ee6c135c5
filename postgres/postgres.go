// Package postgres runs an engine on PostgreSQL, version 15 or later. Many nodes can share one database.
//
//	hf, err := holdfast.Open(ctx, postgres.URL("postgres://app@db/app"), holdfast.Config{})
//
// All tables are in one schema, "holdfast" unless [Schema] selects another. A node needs no privilege to change the
// schema. Migrate with a role that owns the schema, and run the nodes with a role that owns nothing
// (holdfast.Migration.RuntimeRole).
package postgres

import (
	"cmp"
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

// Database is a PostgreSQL database on which an engine can be opened.
type Database struct {
	handle
	url    string
	pool   *pgxpool.Pool
	schema string
	pooled bool

	callTimeout time.Duration
	migrations  fs.FS // tests replace it
}

type handle = store.DatabaseHandle

// opener opens a Database for an engine.
type opener struct{ *Database }

// Option is an option of a database.
type Option struct{ set func(*Database) }

// Schema sets the schema that holds Holdfast's tables; the default is "holdfast". Two engines with different schemas
// share no data.
func Schema(name string) Option { return Option{func(d *Database) { d.schema = name }} }

// Pooled declares that connections go through PgBouncer or a similar pooler in transaction mode.
// Statements are then not prepared, and the role needs the session settings that keep a stuck
// client from holding locks (see docs/postgresql.md). A URL with a default_query_exec_mode other
// than cache_statement has the same effect.
func Pooled() Option { return Option{func(d *Database) { d.pooled = true }} }

// CallTimeout sets the time limit of a database call; 0 means the default, 8 seconds. A connection that does
// not respond in time is dropped. A transaction may take longer: each of its statements is a call.
// The URL parameter call_timeout sets the same limit and takes precedence.
func CallTimeout(t time.Duration) Option {
	return Option{func(d *Database) { d.callTimeout = cmp.Or(t, callTimeout) }}
}

// URL returns the database at a connection string, in any format that pgx accepts.
func URL(url string, options ...Option) *Database {
	return with(&Database{url: url}, options)
}

// Pool returns the database behind a pool that the program has opened. The engine does not close this pool. The
// engine also opens a small pool of its own, for calls that must not wait.
func Pool(pool *pgxpool.Pool, options ...Option) *Database {
	return with(&Database{pool: pool}, options)
}

func with(d *Database, options []Option) *Database {
	d.handle, d.schema, d.callTimeout, d.migrations = store.HandleDatabase(opener{d}), "holdfast", callTimeout, files
	for _, o := range options {
		o.set(d)
	}
	return d
}

// Join returns a Tx that makes calls part of the program's own transaction, so that their writes commit and roll back
// with it. The program commits the transaction. A refused call leaves the transaction usable; a database error aborts
// it, as any failed statement does.
func Join(e *holdfast.Engine, tx pgx.Tx) (holdfast.Tx, error) {
	port := engine.Of(e).Runner()
	s, ok := port.Base().(*adapter)
	if !ok {
		return nil, fault.New(fault.Validation, "the engine does not use PostgreSQL: call Join from the package for the engine's database")
	}
	return store.NewTx(&conn{store: s, tx: tx, joined: true}, port.Directory), nil
}

// Raw returns the pgx transaction under tx, for the program's own tables. It panics if tx does not belong to this
// package, because that is a programming error. The engine ends the transaction; do not commit it or roll it back.
func Raw(tx holdfast.Tx) pgx.Tx {
	under := store.TxOf(tx).Conn()
	c, ok := under.(*conn)
	if !ok {
		panic(fmt.Sprintf("postgres: Raw called with a transaction that is not PostgreSQL's (%T)", under))
	}
	c.exposed = true
	return c.tx
}

// Open checks the database, migrates its schema, and checks every verb against it.
func (d opener) Open(ctx context.Context, o store.Options) (store.Store, error) {
	s, _, err := d.open(ctx, o, !o.NoMigrate)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Migrate migrates the schema and does nothing else.
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
		"invalid schema name %q: use at most 63 lowercase letters, digits and underscores, do not begin with a digit, and do not use the name public", d.schema)
}
