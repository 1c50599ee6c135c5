package batchengine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Remote hands out items of batches whose handlers are workers.
type Remote struct {
	remote.NoEffects

	Engine  Engine
	Cleanup *Cleanup // may be nil
}

// Owns reports whether a task id is one of a batch item, or of the undo of one.
func (r *Remote) Owns(id string) bool { return IsTask(id) || isUndo(id) }

// Offer offers the items of the batches that the claim's handlers serve.
func (r *Remote) Offer(_ context.Context, c remote.Claim) (remote.Offer, error) {
	o := remote.Offer{Leased: wake.HeldItem, Due: append(wake.WorkKinds(wake.Batch, c.Handlers...), wake.WorkKind{Kind: wake.Cleaning}), Topics: []string{Maintenance}}
	for _, name := range c.Handlers {
		o.Topics = append(o.Topics, Topic(name))
	}
	o.Take = func(ctx context.Context, d store.Doer, limit int) ([]remote.Task, error) {
		all, err := r.takeUndos(ctx, d, c, limit) // first, because a batch ends after them
		if err != nil || len(all) == limit {
			return all, err
		}
		taken, err := Take(ctx, d, Ask{Handlers: c.Handlers, Kind: "worker", Holder: c.Worker, Elsewhere: true, Limit: limit - len(all), Lease: c.Lease, Busy: c.Busy})
		for _, t := range taken {
			all = append(all, t.Remote())
		}
		return all, err
	}
	return o, nil
}

// Remote returns the item in its wire form.
func (t Taken) Remote() remote.Task {
	x := remote.Task{ID: t.TaskID(), Epoch: t.Epoch, Handler: t.Handler, Kind: "batchItem", Input: t.Input, Attempt: t.Attempt(), Until: t.Until,
		Operation: t.Operation(), Batch: t.Batch, Item: t.Key}
	if t.Artifacts {
		x.ArtifactPrefix = Prefix(t.Workspace, t.Batch, t.Key)
	}
	return x
}

// Complete settles an item with its output.
func (r *Remote) Complete(ctx context.Context, h remote.Lease, done remote.Result) (remote.Ended, error) {
	if err := done.Stateless(); err != nil {
		return remote.Ended{}, err
	}
	if isUndo(h.ID) {
		return r.completeUndo(ctx, h)
	}
	t, err := TaskOf(ctx, r.Engine, h.ID, h.Epoch)
	if err != nil {
		return remote.Ended{}, err
	}
	e, err := Settle(ctx, r.Engine, t, done.Output)
	return remote.Ended{Status: e.State}, err
}

// Fail schedules a retry of an item, or gives it up.
func (r *Remote) Fail(ctx context.Context, h remote.Lease, why remote.Failure) (remote.Ended, error) {
	if isUndo(h.ID) {
		return r.failUndo(ctx, h, why.Message)
	}
	t, err := TaskOf(ctx, r.Engine, h.ID, h.Epoch)
	if err != nil {
		return remote.Ended{}, err
	}
	e, err := Fail(ctx, r.Engine, t, why.Message, clock.Backoff(0, 0, 0, t.Failures+1), why.Final || why.Invalid)
	return remote.Ended{Status: e.State}, err
}

// Snooze releases an item, which is due again after the delay.
func (r *Remote) Snooze(ctx context.Context, h remote.Lease, delay time.Duration) (remote.Ended, error) {
	if isUndo(h.ID) {
		s, err := undoOf(ctx, r.Engine, h)
		if err != nil {
			return remote.Ended{}, err
		}
		return r.delayUndo(ctx, h, s, delay, "")
	}
	t, err := TaskOf(ctx, r.Engine, h.ID, h.Epoch)
	if err != nil {
		return remote.Ended{}, err
	}
	return remote.Ended{Status: "waiting"}, Release(ctx, r.Engine, t, delay)
}

// Renew extends the lease of an item, and reports whether a cancel is requested.
func (r *Remote) Renew(ctx context.Context, h remote.Lease, lease time.Duration) (remote.Renewed, error) {
	if isUndo(h.ID) {
		return r.renewUndo(ctx, h, lease)
	}
	t, err := TaskOf(ctx, r.Engine, h.ID, h.Epoch)
	if err != nil {
		return remote.Renewed{}, err
	}
	x, err := Renew(ctx, r.Engine, t, lease)
	return remote.Renewed{Until: x.Until, CancelRequested: x.CancelRequested}, err
}

// Prefix returns the path prefix for the artifacts of an item. It contains only
// characters that file and object names allow, and ends with a slash.
func Prefix(workspace, batch, key string) string {
	return strings.Join([]string{safeName(workspace), safeName(batch), safeName(key)}, "/") + "/"
}

// safeName encodes a name as a folder name. Different names stay different, even on
// case-insensitive file systems.
func safeName(name string) string {
	const longest = 200
	escaped := url.PathEscape(name)
	if escaped == strings.ToLower(escaped) && len(escaped) <= longest && !strings.HasPrefix(escaped, ".") && !strings.ContainsAny(escaped, "%=:*") {
		return escaped
	}
	if text := fmt.Sprintf("=%x", name); len(text) <= longest {
		return text
	}
	return fmt.Sprintf("=%x-", sha256.Sum256([]byte(name)))
}
