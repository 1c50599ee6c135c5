package store

import (
	"context"
	"log/slog"
	"time"
)

// Database describes a database that is not open yet. The adapters create it: sqlite.File, postgres.URL.
type Database interface {
	Open(context.Context, Options) (Store, error)
	// Migrate applies pending migrations and does nothing else.
	Migrate(context.Context, Options) (Migrated, error)
	// Script returns the SQL that Migrate would run on an empty database.
	Script(Options) (string, error)
	// Files returns the SQL files before arguments are filled in, Filled the SQL of every verb with {now} and, on
	// PostgreSQL, the tokens that depend on the schema and the form left in, and Texts the SQL as executed. They exist
	// for tests.
	Files() (SQLFiles, error)
	Texts() (Texts, error)
	Filled() (Texts, error)
}

// Dropper is a database that can drop all tables of Holdfast, in a schema that was created to be dropped.
type Dropper interface {
	// Drop drops the schema, whose name must begin with [ScratchPrefix].
	Drop(context.Context) error
}

// ScratchPrefix is how the name of a schema begins that a measurement creates and drops.
const ScratchPrefix = "holdfast_bench_"

// Options is the configuration that the engine passes to an adapter.
type Options struct {
	Log *slog.Logger
	// NoMigrate makes Open refuse a database with pending migrations instead of applying them.
	NoMigrate bool
	// RuntimeRole is the role that a migration grants the privileges a node needs, and no others (PostgreSQL).
	RuntimeRole string
	// Restored makes Migrate move the database to a new generation, because it was restored from a backup.
	Restored bool
	// Plain makes Open run every verb by its general statement, never by a fast one; see [Plain].
	Plain bool
}

// Migrated is the result of a migration: the schema number before and after it and, for [Options].Restored, the new
// generation and the number of connections of other processes that it ended.
type Migrated struct {
	From, To   int
	Generation int64
	Ended      int
}

// Store is an open database.
type Store interface {
	// Do runs a command and commits it. If it returns an error other than [fault.OutcomeUnknown], nothing was
	// written.
	Do(context.Context, Command) error
	// Update runs f in one transaction. f may run again if the transaction had to be retried.
	Update(context.Context, func(context.Context, Conn) error) error
	// Version returns the name and version of the database: "PostgreSQL 15.18".
	Version() string
	// Close waits for calls in flight and closes every connection.
	Close() error
}

// Signals is implemented by a store that can notify other nodes immediately. With any other store, nodes find
// new work by polling.
type Signals interface {
	// Signal notifies the other nodes that there is work. It is not part of any writing transaction.
	Signal(ctx context.Context, topics []string) error
	// Listen calls f with the topics that other nodes signal, until ctx ends or the connection breaks.
	Listen(ctx context.Context, f func(topics []string)) error
}

// Pooled is implemented by a store that knows how many of its connections are in use.
type Pooled interface {
	// Pool returns the connections in use, and the maximum.
	Pool() (busy, size int)
	// PoolWaits returns how often callers have waited for a connection since the store was opened, and how long in total.
	PoolWaits() (n int64, total time.Duration)
}

// Conn is one open transaction.
type Conn interface {
	// Run runs a command inside the transaction. A refused command leaves the transaction usable.
	Run(context.Context, Command) error
}

// Status is the schema number and the time of a database.
type Status struct {
	Schema int       // number of the newest applied migration
	Now    time.Time // time of the database
}

// Ask is the health check of a database: it reads its [Status].
var Ask = VerbOf[struct{}](Decl{Name: "meta.get_status", Lane: Vital},
	nil,
	func(s *Status, r Row) error { return r.Scan(&s.Schema, &s.Now) })
