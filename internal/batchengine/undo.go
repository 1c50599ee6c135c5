package batchengine

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/store"
)

// A remote handler undoes items of its batches that were started and then failed or were cancelled. The undo is the cleanup
// of the item, under the lease of the cleanup, whose epoch is the number of sweeps. A node calls a URL in its own cleanup. For
// workers, the cleanup is a task: the worker that takes it holds the lease, and completing the task records the cleanup.

// Cleanup has what an engine can do to clean up after items, besides the functions of the program. It is set before the
// engine runs.
type Cleanup struct {
	// CallURL undoes an item by calling its handler, which is a URL. It may be nil.
	CallURL func(context.Context, Swept) error
	// DeleteArtifacts deletes the artifacts under a prefix. It may be nil.
	DeleteArtifacts func(ctx context.Context, prefix string) error
}

type cleanupKey struct{}

// CleanupOf returns the cleanup of an engine.
func CleanupOf(e interface {
	Shared(key any, make func() any) any
}) *Cleanup {
	return e.Shared(cleanupKey{}, func() any { return new(Cleanup) }).(*Cleanup)
}

// undoPrefix begins the ids of tasks that undo items.
const undoPrefix = "und_"

func isUndo(id string) bool { return strings.HasPrefix(id, undoPrefix) }

// Remote returns the undo of an item as a task.
func (s Swept) Remote(until time.Time) remote.Task {
	return remote.Task{ID: lease.ID(undoPrefix, s.Batch, s.Key), Epoch: s.Sweeps, Handler: s.Handler, Kind: "undoItem", Attempt: s.attempt(), Until: until,
		Operation: Operation(s.Workspace, s.Batch, s.Key) + "/undo", Input: s.Input, Batch: s.Batch, Item: s.Key, ItemStatus: s.State, Output: s.Output}
}

// takeUndos takes items for the workers of handlers to undo.
func (r *Remote) takeUndos(ctx context.Context, d store.Doer, c remote.Claim, limit int) ([]remote.Task, error) {
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	taken, err := Dirty(ctx, d, Sweep{At: at, Lease: c.Lease, Limit: limit, Kind: "worker", Undoes: c.Handlers, Artifacts: r.deleteArtifacts() != nil})
	all := make([]remote.Task, len(taken))
	for i, s := range taken {
		all[i] = s.Remote(s.Until)
	}
	return all, err
}

// deleteArtifacts returns the function that deletes artifacts, or nil.
func (r *Remote) deleteArtifacts() func(context.Context, string) error {
	if r.Cleanup == nil {
		return nil
	}
	return r.Cleanup.DeleteArtifacts
}

// undoOf returns the cleanup of a task in the context's workspace, under an epoch.
func undoOf(ctx context.Context, d store.Doer, h remote.Lease) (Swept, error) {
	parts, ok := lease.Parts(undoPrefix, h.ID, 2)
	if !ok {
		return Swept{}, fault.New(fault.NotFound, "task %q does not exist", h.ID)
	}
	at, err := d.Partition(ctx, store.Read)
	return Swept{Shard: at.Shard, Workspace: at.Workspace, Batch: parts[0], Key: parts[1], Sweeps: h.Epoch, Dirty: true}, err
}

// completeUndo records that an item was undone, after its artifacts were deleted.
func (r *Remote) completeUndo(ctx context.Context, h remote.Lease) (remote.Ended, error) {
	s, err := undoOf(ctx, r.Engine, h)
	if err != nil {
		return remote.Ended{}, err
	}
	// A holder without a lease deletes nothing; it may have recorded the same end before.
	if f := r.deleteArtifacts(); f != nil {
		if _, err := RenewCleanup(ctx, r.Engine, s, lease.DefaultDuration); fault.CodeOf(err) == fault.LeaseLost {
			f = func(context.Context, string) error { return nil }
		} else if err != nil {
			return remote.Ended{}, err
		}
		if err := f(ctx, Prefix(s.Workspace, s.Batch, s.Key)); err != nil {
			return remote.Ended{}, err
		}
	}
	return remote.Ended{Status: "undone"}, lostUndo(Cleaned(ctx, r.Engine, s), h)
}

// failUndo records why an undo failed. It is retried.
func (r *Remote) failUndo(ctx context.Context, h remote.Lease, why string) (remote.Ended, error) {
	s, err := undoOf(ctx, r.Engine, h)
	if err != nil {
		return remote.Ended{}, err
	}
	return r.delayUndo(ctx, h, s, s.pause(), lease.Plain("undo item "+s.Key+": "+why))
}

// delayUndo ends the lease of an undo, which is due again after the delay.
func (r *Remote) delayUndo(ctx context.Context, h remote.Lease, s Swept, delay time.Duration, why string) (remote.Ended, error) {
	held, err := delayCleanup(ctx, r.Engine, s, delay, why)
	if err == nil && !held {
		err = lease.Lost("task "+h.ID, h.Epoch)
	}
	return remote.Ended{Status: "waiting"}, err
}

// renewUndo extends the lease of an undo.
func (r *Remote) renewUndo(ctx context.Context, h remote.Lease, duration time.Duration) (remote.Renewed, error) {
	s, err := undoOf(ctx, r.Engine, h)
	if err != nil {
		return remote.Renewed{}, err
	}
	until, err := RenewCleanup(ctx, r.Engine, s, duration)
	return remote.Renewed{Until: until}, lostUndo(err, h)
}

func lostUndo(err error, h remote.Lease) error {
	if fault.CodeOf(err) == fault.LeaseLost {
		return lease.Lost("task "+h.ID, h.Epoch)
	}
	return err
}
