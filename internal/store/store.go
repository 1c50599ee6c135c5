package store

import (
	"context"
	"log/slog"
	"time"
)

// Database is a place to keep everything, not yet opened. The adapters make
// them: sqlite.File, postgres.URL.
type Database interface {
	Open(context.Context, Options) (Store, error)
	// Migrate brings the schema up to date and does nothing else.
	Migrate(context.Context, Options) (Migrated, error)
	// Script returns the SQL that Migrate would run on an empty database.
	Script(Options) (string, error)
	// Files returns the SQL as it is written, Texts that of every verb as it is run, and Filled the same with what
	// depends on the database left open. They are for tests.
	Files() (SQLFiles, error)
	Texts() (Texts, error)
	Filled() (Texts, error)
}

// Options is what an engine tells an adapter.
type Options struct {
	Log *slog.Logger
	// NoMigrate makes Open refuse a database that is behind, rather than
	// bring it up to date.
	NoMigrate bool
	// RuntimeRole is granted what a node needs, and no more, when the schema
	// is migrated (PostgreSQL).
	RuntimeRole string
}

// Migrated says what a migration did.
type Migrated struct {
	From, To int
}

// Store is an open database.
type Store interface {
	// Do runs a command and commits it. Where it returns an error that is
	// not [fault.OutcomeUnknown], nothing was written.
	Do(context.Context, Command) error
	// Update runs f in one transaction. f may be run again if the
	// transaction had to give way to another.
	Update(context.Context, func(context.Context, Conn) error) error
	// Version names the database and its version: "PostgreSQL 15.18".
	Version() string
	// Close waits for what is under way and frees every connection.
	Close() error
}

// Signals is a store that can reach the other nodes at once. A store that cannot
// leaves them to find out by polling.
type Signals interface {
	// Signal tells the other nodes that there is something to do. It is not
	// part of any transaction that writes.
	Signal(ctx context.Context, topics []string) error
	// Listen calls f with the topics that other nodes signal, until ctx ends
	// or the connection breaks.
	Listen(ctx context.Context, f func(topics []string)) error
}

// Conn is one open transaction.
type Conn interface {
	// Run runs a command inside the transaction. A refused command leaves
	// the transaction usable.
	Run(context.Context, Command) error
}

// Status is what a database says of itself.
type Status struct {
	Schema int       // the number of the newest migration applied
	Now    time.Time // the database's time
}

// Ask is the verb that asks a database whether it lives.
var Ask = VerbOf[struct{}](Decl{Name: "meta.status", Lane: Vital},
	nil,
	func(s *Status, r Row) error { return r.Scan(&s.Schema, &s.Now) })
