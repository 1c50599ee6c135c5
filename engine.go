package holdfast

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// The public types embed these types. Only the packages of this module can use their methods.
type (
	publicDatabase = store.PublicDatabase
	publicDoer     = store.PublicDoer
	publicTx       = store.PublicTx
	handle         = engine.Handle
)

// Database is the database that stores everything an engine writes. Packages sqlite and postgres provide
// implementations.
type Database interface{ publicDatabase }

// Doer is an [*Engine] or a [Tx]; there are no other implementations. With an engine, a call commits in its own
// transaction (a call that reads or writes many objects, in several); with a Tx, it commits with that transaction. A
// function that takes an *Engine instead of a Doer cannot be part of a transaction, because it commits before it
// continues, waits, or is a command of an operator.
type Doer interface{ publicDoer }

// Tx is an open transaction. Do not use it after the transaction has ended, or in two goroutines at the same time.
type Tx interface{ publicTx }

// Config configures an engine. The zero value is ready to use.
type Config struct {
	// Log receives log messages; the default is [slog.Default].
	Log *slog.Logger
	// NoMigrate makes [Open] refuse a database whose schema is out of date instead of migrating it.
	NoMigrate bool
	// Shards is the number of shards over which new workspaces are distributed, at most 1024; the default is 1. A
	// workspace stays on the shard that it was first assigned to.
	Shards int
	// SweepEvery is the interval at which a running engine releases the leases that crashes left behind; the default is
	// 10 seconds.
	SweepEvery time.Duration
	// HistoryRetention is the minimum retention of all histories (those of entities, scopes, reactions, runs and batches), and of
	// the effects of operations that have ended. 0 means unlimited; otherwise it must be at least an hour. The last event of each
	// object that exists, and events that a reaction has not handled yet, are not deleted. The program's own streams are not
	// affected.
	HistoryRetention time.Duration
	// Node is the name under which this node holds leases; the default is the host name plus a random suffix.
	Node string
}

// Part is a capability, or a component of the program, that belongs to an engine: a lifecycle, a workflow definition,
// a batch kind, a reaction, a projection, scope kinds (scope.Kinds), the feed (stream.Feed), an artifact
// store (batch.Artifacts), capability settings (run.Lease, run.Retention, run.KeyRetention, run.Calls, run.MaxWorkers,
// stream.MaxWorkers, lifecycle.StuckAfter), a janitor (lifecycle.ModuleJanitor), the HTTP API (httpapi.New), or the
// maintenance of runs or batches on an engine without definitions or kinds (run.Maintenance, batch.Maintenance). Pass
// parts to [Open]. A name that is declared twice, or a setting that is passed twice, is [ErrConflict].
type Part interface {
	// Register is called once by [Open], after the database is ready. If it returns an error, Open closes the engine
	// and returns that error.
	Register(context.Context, *Engine) error
}

// Engine runs commands on a database. It is safe for concurrent use.
type Engine struct{ handle }

// Open opens an engine: it checks the database, migrates its schema and registers the parts. An error describes the
// problem and how to solve it; it lists the problems of all lifecycles together. Open does not change a database that
// it refuses. A part that is nil is [ErrValidation]. If a part returns an error, the schema may already have been migrated.
func Open(ctx context.Context, db Database, c Config, parts ...Part) (*Engine, error) {
	if slices.Contains(parts, nil) {
		return nil, fault.New(fault.Validation, "a part is nil: pass a part, or remove it")
	}
	inner, err := engine.Open(ctx, store.DatabaseOf(db), engine.Config(c))
	if err != nil {
		return nil, err
	}
	e := &Engine{engine.HandleOf(inner)}
	err = engine.CheckParts(inner, parts)
	for i := 0; i < len(parts) && err == nil; i++ {
		err = parts[i].Register(ctx, e)
	}
	if err != nil {
		_ = e.Close()
		return nil, err
	}
	inner.Opened()
	return e, nil
}

// Close waits for calls in flight and closes the database connections.
func (e *Engine) Close() error { return engine.Of(e).Close() }

// Run runs the background work: it releases the leases that crashes left behind, handles events of reactions, and
// listens for wake-ups from other nodes. It returns after ctx ends and all background loops have stopped, or with
// [ErrDatabaseRestored] when it notices that the database was restored from a backup: the program must then end. Any number
// of nodes may run concurrently. A program that only makes calls need not call Run, as long as another node runs. If
// no node serves the due work of an engine on which Run was never called, the engine logs one warning. If the engine is already running, the error is [ErrConflict].
func (e *Engine) Run(ctx context.Context) error { return engine.Of(e).Run(ctx) }

// Background adds a background loop. [Engine.Run] calls f with a context that ends with Run's own context, and waits
// for f to return. Parts call Background in their Register.
func (e *Engine) Background(f func(context.Context)) { engine.Of(e).Background(f) }

// Update runs f in one transaction: either everything that f does is committed, or nothing. The context that f is given
// carries the transaction; using the engine with that context returns [ErrReentrant] instead of causing a deadlock. If
// the transaction conflicts with another, f may run more than once. It must therefore have no effects that a rollback
// cannot undo, and it must not block. A panic in f rolls the transaction back and propagates.
func (e *Engine) Update(ctx context.Context, f func(context.Context, Tx) error) error {
	return engine.Update(ctx, engine.Of(e), f)
}

// Status describes the database of an engine.
type Status struct {
	Database string    // "SQLite 3.53.4", "PostgreSQL 15.18"
	Schema   int       // number of the newest applied migration
	Now      time.Time // current time of the database
}

// Status checks that the database responds and, if the engine is running, that its janitor has not stalled; otherwise
// it returns [ErrUnavailable]. On PostgreSQL the check uses a reserved connection, so it works even if all other
// connections are busy.
func (e *Engine) Status(ctx context.Context) (Status, error) {
	s, err := engine.Of(e).Status(ctx)
	return Status{Database: engine.Of(e).Runner().Version(), Schema: s.Schema, Now: s.Now}, err
}

// InWorkspace returns a context whose commands run in the given workspace. The first write to a workspace creates it. A
// context without a workspace uses "default".
func InWorkspace(ctx context.Context, workspace string) context.Context {
	return store.InWorkspace(ctx, workspace)
}

// WorkspaceOf returns the workspace of a context. In a handler, it is the workspace of the work.
func WorkspaceOf(ctx context.Context) string { return store.WorkspaceOf(ctx) }

// Migration configures a migration.
type Migration struct {
	// Log receives the messages of the migration; the default is [slog.Default].
	Log *slog.Logger
	// RuntimeRole is a PostgreSQL role. The migration grants it exactly the privileges that a node needs.
	RuntimeRole string
}

func (m Migration) options() store.Options {
	return store.Options{Log: cmp.Or(m.Log, slog.Default()), RuntimeRole: m.RuntimeRole}
}

// Restored is the result of [MigrateRestored].
type Restored struct {
	// From and To are the numbers of the newest migration before and after the call.
	From, To int
	// Generation is the generation of the database: it grows with each restore.
	Generation int64
	// Ended is the number of connections of other processes that were ended (PostgreSQL).
	Ended int
}

// MigrateRestored is [Migrate] for a database that was restored from a backup. It must be called before programs use the
// restored database. Programs, workers and readers from before the restore are then refused: engines that were open get
// [ErrDatabaseRestored], holders of leases [ErrLeaseLost], and feed cursors of lost events [ErrCursorExpired]. On PostgreSQL it
// ends all other connections to the database.
func MigrateRestored(ctx context.Context, db Database, m Migration) (Restored, error) {
	o := m.options()
	o.Restored = true
	done, err := store.DatabaseOf(db).Migrate(ctx, o)
	return Restored(done), err
}

// Migrate migrates the schema of a database to the newest version, without opening an engine. It returns the number of
// the newest migration before and after the call.
func Migrate(ctx context.Context, db Database, m Migration) (from, to int, err error) {
	done, err := store.DatabaseOf(db).Migrate(ctx, m.options())
	return done.From, done.To, err
}

// MigrationScript returns the SQL that [Migrate] would run on an empty database.
func MigrationScript(db Database, m Migration) (string, error) {
	return store.DatabaseOf(db).Script(m.options())
}
