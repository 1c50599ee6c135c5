package engine

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/streamclose"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// sweepEvery is the default interval of the janitor.
const sweepEvery = 10 * time.Second

// Run runs the background work: it releases what crashes left behind and listens for wake-ups of other nodes. It
// returns after ctx ends and every loop has stopped. Any number of nodes may run at once. A program that only
// calls verbs need not run it, as long as some node does.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.outside(ctx); err != nil {
		return err
	}
	if slices.ContainsFunc(e.loops, func(f func(context.Context)) bool { return f == nil }) {
		return fault.New(fault.Validation, "a background loop is nil: pass a function to Engine.Background")
	}
	if !e.running.CompareAndSwap(false, true) {
		return fault.New(fault.Conflict, "the engine is already running: call Run only once")
	}
	defer e.running.Store(false)
	e.unserved.ran.Store(true)
	fence := store.FenceOf(e.runner.Base())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-fence.Restored():
			e.log.Error("the database was restored from a backup after this process opened it: end the process, and start it again")
			stop()
		case <-ctx.Done():
		}
	}()
	var loops sync.WaitGroup
	if signals, ok := e.runner.Base().(store.Signals); ok {
		loops.Go(func() { wake.Listen(ctx, e.hub, signals, e.log) })
	}
	e.janitor.Start(ctx)
	defer e.janitor.Stop()
	poller := &wake.IdlePoller{Hub: e.hub, Doer: e, Shards: e.Shards, Log: e.log, Leases: e.janitor.Leases(), Expire: e.janitor.Expire}
	loops.Go(func() { poller.Run(ctx) })
	for _, f := range e.loops {
		loops.Go(func() { f(ctx) })
	}
	loops.Go(func() { e.reporter.Run(ctx) })
	defer loops.Wait()
	e.follow.Run(ctx)
	<-ctx.Done()
	return fence.Err()
}

// Background adds a loop that Run runs until its context ends, and waits for. Parts call it when they are
// registered.
func (e *Engine) Background(f func(context.Context)) { e.loops = append(e.loops, f) }

// Sweep adds a sweep to the janitor. It runs in every round or, if needs are given, in the rounds that find
// work for them. Parts call it when they are registered.
func (e *Engine) Sweep(name string, f func(context.Context) (int, error), needs ...wake.WorkKind) {
	e.Leases(name, func(ctx context.Context, _ bool) (int, error) { return f(ctx) }, needs...)
}

// Leases adds a sweep that releases expired leases. onDemand is true if a caller is about to claim what it
// releases.
func (e *Engine) Leases(name string, f func(ctx context.Context, onDemand bool) (int, error), needs ...wake.WorkKind) {
	e.janitor.Sweeps = append(e.janitor.Sweeps, lease.Sweep{Name: name, Run: f, Needs: needs})
}

// Due returns which needs have work, and first releases the expired leases among them.
func (e *Engine) Due(ctx context.Context, needs ...wake.WorkKind) (map[wake.WorkKind]bool, error) {
	return e.janitor.Due(ctx, needs)
}

// Round runs one round of the janitor now. It exists for tests.
func (e *Engine) Round(ctx context.Context) { e.janitor.Round(ctx) }

// Maintain runs one round of the janitor now and, on a running engine, reports the node again.
func (e *Engine) Maintain(ctx context.Context) {
	e.janitor.Round(ctx)
	if e.running.Load() {
		e.reporter.Now(ctx)
	}
}

// Shared returns the value that the parts of this engine share under a key. The first call makes it.
func (e *Engine) Shared(key any, make func() any) any { return e.runner.Directory.Shared(key, make) }

// Once returns [fault.Conflict] unless this is its first call for a setting: a second one would replace the first.
func (e *Engine) Once(setting string) error {
	first := false
	e.Shared(onceKey(setting), func() any { first = true; return nil })
	if !first {
		return fault.New(fault.Conflict, "%s was passed twice: pass it to holdfast.Open only once", setting)
	}
	return nil
}

type onceKey string

// Node returns the name of this node, the holder of its leases.
func (e *Engine) Node() string { return e.follow.Name }

// Log returns the logger for messages to the operator.
func (e *Engine) Log() *slog.Logger { return e.log }

// Shards returns the shards that hold workspaces, for the loops of this module. A running engine caches them
// briefly.
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

// SingleWorkspace reports whether there was only one workspace when the shards were last
// read and no other has been used here since.
func (e *Engine) SingleWorkspace() bool {
	return e.alone.Load() && !e.runner.Directory.Several()
}

// rememberShards is how long a node caches the shards in use.
const rememberShards = 10 * time.Second

// Reactions returns the worker that serves the reactions of this program.
func (e *Engine) Reactions() *reactions.Worker { return e.follow }

// nodeName generates a name for a node without one.
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

// Hub returns the hub that the engine's commits wake.
func (e *Engine) Hub() *wake.Hub { return e.hub }

// newJanitor returns a janitor with the sweeps that every engine has.
func (e *Engine) newJanitor(every time.Duration) *lease.Janitor {
	if every <= 0 {
		every = sweepEvery
	}
	j := &lease.Janitor{Every: every, Log: e.log, HasWork: e.hasWork, Sweeps: []lease.Sweep{{
		Name: "reactions", Needs: []wake.WorkKind{{Kind: wake.HeldReaction}, {Kind: wake.UnfinishedReaction}}, Run: func(ctx context.Context, _ bool) (int, error) { return reactions.SweepAll(ctx, e, e.hub.Wake) },
	}, {
		Name: "scopes", Needs: []wake.WorkKind{{Kind: wake.OldScope}}, Run: func(ctx context.Context, _ bool) (int, error) { return scopestore.SweepAll(ctx, e) },
	}, {
		Name:  "books", // closed and truncated streams; reports of nodes have this name
		Needs: []wake.WorkKind{{Kind: wake.HeldStream}, {Kind: wake.DroppedEvents}}, Run: func(ctx context.Context, _ bool) (int, error) { return streamclose.SweepAll(ctx, e) },
	}, {
		Name: "refusals", Needs: []wake.WorkKind{{Kind: wake.OldRefusal, Name: strconv.FormatInt(refusals.Retention.Milliseconds(), 10)}}, Run: func(ctx context.Context, _ bool) (int, error) { return refusals.Prune(ctx, e) },
	}, {
		Name: "requests", Needs: []wake.WorkKind{{Kind: wake.OldRequest}}, Run: func(ctx context.Context, _ bool) (int, error) { return idempotency.PruneAll(ctx, e) },
	}}}
	return j
}

// RetainHistory sets the retention of histories, and of the effects of operations that have ended. It is called before the engine runs.
func (e *Engine) RetainHistory(least time.Duration) {
	pruner := &retention.Pruner{Retention: least}
	e.Deletes("history", func(ctx context.Context, size int) (int, bool, error) { return pruner.Sweep(ctx, e, size) })
	e.Deletes("effects", func(ctx context.Context, size int) (int, bool, error) { return effects.Prune(ctx, e, least, size) })
}

// Deletes adds a sweep that deletes a page of about size rows past their retention, and reports whether there may be more. Parts call
// it when they are registered.
func (e *Engine) Deletes(name string, page func(ctx context.Context, size int) (n int, more bool, err error), needs ...wake.WorkKind) {
	pages := new(lease.Pages)
	e.Sweep(name, func(ctx context.Context) (int, error) { return pages.Repeat(ctx, e.janitor.Every/2, page) }, needs...)
}

// hasWork returns which needs have work, on any shard.
func (e *Engine) hasWork(ctx context.Context, needs []wake.WorkKind) (map[wake.WorkKind]bool, error) {
	shards, err := e.Shards(ctx)
	if err != nil {
		return nil, err
	}
	return wake.HasWork(ctx, e, shards, needs)
}

// stalled returns an error if this node no longer releases what crashes leave behind.
func (e *Engine) stalled() error {
	if !e.running.Load() {
		return nil
	}
	if ago, yes := e.janitor.Stalled(); yes {
		return fault.New(fault.Unavailable, "the janitor has been stalled for %s, so expired leases are not released: check the log for failed sweeps", ago.Round(time.Second))
	}
	return nil
}
