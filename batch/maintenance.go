package batch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// maintenance does the work of batches besides their items: it tears down cancelled batches,
// cleans up after their items, completes finished batches, releases expired leases and resumes
// paused batches. Every node has one. Two may run concurrently, because each change is conditional or
// leased.
type maintenance struct {
	engine    *engine.Engine
	kinds     *batchengine.Templates
	undoes    map[string]func(context.Context, batchengine.Swept) ([]batchengine.Commit, error) // by kind
	remote    *batchengine.Cleanup                                                              // for items of handlers over HTTP
	artifacts ArtifactStore
	capacity  *lease.Capacity        // for cleanups
	rounds    map[int16]*lease.Round // by shard
	cleaning  sync.WaitGroup
	pruner    batchengine.Pruner
}

type maintenanceKey struct{}

// maintenanceOf returns the maintenance of an engine; the first call starts it.
func maintenanceOf(hf *holdfast.Engine) *maintenance {
	e := engine.Of(hf)
	kinds, remote := batchengine.TemplatesOf(e), batchengine.CleanupOf(e)
	return e.Shared(maintenanceKey{}, func() any {
		k := &maintenance{engine: e, kinds: kinds, remote: remote, rounds: make(map[int16]*lease.Round), undoes: make(map[string]func(context.Context, batchengine.Swept) ([]batchengine.Commit, error))}
		again := "cleanups/" + e.Node() // wakes the cleanup poller when capacity is free again
		k.capacity = lease.NewCapacity(cleaners, e.SingleWorkspace, func() { e.Hub().WakeHere(again) })
		poll := func(kind string, look func(context.Context) (bool, error)) func(context.Context) {
			p := wake.Poller{Hub: e.Hub(), Topics: []string{batchengine.Maintenance, again}, Log: e.Log(), Poll: look, Idle: maintenanceInterval,
				WorkKinds: kindsOf(kind)}
			return p.Run
		}
		e.Background(poll(wake.Maintenance, k.poll))
		// Steps adds the loops for tests that step them: holdfasttest.Settle.
		e.Steps(kindsOf(wake.Maintenance), func(ctx context.Context, _ store.Partition) (bool, error) { return k.poll(store.OnlyWorkspace(ctx)) })
		e.Steps(kindsOf(wake.Cleaning), func(ctx context.Context, at store.Partition) (bool, error) {
			defer k.cleaning.Wait()
			n, err := k.cleanIn(ctx, at, cleaners) // a share of one item
			return n > 0, err
		})
		e.Background(func(ctx context.Context) { // separate, so that a hanging cleanup delays no teardown
			defer k.cleaning.Wait()
			poll(wake.Cleaning, k.pollCleanups)(ctx)
		})
		e.Sweep("items", func(ctx context.Context) (int, error) { return k.each(ctx, batchengine.Expire) }, wake.WorkKind{Kind: wake.HeldItem})
		e.Deletes("ended batches", k.prune, wake.WorkKind{Kind: wake.OldBatch})
		e.Sweep("batches", func(ctx context.Context) (int, error) { return k.each(ctx, batchengine.ResumeAll) }, wake.WorkKind{Kind: wake.PausedBatch})
		return k
	}).(*maintenance)
}

func kindsOf(kind string) func() []wake.WorkKind {
	return func() []wake.WorkKind { return []wake.WorkKind{{Kind: kind}} }
}

// Maintenance returns a part that maintains batches on an engine that has no kinds of its own. Pass
// it to [holdfast.Open].
func Maintenance() holdfast.Part { return maintenancePart{} }

type maintenancePart struct{}

// Register is called by [holdfast.Open].
func (maintenancePart) Register(_ context.Context, e *holdfast.Engine) error {
	maintenanceOf(e)
	return nil
}

// Retention sets how long a batch that has ended keeps its items, if neither its kind nor the request that created it sets that. It must be
// at least a millisecond, or 0 for the default: forever. After that, the items are deleted: the batch stays, with its counts and sums, its
// id and its rows in the ledger. It applies to the batches that this engine creates. Artifacts are not deleted. Pass it to [holdfast.Open].
func Retention(retention time.Duration) holdfast.Part { return retentionPart(retention) }

type retentionPart time.Duration

// Register is called by [holdfast.Open].
func (p retentionPart) Register(_ context.Context, e *holdfast.Engine) error {
	if p != 0 && time.Duration(p) < time.Millisecond {
		return fault.New(fault.Validation, "the retention of batches must be at least 1ms, or 0 for the default, got %s", time.Duration(p))
	}
	maintenanceOf(e).kinds.Retention = time.Duration(p)
	return engine.Of(e).Once("batch.Retention")
}

// maintenanceInterval is the poll interval while nothing wakes the maintenance.
const maintenanceInterval = 5 * time.Second

// cleaners is the maximum number of items that are cleaned up at the same time. sweptPage is the
// number of items that a node without any cleanup code takes at a time.
const (
	cleaners  = 8
	sweptPage = 200
)

// poll advances the batches that have work, once.
func (k *maintenance) poll(ctx context.Context) (found bool, err error) {
	n, err := k.each(ctx, batchengine.Advance)
	return n > 0 && err == nil, err
}

// pollCleanups begins as many cleanups as there is capacity for.
func (k *maintenance) pollCleanups(ctx context.Context) (found bool, err error) {
	shards, err := k.engine.Shards(ctx)
	for _, shard := range shards {
		some, failed := k.clean(ctx, shard)
		found, err = found || some, errors.Join(err, failed)
	}
	return found && err == nil, err
}

// each runs a sweep on every shard.
func (k *maintenance) each(ctx context.Context, sweep func(context.Context, store.Doer, store.Partition) (int, error)) (freed int, err error) {
	return store.Sweep(ctx, k.engine, func(at store.Partition) (int, error) { return sweep(ctx, k.engine, at) })
}

// prune deletes items of batches that are past their retention.
func (k *maintenance) prune(ctx context.Context, size int) (deleted int, more bool, err error) {
	deleted, err = store.Sweep(ctx, k.engine, func(at store.Partition) (int, error) {
		n, full, err := k.pruner.Sweep(ctx, k.engine, at, size)
		more = more || full
		return n, err
	})
	return deleted, more, err
}

// clean begins to clean up after items that were given up or cancelled, one workspace after the
// other, and reports whether there is more work.
func (k *maintenance) clean(ctx context.Context, shard int16) (found bool, err error) {
	if err := k.capacity.Wait(ctx); err != nil {
		return false, err
	}
	if k.rounds[shard] == nil {
		k.rounds[shard] = new(lease.Round)
	}
	turns, err := k.rounds[shard].Next(ctx, k.engine, batchengine.Turns, shard, []string{""}, k.capacity.ShutWorkspaces())
	if err != nil {
		return false, err
	}
	lease.InTurn(&k.capacity.Order, turns, func(t lease.Turn) string { return t.Workspace })
	for i, t := range turns {
		some, failed := k.cleanIn(ctx, store.Partition{Shard: shard, Workspace: t.Workspace}, len(turns)-i)
		found, err = found || some > 0, errors.Join(err, failed)
	}
	return found || !k.rounds[shard].Whole(), err
}

// cleanIn begins cleanups in one workspace, which gets an equal share of the free capacity. workspaces counts the
// workspaces that share it, including this one.
func (k *maintenance) cleanIn(ctx context.Context, at store.Partition, workspaces int) (int, error) {
	share, room, limit := lease.Share{Workspace: at.Workspace}, 0, sweptPage
	if k.artifacts != nil || k.remote.CallURL != nil || len(k.undoes) > 0 { // each item takes capacity during its cleanup
		if left := k.capacity.Left(); left > 0 {
			room = k.capacity.Take(share, (left-1)/workspaces+1)
		}
		if limit = room; room == 0 {
			return 0, nil
		}
	}
	defer func() { k.capacity.Free(share, room) }()
	all, err := batchengine.Dirty(ctx, k.engine, batchengine.Sweep{At: at, Lease: lease.DefaultDuration, Limit: limit, Undoes: slices.Collect(maps.Keys(k.undoes)), URLs: k.remote.CallURL != nil, Artifacts: k.artifacts != nil})
	if err != nil || len(all) == 0 {
		return 0, err
	}
	clean := make(map[string][]batchengine.Swept) // items that need no cleanup, by batch
	for _, s := range all {
		if !s.Undo && !s.Artifacts {
			clean[s.Batch] = append(clean[s.Batch], s)
			continue
		}
		room--
		k.cleaning.Go(func() {
			defer k.capacity.Free(share, 1)
			k.cleanOne(store.InWorkspace(ctx, s.Workspace), s)
		})
	}
	for _, list := range clean {
		if failed := batchengine.Cleaned(ctx, k.engine, list...); fault.CodeOf(failed) != fault.LeaseLost {
			err = errors.Join(err, failed)
		}
	}
	return len(all), err
}

// cleanOne cleans up after one item. An error is shown on the batch.
func (k *maintenance) cleanOne(ctx context.Context, s batchengine.Swept) {
	kp := lease.Renewer{Lease: lease.DefaultDuration, Renew: func(ctx context.Context) error {
		_, err := batchengine.RenewCleanup(ctx, k.engine, s, lease.DefaultDuration)
		return err
	}}
	commits, err := k.undo(kp.Start(ctx), s)
	kp.Stop()
	if err == nil {
		err = batchengine.CleanedWith(ctx, k.engine, s, commits)
	}
	if err == nil || fault.CodeOf(err) == fault.LeaseLost || ctx.Err() != nil {
		return // another node has the lease, or one retries after it expires
	}
	k.engine.Log().Warn("failed to clean up an item", "workspace", s.Workspace, "batch", s.Batch, "item", s.Key, "error", err)
	if err := batchengine.Unclean(ctx, k.engine, s, fmt.Errorf("clean up item %q: %w", s.Key, err)); err != nil {
		k.engine.Log().Warn("failed to record why the cleanup of an item failed", "workspace", s.Workspace, "batch", s.Batch, "item", s.Key, "error", err)
	}
}

// undo deletes an item's artifacts and, once no holder can be running the item any more, calls the program's undo
// function or the handler's URL. While a holder may still be running it (Late), and in the final check after the
// handler's timeout (not Dirty), only artifacts are deleted.
func (k *maintenance) undo(ctx context.Context, s batchengine.Swept) (commits []batchengine.Commit, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the cleanup panicked: %v", p)
		}
	}()
	if s.Artifacts {
		if err := k.artifacts.Delete(ctx, batchengine.Prefix(s.Workspace, s.Batch, s.Key)); err != nil {
			return nil, err
		}
	}
	if !s.Undo || !s.Dirty || s.Late {
		return nil, nil
	}
	if f := k.undoes[s.Handler]; f != nil {
		return f(ctx, s)
	}
	if k.remote.CallURL == nil { // the item was selected while a holder could still be running it, and that time has just ended
		return nil, fault.New(fault.Unavailable, "this node has no undo function of handler %q", s.Handler)
	}
	return nil, k.remote.CallURL(ctx, s)
}
