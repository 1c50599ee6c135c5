// Package sqlite runs an engine on a SQLite file.
//
//	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{})
//
// The file may also contain the program's own tables, because the names of Holdfast's tables begin with "holdfast_".
// [Raw] returns the transaction of an update, so that the program can write to its own tables in the same
// transaction. Several processes may share the file. The file is in WAL mode with synchronous=FULL, so that
// acknowledged writes survive a power failure.
package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Database is a SQLite database on which an engine can be opened.
type Database struct {
	handle
	path    string
	db      *sql.DB
	alone   bool // set by Dedicated
	readers int
	wrong   func() time.Duration // the clock offset that tests set

	migrations fs.FS // tests replace it
}

type handle = store.DatabaseHandle

// opener opens a Database for an engine.
type opener struct{ *Database }

// Option is an option of [File].
type Option struct{ set func(*Database) }

// Dedicated rejects a file that contains another program's tables but none of Holdfast's. The server uses this option, so that
// a mistyped path does not add tables to another program's database.
func Dedicated() Option { return Option{func(d *Database) { d.alone = true }} }

// Readers sets the number of read connections; 0 means the default of 4. Writes use one additional connection.
func Readers(n int) Option { return Option{func(d *Database) { d.readers = n }} }

// File returns the database in a file, which is created if it does not exist.
func File(path string, options ...Option) *Database {
	d := made(&Database{path: path})
	for _, o := range options {
		o.set(d)
	}
	return d
}

// DB returns the database behind a pool that the program has opened, with any driver whose errors have a method Code()
// int that returns SQLite's result code. The engine does not close the pool. The database should be in WAL mode. A
// pool of one connection is enough, because more connections do not make writes faster.
func DB(db *sql.DB) *Database { return made(&Database{db: db}) }

func made(d *Database) *Database {
	d.handle, d.migrations = store.HandleDatabase(opener{d}), files
	return d
}

// Join returns a Tx that makes calls part of the program's own transaction, so that their writes commit and roll back
// with it. The program commits the transaction. If a call is refused or fails, it leaves the transaction as it was
// before the call.
//
// The transaction must hold SQLite's write lock or be able to take it: begin it with BEGIN IMMEDIATE
// (_txlock=immediate), or join it before it reads anything.
func Join(e *holdfast.Engine, tx *sql.Tx) (holdfast.Tx, error) {
	port := engine.Of(e).Runner()
	s, ok := port.Base().(*adapter)
	if !ok {
		return nil, fault.New(fault.Validation, "the engine does not use SQLite: call Join from the package for the engine's database")
	}
	if _, err := tx.Exec(takeLock); err != nil {
		return nil, joinFault(err)
	}
	return store.NewTx(&conn{store: s, tx: tx, joined: true}, port.Directory), nil
}

// Raw returns the sql.Tx under tx, for the program's own tables. It panics if tx does not belong to this package,
// because that is a programming error. The engine ends the transaction; do not commit it or roll it back. If one of
// your own statements fails, return its error, because SQLite may have rolled the transaction back.
func Raw(tx holdfast.Tx) *sql.Tx {
	under := store.TxOf(tx).Conn()
	c, ok := under.(*conn)
	if !ok {
		panic(fmt.Sprintf("sqlite: Raw called with a transaction that is not SQLite's (%T)", under))
	}
	return c.expose()
}

// takeLock changes nothing, and makes SQLite take the write lock: a transaction that has not read
// yet gets it, and one that has read an older state fails at once.
const takeLock = `UPDATE holdfast_clock SET shift = shift WHERE one = 0`

// Migrate migrates the schema and does nothing else.
func (d opener) Migrate(ctx context.Context, o store.Options) (store.Migrated, error) {
	if err := noRole(o); err != nil {
		return store.Migrated{}, err
	}
	s, m, err := d.open(ctx, o, true)
	if err != nil {
		return m, err
	}
	return m, s.Close()
}

// Open checks the database, migrates its schema, and prepares every verb.
func (d opener) Open(ctx context.Context, o store.Options) (store.Store, error) {
	s, _, err := d.open(ctx, o, !o.NoMigrate)
	if err != nil {
		return nil, err
	}
	return s, nil
}
