package holdfast

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// What the public types embed: their methods are known to the packages of this module alone.
type (
	publicDatabase = store.PublicDatabase
	publicDoer     = store.PublicDoer
	publicTx       = store.PublicTx
	handle         = engine.Handle
)

// Database is where an engine keeps everything; packages sqlite and postgres
// make them.
type Database interface{ publicDatabase }

// Doer is what a verb runs on: an [*Engine] or a [Tx]. Nothing else is one.
type Doer interface{ publicDoer }

// Tx is one open transaction. It must not be used after the transaction has
// ended, nor by two goroutines at once.
type Tx interface{ publicTx }

// Config says how an engine works. The zero value is ready to use.
type Config struct {
	// Log takes what a person who runs the program should know; the default
	// is [slog.Default].
	Log *slog.Logger
	// NoMigrate makes Open refuse a database whose schema is behind, rather
	// than bring it up to date.
	NoMigrate bool
	// Shards is over how many shards new workspaces are spread; the default
	// is 1. A workspace keeps the shard that it was first given.
	Shards int
	// SweepEvery is how often a running engine looks for what a crash left
	// held; the default is 10 seconds.
	SweepEvery time.Duration
	// StuckAfter is how long a claim is held that nobody renews, of a lifecycle
	// whose config does not say; the default is 5 minutes.
	StuckAfter time.Duration
	// HistoryRetention is how long the histories of entities, scopes and
	// reactions are kept at the least; 0 is for ever, an hour is the shortest.
	// The last event of each thing stays, and so does what a reaction has
	// still to handle. Users' streams are not touched.
	HistoryRetention time.Duration
	// Node names this node in what it holds; the default is the machine's
	// name with a random part.
	Node string
	// MaxConcurrency is how many reactions' events are handled at once; the default
	// is 16. Where there are several workspaces, one has two thirds of it at the most.
	MaxConcurrency int
}

// Part is a capability, or a piece of a program's own, that an engine starts
// with.
type Part interface {
	// Start is called once by Open, when the database is ready.
	Start(context.Context, *Engine) error
}

// Engine runs commands on a database. It is safe for concurrent use.
type Engine struct{ handle }

// Open opens an engine: it checks the database, brings its schema up to date,
// and starts the parts. An error says what is wrong and what to do; the
// database is then as it was before.
func Open(ctx context.Context, db Database, c Config, parts ...Part) (*Engine, error) {
	inner, err := engine.Open(ctx, store.DatabaseOf(db), engine.Config(c))
	if err != nil {
		return nil, err
	}
	e := &Engine{engine.HandleOf(inner)}
	for _, p := range parts {
		if err := p.Start(ctx, e); err != nil {
			_ = e.Close()
			return nil, err
		}
	}
	return e, nil
}

// Close waits for what is under way and frees the database's connections.
func (e *Engine) Close() error { return engine.Of(e).Close() }

// Run does what goes on in the background: it frees what crashes left held, and
// passes wake-ups to other nodes and from them. It returns when ctx ends, after
// everything has come to rest. Any number of nodes may run at once. A program
// that only calls verbs need not run it, as long as some node does.
func (e *Engine) Run(ctx context.Context) error { return engine.Of(e).Run(ctx) }

// Background adds a loop that Run runs until its context ends, and waits for.
// Parts call it when they are started.
func (e *Engine) Background(f func(context.Context)) { engine.Of(e).Background(f) }

// Update runs f in one transaction: all of what it does is committed, or
// nothing. The context that f is given carries the transaction, so that a use of
// the engine inside it is [ErrReentrant] rather than a deadlock. f may be run
// again, if the transaction had to give way to another: it must do nothing that
// cannot be undone by a rollback, and no waiting of its own. A panic in f rolls
// back and goes on.
func (e *Engine) Update(ctx context.Context, f func(context.Context, Tx) error) error {
	return engine.Update(ctx, engine.Of(e), f)
}

// Status is what the database says of itself.
type Status struct {
	Database string    // "SQLite 3.53.4", "PostgreSQL 15.18"
	Schema   int       // the number of the newest migration applied
	Now      time.Time // the database's time
}

// Status asks the database whether it lives, and a running engine whether its
// janitor still comes round. On PostgreSQL the question has a
// connection of its own, so that it is answered also when all others are busy.
func (e *Engine) Status(ctx context.Context) (Status, error) {
	s, err := engine.Of(e).Status(ctx)
	return Status{Database: engine.Of(e).Runner().Version(), Schema: s.Schema, Now: s.Now}, err
}

// InWorkspace returns a context whose commands run in a workspace, which is
// made when it is first written to. A context that names none is in "default".
func InWorkspace(ctx context.Context, workspace string) context.Context {
	return store.InWorkspace(ctx, workspace)
}

// Migration says how a schema is migrated.
type Migration struct {
	// Log takes what is done; the default is [slog.Default].
	Log *slog.Logger
	// RuntimeRole is granted what a node needs, and no more (PostgreSQL).
	RuntimeRole string
}

func (m Migration) options() store.Options {
	return store.Options{Log: cmp.Or(m.Log, slog.Default()), RuntimeRole: m.RuntimeRole}
}

// Migrate brings a database's schema up to date, does nothing else, and returns
// the numbers of the newest migration before and after.
func Migrate(ctx context.Context, db Database, m Migration) (from, to int, err error) {
	done, err := store.DatabaseOf(db).Migrate(ctx, m.options())
	return done.From, done.To, err
}

// MigrationScript returns the SQL that [Migrate] would run on an empty database.
func MigrationScript(db Database, m Migration) (string, error) {
	return store.DatabaseOf(db).Script(m.options())
}
