package holdfast

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/history"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Database is where an engine keeps everything; packages sqlite and postgres
// make them.
type Database = store.Database

// Doer is what a verb runs on: an [*Engine] or a [Tx]. Nothing else is one.
type Doer = store.Doer

// Command is one call of a verb. The capabilities make them.
type Command = store.Command

// Tx is one open transaction. It must not be used after the transaction has
// ended, nor by two goroutines at once.
type Tx = *store.Tx

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
	// KeepHistory is how long the histories of entities, scopes and
	// reactions are kept at the least; 0 is for ever, an hour is the shortest.
	// The last event of each thing stays, and so does what a reaction has
	// still to handle. Users' streams are not touched.
	KeepHistory time.Duration
	// Node names this node in what it holds; the default is the machine's
	// name with a random part.
	Node string
	// Parallel is how many reactions' events are handled at once; the default
	// is 16. Where there are several workspaces, one has two thirds of it at the most.
	Parallel int
}

// Part is a capability, or a piece of a program's own, that an engine starts
// with.
type Part interface {
	// Start is called once by Open, when the database is ready.
	Start(context.Context, *Engine) error
}

// Engine runs commands on a database. It is safe for concurrent use.
type Engine struct {
	log        *slog.Logger
	port       *store.Port
	hub        *wake.Hub
	janitor    *hold.Janitor
	follow     *reactions.Worker
	stuckAfter time.Duration
	loops      []func(context.Context)
	running    atomic.Bool
	shards     struct {
		sync.Mutex
		known []int16
		at    time.Time
	}
	alone atomic.Bool // there was but one workspace when the shards were asked for
}

// Open opens an engine: it checks the database, brings its schema up to date,
// and starts the parts. An error says what is wrong and what to do; the
// database is then as it was before.
func Open(ctx context.Context, db Database, c Config, parts ...Part) (*Engine, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Shards < 0 || c.Shards > maxShards {
		return nil, fault.New(fault.Validation, "Config.Shards is %d: it is 1 to %d", c.Shards, maxShards)
	}
	if c.KeepHistory != 0 && c.KeepHistory < history.Shortest {
		return nil, fault.New(fault.Validation, "Config.KeepHistory is %s: it is 0, for ever, or %s at the least", c.KeepHistory, history.Shortest)
	}
	s, err := db.Open(ctx, store.Options{Log: c.Log, NoMigrate: c.NoMigrate})
	if err != nil {
		return nil, err
	}
	e := &Engine{log: c.Log, port: store.NewPort(s, store.NewPlaces(c.Shards)), hub: wake.NewHub(), stuckAfter: c.StuckAfter}
	e.janitor = e.newJanitor(c.SweepEvery, c.KeepHistory)
	e.follow = &reactions.Worker{Engine: e, Hub: e.hub, Log: c.Log, Name: nodeName(c.Node), Parallel: c.Parallel}
	e.port.Wake = func(topics []string) {
		if topics = e.follow.Notice(topics); len(topics) > 0 {
			e.hub.Wake(topics)
		}
	}
	for _, p := range parts {
		if err := p.Start(ctx, e); err != nil {
			_ = e.Close()
			return nil, err
		}
	}
	return e, nil
}

const maxShards = 1024

// Close waits for what is under way and frees the database's connections.
func (e *Engine) Close() error { return e.port.Close() }

// Do runs one command and commits it. A context that ends while the command
// waits its turn stops it. Once the database has it the answer is awaited, and
// an answer that is lost is asked for; only where that fails too is the error
// [ErrOutcomeUnknown].
func (e *Engine) Do(ctx context.Context, c Command) error {
	if err := e.outside(ctx); err != nil {
		return err
	}
	return e.port.Do(ctx, c)
}

// Update runs f in one transaction: all of what it does is committed, or
// nothing. The context that f is given carries the transaction, so that a use of
// the engine inside it is [ErrReentrant] rather than a deadlock. f may be run
// again, if the transaction had to give way to another: it must do nothing that
// cannot be undone by a rollback, and no waiting of its own. A panic in f rolls
// back and goes on.
func (e *Engine) Update(ctx context.Context, f func(context.Context, Tx) error) error {
	if err := e.outside(ctx); err != nil {
		return err
	}
	inner := context.WithValue(ctx, insideKey{e}, true)
	return e.port.Update(inner, func(ctx context.Context, conn store.Conn) error {
		return f(ctx, store.NewTx(conn, e.port.Places))
	})
}

// insideKey marks the context of a transaction of one engine.
type insideKey struct{ e *Engine }

// Outside says that the context is of one of the engine's own transactions, inside which
// the engine may not be used. It is for the packages of this module.
func (e *Engine) Outside(ctx context.Context) error { return e.outside(ctx) }

func (e *Engine) outside(ctx context.Context) error {
	if ctx.Value(insideKey{e}) == nil {
		return nil
	}
	return fault.New(fault.Reentrant, "the engine is used inside one of its own transactions: use the transaction that the function was given")
}

// Place is for the verbs, and of no use outside this module.
func (e *Engine) Place(ctx context.Context, lane store.Lane) (store.Place, error) {
	return e.port.Places.Resolve(ctx, e, lane)
}

// Registry is for the verbs, and of no use outside this module.
func (e *Engine) Registry(ctx context.Context, at store.Place, fresh bool) (*store.Registry, error) {
	return e.port.Places.Registry(ctx, e, at, fresh)
}

// Port is for the adapters' Join, and of no use outside this module.
func (e *Engine) Port() *store.Port { return e.port }

// Status is what the database says of itself.
type Status struct {
	Database string // "SQLite 3.53.4", "PostgreSQL 15.18"
	store.Status
}

// Status asks the database whether it lives, and a running engine whether its
// janitor still comes round. On PostgreSQL the question has a
// connection of its own, so that it is answered also when all others are busy.
func (e *Engine) Status(ctx context.Context) (Status, error) {
	s, err := store.Ask.DoAt(ctx, e, store.Place{}, struct{}{})
	if err == nil {
		err = e.stalled()
	}
	return Status{Database: e.port.Version(), Status: s}, err
}

// InWorkspace returns a context whose commands run in a workspace, which is
// made when it is first written to. A context that names none is in "default".
func InWorkspace(ctx context.Context, workspace string) context.Context {
	return store.InWorkspace(ctx, workspace)
}
