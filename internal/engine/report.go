package engine

import (
	"context"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/inbox"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/nodes"
	"github.com/holdfast-go/holdfast/internal/store"
)

// SetVersion sets the version of the program that the node reports. The default is that of the main module.
func (e *Engine) SetVersion(version string) { e.version.Store(&version) }

func (e *Engine) programVersion() string {
	if v := e.version.Load(); v != nil {
		return *v
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}

// Reporter returns the reporter of this node, for tests: Run runs it.
func (e *Engine) Reporter() *nodes.Reporter { return e.reporter }

// Report returns what this node says about itself.
func (e *Engine) Report() nodes.Report {
	r := nodes.Report{Queued: e.follow.Queued(), Waiting: e.hub.Waiters()}
	for _, s := range e.hub.Served() {
		r.Serves = append(r.Serves, nodes.Served{Kind: s.Kind, Name: s.Name, Workspace: s.Workspace})
	}
	now := clock.OfMachine()
	for name, s := range e.janitor.Rounds() {
		one := nodes.Sweep{Name: name, AgoMs: now.Sub(s.At).Milliseconds()}
		if s.Err != nil {
			one.Error = lease.Plain(s.Err.Error())
		}
		r.Sweeps = append(r.Sweeps, one)
	}
	slices.SortFunc(r.Sweeps, func(a, b nodes.Sweep) int { return strings.Compare(a.Name, b.Name) })
	var ago time.Duration
	ago, r.Stalled = e.janitor.Stalled()
	r.JanitorMs = ago.Milliseconds()
	if p, ok := e.runner.Base().(store.Pooled); ok {
		r.Pool.Busy, r.Pool.Size = p.Pool()
	}
	return r
}

// PoolWaits returns how often callers have waited for a connection of the pool, and how long in total.
func (e *Engine) PoolWaits() (n int64, total time.Duration) {
	if p, ok := e.runner.Base().(store.Pooled); ok {
		return p.PoolWaits()
	}
	return 0, 0
}

// counts returns what this node has done since it started.
func (e *Engine) counts() nodes.Counts {
	t := &e.hub.Tally
	return nodes.Counts{Commands: e.runner.Commands.Load(), Refusals: e.runner.Refusals.Load(), Requests: t.Requests.Load(),
		Runs: t.Runs.Load(), Steps: t.Steps.Load(), Items: t.Items.Load(), Reactions: t.Reactions.Load()}
}

// lag returns the age of the oldest due work of the database.
func (e *Engine) lag(ctx context.Context) (time.Duration, error) {
	shards, err := e.Shards(ctx)
	if err != nil {
		return 0, err
	}
	return inbox.OldestDue(ctx, e, shards)
}
