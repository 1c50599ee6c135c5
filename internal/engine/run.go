package engine

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/streamclose"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// sweepEvery is how often a node looks for what a crash left held.
const sweepEvery = 10 * time.Second

// Run does what goes on in the background: it frees what crashes left held, and
// passes wake-ups to other nodes and from them. It returns when ctx ends, after
// everything has come to rest. Any number of nodes may run at once. A program
// that only calls verbs need not run it, as long as some node does.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.outside(ctx); err != nil {
		return err
	}
	if !e.running.CompareAndSwap(false, true) {
		return fault.New(fault.Conflict, "the engine runs already")
	}
	defer e.running.Store(false)
	if signals, ok := e.runner.Base().(store.Signals); ok {
		relay := &wake.Relay{Hub: e.hub, Signals: signals, Log: e.log}
		relay.Start(ctx)
		defer relay.Stop()
	}
	e.janitor.Start(ctx)
	defer e.janitor.Stop()
	var loops sync.WaitGroup
	pulse := &wake.IdlePoller{Hub: e.hub, Doer: e, Shards: e.Shards, Log: e.log, Leases: e.janitor.Leases(), Expire: e.janitor.Expire}
	loops.Go(func() { pulse.Run(ctx) })
	for _, f := range e.loops {
		loops.Go(func() { f(ctx) })
	}
	defer loops.Wait()
	e.follow.Run(ctx)
	<-ctx.Done()
	return nil
}

// Background adds a loop that Run runs until its context ends, and waits for.
// Parts call it when they are started.
func (e *Engine) Background(f func(context.Context)) { e.loops = append(e.loops, f) }

// Sweep adds something that the engine's janitor does on each of its rounds or, if
// needs are said, on those that find something of them. Parts call it when they are
// started.
func (e *Engine) Sweep(name string, f func(context.Context) (int, error), needs ...wake.WorkKind) {
	e.Leases(name, func(ctx context.Context, _ bool) (int, error) { return f(ctx) }, needs...)
}

// Leases adds a sweep that ends expired leases, and is told whether somebody is about to take what it frees.
func (e *Engine) Leases(name string, f func(ctx context.Context, asked bool) (int, error), needs ...wake.WorkKind) {
	e.janitor.Sweeps = append(e.janitor.Sweeps, lease.Sweep{Name: name, Run: f, Needs: needs})
}

// Due says for which needs there is something, and ends the expired leases among them first.
func (e *Engine) Due(ctx context.Context, needs ...wake.WorkKind) (map[wake.WorkKind]bool, error) {
	return e.janitor.Due(ctx, needs)
}

// Round has the janitor go round once, now. It is for tests.
func (e *Engine) Round(ctx context.Context) { e.janitor.Round(ctx) }

// Shared returns what the parts of this engine have in common under a key, made by
// the first that asks.
func (e *Engine) Shared(key any, make func() any) any { return e.runner.Directory.Shared(key, make) }

// Node is the name of this node in what it holds.
func (e *Engine) Node() string { return e.follow.Name }

// StuckAfter is what [Config] says, or 0.
func (e *Engine) StuckAfter() time.Duration { return e.stuckAfter }

// Log is where the engine tells what a person who runs the program should know.
func (e *Engine) Log() *slog.Logger { return e.log }

// Shards is for the loops of this module: the shards that workspaces live on, for
// an engine that runs as they were a moment ago.
func (e *Engine) Shards(ctx context.Context) ([]int16, error) {
	e.shards.Lock()
	defer e.shards.Unlock()
	if e.running.Load() && e.shards.known != nil && clock.Since(e.shards.at) < rememberShards {
		return e.shards.known, nil
	}
	known, workspaces, err := store.AskShards(ctx, e)
	if err == nil && len(known) > 0 {
		e.shards.known, e.shards.at = known, clock.Now()
		e.alone.Store(workspaces == 1)
	}
	return known, err
}

// Alone is for the loops of this module: whether there was but one workspace when they last asked for the shards, and no
// other was used here since.
func (e *Engine) Alone() bool {
	return e.alone.Load() && !e.runner.Directory.Several()
}

// rememberShards is how long a node does not ask again which shards there are.
const rememberShards = 10 * time.Second

// Reactions is the worker that serves the reactions of this program.
func (e *Engine) Reactions() *reactions.Worker { return e.follow }

// nodeName makes up the name of a node that has none.
func nodeName(given string) string {
	if given != "" {
		return given
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "node"
	}
	return host + "-" + store.NewID().String()[24:]
}

// Hub is where the engine's commits wake those who wait.
func (e *Engine) Hub() *wake.Hub { return e.hub }

// newJanitor returns the janitor of what every engine has.
func (e *Engine) newJanitor(every, keep time.Duration) *lease.Janitor {
	if every <= 0 {
		every = sweepEvery
	}
	j := &lease.Janitor{Every: every, Log: e.log, HasWork: e.hasWork, Sweeps: []lease.Sweep{{
		Name: "reactions", Needs: []wake.WorkKind{{Kind: wake.HeldReaction}, {Kind: wake.UnfinishedReaction}}, Run: func(ctx context.Context, _ bool) (int, error) { return reactions.SweepAll(ctx, e, e.hub.Wake) },
	}, {
		Name: "scopes", Needs: []wake.WorkKind{{Kind: wake.OldScope}}, Run: func(ctx context.Context, _ bool) (int, error) { return scopestore.SweepAll(ctx, e) },
	}, {
		Name: "books", Needs: []wake.WorkKind{{Kind: wake.HeldStream}, {Kind: wake.DroppedEvents}}, Run: func(ctx context.Context, _ bool) (int, error) { return streamclose.SweepAll(ctx, e) },
	}, {
		Name: "requests", Needs: []wake.WorkKind{{Kind: wake.OldRequest}}, Run: func(ctx context.Context, _ bool) (int, error) { return idempotency.PruneAll(ctx, e) },
	}}}
	if keep > 0 {
		pruner := &retention.Pruner{Keep: keep}
		j.Sweeps = append(j.Sweeps, lease.Sweep{Name: "history", Run: func(ctx context.Context, _ bool) (int, error) { return pruner.Sweep(ctx, e) }})
	}
	return j
}

// hasWork says for which needs there is something, on any shard.
func (e *Engine) hasWork(ctx context.Context, needs []wake.WorkKind) (map[wake.WorkKind]bool, error) {
	shards, err := e.Shards(ctx)
	if err != nil {
		return nil, err
	}
	return wake.HasWork(ctx, e, shards, needs)
}

// stalled says that this node no longer frees what crashes leave held.
func (e *Engine) stalled() error {
	if !e.running.Load() {
		return nil
	}
	if ago, yes := e.janitor.Stalled(); yes {
		return fault.New(fault.Unavailable, "the janitor has not come round for %s: what a crash left held stays held", ago.Round(time.Second))
	}
	return nil
}
