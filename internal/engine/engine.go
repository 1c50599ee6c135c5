// Package engine runs commands on a database, and the background loops. Package holdfast is its public face.
package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/nodes"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Config configures an engine. holdfast.Config has the same fields and documents them.
type Config struct {
	Log              *slog.Logger
	NoMigrate        bool
	Shards           int
	SweepEvery       time.Duration
	HistoryRetention time.Duration
	Node             string
}

// Engine runs commands on a database. It is safe for concurrent use.
type Engine struct {
	doer     // refers to this engine
	log      *slog.Logger
	runner   *store.Runner
	hub      *wake.Hub
	sender   *wake.Sender // nil if the database cannot signal
	janitor  *lease.Janitor
	refusals *refusals.Log
	follow   *reactions.Worker             // serves the reactions of the program
	loops    []func(context.Context)       // of Background
	steppers []stepper                     // of Steps
	learners []func(context.Context) error // of Learns
	adopters []Step                        // of Adopts
	reporter *nodes.Reporter
	version  atomic.Pointer[string]
	running  atomic.Bool
	unserved unserved
	shards   struct {
		sync.Mutex
		known []int16
		at    time.Time
	}
	alone atomic.Bool // there was only one workspace when the shards were last read
}

// Open opens an engine: it checks the database and applies pending migrations.
func Open(ctx context.Context, db store.Database, c Config) (*Engine, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Shards < 0 || c.Shards > maxShards {
		return nil, fault.New(fault.Validation, "Config.Shards must be between 0 and %[2]d, got %[1]d", c.Shards, maxShards)
	}
	if c.HistoryRetention != 0 && c.HistoryRetention < retention.Shortest {
		return nil, fault.New(fault.Validation, "Config.HistoryRetention must be 0 (unlimited) or at least %[2]s, got %[1]s", c.HistoryRetention, retention.Shortest)
	}
	if c.SweepEvery < 0 {
		return nil, fault.New(fault.Validation, "Config.SweepEvery must not be negative, got %s", c.SweepEvery)
	}
	s, err := db.Open(ctx, store.Options{Log: c.Log, NoMigrate: c.NoMigrate})
	if err != nil {
		return nil, err
	}
	e := &Engine{log: c.Log, runner: store.NewRunner(s, store.NewDirectory(c.Shards)), hub: wake.NewHub()}
	e.unserved.armed.Store(true)
	e.doer = store.HandleDoer(e)
	e.janitor = e.newJanitor(c.SweepEvery)
	if c.HistoryRetention > 0 {
		e.RetainHistory(c.HistoryRetention)
	}
	e.follow = &reactions.Worker{Engine: e, Hub: e.hub, Log: c.Log, Name: nodeName(c.Node), Tallies: reactions.TalliesOf(e)}
	e.Steps(e.follow.WorkKinds, e.follow.Step)
	e.refusals = refusals.NewLog(e, e.Node())
	meter.Of(e).LogTo(c.Log)
	e.reporter = &nodes.Reporter{Doer: e, Name: e.Node(), Log: c.Log, Version: e.programVersion, Report: e.Report, Counts: e.counts, Latency: meter.Of(e).Requests.Take, Lag: e.lag}
	if signals, ok := e.runner.Base().(store.Signals); ok {
		e.sender = wake.NewSender(e.hub, signals, c.Log)
	}
	e.runner.Wake = func(topics []string) {
		e.watchUnserved()
		if topics = e.follow.Notice(topics); len(topics) > 0 {
			e.hub.Wake(topics)
		}
	}
	return e, nil
}

const maxShards = 1024

// Close waits for calls in flight, records the last refusals, and closes the database connections.
func (e *Engine) Close() error {
	e.unserved.stop()
	e.refusals.Close()
	if e.sender != nil {
		e.sender.Stop()
	}
	return e.runner.Close()
}

// Do runs one command and commits it.
func (e *Engine) Do(ctx context.Context, c store.Command) error {
	if err := e.outside(ctx); err != nil {
		return err
	}
	return e.runner.Do(ctx, c)
}

// Update runs f in one transaction: either all of its commands are committed, or none.
func (e *Engine) Update(ctx context.Context, f func(context.Context, *store.Tx) error) error {
	return Update(ctx, e, f)
}

// Update is [Engine.Update] for functions on any transaction type that *store.Tx implements.
func Update[T any](ctx context.Context, e *Engine, f func(context.Context, T) error) error {
	if f == nil {
		return fault.New(fault.Validation, "the function is nil: pass one")
	}
	if err := e.outside(ctx); err != nil {
		return err
	}
	inner := context.WithValue(ctx, insideKey{e}, true)
	return e.runner.Update(inner, func(ctx context.Context, conn store.Conn) error {
		return f(ctx, any(store.NewTx(conn, e.runner.Directory)).(T))
	})
}

// insideKey marks the context of a transaction of one engine.
type insideKey struct{ e *Engine }

// Outside refuses a context of one of the engine's own transactions, in which the engine must not be used.
func (e *Engine) Outside(ctx context.Context) error { return e.outside(ctx) }

func (e *Engine) outside(ctx context.Context) error {
	if ctx.Value(insideKey{e}) == nil {
		return nil
	}
	return fault.New(fault.Reentrant, "the engine was called inside one of its own transactions: use the transaction passed to the function")
}

// Partition returns the partition of the context's workspace.
func (e *Engine) Partition(ctx context.Context, lane store.Lane) (store.Partition, error) {
	return e.runner.Directory.Resolve(ctx, e, lane)
}

// Registry returns the reactions of a workspace.
func (e *Engine) Registry(ctx context.Context, at store.Partition, fresh bool) (*store.Registry, error) {
	return e.runner.Directory.Registry(ctx, e, at, fresh)
}

// Directory returns the directory that the engine shares with its transactions.
func (e *Engine) Directory() *store.Directory { return e.runner.Directory }

// Runner returns the runner that executes the engine's commands.
func (e *Engine) Runner() *store.Runner { return e.runner }

// Generation returns the generation of the database: 0 before the first restore of a backup ([store.Fence]).
func (e *Engine) Generation() int64 { return store.FenceOf(e.runner.Base()).Generation() }

// Refusals returns the log of refused writes.
func (e *Engine) Refusals() *refusals.Log { return e.refusals }

// Status checks the health of the database and, on a running engine, that its janitor has not stalled.
func (e *Engine) Status(ctx context.Context) (store.Status, error) {
	s, err := store.Ask.DoAt(ctx, e, store.Partition{}, struct{}{})
	if err == nil {
		err = e.stalled()
	}
	return s, err
}
